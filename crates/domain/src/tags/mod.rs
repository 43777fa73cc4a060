//! Index tags of blobs: sets of tags, their form in headers, and the two small languages that
//! select blobs by them.

mod lexer;
mod predicate;
mod query;

pub use predicate::{TagPredicate, TagPredicateInvalid};
pub use query::{QueryScope, TagQuery, TagRange};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub const TAGS_MAX: usize = 10;
pub const NAME_CHARS_MAX: usize = 128;
pub const VALUE_CHARS_MAX: usize = 256;
/// Of the `x-ms-tags` header; the XML form of Set Blob Tags may be longer.
pub const HEADER_BYTES_MAX: usize = 2048;

/// The tags of one blob, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagSet(BTreeMap<String, String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagsRefusal {
    #[error("more than {TAGS_MAX} tags")]
    TooMany,
    #[error(
        "a tag name is longer than {NAME_CHARS_MAX} or a value than {VALUE_CHARS_MAX} characters"
    )]
    TooLong,
    #[error("the tags are longer than {HEADER_BYTES_MAX} bytes")]
    HeaderTooLarge,
    #[error("a tag has no name")]
    EmptyName,
    #[error("two tags have the same name")]
    DuplicateName,
    #[error("a tag holds a character that tags cannot have")]
    InvalidCharacter,
    #[error("the tags are not written as name=value&name=value")]
    Malformed,
}

impl TagSet {
    pub fn new(tags: impl IntoIterator<Item = (String, String)>) -> Result<Self, TagsRefusal> {
        let mut set = BTreeMap::new();
        for (name, value) in tags {
            check_tag(&name, &value)?;
            if set.len() == TAGS_MAX {
                return Err(TagsRefusal::TooMany);
            }
            if set.insert(name, value).is_some() {
                return Err(TagsRefusal::DuplicateName);
            }
        }
        Ok(Self(set))
    }

    /// Reads the `x-ms-tags` header: the form of a URL's query string.
    pub fn parse_header(text: &str) -> Result<Self, TagsRefusal> {
        if text.len() > HEADER_BYTES_MAX {
            return Err(TagsRefusal::HeaderTooLarge);
        }
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let pairs = text.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').ok_or(TagsRefusal::Malformed)?;
            Ok((decode(name)?, decode(value)?))
        });
        Self::new(pairs.collect::<Result<Vec<_>, _>>()?)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What `x-ms-tag-count` says.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a name or a value has only allowed characters.
fn has_tag_characters(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" +-./:=_".contains(&byte))
}

fn check_tag(name: &str, value: &str) -> Result<(), TagsRefusal> {
    if name.is_empty() {
        return Err(TagsRefusal::EmptyName);
    }
    if !has_tag_characters(name) || !has_tag_characters(value) {
        return Err(TagsRefusal::InvalidCharacter);
    }
    // Every allowed character is one byte.
    if name.len() > NAME_CHARS_MAX || value.len() > VALUE_CHARS_MAX {
        return Err(TagsRefusal::TooLong);
    }
    Ok(())
}

/// A plus is a space, as in a form: some SDKs write it so, and all of them escape a real plus.
fn decode(text: &str) -> Result<String, TagsRefusal> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (hex_digit(bytes.next())?, hex_digit(bytes.next())?);
                high << 4 | low
            }
            plain => plain,
        });
    }
    String::from_utf8(decoded).map_err(|_| TagsRefusal::Malformed)
}

fn hex_digit(byte: Option<u8>) -> Result<u8, TagsRefusal> {
    let digit = byte.and_then(|byte| char::from(byte).to_digit(16));
    digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(TagsRefusal::Malformed)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod set_tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn tags_keep_the_limits_of_the_service() {
        use TagsRefusal::{DuplicateName, EmptyName, InvalidCharacter, TooLong, TooMany};
        let many = |count: usize| (0..count).map(|n| pair(&format!("k{n}"), "v")).collect();
        let one = |name: &str, value: &str| vec![pair(name, value)];
        type Case = (&'static str, Vec<(String, String)>, Result<usize, TagsRefusal>);
        let cases: Vec<Case> = vec![
            ("3.9 count / 0", vec![], Ok(0)),
            ("3.9 count / 10", many(10), Ok(10)),
            ("3.9 count / 11", many(11), Err(TooMany)),
            ("3.9 key length / 0", one("", "v"), Err(EmptyName)),
            ("3.9 key length / 1", one("k", "v"), Ok(1)),
            ("3.9 key length / 128", one(&"k".repeat(128), "v"), Ok(1)),
            ("3.9 key length / 129", one(&"k".repeat(129), "v"), Err(TooLong)),
            ("3.9 value length / 0", one("k", ""), Ok(1)),
            ("3.9 value length / 256", one("k", &"v".repeat(256)), Ok(1)),
            ("3.9 value length / 257", one("k", &"v".repeat(257)), Err(TooLong)),
            ("3.9 case-sensitive", vec![pair("k", "a"), pair("K", "b")], Ok(2)),
            ("3.9 duplicate", vec![pair("k", "a"), pair("k", "a")], Err(DuplicateName)),
            ("3.9 characters / all allowed", one("azAZ09 +-./:=_", "azAZ09 +-./:=_"), Ok(1)),
            ("3.9 characters / & in key", one("a&b", "v"), Err(InvalidCharacter)),
            ("3.9 characters / ' in value", one("k", "it's"), Err(InvalidCharacter)),
            ("3.9 characters / é", one("é", "v"), Err(InvalidCharacter)),
            ("3.9 characters / control", one("k", "a\tb"), Err(InvalidCharacter)),
        ];
        for (cell, tags, expected) in cases {
            assert_eq!(TagSet::new(tags).map(|set| set.len()), expected, "{cell}");
        }
    }

    #[test]
    fn the_header_form_is_a_query_string() {
        use TagsRefusal::{DuplicateName, EmptyName, HeaderTooLarge, InvalidCharacter, Malformed};
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(&str, Result<Pairs, TagsRefusal>); 16] = [
            ("", Ok(&[])),
            ("a=b", Ok(&[("a", "b")])),
            ("b=2&a=1", Ok(&[("a", "1"), ("b", "2")])),
            ("a=", Ok(&[("a", "")])),
            ("a=x=y", Ok(&[("a", "x=y")])),
            ("my%20key=my+value", Ok(&[("my key", "my value")])),
            ("a=1%2B1", Ok(&[("a", "1+1")])),
            ("%61=%3D%3d", Ok(&[("a", "==")])),
            ("=b", Err(EmptyName)),
            ("a=1&a=2", Err(DuplicateName)),
            ("a=1&%61=2", Err(DuplicateName)),
            ("a", Err(Malformed)),
            ("a=1&", Err(Malformed)),
            ("a=%4", Err(Malformed)),
            ("a=%FF", Err(Malformed)),
            ("a=%26", Err(InvalidCharacter)),
        ];
        for (header, expected) in cases {
            let parsed = TagSet::parse_header(header);
            let pairs = parsed.as_ref().map(|set| set.iter().collect::<Vec<_>>());
            assert_eq!(pairs.map_err(|refusal| *refusal), expected.map(<[_]>::to_vec), "{header}");
        }
        let long = format!("a={}", "%41".repeat(700));
        assert_eq!(TagSet::parse_header(&long), Err(HeaderTooLarge), "3.1 header of 2 KiB");
    }
}
