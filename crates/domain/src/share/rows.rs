//! The keys of the rows of the File service; their kinds are digits.
//!
//! The nodes of a directory are together, ordered by their folded names. Names of nodes have no
//! control characters, so a zero byte ends one.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Fault;

use crate::rows::{corrupt, named, number_at, numbered};

const SHARE: u8 = b'0';
const NODE: u8 = b'1';
const PAST_NODE: u8 = b'2';
const PERMISSION: u8 = b'3';

/// The kind, the share and the directory in front of a name.
const NODE_FRONT_BYTES: usize = 17;

/// The directory that the root of a share is in, without a name.
pub const ABOVE_ROOT: u64 = 0;

/// All shares of an account whose names begin with `prefix`.
pub fn shares(account: &str, prefix: &str) -> Bytes {
    let mut key = named(SHARE, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn share(account: &str, name: &str) -> Bytes {
    shares(account, name)
}

/// The nodes of a directory whose folded names begin with `prefix`.
pub fn nodes(share: u64, directory: u64, prefix: &str) -> Bytes {
    front(NODE, share, directory, prefix).freeze()
}

pub fn node(share: u64, directory: u64, folded_name: &str) -> Bytes {
    let mut key = front(NODE, share, directory, folded_name);
    key.put_u8(0);
    key.freeze()
}

/// The folded name in a key made by [`node`].
pub fn node_name(key: &[u8]) -> Result<&str, Fault> {
    let name = key.get(NODE_FRONT_BYTES..).and_then(|name| name.strip_suffix(&[0]));
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    name.ok_or_else(|| corrupt("the key of a node"))
}

/// Everything that was in a directory under folded names that begin with `prefix`.
pub fn past_nodes(share: u64, directory: u64, prefix: &str) -> Bytes {
    front(PAST_NODE, share, directory, prefix).freeze()
}

/// What was at a place up to the end of a generation.
pub fn past_node(share: u64, directory: u64, folded_name: &str, generation: u64) -> Bytes {
    let mut key = front(PAST_NODE, share, directory, folded_name);
    key.put_u8(0);
    key.put_u64(generation);
    key.freeze()
}

/// The folded name and the generation in a key made by [`past_node`].
pub fn past_node_name(key: &[u8]) -> Result<(&str, u64), Fault> {
    let broken = || corrupt("the key of a past node");
    let (front, generation) = key.split_last_chunk().ok_or_else(broken)?;
    let name = front.get(NODE_FRONT_BYTES..).and_then(|name| name.strip_suffix(&[0]));
    let name = name.and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(broken)?;
    Ok((name, u64::from_be_bytes(*generation)))
}

pub fn permissions(share: u64) -> Bytes {
    numbered(PERMISSION, share).freeze()
}

pub fn permission(share: u64, key: u64) -> Bytes {
    let mut row = numbered(PERMISSION, share);
    row.put_u64(key);
    row.freeze()
}

/// The key of a permission in a row key made by [`permission`].
pub fn permission_key(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 9).ok_or_else(|| corrupt("the key of a permission"))
}

fn front(kind: u8, share: u64, directory: u64, name: &str) -> BytesMut {
    let mut key = numbered(kind, share);
    key.put_u64(directory);
    key.put_slice(name.as_bytes());
    key
}
