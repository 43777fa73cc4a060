//! The head of a request: its line and headers, and what they mean for the connection.

use bytes::{Bytes, BytesMut};
use hyper::{Method, StatusCode, Uri, Version};

use super::body_framing::Framing;
use crate::headers::request_headers::{Place, RequestHeaders, Span};

/// More headers than any client sends; each takes memory for as long as its request runs.
const HEADERS_MAX: usize = 256;
const METADATA_PREFIX: &[u8] = b"x-ms-meta-";

/// The parts of a request before its body.
pub struct Parts {
    pub method: Method,
    pub uri: Uri,
    pub version: Version,
    pub headers: RequestHeaders,
}

pub struct RequestHead {
    pub parts: Parts,
    pub case: RequestCase,
    pub(super) framing: Framing,
    /// The client sends its body only after 100 Continue.
    pub(super) expects_continue: bool,
    pub(super) keeps_alive: bool,
}

/// The metadata names of one request that have upper-case letters, which its headers do not keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCase {
    names: Vec<String>,
}

impl RequestCase {
    /// A metadata name as the client wrote it.
    pub fn original<'a>(&'a self, lower_case: &'a str) -> &'a str {
        let same = |name: &&String| name.eq_ignore_ascii_case(lower_case);
        self.names.iter().find(same).map_or(lower_case, String::as_str)
    }

    fn note(&mut self, name: &str) {
        let (prefix, rest) = name.split_at_checked(METADATA_PREFIX.len()).unwrap_or_default();
        let is_metadata = prefix.as_bytes().eq_ignore_ascii_case(METADATA_PREFIX);
        if is_metadata && rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
            self.names.push(rest.to_owned());
        }
    }
}

/// Why bytes are not a request. Nothing after them on the connection can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadRefusal {
    Malformed,
    TooLarge,
    TransferCoding,
}

impl HeadRefusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
        }
    }
}

/// Finds the end of a head, so that one that arrives slowly is parsed at its beginning and when it
/// is complete, not at every byte.
#[derive(Debug, Default)]
pub(super) struct HeadEnd {
    /// There is no end up to here; 0 until something has arrived.
    searched: usize,
}

impl HeadEnd {
    /// Whether `input` begins with a head that may be complete.
    pub fn is_in(&mut self, input: &[u8]) -> bool {
        // Most heads arrive in one piece, so try the parser at once.
        if self.searched == 0 && !input.is_empty() {
            self.searched = 1;
            return true;
        }
        // The parser skips empty lines before a request.
        let begins = input.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(input.len());
        let mut from = self.searched.max(begins);
        while let Some(found) = memchr::memchr(b'\n', input.get(from..).unwrap_or_default()) {
            let line = from + found + 1;
            match input.get(line..) {
                Some([b'\n', ..] | [b'\r', b'\n', ..]) => return true,
                // The next bytes decide.
                Some([] | [b'\r']) => {
                    self.searched = line - 1;
                    return false;
                }
                _ => from = line,
            }
        }
        self.searched = input.len();
        false
    }
}

/// Takes a complete head of at most `bytes_max` from the front of `input`; `None` if it is
/// incomplete.
pub(crate) fn take(
    input: &mut BytesMut,
    bytes_max: usize,
) -> Result<Option<RequestHead>, HeadRefusal> {
    let mut headers = [const { std::mem::MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(input, &mut headers);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length > bytes_max => {
            return Err(HeadRefusal::TooLarge);
        }
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadRefusal::TooLarge),
        Err(_) => return Err(HeadRefusal::Malformed),
    };
    let method = request.method.unwrap_or_default();
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| HeadRefusal::Malformed)?;
    let version = if request.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };

    // The parsed pieces become offsets in the buffer, which can then be split off without copying.
    let start = input.as_ptr() as usize;
    let target = request.path.unwrap_or_default();
    let target_start = target.as_ptr() as usize - start;
    let line_end = target_start + target.len();
    let span = |piece: &[u8]| {
        let from = (piece.as_ptr() as usize).wrapping_sub(start + line_end);
        // A head within the limit has no larger offsets.
        Span { start: from as u32, end: (from + piece.len()) as u32 }
    };
    let mut case = RequestCase::default();
    let mut places = Vec::with_capacity(request.headers.len());
    for header in request.headers.iter() {
        case.note(header.name);
        places.push(Place { name: span(header.name.as_bytes()), value: span(header.value) });
    }
    let target = input.split_to(line_end).freeze().slice(target_start..);
    let mut headers = RequestHeaders::in_place(input.split_to(length - line_end), places);

    let uri = uri(&method, target)?;
    let framing = framing(&mut headers, version)?;
    let keeps_alive = keeps_alive(&headers, version);
    let expects_continue = version == Version::HTTP_11
        && headers.get("expect").is_some_and(|it| it.eq_ignore_ascii_case(b"100-continue"));
    let parts = Parts { method, uri, version, headers };
    Ok(Some(RequestHead { parts, case, framing, expects_continue, keeps_alive }))
}

