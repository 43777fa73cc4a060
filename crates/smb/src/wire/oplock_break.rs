//! OPLOCK_BREAK: notifications of the server and acknowledgements of clients, [MS-SMB2] 2.2.23 to
//! 2.2.25, for oplocks and leases.

use bytes::{BufMut as _, Bytes};

use super::create::OplockLevel;
use super::{Body, Cursor, FileId, HEADER_BYTES, Malformed};

const OPLOCK_BYTES: u16 = 24;
const LEASE_BYTES: u16 = 36;
const LEASE_NOTIFICATION_BYTES: u16 = 44;
const ACKNOWLEDGE_REQUIRED: u32 = 1;

/// An acknowledgement of a client; its answer has the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    Oplock { level: u8, file_id: FileId },
    Lease { key: [u8; 16], state: u32 },
}

impl Acknowledgement {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(message);
        fields.skip(HEADER_BYTES)?;
        if fields.u16()? == LEASE_BYTES {
            let mut body = Body::new(message, LEASE_BYTES)?;
            body.skip(6)?;
            let key = body.array()?;
            let state = body.u32()?;
            body.skip(8)?;
            return Ok(Self::Lease { key, state });
        }
        let mut body = Body::new(message, OPLOCK_BYTES)?;
        let level = body.u8()?;
        body.skip(5)?;
        Ok(Self::Oplock { level, file_id: FileId::decode(&mut body)? })
    }

    pub fn encode_response(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock { level, file_id } => encode_oplock(*level, *file_id, out),
            Self::Lease { key, state } => {
                out.put_u16_le(LEASE_BYTES);
                out.put_u16_le(0);
                out.put_u32_le(0);
                out.extend_from_slice(key);
                out.put_u32_le(*state);
                out.put_u64_le(0);
            }
        }
    }
}

/// A notification of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    Oplock { level: OplockLevel, file_id: FileId },
    Lease(LeaseBreak),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// 0 for a lease of version 1.
    pub epoch: u16,
    pub acknowledge_required: bool,
    pub key: [u8; 16],
    pub current_state: u32,
    pub new_state: u32,
}

impl Notification {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock { level, file_id } => encode_oplock(*level as u8, *file_id, out),
            Self::Lease(lease) => {
                out.put_u16_le(LEASE_NOTIFICATION_BYTES);
                out.put_u16_le(lease.epoch);
                out.put_u32_le(if lease.acknowledge_required { ACKNOWLEDGE_REQUIRED } else { 0 });
                out.extend_from_slice(&lease.key);
                out.put_u32_le(lease.current_state);
                out.put_u32_le(lease.new_state);
                out.put_u32_le(0);
                out.put_u32_le(0);
                out.put_u32_le(0);
            }
        }
    }
}

fn encode_oplock(level: u8, file_id: FileId, out: &mut Vec<u8>) {
    out.put_u16_le(OPLOCK_BYTES);
    out.put_u8(level);
    out.put_u8(0);
    out.put_u32_le(0);
    file_id.encode(out);
}
