//! Puts an answer into the structured form.

use bytes::{BufMut, Bytes, BytesMut};
use crc_fast::Digest as Crc64;

use super::digests::new_crc64;
use super::structured_body::{
    CRC64_BYTES, FLAG_CRC64, MESSAGE_HEADER_BYTES, SEGMENT_HEADER_BYTES, VERSION,
};

/// As in the SDKs; longer contents get longer segments, since segment numbers have 16 bits.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Writes the structure around a content of known length while it is sent.
pub struct Encoder {
    content_left: u64,
    segment_bytes: u64,
    segments: u16,
    segment: u16,
    segment_left: u64,
    segment_crc64: Crc64,
    content_crc64: Crc64,
    message_length: u64,
}

impl Encoder {
    pub fn new(content_length: u64) -> Self {
        Self::with_segments_of(content_length, SEGMENT_BYTES)
    }

    fn with_segments_of(content_length: u64, bytes: u64) -> Self {
        let segment_bytes = bytes.max(content_length.div_ceil(u64::from(u16::MAX)));
        let segments = content_length.div_ceil(segment_bytes).clamp(1, u64::from(u16::MAX));
        let around = segments * (SEGMENT_HEADER_BYTES + CRC64_BYTES) as u64;
        Self {
            content_left: content_length,
            segment_bytes,
            segments: segments as u16,
            segment: 0,
            segment_left: 0,
            segment_crc64: new_crc64(),
            content_crc64: new_crc64(),
            message_length: content_length + around + (MESSAGE_HEADER_BYTES + CRC64_BYTES) as u64,
        }
    }

    /// The Content-Length of the answer.
    pub fn message_length(&self) -> u64 {
        self.message_length
    }

    /// The first bytes of the message; called once, before the content.
    pub fn start(&mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(MESSAGE_HEADER_BYTES + SEGMENT_HEADER_BYTES);
        out.put_u8(VERSION);
        out.put_u64_le(self.message_length);
        out.put_u16_le(FLAG_CRC64);
        out.put_u16_le(self.segments);
        self.open_segment(&mut out);
        if self.content_left == 0 {
            self.close_segment(&mut out);
        }
        out.freeze()
    }

    /// Takes from `content` what fits the current segment: returns that piece and the bytes of the
    /// structure after it, possibly none. Called until `content` is empty.
    ///
    /// # Panics
    ///
    /// If there is more content than was announced.
    pub fn next(&mut self, content: &mut Bytes) -> (Bytes, Bytes) {
        let fit = usize::try_from(self.segment_left).unwrap_or(usize::MAX).min(content.len());
        let piece = content.split_to(fit);
        assert!(fit > 0 || content.is_empty(), "there is more content than was announced");
        self.segment_left -= fit as u64;
        self.content_left -= fit as u64;
        self.segment_crc64.update(&piece);
        self.content_crc64.update(&piece);
        let mut behind = BytesMut::new();
        if fit > 0 && self.segment_left == 0 {
            self.close_segment(&mut behind);
        }
        (piece, behind.freeze())
    }

    fn open_segment(&mut self, out: &mut BytesMut) {
        self.segment += 1;
        self.segment_left = self.content_left.min(self.segment_bytes);
        out.put_u16_le(self.segment);
        out.put_u64_le(self.segment_left);
    }

    fn close_segment(&mut self, out: &mut BytesMut) {
        out.put_u64_le(self.segment_crc64.finalize_reset());
        if self.segment < self.segments {
            self.open_segment(out);
        } else {
            out.put_u64_le(self.content_crc64.finalize());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::structured_body::tests::{GOLDEN, bytes_of};
    use super::*;

    #[test]
    fn messages_are_those_of_the_sdk_whatever_the_chunks() {
        for (content, segment_bytes, message) in GOLDEN {
            let message = bytes_of(message);
            for chunk in 1..=12 {
                let mut encoder = Encoder::with_segments_of(content.len() as u64, segment_bytes);
                assert_eq!(encoder.message_length(), message.len() as u64);
                let mut encoded = encoder.start().to_vec();
                for chunk in content.as_bytes().chunks(chunk) {
                    let mut chunk = Bytes::copy_from_slice(chunk);
                    while !chunk.is_empty() {
                        let (piece, behind) = encoder.next(&mut chunk);
                        encoded.extend_from_slice(&piece);
                        encoded.extend_from_slice(&behind);
                    }
                }
                assert_eq!(encoded, message, "{content} by {chunk}");
            }
        }
    }

    #[test]
    fn the_number_of_segments_always_fits_its_field() {
        for length in [0, 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 1 << 40, (1 << 60) + 7] {
            let encoder = Encoder::new(length);
            let capacity = u64::from(encoder.segments) * encoder.segment_bytes;
            assert!(capacity >= length && encoder.segments >= 1, "{length}");
        }
    }
}
