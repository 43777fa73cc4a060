//! Parses entities that clients send: a JSON object, read in one pass without building a tree. The
//! annotation of a property may come before or after it.

use std::borrow::Cow;
use std::fmt;

use base64_simd::STANDARD;
use holdfast_domain::table::{
    EntityKey, KeyRefusal, PARTITION_KEY, Properties, PropertyRefusal, ROW_KEY, TIMESTAMP, ValueRef,
};
use holdfast_domain::time::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use uuid::Uuid;

/// More than an entity can have, with its keys and null values; bounds what is kept of a body.
const FIELDS_MAX: usize = 1024;
const TYPE_SUFFIX: &str = "@odata.type";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntityBodyRefusal {
    #[error("the body is not a JSON object of plain values")]
    Unreadable,
    #[error("a value is not of the type that it is said to have")]
    Value,
    #[error("a type is not known")]
    UnknownType,
    #[error("PartitionKey or RowKey is missing")]
    KeyMissing,
    #[error("PartitionKey or RowKey is not a text")]
    KeyNotText,
    #[error("the keys in the body are not those of the address")]
    OtherKey,
    #[error(transparent)]
    Property(#[from] PropertyRefusal),
    #[error(transparent)]
    Key(#[from] KeyRefusal),
}

/// The contents of a body.
#[derive(Debug)]
pub struct EntityBody {
    partition_key: Option<String>,
    row_key: Option<String>,
    /// A key is annotated with another type than text.
    key_typed: bool,
    pub properties: Properties,
}

impl EntityBody {
    /// The key of an entity that only the body names. If the address names it, the service ignores
    /// the types of the keys in the body (azure-sdk-for-python, test_encoder.py).
    pub fn key(&mut self) -> Result<EntityKey, EntityBodyRefusal> {
        if self.key_typed {
            return Err(EntityBodyRefusal::KeyNotText);
        }
        match (self.partition_key.take(), self.row_key.take()) {
            (Some(partition_key), Some(row_key)) => Ok(EntityKey::new(partition_key, row_key)?),
            (None, _) | (_, None) => Err(EntityBodyRefusal::KeyMissing),
        }
    }

    /// Whether the keys in the body agree with the address.
    pub fn check_key(&self, key: &EntityKey) -> Result<(), EntityBodyRefusal> {
        let agrees = |sent: &Option<String>, named| sent.as_ref().is_none_or(|sent| sent == named);
        if agrees(&self.partition_key, key.partition_key()) && agrees(&self.row_key, key.row_key())
        {
            Ok(())
        } else {
            Err(EntityBodyRefusal::OtherKey)
        }
    }
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Has a decimal point or an exponent, or is too large for an integer.
    Decimal(f64),
    Text(Cow<'a, str>),
}

#[derive(Default)]
struct Fields<'a> {
    values: Vec<(Cow<'a, str>, Scalar<'a>)>,
    types: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Reads the body of Insert Entity and its like.
pub fn read(body: &[u8]) -> Result<EntityBody, EntityBodyRefusal> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let fields = deserializer.deserialize_map(FieldsVisitor);
    let fields = fields.map_err(|_| EntityBodyRefusal::Unreadable)?;
    deserializer.end().map_err(|_| EntityBodyRefusal::Unreadable)?;

    let mut entity = EntityBody {
        partition_key: None,
        row_key: None,
        key_typed: false,
        properties: Properties::with_capacity(body.len()),
    };
    let mut binary = Vec::new();
    for (name, value) in fields.values {
        let named = |(of, _): &&(Cow<'_, str>, Cow<'_, str>)| *of == name;
        let edm = fields.types.iter().find(named).map(|(_, edm)| edm.as_ref());
        let key = match name.as_ref() {
            PARTITION_KEY => &mut entity.partition_key,
            ROW_KEY => &mut entity.row_key,
            // The server sets it, whatever the client sends.
            TIMESTAMP => continue,
            name => {
                if let Some(value) = typed(&value, edm, &mut binary)? {
                    entity.properties.push(name, value)?;
                }
                continue;
            }
        };
        if key.is_some() {
            return Err(PropertyRefusal::Duplicate.into());
        }
        entity.key_typed |= edm.is_some_and(|edm| edm != "Edm.String");
        *key = match value {
            Scalar::Text(text) => Some(text.into_owned()),
            Scalar::Null => None,
            Scalar::Boolean(_) | Scalar::Integer(_) | Scalar::Decimal(_) => {
                return Err(EntityBodyRefusal::KeyNotText);
            }
        };
    }
    Ok(entity)
}

/// The value with its annotated type, or the type of its JSON form; `None` for null, which is not
/// stored.
fn typed<'v>(
    value: &'v Scalar<'_>,
    edm: Option<&str>,
    binary: &'v mut Vec<u8>,
) -> Result<Option<ValueRef<'v>>, EntityBodyRefusal> {
    let wrong = EntityBodyRefusal::Value;
    let Some(edm) = edm else {
        return Ok(match value {
            Scalar::Null => None,
            Scalar::Boolean(value) => Some(ValueRef::Boolean(*value)),
            Scalar::Text(text) => Some(ValueRef::String(text)),
            Scalar::Decimal(number) => Some(ValueRef::Double(*number)),
            // As the service's JSON parser: an integer beyond Int32 becomes a Double.
            Scalar::Integer(number) => Some(match i32::try_from(*number) {
                Ok(number) => ValueRef::Int32(number),
                Err(_) => ValueRef::Double(*number as f64),
            }),
        });
    };
    let edm = edm.strip_prefix("Edm.").ok_or(EntityBodyRefusal::UnknownType)?;
    let text = match value {
        Scalar::Text(text) => Some(text.as_ref()),
        Scalar::Null | Scalar::Boolean(_) | Scalar::Integer(_) | Scalar::Decimal(_) => None,
    };
    let integer = match value {
        Scalar::Integer(number) => Some(*number),
        Scalar::Text(text) => text.parse().ok(),
        Scalar::Null | Scalar::Boolean(_) | Scalar::Decimal(_) => None,
    };
    let typed = match edm {
        "Binary" => text.and_then(|text| {
            binary.clear();
            STANDARD.decode_append(text, binary).ok()?;
            Some(ValueRef::Binary(binary))
        }),
        "Boolean" => match value {
            Scalar::Boolean(value) => Some(ValueRef::Boolean(*value)),
            Scalar::Text(text) => boolean(text).map(ValueRef::Boolean),
            Scalar::Null | Scalar::Integer(_) | Scalar::Decimal(_) => None,
        },
        "DateTime" => text.and_then(date_time).map(ValueRef::DateTime),
        "Double" => double(value).map(ValueRef::Double),
        "Guid" => text.and_then(|text| Uuid::try_parse(text).ok()).map(ValueRef::Guid),
        "Int32" => integer.and_then(|number| number.try_into().ok()).map(ValueRef::Int32),
        "Int64" => integer.map(ValueRef::Int64),
        "String" => text.map(ValueRef::String),
        _ => return Err(EntityBodyRefusal::UnknownType),
    };
    match (typed, value) {
        (_, Scalar::Null) => Ok(None),
        (typed, _) => typed.ok_or(wrong).map(Some),
    }
}

