//! How the properties of an entity are encoded in its row: one after the other, in the order in
//! which they were first written. A property is the tag of its type, the length of its name, the
//! name, and its value; a text or binary value begins with its length. Lengths have seven bits per
//! byte, low bits first. A property is found without decoding the others.

use std::ops::Range;

use uuid::Uuid;

use super::value::ValueRef;
use crate::time::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Binary = 1,
    False = 2,
    True = 3,
    DateTime = 4,
    Double = 5,
    Guid = 6,
    Int32 = 7,
    Int64 = 8,
    String = 9,
}

impl Tag {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Binary(_) => Self::Binary,
            ValueRef::Boolean(false) => Self::False,
            ValueRef::Boolean(true) => Self::True,
            ValueRef::DateTime(_) => Self::DateTime,
            ValueRef::Double(_) => Self::Double,
            ValueRef::Guid(_) => Self::Guid,
            ValueRef::Int32(_) => Self::Int32,
            ValueRef::Int64(_) => Self::Int64,
            ValueRef::String(_) => Self::String,
        }
    }

    fn parse(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Binary,
            2 => Self::False,
            3 => Self::True,
            4 => Self::DateTime,
            5 => Self::Double,
            6 => Self::Guid,
            7 => Self::Int32,
            8 => Self::Int64,
            9 => Self::String,
            _ => return None,
        })
    }
}

/// Returns the range of the name.
pub fn put(encoded: &mut Vec<u8>, name: &str, value: ValueRef<'_>) -> Range<usize> {
    encoded.push(Tag::of(value) as u8);
    put_length(encoded, name.len());
    let name_start = encoded.len();
    encoded.extend_from_slice(name.as_bytes());
    match value {
        ValueRef::Binary(bytes) => {
            put_length(encoded, bytes.len());
            encoded.extend_from_slice(bytes);
        }
        ValueRef::Boolean(_) => {}
        ValueRef::DateTime(time) => encoded.extend_from_slice(&time.ticks().to_le_bytes()),
        ValueRef::Double(number) => encoded.extend_from_slice(&number.to_bits().to_le_bytes()),
        ValueRef::Guid(guid) => encoded.extend_from_slice(guid.as_bytes()),
        ValueRef::Int32(number) => encoded.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Int64(number) => encoded.extend_from_slice(&number.to_le_bytes()),
        ValueRef::String(text) => {
            put_length(encoded, text.len());
            encoded.extend_from_slice(text.as_bytes());
        }
    }
    name_start..name_start + name.len()
}

/// As [`put`], for a property that is encoded already.
pub fn put_raw(encoded: &mut Vec<u8>, property: RawProperty<'_>) -> Range<usize> {
    let name_start = encoded.len() + property.name_offset;
    encoded.extend_from_slice(property.bytes);
    name_start..name_start + property.name.len()
}

fn put_length(encoded: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        encoded.push(length as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
}

/// One encoded property; its value is not decoded.
#[derive(Clone, Copy)]
pub struct RawProperty<'a> {
    pub name: &'a [u8],
    tag: Tag,
    value: &'a [u8],
    /// All of it.
    bytes: &'a [u8],
    name_offset: usize,
}

impl<'a> RawProperty<'a> {
    /// For a property that is known to be valid.
    pub fn read(&self) -> (&'a str, ValueRef<'a>) {
        let name = std::str::from_utf8(self.name).unwrap_or_default();
        (name, self.value().unwrap_or(ValueRef::Boolean(false)))
    }

    pub fn is_readable(&self) -> bool {
        std::str::from_utf8(self.name).is_ok() && self.value().is_some()
    }

    fn value(&self) -> Option<ValueRef<'a>> {
        Some(match self.tag {
            Tag::Binary => ValueRef::Binary(self.value),
            Tag::False => ValueRef::Boolean(false),
            Tag::True => ValueRef::Boolean(true),
            Tag::DateTime => {
                ValueRef::DateTime(Timestamp::from_ticks(u64::from_le_bytes(self.fixed()?)))
            }
            Tag::Double => ValueRef::Double(f64::from_bits(u64::from_le_bytes(self.fixed()?))),
            Tag::Guid => ValueRef::Guid(Uuid::from_bytes(self.fixed()?)),
            Tag::Int32 => ValueRef::Int32(i32::from_le_bytes(self.fixed()?)),
            Tag::Int64 => ValueRef::Int64(i64::from_le_bytes(self.fixed()?)),
            Tag::String => ValueRef::String(std::str::from_utf8(self.value).ok()?),
        })
    }

    fn fixed<const LENGTH: usize>(&self) -> Option<[u8; LENGTH]> {
        self.value.try_into().ok()
    }
}

/// The properties in order, up to the end or to an invalid one.
#[derive(Clone)]
pub struct RawProperties<'a> {
    pub rest: &'a [u8],
}

impl<'a> Iterator for RawProperties<'a> {
    type Item = RawProperty<'a>;

    fn next(&mut self) -> Option<RawProperty<'a>> {
        let start = self.rest;
        let (tag, rest) = start.split_first()?;
        let tag = Tag::parse(*tag)?;
        let (length, rest) = take_length(rest)?;
        let name_offset = start.len() - rest.len();
        let (name, rest) = rest.split_at_checked(length)?;
        let (length, rest) = match tag {
            Tag::Binary | Tag::String => take_length(rest)?,
            Tag::False | Tag::True => (0, rest),
            Tag::Int32 => (4, rest),
            Tag::DateTime | Tag::Double | Tag::Int64 => (8, rest),
            Tag::Guid => (16, rest),
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        let bytes = &start[..start.len() - rest.len()];
        Some(RawProperty { name, tag, value, bytes, name_offset })
    }
}

fn take_length(mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (mut length, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        bytes = rest;
        length |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some((length, bytes));
        }
        shift += 7;
        // Four bytes hold more than any row.
        if shift > 21 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_went_in() {
        let (long, bytes) = ("x".repeat(70_000), vec![7; 200]);
        let values = [
            ("a", ValueRef::Binary(&bytes)),
            ("b", ValueRef::Binary(b"")),
            ("c", ValueRef::Boolean(true)),
            ("d", ValueRef::Boolean(false)),
            ("e", ValueRef::DateTime(Timestamp::MAX)),
            ("f", ValueRef::Double(-0.5)),
            ("g", ValueRef::Guid(Uuid::from_u128(5))),
            ("h", ValueRef::Int32(i32::MIN)),
            ("i", ValueRef::Int64(i64::MAX)),
            ("j", ValueRef::String("é")),
            ("k", ValueRef::String(&long)),
            (&long[..300], ValueRef::String("")),
        ];
        let mut encoded = Vec::new();
        for (name, value) in values {
            put(&mut encoded, name, value);
        }
        let mut read = RawProperties { rest: &encoded };
        for (name, value) in values {
            let property = read.next().expect(name);
            assert_eq!(property.read(), (name, value));
        }
        assert!(read.next().is_none() && read.rest.is_empty());
    }

    #[test]
    fn nothing_is_read_behind_a_broken_place() {
        let mut encoded = Vec::new();
        put(&mut encoded, "name", ValueRef::String("value"));
        for end in 1..encoded.len() {
            let mut read = RawProperties { rest: &encoded[..end] };
            assert!(read.next().is_none() && !read.rest.is_empty(), "{end}");
        }
        for bytes in [&[0][..], &[10, 0], &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]] {
            let mut read = RawProperties { rest: bytes };
            assert!(read.next().is_none() && !read.rest.is_empty(), "{bytes:?}");
        }
    }
}
