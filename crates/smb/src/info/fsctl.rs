//! Inputs and outputs of the control codes for files, [MS-FSCC] 2.3 and [MS-SMB2] 2.2.31 and 2.2.32.

use bytes::BufMut as _;

use super::Output;
use crate::status::Status;
use crate::wire::{Cursor, Malformed, text};

/// The limits of a server-side copy in one request.
pub mod copy_limits {
    pub const CHUNKS_MAX: u32 = 256;
    pub const CHUNK_BYTES_MAX: u32 = 1024 * 1024;
    pub const TOTAL_BYTES_MAX: u32 = 16 * 1024 * 1024;
}

/// SRV_COPYCHUNK_RESPONSE: what was done; or the limits, if too much was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyOutcome {
    pub chunks: u32,
    /// Bytes of a partly written chunk.
    pub chunk_bytes: u32,
    pub total_bytes: u32,
}

impl CopyOutcome {
    pub const BYTES: usize = 12;
    pub const LIMITS: Self = Self {
        chunks: copy_limits::CHUNKS_MAX,
        chunk_bytes: copy_limits::CHUNK_BYTES_MAX,
        total_bytes: copy_limits::TOTAL_BYTES_MAX,
    };

    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::BYTES);
        out.put_u32_le(self.chunks);
        out.put_u32_le(self.chunk_bytes);
        out.put_u32_le(self.total_bytes);
        out
    }
}

/// SRV_REQUEST_RESUME_KEY, with an empty context and the padding of Windows.
pub fn resume_key(key: [u8; 24], limit: usize) -> Result<Vec<u8>, Status> {
    const BYTES: usize = 32;
    if limit < BYTES {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut out = key.to_vec();
    out.resize(BYTES, 0);
    Ok(out)
}

/// SRV_SNAPSHOT_ARRAY: their number and, if all of them fit, their tokens, each ended by a zero, and
/// another zero after the last.
pub fn snapshots(tokens: &[String], limit: usize) -> Result<Vec<u8>, Status> {
    const HEAD_BYTES: usize = 12;
    const LIMIT_MIN: usize = 16;
    if limit < LIMIT_MIN {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut names = Vec::new();
    for token in tokens {
        text::append(token, &mut names);
        names.put_u16_le(0);
    }
    names.put_u16_le(0);
    let all_fit = HEAD_BYTES + names.len() <= limit;
    let mut out = Vec::with_capacity(HEAD_BYTES + names.len());
    out.put_u32_le(tokens.len() as u32);
    out.put_u32_le(if all_fit { tokens.len() as u32 } else { 0 });
    out.put_u32_le(names.len() as u32);
    if all_fit {
        out.extend_from_slice(&names);
    } else {
        out.put_u32_le(0);
    }
    Ok(out)
}

/// A range of a file, as in [MS-FSCC]: signed numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    pub end: u64,
}

/// FILE_ALLOCATED_RANGE_BUFFER as input: an offset and a length.
pub fn asked_range(input: &[u8]) -> Result<Span, Status> {
    let (offset, length) = two_numbers(input)?;
    let end = offset.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    end.map(|end| Span { offset, end }).ok_or(Status::INVALID_PARAMETER)
}

/// FILE_ZERO_DATA_INFORMATION: an offset, and the offset after the end.
pub fn zeroed_range(input: &[u8]) -> Result<Span, Status> {
    let (offset, end) = two_numbers(input)?;
    if offset <= end { Ok(Span { offset, end }) } else { Err(Status::INVALID_PARAMETER) }
}

fn two_numbers(input: &[u8]) -> Result<(u64, u64), Status> {
    let mut fields = Cursor::new(input);
    let mut number = || -> Result<u64, Status> {
        let value = fields.u64().map_err(|Malformed| Status::INVALID_PARAMETER)?;
        i64::try_from(value).map(|_| value).map_err(|_| Status::INVALID_PARAMETER)
    };
    Ok((number()?, number()?))
}

/// FILE_ALLOCATED_RANGE_BUFFER as output: as many as fit.
pub fn allocated_ranges(ranges: &[Span], limit: usize) -> Result<Output, Status> {
    const BYTES: usize = 16;
    let room = limit / BYTES;
    if room == 0 && !ranges.is_empty() {
        return Err(Status::BUFFER_TOO_SMALL);
    }
    let mut bytes = Vec::with_capacity(ranges.len().min(room) * BYTES);
    for range in ranges.iter().take(room) {
        bytes.put_u64_le(range.offset);
        bytes.put_u64_le(range.end - range.offset);
    }
    let status = if ranges.len() > room { Status::BUFFER_OVERFLOW } else { Status::SUCCESS };
    Ok(Output { bytes, status })
}

/// FILE_SET_SPARSE_BUFFER: whether to set sparse; without a buffer, yes.
pub fn sparse(input: &[u8]) -> bool {
    input.first().is_none_or(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(one: i64, two: i64) -> Vec<u8> {
        [one.to_le_bytes(), two.to_le_bytes()].concat()
    }

    #[test]
    fn snapshots_are_counted_first_and_then_told() {
        let tokens = vec!["@GMT-2024.01.31-12.34.56".to_owned(); 2];
        let head = snapshots(&tokens, 16).expect("a head");
        assert_eq!(head[..12], [2, 0, 0, 0, 0, 0, 0, 0, 102, 0, 0, 0]);
        let whole = snapshots(&tokens, 114).expect("all");
        assert_eq!((whole.len(), whole[4]), (114, 2));
        assert_eq!(snapshots(&[], 16).expect("none")[8], 2);
        assert_eq!(snapshots(&tokens, 15), Err(Status::INVALID_PARAMETER));
    }

    #[test]
    fn ranges_have_no_negative_numbers_and_end_after_they_begin() {
        assert_eq!(asked_range(&numbers(5, 10)), Ok(Span { offset: 5, end: 15 }));
        assert_eq!(zeroed_range(&numbers(5, 10)), Ok(Span { offset: 5, end: 10 }));
        let refused = Err(Status::INVALID_PARAMETER);
        assert_eq!(zeroed_range(&numbers(10, 5)), refused);
        for input in [numbers(-1, 1), numbers(1, -1), numbers(i64::MAX, 1), vec![0; 15]] {
            assert_eq!(asked_range(&input), refused, "{input:?}");
        }
    }

    #[test]
    fn allocated_ranges_are_told_as_far_as_there_is_room() {
        let ranges = [Span { offset: 0, end: 1 }, Span { offset: 4, end: 8 }];
        let all = allocated_ranges(&ranges, 32).expect("all");
        assert_eq!((all.status, all.bytes[24]), (Status::SUCCESS, 4));
        let one = allocated_ranges(&ranges, 31).expect("one");
        assert_eq!((one.status, one.bytes.len()), (Status::BUFFER_OVERFLOW, 16));
        assert_eq!(allocated_ranges(&ranges, 15), Err(Status::BUFFER_TOO_SMALL));
        assert_eq!(allocated_ranges(&[], 0).map(|output| output.bytes), Ok(Vec::new()));
    }

    #[test]
    fn keys_and_limits_have_their_lengths() {
        assert_eq!(resume_key([7; 24], 32).map(|key| key.len()), Ok(32));
        assert_eq!(resume_key([7; 24], 31), Err(Status::INVALID_PARAMETER));
        assert_eq!(CopyOutcome::LIMITS.encode().len(), CopyOutcome::BYTES);
        assert!(sparse(&[]) && sparse(&[1]) && !sparse(&[0]));
    }
}
