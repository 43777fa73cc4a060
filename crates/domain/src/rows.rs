//! The keys of all rows and the encoding of their values.
//!
//! Keys are ordered so that every listing is a seek and a short scan. The first byte names the
//! kind of row; a name in front of something else ends with a zero byte, which no name contains.
//! Values begin with the number of their format, but for contents, which are the bytes themselves.
//! The rows of tables are in [`crate::table::rows`]; their kinds are upper-case letters.
//! `docs/on-disk-format.md` has them all.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::{ExtentId, Fault};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::share::NODE;
use crate::time::Timestamp;

const CLOCK: u8 = b'k';
const SERVICE_PROPERTIES: u8 = b'p';
const CONTAINER: u8 = b'c';
const CONDEMNED_CONTAINER: u8 = b'd';
const DELETED_CONTAINER: u8 = b'r';
const HELD_CONTAINER_NAME: u8 = b'h';
const CONTAINER_PLACE: u8 = b'a';
const BLOB: u8 = b'b';
/// What a blob was before: snapshots, versions, and what was deleted but can be restored.
const PAST_BLOB: u8 = b's';
/// Tags of current blobs, and of versions.
const TAG: u8 = b't';
const VERSION_TAG: u8 = b'v';
const UPLOAD: u8 = b'u';
const BLOCK: u8 = b'l';
pub(crate) const INLINE_CONTENT: u8 = b'i';
const MAP: u8 = b'n';
const MAP_ENTRY: u8 = b'm';
const MAP_GROUND: u8 = b'g';
const CONDEMNED_MAP: u8 = b'o';
const CONDEMNED_UPLOAD: u8 = b'q';
const DUE: u8 = b'e';
const PENDING_COPY: u8 = b'y';
const EXTENT: u8 = b'x';
const DELEGATION_KEY: u8 = b'w';

/// The value of a row that says everything with its key.
pub const NOTHING: &[u8] = &[];

/// The time up to which earlier runs have given out timestamps and ETags.
pub fn clock() -> Bytes {
    Bytes::from_static(&[CLOCK])
}

pub fn service_properties(account: &str, service: u8) -> Bytes {
    let mut key = named(SERVICE_PROPERTIES, account);
    key.put_u8(service);
    key.freeze()
}

/// The user delegation keys of a user of a directory. Their ids may hold any character: a length in front
/// of each tells where it ends.
pub fn delegation_keys(account: &str, tenant_id: &str, object_id: &str) -> Bytes {
    let mut key = named(DELEGATION_KEY, account);
    for id in [tenant_id, object_id] {
        key.put_u64(id.len() as u64);
        key.put_slice(id.as_bytes());
    }
    key.freeze()
}

/// One of them; the first to expire comes first.
pub fn delegation_key(user: &Bytes, expiry: Timestamp, other_fields: &str) -> Bytes {
    let mut key = BytesMut::from(&user[..]);
    key.put_u64(expiry.ticks());
    key.put_slice(other_fields.as_bytes());
    key.freeze()
}

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

/// Earlier states of blobs are kept in groups, so that whoever looks for some of them does not come
/// by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PastGroup {
    Snapshots = b's',
    Versions = b'v',
    DeletedSnapshots = b't',
    DeletedVersions = b'w',
    Replaced = b'r',
}

/// All earlier states of the blobs of a container.
pub fn pasts(container: u64) -> Bytes {
    numbered(PAST_BLOB, container).freeze()
}

/// The container in the key of something in it.
pub fn container_of(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 1).ok_or_else(|| corrupt("the key of something in a container"))
}

