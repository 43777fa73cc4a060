//! The headers of a request, kept as the bytes received.

use bytes::BytesMut;

use crate::headers::answer_headers::{is_header_name, is_header_value};

/// Names, in lower case, and values in the order received. A request has about ten: comparing names
/// is faster than a map.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders {
    bytes: BytesMut,
    places: Vec<Place>,
    /// A bit for each name present; names share bits. An operation looks for some 25 headers, of
    /// which a request has few; most lookups end here.
    names: u64,
}

/// Where in the bytes a header is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub name: Span,
    pub value: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl RequestHeaders {
    /// The headers at `places` in `bytes`, whose names and values are valid.
    pub(crate) fn in_place(mut bytes: BytesMut, places: Vec<Place>) -> Self {
        let mut names = 0;
        for Place { name, .. } in &places {
            if let Some(name) = bytes.get_mut(name.start as usize..name.end as usize) {
                name.make_ascii_lowercase();
                names |= bit(name);
            }
        }
        Self { bytes, places, names }
    }

    /// Adds a header at the end; `None` if it is not valid.
    pub fn append(&mut self, name: &str, value: &[u8]) -> Option<()> {
        if !is_header_name(name) || !is_header_value(value) {
            return None;
        }
        let place = |start: usize, end: usize| {
            Some(Span { start: start.try_into().ok()?, end: end.try_into().ok()? })
        };
        let start = self.bytes.len();
        let between = start + name.len();
        let place =
            Place { name: place(start, between)?, value: place(between, between + value.len())? };
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes[start..].make_ascii_lowercase();
        self.names |= bit(&self.bytes[start..]);
        self.bytes.extend_from_slice(value);
        self.places.push(place);
        Some(())
    }

    /// Removes all but the first `kept` headers of a name.
    pub fn keep(&mut self, name: &str, kept: usize) {
        let (bytes, mut seen) = (&self.bytes, 0);
        self.places.retain(|place| {
            seen += usize::from(place.name.of(bytes) == name.as_bytes());
            seen <= kept || place.name.of(bytes) != name.as_bytes()
        });
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|place| (place.name.of(&self.bytes), place.value.of(&self.bytes)))
    }

    /// The values of a header, whose name is in lower case.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let known = self.names & bit(name.as_bytes()) != 0;
        let places = if known { self.places.as_slice() } else { &[] };
        let named = move |place: &&Place| place.name.of(&self.bytes) == name.as_bytes();
        places.iter().filter(named).map(|place| place.value.of(&self.bytes))
    }

    /// The first of [`RequestHeaders::all`].
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The same if it is ASCII text.
    pub fn text(&self, name: &str) -> Option<&str> {
        ascii(self.get(name)?)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Equal if they have the same headers in the same order.
impl PartialEq for RequestHeaders {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RequestHeaders {}

/// Headers that are not valid are left out.
impl<'a> FromIterator<(&'a str, &'a str)> for RequestHeaders {
    fn from_iter<Pairs: IntoIterator<Item = (&'a str, &'a str)>>(pairs: Pairs) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            let _ = headers.append(name, value.as_bytes());
        }
        headers
    }
}

/// A value as text, if it has only visible ASCII, spaces and tabs.
pub fn ascii(value: &[u8]) -> Option<&str> {
    if value.is_ascii() && is_header_value(value) { std::str::from_utf8(value).ok() } else { None }
}

/// Names often share their beginning, and differ in length, middle and end.
fn bit(name: &[u8]) -> u64 {
    let at = |index: usize| name.get(index).copied().map_or(0, usize::from);
    let mixed = name.len() * 5 + at(name.len() / 2) * 3 + at(name.len().wrapping_sub(1));
    1 << (mixed % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_in_the_order_they_came() {
        let mut headers = RequestHeaders::from_iter([("X-A", "1"), ("x-b", ""), ("x-a", "3")]);
        assert_eq!(headers.all("x-a").collect::<Vec<_>>(), [b"1", b"3"]);
        assert_eq!(headers.get("x-b"), Some(b"".as_slice()));
        assert!(headers.contains("x-b") && !headers.contains("x-c"));
        headers.keep("x-a", 1);
        headers.keep("x-b", 0);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [(b"x-a".as_slice(), b"1".as_slice())]);
    }

    #[test]
    fn every_name_that_is_there_is_found() {
        let names = ["host", "x-ms-date", "x-ms-version", "x-ms-meta-a", "content-length", "a"];
        let headers = RequestHeaders::from_iter(names.map(|name| (name, name)));
        for name in names {
            assert_eq!(headers.text(name), Some(name));
            assert!(!RequestHeaders::default().contains(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_a_header_is_none() {
        let mut headers = RequestHeaders::default();
        for (name, value) in [("", "a"), ("a b", "c"), ("a", "\n"), ("a", "\0"), ("a", "\u{7f}")] {
            assert_eq!(headers.append(name, value.as_bytes()), None, "{name:?}: {value:?}");
        }
        assert!(headers.is_empty());
        assert!(headers.append("a", "ä\t1".as_bytes()).is_some());
        assert_eq!((headers.get("a"), headers.text("a")), (Some("ä\t1".as_bytes()), None));
    }
}
