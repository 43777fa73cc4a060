//! The keys of the rows of the File service; their kinds are digits.
//!
//! The nodes of a directory are together, ordered by their folded names. Names of nodes have no
//! control characters, so a zero byte ends one.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Fault;

use crate::rows::{corrupt, named, number_at, numbered, text};
use crate::time::Timestamp;

const SHARE: u8 = b'0';
pub const NODE: u8 = b'1';
const PAST_NODE: u8 = b'2';
const PERMISSION: u8 = b'3';
const SNAPSHOT: u8 = b'4';
const DELETED_SHARE: u8 = b'5';
const HELD_SHARE_NAME: u8 = b'6';
const CONDEMNED_SHARE: u8 = b'7';
const CONDEMNED_SNAPSHOT: u8 = b'8';
const OPEN: u8 = b'9';

/// The length of the kind, the share and the directory before a name.
const NODE_FRONT_BYTES: usize = 17;

/// The directory that the root of a share is in, without a name.
pub const ABOVE_ROOT: u64 = 0;

/// The directory that files with several names are in, under their numbers.
pub const OF_MANY_NAMES: u64 = u64::MAX;

/// All shares of an account whose names begin with `prefix`.
pub fn shares(account: &str, prefix: &str) -> Bytes {
    let mut key = named(SHARE, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn share(account: &str, name: &str) -> Bytes {
    shares(account, name)
}

/// The name in a key made by [`share`].
pub fn share_name<'key>(account: &str, key: &'key [u8]) -> Result<&'key str, Fault> {
    text(key.get(account.len() + 2..))
}

/// All snapshots of a share, oldest first.
pub fn snapshots(share: u64) -> Bytes {
    numbered(SNAPSHOT, share).freeze()
}

/// The share as it was at that moment.
pub fn snapshot(share: u64, moment: Timestamp) -> Bytes {
    let mut key = numbered(SNAPSHOT, share);
    key.put_u64(moment.ticks());
    key.freeze()
}

/// The moment in a key made by [`snapshot`].
pub fn snapshot_moment(key: &[u8]) -> Result<Timestamp, Fault> {
    let ticks = number_at(key, 9).ok_or_else(|| corrupt("the key of a snapshot of a share"))?;
    Ok(Timestamp::from_ticks(ticks))
}

/// All shares of an account that can be restored and whose names begin with `prefix`.
pub fn deleted_shares(account: &str, prefix: &str) -> Bytes {
    let mut key = named(DELETED_SHARE, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn deleted_share(account: &str, name: &str, version: u64) -> Bytes {
    let mut key = BytesMut::from(deleted_shares(account, name));
    key.put_u8(0);
    key.put_u64(version);
    key.freeze()
}

/// The name and the version in a key made by [`deleted_share`].
pub fn deleted_share_name<'key>(account: &str, key: &'key [u8]) -> Result<(&'key str, u64), Fault> {
    let (front, version) =
        key.split_last_chunk().ok_or_else(|| corrupt("a deleted share's key"))?;
    let name = front.get(account.len() + 2..).and_then(|name| name.strip_suffix(&[0]));
    Ok((text(name)?, u64::from_be_bytes(*version)))
}

pub fn held_share_name(account: &str, name: &str) -> Bytes {
    let mut key = named(HELD_SHARE_NAME, account);
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub fn condemned_shares() -> Bytes {
    Bytes::from_static(&[CONDEMNED_SHARE])
}

/// Marks what the share of this number held for removal.
pub fn condemned_share(share: u64) -> Bytes {
    numbered(CONDEMNED_SHARE, share).freeze()
}

pub fn condemned_snapshots() -> Bytes {
    Bytes::from_static(&[CONDEMNED_SNAPSHOT])
}

/// Says that the snapshot of this number was deleted and may have left past nodes that only it saw.
pub fn condemned_snapshot(share: u64, generation: u64) -> Bytes {
    let mut key = numbered(CONDEMNED_SNAPSHOT, share);
    key.put_u64(generation);
    key.freeze()
}

/// The share and the generation in a key made by [`condemned_snapshot`].
pub fn condemned_snapshot_of(key: &[u8]) -> Result<(u64, u64), Fault> {
    match (number_at(key, 1), number_at(key, 9)) {
        (Some(share), Some(generation)) => Ok((share, generation)),
        (_, _) => Err(corrupt("the key of a deleted snapshot")),
    }
}

/// The persistent opens of all shares.
pub fn all_opens() -> Bytes {
    Bytes::from_static(&[OPEN])
}

/// A persistent open, by its number.
pub fn open(share: u64, id: u64) -> Bytes {
    let mut key = numbered(OPEN, share);
    key.put_u64(id);
    key.freeze()
}

/// The share and the number in a key made by [`open`].
pub fn open_of(key: &[u8]) -> Result<(u64, u64), Fault> {
    match (number_at(key, 1), number_at(key, 9)) {
        (Some(share), Some(id)) => Ok((share, id)),
        (_, _) => Err(corrupt("the key of a persistent open")),
    }
}

/// Whether the row with this key is a node.
pub fn is_node(key: &[u8]) -> bool {
    key.first() == Some(&NODE)
}

/// Whether the row with this key is a node or a past node.
pub fn has_content(key: &[u8]) -> bool {
    is_node(key) || key.first() == Some(&PAST_NODE)
}

/// What a share holds, kind by kind.
pub fn all_of_share(share: u64) -> [Bytes; 5] {
    [SNAPSHOT, NODE, PAST_NODE, PERMISSION, OPEN].map(|kind| numbered(kind, share).freeze())
}

pub fn all_past_nodes(share: u64) -> Bytes {
    numbered(PAST_NODE, share).freeze()
}

pub fn nodes_of_share(share: u64) -> Bytes {
    numbered(NODE, share).freeze()
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

/// After everything that was at a place.
pub fn behind_past_nodes(share: u64, directory: u64, folded_name: &str) -> Bytes {
    let mut key = front(PAST_NODE, share, directory, folded_name);
    key.put_u8(1);
    key.freeze()
}

/// Everything that was at a place.
pub fn past_nodes_at(share: u64, directory: u64, folded_name: &str) -> Bytes {
    let mut key = front(PAST_NODE, share, directory, folded_name);
    key.put_u8(0);
    key.freeze()
}

/// What was at a place up to the end of a generation.
pub fn past_node(share: u64, directory: u64, folded_name: &str, generation: u64) -> Bytes {
    let mut key = BytesMut::from(past_nodes_at(share, directory, folded_name));
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

pub fn permission(share: u64, key: u64) -> Bytes {
    let mut row = numbered(PERMISSION, share);
    row.put_u64(key);
    row.freeze()
}

fn front(kind: u8, share: u64, directory: u64, name: &str) -> BytesMut {
    let mut key = numbered(kind, share);
    key.put_u64(directory);
    key.put_slice(name.as_bytes());
    key
}
