//! The properties that a client writes, checked one by one.

use std::ops::Range;

use super::encoding::{self, RawProperties, RawProperty};
use super::entity::EntityView;
use super::key::EntityKey;
use super::value::ValueRef;
use crate::time::Timestamp;

pub const PROPERTIES_MAX: usize = 252;
pub const NAME_UNITS_MAX: usize = 255;
const TEXT_UNITS_MAX: usize = 32 * 1024;
const BINARY_BYTES_MAX: usize = 64 * 1024;
const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// The first of January 1601, where .NET file times begin.
const DATE_MIN: Timestamp = Timestamp::from_ticks(504_911_232_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertyRefusal {
    #[error("the name of a property is not valid")]
    NameInvalid,
    #[error("the name of a property is too long")]
    NameTooLong,
    #[error("a property is given more than once")]
    Duplicate,
    #[error("a date is before the year 1601")]
    DateOutOfRange,
    #[error("the value of a property is longer than 64 KiB")]
    ValueTooLarge,
    #[error("there are more than 252 properties")]
    TooMany,
    #[error("the entity is larger than 1 MiB")]
    EntityTooLarge,
}

/// The properties of an entity without its keys and its timestamp, as encoded in its row.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    encoded: Vec<u8>,
    /// Where the names are.
    names: Vec<Range<usize>>,
    /// As the service counts it.
    size_bytes: usize,
}

impl Properties {
    pub fn with_capacity(bytes: usize) -> Self {
        Self { encoded: Vec::with_capacity(bytes), ..Self::default() }
    }

    pub fn push(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), PropertyRefusal> {
        check_name(name)?;
        if self.names.iter().any(|known| &self.encoded[known.clone()] == name.as_bytes()) {
            return Err(PropertyRefusal::Duplicate);
        }
        check_value(value)?;
        self.count(name, value)?;
        let name = encoding::put(&mut self.encoded, name, value);
        self.names.push(name);
        Ok(())
    }

    /// Checks the entity as a whole, its keys included.
    pub(super) fn check_size(&self, key: &EntityKey) -> Result<(), PropertyRefusal> {
        let keys = 2 * (units(key.partition_key()) + units(key.row_key()));
        let fits = 4 + keys + self.size_bytes <= ENTITY_BYTES_MAX;
        if fits { Ok(()) } else { Err(PropertyRefusal::EntityTooLarge) }
    }

    /// The properties of `stored`, replaced by these where the names are equal, followed by the
    /// other new ones.
    pub(super) fn merged_over(&self, stored: &EntityView<'_>) -> Result<Self, PropertyRefusal> {
        let mut merged = Self::with_capacity(stored.own_bytes() + self.encoded.len());
        let own = RawProperties { rest: &self.encoded };
        for property in stored.raw() {
            let replaced_by = own.clone().find(|own| own.name == property.name);
            merged.append(replaced_by.unwrap_or(property))?;
        }
        let known = merged.names.len();
        for property in own {
            let mut known = merged.names[..known].iter();
            if !known.any(|name| &merged.encoded[name.clone()] == property.name) {
                merged.append(property)?;
            }
        }
        Ok(merged)
    }

    fn append(&mut self, property: RawProperty<'_>) -> Result<(), PropertyRefusal> {
        let (name, value) = property.read();
        self.count(name, value)?;
        let name = encoding::put_raw(&mut self.encoded, property);
        self.names.push(name);
        Ok(())
    }

    fn count(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), PropertyRefusal> {
        if self.names.len() == PROPERTIES_MAX {
            return Err(PropertyRefusal::TooMany);
        }
        self.size_bytes += size_bytes(name, value);
        if self.size_bytes > ENTITY_BYTES_MAX {
            return Err(PropertyRefusal::EntityTooLarge);
        }
        Ok(())
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// By the rules for C# identifiers, which the service applies.
fn check_name(name: &str) -> Result<(), PropertyRefusal> {
    if name.len() > NAME_UNITS_MAX && units(name) > NAME_UNITS_MAX {
        return Err(PropertyRefusal::NameTooLong);
    }
    let first = |letter: char| letter == '_' || letter.is_alphabetic();
    let joins = |letter: char| {
        matches!(letter, '\u{300}'..='\u{36F}' | '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}')
    };
    let mut letters = name.chars();
    let valid = letters.next().is_some_and(first)
        && letters.all(|letter| letter == '_' || letter.is_alphanumeric() || joins(letter));
    if valid { Ok(()) } else { Err(PropertyRefusal::NameInvalid) }
}

fn check_value(value: ValueRef<'_>) -> Result<(), PropertyRefusal> {
    match value {
        ValueRef::Binary(bytes) if bytes.len() > BINARY_BYTES_MAX => {
            Err(PropertyRefusal::ValueTooLarge)
        }
        // A text never has more units than bytes.
        ValueRef::String(text) if text.len() > TEXT_UNITS_MAX && units(text) > TEXT_UNITS_MAX => {
            Err(PropertyRefusal::ValueTooLarge)
        }
        ValueRef::DateTime(time) if !(DATE_MIN..=Timestamp::MAX).contains(&time) => {
            Err(PropertyRefusal::DateOutOfRange)
        }
        ValueRef::Binary(_)
        | ValueRef::String(_)
        | ValueRef::DateTime(_)
        | ValueRef::Boolean(_)
        | ValueRef::Double(_)
        | ValueRef::Guid(_)
        | ValueRef::Int32(_)
        | ValueRef::Int64(_) => Ok(()),
    }
}

/// The share of a property in the size of its entity, by the formula of the reference.
fn size_bytes(name: &str, value: ValueRef<'_>) -> usize {
    let value = match value {
        ValueRef::Binary(bytes) => 4 + bytes.len(),
        ValueRef::Boolean(_) => 1,
        ValueRef::DateTime(_) | ValueRef::Double(_) | ValueRef::Int64(_) => 8,
        ValueRef::Guid(_) => 16,
        ValueRef::Int32(_) => 4,
        ValueRef::String(text) => 4 + 2 * units(text),
    };
    8 + 2 * units(name) + value
}

fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}
