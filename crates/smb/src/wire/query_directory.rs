//! QUERY_DIRECTORY, [MS-SMB2] 2.2.33. The answer is that of [`super::query_info`].

use bytes::Bytes;

use super::{Body, FileId, Malformed, text};

pub const RESTART_SCANS: u8 = 0x01;
pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
pub const INDEX_SPECIFIED: u8 = 0x04;
pub const REOPEN: u8 = 0x10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The form of the entries.
    pub class: u8,
    pub flags: u8,
    pub file_index: u32,
    pub file_id: FileId,
    pub pattern: String,
    pub output_bytes_max: u32,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 33)?;
        let class = body.u8()?;
        let flags = body.u8()?;
        let file_index = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        let (pattern_offset, pattern_length) = (body.u16()?, body.u16()?);
        let output_bytes_max = body.u32()?;
        let pattern = body.part(usize::from(pattern_offset), usize::from(pattern_length))?;
        let pattern = text::decode(&pattern)?;
        Ok(Self { class, flags, file_index, file_id, pattern, output_bytes_max })
    }
}
