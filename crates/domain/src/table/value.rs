//! The values that a property can have, and the order of texts.

use std::cmp::Ordering;

use bytes::Bytes;
use uuid::Uuid;

use crate::time::Timestamp;

/// One of the eight types that a property can have.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Binary(Bytes),
    Boolean(bool),
    DateTime(Timestamp),
    Double(f64),
    Guid(Uuid),
    Int32(i32),
    Int64(i64),
    String(String),
}

impl Value {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Binary(bytes) => ValueRef::Binary(bytes),
            Self::Boolean(value) => ValueRef::Boolean(*value),
            Self::DateTime(value) => ValueRef::DateTime(*value),
            Self::Double(value) => ValueRef::Double(*value),
            Self::Guid(value) => ValueRef::Guid(*value),
            Self::Int32(value) => ValueRef::Int32(*value),
            Self::Int64(value) => ValueRef::Int64(*value),
            Self::String(text) => ValueRef::String(text),
        }
    }
}

/// The same, borrowed from where it is stored or was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    Binary(&'a [u8]),
    Boolean(bool),
    DateTime(Timestamp),
    Double(f64),
    Guid(Uuid),
    Int32(i32),
    Int64(i64),
    String(&'a str),
}

impl ValueRef<'_> {
    pub fn to_owned(self) -> Value {
        match self {
            Self::Binary(bytes) => Value::Binary(Bytes::copy_from_slice(bytes)),
            Self::Boolean(value) => Value::Boolean(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Double(value) => Value::Double(value),
            Self::Guid(value) => Value::Guid(value),
            Self::Int32(value) => Value::Int32(value),
            Self::Int64(value) => Value::Int64(value),
            Self::String(text) => Value::String(text.to_owned()),
        }
    }
}

/// The order of texts in a table, of keys and of values: that of their UTF-16 units, which .NET
/// calls ordinal. It differs from the order of UTF-8 only where a character beyond U+FFFF meets one
/// from U+E000 to U+FFFF.
pub fn compare_ordinal(one: &str, other: &str) -> Ordering {
    let differing = one.bytes().zip(other.bytes()).find(|(one, other)| one != other);
    match differing {
        Some((one, other)) => ordinal_byte(one).cmp(&ordinal_byte(other)),
        None => one.len().cmp(&other.len()),
    }
}

/// Maps a byte of UTF-8 to a byte of a row key, so that row keys are in this order: U+E000 to
/// U+FFFF begin with 0xEE or 0xEF, and must come after characters of four bytes. UTF-8 never
/// contains 0xFE or 0xFF, so the mapping is reversible.
pub(super) const fn ordinal_byte(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte + 0x10,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_the_order_of_their_utf16_units() {
        let texts = [
            "",
            " ",
            "A",
            "AB",
            "B",
            "a",
            "é",
            "\u{D7FF}",
            "\u{10000}",
            "\u{10FFFF}",
            "\u{E000}",
            "\u{FB00}",
            "\u{FFFF}",
        ];
        for one in texts {
            for other in texts {
                let utf16 = one.encode_utf16().cmp(other.encode_utf16());
                assert_eq!(compare_ordinal(one, other), utf16, "{one:?} {other:?}");
                let (one, other) = (format!("x{one}"), format!("x{other}"));
                assert_eq!(compare_ordinal(&one, &other), utf16, "{one:?} {other:?}");
            }
        }
    }
}
