//! Follows the framing of the requests on one connection, for the case of their metadata names.
//!
//! It sees the bytes before hyper does and decides nothing: whatever it takes for nonsense, hyper
//! refuses too and closes the connection. Where the two could still disagree about where a request
//! begins, the scanner falls silent for the rest of the connection.

use std::mem;

use memchr::memchr;

use super::METADATA_PREFIX;

/// What a connection keeps of the buffer for split lines: most lines fit, and idle connections
/// hold little.
const LINE_CAPACITY_KEPT: usize = 512;

pub struct HeadScanner {
    state: State,
    head_bytes_max: usize,
    /// Of the head, chunk size line or trailers being read.
    section_bytes: usize,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    framing: Framing,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    RequestLine,
    Headers,
    Body {
        remaining: u64,
    },
    ChunkSize,
    /// The bytes of a chunk and the line end after it.
    Chunk {
        remaining: u64,
    },
    Trailers,
    Silent,
}

#[derive(Clone, Copy, Default)]
struct Framing {
    content_length: Option<u64>,
    /// Whether the last `Transfer-Encoding` ends in `chunked`, if there is one.
    chunked: Option<bool>,
}

/// The bytes are no request that hyper would accept.
struct Nonsense;

impl HeadScanner {
    pub fn new(head_bytes_max: usize) -> Self {
        Self {
            state: State::RequestLine,
            head_bytes_max,
            section_bytes: 0,
            line: Vec::new(),
            framing: Framing::default(),
            names: Vec::new(),
        }
    }

    /// Takes the next bytes of the connection. `head` is called once for each request head that
    /// ends in them, in order, with those metadata names that have an upper-case letter.
    pub fn feed(&mut self, mut bytes: &[u8], mut head: impl FnMut(Vec<String>)) {
        while !bytes.is_empty() {
            match self.state {
                State::Silent => return,
                State::Body { remaining } => {
                    let left = skip(&mut bytes, remaining);
                    self.state = match left {
                        0 => State::RequestLine,
                        remaining => State::Body { remaining },
                    };
                }
                State::Chunk { remaining } => {
                    let left = skip(&mut bytes, remaining);
                    self.state = match left {
                        0 => State::ChunkSize,
                        remaining => State::Chunk { remaining },
                    };
                }
                State::RequestLine | State::Headers | State::ChunkSize | State::Trailers => {
                    if self.feed_line(&mut bytes, &mut head).is_err() {
                        self.fall_silent();
                    }
                }
            }
        }
    }

