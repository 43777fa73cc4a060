//! One JSON object for each record.

use super::Name;
use super::records::Records;
use crate::request::JsonText;
use crate::value::{Value, float_text};

pub struct JsonWriter {
    separator: Vec<u8>,
    pub(super) records: Records,
}

impl JsonWriter {
    pub fn new(settings: &JsonText) -> Self {
        let separator = settings.record_separator.clone().into_bytes();
        Self { separator, records: Records::default() }
    }

    /// A missing field stays missing.
    pub fn field(&mut self, name: Name<'_>, value: &Value<'_>) {
        if *value == Value::Missing {
            return;
        }
        self.records.bytes.push(if self.records.has_field { b',' } else { b'{' });
        self.records.has_field = true;
        self.records.bytes.push(b'"');
        match name {
            Name::Text(text) => put_escaped(&mut self.records.bytes, text),
            Name::Place(place) => {
                self.records.bytes.extend_from_slice(format!("_{}", place + 1).as_bytes());
            }
            Name::Json(text) => self.records.bytes.extend_from_slice(text),
        }
        self.records.bytes.extend_from_slice(b"\":");
        put_value(&mut self.records.bytes, value);
    }

    pub fn end_record(&mut self) {
        self.records.bytes.extend_from_slice(if self.records.has_field { b"}" } else { b"{}" });
        self.records.bytes.extend_from_slice(&self.separator);
        self.records.end_record();
    }
}

fn put_value(bytes: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Missing | Value::Null => bytes.extend_from_slice(b"null"),
        Value::Boolean(_) | Value::Integer(_) | Value::Json(_) => {
            bytes.extend_from_slice(&value.to_text());
        }
        Value::Float(number) if number.is_finite() => {
            bytes.extend_from_slice(float_text(*number).as_bytes());
        }
        // JSON has no infinity.
        Value::Float(_) => bytes.extend_from_slice(b"null"),
        Value::Text(_) | Value::Timestamp(_) => {
            bytes.push(b'"');
            put_escaped(bytes, &String::from_utf8_lossy(&value.to_text()));
            bytes.push(b'"');
        }
    }
}

/// The content of a JSON string, between its quotes.
pub fn put_escaped(bytes: &mut Vec<u8>, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => &[],
            _ => continue,
        };
        bytes.extend_from_slice(&text.as_bytes()[plain..at]);
        bytes.extend_from_slice(escape);
        if escape.is_empty() {
            bytes.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        }
        plain = at + 1;
    }
    bytes.extend_from_slice(&text.as_bytes()[plain..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn a_record_is_an_object_with_what_is_not_missing() {
        let mut writer = JsonWriter::new(&JsonText { record_separator: ";".into() });
        writer.field(Name::Text("a\"b"), &Value::Text(Cow::Borrowed(b"x\"\\\n\x01\xFF")));
        writer.field(Name::Place(1), &Value::Missing);
        writer.field(Name::Place(2), &Value::Null);
        writer.field(Name::Json(b"\\u0041"), &Value::Json(Cow::Borrowed(b"[1,2]")));
        writer.field(Name::Text("f"), &Value::Float(f64::INFINITY));
        writer.field(Name::Text("t"), &Value::Boolean(true));
        writer.end_record();
        writer.field(Name::Text("dropped"), &Value::Integer(1));
        writer.records.drop_record();
        writer.field(Name::Text("gone"), &Value::Missing);
        writer.end_record();
        let expected = "{\"a\\\"b\":\"x\\\"\\\\\\n\\u0001\u{FFFD}\",\"_3\":null,\
                        \"\\u0041\":[1,2],\"f\":null,\"t\":true};{};";
        assert_eq!(String::from_utf8(writer.records.take()).expect("UTF-8"), expected);
    }
}
