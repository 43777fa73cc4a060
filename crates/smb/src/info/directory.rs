//! The entries of a listing, [MS-FSCC] 2.4 and [MS-SMB2] 2.2.33.

use bytes::BufMut as _;

use super::facts::NodeFacts;
use crate::wire::{pad, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryClass {
    Directory,
    FullDirectory,
    BothDirectory,
    Names,
    IdBothDirectory,
    IdFullDirectory,
    IdExtendedDirectory,
}

impl EntryClass {
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Directory,
            2 => Self::FullDirectory,
            3 => Self::BothDirectory,
            12 => Self::Names,
            37 => Self::IdBothDirectory,
            38 => Self::IdFullDirectory,
            60 => Self::IdExtendedDirectory,
            _ => return None,
        })
    }

    /// The length of an entry without its name.
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Self::Directory => 64,
            Self::FullDirectory => 68,
            Self::BothDirectory => 94,
            Self::Names => 12,
            Self::IdBothDirectory => 104,
            Self::IdFullDirectory => 80,
            Self::IdExtendedDirectory => 88,
        }
    }
}

/// Entries in sequence, as many as fit.
pub struct Entries {
    class: EntryClass,
    limit: usize,
    bytes: Vec<u8>,
    /// Where the last entry begins.
    last: Option<usize>,
}

/// Another entry does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Entries {
    pub fn new(class: EntryClass, limit: usize) -> Self {
        Self { class, limit, bytes: Vec::new(), last: None }
    }

    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    pub fn push(&mut self, name: &str, node: &NodeFacts) -> Result<(), Full> {
        let start = self.bytes.len().next_multiple_of(8);
        let name_bytes = text::encoded_length(name);
        if start + self.class.fixed_bytes() + name_bytes > self.limit {
            return Err(Full);
        }
        pad(&mut self.bytes, 0, 8);
        if let Some(last) = self.last.replace(start) {
            let distance = ((start - last) as u32).to_le_bytes();
            self.bytes[last..last + distance.len()].copy_from_slice(&distance);
        }
        self.encode(name_bytes as u32, node);
        text::append(name, &mut self.bytes);
        Ok(())
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn encode(&mut self, name_bytes: u32, node: &NodeFacts) {
        let out = &mut self.bytes;
        // The distance to the next entry, and an index, which is not used.
        out.put_u64_le(0);
        if self.class == EntryClass::Names {
            out.put_u32_le(name_bytes);
            return;
        }
        node.times.encode(out);
        out.put_u64_le(node.end_of_file);
        out.put_u64_le(node.allocation_size);
        out.put_u32_le(node.attributes);
        out.put_u32_le(name_bytes);
        // The size of extended attributes.
        if self.class != EntryClass::Directory {
            out.put_u32_le(0);
        }
        match self.class {
            EntryClass::Directory | EntryClass::Names | EntryClass::FullDirectory => {}
            EntryClass::BothDirectory => no_short_name(out),
            EntryClass::IdBothDirectory => {
                no_short_name(out);
                out.put_u16_le(0);
                out.put_u64_le(node.id);
            }
            EntryClass::IdFullDirectory => {
                out.put_u32_le(0);
                out.put_u64_le(node.id);
            }
            EntryClass::IdExtendedDirectory => {
                out.put_u32_le(0);
                out.put_u64_le(node.id);
                out.put_u64_le(0);
            }
        }
    }
}

/// Its length, a reserved byte, and room for twelve characters.
fn no_short_name(out: &mut Vec<u8>) {
    out.put_bytes(0, 26);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::create::Times;

    const ALL: [(u8, EntryClass); 7] = [
        (1, EntryClass::Directory),
        (2, EntryClass::FullDirectory),
        (3, EntryClass::BothDirectory),
        (12, EntryClass::Names),
        (37, EntryClass::IdBothDirectory),
        (38, EntryClass::IdFullDirectory),
        (60, EntryClass::IdExtendedDirectory),
    ];

    fn node() -> NodeFacts {
        let times = Times::default();
        NodeFacts {
            id: 7,
            is_directory: false,
            attributes: 0x20,
            times,
            end_of_file: 1,
            allocation_size: 4096,
        }
    }

    #[test]
    fn each_class_has_its_fixed_part_and_then_the_name() {
        for (code, class) in ALL {
            assert_eq!(EntryClass::from_code(code), Some(class));
            let mut entries = Entries::new(class, 4096);
            entries.push("näme", &node()).expect("room");
            let bytes = entries.into_bytes();
            assert_eq!(bytes.len(), class.fixed_bytes() + 8, "{class:?}");
            assert_eq!(bytes[class.fixed_bytes()..], text::encode("näme"), "{class:?}");
            let length_at = if class == EntryClass::Names { 8 } else { 60 };
            assert_eq!(bytes[length_at], 8, "{class:?}");
        }
        assert_eq!(EntryClass::from_code(99), None);
    }

    #[test]
    fn entries_are_linked_and_no_more_of_them_than_there_is_room_for() {
        let class = EntryClass::Names;
        let mut entries = Entries::new(class, 16 + 16 + 13);
        assert_eq!(entries.push("a", &node()), Ok(()));
        assert_eq!(entries.push("b", &node()), Ok(()));
        assert_eq!(entries.push("c", &node()), Err(Full));
        let bytes = entries.into_bytes();
        assert_eq!((bytes.len(), bytes[0], bytes[16]), (30, 16, 0));
        let mut none = Entries::new(class, 13);
        assert_eq!(none.push("a", &node()), Err(Full));
        assert!(none.is_empty() && none.into_bytes().is_empty());
    }
}
