//! Names of accounts and of what they hold, checked when they are made.

mod deleted_version;
mod path;

pub use deleted_version::DeletedVersion;
pub use path::{FilePath, PathComponent, TrailingDots, fold_text};

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Why a text is not a valid name. The service has a code for each of the first three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameRefusal {
    #[error("the name is too short or too long")]
    Length,
    #[error("the name holds characters that it cannot have, or not in this order")]
    Characters,
    /// `InvalidUri`: no resource can have this address.
    #[error("nothing can have this name")]
    Address,
    #[error("the name is reserved")]
    Reserved,
}

macro_rules! name {
    ($(#[$about:meta])* $name:ident, $check:expr) => {
        $(#[$about])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn new(name: impl Into<String>) -> Result<Self, NameRefusal> {
                let name = name.into();
                let check: fn(&str) -> Result<(), NameRefusal> = $check;
                check(&name).map(|()| Self(name))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameRefusal;

            fn try_from(name: String) -> Result<Self, NameRefusal> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

macro_rules! exact_name {
    ($(#[$about:meta])* $name:ident, $check:expr) => {
        name!($(#[$about])* #[derive(PartialEq, Eq, PartialOrd, Ord, Hash)] $name, $check);
    };
}

exact_name!(
    /// 3 to 24 lower-case letters and digits.
    AccountName,
    |name| {
        check_length(name, 3, 24)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() | byte.is_ascii_digit();
        if each(name, plain) { Ok(()) } else { Err(NameRefusal::Characters) }
    }
);

exact_name!(
    /// 3 to 63 lower-case letters, digits and single dashes between them, or a system container.
    ContainerName,
    |name| if SYSTEM_CONTAINERS.contains(&name) { Ok(()) } else { check_dashed(name) }
);

exact_name!(
    /// Like the name of a container, without the system ones.
    QueueName,
    check_dashed
);

exact_name!(
    /// Like the name of a container, without the system ones.
    ShareName,
    check_dashed
);

exact_name!(
    /// 1 to 1024 characters in at most 254 segments between slashes.
    BlobName,
    check_blob
);

name!(
    /// A letter and 2 to 62 letters and digits. Case is kept, but not compared.
    TableName,
    check_table
);

pub const ROOT_CONTAINER: &str = "$root";
const SYSTEM_CONTAINERS: [&str; 4] = [ROOT_CONTAINER, "$web", "$logs", "$blobchangefeed"];

/// System containers, written by the service, that a listing shows only on request.
const HIDDEN_CONTAINERS: [&str; 2] = ["$logs", "$blobchangefeed"];

/// Whether listings omit a container of this name unless asked.
pub fn is_hidden_container(name: &str) -> bool {
    HIDDEN_CONTAINERS.contains(&name)
}

const BLOB_NAME_CHARS_MAX: usize = 1024;
const BLOB_NAME_SEGMENTS_MAX: usize = 254;

impl ContainerName {
    pub fn is_root(&self) -> bool {
        self.0 == ROOT_CONTAINER
    }

    /// Whether it is one that the service itself knows by name.
    pub fn is_system(&self) -> bool {
        SYSTEM_CONTAINERS.contains(&self.as_str())
    }
}

impl BlobName {
    /// Blobs in the root container are addressed without its name, so with a slash in a name its
    /// first segment would look like a container.
    pub fn check_in(&self, container: &ContainerName) -> Result<(), NameRefusal> {
        if container.is_root() && self.0.contains('/') {
            return Err(NameRefusal::Address);
        }
        Ok(())
    }
}

impl TableName {
    /// The text that is equal for equal names.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for TableName {}

impl Hash for TableName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// The services count as .NET does, in UTF-16 units.
pub(crate) fn length(name: &str) -> usize {
    if name.is_ascii() { name.len() } else { name.encode_utf16().count() }
}

fn check_length(name: &str, min: usize, max: usize) -> Result<(), NameRefusal> {
    let fits = (min..=max).contains(&length(name));
    if fits { Ok(()) } else { Err(NameRefusal::Length) }
}

/// Whether all bytes are of a kind. Names are short: checking all bytes is faster than stopping at the
/// first that fails.
fn each(name: &str, kind: impl Fn(u8) -> bool) -> bool {
    name.bytes().fold(true, |all, byte| all & kind(byte))
}

fn check_dashed(name: &str) -> Result<(), NameRefusal> {
    check_length(name, 3, 63)?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let dashed = name.split('-').all(|part| !part.is_empty() && part.bytes().all(plain));
    if dashed { Ok(()) } else { Err(NameRefusal::Characters) }
}

fn check_table(name: &str) -> Result<(), NameRefusal> {
    check_length(name, 3, 63)?;
    let letter_first = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = |byte: u8| byte.is_ascii_alphabetic() | byte.is_ascii_digit();
    if !letter_first || !each(name, plain) {
        return Err(NameRefusal::Characters);
    }
    // Reserved: it is the address of the list of tables.
    if name.eq_ignore_ascii_case("tables") { Err(NameRefusal::Reserved) } else { Ok(()) }
}

/// The name of a blob as the service reads it from an address or a setting: backslashes become
/// slashes, also in listings.
pub fn with_slashes(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.contains('\\') { Cow::Owned(name.replace('\\', "/")) } else { name }
}

fn check_blob(name: &str) -> Result<(), NameRefusal> {
    check_length(name, 1, BLOB_NAME_CHARS_MAX)?;
    if name.split('/').count() > BLOB_NAME_SEGMENTS_MAX {
        return Err(NameRefusal::Address);
    }
    if name.chars().any(is_forbidden) { Err(NameRefusal::Address) } else { Ok(()) }
}

/// Code points that the service does not take in a URL. The reference gives the C1 range "except a
/// few"; XML excepts U+0085 of it, and so does this. It accepts U+FFFE and U+FFFF, and lists them
/// encoded, since XML cannot carry them.
fn is_forbidden(character: char) -> bool {
    let code = u32::from(character);
    matches!(
        code,
        0x00..=0x1F | 0x80..=0x84 | 0x86..=0x9F | 0xFDD1..=0xFDEF | 0xFFF0..=0xFFFD
    ) || (code > 0xFFFF && code & 0xFFFE == 0xFFFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&str) -> Result<(), NameRefusal>;

    fn check_all(check: Check, cases: &[(&str, Result<(), NameRefusal>)]) {
        for (name, expected) in cases {
            assert_eq!(check(name), *expected, "12 {name:?}");
        }
    }

    #[test]
    fn a_backslash_in_the_name_of_a_blob_is_a_slash() {
        for (name, expected) in [("a\\b\\", "a/b/"), ("a/b", "a/b"), ("", "")] {
            assert_eq!(with_slashes(name.into()), expected);
        }
    }

    #[test]
    fn containers_queues_and_shares_have_dashed_names() {
        use NameRefusal::{Characters, Length};
        let (at_63, at_64) = ("a".repeat(63), "a".repeat(64));
        let kinds: [Check; 3] = [
            |name| ContainerName::new(name).map(drop),
            |name| QueueName::new(name).map(drop),
            |name| ShareName::new(name).map(drop),
        ];
        for check in kinds {
            check_all(
                check,
                &[
                    ("abc", Ok(())),
                    ("123", Ok(())),
                    ("a-b-9", Ok(())),
                    (&at_63, Ok(())),
                    (&at_64, Err(Length)),
                    ("", Err(Length)),
                    ("ab", Err(Length)),
                    ("Abc", Err(Characters)),
                    ("a--b", Err(Characters)),
                    ("-abc", Err(Characters)),
                    ("abc-", Err(Characters)),
                    ("a_bc", Err(Characters)),
                    ("a.bc", Err(Characters)),
                    ("äbc", Err(Characters)),
                    ("$other", Err(Characters)),
                ],
            );
        }
    }

    #[test]
    fn only_containers_have_system_names() {
        for name in ["$root", "$web", "$logs", "$blobchangefeed"] {
            assert!(ContainerName::new(name).is_ok_and(|name| name.is_system()), "12 {name}");
            assert_eq!(QueueName::new(name).map(drop), Err(NameRefusal::Characters), "12 {name}");
            assert_eq!(ShareName::new(name).map(drop), Err(NameRefusal::Characters), "12 {name}");
        }
        assert!(ContainerName::new("web").is_ok_and(|name| !name.is_system()));
    }

    #[test]
    fn accounts_have_letters_and_digits() {
        use NameRefusal::{Characters, Length};
        let (at_24, at_25) = ("a".repeat(24), "a".repeat(25));
        check_all(
            |name| AccountName::new(name).map(drop),
            &[
                ("devstoreaccount1", Ok(())),
                ("abc", Ok(())),
                (&at_24, Ok(())),
                (&at_25, Err(Length)),
                ("ab", Err(Length)),
                ("a-b", Err(Characters)),
                ("aBc", Err(Characters)),
            ],
        );
    }

    #[test]
    fn tables_have_alphanumeric_names_that_differ_by_more_than_case() {
        use NameRefusal::{Characters, Length, Reserved};
        let (at_63, at_64) = ("a".repeat(63), "a".repeat(64));
        check_all(
            |name| TableName::new(name).map(drop),
            &[
                ("abc", Ok(())),
                ("Abc9", Ok(())),
                (&at_63, Ok(())),
                (&at_64, Err(Length)),
                ("ab", Err(Length)),
                ("9abc", Err(Characters)),
                ("a-bc", Err(Characters)),
                ("a_bc", Err(Characters)),
                ("äbc", Err(Characters)),
                ("tables", Err(Reserved)),
                ("Tables", Err(Reserved)),
            ],
        );
        let (upper, lower) = (TableName::new("People"), TableName::new("people"));
        assert_eq!(upper, lower);
        assert_eq!(upper.map(|name| name.to_string()).as_deref(), Ok("People"));
        assert_eq!(lower.map(|name| name.key()).as_deref(), Ok("people"));
        assert_ne!(TableName::new("people"), TableName::new("peoples"));
    }

    #[test]
    fn blobs_have_almost_any_name() {
        use NameRefusal::{Address, Length};
        let (at_1024, at_1025) = ("n".repeat(1024), "n".repeat(1025));
        let (emoji_512, emoji_513) = ("😀".repeat(512), "😀".repeat(513));
        let (segments_254, segments_255) = (["s"; 254].join("/"), ["s"; 255].join("/"));
        check_all(
            |name| BlobName::new(name).map(drop),
            &[
                ("a", Ok(())),
                ("Ünï/côdé 😀?#%", Ok(())),
                ("ends in a dot.", Ok(())),
                ("folder/", Ok(())),
                (&at_1024, Ok(())),
                (&at_1025, Err(Length)),
                (&emoji_512, Ok(())),
                (&emoji_513, Err(Length)),
                ("", Err(Length)),
                (&segments_254, Ok(())),
                (&segments_255, Err(Address)),
                ("a\u{0}", Err(Address)),
                ("a\u{1F}", Err(Address)),
                ("a\u{7F}", Ok(())),
                ("a\u{80}", Err(Address)),
                ("a\u{81}", Err(Address)),
                ("a\u{84}", Err(Address)),
                ("a\u{85}", Ok(())),
                ("a\u{86}", Err(Address)),
                ("a\u{9F}", Err(Address)),
                ("a\u{A0}", Ok(())),
                ("a\u{FDD0}", Ok(())),
                ("a\u{FDD1}", Err(Address)),
                ("a\u{FDEF}", Err(Address)),
                ("a\u{FDF0}", Ok(())),
                ("a\u{FFEF}", Ok(())),
                ("a\u{FFF0}", Err(Address)),
                ("a\u{FFFD}", Err(Address)),
                ("a\u{FFFE}", Ok(())),
                ("a\u{FFFF}", Ok(())),
                ("a\u{1FFFD}", Ok(())),
                ("a\u{1FFFE}", Err(Address)),
                ("a\u{10FFFF}", Err(Address)),
            ],
        );
    }

    #[test]
    fn blobs_of_the_root_container_have_no_slash() {
        let root = ContainerName::new("$root").expect("a name");
        let other = ContainerName::new("other").expect("a name");
        let (flat, deep) =
            (BlobName::new("a").expect("a name"), BlobName::new("a/b").expect("one"));
        assert_eq!(flat.check_in(&root), Ok(()), "3.16 $root");
        assert_eq!(deep.check_in(&root), Err(NameRefusal::Address), "3.16 $root");
        assert_eq!(deep.check_in(&other), Ok(()), "3.16 other containers");
    }

    #[test]
    fn stored_names_are_checked_when_they_are_read_back() {
        let name = ContainerName::new("abc").expect("a name");
        let stored = postcard::to_stdvec(&name).expect("encodes");
        assert_eq!(postcard::from_bytes::<ContainerName>(&stored), Ok(name));
        let wrong = postcard::to_stdvec("A").expect("encodes");
        assert!(postcard::from_bytes::<ContainerName>(&wrong).is_err());
    }
}
