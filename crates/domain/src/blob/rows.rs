//! The keys of the rows of the Blob service; their kinds are lower-case letters.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Fault;

use crate::rows::{corrupt, named, number_at, numbered, text};
use crate::time::Timestamp;

const CONTAINER: u8 = b'c';
const CONDEMNED_CONTAINER: u8 = b'd';
const DELETED_CONTAINER: u8 = b'r';
const HELD_CONTAINER_NAME: u8 = b'h';
const CONTAINER_PLACE: u8 = b'a';
pub const BLOB: u8 = b'b';
/// Earlier states of blobs: snapshots, versions, and deleted states that can be restored.
pub const PAST_BLOB: u8 = b's';
/// Tags of current blobs, and of versions.
const TAG: u8 = b't';
const VERSION_TAG: u8 = b'v';
const UPLOAD: u8 = b'u';
const BLOCK: u8 = b'l';
const CONDEMNED_UPLOAD: u8 = b'q';

/// All containers of an account whose names begin with `prefix`.
pub fn containers(account: &str, prefix: &str) -> Bytes {
    let mut key = named(CONTAINER, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn container(account: &str, name: &str) -> Bytes {
    containers(account, name)
}

/// The name in a key made by [`container`].
pub fn container_name<'key>(account: &str, key: &'key [u8]) -> Result<&'key str, Fault> {
    text(key.get(account.len() + 2..))
}

/// All containers of an account that can be restored and whose names begin with `prefix`.
pub fn deleted_containers(account: &str, prefix: &str) -> Bytes {
    let mut key = named(DELETED_CONTAINER, account);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn deleted_container(account: &str, name: &str, version: u64) -> Bytes {
    let mut key = BytesMut::from(deleted_containers(account, name));
    key.put_u8(0);
    key.put_u64(version);
    key.freeze()
}

/// The name and the version in a key made by [`deleted_container`].
pub fn deleted_container_name<'key>(
    account: &str,
    key: &'key [u8],
) -> Result<(&'key str, u64), Fault> {
    let (front, version) =
        key.split_last_chunk().ok_or_else(|| corrupt("a deleted container's key"))?;
    let name = front.get(account.len() + 2..).and_then(|name| name.strip_suffix(&[0]));
    Ok((text(name)?, u64::from_be_bytes(*version)))
}

pub fn held_container_name(account: &str, name: &str) -> Bytes {
    let mut key = named(HELD_CONTAINER_NAME, account);
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub fn condemned_containers() -> Bytes {
    Bytes::from_static(&[CONDEMNED_CONTAINER])
}

pub fn condemned_container(container: u64) -> Bytes {
    numbered(CONDEMNED_CONTAINER, container).freeze()
}

/// Where a container that is known by its number is found.
pub fn container_place(container: u64) -> Bytes {
    numbered(CONTAINER_PLACE, container).freeze()
}

/// All blobs of a container whose names begin with `prefix`.
pub fn blobs(container: u64, prefix: &str) -> Bytes {
    let mut key = numbered(BLOB, container);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

pub fn blob(container: u64, name: &str) -> Bytes {
    let mut key = numbered(BLOB, container);
    key.put_slice(name.as_bytes());
    key.put_u8(0);
    key.freeze()
}

/// The name in a key made by [`blob`].
pub fn blob_name(key: &[u8]) -> Result<&str, Fault> {
    text(key.get(9..).and_then(|rest| rest.strip_suffix(&[0])))
}

/// Earlier states of blobs are kept in groups, so that a scan for one group does not pass the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PastBlobGroup {
    Snapshots = b's',
    Versions = b'v',
    DeletedSnapshots = b't',
    DeletedVersions = b'w',
    Replaced = b'r',
}

/// All earlier states of the blobs of a container.
pub fn all_past_blobs(container: u64) -> Bytes {
    numbered(PAST_BLOB, container).freeze()
}

/// The container in the key of something in it.
pub fn container_of(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 1).ok_or_else(|| corrupt("the key of something in a container"))
}

