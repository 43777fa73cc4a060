//! The eight types of properties, read from the JSON of the service and of Azurite and written so
//! that no type is guessed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::model::Entity;

#[derive(Clone, Debug)]
pub enum Property {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    /// Without zeros at the end of its fraction.
    DateTime(String),
    /// In lower case.
    Guid(String),
    /// In Base64.
    Binary(String),
}

impl PartialEq for Property {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(one), Self::String(two))
            | (Self::DateTime(one), Self::DateTime(two))
            | (Self::Guid(one), Self::Guid(two))
            | (Self::Binary(one), Self::Binary(two)) => one == two,
            (Self::Boolean(one), Self::Boolean(two)) => one == two,
            (Self::Int32(one), Self::Int32(two)) => one == two,
            (Self::Int64(one), Self::Int64(two)) => one == two,
            // What is no number is equal to itself here: it is the same content.
            (Self::Double(one), Self::Double(two)) => one.to_bits() == two.to_bits(),
            _ => false,
        }
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the property {name:?} is no {of}")]
pub struct InvalidProperty {
    name: String,
    of: String,
}

const TYPE: &str = "@odata.type";

/// An entity of a row: keys, properties and the annotations of their types.
pub fn read_entity(row: &Map<String, Value>) -> Result<Entity, InvalidProperty> {
    let key = |name: &str| {
        let key = row.get(name).and_then(Value::as_str).map(str::to_owned);
        key.ok_or_else(|| InvalidProperty { name: name.to_owned(), of: "key".to_owned() })
    };
    let mut entity = Entity {
        partition_key: key("PartitionKey")?,
        row_key: key("RowKey")?,
        properties: std::collections::BTreeMap::new(),
    };
    for (name, value) in row {
        if matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp")
            || name.starts_with("odata.")
            || name.contains('@')
            || value.is_null()
        {
            continue;
        }
        let annotation = row.get(&format!("{name}{TYPE}")).and_then(Value::as_str);
        let property = read(value, annotation).ok_or_else(|| InvalidProperty {
            name: name.clone(),
            of: annotation.unwrap_or("value of a property").to_owned(),
        })?;
        entity.properties.insert(name.clone(), property);
    }
    Ok(entity)
}

fn read(value: &Value, annotation: Option<&str>) -> Option<Property> {
    let text = || value.as_str().map(str::to_owned);
    Some(match annotation {
        None => match value {
            Value::String(text) => Property::String(text.clone()),
            Value::Bool(is) => Property::Boolean(*is),
            Value::Number(number) => {
                let small = number.as_i64().and_then(|number| i32::try_from(number).ok());
                match small {
                    Some(number) => Property::Int32(number),
                    None => Property::Double(number.as_f64()?),
                }
            }
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        },
        Some("Edm.String") => Property::String(text()?),
        Some("Edm.Boolean") => Property::Boolean(match value.as_str() {
            Some(text) => text.parse().ok()?,
            None => value.as_bool()?,
        }),
        Some("Edm.Int32") => Property::Int32(match value.as_str() {
            Some(text) => text.parse().ok()?,
            None => i32::try_from(value.as_i64()?).ok()?,
        }),
        Some("Edm.Int64") => Property::Int64(match value.as_str() {
            Some(text) => text.parse().ok()?,
            None => value.as_i64()?,
        }),
        Some("Edm.Double") => Property::Double(match value.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            Some(text) => text.parse().ok()?,
            None => value.as_f64()?,
        }),
        Some("Edm.DateTime") => Property::DateTime(shortest_time(value.as_str()?)),
        Some("Edm.Guid") => Property::Guid(guid(value.as_str()?)?),
        Some("Edm.Binary") => {
            STANDARD.decode(value.as_str()?).ok()?;
            Property::Binary(text()?)
        }
        Some(_) => return None,
    })
}

/// The same time in as few digits as it takes.
fn shortest_time(text: &str) -> String {
    let Some((seconds, fraction)) = text.strip_suffix('Z').and_then(|time| time.split_once('.'))
    else {
        return text.to_owned();
    };
    match fraction.trim_end_matches('0') {
        "" => format!("{seconds}Z"),
        fraction => format!("{seconds}.{fraction}Z"),
    }
}

/// Azurite keeps the Base64 of the text.
fn guid(text: &str) -> Option<String> {
    let is_guid = |text: &str| {
        let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        text.len() == 36 && text.bytes().all(is_digit)
    };
    let decoded = || String::from_utf8(STANDARD.decode(text).ok()?).ok();
    let found = if is_guid(text) { text.to_owned() } else { decoded()? };
    is_guid(&found).then(|| found.to_lowercase())
}

