//! The header of an encrypted message, [MS-SMB2] 2.2.41.

use bytes::BufMut as _;

use super::{Cursor, Malformed};

pub const PROTOCOL: [u8; 4] = [0xFD, b'S', b'M', b'B'];
pub const TRANSFORM_BYTES: usize = 52;
/// What the authentication tag covers besides the message: nonce to session.
pub const AUTHENTICATED_RANGE: std::ops::Range<usize> = 20..TRANSFORM_BYTES;
pub const SIGNATURE_RANGE: std::ops::Range<usize> = 4..20;
const ENCRYPTED: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    pub signature: [u8; 16],
    /// CCM uses 11 bytes of it and GCM 12.
    pub nonce: [u8; 16],
    pub message_bytes: u32,
    pub session_id: u64,
}

impl Transform {
    pub fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(packet);
        if fields.array::<4>()? != PROTOCOL {
            return Err(Malformed);
        }
        let signature = fields.array()?;
        let nonce = fields.array()?;
        let message_bytes = fields.u32()?;
        fields.skip(2)?;
        let is_encrypted = fields.u16()? == ENCRYPTED;
        let session_id = fields.u64()?;
        if !is_encrypted || fields.rest().len() as u64 != u64::from(message_bytes) {
            return Err(Malformed);
        }
        Ok(Self { signature, nonce, message_bytes, session_id })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PROTOCOL);
        out.extend_from_slice(&self.signature);
        out.extend_from_slice(&self.nonce);
        out.put_u32_le(self.message_bytes);
        out.put_u16_le(0);
        out.put_u16_le(ENCRYPTED);
        out.put_u64_le(self.session_id);
    }
}
