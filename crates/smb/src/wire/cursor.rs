//! Reading little-endian fields with every bound checked.

use bytes::Bytes;

use super::header::HEADER_BYTES;

/// The bytes are not a valid message of their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads the fields of a slice in order.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn skip(&mut self, length: usize) -> Result<(), Malformed> {
        self.bytes(length).map(|_| ())
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }
}

/// The body of a request: its fixed fields in order, and the variable parts that they point to by
/// an offset from the start of the header.
#[derive(Clone, Debug)]
pub struct Body<'a> {
    message: &'a Bytes,
    fields: Cursor<'a>,
}

impl<'a> Body<'a> {
    /// `message` begins with its header. `structure_size` is the required value of the first field.
    pub fn new(message: &'a Bytes, structure_size: u16) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(message);
        fields.skip(HEADER_BYTES)?;
        if fields.u16()? == structure_size { Ok(Self { message, fields }) } else { Err(Malformed) }
    }

    /// The bytes after the fields that have been read.
    pub fn rest(&self) -> &'a [u8] {
        self.fields.rest()
    }

    /// A variable part. An empty one may point anywhere; any other must come after the fixed fields
    /// read so far.
    pub fn part(&self, offset: usize, length: usize) -> Result<Bytes, Malformed> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let fixed_end = self.message.len() - self.fields.rest().len();
        let end = offset.checked_add(length).ok_or(Malformed)?;
        if offset < fixed_end || end > self.message.len() {
            return Err(Malformed);
        }
        Ok(self.message.slice(offset..end))
    }
}

impl<'a> std::ops::Deref for Body<'a> {
    type Target = Cursor<'a>;

    fn deref(&self) -> &Cursor<'a> {
        &self.fields
    }
}

impl std::ops::DerefMut for Body<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.fields
    }
}

/// Lengths and offsets of the wire as sizes of memory.
pub fn size(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
