//! Get Blob, Get Blob Properties, Get Blob Metadata.

use holdfast_domain::blob::{Download, GetBlob};
use hyper::StatusCode;

use super::{encryption, headers, parameters};
use crate::answer::Answer;
use crate::body::download::{RangeCheck, give_content};
use crate::error::Error;
use crate::headers::range;
use crate::request::Call;
use crate::version::Version;

pub async fn get(call: &Call<'_>) -> Result<Answer, Error> {
    let asked = range::requested(call.headers)?;
    let check = RangeCheck::asked(call, asked)?;
    let download = call.frontend.domain().get_blob(&command(call)?, asked).await?;
    let Download { read, range, reader } = download;
    let blob = &read.blob;
    check.admit(range.end - range.start)?;

    let status = if asked.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut answer = Answer::new(status);
    headers::blob_properties(&mut answer, call, &read);
    headers::stored_headers(&mut answer, call, &blob.headers);
    answer.header("accept-ranges", "bytes");
    if call.version >= Version::V2026_10_06 {
        headers::access_tier(&mut answer, blob);
    }
    let md5 = blob.headers.content_md5.as_ref().map(headers::encode_md5);
    if asked.is_some() {
        let (first, last) = (range.start, range.end - 1);
        answer.header("content-range", format!("bytes {first}-{last}/{}", blob.length));
        if call.version >= Version::V2016_05_31 {
            answer.optional_header("x-ms-blob-content-md5", md5);
        }
        check.describe(&mut answer, reader.clone()).await?;
    } else {
        answer.optional_header("content-md5", md5);
    }
    give_content(call, &mut answer, range.end - range.start, reader).await?;
    Ok(answer)
}

pub async fn get_properties(call: &Call<'_>) -> Result<Answer, Error> {
    let read = call.frontend.domain().get_blob_properties(&command(call)?).await?;
    let blob = &read.blob;
    let mut answer = Answer::new(StatusCode::OK);
    headers::blob_properties(&mut answer, call, &read);
    headers::stored_headers(&mut answer, call, &blob.headers);
    answer.header("accept-ranges", "bytes");
    answer.show("content-length", blob.length);
    answer
        .optional_header("content-md5", blob.headers.content_md5.as_ref().map(headers::encode_md5));
    if call.version >= Version::V2017_04_17 {
        headers::access_tier(&mut answer, blob);
    }
    Ok(answer)
}

pub async fn get_metadata(call: &Call<'_>) -> Result<Answer, Error> {
    let blob = call.frontend.domain().get_blob_properties(&command(call)?).await?.blob;
    let mut answer = Answer::new(StatusCode::OK);
    headers::identity(&mut answer, blob.etag, blob.last_modified, call.version);
    headers::metadata(&mut answer, &blob.metadata);
    Ok(answer)
}

pub(super) fn command(call: &Call<'_>) -> Result<GetBlob, Error> {
    let which = parameters::which(call)?;
    let (conditions, combination) = headers::read_conditions(call)?;
    let (path, lease_id) = (call.blob_path()?, call.lease_id()?);
    let key = encryption::customer_key(call)?;
    Ok(GetBlob { path, which, conditions, combination, lease_id, key })
}