/// CONNECT would turn the connection into a tunnel, which a storage account does not offer.
fn uri(method: &Method, target: Bytes) -> Result<Uri, HeadRefusal> {
    if *method == Method::CONNECT {
        return Err(HeadRefusal::Malformed);
    }
    Uri::from_maybe_shared(target).map_err(|_| HeadRefusal::Malformed)
}

/// The length of the body. A request is refused if two servers could disagree about it, since one
/// of them would take a part of the body for the next request.
fn framing(headers: &mut RequestHeaders, version: Version) -> Result<Framing, HeadRefusal> {
    const CONTENT_LENGTH: &str = "content-length";
    let mut codings = headers.all("transfer-encoding");
    let coding = codings.next();
    let mut lengths = headers.all(CONTENT_LENGTH);
    let length = lengths.next();
    match (coding, length) {
        (None, None) => Ok(Framing::length(0)),
        (None, Some(length)) => {
            let declared = number(length).ok_or(HeadRefusal::Malformed)?;
            match lengths.next() {
                None => {}
                Some(other) if other == length && lengths.all(|other| other == length) => {
                    drop(codings);
                    drop(lengths);
                    headers.keep(CONTENT_LENGTH, 1);
                }
                Some(_) => return Err(HeadRefusal::Malformed),
            }
            Ok(Framing::length(declared))
        }
        (Some(_), Some(_)) => Err(HeadRefusal::Malformed),
        (Some(_), None) if version == Version::HTTP_10 => Err(HeadRefusal::Malformed),
        (Some(coding), None) => {
            let chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if chunked && codings.next().is_none() {
                Ok(Framing::chunked())
            } else {
                Err(HeadRefusal::TransferCoding)
            }
        }
    }
}

