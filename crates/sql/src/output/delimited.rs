//! Delimited text. A field is quoted only if it needs to be.

use memchr::memmem;

use super::Name;
use super::records::Records;
use crate::request::Delimited;
use crate::value::Value;

pub struct DelimitedWriter {
    column: Vec<u8>,
    record: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    has_headers: bool,
    pub(super) records: Records,
}

impl DelimitedWriter {
    pub fn new(settings: &Delimited) -> Self {
        Self {
            column: settings.column_separator.clone().into_bytes(),
            record: settings.record_separator.clone().into_bytes(),
            quote: settings.field_quote.bytes().next(),
            escape: settings.escape.bytes().next(),
            has_headers: settings.has_headers,
            records: Records::default(),
        }
    }

    pub fn wants_header(&self) -> bool {
        self.has_headers
    }

    pub fn header<'a>(&mut self, names: impl Iterator<Item = Name<'a>>) {
        self.has_headers = false;
        for name in names {
            match name {
                Name::Text(text) => self.text(text.as_bytes()),
                Name::Json(text) => self.text(text),
                Name::Place(place) => self.text(format!("_{}", place + 1).as_bytes()),
            }
        }
        self.end_record();
    }

    pub fn field(&mut self, value: &Value<'_>) {
        self.text(&value.to_text());
    }

    pub fn end_record(&mut self) {
        self.records.bytes.extend_from_slice(&self.record);
        self.records.end_record();
    }

    fn text(&mut self, text: &[u8]) {
        if self.records.has_field {
            self.records.bytes.extend_from_slice(&self.column);
        }
        self.records.has_field = true;
        if !self.is_special(text) {
            self.records.bytes.extend_from_slice(text);
            return;
        }
        match (self.quote, self.escape) {
            (Some(quote), escape) => self.quoted(text, quote, escape),
            (None, Some(escape)) => self.escaped(text, escape),
            // Without a quote and an escape separators in the text cannot be marked.
            (None, None) => self.records.bytes.extend_from_slice(text),
        }
    }

    fn is_special(&self, text: &[u8]) -> bool {
        let contains = |separator: &[u8]| match separator {
            [byte] => memchr::memchr(*byte, text).is_some(),
            _ => memmem::find(text, separator).is_some(),
        };
        contains(&self.column)
            || contains(&self.record)
            || [self.quote, self.escape].iter().flatten().any(|byte| text.contains(byte))
            // Readers take a carriage return and a line feed as one separator.
            || (self.record == b"\n" && text.ends_with(b"\r"))
    }

    /// A quote inside is doubled, or escaped if there is an escape.
    fn quoted(&mut self, text: &[u8], quote: u8, escape: Option<u8>) {
        self.records.bytes.push(quote);
        for byte in text {
            if *byte == quote || Some(*byte) == escape {
                self.records.bytes.push(escape.unwrap_or(quote));
            }
            self.records.bytes.push(*byte);
        }
        self.records.bytes.push(quote);
    }

    fn escaped(&mut self, text: &[u8], escape: u8) {
        let mut rest = text;
        while let Some(byte) = rest.first() {
            if rest.starts_with(&self.column) || rest.starts_with(&self.record) || *byte == escape {
                self.records.bytes.push(escape);
            }
            self.records.bytes.push(*byte);
            rest = &rest[1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn written(settings: &Delimited, fields: &[&str]) -> String {
        let mut writer = DelimitedWriter::new(settings);
        for field in fields {
            writer.field(&Value::Text(Cow::Borrowed(field.as_bytes())));
        }
        writer.end_record();
        String::from_utf8(writer.records.take()).expect("UTF-8")
    }

    #[test]
    fn a_field_with_a_separator_a_quote_or_an_escape_is_quoted() {
        let plain = Delimited::default();
        assert_eq!(written(&plain, &["a", "", "b c"]), "a,,b c\n");
        assert_eq!(
            written(&plain, &["a,b", "c\nd", "e\"f", "g\r"]),
            "\"a,b\",\"c\nd\",\"e\"\"f\",\"g\r\"\n"
        );
        let other = Delimited {
            column_separator: ";".into(),
            record_separator: ".".into(),
            field_quote: "'".into(),
            escape: "\\".into(),
            has_headers: false,
        };
        assert_eq!(written(&other, &["1.0.1", "a,b", "it's"]), "'1.0.1';a,b;'it\\'s'.");
    }

    #[test]
    fn without_a_quote_separators_are_escaped_if_they_can_be() {
        let none = Delimited { field_quote: String::new(), ..Delimited::default() };
        assert_eq!(written(&none, &["a,b\"", "c"]), "a,b\",c\n");
        let escape = Delimited { escape: "\\".into(), ..none };
        assert_eq!(written(&escape, &["a,b\\", "c"]), "a\\,b\\\\,c\n");
    }

    #[test]
    fn a_dropped_record_leaves_nothing() {
        let mut writer = DelimitedWriter::new(&Delimited::default());
        writer.field(&Value::Integer(1));
        writer.end_record();
        writer.field(&Value::Integer(2));
        writer.records.drop_record();
        writer.field(&Value::Float(2.5));
        writer.field(&Value::Null);
        writer.end_record();
        assert_eq!(writer.records.take(), b"1\n2.5,\n");
    }

    #[test]
    fn the_header_comes_once() {
        let settings = Delimited { has_headers: true, ..Delimited::default() };
        let mut writer = DelimitedWriter::new(&settings);
        assert!(writer.wants_header());
        writer.header([Name::Text("a,b"), Name::Place(1), Name::Json(b"c")].into_iter());
        assert!(!writer.wants_header());
        assert_eq!(writer.records.take(), b"\"a,b\",_2,c\n");
    }
}
