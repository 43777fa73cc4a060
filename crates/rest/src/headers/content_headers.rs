//! Headers about the bytes of a blob or file: their type, how they are encoded, and their digests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_domain::content::{ContentHeaders, ContentMd5};

use crate::answer::Answer;
use crate::body::{ContentBody, FinishedDigests, StructuredBody, decode_md5, encode_crc64};
use crate::error::{Code, Error};
use crate::request::Call;
use crate::version::Version;

const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// The MD5 to store: any bytes in Base64. The service checks their number only if it receives the
/// content, see [`whole_md5`].
pub fn md5_header(call: &Call<'_>, name: &'static str) -> Result<Option<ContentMd5>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    decode_md5(text).map(Some).ok_or_else(|| Code::InvalidMd5.into())
}

/// The MD5 to store with a content, which it must match.
pub fn whole_md5(headers: &ContentHeaders) -> Result<Option<[u8; 16]>, Error> {
    let Some(md5) = &headers.content_md5 else { return Ok(None) };
    md5.whole().map(Some).ok_or_else(|| Code::InvalidMd5.into())
}

/// Empty if it has been cleared.
pub fn content_type(headers: &ContentHeaders) -> &str {
    headers.content_type.as_deref().unwrap_or(DEFAULT_CONTENT_TYPE)
}

pub fn encode_md5(md5: impl AsRef<[u8]>) -> String {
    STANDARD.encode(md5)
}

/// The digests of a received body.
pub fn digests(answer: &mut Answer, call: &Call<'_>, body: &ContentBody) {
    source_digests(answer, call, body.finished());
    if body.is_structured() {
        answer.header("x-ms-structured-body", StructuredBody::HEADER_VALUE);
    }
}

/// The digests of bytes that were read from a source.
pub fn source_digests(answer: &mut Answer, call: &Call<'_>, digests: FinishedDigests) {
    answer.optional_header("content-md5", digests.md5.map(encode_md5));
    if call.version >= Version::V2019_02_02 {
        answer.optional_header("x-ms-content-crc64", digests.crc64.map(encode_crc64));
    }
}

/// The stored headers of the bytes, or the values from the caller's signature that override them.
pub fn stored_headers(answer: &mut Answer, call: &Call<'_>, headers: &ContentHeaders) {
    let overrides = &call.granted.scope().response_headers;
    let or = |own: &Option<String>, stored: &Option<String>| own.clone().or_else(|| stored.clone());
    let content_type_override = overrides.content_type.as_deref();
    let content_type = content_type_override.unwrap_or(content_type(headers));
    answer.optional_header("content-type", Some(content_type).filter(|text| !text.is_empty()));
    answer.optional_header(
        "content-encoding",
        or(&overrides.content_encoding, &headers.content_encoding),
    );
    answer.optional_header(
        "content-language",
        or(&overrides.content_language, &headers.content_language),
    );
    answer.optional_header("cache-control", or(&overrides.cache_control, &headers.cache_control));
    answer.optional_header(
        "content-disposition",
        or(&overrides.content_disposition, &headers.content_disposition),
    );
}
