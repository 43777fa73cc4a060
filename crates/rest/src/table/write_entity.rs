//! Writes entities as JSON, directly from their rows into the body of the answer, at one of three
//! levels of metadata.

use std::fmt::Display;
use std::io::Write as _;

use base64_simd::STANDARD;
use holdfast_domain::table::{EntityView, PARTITION_KEY, ROW_KEY, TIMESTAMP, ValueRef};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::json_format::Level;
use crate::headers::byte_scan::is_plain;

/// The characters that are escaped in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Writes the entities of one table.
pub struct EntityWriter<'a> {
    pub level: Level,
    /// The address of the service, without a slash at its end.
    pub endpoint: &'a dyn Display,
    pub account: &'a str,
    pub table: &'a str,
    /// The requested properties, each once; all if absent.
    pub select: Option<&'a [&'a str]>,
}

impl EntityWriter<'_> {
    /// One entity as the whole body.
    pub fn element(&self, body: &mut Vec<u8>, entity: &EntityView<'_>) {
        body.push(b'{');
        if self.level != Level::None {
            let context = format!("{}/$metadata#{}/@Element", self.endpoint, self.table);
            put_member(body, "odata.metadata", &context);
        }
        self.members(body, entity);
    }

    /// The beginning of a body with a list. [`EntityWriter::member`] for each must follow, with
    /// commas between them, and [`EntityWriter::end_list`].
    pub fn begin_list(&self, body: &mut Vec<u8>) {
        body.push(b'{');
        if self.level != Level::None {
            put_member(
                body,
                "odata.metadata",
                &format!("{}/$metadata#{}", self.endpoint, self.table),
            );
        }
        body.extend_from_slice(b"\"value\":[");
    }

    pub fn member(&self, body: &mut Vec<u8>, entity: &EntityView<'_>) {
        body.push(b'{');
        self.members(body, entity);
    }

    pub fn end_list(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(b"]}");
    }

    /// Everything after the opening brace except the metadata of the body.
    fn members(&self, body: &mut Vec<u8>, entity: &EntityView<'_>) {
        match self.level {
            Level::None => {}
            // In the reference only at the full level. The service sends it here, too (recordings
            // of the JavaScript SDK's tests, azure-sdk-for-js, sdk/tables), and that SDK has no
            // other source for the ETags of a list.
            Level::Minimal => put_member(body, "odata.etag", &entity.etag().to_string()),
            Level::Full => self.identity(body, entity),
        }
        match self.select {
            None => {
                for name in [PARTITION_KEY, ROW_KEY, TIMESTAMP] {
                    self.property(body, name, entity.property(name));
                }
                for (name, value) in entity.own_properties() {
                    self.property(body, name, Some(value));
                }
            }
            Some(select) => {
                for name in select {
                    self.property(body, name, entity.property(name));
                }
            }
        }
        // The last one ends with a comma, if there was one.
        match body.last_mut() {
            Some(last) if *last == b',' => *last = b'}',
            Some(_) | None => body.push(b'}'),
        }
    }

    fn identity(&self, body: &mut Vec<u8>, entity: &EntityView<'_>) {
        let link = entity_link(self.table, entity.partition_key(), entity.row_key());
        put_member(body, "odata.type", &format!("{}.{}", self.account, self.table));
        put_member(body, "odata.id", &format!("{}/{link}", self.endpoint));
        put_member(body, "odata.etag", &entity.etag().to_string());
        put_member(body, "odata.editLink", &link);
    }

    /// One member, followed by a comma.
    fn property(&self, body: &mut Vec<u8>, name: &str, value: Option<ValueRef<'_>>) {
        let annotation = value.and_then(annotation).filter(|_| match self.level {
            Level::None => false,
            Level::Minimal => name != TIMESTAMP,
            Level::Full => true,
        });
        if let Some(annotation) = annotation {
            // No name has a character that needs escaping in JSON, but escaping costs nothing.
            put_text_with(body, name, "@odata.type");
            body.extend_from_slice(b":\"Edm.");
            body.extend_from_slice(annotation.as_bytes());
            body.extend_from_slice(b"\",");
        }
        put_text(body, name);
        body.push(b':');
        match value {
            Some(value) => put_value(body, value),
            None => body.extend_from_slice(b"null"),
        }
        body.push(b',');
    }
}

