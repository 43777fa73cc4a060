//! SET_INFO, [MS-SMB2] 2.2.39 and 2.2.40.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Body, FileId, Malformed};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// One of [`super::query_info::kind`].
    pub kind: u8,
    pub class: u8,
    pub additional: u32,
    pub file_id: FileId,
    pub data: Bytes,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 33)?;
        let kind = body.u8()?;
        let class = body.u8()?;
        let data_length = body.u32()?;
        let data_offset = body.u16()?;
        body.skip(2)?;
        let additional = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        let data = body.part(usize::from(data_offset), size(data_length))?;
        Ok(Self { kind, class, additional, file_id, data })
    }
}

pub fn encode_response(out: &mut Vec<u8>) {
    out.put_u16_le(2);
}
