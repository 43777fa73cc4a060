//! The header that every message begins with, [MS-SMB2] 2.2.1.

use bitflags::bitflags;
use bytes::BufMut as _;

use super::{Cursor, Malformed};
use crate::status::Status;

pub const HEADER_BYTES: usize = 64;
pub const PROTOCOL: [u8; 4] = [0xFE, b'S', b'M', b'B'];
pub const SIGNATURE_RANGE: std::ops::Range<usize> = 48..64;
/// The id of messages that are not answers: breaks of oplocks and leases.
pub const UNSOLICITED_MESSAGE_ID: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Command {
    Negotiate = 0,
    SessionSetup = 1,
    Logoff = 2,
    TreeConnect = 3,
    TreeDisconnect = 4,
    Create = 5,
    Close = 6,
    Flush = 7,
    Read = 8,
    Write = 9,
    Lock = 10,
    Ioctl = 11,
    Cancel = 12,
    Echo = 13,
    QueryDirectory = 14,
    ChangeNotify = 15,
    QueryInfo = 16,
    SetInfo = 17,
    OplockBreak = 18,
}

impl Command {
    pub const ALL: [Self; 19] = [
        Self::Negotiate,
        Self::SessionSetup,
        Self::Logoff,
        Self::TreeConnect,
        Self::TreeDisconnect,
        Self::Create,
        Self::Close,
        Self::Flush,
        Self::Read,
        Self::Write,
        Self::Lock,
        Self::Ioctl,
        Self::Cancel,
        Self::Echo,
        Self::QueryDirectory,
        Self::ChangeNotify,
        Self::QueryInfo,
        Self::SetInfo,
        Self::OplockBreak,
    ];

    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u32 {
        const RESPONSE = 0x1;
        const ASYNC = 0x2;
        const RELATED = 0x4;
        const SIGNED = 0x8;
        const REPLAY = 0x2000_0000;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub credit_charge: u16,
    /// In a request of SMB 3 the channel sequence, in a response the status.
    pub status: u32,
    /// As numbered on the wire: a command that does not exist still has a header.
    pub command: u16,
    /// Requested in a request, granted in a response.
    pub credits: u16,
    pub flags: Flags,
    /// From this header to the next one of the compound; 0 in the last.
    pub next_command: u32,
    pub message_id: u64,
    pub tree_or_async: TreeOrAsync,
    pub session_id: u64,
    pub signature: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeOrAsync {
    Tree(u32),
    /// The id of a request that was answered as pending.
    Async(u64),
}

impl Header {
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(message);
        if fields.array::<4>()? != PROTOCOL || usize::from(fields.u16()?) != HEADER_BYTES {
            return Err(Malformed);
        }
        let credit_charge = fields.u16()?;
        let status = fields.u32()?;
        let command = fields.u16()?;
        let credits = fields.u16()?;
        let flags = Flags::from_bits_retain(fields.u32()?);
        let next_command = fields.u32()?;
        let message_id = fields.u64()?;
        let tree_or_async = if flags.contains(Flags::ASYNC) {
            TreeOrAsync::Async(fields.u64()?)
        } else {
            fields.skip(4)?;
            TreeOrAsync::Tree(fields.u32()?)
        };
        let session_id = fields.u64()?;
        let signature = fields.array()?;
        Ok(Self {
            credit_charge,
            status,
            command,
            credits,
            flags,
            next_command,
            message_id,
            tree_or_async,
            session_id,
            signature,
        })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PROTOCOL);
        out.put_u16_le(HEADER_BYTES as u16);
        out.put_u16_le(self.credit_charge);
        out.put_u32_le(self.status);
        out.put_u16_le(self.command);
        out.put_u16_le(self.credits);
        out.put_u32_le(self.flags.bits());
        out.put_u32_le(self.next_command);
        out.put_u64_le(self.message_id);
        match self.tree_or_async {
            TreeOrAsync::Tree(tree_id) => {
                out.put_u32_le(0);
                out.put_u32_le(tree_id);
            }
            TreeOrAsync::Async(async_id) => out.put_u64_le(async_id),
        }
        out.put_u64_le(self.session_id);
        out.extend_from_slice(&self.signature);
    }

    pub fn known_command(&self) -> Option<Command> {
        Command::from_code(self.command)
    }

    /// The tree of a request; an asynchronous message has none.
    pub fn tree_id(&self) -> u32 {
        match self.tree_or_async {
            TreeOrAsync::Tree(tree_id) => tree_id,
            TreeOrAsync::Async(_) => 0,
        }
    }

    /// The channel sequence, which SMB 3 clients increment after losing a channel.
    pub fn channel_sequence(&self) -> u16 {
        self.status as u16
    }

    /// The header of the answer to this request.
    pub fn answer(&self, status: Status, credits: u16) -> Self {
        Self {
            status: status.0,
            credits,
            flags: Flags::RESPONSE | self.flags & (Flags::RELATED | Flags::REPLAY),
            next_command: 0,
            signature: [0; 16],
            ..*self
        }
    }
}
