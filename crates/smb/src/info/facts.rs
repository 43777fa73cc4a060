//! The properties of a node and of an open that information classes return.

use holdfast_domain::share::Attributes;
use holdfast_domain::share::handles::NodeInformation;

use super::time;
use crate::wire::create::Times;

/// The unit of allocation.
pub const CLUSTER_BYTES: u64 = 4096;

/// Bits of [MS-FSCC] 2.6 that are not stored with a node.
pub mod attributes {
    pub const DIRECTORY: u32 = 0x10;
    pub const NORMAL: u32 = 0x80;
    pub const SPARSE: u32 = 0x200;
    pub const REPARSE_POINT: u32 = 0x400;
    pub const COMPRESSED: u32 = 0x800;
    pub const ENCRYPTED: u32 = 0x4000;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub id: u64,
    pub is_directory: bool,
    pub attributes: u32,
    pub times: Times,
    pub end_of_file: u64,
    pub allocation_size: u64,
}

/// An open node.
#[derive(Clone, Debug)]
pub struct OpenFacts {
    pub node: NodeFacts,
    /// From the root, parts separated by `\`, without a leading one.
    pub path: String,
    pub access: u32,
    pub mode: u32,
    pub position: u64,
    pub delete_pending: bool,
}

impl From<&NodeInformation> for NodeFacts {
    fn from(node: &NodeInformation) -> Self {
        Self {
            id: node.id,
            is_directory: node.is_directory,
            attributes: attributes_to_wire(node.attributes, node.is_directory),
            times: time::times(&node.times),
            end_of_file: node.length,
            allocation_size: allocation(node.allocation),
        }
    }
}

/// The allocation size of so many bytes.
pub fn allocation(length: u64) -> u64 {
    length.checked_next_multiple_of(CLUSTER_BYTES).unwrap_or(length)
}

/// A node without attributes has FILE_ATTRIBUTE_NORMAL.
pub fn attributes_to_wire(attributes: Attributes, is_directory: bool) -> u32 {
    match (attributes.bits(), is_directory) {
        (0, false) => attributes::NORMAL,
        (bits, false) => bits,
        (bits, true) => bits | attributes::DIRECTORY,
    }
}

/// The attributes that can be stored; others describe the kind of a node, or are unknown.
pub fn attributes_from_wire(bits: u32) -> Attributes {
    let stored = [
        Attributes::READ_ONLY,
        Attributes::HIDDEN,
        Attributes::SYSTEM,
        Attributes::ARCHIVE,
        Attributes::TEMPORARY,
        Attributes::OFFLINE,
        Attributes::NOT_CONTENT_INDEXED,
        Attributes::NO_SCRUB_DATA,
    ];
    let known = stored.into_iter().fold(Attributes::empty(), Attributes::union);
    Attributes::from_bits_retain(bits).intersection(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_tell_nothing_are_left_out_and_put_back() {
        let archive = Attributes::ARCHIVE;
        assert_eq!(attributes_to_wire(Attributes::empty(), false), 0x80);
        assert_eq!(attributes_to_wire(Attributes::empty(), true), 0x10);
        assert_eq!(attributes_to_wire(archive, false), 0x20);
        assert_eq!(attributes_to_wire(archive, true), 0x30);
        assert_eq!(attributes_from_wire(0x80), Attributes::empty());
        assert_eq!(attributes_from_wire(0x30 | 0x4E00), archive);
    }

    #[test]
    fn room_is_taken_in_clusters() {
        for (length, room) in [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)] {
            assert_eq!(allocation(length), room, "{length}");
        }
    }
}
