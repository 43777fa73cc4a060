//! READ, [MS-SMB2] 2.2.19 and 2.2.20.

use bytes::{BufMut as _, Bytes};

use super::{Body, FileId, HEADER_BYTES, Malformed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u8,
    pub length: u32,
    pub offset: u64,
    pub file_id: FileId,
    /// Fewer bytes than this are answered as the end of the file.
    pub minimum_count: u32,
    /// A transfer by RDMA, which is not supported.
    pub channel: u32,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 49)?;
        body.skip(1)?;
        let flags = body.u8()?;
        let length = body.u32()?;
        let offset = body.u64()?;
        let file_id = FileId::decode(&mut body)?;
        let minimum_count = body.u32()?;
        let channel = body.u32()?;
        body.skip(8)?;
        Ok(Self { flags, length, offset, file_id, minimum_count, channel })
    }
}

/// Where the data begins: right after this fixed part.
pub const DATA_OFFSET: usize = HEADER_BYTES + 16;

/// The fixed part; the data follows it.
pub fn encode_head(data_length: u32, out: &mut Vec<u8>) {
    out.put_u16_le(17);
    out.put_u8(DATA_OFFSET as u8);
    out.put_u8(0);
    out.put_u32_le(data_length);
    out.put_u32_le(0);
    out.put_u32_le(0);
}
