//! The keys of the rows that belong to no service, what all keys are made of, and the encoding of
//! values.
//!
//! Keys are ordered so that every listing is a seek and a short scan. The first byte names the
//! kind of row; a name in front of something else ends with a zero byte, which no name contains.
//! Values begin with the number of their format, but for contents, which are the bytes themselves.
//! Each service has a `rows` of its own, and so have contents; their kinds differ.
//! `docs/on-disk-format.md` has them all.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::time::Timestamp;

const CLOCK: u8 = b'k';
const SERVICE_PROPERTIES: u8 = b'p';
const DUE: u8 = b'e';
const PENDING_COPY: u8 = b'y';
const DELEGATION_KEY: u8 = b'w';

/// The value of a row whose key says everything.
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

/// The number in a key of the condemned kind.
pub fn condemned_id(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 1).ok_or_else(|| corrupt("the key of something condemned"))
}

/// Everything that is due at some time.
pub fn due_tasks() -> Bytes {
    Bytes::from_static(&[DUE])
}

/// `id` is unused by anything else that is due.
pub fn due_task(at: Timestamp, id: u64) -> Bytes {
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
