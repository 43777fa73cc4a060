//! The keys of all rows and the encoding of their values.
//!
//! Keys are ordered so that every listing is a seek and a short scan. The first byte names the
//! kind of row; a name in front of something else ends with a zero byte, which no name contains.
//! Values begin with the number of their format, but for contents, which are the bytes themselves.
//! `docs/on-disk-format.md` has them all.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::{ExtentId, Fault};
use serde::Serialize;
use serde::de::DeserializeOwned;

const CLOCK: u8 = b'k';
const SERVICE_PROPERTIES: u8 = b'p';
const CONTAINER: u8 = b'c';
const CONDEMNED_CONTAINER: u8 = b'd';
const BLOB: u8 = b'b';
const INLINE_CONTENT: u8 = b'i';
const EXTENT: u8 = b'x';

/// The time up to which earlier runs have given out timestamps and ETags.
pub fn clock() -> Bytes {
    Bytes::from_static(&[CLOCK])
}

pub fn service_properties(account: &str, service: u8) -> Bytes {
    let mut key = named(SERVICE_PROPERTIES, account);
    key.put_u8(service);
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

pub fn condemned_containers() -> Bytes {
    Bytes::from_static(&[CONDEMNED_CONTAINER])
}

pub fn condemned_container(container: u64) -> Bytes {
    numbered(CONDEMNED_CONTAINER, container).freeze()
}

/// The number in a key made by [`condemned_container`].
pub fn condemned_container_id(key: &[u8]) -> Result<u64, Fault> {
    let id = key.get(1..).and_then(|bytes| bytes.try_into().ok());
    id.map(u64::from_be_bytes).ok_or_else(|| corrupt("a condemned container's key"))
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

pub fn inline_content(id: u64) -> Bytes {
    numbered(INLINE_CONTENT, id).freeze()
}

pub fn extents_of_segment(segment: u64) -> Bytes {
    numbered(EXTENT, segment).freeze()
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

fn named(kind: u8, name: &str) -> BytesMut {
    let mut key = BytesMut::with_capacity(name.len() + 72);
    key.put_u8(kind);
    key.put_slice(name.as_bytes());
    key.put_u8(0);
    key
}

fn numbered(kind: u8, number: u64) -> BytesMut {
    let mut key = BytesMut::with_capacity(64);
    key.put_u8(kind);
    key.put_u64(number);
    key
}

fn text(bytes: Option<&[u8]>) -> Result<&str, Fault> {
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
            Some((format, _)) => {
                Err(Fault::new(format!("the row of {} has unknown format {format}", Self::WHAT)))
            }
            None => Err(corrupt(Self::WHAT)),
        }
    }
}

fn corrupt(what: &str) -> Fault {
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
        assert_eq!(condemned_container_id(&condemned_container(9)).expect("an id"), 9);
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
