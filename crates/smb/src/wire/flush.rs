//! FLUSH, [MS-SMB2] 2.2.17. The answer is empty.

use bytes::Bytes;

use super::{Body, FileId, Malformed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub file_id: FileId,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 24)?;
        body.skip(6)?;
        Ok(Self { file_id: FileId::decode(&mut body)? })
    }
}
