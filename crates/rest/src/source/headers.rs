//! The headers of a request about its source, besides the URL.

use holdfast_domain::condition::{Conditions, ETagList};
use holdfast_domain::content::ReadRange;
use holdfast_domain::names::TrailingDots;
use holdfast_domain::tags::TagPredicate;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::body::{DigestRefusal, ExpectedDigests};
use crate::error::Error;
use crate::headers::range;
use crate::request::Call;
use crate::version::Version;

/// The conditions on the source: for one on this server, and as headers for one elsewhere.
#[derive(Clone, Debug, Default)]
pub struct SourceConditions {
    pub here: Conditions,
    pub elsewhere: HeaderMap,
}

/// The headers of conditions on a source, and the equivalent ones of a read.
const FORWARDED: [(&str, &str); 5] = [
    ("x-ms-source-if-match", "if-match"),
    ("x-ms-source-if-none-match", "if-none-match"),
    ("x-ms-source-if-modified-since", "if-modified-since"),
    ("x-ms-source-if-unmodified-since", "if-unmodified-since"),
    (IF_TAGS, "x-ms-if-tags"),
];
pub(super) const RANGE: &str = "x-ms-source-range";
const IF_TAGS: &str = "x-ms-source-if-tags";

pub(super) fn conditions(call: &Call<'_>) -> Result<SourceConditions, Error> {
    let here = Conditions {
        if_match: etags(call, "x-ms-source-if-match")?,
        if_none_match: etags(call, "x-ms-source-if-none-match")?,
        if_modified_since: call.date_header("x-ms-source-if-modified-since")?,
        if_unmodified_since: call.date_header("x-ms-source-if-unmodified-since")?,
        if_tags: tag_predicate(call)?,
    };
    let mut elsewhere = HeaderMap::new();
    for (own, theirs) in FORWARDED {
        let Some(text) = call.header(own)? else { continue };
        let value = HeaderValue::from_str(text).map_err(|_| Error::invalid_header(own, text))?;
        elsewhere.insert(HeaderName::from_static(theirs), value);
    }
    Ok(SourceConditions { here, elsewhere })
}

fn etags(call: &Call<'_>, name: &'static str) -> Result<Option<ETagList>, Error> {
    let Some(text) = call.header(name)? else { return Ok(None) };
    ETagList::parse(text).map(Some).ok_or_else(|| Error::invalid_header(name, text))
}

fn tag_predicate(call: &Call<'_>) -> Result<Option<TagPredicate>, Error> {
    let Some(text) = call.header(IF_TAGS)? else { return Ok(None) };
    TagPredicate::parse(text).map(Some).map_err(|_| Error::invalid_header(IF_TAGS, text))
}

pub(super) fn range(call: &Call<'_>) -> Result<Option<ReadRange>, Error> {
    let Some(text) = call.header(RANGE)? else { return Ok(None) };
    range::parse(text.as_bytes()).map(Some).ok_or_else(|| Error::invalid_header(RANGE, text))
}

pub(super) fn digests(call: &Call<'_>) -> Result<ExpectedDigests, Error> {
    const CRC64: &str = "x-ms-source-content-crc64";
    let crc64 = call.header(CRC64)?;
    let parsed = ExpectedDigests::parse(call.header("x-ms-source-content-md5")?, crc64);
    parsed.map_err(|refusal| match refusal {
        DigestRefusal::InvalidCrc64 { .. } => {
            Error::invalid_header(CRC64, crc64.unwrap_or_default())
        }
        DigestRefusal::BothSent
        | DigestRefusal::InvalidMd5
        | DigestRefusal::Md5Mismatch { .. }
        | DigestRefusal::Crc64Mismatch { .. } => refusal.into(),
    })
}

/// What happens to dots at the end of names of a source file.
pub(super) fn source_dots(call: &Call<'_>) -> Result<TrailingDots, Error> {
    const NAME: &str = "x-ms-source-allow-trailing-dot";
    if call.version < Version::V2022_11_02 {
        return Ok(TrailingDots::Removed);
    }
    match call.header(NAME)? {
        None => Ok(TrailingDots::Removed),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(TrailingDots::Kept),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(TrailingDots::Removed),
        Some(text) => Err(Error::invalid_header(NAME, text)),
    }
}

/// The token that opens the source, without its scheme.
pub(super) fn token(call: &Call<'_>) -> Result<Option<String>, Error> {
    const NAME: &str = "x-ms-copy-source-authorization";
    if call.version < Version::V2020_10_02 {
        return Ok(None);
    }
    let Some(text) = call.header(NAME)? else { return Ok(None) };
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("Bearer") => {
            Ok(Some(token.trim().to_owned()))
        }
        // The value is a secret, so it is not returned.
        Some(_) | None => Err(Error::invalid_header(NAME, "")),
    }
}
