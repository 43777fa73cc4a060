//! Parses JSON values from bytes that arrive in pieces: the end of each value, and a flat tree of
//! its parts.

use std::borrow::Cow;

/// Deeper nesting is refused.
const DEPTH_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Object,
    Array,
    Text,
    Number,
    True,
    False,
    Null,
}

/// A value: its bytes (without the quotes of a text), its key in an object, and the number of the
/// node after all its parts.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub token: Token,
    start: usize,
    end: usize,
    key: (usize, usize),
    next: usize,
}

/// Bytes that JSON does not allow at their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    pub at: usize,
    pub expected: &'static str,
}

/// A parsed value; reused for one after the other.
#[derive(Default)]
pub struct Document {
    nodes: Vec<Node>,
    open: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

impl Document {
    /// The number of values in it, at any depth.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Reads the value at the start of `bytes` and returns its end; `None` if it is incomplete.
    pub fn read(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, Unexpected> {
        self.nodes.clear();
        self.open.clear();
        let mut wanted = Wanted::Value;
        let mut key = (0, 0);
        let mut at = 0;
        loop {
            at = skip_space(bytes, at);
            let Some(byte) = bytes.get(at).copied() else { return Ok(None) };
            match (wanted, byte) {
                (Wanted::CommaOrEnd | Wanted::KeyOrEnd | Wanted::ValueOrEnd, b'}' | b']')
                    if self.closes(byte, wanted) =>
                {
                    at += 1;
                    self.close(at);
                    wanted = Wanted::CommaOrEnd;
                }
                (Wanted::CommaOrEnd, b',') => {
                    at += 1;
                    wanted = if self.in_object() { Wanted::Key } else { Wanted::Value };
                }
                (Wanted::Colon, b':') => {
                    at += 1;
                    wanted = Wanted::Value;
                }
                (Wanted::Key | Wanted::KeyOrEnd, b'"') => {
                    let Some(end) = text_end(bytes, at + 1) else { return Ok(None) };
                    key = (at + 1, end);
                    at = end + 1;
                    wanted = Wanted::Colon;
                }
                (Wanted::Value | Wanted::ValueOrEnd, b'{' | b'[') => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(Unexpected { at, expected: "a value less deeply nested" });
                    }
                    let token = if byte == b'{' { Token::Object } else { Token::Array };
                    self.open.push(self.nodes.len());
                    self.push(token, at, at, key);
                    at += 1;
                    wanted = if byte == b'{' { Wanted::KeyOrEnd } else { Wanted::ValueOrEnd };
                }
                (Wanted::Value | Wanted::ValueOrEnd, _) => {
                    let Some((token, start, end, next)) = scalar(bytes, at, last)? else {
                        return Ok(None);
                    };
                    self.push(token, start, end, key);
                    at = next;
                    wanted = Wanted::CommaOrEnd;
                }
                _ => return Err(Unexpected { at, expected: self.expected(wanted) }),
            }
            if self.open.is_empty() {
                return Ok(Some(at));
            }
        }
    }

    fn in_object(&self) -> bool {
        self.open.last().is_some_and(|open| self.nodes[*open].token == Token::Object)
    }

    fn closes(&self, byte: u8, wanted: Wanted) -> bool {
        let fits = if self.in_object() { byte == b'}' } else { byte == b']' };
        fits && !self.open.is_empty() && wanted != Wanted::Value
    }

    fn close(&mut self, end: usize) {
        let next = self.nodes.len();
        if let Some(open) = self.open.pop() {
            self.nodes[open].end = end;
            self.nodes[open].next = next;
        }
    }

    fn push(&mut self, token: Token, start: usize, end: usize, key: (usize, usize)) {
        let next = self.nodes.len() + 1;
        self.nodes.push(Node { token, start, end, key, next });
    }

    fn expected(&self, wanted: Wanted) -> &'static str {
        match wanted {
            Wanted::Value | Wanted::ValueOrEnd => "a value",
            Wanted::Key => "'\"'",
            Wanted::KeyOrEnd => "'\"', or '}'",
            Wanted::Colon => "':'",
            Wanted::CommaOrEnd if self.in_object() => "',', or '}'",
            Wanted::CommaOrEnd => "',', or ']'",
        }
    }

    pub fn node(&self, number: usize) -> Node {
        self.nodes[number]
    }

    /// The numbers of the values of an object or an array.
    pub fn children(&self, number: usize) -> impl Iterator<Item = usize> {
        let end = self.nodes[number].next;
        let first = Some(number + 1).filter(|first| *first < end);
        std::iter::successors(first, move |child| {
            Some(self.nodes[*child].next).filter(|next| *next < end)
        })
    }
}

impl Node {
    /// The value as written.
    pub fn raw<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.start..self.end]
    }

    /// The key as written between its quotes.
    pub fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.key.0..self.key.1]
    }
}

fn skip_space(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The place of the closing quote of a text.
fn text_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// The kind of a value without parts, its start and end, and the start of the next.
#[allow(clippy::type_complexity, reason = "it is taken apart where it is called")]
fn scalar(
    bytes: &[u8],
    at: usize,
    last: bool,
) -> Result<Option<(Token, usize, usize, usize)>, Unexpected> {
    if bytes[at] == b'"' {
        return Ok(text_end(bytes, at + 1).map(|end| (Token::Text, at + 1, end, end + 1)));
    }
    let rest = &bytes[at..];
    let length = rest
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.'))
        .unwrap_or(rest.len());
    let word = &rest[..length];
    let token = match word {
        b"true" => Some(Token::True),
        b"false" => Some(Token::False),
        b"null" => Some(Token::Null),
        _ if is_number(word) => Some(Token::Number),
        _ => None,
    };
    let may_go_on = length == rest.len() && !last;
    match token {
        _ if may_go_on && begins_well(word) => Ok(None),
        Some(token) => Ok(Some((token, at, at + length, at + length))),
        None => Err(Unexpected { at, expected: "a value" }),
    }
}

fn begins_well(word: &[u8]) -> bool {
    let literals: [&[u8]; 3] = [b"true", b"false", b"null"];
    literals.iter().any(|literal| literal.starts_with(word))
        || matches!(word.first(), Some(b'-' | b'0'..=b'9'))
}

fn is_number(word: &[u8]) -> bool {
    let begins = matches!(word, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..]);
    let ends = word.last().is_some_and(u8::is_ascii_digit);
    begins && ends && std::str::from_utf8(word).is_ok_and(|word| word.parse::<f64>().is_ok())
}

