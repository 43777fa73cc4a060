//! QUERY_INFO, [MS-SMB2] 2.2.37 and 2.2.38.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Body, FileId, HEADER_BYTES, Malformed};

/// The kinds of information classes.
pub mod kind {
    pub const FILE: u8 = 1;
    pub const FILE_SYSTEM: u8 = 2;
    pub const SECURITY: u8 = 3;
    pub const QUOTA: u8 = 4;
}

/// Parts of a security descriptor, in `additional`.
pub mod security {
    pub const OWNER: u32 = 1;
    pub const GROUP: u32 = 2;
    pub const DACL: u32 = 4;
    pub const SACL: u32 = 8;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One of [`kind`].
    pub kind: u8,
    pub class: u8,
    pub output_bytes_max: u32,
    pub additional: u32,
    pub flags: u32,
    pub file_id: FileId,
    pub input: Bytes,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 41)?;
        let kind = body.u8()?;
        let class = body.u8()?;
        let output_bytes_max = body.u32()?;
        let input_offset = body.u16()?;
        body.skip(2)?;
        let input_length = body.u32()?;
        let additional = body.u32()?;
        let flags = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        let input = body.part(usize::from(input_offset), size(input_length))?;
        Ok(Self { kind, class, output_bytes_max, additional, flags, file_id, input })
    }
}

/// The answer to QUERY_INFO, QUERY_DIRECTORY and CHANGE_NOTIFY.
pub fn encode_output(output: &[u8], out: &mut Vec<u8>) {
    out.put_u16_le(9);
    out.put_u16_le((HEADER_BYTES + 8) as u16);
    out.put_u32_le(output.len() as u32);
    out.extend_from_slice(output);
}
