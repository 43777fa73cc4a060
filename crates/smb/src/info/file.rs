//! The answers of QUERY_INFO about a file or directory, [MS-FSCC] 2.4.

use bytes::BufMut as _;

use super::facts::{NodeFacts, OpenFacts};
use super::{Output, fitted};
use crate::status::Status;
use crate::wire::create::access::{READ_ATTRIBUTES, READ_EA};
use crate::wire::text;

pub mod class {
    pub const BASIC: u8 = 4;
    pub const STANDARD: u8 = 5;
    pub const INTERNAL: u8 = 6;
    pub const EA: u8 = 7;
    pub const ACCESS: u8 = 8;
    pub const NAME: u8 = 9;
    pub const RENAME: u8 = 10;
    pub const LINK: u8 = 11;
    pub const DISPOSITION: u8 = 13;
    pub const POSITION: u8 = 14;
    pub const FULL_EA: u8 = 15;
    pub const MODE: u8 = 16;
    pub const ALIGNMENT: u8 = 17;
    pub const ALL: u8 = 18;
    pub const ALLOCATION: u8 = 19;
    pub const END_OF_FILE: u8 = 20;
    pub const ALTERNATE_NAME: u8 = 21;
    pub const STREAM: u8 = 22;
    pub const COMPRESSION: u8 = 28;
    pub const NETWORK_OPEN: u8 = 34;
    pub const ATTRIBUTE_TAG: u8 = 35;
    pub const VALID_DATA_LENGTH: u8 = 39;
    pub const SHORT_NAME: u8 = 40;
    pub const NORMALIZED_NAME: u8 = 48;
    pub const FILE_ID: u8 = 59;
    pub const DISPOSITION_EX: u8 = 64;
    pub const RENAME_EX: u8 = 65;
}

/// The serial number of the volume, the only one of its server.
pub const VOLUME_SERIAL: u32 = 0x4846_5354;

pub fn query(class: u8, open: &OpenFacts, limit: usize) -> Result<Output, Status> {
    let node = &open.node;
    let needed = match class {
        class::BASIC | class::ALL | class::NETWORK_OPEN | class::ATTRIBUTE_TAG => READ_ATTRIBUTES,
        class::FULL_EA => READ_EA,
        _ => 0,
    };
    if open.access & needed != needed {
        return Err(Status::ACCESS_DENIED);
    }
    let mut out = Vec::with_capacity(128);
    let fixed = match class {
        class::BASIC => fixed(&mut out, |out| basic(node, out)),
        class::STANDARD => fixed(&mut out, |out| standard(open, out)),
        class::INTERNAL => fixed(&mut out, |out| out.put_u64_le(node.id)),
        class::EA | class::ALIGNMENT => fixed(&mut out, |out| out.put_u32_le(0)),
        class::ACCESS => fixed(&mut out, |out| out.put_u32_le(open.access)),
        class::POSITION => fixed(&mut out, |out| out.put_u64_le(open.position)),
        class::MODE => fixed(&mut out, |out| out.put_u32_le(open.mode)),
        class::COMPRESSION => fixed(&mut out, |out| {
            out.put_u64_le(node.end_of_file);
            out.put_u64_le(0);
        }),
        class::NETWORK_OPEN => fixed(&mut out, |out| {
            node.times.encode(out);
            out.put_u64_le(node.allocation_size);
            out.put_u64_le(node.end_of_file);
            out.put_u32_le(node.attributes);
            out.put_u32_le(0);
        }),
        class::ATTRIBUTE_TAG => fixed(&mut out, |out| {
            out.put_u32_le(node.attributes);
            out.put_u32_le(0);
        }),
        class::FILE_ID => fixed(&mut out, |out| {
            out.put_u64_le(VOLUME_SERIAL.into());
            out.put_u64_le(node.id);
            out.put_u64_le(0);
        }),
        class::ALL => all(open, &mut out),
        class::NAME => {
            name(&format!("\\{}", open.path), &mut out);
            8
        }
        class::NORMALIZED_NAME => {
            name(&open.path, &mut out);
            8
        }
        class::STREAM => {
            streams(node, &mut out);
            32
        }
        // There are no 8.3 names, so the alternate name is the name itself; without it smbclient
        // shows nothing more of a file.
        class::ALTERNATE_NAME => {
            name(open.path.rsplit('\\').next().unwrap_or_default(), &mut out);
            8
        }
        // Extended attributes are not stored.
        class::FULL_EA => return Err(Status::NO_EAS_ON_FILE),
        _ => return Err(Status::INVALID_INFO_CLASS),
    };
    fitted(out, fixed, limit)
}

/// A class of fixed length.
fn fixed(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
    encode(out);
    out.len()
}

fn basic(node: &NodeFacts, out: &mut Vec<u8>) {
    node.times.encode(out);
    out.put_u32_le(node.attributes);
    out.put_u32_le(0);
}

fn standard(open: &OpenFacts, out: &mut Vec<u8>) {
    let node = &open.node;
    out.put_u64_le(node.allocation_size);
    out.put_u64_le(node.end_of_file);
    // A name that is about to be deleted does not count.
    out.put_u32_le(u32::from(!open.delete_pending));
    out.put_u8(open.delete_pending.into());
    out.put_u8(node.is_directory.into());
    out.put_u16_le(0);
}

/// Basic, standard, internal, EA, access, position, mode, alignment and name, in sequence.
fn all(open: &OpenFacts, out: &mut Vec<u8>) -> usize {
    const FIXED: usize = 104;
    basic(&open.node, out);
    standard(open, out);
    out.put_u64_le(open.node.id);
    out.put_u32_le(0);
    out.put_u32_le(open.access);
    out.put_u64_le(open.position);
    out.put_u32_le(open.mode);
    out.put_u32_le(0);
    name(&format!("\\{}", open.path), out);
    FIXED
}

fn name(text: &str, out: &mut Vec<u8>) {
    out.put_u32_le(text::encoded_length(text) as u32);
    text::append(text, out);
}

/// A file has its content and no other stream; a directory has none.
fn streams(node: &NodeFacts, out: &mut Vec<u8>) {
    const NAME: &str = "::$DATA";
    if node.is_directory {
        return;
    }
    out.put_u32_le(0);
    out.put_u32_le(text::encoded_length(NAME) as u32);
    out.put_u64_le(node.end_of_file);
    out.put_u64_le(node.allocation_size);
    text::append(NAME, out);
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
