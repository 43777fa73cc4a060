//! The keys of the rows of the Table service.
//!
//! The entities of a table are in the order in which queries answer: by PartitionKey, then by
//! RowKey, both ordinal (see [`compare_ordinal`](super::compare_ordinal)). A partition is one range
//! of keys. Keys of entities have no control characters, so a zero byte ends a PartitionKey, and
//! sorts before every longer one.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::Fault;

use super::value::ordinal_byte;
use crate::rows::{corrupt, named, number_at, numbered};

const TABLE: u8 = b'T';
const ENTITY: u8 = b'E';
const CONDEMNED_TABLE: u8 = b'F';
const HELD_TABLE_NAME: u8 = b'G';

/// The length of the kind and the number of the table, before the keys of an entity.
const ENTITY_FRONT_BYTES: usize = 9;

/// All tables of an account.
pub fn tables(account: &str) -> Bytes {
    named(TABLE, account).freeze()
}

/// The same for names that differ in their case only.
pub fn table(account: &str, name: &str) -> Bytes {
    with_table_name(TABLE, account, name)
}

pub fn held_table_name(account: &str, name: &str) -> Bytes {
    with_table_name(HELD_TABLE_NAME, account, name)
}

fn with_table_name(kind: u8, account: &str, name: &str) -> Bytes {
    // Exactly the needed capacity: every request makes such a key, and growing it would allocate
    // twice.
    let mut key = Vec::with_capacity(account.len() + name.len() + 2);
    key.push(kind);
    key.extend_from_slice(account.as_bytes());
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key[account.len() + 2..].make_ascii_lowercase();
    key.into()
}

pub fn condemned_tables() -> Bytes {
    Bytes::from_static(&[CONDEMNED_TABLE])
}

pub fn condemned_table(table: u64) -> Bytes {
    numbered(CONDEMNED_TABLE, table).freeze()
}

/// All entities of a table.
pub fn entities(table: u64) -> Bytes {
    numbered(ENTITY, table).freeze()
}

pub fn entity(table: u64, partition_key: &str, row_key: &str) -> Bytes {
    let length = ENTITY_FRONT_BYTES + partition_key.len() + 1 + row_key.len();
    let mut key = BytesMut::with_capacity(length);
    key.put_u8(ENTITY);
    key.put_u64(table);
    put_ordinal(&mut key, partition_key);
    key.put_u8(0);
    put_ordinal(&mut key, row_key);
    key.freeze()
}

/// The prefix of the keys of all entities of a partition, and the smallest such key.
pub fn partition(table: u64, partition_key: &str) -> Bytes {
    entity(table, partition_key, "")
}

/// After every entity of the partition, before those of every greater one.
pub fn after_partition(table: u64, partition_key: &str) -> Bytes {
    let mut key = numbered(ENTITY, table);
    put_ordinal(&mut key, partition_key);
    key.put_u8(1);
    key.freeze()
}

/// The PartitionKey and the RowKey in a key made by [`entity`].
pub fn entity_keys(key: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), Fault> {
    let keys = key.get(ENTITY_FRONT_BYTES..).unwrap_or_default();
    let end = keys.iter().position(|byte| *byte == 0).ok_or_else(|| corrupt("an entity's key"))?;
    Ok((ordinal_text(&keys[..end])?, ordinal_text(&keys[end + 1..])?))
}

/// The number of the table in the key of one of its entities, or of a table that is condemned.
pub fn table_of(key: &[u8]) -> Result<u64, Fault> {
    number_at(key, 1).ok_or_else(|| corrupt("the key of something in a table"))
}

fn put_ordinal(key: &mut BytesMut, text: &str) {
    if text.bytes().any(|byte| ordinal_byte(byte) != byte) {
        text.bytes().for_each(|byte| key.put_u8(ordinal_byte(byte)));
    } else {
        key.put_slice(text.as_bytes());
    }
}

fn ordinal_text(bytes: &[u8]) -> Result<Cow<'_, str>, Fault> {
    let fault = |_| corrupt("a key of an entity");
    if bytes.iter().any(|byte| *byte >= 0xFE) {
        let plain = bytes.iter().map(|byte| if *byte >= 0xFE { byte - 0x10 } else { *byte });
        let text = String::from_utf8(plain.collect()).map_err(|error| fault(error.utf8_error()))?;
        return Ok(Cow::Owned(text));
    }
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(fault)
}

#[cfg(test)]
mod tests {
    use holdfast_store::KeyRange;

    use super::*;

    /// In the order in which they are to be.
    const KEYS: [(&str, &str); 12] = [
        ("", ""),
        ("", "a"),
        (" ", ""),
        ("a", ""),
        ("a", "a"),
        ("a", "z"),
        ("a b", ""),
        ("aa", "a"),
        ("b", "\u{1F600}"),
        ("b", "\u{FB00}"),
        ("\u{1F600}", "x"),
        ("\u{E000}\u{FFFD}", "y"),
    ];

    #[test]
    fn keys_of_entities_sort_as_queries_answer_and_come_back() {
        let keys: Vec<Bytes> =
            KEYS.iter().map(|(partition, row)| entity(7, partition, row)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        for (key, (partition, row)) in keys.iter().zip(KEYS) {
            let (found_partition, found_row) = entity_keys(key).expect("two keys");
            assert_eq!((found_partition.as_ref(), found_row.as_ref()), (partition, row));
            assert_eq!(table_of(key).expect("a number"), 7);
        }
    }

    #[test]
    fn a_partition_is_one_range_with_nothing_else_in_it() {
        for (partition, _) in KEYS {
            let range = KeyRange::prefix(super::partition(7, partition));
            for (other, row) in KEYS {
                let inside = range.contains(&entity(7, other, row));
                assert_eq!(inside, other == partition, "{other:?} in {partition:?}");
            }
            let after = after_partition(7, partition);
            for (other, row) in KEYS {
                let behind = entity(7, other, row) >= after;
                let greater = super::super::compare_ordinal(other, partition).is_gt();
                assert_eq!(behind, greater, "{other:?} after {partition:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_a_fault() {
        for bytes in
            [&b"E"[..], b"E12345678", b"E12345678a", b"E12345678\xC3\0", b"E12345678\0\xFE"]
        {
            assert!(entity_keys(bytes).is_err(), "{bytes:?}");
        }
    }
}
