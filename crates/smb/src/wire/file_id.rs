//! The id of an open on the wire.

use bytes::BufMut as _;

use super::{Cursor, Malformed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Survives the connection when the open is durable.
    pub persistent: u64,
    pub volatile: u64,
}

impl FileId {
    /// In a related request of a compound: the open of the request before.
    pub const RELATED: Self = Self { persistent: u64::MAX, volatile: u64::MAX };

    pub fn decode(fields: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { persistent: fields.u64()?, volatile: fields.u64()? })
    }

    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u64_le(self.persistent);
        out.put_u64_le(self.volatile);
    }
}
