//! The keys of the rows of contents: their bytes, maps and extents.

use bytes::{BufMut, Bytes, BytesMut};
use holdfast_store::{ExtentId, Fault};

use crate::rows::{corrupt, number_at, numbered};

pub const INLINE_CONTENT: u8 = b'i';
const MAP: u8 = b'n';
const MAP_ENTRY: u8 = b'm';
const MAP_GROUND: u8 = b'g';
const CONDEMNED_MAP: u8 = b'o';
const EXTENT: u8 = b'x';

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

/// All maps that are layered on others.
pub fn map_grounds() -> Bytes {
    Bytes::from_static(&[MAP_GROUND])
}

/// The map below this one, while there is one. [`condemned_id`] reads the number back.
pub fn map_ground(map: u64) -> Bytes {
    numbered(MAP_GROUND, map).freeze()
}

pub fn condemned_maps() -> Bytes {
    Bytes::from_static(&[CONDEMNED_MAP])
}

pub fn condemned_map(id: u64) -> Bytes {
    numbered(CONDEMNED_MAP, id).freeze()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::condemned_id;

    #[test]
    fn numbers_come_back_out_of_keys() {
        assert_eq!(map_entry_offset(&map_entry(7, 512)).expect("an offset"), 512);
        assert_eq!(condemned_id(&condemned_map(9)).expect("an id"), 9);
        let id = ExtentId { segment: 3, offset: 4096 };
        assert_eq!(extent_id(&extent(id)).expect("an id"), id);
    }
}