    fn feed_line(
        &mut self,
        bytes: &mut &[u8],
        head: &mut impl FnMut(Vec<String>),
    ) -> Result<(), Nonsense> {
        let end = memchr(b'\n', bytes);
        let (taken, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        *bytes = rest;
        self.section_bytes = self.section_bytes.saturating_add(taken.len());
        if self.section_bytes > self.head_bytes_max {
            return Err(Nonsense);
        }
        if end.is_none() {
            self.line.extend_from_slice(taken);
            return Ok(());
        }
        if self.line.is_empty() {
            return self.line_ended(taken, head);
        }
        let mut line = mem::take(&mut self.line);
        line.extend_from_slice(taken);
        let ended = self.line_ended(&line, head);
        line.clear();
        line.shrink_to(LINE_CAPACITY_KEPT);
        self.line = line;
        ended
    }

    /// `line` ends in a line feed.
    fn line_ended(
        &mut self,
        line: &[u8],
        head: &mut impl FnMut(Vec<String>),
    ) -> Result<(), Nonsense> {
        let crlf = line.ends_with(b"\r\n");
        let text = &line[..line.len() - if crlf { 2 } else { 1 }];
        match self.state {
            // Empty lines before a request are allowed.
            State::RequestLine if text.is_empty() => {}
            State::RequestLine => {
                if !text.ends_with(b" HTTP/1.1") && !text.ends_with(b" HTTP/1.0") {
                    return Err(Nonsense);
                }
                self.state = State::Headers;
            }
            State::Headers if text.is_empty() => {
                let body = body_of(mem::take(&mut self.framing))?;
                self.enter(body);
                head(mem::take(&mut self.names));
            }
            State::Headers => self.header(text)?,
            // hyper ends these lines at CRLF only, other than those of a head.
            State::ChunkSize | State::Trailers if !crlf => return Err(Nonsense),
            State::ChunkSize => self.enter(match chunk_size(text)? {
                0 => State::Trailers,
                size => State::Chunk { remaining: size.checked_add(2).ok_or(Nonsense)? },
            }),
            State::Trailers if text.is_empty() => self.enter(State::RequestLine),
            State::Trailers => {}
            State::Body { .. } | State::Chunk { .. } | State::Silent => {
                unreachable!("{:?} has no lines", self.state)
            }
        }
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Nonsense> {
        let colon = memchr(b':', line).ok_or(Nonsense)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.len() >= METADATA_PREFIX.len()
            && name[..METADATA_PREFIX.len()].eq_ignore_ascii_case(METADATA_PREFIX.as_bytes())
        {
            let name = &name[METADATA_PREFIX.len()..];
            if name.iter().any(u8::is_ascii_uppercase) {
                let name = std::str::from_utf8(name).map_err(|_| Nonsense)?;
                self.names.push(name.to_owned());
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            // As hyper has it: what stands after a `Transfer-Encoding` may be anything.
            if self.framing.chunked.is_some() {
                return Ok(());
            }
            let length = number(value, 10)?;
            if self.framing.content_length.is_some_and(|known| known != length) {
                return Err(Nonsense);
            }
            self.framing.content_length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            self.framing.chunked = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        }
        Ok(())
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.section_bytes = 0;
    }

    fn fall_silent(&mut self) {
        self.state = State::Silent;
        self.line = Vec::new();
        self.names = Vec::new();
    }
}

/// Moves `bytes` on by up to `remaining`, and returns how many are still to come.
fn skip(bytes: &mut &[u8], remaining: u64) -> u64 {
    let skipped = usize::try_from(remaining).map_or(bytes.len(), |count| count.min(bytes.len()));
    *bytes = &bytes[skipped..];
    remaining - skipped as u64
}

/// Where both are given, `Transfer-Encoding` wins over `Content-Length`.
fn body_of(framing: Framing) -> Result<State, Nonsense> {
    match (framing.chunked, framing.content_length) {
        (Some(true), _) => Ok(State::ChunkSize),
        (Some(false), _) => Err(Nonsense),
        (None, None | Some(0)) => Ok(State::RequestLine),
        (None, Some(remaining)) => Ok(State::Body { remaining }),
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, Nonsense> {
    let size = &line[..memchr(b';', line).unwrap_or(line.len())];
    number(size.trim_ascii_end(), 16)
}

/// Digits only: the parser of the standard library takes a sign too.
fn number(digits: &[u8], radix: u32) -> Result<u64, Nonsense> {
    let text = std::str::from_utf8(digits).map_err(|_| Nonsense)?;
    if !text.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Nonsense);
    }
    u64::from_str_radix(text, radix).map_err(|_| Nonsense)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_BYTES_MAX: usize = 300;

    /// The names of each head, and whether the scanner still listens after the last byte.
    fn scan(pieces: &[&[u8]]) -> (Vec<Vec<String>>, bool) {
        let mut scanner = HeadScanner::new(HEAD_BYTES_MAX);
        let mut heads = Vec::new();
        for piece in pieces {
            scanner.feed(piece, |names| heads.push(names));
        }
        (heads, scanner.state != State::Silent)
    }

    fn heads(names: &[&[&str]]) -> Vec<Vec<String>> {
        let owned = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        names.iter().map(owned).collect()
    }

    /// Bodies and trailers here look like heads, so that losing the place shows.
    const STREAM: &[u8] = b"GET /a HTTP/1.1\r\nHost: x\r\nx-ms-meta-One: 1\r\nX-MS-META-tWo: 2\r\n\r\n\
        GET /b HTTP/1.1\r\nHost: x\r\nx-ms-meta-lower: 1\r\n\r\n\
        PUT /c HTTP/1.1\r\ncontent-length: 33\r\nx-ms-meta-Category: 1\r\nExpect: 100-continue\r\n\r\n\
        \r\n\r\nGET /\r\nx-ms-meta-Body: 1\r\n\r\n\r\n\
        PUT /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\nx-ms-meta-Chunked: 1\r\n\r\n\
        4\r\n\r\n\r\n\r\n1A ;x=\"GET / HTTP/1.1\"\r\nx-ms-meta-Chunk: 1\r\n\r\n1234\r\n0\r\n\
        x-ms-meta-Trailer: 1\r\nContent-Length: 7\r\n\r\n\
        \r\n\nGET /e HTTP/1.0\nx-ms-meta-Bare: 1\n\n\
        PUT /f HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n\
        PUT /g HTTP/1.1\r\nContent-Length: 0\r\ncontent-length: 0\r\nx-ms-meta-A: 1\r\nx-ms-meta-A: 2\r\nx-ms-meta-a: 3\r\n\r\n\
        GET /h HTTP/1.1\r\nx-ms-meta-Last:\r\n\r\n";

    fn stream_heads() -> Vec<Vec<String>> {
        heads(&[
            &["One", "tWo"],
            &[],
            &["Category"],
            &["Chunked"],
            &["Bare"],
            &[],
            &["A", "A"],
            &["Last"],
        ])
    }

    #[test]
    fn names_are_found_whole_and_byte_by_byte() {
        assert_eq!(scan(&[STREAM]), (stream_heads(), true));
        let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(scan(&bytes), (stream_heads(), true));
    }

    #[test]
    fn names_are_found_at_every_pair_of_splits() {
        for first in 0..=STREAM.len() {
            for second in (first..=STREAM.len()).step_by(7) {
                let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                assert_eq!(scan(&pieces), (stream_heads(), true), "{first} {second}");
            }
        }
    }

    #[test]
    fn nonsense_makes_it_silent() {
        let good: &[u8] = b"GET / HTTP/1.1\r\nx-ms-meta-A: 1\r\n\r\n";
        let long =
            [b"GET / HTTP/1.1\r\na: ", [b'v'; HEAD_BYTES_MAX].as_slice(), b"\r\n\r\n"].concat();
        let many = [b"GET / HTTP/1.1\r\n".as_slice(), &b"a: v\r\n".repeat(60), b"\r\n"].concat();
        let empty_lines = b"\r\n".repeat(HEAD_BYTES_MAX);
        let put = |headers: &str, body: &str| {
            format!("PUT / HTTP/1.1\r\nx-ms-meta-B: 1\r\n{headers}\r\n\r\n{body}").into_bytes()
        };
        let chunked = |body: &str| put("transfer-encoding: chunked", body);
        let extension = format!("1;{}\r\n", "e".repeat(HEAD_BYTES_MAX));
        let trailers = format!("0\r\n{}\r\n", "a: b\r\n".repeat(60));
        let cases: Vec<(&str, Vec<u8>, bool)> = vec![
            ("long line", long, false),
            ("many lines", many, false),
            ("nothing but empty lines", empty_lines, false),
            ("TLS", b"\x16\x03\x01\x02\x00\n".to_vec(), false),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), false),
            ("no version", b"GET /\r\n\r\n".to_vec(), false),
            ("no colon", put("nonsense", ""), false),
            (
                "name that is no text",
                b"GET / HTTP/1.1\r\nx-ms-meta-A\xff: 1\r\n\r\n".to_vec(),
                false,
            ),
            ("length / sign", put("content-length: +1", "1"), false),
            ("length / none", put("content-length:", ""), false),
            ("length / too large", put("content-length: 18446744073709551616", ""), false),
            ("length / two", put("content-length: 1\r\ncontent-length: 2", "1"), false),
            ("encoding / not chunked", put("transfer-encoding: chunked, gzip", ""), false),
            ("chunk size / none", chunked("\r\n"), true),
            ("chunk size / no digit", chunked("g\r\n"), true),
            ("chunk size / sign", chunked("+1\r\n"), true),
            ("chunk size / too large", chunked("ffffffffffffffff\r\n"), true),
            ("chunk size / bare line feed", chunked("0\n\n"), true),
            ("chunk size / long extension", chunked(&extension), true),
            ("trailers / bare line feed", chunked("0\r\na: b\n\r\n\r\n"), true),
            ("trailers / long", chunked(&trailers), true),
        ];
        for (case, bytes, head_was_good) in cases {
            let mut expected = heads(&[&["A"]]);
            expected.extend(head_was_good.then(|| vec!["B".to_owned()]));
            let all = [good, &bytes, good].concat();
            assert_eq!(scan(&[&all]), (expected.clone(), false), "{case}");
            assert_eq!(scan(&all.chunks(1).collect::<Vec<_>>()), (expected, false), "{case}");
        }
    }

    #[test]
    fn a_body_without_end_is_skipped_without_being_looked_at() {
        let head = format!("PUT / HTTP/1.1\r\ncontent-length: {}\r\n\r\n", u64::MAX);
        let body = b"GET / HTTP/1.1\r\nx-ms-meta-A: 1\r\n\r\n".repeat(1000);
        assert_eq!(scan(&[head.as_bytes(), &body, &body]), (heads(&[&[]]), true));
    }

    #[test]
    fn memory_stays_bounded_whatever_comes() {
        let mut scanner = HeadScanner::new(HEAD_BYTES_MAX);
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let alphabet = b"GET / HTTP/1.1\r\n:x-ms-meta-A;0123\n\r\n\r\n";
        for _ in 0..20_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let start = (seed as usize) % alphabet.len();
            let length = (seed >> 32) as usize % (alphabet.len() - start);
            scanner.feed(&alphabet[start..][..length], drop);
            assert!(scanner.line.len() <= HEAD_BYTES_MAX);
            assert!(scanner.names.iter().map(String::len).sum::<usize>() <= HEAD_BYTES_MAX);
            if scanner.state == State::Silent {
                scanner = HeadScanner::new(HEAD_BYTES_MAX);
            }
        }
    }
}
