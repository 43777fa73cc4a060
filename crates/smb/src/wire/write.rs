//! WRITE, [MS-SMB2] 2.2.21 and 2.2.22.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Body, FileId, Malformed};

pub const WRITE_THROUGH: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub offset: u64,
    pub file_id: FileId,
    /// A transfer by RDMA, which is not supported.
    pub channel: u32,
    pub flags: u32,
    /// A slice of the message.
    pub data: Bytes,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 49)?;
        let data_offset = body.u16()?;
        let data_length = body.u32()?;
        let offset = body.u64()?;
        let file_id = FileId::decode(&mut body)?;
        let channel = body.u32()?;
        body.skip(8)?;
        let flags = body.u32()?;
        let data = body.part(usize::from(data_offset), size(data_length))?;
        Ok(Self { offset, file_id, channel, flags, data })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Response {
    pub count: u32,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16_le(17);
        out.put_u16_le(0);
        out.put_u32_le(self.count);
        out.put_u32_le(0);
        out.put_u32_le(0);
    }
}