/// The states in `group` of the blobs whose names begin with `prefix`.
pub fn past_blobs(container: u64, group: PastBlobGroup, prefix: &str) -> Bytes {
    let mut key = numbered(PAST_BLOB, container);
    key.put_u8(group as u8);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

/// The states in `group` of one blob.
pub fn past_states_of_blob(container: u64, group: PastBlobGroup, name: &str) -> Bytes {
    let mut key = BytesMut::from(past_blobs(container, group, name));
    key.put_u8(0);
    key.freeze()
}

pub fn past_blob(container: u64, group: PastBlobGroup, name: &str, moment: Timestamp) -> Bytes {
    let mut key = BytesMut::from(past_states_of_blob(container, group, name));
    key.put_u64(moment.ticks());
    key.freeze()
}

/// The name and the moment in a key made by [`past_blob`].
pub fn past_blob_name(key: &[u8]) -> Result<(&str, Timestamp), Fault> {
    let (front, ticks) = key.split_last_chunk().ok_or_else(|| corrupt("a past blob's key"))?;
    let name = text(front.get(10..).and_then(|rest| rest.strip_suffix(&[0])))?;
    Ok((name, Timestamp::from_ticks(u64::from_be_bytes(*ticks))))
}

/// Everything that is found by a tag of this name, ordered by the tag's value.
pub fn tags_named(of: Tagged, account: &str, name: &str) -> Bytes {
    let kind = match of {
        Tagged::Current => TAG,
        Tagged::Version => VERSION_TAG,
    };
    let mut key = named(kind, account);
    key.put_slice(name.as_bytes());
    key.put_u8(0);
    key.freeze()
}

/// Everything that is found by this tag, ordered by container and name.
pub fn tags_equal(of: Tagged, account: &str, name: &str, value: &str) -> Bytes {
    let mut key = BytesMut::from(tags_named(of, account, name));
    key.put_slice(value.as_bytes());
    key.put_u8(0);
    key.freeze()
}

/// What [`tags_equal`] finds, in one container only.
pub fn tags_in_container(
    of: Tagged,
    account: &str,
    name: &str,
    value: &str,
    container: u64,
) -> Bytes {
    let mut key = BytesMut::from(tags_equal(of, account, name, value));
    key.put_u64(container);
    key.freeze()
}

/// Says that this blob has this tag; with a moment, that the version of then has it.
pub fn tag(
    account: &str,
    (name, value): (&str, &str),
    container: u64,
    blob: &str,
    moment: Option<Timestamp>,
) -> Bytes {
    let of = if moment.is_some() { Tagged::Version } else { Tagged::Current };
    let mut key = BytesMut::from(tags_in_container(of, account, name, value, container));
    key.put_slice(blob.as_bytes());
    key.put_u8(0);
    if let Some(moment) = moment {
        key.put_u64(moment.ticks());
    }
    key.freeze()
}

/// Which blobs a row of the index of tags is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    Current,
    Version,
}

/// The container, the name and the moment in a key made by [`tag`].
pub fn tagged<'key>(
    account: &str,
    key: &'key [u8],
) -> Result<(u64, &'key str, Option<Timestamp>), Fault> {
    let corrupt = || corrupt("the key of a tag");
    let is_version = key.first() == Some(&VERSION_TAG);
    // The account, the tag's name and its value each end with a zero byte.
    let rest = key.get(account.len() + 2..).ok_or_else(corrupt)?;
    let rest = rest.splitn(3, |byte| *byte == 0).nth(2).ok_or_else(corrupt)?;
    let (container, rest) = rest.split_first_chunk().ok_or_else(corrupt)?;
    let (name, moment) = if is_version {
        let (name, ticks) = rest.split_last_chunk().ok_or_else(corrupt)?;
        (name, Some(Timestamp::from_ticks(u64::from_be_bytes(*ticks))))
    } else {
        (rest, None)
    };
    Ok((u64::from_be_bytes(*container), text(name.strip_suffix(&[0]))?, moment))
}

/// All blobs with uncommitted blocks whose names begin with `prefix`.
pub fn uploads(container: u64, prefix: &str) -> Bytes {
    let mut key = numbered(UPLOAD, container);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

/// [`blob_name`] reads the name back.
pub fn upload(container: u64, name: &str) -> Bytes {
    let mut key = numbered(UPLOAD, container);
    key.put_slice(name.as_bytes());
    key.put_u8(0);
    key.freeze()
}

pub fn blocks(upload: u64) -> Bytes {
    numbered(BLOCK, upload).freeze()
}

pub fn block(upload: u64, id: &[u8]) -> Bytes {
    let mut key = numbered(BLOCK, upload);
    key.put_slice(id);
    key.freeze()
}

/// The block's id in a key made by [`block`].
pub fn block_id(key: &[u8]) -> Result<&[u8], Fault> {
    key.get(9..).ok_or_else(|| corrupt("a block's key"))
}

pub fn condemned_uploads() -> Bytes {
    Bytes::from_static(&[CONDEMNED_UPLOAD])
}

pub fn condemned_upload(id: u64) -> Bytes {
    numbered(CONDEMNED_UPLOAD, id).freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::condemned_id;

    #[test]
    fn names_come_back_out_of_keys() {
        assert_eq!(blob_name(&blob(7, "a/b")).expect("a name"), "a/b");
        let key = container("account", "photos");
        assert_eq!(container_name("account", &key).expect("a name"), "photos");
        let key = deleted_container("account", "photos", 7);
        assert_eq!(deleted_container_name("account", &key).expect("a name"), ("photos", 7));
        let moment = Timestamp::from_ticks(7);
        let past = past_blob(7, PastBlobGroup::Versions, "a/b", moment);
        assert_eq!(past_blob_name(&past).expect("a name"), ("a/b", moment));
        for moment in [None, Some(moment)] {
            let key = tag("account", ("k", ""), 7, "a/b", moment);
            assert_eq!(tagged("account", &key).expect("a blob"), (7, "a/b", moment));
        }
        assert_eq!(block_id(&block(7, b"id")).expect("an id"), b"id");
        assert_eq!(condemned_id(&condemned_container(9)).expect("an id"), 9);
    }

    #[test]
    fn blob_keys_sort_as_names_do_and_stay_within_their_container() {
        let keys = [blob(1, "Z"), blob(1, "a"), blob(1, "a/"), blob(1, "aa"), blob(2, "A")];
        assert!(keys.is_sorted());
    }
}