/// Clients write it as in their language.
fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A time without a zone is in UTC.
fn date_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso8601(text).or_else(|| Timestamp::parse_iso8601(&format!("{text}Z")))
}

fn double(value: &Scalar<'_>) -> Option<f64> {
    match value {
        Scalar::Decimal(number) => Some(*number),
        Scalar::Integer(number) => Some(*number as f64),
        Scalar::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            // Rust parses more words than the service accepts.
            text if text.bytes().all(|byte| b"+-.eE0123456789".contains(&byte)) => {
                text.parse().ok().filter(|number: &f64| number.is_finite())
            }
            _ => None,
        },
        Scalar::Null | Scalar::Boolean(_) => None,
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of plain values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key_seed(TextSeed)? {
            if fields.values.len() + fields.types.len() == 2 * FIELDS_MAX {
                return Err(A::Error::custom("too many fields"));
            }
            if let Some(length) = name.strip_suffix(TYPE_SUFFIX).map(str::len) {
                let of = match name {
                    Cow::Borrowed(name) => Cow::Borrowed(&name[..length]),
                    Cow::Owned(name) => Cow::Owned(name[..length].to_owned()),
                };
                fields.types.push((of, map.next_value_seed(TextSeed)?));
            } else if name.starts_with("odata.") || name.contains('@') {
                // Metadata of an answer, sent back by the client.
                map.next_value::<IgnoredAny>()?;
            } else {
                fields.values.push((name, map.next_value_seed(ScalarSeed)?));
            }
        }
        Ok(fields)
    }
}

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match deserializer.deserialize_str(ScalarVisitor)? {
            Scalar::Text(text) => Ok(text),
            Scalar::Null | Scalar::Boolean(_) | Scalar::Integer(_) | Scalar::Decimal(_) => {
                Err(D::Error::custom("a text is expected"))
            }
        }
    }
}

struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar<'de>, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a plain value")
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(i64::try_from(value).map_or(Scalar::Decimal(value as f64), Scalar::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Decimal(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
}

#[cfg(test)]
mod tests;
