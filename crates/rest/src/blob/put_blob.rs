//! Put Blob of a block blob.

use holdfast_domain::blob::{AccessTier, ContentHeaders, NewBlob, PutBlob};
use holdfast_domain::tags::TagSet;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::headers;
use crate::answer::Answer;
use crate::body::{StructuredBody, encode_crc64};
use crate::error::{Code, Error};
use crate::request::Call;
use crate::request_body::RequestBody;
use crate::version::Version;

const MIB: u64 = 1024 * 1024;

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let mut content = headers::content_headers(call, true)?;
    if call.headers.contains_key("x-ms-blob-content-length") {
        return Err(Error::invalid_header(
            "x-ms-blob-content-length",
            call.header("x-ms-blob-content-length")?.unwrap_or_default(),
        ));
    }
    let mut body = body.open(call, put_blob_bytes_max(call.version), content.content_md5)?;
    let chosen = Chosen::read(call)?;
    let mut command = command(call, &chosen)?;
    let sealing = chosen.sealing();
    let received = call.frontend.domain().receive_sealed(&mut body, sealing.as_ref()).await?;
    let digests = body.finished();
    content.content_md5 = digests.md5;
    command.headers = content;
    command.blob = NewBlob::Block(received);
    let blob = call.frontend.domain().put_blob(command).await?;

    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    headers::version_id(&mut answer, call, &blob);
    encryption::describe(&mut answer, &blob.encryption);
    answer.optional_header("content-md5", digests.md5.map(headers::encode_md5));
    if call.version >= Version::V2019_02_02 {
        answer.optional_header("x-ms-content-crc64", digests.crc64.map(encode_crc64));
    }
    if body.is_structured() {
        answer.header("x-ms-structured-body", StructuredBody::HEADER_VALUE);
    }
    answer.header("x-ms-request-server-encrypted", "true");
    Ok(answer)
}

/// What blobs of all kinds take; the blob itself and its headers are to be filled in.
fn command(call: &Call<'_>, chosen: &Chosen) -> Result<PutBlob, Error> {
    Ok(PutBlob {
        path: call.blob_path()?,
        blob: NewBlob::Append,
        headers: ContentHeaders::default(),
        metadata: call.metadata()?,
        tags: tags(call)?,
        tier: tier(call)?,
        immutability: None,
        legal_hold: false,
        encryption: chosen.encryption(),
        conditions: headers::write_conditions(call)?,
        lease_id: call.lease_id()?,
        create_only: call.granted.create_only,
    })
}

fn tags(call: &Call<'_>) -> Result<TagSet, Error> {
    match call.header("x-ms-tags")? {
        None => Ok(TagSet::default()),
        Some(_) if !call.granted.may_write_tags => {
            Err(Code::AuthorizationPermissionMismatch.into())
        }
        Some(text) => Ok(TagSet::parse_header(text)?),
    }
}

fn tier(call: &Call<'_>) -> Result<Option<AccessTier>, Error> {
    const NAME: &str = "x-ms-access-tier";
    let Some(text) = call.header(NAME)? else { return Ok(None) };
    match headers::parse_tier(text) {
        Some(tier) => Ok(Some(tier)),
        None => Err(Error::invalid_header(NAME, text)),
    }
}

/// The largest blob that one Put Blob may send, by version.
fn put_blob_bytes_max(version: Version) -> u64 {
    if version >= Version::V2019_12_12 {
        5000 * MIB
    } else if version >= Version::V2016_05_31 {
        256 * MIB
    } else {
        64 * MIB
    }
}
