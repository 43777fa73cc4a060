//! The contexts of CREATE, [MS-SMB2] 2.2.13.2 and 2.2.14.2.

use bytes::{BufMut as _, Bytes};

use super::cursor::size;
use super::{Cursor, FileId, Malformed, pad};

/// More than there are kinds.
const CONTEXTS_MAX: usize = 32;

/// What a client asks for with an open. Kinds that are not known are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContexts {
    /// MxAc: return the maximum access.
    pub maximal_access: bool,
    /// QFid: return the number of the file.
    pub query_on_disk_id: bool,
    /// AlSi, in bytes.
    pub allocation_size: Option<u64>,
    /// RqLs
    pub lease: Option<Lease>,
    /// DHnQ
    pub durable: bool,
    /// DHnC
    pub durable_reconnect: Option<FileId>,
    /// DH2Q
    pub durable_v2: Option<DurableV2>,
    /// DH2C
    pub durable_reconnect_v2: Option<DurableReconnectV2>,
    /// TWrp: open the state at this time, in units of 100 ns since 1601.
    pub timewarp: Option<u64>,
    /// SecD: a security descriptor, self-relative.
    pub security_descriptor: Option<Bytes>,
    /// ExtA: extended attributes, which are not stored here.
    pub extended_attributes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub key: [u8; 16],
    /// Bits of [`lease_state`].
    pub state: u32,
    pub flags: u32,
    /// Fields of version 2 only.
    pub v2: Option<LeaseV2>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    pub parent_key: [u8; 16],
    pub epoch: u16,
}

pub mod lease_state {
    pub const READ: u32 = 1;
    pub const HANDLE: u32 = 2;
    pub const WRITE: u32 = 4;
}

pub mod lease_flags {
    pub const BREAK_IN_PROGRESS: u32 = 2;
    pub const PARENT_KEY_SET: u32 = 4;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableV2 {
    pub timeout_milliseconds: u32,
    pub persistent: bool,
    pub create_guid: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnectV2 {
    pub file_id: FileId,
    pub create_guid: [u8; 16],
    pub persistent: bool,
}

const PERSISTENT: u32 = 2;

impl RequestContexts {
    pub fn decode(bytes: &Bytes) -> Result<Self, Malformed> {
        let mut contexts = Self::default();
        if bytes.is_empty() {
            return Ok(contexts);
        }
        let mut start = 0;
        for _ in 0..CONTEXTS_MAX {
            let rest = bytes.get(start..).ok_or(Malformed)?;
            let next = size(Cursor::new(rest).u32()?);
            let end = if next == 0 { bytes.len() } else { start + next };
            if end > bytes.len() || !next.is_multiple_of(8) {
                return Err(Malformed);
            }
            contexts.add(&bytes.slice(start..end))?;
            if next == 0 {
                return Ok(contexts);
            }
            start = end;
        }
        Err(Malformed)
    }

    fn add(&mut self, context: &Bytes) -> Result<(), Malformed> {
        let mut fields = Cursor::new(context);
        fields.skip(4)?;
        let (name_offset, name_length) = (fields.u16()?, fields.u16()?);
        fields.skip(2)?;
        let (data_offset, data_length) = (fields.u16()?, fields.u32()?);
        let name = part(context, usize::from(name_offset), usize::from(name_length))?;
        let data = part(context, usize::from(data_offset), size(data_length))?;
        let mut fields = Cursor::new(&data);
        match &name[..] {
            b"MxAc" => self.maximal_access = true,
            b"QFid" => self.query_on_disk_id = true,
            b"AlSi" => self.allocation_size = Some(fields.u64()?),
            b"RqLs" => self.lease = Some(Lease::decode(&data)?),
            b"DHnQ" => self.durable = true,
            b"DHnC" => self.durable_reconnect = Some(FileId::decode(&mut fields)?),
            b"DH2Q" => {
                let timeout_milliseconds = fields.u32()?;
                let persistent = fields.u32()? & PERSISTENT != 0;
                fields.skip(8)?;
                let create_guid = fields.array()?;
                self.durable_v2 = Some(DurableV2 { timeout_milliseconds, persistent, create_guid });
            }
            b"DH2C" => {
                let file_id = FileId::decode(&mut fields)?;
                let create_guid = fields.array()?;
                let persistent = fields.u32()? & PERSISTENT != 0;
                self.durable_reconnect_v2 =
                    Some(DurableReconnectV2 { file_id, create_guid, persistent });
            }
            b"TWrp" => self.timewarp = Some(fields.u64()?),
            b"SecD" => self.security_descriptor = Some(data),
            b"ExtA" => self.extended_attributes = true,
            _ => {}
        }
        Ok(())
    }
}

/// A slice of a context, after its fixed fields.
fn part(context: &Bytes, offset: usize, length: usize) -> Result<Bytes, Malformed> {
    const FIXED: usize = 16;
    if length == 0 {
        return Ok(Bytes::new());
    }
    let end = offset.checked_add(length).ok_or(Malformed)?;
    if offset < FIXED || end > context.len() {
        return Err(Malformed);
    }
    Ok(context.slice(offset..end))
}

impl Lease {
    const V1_BYTES: usize = 32;
    const V2_BYTES: usize = 52;

    fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(data);
        let key = fields.array()?;
        let (state, flags) = (fields.u32()?, fields.u32()?);
        fields.skip(8)?;
        let v2 = match data.len() {
            Self::V1_BYTES => None,
            Self::V2_BYTES.. => {
                let parent_key = fields.array()?;
                Some(LeaseV2 { parent_key, epoch: fields.u16()? })
            }
            _ => return Err(Malformed),
        };
        Ok(Self { key, state, flags, v2 })
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::V2_BYTES);
        out.extend_from_slice(&self.key);
        out.put_u32_le(self.state);
        out.put_u32_le(self.flags);
        out.put_u64_le(0);
        if let Some(v2) = &self.v2 {
            out.extend_from_slice(&v2.parent_key);
            out.put_u16_le(v2.epoch);
            out.put_u16_le(0);
        }
        out
    }
}

