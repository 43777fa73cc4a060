//! MD5 and CRC64 of a body, computed while it passes, and their comparison with what was sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest as Crc64};
use holdfast_domain::content::ContentMd5;
use md5::{Digest as _, Md5};

/// Computes only the requested digests.
pub struct Digests {
    md5: Option<Md5>,
    crc64: Option<Crc64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinishedDigests {
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

impl Digests {
    pub fn new(md5: bool, crc64: bool) -> Self {
        Self { md5: md5.then(Md5::new), crc64: crc64.then(new_crc64) }
    }

    pub fn md5() -> Self {
        Self::new(true, false)
    }

    pub fn crc64() -> Self {
        Self::new(false, true)
    }

    pub fn both() -> Self {
        Self::new(true, true)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(crc64) = &mut self.crc64 {
            crc64.update(bytes);
        }
    }

    pub fn finish(self) -> FinishedDigests {
        FinishedDigests {
            md5: self.md5.map(|md5| md5.finalize().into()),
            crc64: self.crc64.map(|crc64| crc64.finalize()),
        }
    }
}

pub(super) fn new_crc64() -> Crc64 {
    Crc64::new(CrcAlgorithm::Crc64Nvme)
}

/// As in headers: the little-endian bytes in Base64.
pub fn encode_crc64(crc64: u64) -> String {
    STANDARD.encode(crc64.to_le_bytes())
}

/// The digests that the client has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedDigests {
    pub md5: Option<[u8; 16]>,
    pub crc64: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestRefusal {
    /// 400 `InvalidMd5`
    #[error("Content-MD5 is not the Base64 of 16 bytes")]
    InvalidMd5,
    /// 400 `InvalidHeaderValue` of `x-ms-content-crc64`
    #[error("x-ms-content-crc64 is not the Base64 of 8 bytes: {value:?}")]
    InvalidCrc64 { value: String },
    /// 400 `BothCrc64AndMd5HeaderPresent`
    #[error("Content-MD5 and x-ms-content-crc64 are both sent")]
    BothSent,
    /// 400 `Md5Mismatch`; both in Base64, for UserSpecifiedMd5 and ServerCalculatedMd5.
    #[error("the MD5 sent is {sent}, the body has {calculated}")]
    Md5Mismatch { sent: String, calculated: String },
    /// 400 `Crc64Mismatch`, likewise.
    #[error("the CRC64 sent is {sent}, the body has {calculated}")]
    Crc64Mismatch { sent: String, calculated: String },
}

impl ExpectedDigests {
    /// From the headers Content-MD5 and x-ms-content-crc64, of which one may be sent.
    pub fn parse(md5: Option<&str>, crc64: Option<&str>) -> Result<Self, DigestRefusal> {
        if md5.is_some() && crc64.is_some() {
            return Err(DigestRefusal::BothSent);
        }
        let md5 = md5.map(|text| decode(text).ok_or(DigestRefusal::InvalidMd5)).transpose()?;
        let crc64 = crc64.map(|text| {
            let bytes = decode(text);
            bytes.ok_or_else(|| DigestRefusal::InvalidCrc64 { value: text.to_owned() })
        });
        Ok(Self { md5, crc64: crc64.transpose()?.map(u64::from_le_bytes) })
    }

    /// The digests that must be computed to verify these.
    pub fn digests(&self) -> Digests {
        Digests::new(self.md5.is_some(), self.crc64.is_some())
    }

    /// Compares only what was computed.
    pub fn verify(&self, finished: &FinishedDigests) -> Result<(), DigestRefusal> {
        if let (Some(sent), Some(calculated)) = (self.md5, finished.md5)
            && sent != calculated
        {
            return Err(DigestRefusal::Md5Mismatch {
                sent: STANDARD.encode(sent),
                calculated: STANDARD.encode(calculated),
            });
        }
        if let (Some(sent), Some(calculated)) = (self.crc64, finished.crc64)
            && sent != calculated
        {
            return Err(DigestRefusal::Crc64Mismatch {
                sent: encode_crc64(sent),
                calculated: encode_crc64(calculated),
            });
        }
        Ok(())
    }
}

/// A stored MD5 as in headers: any bytes in Base64.
pub fn decode_md5(text: &str) -> Option<ContentMd5> {
    let bytes = STANDARD.decode(text.trim()).ok()?;
    (!bytes.is_empty()).then(|| ContentMd5::new(bytes))
}

fn decode<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    STANDARD.decode(text.trim()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the JavaScript SDK computes.
    const CRC64: [(&str, &str); 4] = [
        ("", "AAAAAAAAAAA="),
        ("a", "PPzLtEWEL4w="),
        ("123456789", "iJh5CoYUi64="),
        ("hello world", "vo7q9sPVKY0="),
    ];

    fn finished(text: &str, chunk: usize) -> FinishedDigests {
        let mut digests = Digests::both();
        for chunk in text.as_bytes().chunks(chunk) {
            digests.update(chunk);
        }
        digests.finish()
    }

    #[test]
    fn crc64_is_that_of_the_sdk_whatever_the_chunks() {
        for (text, expected) in CRC64 {
            for chunk in 1..=12 {
                let crc64 = finished(text, chunk).crc64.map(encode_crc64);
                assert_eq!(crc64.as_deref(), Some(expected), "{text} by {chunk}");
            }
        }
    }

    #[test]
    fn only_what_is_asked_for_is_computed() {
        assert_eq!(Digests::new(false, false).finish(), FinishedDigests::default());
        assert!(Digests::md5().finish().crc64.is_none());
        assert!(Digests::crc64().finish().md5.is_none());
    }

    #[test]
    fn matching_digests_pass_and_others_are_refused_with_both_values() {
        let body = finished("hello world", 4);
        let pass = |md5, crc64| ExpectedDigests::parse(md5, crc64).map(|sent| sent.verify(&body));
        assert_eq!(pass(None, None), Ok(Ok(())));
        assert_eq!(pass(Some("XrY7u+Ae7tCTyyK7j1rNww=="), None), Ok(Ok(())));
        assert_eq!(pass(None, Some("vo7q9sPVKY0=")), Ok(Ok(())));
        let md5 = DigestRefusal::Md5Mismatch {
            sent: "AAAAAAAAAAAAAAAAAAAAAA==".to_owned(),
            calculated: "XrY7u+Ae7tCTyyK7j1rNww==".to_owned(),
        };
        assert_eq!(pass(Some("AAAAAAAAAAAAAAAAAAAAAA=="), None), Ok(Err(md5)));
        let crc64 = DigestRefusal::Crc64Mismatch {
            sent: "PPzLtEWEL4w=".to_owned(),
            calculated: "vo7q9sPVKY0=".to_owned(),
        };
        assert_eq!(pass(None, Some("PPzLtEWEL4w=")), Ok(Err(crc64)));
    }

    #[test]
    fn malformed_digests_and_two_at_once_are_refused() {
        for md5 in ["", "x", "XrY7u+Ae7tCTyyK7j1rNw", "vo7q9sPVKY0=", "XrY7u-Ae7tCTyyK7j1rNww=="] {
            let refusal = ExpectedDigests::parse(Some(md5), None);
            assert_eq!(refusal, Err(DigestRefusal::InvalidMd5), "{md5}");
        }
        for crc64 in ["", "12345", "XrY7u+Ae7tCTyyK7j1rNww=="] {
            let refusal = ExpectedDigests::parse(None, Some(crc64));
            assert_eq!(refusal, Err(DigestRefusal::InvalidCrc64 { value: crc64.to_owned() }));
        }
        let both = ExpectedDigests::parse(Some("XrY7u+Ae7tCTyyK7j1rNww=="), Some("vo7q9sPVKY0="));
        assert_eq!(both, Err(DigestRefusal::BothSent));
    }
}