/// A text with its escapes decoded; invalid ones are copied.
pub fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', raw) else { return Cow::Borrowed(raw) };
    let mut decoded = raw[..first].to_vec();
    let mut rest = &raw[first..];
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            decoded.push(*byte);
            continue;
        }
        let Some((escape, behind)) = rest.split_first() else { break };
        rest = behind;
        match escape {
            b'n' => decoded.push(b'\n'),
            b't' => decoded.push(b'\t'),
            b'r' => decoded.push(b'\r'),
            b'b' => decoded.push(8),
            b'f' => decoded.push(12),
            b'u' => {
                let (letter, length) = unicode(rest);
                let mut buffer = [0; 4];
                decoded.extend_from_slice(letter.encode_utf8(&mut buffer).as_bytes());
                rest = &rest[length..];
            }
            other => decoded.push(*other),
        }
    }
    Cow::Owned(decoded)
}

/// The character of the hexadecimal digits after `\u`, of two surrogates if necessary, and their
/// length in bytes.
fn unicode(rest: &[u8]) -> (char, usize) {
    let unit = |from: usize| {
        let digits = std::str::from_utf8(rest.get(from..from + 4)?).ok()?;
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        plain.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 0) };
    let second = if rest.get(4..6) == Some(b"\\u") { unit(6) } else { None };
    let units = [Some(first), second];
    match char::decode_utf16(units.into_iter().flatten()).next() {
        Some(Ok(letter)) => (letter, if letter.len_utf16() == 2 { 10 } else { 4 }),
        Some(Err(_)) | None => (char::REPLACEMENT_CHARACTER, 4),
    }
}

/// The same value without the space between its parts.
pub fn compact(raw: &[u8]) -> Cow<'_, [u8]> {
    let mut compacted = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'"' => {
                let end = text_end(raw, at + 1).map_or(raw.len(), |end| end + 1);
                compacted.extend_from_slice(&raw[at..end]);
                at = end;
            }
            _ => {
                compacted.push(*byte);
                at += 1;
            }
        }
    }
    if compacted.len() == raw.len() { Cow::Borrowed(raw) } else { Cow::Owned(compacted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        let mut document = Document::default();
        for (text, end) in [
            ("{} x", 2),
            (" {\"a\":[1,{\"b\":null}]}{", 21),
            ("[]", 2),
            ("\"a\\\"b\"c", 6),
            ("-1.5e3,", 6),
            ("true", 4),
        ] {
            assert_eq!(document.read(text.as_bytes(), true), Ok(Some(end)), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_not_there_yet_is_waited_for() {
        let text = b"{\"a\": [1.5, -2, true, \"x\\\"\\u00fc\"], \"b\": {\"c\": null}}";
        let mut document = Document::default();
        for length in 0..text.len() {
            assert_eq!(document.read(&text[..length], false), Ok(None), "{length}");
        }
        assert_eq!(document.read(text, false), Ok(Some(text.len())));
        assert_eq!(document.read(b"12", false), Ok(None));
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_stands() {
        let deep = "[".repeat(200);
        for (text, at) in [
            ("{name: 1}", 1),
            ("{\"a\" 1}", 5),
            ("{\"a\":1,}", 7),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\":1]", 6),
            ("]", 0),
            ("nul", 0),
            ("01x", 0),
            ("{\"a\":+1}", 5),
            (deep.as_str(), 128),
        ] {
            let refused = Document::default().read(text.as_bytes(), true);
            assert_eq!(refused.map_err(|error| error.at), Err(at), "{text}");
        }
    }

    #[test]
    fn children_are_those_of_one_level() {
        let text = b"{\"a\":{\"x\":1},\"b\":[2,3],\"c\":4}";
        let mut document = Document::default();
        document.read(text, true).expect("a value");
        let keys: Vec<_> =
            document.children(0).map(|child| document.node(child).key(text)).collect();
        assert_eq!(keys, [b"a", b"b", b"c"]);
        let array = document.children(0).nth(1).expect("b");
        let raw: Vec<_> =
            document.children(array).map(|child| document.node(child).raw(text)).collect();
        assert_eq!(raw, [b"2", b"3"]);
    }

    #[test]
    fn escapes_are_decoded() {
        for (raw, expected) in [
            ("plain", "plain"),
            ("a\\n\\t\\\"\\\\\\/", "a\n\t\"\\/"),
            ("\\u00fc\\ud83d\\ude00!", "ü😀!"),
            ("\\ud83dx", "\u{FFFD}x"),
            ("\\u12", "\u{FFFD}12"),
        ] {
            assert_eq!(decode(raw.as_bytes()), expected.as_bytes(), "{raw}");
        }
    }

    #[test]
    fn space_is_left_out_but_within_texts() {
        assert_eq!(&*compact(b"{ \"a b\" : [ 1 ,\n2 ] }"), b"{\"a b\":[1,2]}");
    }
}