/// The states in `group` of the blobs whose names begin with `prefix`.
pub fn past_blobs(container: u64, group: PastGroup, prefix: &str) -> Bytes {
    let mut key = numbered(PAST_BLOB, container);
    key.put_u8(group as u8);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

/// The states in `group` of one blob.
pub fn pasts_of_blob(container: u64, group: PastGroup, name: &str) -> Bytes {
    let mut key = BytesMut::from(past_blobs(container, group, name));
    key.put_u8(0);
    key.freeze()
}

pub fn past_blob(container: u64, group: PastGroup, name: &str, moment: Timestamp) -> Bytes {
    let mut key = BytesMut::from(pasts_of_blob(container, group, name));
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

/// Of what [`tags_equal`] finds, that which is in one container.
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

/// What a key made by [`tag`] says of the blob: its container, its name, and the moment.
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

/// All blobs with blocks that are not committed, whose names begin with `prefix`.
pub fn uploads(container: u64, prefix: &str) -> Bytes {
    let mut key = numbered(UPLOAD, container);
    key.put_slice(prefix.as_bytes());
    key.freeze()
}

/// Its name comes back by [`blob_name`].
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

pub fn map(id: u64) -> Bytes {
    numbered(MAP, id).freeze()
}

pub fn map_entries(map: u64) -> Bytes {
    numbered(MAP_ENTRY, map).freeze()
}

pub fn map_entry(map: u64, offset: u64) -> Bytes {
    let mut key = numbered(MAP_ENTRY, map);
    key.put_u64(offset);
    key.freeze()
}

/// The offset in a key made by [`map_entry`].
pub fn map_entry_offset(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 9).ok_or_else(|| corrupt("the key of a map's entry"))
}

/// All maps that lie upon others.
pub fn map_grounds() -> Bytes {
    Bytes::from_static(&[MAP_GROUND])
}

/// What the map lies upon, while it does. Its number comes back by [`condemned_id`].
pub fn map_ground(map: u64) -> Bytes {
    numbered(MAP_GROUND, map).freeze()
}

pub fn condemned_maps() -> Bytes {
    Bytes::from_static(&[CONDEMNED_MAP])
}

pub fn condemned_map(id: u64) -> Bytes {
    numbered(CONDEMNED_MAP, id).freeze()
}

pub fn condemned_uploads() -> Bytes {
    Bytes::from_static(&[CONDEMNED_UPLOAD])
}

pub fn condemned_upload(id: u64) -> Bytes {
    numbered(CONDEMNED_UPLOAD, id).freeze()
}

/// The number in the key of something condemned.
pub fn condemned_id(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 1).ok_or_else(|| corrupt("the key of something condemned"))
}

/// Everything that is due at some time.
pub fn dues() -> Bytes {
    Bytes::from_static(&[DUE])
}

/// `id` is unused by anything else that is due.
pub fn due(at: Timestamp, id: u64) -> Bytes {
    let mut key = numbered(DUE, at.ticks());
    key.put_u64(id);
    key.freeze()
}

/// All copies whose bytes are still to come.
pub fn pending_copies() -> Bytes {
    Bytes::from_static(&[PENDING_COPY])
}

/// The copy onto the blob with this key.
pub fn pending_copy(blob: &[u8]) -> Bytes {
    let mut key = BytesMut::with_capacity(blob.len() + 1);
    key.put_u8(PENDING_COPY);
    key.put_slice(blob);
    key.freeze()
}

/// The key of the blob in a key made by [`pending_copy`].
pub fn blob_of_pending_copy(key: &Bytes) -> Bytes {
    key.slice(1..)
}

pub fn inline_content(id: u64) -> Bytes {
    numbered(INLINE_CONTENT, id).freeze()
}

pub fn extents_of_segment(segment: u64) -> Bytes {
    numbered(EXTENT, segment).freeze()
}

pub fn all_extents() -> Bytes {
    Bytes::from_static(&[EXTENT])
}

pub fn all_map_entries() -> Bytes {
    Bytes::from_static(&[MAP_ENTRY])
}

/// Which rows say where a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HasContent {
    Blob,
    Past,
    Node,
}

/// The beginnings of the keys of all rows that say where a content is.
pub fn with_contents() -> [Bytes; 3] {
    [&[BLOB], &[PAST_BLOB], &[NODE]].map(|kind| Bytes::from_static(kind))
}

pub fn content_kind(key: &[u8]) -> Option<HasContent> {
    match *key.first()? {
        BLOB => Some(HasContent::Blob),
        PAST_BLOB => Some(HasContent::Past),
        NODE => Some(HasContent::Node),
        _ => None,
    }
}

pub fn extent(id: ExtentId) -> Bytes {
    let mut key = BytesMut::with_capacity(17);
    key.put_u8(EXTENT);
    key.put_slice(&id.to_bytes());
    key.freeze()
}

/// The id in a key made by [`extent`].
pub fn extent_id(key: &[u8]) -> Result<ExtentId, Fault> {
    let id = key.get(1..).and_then(|bytes| bytes.try_into().ok());
    id.map(ExtentId::from_bytes).ok_or_else(|| corrupt("an extent's key"))
}