/// The body of an insert or an update: every type but text is annotated.
pub fn write_entity(entity: &Entity) -> String {
    let mut row = Map::new();
    row.insert("PartitionKey".to_owned(), entity.partition_key.clone().into());
    row.insert("RowKey".to_owned(), entity.row_key.clone().into());
    for (name, property) in &entity.properties {
        let (edm, value) = match property {
            Property::String(text) => ("", text.clone().into()),
            Property::Boolean(is) => ("Edm.Boolean", (*is).into()),
            Property::Int32(number) => ("Edm.Int32", (*number).into()),
            Property::Int64(number) => ("Edm.Int64", number.to_string().into()),
            Property::Double(number) => ("Edm.Double", write_double(*number)),
            Property::DateTime(time) => ("Edm.DateTime", time.clone().into()),
            Property::Guid(guid) => ("Edm.Guid", guid.clone().into()),
            Property::Binary(bytes) => ("Edm.Binary", bytes.clone().into()),
        };
        row.insert(name.clone(), value);
        if !edm.is_empty() {
            row.insert(format!("{name}{TYPE}"), edm.into());
        }
    }
    Value::Object(row).to_string()
}

fn write_double(number: f64) -> Value {
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(json: &str) -> Result<Entity, InvalidProperty> {
        let row: Map<String, Value> = serde_json::from_str(json).expect("it is JSON");
        read_entity(&row)
    }

    fn property(value: &str, annotation: &str) -> Option<Property> {
        read(
            &serde_json::from_str(value).expect("it is JSON"),
            Some(annotation).filter(|it| !it.is_empty()),
        )
    }

    #[test]
    fn every_type_is_read_as_azurite_and_the_service_write_it() {
        let guid = "00000000-0000-0000-0000-00000000000a";
        let cases = [
            ("\"a\"", "", Property::String("a".to_owned())),
            ("\"\"", "Edm.String", Property::String(String::new())),
            ("true", "", Property::Boolean(true)),
            ("\"true\"", "Edm.Boolean", Property::Boolean(true)),
            ("3", "", Property::Int32(3)),
            ("3.0", "", Property::Double(3.0)),
            ("3", "Edm.Double", Property::Double(3.0)),
            ("4294967296", "", Property::Double(4_294_967_296.0)),
            ("\"NaN\"", "Edm.Double", Property::Double(f64::NAN)),
            ("\"9007199254740993\"", "Edm.Int64", Property::Int64(9_007_199_254_740_993)),
            ("7", "Edm.Int64", Property::Int64(7)),
            (
                "\"2024-01-02T03:04:05.6789000Z\"",
                "Edm.DateTime",
                Property::DateTime("2024-01-02T03:04:05.6789Z".to_owned()),
            ),
            (
                "\"2024-01-02T03:04:05.000000Z\"",
                "Edm.DateTime",
                Property::DateTime("2024-01-02T03:04:05Z".to_owned()),
            ),
            (
                "\"MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDBB\"",
                "Edm.Guid",
                Property::Guid(guid.to_owned()),
            ),
            (
                "\"00000000-0000-0000-0000-00000000000A\"",
                "Edm.Guid",
                Property::Guid(guid.to_owned()),
            ),
            ("\"AAEC\"", "Edm.Binary", Property::Binary("AAEC".to_owned())),
        ];
        for (value, annotation, expected) in cases {
            assert_eq!(property(value, annotation), Some(expected), "{value} {annotation}");
        }
    }

    #[test]
    fn what_is_not_of_its_type_is_refused() {
        for (value, annotation) in [
            ("\"x\"", "Edm.Int64"),
            ("1.5", "Edm.Int32"),
            ("\"?\"", "Edm.Binary"),
            ("\"AAEC\"", "Edm.Guid"),
            ("[1]", ""),
            ("\"x\"", "Edm.Other"),
        ] {
            assert_eq!(property(value, annotation), None, "{value} {annotation}");
        }
        let error = entity(r#"{"PartitionKey":"","RowKey":1}"#).expect_err("a key is text");
        assert_eq!(error.to_string(), "the property \"RowKey\" is no key");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"x","gone":null,"s":"x",
            "i":1,"d":2,"d@odata.type":"Edm.Double","n":"NaN","n@odata.type":"Edm.Double",
            "l":"5","l@odata.type":"Edm.Int64","b":false,"odata.etag":"e"}"#;
        let first = entity(written).expect("it is an entity");
        assert_eq!(first.properties.len(), 6);
        assert_eq!(entity(&write_entity(&first)), Ok(first));
    }
}
