//! CLOSE, [MS-SMB2] 2.2.15 and 2.2.16.

use bytes::{BufMut as _, Bytes};

use super::create::Times;
use super::{Body, FileId, Malformed};

const POSTQUERY_ATTRIBUTES: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether the answer has the attributes of the file.
    pub wants_attributes: bool,
    pub file_id: FileId,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 24)?;
        let wants_attributes = body.u16()? & POSTQUERY_ATTRIBUTES != 0;
        body.skip(4)?;
        Ok(Self { wants_attributes, file_id: FileId::decode(&mut body)? })
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Response {
    pub attributes: Option<Attributes>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    pub times: Times,
    pub allocation_size: u64,
    pub end_of_file: u64,
    pub file_attributes: u32,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let attributes = self.attributes.unwrap_or_default();
        out.put_u16_le(60);
        out.put_u16_le(if self.attributes.is_some() { POSTQUERY_ATTRIBUTES } else { 0 });
        out.put_u32_le(0);
        attributes.times.encode(out);
        out.put_u64_le(attributes.allocation_size);
        out.put_u64_le(attributes.end_of_file);
        out.put_u32_le(attributes.file_attributes);
    }
}