pub(crate) fn named(kind: u8, name: &str) -> BytesMut {
    let mut key = BytesMut::with_capacity(name.len() + 72);
    key.put_u8(kind);
    key.put_slice(name.as_bytes());
    key.put_u8(0);
    key
}

pub(crate) fn numbered(kind: u8, number: u64) -> BytesMut {
    let mut key = BytesMut::with_capacity(64);
    key.put_u8(kind);
    key.put_u64(number);
    key
}

pub(crate) fn number_at(key: &[u8], at: usize) -> Option<u64> {
    key.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}

pub(crate) fn text(bytes: Option<&[u8]>) -> Result<&str, Fault> {
    bytes
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .ok_or_else(|| corrupt("a name in a key"))
}

/// A stored type, frozen under the number of its format. A changed type gets the next number and
/// keeps the code that reads the older ones.
pub trait Stored: Serialize + DeserializeOwned {
    const FORMAT: u8;
    const WHAT: &'static str;

    fn encode(&self) -> Bytes {
        let value = postcard::to_extend(self, vec![Self::FORMAT])
            .expect("a row of plain data always serializes");
        value.into()
    }

    fn decode(value: &[u8]) -> Result<Self, Fault> {
        match value.split_first() {
            Some((format, rest)) if *format == Self::FORMAT => {
                postcard::from_bytes(rest).map_err(|error| {
                    Fault::because(format!("the row of {} is corrupt", Self::WHAT), error)
                })
            }
            Some((format, rest)) => match Self::decode_earlier(*format, rest) {
                Some(Ok(earlier)) => Ok(earlier),
                Some(Err(error)) => Err(Fault::because(
                    format!("the row of {} of format {format} is corrupt", Self::WHAT),
                    error,
                )),
                None => Err(Fault::new(format!(
                    "the row of {} has unknown format {format}",
                    Self::WHAT
                ))),
            },
            None => Err(corrupt(Self::WHAT)),
        }
    }

    /// A row of a format that earlier builds wrote, if this is one.
    fn decode_earlier(_format: u8, _row: &[u8]) -> Option<Result<Self, postcard::Error>> {
        None
    }
}

pub(crate) fn corrupt(what: &str) -> Fault {
    Fault::new(format!("{what} is corrupt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_out_of_keys() {
        assert_eq!(blob_name(&blob(7, "a/b")).expect("a name"), "a/b");
        let key = container("account", "photos");
        assert_eq!(container_name("account", &key).expect("a name"), "photos");
        let key = deleted_container("account", "photos", 7);
        assert_eq!(deleted_container_name("account", &key).expect("a name"), ("photos", 7));
        let moment = Timestamp::from_ticks(7);
        let past = past_blob(7, PastGroup::Versions, "a/b", moment);
        assert_eq!(past_blob_name(&past).expect("a name"), ("a/b", moment));
        for moment in [None, Some(moment)] {
            let key = tag("account", ("k", ""), 7, "a/b", moment);
            assert_eq!(tagged("account", &key).expect("a blob"), (7, "a/b", moment));
        }
        assert_eq!(block_id(&block(7, b"id")).expect("an id"), b"id");
        assert_eq!(map_entry_offset(&map_entry(7, 512)).expect("an offset"), 512);
        assert_eq!(condemned_id(&condemned_map(9)).expect("an id"), 9);
        assert_eq!(condemned_id(&condemned_container(9)).expect("an id"), 9);
        let id = ExtentId { segment: 3, offset: 4096 };
        assert_eq!(extent_id(&extent(id)).expect("an id"), id);
    }

    #[test]
    fn blob_keys_sort_as_names_do_and_stay_within_their_container() {
        let keys = [blob(1, "Z"), blob(1, "a"), blob(1, "a/"), blob(1, "aa"), blob(2, "A")];
        assert!(keys.is_sorted());
    }

    #[test]
    fn an_unknown_format_is_a_fault_and_not_a_guess() {
        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        struct Sample(u8);
        impl Stored for Sample {
            const FORMAT: u8 = 1;
            const WHAT: &'static str = "a sample";
        }
        assert_eq!(Sample::decode(&Sample(5).encode()).expect("it decodes").0, 5);
        assert!(Sample::decode(&[2, 5]).is_err());
        assert!(Sample::decode(&[]).is_err());
    }
}
