//! The encoding of arguments and results of remote calls, [C706] chapter 14: values are aligned to
//! their size, and targets of pointers follow the structure that holds the pointers.

use bytes::BufMut as _;

use crate::wire::{Malformed, text};

/// Reads arguments.
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.position = self.position.next_multiple_of(4);
        let rest = self.bytes.get(self.position..).ok_or(Malformed)?;
        let value = rest.first_chunk().ok_or(Malformed)?;
        self.position += 4;
        Ok(u32::from_le_bytes(*value))
    }

    /// A text without its terminating zero.
    pub fn string(&mut self) -> Result<String, Malformed> {
        let _room = self.u32()?;
        let offset = self.u32()?;
        let units = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        let bytes = units.checked_mul(2).ok_or(Malformed)?;
        let end = self.position.checked_add(bytes).ok_or(Malformed)?;
        let content = self.bytes.get(self.position..end).ok_or(Malformed)?;
        if offset != 0 {
            return Err(Malformed);
        }
        self.position = end;
        let text = text::decode(content)?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    /// The target of a pointer, if it is not null.
    pub fn optional_string(&mut self) -> Result<Option<String>, Malformed> {
        if self.u32()? == 0 { Ok(None) } else { self.string().map(Some) }
    }
}

/// Writes results.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
    pointers: u32,
}

impl Writer {
    pub fn u32(&mut self, value: u32) {
        self.out.resize(self.out.len().next_multiple_of(4), 0);
        self.out.put_u32_le(value);
    }

    /// A pointer that is not null; its target is written later.
    pub fn pointer(&mut self) {
        self.pointers += 4;
        self.u32(0x0002_0000 + self.pointers);
    }

    pub fn string(&mut self, value: &str) {
        let units = (text::encoded_length(value) / 2 + 1) as u32;
        self.u32(units);
        self.u32(0);
        self.u32(units);
        text::append(value, &mut self.out);
        self.out.put_u16_le(0);
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}
