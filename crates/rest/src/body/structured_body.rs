//! The structured form of a body, `XSM/1.0`: a header, numbered segments each followed by its
//! CRC64, and the CRC64 of the whole.

use bytes::{Buf, Bytes};
use crc_fast::Digest as Crc64;

use super::digests::new_crc64;

pub(super) const VERSION: u8 = 1;
pub(super) const FLAG_CRC64: u16 = 1;
pub(super) const MESSAGE_HEADER_BYTES: usize = 13;
pub(super) const SEGMENT_HEADER_BYTES: usize = 10;
pub(super) const CRC64_BYTES: usize = 8;

/// The headers of a structured body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructuredBody {
    /// The length of its content, from `x-ms-structured-content-length`.
    pub content_length: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructuredRefusal {
    /// 400 `InvalidHeaderValue` of `x-ms-structured-body`
    #[error("the structure {value:?} is not XSM/1.0 with crc64")]
    UnknownStructure { value: String },
    /// 400 `MissingRequiredHeader` of `x-ms-structured-content-length`
    #[error("x-ms-structured-content-length is missing")]
    ContentLengthMissing,
    /// 400 `InvalidHeaderValue` of `x-ms-structured-content-length`
    #[error("x-ms-structured-content-length cannot be {value:?}")]
    ContentLengthInvalid { value: String },
    /// 400 `InvalidInput`: the bytes do not have the structure.
    #[error("the structured body is malformed: {reason}")]
    Malformed { reason: &'static str },
    /// 400 `Crc64Mismatch`
    #[error("the CRC64 sent is {sent:016x}, the content has {calculated:016x}")]
    Crc64Mismatch { sent: u64, calculated: u64 },
}

impl StructuredBody {
    /// The value of `x-ms-structured-body` that is accepted and returned.
    pub const HEADER_VALUE: &str = "XSM/1.0; properties=crc64";

    /// From `x-ms-structured-body` and `x-ms-structured-content-length`.
    pub fn parse(
        structure: Option<&str>,
        content_length: Option<&str>,
    ) -> Result<Option<Self>, StructuredRefusal> {
        let Some(structure) = structure else { return Ok(None) };
        let mut parts = structure.split(';').map(str::trim);
        let known = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("XSM/1.0"))
            && parts.next().is_some_and(|part| part.eq_ignore_ascii_case("properties=crc64"))
            && parts.next().is_none();
        if !known {
            return Err(StructuredRefusal::UnknownStructure { value: structure.to_owned() });
        }
        let value = content_length.ok_or(StructuredRefusal::ContentLengthMissing)?;
        let invalid = |_| StructuredRefusal::ContentLengthInvalid { value: value.to_owned() };
        Ok(Some(Self { content_length: value.parse().map_err(invalid)? }))
    }
}

/// Removes the structure from a body while it is read, and verifies it.
pub struct Decoder {
    content_length: u64,
    /// The length of the whole message, from Content-Length.
    message_length: Option<u64>,
    region: Region,
    /// The bytes so far of a header or footer.
    partial: [u8; MESSAGE_HEADER_BYTES],
    partial_length: usize,
    message_read: u64,
    content_read: u64,
    segments: u16,
    segment: u16,
    segment_left: u64,
    segment_crc64: Crc64,
    content_crc64: Crc64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    MessageHeader,
    SegmentHeader,
    Content,
    SegmentFooter,
    MessageFooter,
    End,
}

/// The content of a structured body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    pub length: u64,
    pub crc64: u64,
}

impl Decoder {
    pub fn new(body: StructuredBody, message_length: Option<u64>) -> Self {
        Self {
            content_length: body.content_length,
            message_length,
            region: Region::MessageHeader,
            partial: [0; MESSAGE_HEADER_BYTES],
            partial_length: 0,
            message_read: 0,
            content_read: 0,
            segments: 0,
            segment: 0,
            segment_left: 0,
            segment_crc64: new_crc64(),
            content_crc64: new_crc64(),
        }
    }

