//! TREE_CONNECT, [MS-SMB2] 2.2.9 and 2.2.10.

use bytes::{BufMut as _, Bytes};

use super::{Body, Malformed, text};

/// A capability of a share: its opens can be persistent.
pub const CONTINUOUS_AVAILABILITY: u32 = 0x10;
pub const SHARE_FLAG_ENCRYPT_DATA: u32 = 0x8000;
/// The path comes after an extension of 3.1.1, not at its offset.
const EXTENSION_PRESENT: u16 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub flags: u16,
    /// `\\server\share`
    pub path: String,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 9)?;
        let flags = body.u16()?;
        let (offset, length) = (body.u16()?, body.u16()?);
        if flags & EXTENSION_PRESENT != 0 {
            // Only clusters use it, and the offset of the path has another base.
            return Err(Malformed);
        }
        let path = text::decode(&body.part(usize::from(offset), usize::from(length))?)?;
        Ok(Self { flags, path })
    }

    /// The last part of the path.
    pub fn share(&self) -> &str {
        self.path.rsplit('\\').next().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ShareType {
    Disk = 1,
    Pipe = 2,
}

#[derive(Clone, Debug)]
pub struct Response {
    pub share_type: ShareType,
    pub share_flags: u32,
    pub capabilities: u32,
    pub maximal_access: u32,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16_le(16);
        out.put_u8(self.share_type as u8);
        out.put_u8(0);
        out.put_u32_le(self.share_flags);
        out.put_u32_le(self.capabilities);
        out.put_u32_le(self.maximal_access);
    }
}

/// Requests without content: LOGOFF, TREE_DISCONNECT, ECHO and CANCEL.
pub fn decode_empty(message: &Bytes) -> Result<(), Malformed> {
    Body::new(message, 4)?.skip(2)
}
