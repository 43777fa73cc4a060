//! The headers of an answer, kept as the bytes that are sent.

use std::fmt::Display;
use std::io::Write as _;

use crate::headers::byte_scan::is_plain;

/// In the order they were set, each name once.
#[derive(Clone, Debug, Default)]
pub struct AnswerHeaders {
    /// `name: value` with the end of each line.
    wire: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    name_bytes: u32,
    /// Where the line ends.
    end: u32,
}

const BETWEEN: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

impl AnswerHeaders {
    pub fn new() -> Self {
        // Enough for a Get Blob, with metadata.
        Self { wire: Vec::with_capacity(1024), places: Vec::with_capacity(32) }
    }

    /// Sets a header of ours, which is not set yet. A header with an invalid value (such as a stored value
    /// from elsewhere) is left out rather than failing the answer.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.debug_assert_new(name);
        self.put(name, value);
    }

    /// The same with a value that is formatted, without spaces around it.
    pub fn show(&mut self, name: &'static str, value: impl Display) {
        self.debug_assert_new(name);
        self.line(name, |wire| {
            // Writing to memory does not fail.
            let _ = write!(wire, "{value}");
        });
    }

    /// Sets a header with a name from elsewhere, or one that may be set already. A header with an invalid
    /// name is left out, too.
    pub fn set_named(&mut self, name: &str, value: &str) {
        if is_header_name(name) {
            self.remove(name);
            self.put(name, value);
        }
    }

    fn debug_assert_new(&self, name: &str) {
        debug_assert!(is_header_name(name), "{name:?} is the name of a header");
        debug_assert!(!self.contains(name), "{name} is set twice");
    }

    fn put(&mut self, name: &str, value: &str) {
        let value = value.trim_ascii();
        self.wire.reserve(name.len() + BETWEEN.len() + value.len() + LINE_END.len());
        self.line(name, |wire| wire.extend_from_slice(value.as_bytes()));
    }

    /// Adds a line whose value is what `write` appends; none if that is not a valid value.
    fn line(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.wire.len();
        self.wire.extend_from_slice(name.as_bytes());
        self.wire.extend_from_slice(BETWEEN);
        write(&mut self.wire);
        let value = &self.wire[start + name.len() + BETWEEN.len()..];
        let ends = u32::try_from(self.wire.len() + LINE_END.len());
        let (true, Ok(end)) = (is_header_value(value), ends) else {
            return self.wire.truncate(start);
        };
        self.wire.extend_from_slice(LINE_END);
        self.places.push(Place { start: start as u32, name_bytes: name.len() as u32, end });
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name).and_then(|index| self.places.get(index)).map(|place| self.pair(*place).1)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub fn remove(&mut self, name: &str) {
        let Some(index) = self.find(name) else { return };
        let removed = self.places.remove(index);
        self.wire.drain(removed.start as usize..removed.end as usize);
        let bytes = removed.end - removed.start;
        for place in self.places.iter_mut().skip(index) {
            place.start -= bytes;
            place.end -= bytes;
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let names: Vec<String> = self.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names.iter().filter(|name| !keep(name)) {
            self.remove(name);
        }
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| self.pair(*place))
    }

    /// All headers, as the bytes that are sent.
    pub fn as_wire(&self) -> &[u8] {
        &self.wire
    }

    fn find(&self, name: &str) -> Option<usize> {
        let same = |place: &Place| {
            let start = place.start as usize;
            place.name_bytes as usize == name.len()
                && self.wire[start..start + name.len()].eq_ignore_ascii_case(name.as_bytes())
        };
        self.places.iter().position(same)
    }

    fn pair(&self, place: Place) -> (&str, &str) {
        let line = self.wire.get(place.start as usize..place.end as usize).unwrap_or_default();
        let line = std::str::from_utf8(line).unwrap_or_default();
        let (name, value) = line.split_at_checked(place.name_bytes as usize).unwrap_or_default();
        let value = value.get(BETWEEN.len()..value.len().saturating_sub(LINE_END.len()));
        (name, value.unwrap_or_default())
    }
}

pub fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Whether bytes can be the value of a header.
pub fn is_header_value(value: &[u8]) -> bool {
    is_plain(value, [0x7f]) || value.iter().all(|it| is_in_value(*it))
}

fn is_in_value(byte: u8) -> bool {
    (byte == b'\t') | ((byte >= b' ') & (byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_set_once_and_sent_in_order() {
        let mut headers = AnswerHeaders::new();
        headers.set("etag", "\"1\"");
        headers.set("x-ms-meta-CamelCase", " some value ");
        headers.set("date", "today");
        headers.set_named("ETag", "\"2\"");
        assert_eq!(headers.get("Etag"), Some("\"2\""));
        assert_eq!(headers.get("x-ms-meta-camelcase"), Some("some value"));
        let sent = "x-ms-meta-CamelCase: some value\r\ndate: today\r\nETag: \"2\"\r\n";
        assert_eq!(std::str::from_utf8(headers.as_wire()), Ok(sent));
        headers.retain(|name| !name.starts_with("x-ms-"));
        assert_eq!(headers.as_wire(), b"date: today\r\nETag: \"2\"\r\n");
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("date", "today"), ("ETag", "\"2\"")]);
        assert_eq!(headers.get("x-ms-meta-camelcase"), None);
    }

    #[test]
    fn what_a_value_is_shown_as_is_sent() {
        let mut headers = AnswerHeaders::new();
        headers.show("a", 7);
        headers.show("b", "c\nd");
        headers.show("e", format_args!("{}-{}", 1, 2));
        assert_eq!(headers.as_wire(), b"a: 7\r\ne: 1-2\r\n");
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "7"), ("e", "1-2")]);
    }

    #[test]
    fn no_value_ends_a_line_or_begins_another_header() {
        let mut headers = AnswerHeaders::new();
        for (name, value) in [
            ("a", "b\r\nc: d"),
            ("a", "b\nc"),
            ("a", "\0"),
            ("a", "\u{7f}"),
            ("", "b"),
            ("a b", "c"),
            ("a:", "b"),
            ("a\r\n", "b"),
            ("ä", "b"),
        ] {
            headers.set_named(name, value);
            assert_eq!(headers.as_wire(), b"", "{name:?}: {value:?}");
        }
        headers.set("a", "ä\t1");
        assert_eq!(headers.get("a"), Some("ä\t1"));
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut value = [b'a'; 20];
                value[at] = byte;
                let expected = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
                for part in [&value[..], &value[at..], &value[at..=at]] {
                    assert_eq!(is_header_value(part), expected, "{part:?}");
                }
            }
        }
    }
}