/// `T(PartitionKey='p',RowKey='r')`, as in a URL.
pub fn entity_link(table: &str, partition_key: &str, row_key: &str) -> String {
    let mut link = String::with_capacity(table.len() + partition_key.len() + row_key.len() + 64);
    link.push_str(table);
    for (before, key) in [("(PartitionKey='", partition_key), ("',RowKey='", row_key)] {
        link.push_str(before);
        for (at, piece) in key.split('\'').enumerate() {
            // A quote is doubled.
            link.push_str(if at == 0 { "" } else { "%27%27" });
            link.extend(utf8_percent_encode(piece, ESCAPED));
        }
    }
    link.push_str("')");
    link
}

/// The type annotation, if the JSON value does not show the type.
fn annotation(value: ValueRef<'_>) -> Option<&'static str> {
    match value {
        ValueRef::Binary(_) => Some("Binary"),
        ValueRef::DateTime(_) => Some("DateTime"),
        ValueRef::Guid(_) => Some("Guid"),
        ValueRef::Int64(_) => Some("Int64"),
        ValueRef::Double(number) if !number.is_finite() => Some("Double"),
        ValueRef::Double(_) | ValueRef::Boolean(_) | ValueRef::Int32(_) | ValueRef::String(_) => {
            None
        }
    }
}

fn put_value(body: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Binary(bytes) => {
            body.push(b'"');
            STANDARD.encode_append(bytes, body);
            body.push(b'"');
        }
        ValueRef::Boolean(value) => {
            body.extend_from_slice(if value { b"true" } else { b"false" });
        }
        ValueRef::DateTime(time) => {
            body.push(b'"');
            body.extend_from_slice(time.shortest().as_bytes());
            body.push(b'"');
        }
        ValueRef::Double(number) if number.is_nan() => body.extend_from_slice(b"\"NaN\""),
        ValueRef::Double(f64::INFINITY) => body.extend_from_slice(b"\"Infinity\""),
        ValueRef::Double(f64::NEG_INFINITY) => body.extend_from_slice(b"\"-Infinity\""),
        // With a decimal point or an exponent even if it is whole, to differ from an Int32.
        ValueRef::Double(number) => put_display(body, format_args!("{number:?}")),
        ValueRef::Guid(guid) => put_display(body, format_args!("\"{guid}\"")),
        ValueRef::Int32(number) => put_display(body, format_args!("{number}")),
        ValueRef::Int64(number) => put_display(body, format_args!("\"{number}\"")),
        ValueRef::String(text) => put_text(body, text),
    }
}

fn put_display(body: &mut Vec<u8>, value: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = body.write_fmt(value);
}

/// A text member, followed by a comma.
pub fn put_member(body: &mut Vec<u8>, name: &str, value: &str) {
    put_text(body, name);
    body.push(b':');
    put_text(body, value);
    body.push(b',');
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    put_text_with(body, text, "");
}

/// The text and a suffix that needs no escapes, in quotes.
fn put_text_with(body: &mut Vec<u8>, text: &str, suffix: &str) {
    body.push(b'"');
    if is_plain(text.as_bytes(), [b'"', b'\\']) {
        body.extend_from_slice(text.as_bytes());
    } else {
        put_escaped(body, text);
    }
    body.extend_from_slice(suffix.as_bytes());
    body.push(b'"');
}

fn put_escaped(body: &mut Vec<u8>, text: &str) {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        body.extend_from_slice(&text.as_bytes()[plain_from..at]);
        plain_from = at + 1;
        match byte {
            b'"' => body.extend_from_slice(b"\\\""),
            b'\\' => body.extend_from_slice(b"\\\\"),
            b'\n' => body.extend_from_slice(b"\\n"),
            b'\r' => body.extend_from_slice(b"\\r"),
            b'\t' => body.extend_from_slice(b"\\t"),
            _ => put_display(body, format_args!("\\u{byte:04x}")),
        }
    }
    body.extend_from_slice(&text.as_bytes()[plain_from..]);
}

#[cfg(test)]
mod tests;