    /// Takes from `input` up to the end of the next piece of content, and returns that piece; or
    /// takes all of `input` and returns `None` if more is needed.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, StructuredRefusal> {
        loop {
            if self.region == Region::Content && self.segment_left == 0 {
                self.region = Region::SegmentFooter;
            }
            if input.is_empty() {
                return Ok(None);
            }
            match self.region {
                Region::Content => return Ok(Some(self.take_content(input))),
                Region::End => return Err(malformed("bytes follow its end")),
                Region::MessageHeader => {
                    let Some(header) = self.take::<MESSAGE_HEADER_BYTES>(input) else { continue };
                    self.message_header(header)?;
                }
                Region::SegmentHeader => {
                    let Some(header) = self.take::<SEGMENT_HEADER_BYTES>(input) else { continue };
                    self.segment_header(header)?;
                }
                Region::SegmentFooter => {
                    let Some(sent) = self.take::<CRC64_BYTES>(input) else { continue };
                    compare(sent, self.segment_crc64.finalize_reset())?;
                    self.region = if self.segment < self.segments {
                        Region::SegmentHeader
                    } else {
                        Region::MessageFooter
                    };
                }
                Region::MessageFooter => {
                    let Some(sent) = self.take::<CRC64_BYTES>(input) else { continue };
                    compare(sent, self.content_crc64.finalize())?;
                    self.region = Region::End;
                }
            }
        }
    }

    /// At the end of the body.
    pub fn finish(&self) -> Result<Plain, StructuredRefusal> {
        if self.region != Region::End {
            return Err(malformed("it ends too early"));
        }
        if self.content_read != self.content_length {
            return Err(malformed("its content is shorter than x-ms-structured-content-length"));
        }
        Ok(Plain { length: self.content_read, crc64: self.content_crc64.finalize() })
    }

    fn take_content(&mut self, input: &mut Bytes) -> Bytes {
        let length = usize::try_from(self.segment_left).unwrap_or(usize::MAX).min(input.len());
        let content = input.split_to(length);
        self.segment_left -= length as u64;
        self.content_read += length as u64;
        self.message_read += length as u64;
        self.segment_crc64.update(&content);
        self.content_crc64.update(&content);
        content
    }

    /// A header or footer, once all of its bytes have arrived.
    fn take<const LENGTH: usize>(&mut self, input: &mut Bytes) -> Option<[u8; LENGTH]> {
        let length = (LENGTH - self.partial_length).min(input.len());
        input.copy_to_slice(&mut self.partial[self.partial_length..self.partial_length + length]);
        self.partial_length += length;
        self.message_read += length as u64;
        if self.partial_length < LENGTH {
            return None;
        }
        self.partial_length = 0;
        self.partial.first_chunk().copied()
    }

    fn message_header(
        &mut self,
        header: [u8; MESSAGE_HEADER_BYTES],
    ) -> Result<(), StructuredRefusal> {
        let mut header = &header[..];
        let (version, length) = (header.get_u8(), header.get_u64_le());
        let (flags, segments) = (header.get_u16_le(), header.get_u16_le());
        if version != VERSION {
            return Err(malformed("its version is not 1"));
        }
        if flags != FLAG_CRC64 {
            return Err(malformed("its flags are not those of crc64"));
        }
        let around = u64::from(segments) * (SEGMENT_HEADER_BYTES + CRC64_BYTES) as u64
            + (MESSAGE_HEADER_BYTES + CRC64_BYTES) as u64;
        if self.content_length.checked_add(around) != Some(length) {
            return Err(malformed("its length does not fit its content and segments"));
        }
        if self.message_length.is_some_and(|sent| sent != length) {
            return Err(malformed("its length is not Content-Length"));
        }
        self.segments = segments;
        self.region = if segments == 0 { Region::MessageFooter } else { Region::SegmentHeader };
        Ok(())
    }

    fn segment_header(
        &mut self,
        header: [u8; SEGMENT_HEADER_BYTES],
    ) -> Result<(), StructuredRefusal> {
        let mut header = &header[..];
        let (number, length) = (header.get_u16_le(), header.get_u64_le());
        if u32::from(number) != u32::from(self.segment) + 1 {
            return Err(malformed("its segments are not numbered one after another"));
        }
        if length > self.content_length - self.content_read {
            return Err(malformed("its segments are longer than x-ms-structured-content-length"));
        }
        self.segment = number;
        self.segment_left = length;
        self.region = Region::Content;
        Ok(())
    }
}

const fn malformed(reason: &'static str) -> StructuredRefusal {
    StructuredRefusal::Malformed { reason }
}