/// A context in the answer to a CREATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseContext {
    MaximalAccess { status: u32, access: u32 },
    OnDiskId { file: u64, volume: u64 },
    Lease(Lease),
    Durable,
    DurableV2 { timeout_milliseconds: u32, persistent: bool },
}

impl ResponseContext {
    fn name(&self) -> &'static [u8; 4] {
        match self {
            Self::MaximalAccess { .. } => b"MxAc",
            Self::OnDiskId { .. } => b"QFid",
            Self::Lease(_) => b"RqLs",
            Self::Durable => b"DHnQ",
            Self::DurableV2 { .. } => b"DH2Q",
        }
    }

    fn data(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::MaximalAccess { status, access } => {
                out.put_u32_le(*status);
                out.put_u32_le(*access);
            }
            Self::OnDiskId { file, volume } => {
                out.put_u64_le(*file);
                out.put_u64_le(*volume);
                out.resize(32, 0);
            }
            Self::Lease(lease) => out = lease.encode(),
            Self::Durable => out.put_u64_le(0),
            Self::DurableV2 { timeout_milliseconds, persistent } => {
                out.put_u32_le(*timeout_milliseconds);
                out.put_u32_le(if *persistent { PERSISTENT } else { 0 });
            }
        }
        out
    }
}

pub fn encode(contexts: &[ResponseContext]) -> Vec<u8> {
    const NAME_OFFSET: u16 = 16;
    const DATA_OFFSET: u16 = 24;
    let mut out = Vec::new();
    for (index, context) in contexts.iter().enumerate() {
        let start = out.len();
        let data = context.data();
        let length = (usize::from(DATA_OFFSET) + data.len()).next_multiple_of(8);
        let is_last = index + 1 == contexts.len();
        out.put_u32_le(if is_last { 0 } else { length as u32 });
        out.put_u16_le(NAME_OFFSET);
        out.put_u16_le(4);
        out.put_u16_le(0);
        out.put_u16_le(DATA_OFFSET);
        out.put_u32_le(data.len() as u32);
        out.extend_from_slice(context.name());
        out.put_u32_le(0);
        out.extend_from_slice(&data);
        if !is_last {
            pad(&mut out, start, 8);
        }
    }
    out
}