/// Only digits: parsers differ about signs and spaces.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn keeps_alive(headers: &RequestHeaders, version: Version) -> bool {
    let has = |token: &[u8]| {
        let values = headers.all("connection");
        let mut tokens = values.flat_map(|value| value.split(|byte| *byte == b','));
        tokens.any(|it| it.trim_ascii().eq_ignore_ascii_case(token))
    };
    !has(b"close") && (version == Version::HTTP_11 || has(b"keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<RequestHead>, HeadRefusal> {
        take(&mut BytesMut::from(text), usize::MAX)
    }

    fn whole(text: &str) -> RequestHead {
        let parsed = parsed(text).expect("a request");
        parsed.unwrap_or_else(|| panic!("{text:?} is whole"))
    }

    #[test]
    fn a_head_is_taken_apart_and_what_follows_is_left() {
        let mut input = BytesMut::from(
            "\r\nPUT /c/b?x=%20 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
             X-Ms-Meta-CamelCase:  a b \r\nx-ms-meta-plain: 1\r\n\r\nabcGET",
        );
        let head = take(&mut input, usize::MAX).expect("a request").expect("whole");
        assert_eq!(&input[..], b"abcGET");
        assert_eq!(head.parts.method, Method::PUT);
        assert_eq!(head.parts.uri, "/c/b?x=%20");
        assert_eq!(head.parts.headers.text("host"), Some("h"));
        assert_eq!(head.parts.headers.text("x-ms-meta-camelcase"), Some("a b"));
        assert_eq!(head.case.original("camelcase"), "CamelCase");
        assert_eq!(head.case.original("plain"), "plain");
        assert_eq!(head.framing, Framing::length(3));
        assert!(head.keeps_alive && !head.expects_continue);
    }

    #[test]
    fn the_end_of_a_connection_is_told_by_version_and_header() {
        for (line, header, expected) in [
            ("HTTP/1.1", "a: b", true),
            ("HTTP/1.1", "Connection: close", false),
            ("HTTP/1.1", "connection: upgrade,  CLOSE", false),
            ("HTTP/1.0", "a: b", false),
            ("HTTP/1.0", "connection: Keep-Alive", true),
            ("HTTP/1.0", "connection: keep-alive, close", false),
        ] {
            let head = whole(&format!("GET / {line}\r\n{header}\r\n\r\n"));
            assert_eq!(head.keeps_alive, expected, "{line} {header}");
        }
    }

    #[test]
    fn a_body_whose_length_could_be_read_in_two_ways_is_refused() {
        let length = |bytes| Ok(Framing::length(bytes));
        let malformed = Err(HeadRefusal::Malformed);
        let coding = Err(HeadRefusal::TransferCoding);
        for (headers, expected) in [
            ("", length(0)),
            ("content-length: 7\r\n", length(7)),
            ("content-length: 7\r\ncontent-length: 7\r\n", length(7)),
            ("content-length: 7\r\ncontent-length: 8\r\n", malformed),
            ("content-length: 7, 7\r\n", malformed),
            ("content-length: +7\r\n", malformed),
            ("content-length: -7\r\n", malformed),
            ("content-length: 0x7\r\n", malformed),
            ("content-length: \r\n", malformed),
            ("content-length: 18446744073709551616\r\n", malformed),
            ("transfer-encoding: chunked\r\n", Ok(Framing::chunked())),
            ("transfer-encoding: Chunked\r\n", Ok(Framing::chunked())),
            ("transfer-encoding: chunked\r\ncontent-length: 7\r\n", malformed),
            ("transfer-encoding: gzip, chunked\r\n", coding),
            ("transfer-encoding: chunked, identity\r\n", coding),
            ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", coding),
            ("transfer-encoding: \u{b}chunked\r\n", malformed),
        ] {
            let framing = parsed(&format!("PUT / HTTP/1.1\r\n{headers}\r\n"));
            let framing = framing.map(|head| head.expect("whole").framing);
            assert_eq!(framing, expected, "{headers:?}");
        }
        let old = parsed("PUT / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n");
        assert_eq!(old.err(), Some(HeadRefusal::Malformed));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        for (text, expected) in [
            ("GET / HTTP/2.0\r\n\r\n", HeadRefusal::Malformed),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HeadRefusal::Malformed),
            ("GET /\r\n\r\n", HeadRefusal::Malformed),
            ("GET / HTTP/1.1\r\na : b\r\n\r\n", HeadRefusal::Malformed),
            ("GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n", HeadRefusal::Malformed),
            ("GET / HTTP/1.1\r\na: \0\r\n\r\n", HeadRefusal::Malformed),
            ("CONNECT h:1 HTTP/1.1\r\n\r\n", HeadRefusal::Malformed),
            ("\u{16}\u{3}\u{1}\r\n\r\n", HeadRefusal::Malformed),
            (&many, HeadRefusal::TooLarge),
        ] {
            assert_eq!(parsed(text).err(), Some(expected), "{text:.40?}");
        }
        assert!(parsed("GET / HTTP/1.1\r\nhost: h\r\n").expect("so far").is_none());
    }

    #[test]
    fn the_end_of_a_head_is_found_wherever_reads_end() {
        for text in
            ["GET / HTTP/1.1\r\na: b\r\n\r\n", "\r\n\r\nGET / HTTP/1.1\na: b\n\n", "G\n\r\n"]
        {
            let mut end = HeadEnd::default();
            for length in 0..=text.len() {
                let first = length == 1;
                let expected = first || length == text.len();
                assert_eq!(end.is_in(&text.as_bytes()[..length]), expected, "{text:?} {length}");
            }
        }
    }
}
