//! LOCK, [MS-SMB2] 2.2.26. The answer is empty.

use bytes::Bytes;

use super::{Body, FileId, Malformed};

pub const SHARED: u32 = 1;
pub const EXCLUSIVE: u32 = 2;
pub const UNLOCK: u32 = 4;
pub const FAIL_IMMEDIATELY: u32 = 0x10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The lock sequence of a resilient open: a number in 4 bits and an index in 28.
    pub sequence: u32,
    pub file_id: FileId,
    /// At least one.
    pub elements: Vec<Element>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub offset: u64,
    pub length: u64,
    pub flags: u32,
}

impl Element {
    const BYTES: usize = 24;
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 48)?;
        let count = usize::from(body.u16()?);
        let sequence = body.u32()?;
        let file_id = FileId::decode(&mut body)?;
        if count == 0 || body.rest().len() / Element::BYTES < count {
            return Err(Malformed);
        }
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            let (offset, length, flags) = (body.u64()?, body.u64()?, body.u32()?);
            body.skip(4)?;
            elements.push(Element { offset, length, flags });
        }
        Ok(Self { sequence, file_id, elements })
    }
}
