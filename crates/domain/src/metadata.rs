//! Metadata: the names and values that a client keeps with a resource.

use serde::{Deserialize, Serialize};

/// All names and values together.
pub const BYTES_MAX: usize = 8 * 1024;

/// Pairs in the order they were given. Names keep their case and are compared without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata(Vec<(String, String)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataRefusal {
    #[error("a metadata name is empty")]
    EmptyName,
    #[error("a metadata name is no identifier, or a value holds a character it cannot have")]
    Invalid,
    #[error("two metadata names differ in nothing but case")]
    DuplicateName,
    #[error("the metadata is longer than {BYTES_MAX} bytes")]
    TooLarge,
}

impl Metadata {
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, MetadataRefusal> {
        let mut metadata = Self::default();
        let mut bytes = 0;
        for (name, value) in pairs {
            if name.is_empty() {
                return Err(MetadataRefusal::EmptyName);
            }
            // Values travel in headers: no character may end one early.
            if !is_identifier(&name) || value.contains(['\r', '\n', '\0']) {
                return Err(MetadataRefusal::Invalid);
            }
            // Before the search for duplicates, so that its cost is bounded.
            bytes += name.len() + value.len();
            if bytes > BYTES_MAX {
                return Err(MetadataRefusal::TooLarge);
            }
            if metadata.get(&name).is_some() {
                return Err(MetadataRefusal::DuplicateName);
            }
            metadata.0.push((name, value));
        }
        Ok(metadata)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.iter();
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both hold the same, in whatever order: what makes a second Create Queue succeed.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

/// A C# identifier, as far as a header name can carry it: ASCII letters, digits and underscores,
/// not beginning with a digit.
fn is_identifier(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn metadata_keeps_the_rules_of_the_service() {
        use MetadataRefusal::{DuplicateName, EmptyName, Invalid, TooLarge};
        let sized = |bytes: usize| vec![pair("n", &"v".repeat(bytes - 1))];
        let spread =
            |bytes: usize| vec![pair("a", &"v".repeat(4095)), pair("b", &"v".repeat(bytes - 4097))];
        let one = |name: &str| vec![pair(name, "v")];
        type Case = (&'static str, Vec<(String, String)>, Result<usize, MetadataRefusal>);
        let cases: Vec<Case> = vec![
            ("11 none", vec![], Ok(0)),
            ("11 identifiers", vec![pair("a1", ""), pair("_b", "x y"), pair("C", "é")], Ok(3)),
            ("11 empty name", one(""), Err(EmptyName)),
            ("11 characters / dash", one("a-b"), Err(Invalid)),
            ("11 characters / space", one("a b"), Err(Invalid)),
            ("11 characters / digit first", one("1a"), Err(Invalid)),
            ("11 characters / line in value", vec![pair("a", "x\r\ny")], Err(Invalid)),
            ("11 duplicate", vec![pair("a", "1"), pair("a", "2")], Err(DuplicateName)),
            ("11 duplicate / other case", vec![pair("a", "1"), pair("A", "2")], Err(DuplicateName)),
            ("11 total / 8 KiB", sized(8192), Ok(1)),
            ("11 total / 8 KiB and a byte", sized(8193), Err(TooLarge)),
            ("11 total / 8 KiB in two", spread(8192), Ok(2)),
            ("11 total / 8 KiB and a byte in two", spread(8193), Err(TooLarge)),
        ];
        for (cell, pairs, expected) in cases {
            assert_eq!(Metadata::new(pairs).map(|metadata| metadata.len()), expected, "{cell}");
        }
    }

    #[test]
    fn names_keep_their_case_and_order_and_match_without_it() {
        let metadata = Metadata::new([pair("Zeta", "1"), pair("alpha", "2")]).expect("valid");
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("Zeta", "1"), ("alpha", "2")]);
        assert_eq!(metadata.get("zETA"), Some("1"));
        assert_eq!(metadata.get("beta"), None);
        let same = Metadata::new([pair("ALPHA", "2"), pair("zeta", "1")]).expect("valid");
        let other = Metadata::new([pair("alpha", "2"), pair("zeta", "2")]).expect("valid");
        let more =
            Metadata::new([pair("alpha", "2"), pair("zeta", "1"), pair("x", "")]).expect("valid");
        assert!(metadata.is_equivalent(&same));
        assert!(!metadata.is_equivalent(&other));
        assert!(!metadata.is_equivalent(&more));
    }
}
