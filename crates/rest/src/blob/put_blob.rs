//! Put Blob of blobs of all kinds.

use holdfast_domain::blob::{AccessTier, Blob, NewBlob, PutBlob, is_page_blob_length};
use holdfast_domain::content::{ContentHeaders, ContentMd5};
use holdfast_domain::tags::TagSet;
use hyper::StatusCode;

use super::encryption::{self, Chosen};
use super::{expiry, headers, immutability, page, tier};
use crate::answer::Answer;
use crate::body::RequestBody;
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

const MIB: u64 = 1024 * 1024;
const ACCESS_TIER: &str = "x-ms-access-tier";
const BLOB_LENGTH: &str = "x-ms-blob-content-length";

pub async fn put(call: &Call<'_>, body: RequestBody) -> Result<Answer, Error> {
    let mut content = headers::content_headers(call, true)?;
    if let Some(length) = call.header(BLOB_LENGTH)? {
        return Err(Error::invalid_header(BLOB_LENGTH, length));
    }
    let stored_md5 = headers::whole_md5(&content)?;
    let mut body = body.open(call, put_blob_bytes_max(call.version), stored_md5)?;
    let chosen = Chosen::read(call)?;
    let command = command(call, &chosen)?;
    let sealing = chosen.sealing();
    let received = call.frontend.domain().receive_sealed(&mut body, sealing.as_ref()).await?;
    content.content_md5 = body.finished().md5.map(ContentMd5::from);
    let command = command(NewBlob::Block(received), content);
    let blob = call.frontend.domain().put_blob(command).await?;

    let mut answer = created(call, &blob);
    headers::digests(&mut answer, call, &body);
    Ok(answer)
}

/// An append blob is created empty.
pub async fn put_append_blob(call: &Call<'_>) -> Result<Answer, Error> {
    check_bodiless(call)?;
    if let Some(length) = call.header(BLOB_LENGTH)? {
        return Err(Error::invalid_header(BLOB_LENGTH, length));
    }
    let command = command(call, &Chosen::read(call)?)?;
    let command = command(NewBlob::Append, headers::content_headers(call, true)?);
    let blob = call.frontend.domain().put_blob(command).await?;
    Ok(created(call, &blob))
}

/// A page blob is created empty; its pages are written later.
pub async fn put_page_blob(call: &Call<'_>) -> Result<Answer, Error> {
    check_bodiless(call)?;
    let length = page_blob_length(call)?.ok_or_else(|| Error::missing_header(BLOB_LENGTH))?;
    let sequence_number = page::sequence_number(call, "x-ms-blob-sequence-number")?;
    let sequence_number = sequence_number.unwrap_or_default();
    let command = command(call, &Chosen::read(call)?)?;
    if tier::chosen(call)?.is_some_and(|tier| tier < AccessTier::P4) {
        let sent = call.header(ACCESS_TIER)?.unwrap_or_default();
        return Err(Error::invalid_header(ACCESS_TIER, sent));
    }
    let page_blob = NewBlob::Page { length, sequence_number };
    let command = command(page_blob, headers::content_headers(call, true)?);
    let blob = call.frontend.domain().put_blob(command).await?;
    Ok(created(call, &blob))
}

pub fn created(call: &Call<'_>, blob: &Blob) -> Answer {
    let mut answer = Answer::new(StatusCode::CREATED);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    headers::version_id(&mut answer, call, blob);
    encryption::describe(&mut answer, &blob.encryption);
    answer.header("x-ms-request-server-encrypted", "true");
    answer
}

/// The length that a page blob is to have, if it is sent.
pub fn page_blob_length(call: &Call<'_>) -> Result<Option<u64>, Error> {
    let Some(text) = call.header(BLOB_LENGTH)? else { return Ok(None) };
    let length = text.parse().ok().filter(|length| is_page_blob_length(*length));
    length.map(Some).ok_or_else(|| Error::invalid_header(BLOB_LENGTH, text))
}

/// For operations without a body, whose Content-Length must be zero.
pub fn check_bodiless(call: &Call<'_>) -> Result<(), Error> {
    const LENGTH: &str = "content-length";
    match call.header(LENGTH)? {
        None => Err(Code::MissingContentLengthHeader.into()),
        Some("0") => Ok(()),
        Some(length) => Err(Error::invalid_header(LENGTH, length)),
    }
}

/// The options for blobs of all kinds, read before the body. The blob itself and its headers complete
/// the command.
pub(super) fn command(
    call: &Call<'_>,
    chosen: &Chosen,
) -> Result<impl FnOnce(NewBlob, ContentHeaders) -> PutBlob + use<>, Error> {
    let (immutability, legal_hold) = immutability::of_new_blob(call)?;
    let path = call.blob_path()?;
    let (metadata, tags, tier) = (call.metadata()?, tags(call)?, tier::chosen(call)?);
    let encryption = chosen.encryption();
    let encryption_context = encryption::context(call)?;
    let expiry = expiry::of_new_blob(call)?;
    let (conditions, lease_id) = (headers::write_conditions(call)?, call.lease_id()?);
    let lease_needs_blob = headers::lease_needs_blob(call);
    let create_only = call.granted.create_only;
    Ok(move |blob, headers| PutBlob {
        headers,
        metadata,
        tags,
        tier,
        immutability,
        legal_hold,
        encryption,
        encryption_context,
        expiry,
        conditions,
        lease_id,
        lease_needs_blob,
        create_only,
        ..PutBlob::new(path, blob)
    })
}

pub(super) fn tags(call: &Call<'_>) -> Result<TagSet, Error> {
    match call.header("x-ms-tags")? {
        None => Ok(TagSet::default()),
        Some(_) if !call.granted.may_write_tags => {
            Err(Code::AuthorizationPermissionMismatch.into())
        }
        Some(text) => Ok(TagSet::parse_header(text)?),
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
