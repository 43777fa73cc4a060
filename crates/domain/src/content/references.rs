//! Reference counts of extents and maps. Each has a row with its count, changed in the same commit
//! as the rows that refer to it; at zero the space is freed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use holdfast_store::{Batch, Extent, ExtentId, Extents, Fault, Snapshot};
use serde::{Deserialize, Serialize};

use super::rows;
use super::{Piece, missing_extent};
use crate::rows::{NOTHING, Stored};

#[derive(Serialize, Deserialize)]
pub(super) struct ExtentRow {
    references: u64,
    pub length: u64,
    pub checksums: Arc<[u32]>,
}

impl Stored for ExtentRow {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "an extent";
}

/// The row of a map beside those of its entries.
#[derive(Serialize, Deserialize)]
struct MapRow {
    references: u64,
}

impl Stored for MapRow {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a map of a content";
}

/// The changes of reference counts by a transaction. Summed here first, since a row may change more
/// than once; then written once, before the commit.
#[derive(Default)]
pub(crate) struct References {
    extents: BTreeMap<ExtentId, i64>,
    maps: BTreeMap<u64, i64>,
    new_extents: HashMap<ExtentId, (u64, Arc<[u32]>)>,
    new_maps: BTreeSet<u64>,
}

impl References {
    /// An extent that no row names yet, with its first reference.
    pub fn introduce(&mut self, extent: &Extent) {
        self.new_extents.insert(extent.id, (extent.length, Arc::clone(&extent.checksums)));
        *self.extents.entry(extent.id).or_default() += 1;
    }

    pub fn retain(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            *self.extents.entry(piece.extent()).or_default() += 1;
        }
    }

    pub fn release(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            *self.extents.entry(piece.extent()).or_default() -= 1;
        }
    }

    /// A map that has no row yet, with its first reference.
    pub fn introduce_map(&mut self, id: u64) {
        self.new_maps.insert(id);
        self.retain_map(id);
    }

    pub fn retain_map(&mut self, id: u64) {
        *self.maps.entry(id).or_default() += 1;
    }

    pub fn release_map(&mut self, id: u64) {
        *self.maps.entry(id).or_default() -= 1;
    }

    /// How many references to a map the transaction adds, or removes if negative.
    pub fn change_of_map(&self, id: u64) -> i64 {
        self.maps.get(&id).copied().unwrap_or_default()
    }

    /// Writes the changes into `batch`, and expects the rows they build on.
    pub async fn settle(
        self,
        snapshot: &dyn Snapshot,
        batch: &mut Batch,
    ) -> Result<Released, Fault> {
        let mut released = Released::default();
        for (id, change) in self.maps.into_iter().filter(|(_, change)| *change != 0) {
            let key = rows::map(id);
            let before = if self.new_maps.contains(&id) {
                0
            } else {
                batch.expect_row(key.clone());
                map_references(snapshot, id).await?
            };
            let references = before.saturating_add_signed(change);
            if references > 0 {
                batch.put(key, MapRow { references }.encode());
            } else {
                batch.delete(key);
                let ground = take_ground(snapshot, batch, id).await?;
                batch.put(rows::condemned_map(id), ground);
            }
        }
        for (id, change) in self.extents.into_iter().filter(|(_, change)| *change != 0) {
            let key = rows::extent(id);
            let row = match self.new_extents.get(&id) {
                Some((length, checksums)) => {
                    ExtentRow { references: 0, length: *length, checksums: Arc::clone(checksums) }
                }
                None => {
                    batch.expect_row(key.clone());
                    let row = snapshot.get(&key).await?;
                    ExtentRow::decode(&row.ok_or_else(|| missing_extent(id))?)?
                }
            };
            let references = row.references.saturating_add_signed(change);
            if references > 0 {
                batch.put(key, ExtentRow { references, ..row }.encode());
            } else {
                batch.delete(key);
                released.0.push((id, row.length));
            }
        }
        Ok(released)
    }
}

/// The row of the map below this one, if there is one, to be released when this one is removed.
async fn take_ground(snapshot: &dyn Snapshot, batch: &mut Batch, map: u64) -> Result<Bytes, Fault> {
    let key = rows::map_ground(map);
    batch.expect_row(key.clone());
    let Some(ground) = snapshot.get(&key).await? else {
        return Ok(Bytes::from_static(NOTHING));
    };
    batch.delete(key);
    Ok(ground)
}

/// Extents whose last reference a commit removes: freed after it.
#[derive(Default, Debug)]
pub(crate) struct Released(Vec<(ExtentId, u64)>);

impl Released {
    pub fn free(self, extents: &dyn Extents) {
        for (id, length) in self.0 {
            extents.free(id, length);
        }
    }
}

/// The extents of one segment that rows name.
pub(crate) fn named_extent(key: &[u8], value: &[u8]) -> Result<(ExtentId, u64), Fault> {
    Ok((rows::extent_id(key)?, ExtentRow::decode(value)?.length))
}

/// The extent that a row describes.
pub(crate) fn stored_extent(key: &[u8], value: &[u8]) -> Result<Extent, Fault> {
    let ExtentRow { length, checksums, .. } = ExtentRow::decode(value)?;
    Ok(Extent { id: rows::extent_id(key)?, length, checksums })
}

/// How many contents have this map.
pub(super) async fn map_references(snapshot: &dyn Snapshot, id: u64) -> Result<u64, Fault> {
    let row = snapshot.get(&rows::map(id)).await?;
    let row = row.ok_or_else(|| Fault::new(format!("the row of map {id} is missing")))?;
    Ok(MapRow::decode(&row)?.references)
}
