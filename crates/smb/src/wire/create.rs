//! CREATE, [MS-SMB2] 2.2.13 and 2.2.14.

use bytes::{BufMut as _, Bytes};

use super::create_context::{self, RequestContexts, ResponseContext};
use super::cursor::size;
use super::{Body, FileId, HEADER_BYTES, Malformed, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OplockLevel {
    None = 0x00,
    LevelTwo = 0x01,
    Exclusive = 0x08,
    Batch = 0x09,
    /// The lease context has the details.
    Lease = 0xFF,
}

impl OplockLevel {
    /// An unknown level asks for nothing.
    pub fn from_code(code: u8) -> Self {
        match code {
            0x01 => Self::LevelTwo,
            0x08 => Self::Exclusive,
            0x09 => Self::Batch,
            0xFF => Self::Lease,
            _ => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Disposition {
    /// Replaces a file, attributes and all.
    Supersede = 0,
    Open = 1,
    Create = 2,
    OpenIf = 3,
    /// Truncates a file that must exist.
    Overwrite = 4,
    OverwriteIf = 5,
}

impl Disposition {
    fn from_code(code: u32) -> Option<Self> {
        let all = [
            Self::Supersede,
            Self::Open,
            Self::Create,
            Self::OpenIf,
            Self::Overwrite,
            Self::OverwriteIf,
        ];
        all.into_iter().find(|disposition| *disposition as u32 == code)
    }
}

/// Bits of `options`.
pub mod options {
    pub const DIRECTORY_FILE: u32 = 0x0000_0001;
    pub const WRITE_THROUGH: u32 = 0x0000_0002;
    pub const SEQUENTIAL_ONLY: u32 = 0x0000_0004;
    pub const NO_INTERMEDIATE_BUFFERING: u32 = 0x0000_0008;
    pub const SYNCHRONOUS_IO_ALERT: u32 = 0x0000_0010;
    pub const SYNCHRONOUS_IO_NONALERT: u32 = 0x0000_0020;
    pub const NON_DIRECTORY_FILE: u32 = 0x0000_0040;
    pub const CREATE_TREE_CONNECTION: u32 = 0x0000_0080;
    pub const NO_EA_KNOWLEDGE: u32 = 0x0000_0200;
    pub const RANDOM_ACCESS: u32 = 0x0000_0800;
    pub const DELETE_ON_CLOSE: u32 = 0x0000_1000;
    pub const OPEN_BY_FILE_ID: u32 = 0x0000_2000;
    pub const OPEN_FOR_BACKUP_INTENT: u32 = 0x0000_4000;
    pub const NO_COMPRESSION: u32 = 0x0000_8000;
    pub const OPEN_REQUIRING_OPLOCK: u32 = 0x0001_0000;
    pub const RESERVE_OPFILTER: u32 = 0x0010_0000;
    pub const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    pub const OPEN_NO_RECALL: u32 = 0x0040_0000;
}

/// Bits of an access mask.
pub mod access {
    pub const READ_DATA: u32 = 0x0000_0001;
    pub const WRITE_DATA: u32 = 0x0000_0002;
    pub const APPEND_DATA: u32 = 0x0000_0004;
    pub const READ_EA: u32 = 0x0000_0008;
    pub const WRITE_EA: u32 = 0x0000_0010;
    pub const EXECUTE: u32 = 0x0000_0020;
    pub const DELETE_CHILD: u32 = 0x0000_0040;
    pub const READ_ATTRIBUTES: u32 = 0x0000_0080;
    pub const WRITE_ATTRIBUTES: u32 = 0x0000_0100;
    pub const DELETE: u32 = 0x0001_0000;
    pub const READ_CONTROL: u32 = 0x0002_0000;
    pub const WRITE_DAC: u32 = 0x0004_0000;
    pub const WRITE_OWNER: u32 = 0x0008_0000;
    pub const SYNCHRONIZE: u32 = 0x0010_0000;
    pub const ACCESS_SYSTEM_SECURITY: u32 = 0x0100_0000;
    pub const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    pub const GENERIC_EXECUTE: u32 = 0x2000_0000;
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    pub const GENERIC_READ: u32 = 0x8000_0000;
    pub const FILE_ALL: u32 = 0x001F_01FF;
}

/// Bits of `share_access`.
pub mod share {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const DELETE: u32 = 4;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub oplock_level: OplockLevel,
    pub impersonation_level: u32,
    pub desired_access: u32,
    pub file_attributes: u32,
    pub share_access: u32,
    /// `None` if it is not a known one, which is allowed in a reconnect.
    pub disposition: Option<Disposition>,
    pub options: u32,
    /// Relative to the share, parts separated by `\`. Empty is the root.
    pub name: String,
    pub contexts: RequestContexts,
}

impl Request {
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        let mut body = Body::new(message, 57)?;
        body.skip(1)?;
        let oplock_level = OplockLevel::from_code(body.u8()?);
        let impersonation_level = body.u32()?;
        body.skip(16)?;
        let desired_access = body.u32()?;
        let file_attributes = body.u32()?;
        let share_access = body.u32()?;
        let disposition = Disposition::from_code(body.u32()?);
        let options = body.u32()?;
        let (name_offset, name_length) = (body.u16()?, body.u16()?);
        let (contexts_offset, contexts_length) = (body.u32()?, body.u32()?);
        let name = body.part(usize::from(name_offset), usize::from(name_length))?;
        let contexts = body.part(size(contexts_offset), size(contexts_length))?;
        let contexts = RequestContexts::decode(&contexts)?;
        Ok(Self {
            oplock_level,
            impersonation_level,
            desired_access,
            file_attributes,
            share_access,
            disposition,
            options,
            name: text::decode(&name)?,
            contexts,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    Superseded = 0,
    Opened = 1,
    Created = 2,
    Overwritten = 3,
}

/// In units of 100 ns since 1601.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub creation: u64,
    pub last_access: u64,
    pub last_write: u64,
    pub change: u64,
}

impl Times {
    pub fn encode(&self, out: &mut Vec<u8>) {
        for time in [self.creation, self.last_access, self.last_write, self.change] {
            out.put_u64_le(time);
        }
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub oplock_level: OplockLevel,
    pub action: Action,
    pub times: Times,
    pub allocation_size: u64,
    pub end_of_file: u64,
    pub file_attributes: u32,
    pub file_id: FileId,
    pub contexts: Vec<ResponseContext>,
}

impl Response {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16_le(89);
        out.put_u8(self.oplock_level as u8);
        out.put_u8(0);
        out.put_u32_le(self.action as u32);
        self.times.encode(out);
        out.put_u64_le(self.allocation_size);
        out.put_u64_le(self.end_of_file);
        out.put_u32_le(self.file_attributes);
        out.put_u32_le(0);
        self.file_id.encode(out);
        let contexts = create_context::encode(&self.contexts);
        let offset = if contexts.is_empty() { 0 } else { HEADER_BYTES + 88 };
        out.put_u32_le(offset as u32);
        out.put_u32_le(contexts.len() as u32);
        out.extend_from_slice(&contexts);
    }
}
