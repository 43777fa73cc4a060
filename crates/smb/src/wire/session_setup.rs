//! SESSION_SETUP, [MS-SMB2] 2.2.5 and 2.2.6.

use bytes::{BufMut as _, Bytes};

use super::{Body, HEADER_BYTES, Malformed};

/// In `flags` of a request: another channel of a session.
pub const BINDING: u8 = 1;

/// In `flags` of a response.
pub const SESSION_IS_GUEST: u16 = 1;
pub const SESSION_IS_NULL: u16 = 2;
/// Everything in this session must be encrypted.
pub const SESSION_ENCRYPTS: u16 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u8,
    pub security_mode: u8,
    pub capabilities: u32,
    /// An earlier session of the same client, to be ended when this one succeeds.
    pub previous_session_id: u64,
    pub security_token: Bytes,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 25)?;
        let flags = body.u8()?;
        let security_mode = body.u8()?;
        let capabilities = body.u32()?;
        body.skip(4)?;
        let (offset, length) = (body.u16()?, body.u16()?);
        let previous_session_id = body.u64()?;
        let security_token = body.part(usize::from(offset), usize::from(length))?;
        Ok(Self { flags, security_mode, capabilities, previous_session_id, security_token })
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub flags: u16,
    pub security_token: Vec<u8>,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16_le(9);
        out.put_u16_le(self.flags);
        out.put_u16_le((HEADER_BYTES + 8) as u16);
        out.put_u16_le(self.security_token.len() as u16);
        out.extend_from_slice(&self.security_token);
    }
}
