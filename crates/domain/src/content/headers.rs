//! The headers that a client stores with a blob or a file.

use serde::{Deserialize, Serialize};

/// The headers a client stores with a blob and gets back with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHeaders {
    /// `None` if the content was created without one; the service's default is returned then. An
    /// empty one is not returned at all.
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub cache_control: Option<String>,
    #[serde(with = "stored_md5")]
    pub content_md5: Option<ContentMd5>,
}

impl ContentHeaders {
    /// The headers after these replace all others: a type that was not sent is cleared, and the
    /// default does not return.
    #[must_use]
    pub(crate) fn replacing_all(&self) -> Self {
        let content_type = self.content_type.clone().or_else(|| Some(String::new()));
        Self { content_type, ..self.clone() }
    }
}

/// What is stored as the MD5 of a content. A client may set it to any bytes; it is a real MD5 only
/// if the server has computed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentMd5(Vec<u8>);

impl ContentMd5 {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, if they have the length of an MD5.
    pub fn whole(&self) -> Option<[u8; 16]> {
        self.0.as_slice().try_into().ok()
    }
}

impl From<[u8; 16]> for ContentMd5 {
    fn from(md5: [u8; 16]) -> Self {
        Self(md5.to_vec())
    }
}

impl AsRef<[u8]> for ContentMd5 {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// In rows, `None` and 16 bytes are encoded as an optional array of 16 bytes.
mod stored_md5 {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ContentMd5;

    #[derive(Serialize, Deserialize)]
    enum Row {
        None,
        Whole([u8; 16]),
        Other(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(
        md5: &Option<ContentMd5>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let row = match md5 {
            None => Row::None,
            Some(md5) => md5.whole().map_or_else(|| Row::Other(md5.0.clone()), Row::Whole),
        };
        row.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ContentMd5>, D::Error> {
        Ok(match Row::deserialize(deserializer)? {
            Row::None => None,
            Row::Whole(md5) => Some(md5.into()),
            Row::Other(bytes) => Some(ContentMd5(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_md5(content_md5: Option<ContentMd5>) -> ContentHeaders {
        ContentHeaders { content_md5, ..ContentHeaders::default() }
    }

    #[test]
    fn a_whole_md5_is_stored_as_ever_and_other_bytes_are_stored_too() {
        for (case, md5, end) in [
            ("none", None, vec![0]),
            ("an MD5", Some(ContentMd5::from([7; 16])), [&[1][..], &[7; 16]].concat()),
            ("other bytes", Some(ContentMd5::new(b"md5".to_vec())), b"\x02\x03md5".to_vec()),
            ("no bytes", Some(ContentMd5::new(Vec::new())), vec![2, 0]),
        ] {
            let headers = with_md5(md5);
            let row = postcard::to_allocvec(&headers).expect("encoded");
            assert_eq!(row, [&[0; 5][..], &end].concat(), "{case}");
            let read: ContentHeaders = postcard::from_bytes(&row).expect("decoded");
            assert_eq!(read, headers, "{case}");
        }
    }

    #[test]
    fn what_is_set_clears_the_type_that_is_not_sent() {
        let sent =
            ContentHeaders { content_language: Some("de".to_owned()), ..ContentHeaders::default() };
        let set = sent.replacing_all();
        assert_eq!(set.content_type.as_deref(), Some(""));
        assert_eq!(set.content_language.as_deref(), Some("de"));
        let sent = ContentHeaders { content_type: Some("a/b".to_owned()), ..sent };
        assert_eq!(sent.replacing_all(), sent);
    }
}
