//! Where a body ends: after the declared length, or at the last chunk.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::headers::answer_headers::is_header_name;

/// A size and its extensions, or a trailer; no client sends more.
const LINE_BYTES_MAX: usize = 8 * 1024;
const TRAILERS_BYTES_MAX: usize = 32 * 1024;

/// The part of a body that has not been read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length { left: u64 },
    Chunked(Chunk),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Size,
    Data {
        left: u64,
    },
    /// The line end after the data.
    End,
    Trailers {
        bytes: usize,
    },
}

/// The body does not have the form that its head has declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Framing {
    pub fn length(length: u64) -> Self {
        if length == 0 { Self::Ended } else { Self::Length { left: length } }
    }

    pub fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    pub fn has_ended(&self) -> bool {
        *self == Self::Ended
    }

    /// How much is still to come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match self {
            Self::Length { left } => Some(*left),
            Self::Chunked(_) => None,
            Self::Ended => Some(0),
        }
    }

    /// Takes the next bytes of the body from the front of `input`. `None` if more input is needed,
    /// or if the body has ended.
    pub fn take(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        loop {
            match self {
                Self::Ended => return Ok(None),
                Self::Length { left } => {
                    let taken = take_up_to(left, input);
                    if *left == 0 {
                        *self = Self::Ended;
                    }
                    return Ok(taken);
                }
                Self::Chunked(Chunk::Size) => {
                    let Some(line) = take_line(input)? else { return Ok(None) };
                    *self = Self::Chunked(match chunk_size(&line)? {
                        0 => Chunk::Trailers { bytes: 0 },
                        left => Chunk::Data { left },
                    });
                }
                Self::Chunked(Chunk::Data { left }) => {
                    let taken = take_up_to(left, input);
                    if *left == 0 {
                        *self = Self::Chunked(Chunk::End);
                    }
                    return Ok(taken);
                }
                Self::Chunked(Chunk::End) => match input.as_ref() {
                    [b'\r', b'\n', ..] => {
                        input.advance(2);
                        *self = Self::Chunked(Chunk::Size);
                    }
                    [] | [b'\r'] => return Ok(None),
                    _ => return Err(Malformed),
                },
                Self::Chunked(Chunk::Trailers { bytes }) => {
                    let Some(line) = take_line(input)? else { return Ok(None) };
                    *bytes += line.len();
                    if line.is_empty() {
                        *self = Self::Ended;
                    } else if *bytes > TRAILERS_BYTES_MAX || !is_field(&line) {
                        return Err(Malformed);
                    }
                }
            }
        }
    }
}

/// Decodes a chunked body that arrives in pieces of `step`; also returns how much input follows it.
/// `None` if it is malformed or has no end.
pub(crate) fn decode_chunked(bytes: &[u8], step: usize) -> Option<(Vec<u8>, usize)> {
    let mut framing = Framing::chunked();
    let (mut input, mut body) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(step) {
        input.extend_from_slice(piece);
        while let Some(taken) = framing.take(&mut input).ok()? {
            body.extend_from_slice(&taken);
        }
    }
    framing.has_ended().then_some((body, input.len()))
}

fn take_up_to(left: &mut u64, input: &mut BytesMut) -> Option<Bytes> {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    if length == 0 {
        return None;
    }
    *left -= length as u64;
    Some(input.split_to(length).freeze())
}

/// A line without its end, which must be `\r\n`: a parser that accepts less sees other chunks than
/// a strict one.
fn take_line(input: &mut BytesMut) -> Result<Option<BytesMut>, Malformed> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return if input.len() > LINE_BYTES_MAX { Err(Malformed) } else { Ok(None) };
    };
    let mut line = input.split_to(end + 1);
    if end > LINE_BYTES_MAX || line.get(end.wrapping_sub(1)) != Some(&b'\r') {
        return Err(Malformed);
    }
    line.truncate(end - 1);
    if line.contains(&b'\r') { Err(Malformed) } else { Ok(Some(line)) }
}

/// Whether a trailer has the form of a header; it is not used otherwise.
fn is_field(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    name.len() < line.len() && std::str::from_utf8(name).is_ok_and(is_header_name)
}

fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at(digits);
    let rest = rest.trim_ascii_start();
    if !(rest.is_empty() || rest.starts_with(b";")) {
        return Err(Malformed);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    u64::from_str_radix(digits, 16).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, and what of the input is behind it, when the input comes in pieces of `step`.
    fn decode(
        mut framing: Framing,
        text: &[u8],
        step: usize,
    ) -> Result<(Vec<u8>, Vec<u8>, bool), Malformed> {
        let (mut input, mut body) = (BytesMut::new(), Vec::new());
        for piece in text.chunks(step) {
            input.extend_from_slice(piece);
            while let Some(bytes) = framing.take(&mut input)? {
                body.extend_from_slice(&bytes);
            }
        }
        Ok((body, input.to_vec(), framing.has_ended()))
    }

    #[test]
    fn bodies_end_where_they_say() {
        for (case, framing, text, body, behind) in [
            ("none", Framing::length(0), "GET", "", "GET"),
            ("a length", Framing::length(3), "abcGET", "abc", "GET"),
            ("no chunks", Framing::chunked(), "0\r\n\r\nGET", "", "GET"),
            ("chunks", Framing::chunked(), "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET", "abcde", "GET"),
            ("extensions", Framing::chunked(), "3;a=b\r\nabc\r\n0 ;c\r\n\r\nGET", "abc", "GET"),
            ("trailers", Framing::chunked(), "0\r\na: b\r\nc: d\r\n\r\nGET", "", "GET"),
            (
                "a long size",
                Framing::chunked(),
                "0000000000000000A\r\n0123456789\r\n0\r\n\r\n",
                "0123456789",
                "",
            ),
        ] {
            for step in 1..=text.len() {
                let decoded = decode(framing, text.as_bytes(), step);
                let expected = (body.as_bytes().to_vec(), behind.as_bytes().to_vec(), true);
                assert_eq!(decoded, Ok(expected), "{case}, {step} at a time");
            }
        }
    }

    #[test]
    fn chunks_that_parsers_read_differently_are_refused() {
        let long = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(LINE_BYTES_MAX));
        let trailers = format!("0\r\n{}\r\n", "a: b\r\n".repeat(TRAILERS_BYTES_MAX / 4 + 1));
        for text in [
            "zz\r\n",
            "\r\n",
            "-1\r\n",
            "+1\r\na\r\n",
            "0x1\r\na\r\n",
            "1\na\n0\n\n",
            "1 2\r\na\r\n",
            "1\r\nab\r\n0\r\n\r\n",
            "1\r\na\n0\r\n\r\n",
            "10000000000000000\r\n",
            "1\r;\r\na\r\n",
            "0\r\nno field\r\n\r\n",
            "0\r\n a: b\r\n\r\n",
            &long,
            &trailers,
        ] {
            for step in [1, text.len()] {
                let decoded = decode(Framing::chunked(), text.as_bytes(), step);
                assert_eq!(decoded, Err(Malformed), "{text:.40?}, {step} at a time");
            }
        }
    }
}
