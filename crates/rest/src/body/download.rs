//! The bytes of a download, as the body of its answer, and the digest of the requested range.

use holdfast_domain::content::ContentReader;
use holdfast_domain::content::ReadRange;

use super::{Digests, Encoder, StructuredBody, encode_crc64};
use crate::answer::{Answer, AnswerBody};
use crate::error::{Code, Error};
use crate::headers::content_headers::encode_md5;
use crate::request::Call;

/// The longest range that is answered with its own MD5 or CRC64.
const CHECKED_RANGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The bytes of a download, as the body of its answer. The first bytes are read before the status is
/// sent, so that a read error fails the request and not the connection.
pub(crate) async fn give_content(
    call: &Call<'_>,
    answer: &mut Answer,
    length: u64,
    mut reader: ContentReader,
) -> Result<(), Error> {
    let first = reader.next().await?;
    answer.body = if wants_structure(call)? {
        answer.header("x-ms-structured-body", StructuredBody::HEADER_VALUE);
        answer.show("x-ms-structured-content-length", length);
        AnswerBody::structured(first, reader, Encoder::new(length))
    } else {
        AnswerBody::content(first, reader)
    };
    Ok(())
}

/// Whether the bytes are to be sent in the structured form, with checksums among them.
fn wants_structure(call: &Call<'_>) -> Result<bool, Error> {
    // The length that a structured request body must have is not needed here.
    let structured = StructuredBody::parse(call.header("x-ms-structured-body")?, Some("0"))?;
    Ok(structured.is_some())
}

/// The digest requested by `x-ms-range-get-content-md5` or `-crc64`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeCheck {
    None,
    Md5,
    Crc64,
}

impl RangeCheck {
    pub(crate) fn asked(call: &Call<'_>, range: Option<ReadRange>) -> Result<Self, Error> {
        const MD5: &str = "x-ms-range-get-content-md5";
        const CRC64: &str = "x-ms-range-get-content-crc64";
        let check = match (flag(call, MD5)?, flag(call, CRC64)?) {
            (false, false) => Self::None,
            (true, false) => Self::Md5,
            (false, true) => Self::Crc64,
            (true, true) => return Err(Error::invalid_header(CRC64, "true")),
        };
        match (check, range) {
            (Self::Md5, None) => Err(Error::invalid_header(MD5, "true")),
            (Self::Crc64, None) => Err(Error::invalid_header(CRC64, "true")),
            (Self::None | Self::Md5 | Self::Crc64, _) => Ok(check),
        }
    }

    pub(crate) fn admit(self, length: u64) -> Result<(), Error> {
        if self != Self::None && length > CHECKED_RANGE_BYTES_MAX {
            return Err(Code::OutOfRangeInput.into());
        }
        Ok(())
    }

    /// Reads the range once for its digest; it is read again to be sent, so that no body is held.
    pub(crate) async fn describe(
        self,
        answer: &mut Answer,
        mut reader: ContentReader,
    ) -> Result<(), Error> {
        let mut digests = match self {
            Self::None => return Ok(()),
            Self::Md5 => Digests::md5(),
            Self::Crc64 => Digests::crc64(),
        };
        while let Some(bytes) = reader.next().await? {
            digests.update(&bytes);
        }
        let digests = digests.finish();
        answer.optional_header("content-md5", digests.md5.map(encode_md5));
        answer.optional_header("x-ms-content-crc64", digests.crc64.map(encode_crc64));
        Ok(())
    }
}

fn flag(call: &Call<'_>, name: &'static str) -> Result<bool, Error> {
    match call.header(name)? {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => Err(Error::invalid_header(name, text)),
    }
}