fn compare(sent: [u8; CRC64_BYTES], calculated: u64) -> Result<(), StructuredRefusal> {
    match u64::from_le_bytes(sent) {
        sent if sent == calculated => Ok(()),
        sent => Err(StructuredRefusal::Crc64Mismatch { sent, calculated }),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As the Python SDK writes them: the content, the segment size, the message in hexadecimal.
    pub const GOLDEN: [(&str, u64, &str); 3] = [
        (
            "",
            4 << 20,
            "012700000000000000010001000100000000000000000000000000000000000000000000000000",
        ),
        (
            "hello world",
            4 << 20,
            "0132000000000000000100010001000b0000000000000068656c6c6f20776f726c64be8eeaf6c3d5298d\
             be8eeaf6c3d5298d",
        ),
        (
            "hello world",
            4,
            "015600000000000000010003000100040000000000000068656c6c53063d2980bcddf2020004000000000\
             000006f20776fae8e5b98434aa0b903000300000000000000726c64abb6c3b13b832934\
             be8eeaf6c3d5298d",
        ),
    ];

    pub fn bytes_of(hexadecimal: &str) -> Vec<u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
        let pairs = hexadecimal.as_bytes().chunks(2);
        pairs.map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn decode(
        message: &[u8],
        content_length: u64,
        chunk: usize,
    ) -> Result<(Vec<u8>, Plain), StructuredRefusal> {
        let body = StructuredBody { content_length };
        let mut decoder = Decoder::new(body, Some(message.len() as u64));
        let mut content = Vec::new();
        for chunk in message.chunks(chunk) {
            let mut input = Bytes::copy_from_slice(chunk);
            while let Some(piece) = decoder.next(&mut input)? {
                assert!(!piece.is_empty());
                content.extend_from_slice(&piece);
            }
            assert!(input.is_empty());
        }
        Ok((content, decoder.finish()?))
    }

    #[test]
    fn messages_of_the_sdk_are_decoded_whatever_the_chunks() {
        for (content, _, message) in GOLDEN {
            let message = bytes_of(message);
            for chunk in 1..=message.len() {
                let decoded = decode(&message, content.len() as u64, chunk);
                let (decoded, plain) = decoded.expect(content);
                assert_eq!(decoded, content.as_bytes());
                assert_eq!(plain.length, content.len() as u64);
                let mut crc64 = new_crc64();
                crc64.update(content.as_bytes());
                assert_eq!(plain.crc64, crc64.finalize());
            }
        }
    }

    #[test]
    fn a_message_without_segments_carries_nothing() {
        let mut message = vec![1, 21, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        message.extend([0; 8]);
        assert_eq!(decode(&message, 0, 5), Ok((Vec::new(), Plain { length: 0, crc64: 0 })));
    }

    #[test]
    fn a_change_of_any_single_byte_is_refused() {
        let (content, _, message) = GOLDEN[2];
        let message = bytes_of(message);
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 0x10;
            assert!(decode(&changed, content.len() as u64, 7).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_message_cut_off_anywhere_or_followed_by_more_is_refused() {
        let (content, _, message) = GOLDEN[2];
        let message = bytes_of(message);
        let body = StructuredBody { content_length: content.len() as u64 };
        for length in 0..message.len() {
            let mut decoder = Decoder::new(body, None);
            let mut input = Bytes::copy_from_slice(&message[..length]);
            while decoder.next(&mut input).expect("a good beginning").is_some() {}
            assert_eq!(decoder.finish(), Err(malformed("it ends too early")), "{length} bytes");
        }
        let mut decoder = Decoder::new(body, None);
        let mut input = Bytes::from([&message[..], b"x"].concat());
        let end = loop {
            match decoder.next(&mut input) {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(refusal) => break Err(refusal),
            }
        };
        assert_eq!(end, Err(malformed("bytes follow its end")));
    }

    #[test]
    fn lengths_that_disagree_are_refused() {
        let (content, _, message) = GOLDEN[1];
        let message = bytes_of(message);
        let length = content.len() as u64;
        for declared in [0, length - 1, length + 1, u64::MAX] {
            assert!(decode(&message, declared, 64).is_err(), "{declared}");
        }
        let mut decoder =
            Decoder::new(StructuredBody { content_length: length }, Some(message.len() as u64 + 1));
        assert!(decoder.next(&mut Bytes::from(message)).is_err());
    }

    #[test]
    fn a_wrong_checksum_is_told_with_both_values() {
        let (content, _, message) = GOLDEN[1];
        let mut message = bytes_of(message);
        let last = message.len() - 1;
        message[last] ^= 1;
        let refusal = decode(&message, content.len() as u64, 64);
        assert!(matches!(refusal, Err(StructuredRefusal::Crc64Mismatch { .. })));
    }

    #[test]
    fn headers_of_a_structured_body_are_read_or_refused() {
        let body = |structure, length| StructuredBody::parse(structure, length);
        assert_eq!(body(None, Some("5")), Ok(None));
        let known = Ok(Some(StructuredBody { content_length: 5 }));
        assert_eq!(body(Some("XSM/1.0; properties=crc64"), Some("5")), known);
        assert_eq!(body(Some("XSM/1.0;properties=crc64"), Some("5")), known);
        for structure in ["", "XSM/1.0", "XSM/2.0; properties=crc64", "XSM/1.0; properties=md5"] {
            let refusal = StructuredRefusal::UnknownStructure { value: structure.to_owned() };
            assert_eq!(body(Some(structure), Some("5")), Err(refusal));
        }
        let missing = body(Some(StructuredBody::HEADER_VALUE), None);
        assert_eq!(missing, Err(StructuredRefusal::ContentLengthMissing));
        for length in ["", "-1", "x", "18446744073709551616"] {
            let refusal = StructuredRefusal::ContentLengthInvalid { value: length.to_owned() };
            assert_eq!(body(Some(StructuredBody::HEADER_VALUE), Some(length)), Err(refusal));
        }
    }
}
