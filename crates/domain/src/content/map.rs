//! Contents of many parts: a row for each, ordered by where it begins.
//!
//! A map is changed only together with the row of the blob that has it, which the transaction has
//! read; so its own rows need no expectations, unless it is layered on another map, see [`layers`]. A
//! map shared by several contents never changes: a content that is written gets its own first.

use std::ops::Range;

use bytes::Bytes;
use holdfast_store::{Fault, Order, Row, Snapshot};
use serde::{Deserialize, Serialize};

use super::layers::{self, Ground, ROWS_PER_SCAN};
use super::references::map_references;
use super::rows;
use super::{Content, Part};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::transact::Transaction;

/// The most entries that the first change of a shared map copies; with more it copies none, see
/// [`layers`].
const COPIED_ENTRIES_MAX: usize = if cfg!(test) { 3 } else { 1024 };
/// The most entries that a change removes one by one.
const CUT_ENTRIES_MAX: usize = if cfg!(test) { 3 } else { 1024 };
/// Layers of maps, beyond which one is copied whole: a client that takes snapshots and writes
/// faster than maps are filled waits for it.
const LAYERS_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// A window on a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// For a committed block, its id.
    pub block: Option<Bytes>,
    /// Unique to the write that stored the part; kept by copies, so that two states of a blob can
    /// be compared without reading their bytes.
    pub written: u64,
    /// Where in the part the window begins.
    pub start: u64,
    pub length: u64,
    pub part: Part,
}

impl Stored for Entry {
    const FORMAT: u8 = 2;
    const WHAT: &'static str = "an entry of a map";

    /// Format 1 knew no holes.
    fn decode_earlier(format: u8, row: &[u8]) -> Option<Result<Self, postcard::Error>> {
        (format == 1).then(|| postcard::from_bytes(row))
    }
}

impl Entry {
    pub fn whole(part: Part, written: u64) -> Self {
        Self { block: None, written, start: 0, length: part.length(), part }
    }

    /// Zeros, whatever is below. `written` is the number of the clear, for comparing states; 0 if
    /// they are not reported as cleared.
    pub(super) fn hole(length: u64, written: u64) -> Self {
        Self { block: None, written, start: 0, length, part: Part::Hole }
    }

    /// It hides what is below and is not reported as cleared.
    pub(super) fn is_cover(&self) -> bool {
        self.part == Part::Hole && self.written == 0
    }

    /// The part of the window that begins `skip` bytes in and has `length` bytes.
    pub(super) fn narrowed(&self, skip: u64, length: u64) -> Self {
        match &self.part {
            Part::Bytes(bytes) => {
                let first = (self.start + skip) as usize;
                let part = Part::Bytes(bytes.slice(first..first + length as usize));
                Self { block: None, written: self.written, start: 0, length, part }
            }
            Part::Hole => Self { length, ..self.clone() },
            Part::Extents(_) | Part::Sealed(..) => {
                Self { block: None, start: self.start + skip, length, ..self.clone() }
            }
        }
    }
}

/// A new map, filled from front to back.
pub(crate) struct MapWriter {
    id: u64,
    end: u64,
}

impl MapWriter {
    /// `id` is unused by any other content.
    pub fn new(transaction: &mut Transaction, id: u64) -> Self {
        transaction.references.introduce_map(id);
        Self { id, end: 0 }
    }

    /// The caller has counted the references to the entry's part.
    pub fn push(&mut self, transaction: &mut Transaction, entry: &Entry) {
        transaction.put(rows::map_entry(self.id, self.end), entry.encode());
        self.end += entry.length;
    }

    pub fn finish(self) -> Content {
        Content::Mapped(self.id)
    }

    pub fn length(&self) -> u64 {
        self.end
    }
}

/// A content of so many zero bytes, reported as cleared by the clear with the number `id`. `id` is
/// unused by any other content.
pub(crate) fn all_cleared(transaction: &mut Transaction, length: u64, id: u64) -> Content {
    let mut map = MapWriter::new(transaction, id);
    map.push(transaction, &Entry::hole(length, id));
    map.finish()
}

/// A map that one content has alone, to be changed in place: by one [`Map::write`], [`Map::clear`]
/// or [`Map::cut_off`] in a transaction, since they look at what was there before it.
pub(crate) struct Map {
    id: u64,
    before: Before,
    /// Where it has no entry, a map below may have one.
    layered: bool,
    /// The number for a map layered on this one, if one is needed.
    unused: Option<u64>,
}

/// Which entries a map had before the transaction.
enum Before {
    None,
    Own,
    /// These; the transaction has copied them.
    Copied(Entries),
}

impl Map {
    /// The map of `content`, or an equal one if it is shared. `id` is unused by any other content.
    pub async fn own(
        transaction: &mut Transaction,
        content: &Content,
        id: u64,
    ) -> Result<Self, Fault> {
        match content {
            Content::Empty => {
                transaction.references.introduce_map(id);
                Ok(Self { id, before: Before::None, layered: false, unused: None })
            }
            Content::Mapped(map) => {
                transaction.expect(rows::map(*map));
                let references = map_references(transaction.snapshot(), *map).await?;
                let change = transaction.references.change_of_map(*map);
                if references.saturating_add_signed(change) == 1 {
                    let layered = layers::ground(transaction.snapshot(), *map).await?.is_some();
                    return Ok(Self { id: *map, before: Before::Own, layered, unused: Some(id) });
                }
                match few_entries(transaction.snapshot(), *map).await? {
                    Some(entries) => Ok(Self::copy(transaction, *map, entries, id)),
                    None => Ok(Self::upon(transaction, *map, id)),
                }
            }
            Content::Inline(_) | Content::Extents(_) => {
                Err(Fault::new("a content that is changed in place has no map"))
            }
        }
    }

    /// A map with the entries seen in `map`, which the content releases.
    fn copy(transaction: &mut Transaction, map: u64, entries: Entries, id: u64) -> Self {
        transaction.references.release_map(map);
        transaction.references.introduce_map(id);
        for (offset, entry) in &entries {
            transaction.references.retain(entry.part.pieces());
            transaction.put(rows::map_entry(id, *offset), entry.encode());
        }
        Self { id, before: Before::Copied(entries), layered: false, unused: None }
    }

    /// An empty map layered on `map`, which takes over the content's reference to it.
    fn upon(transaction: &mut Transaction, map: u64, id: u64) -> Self {
        transaction.references.introduce_map(id);
        transaction.put(rows::map_ground(id), Ground { map, from: 0 }.encode());
        Self { id, before: Before::None, layered: true, unused: None }
    }

    pub fn content(&self) -> Content {
        Content::Mapped(self.id)
    }

    /// Puts `entry` at `offset`, in place of what was there. The caller has counted the references
    /// to its part.
    pub async fn write(
        &self,
        transaction: &mut Transaction,
        offset: u64,
        entry: &Entry,
    ) -> Result<(), Fault> {
        let range = offset..offset + entry.length;
        let cut = self.touched(transaction, &range, usize::MAX).await?;
        self.cut(transaction, &cut, &range);
        transaction.put(rows::map_entry(self.id, offset), entry.encode());
        Ok(())
    }

    /// Puts `entry` at `offset`, where the map ends.
    pub fn append(&self, transaction: &mut Transaction, offset: u64, entry: &Entry) {
        transaction.put(rows::map_entry(self.id, offset), entry.encode());
    }

    /// Makes `range` zeros, reported as cleared by the clear of this number. If there are too many
    /// entries for a commit none is touched: a map layered on this one hides them, and they are
    /// removed in the background.
    pub async fn clear(
        &mut self,
        transaction: &mut Transaction,
        range: Range<u64>,
        written: u64,
    ) -> Result<(), Fault> {
        self.zero(transaction, range.clone(), range, written).await
    }

    /// As [`Map::clear`], for what lies after the end of a content that was shortened: it is not
    /// reported as cleared.
    pub async fn cut_off(
        &mut self,
        transaction: &mut Transaction,
        range: Range<u64>,
    ) -> Result<(), Fault> {
        self.zero(transaction, range.clone(), range, 0).await
    }

    /// As [`Map::clear`], where only `freed`, a part of `range`, is cleared. The few zeros around it
    /// count as written, by the write of this number.
    pub async fn zero(
        &mut self,
        transaction: &mut Transaction,
        range: Range<u64>,
        freed: Range<u64>,
        written: u64,
    ) -> Result<(), Fault> {
        let many = self.unused.map_or(usize::MAX, |_| CUT_ENTRIES_MAX);
        let touched = self.touched(transaction, &range, many.saturating_add(1)).await?;
        match self.unused {
            Some(unused) if touched.len() > many => {
                *self = Self::upon(transaction, self.id, unused);
            }
            Some(_) | None => self.cut(transaction, &touched, &range),
        }
        if (self.layered || written != 0) && !freed.is_empty() {
            let hole = Entry::hole(freed.end - freed.start, written);
            transaction.put(rows::map_entry(self.id, freed.start), hole.encode());
        }
        for edge in [range.start..freed.start, freed.end..range.end] {
            if !edge.is_empty() {
                let zeros = vec![0; (edge.end - edge.start) as usize];
                let entry = Entry::whole(Part::Bytes(zeros.into()), written);
                transaction.put(rows::map_entry(self.id, edge.start), entry.encode());
            }
        }
        Ok(())
    }

    /// Entries of this map alone that a change of `range` touches: all of them, or at least the
    /// first `limit`.
    async fn touched(
        &self,
        transaction: &mut Transaction,
        range: &Range<u64>,
        limit: usize,
    ) -> Result<Entries, Fault> {
        if self.layered {
            // A map that is being filled is not changed by its content alone.
            layers::expect_entries(transaction, self.id, range).await?;
        }
        let mut touched = Entries::new();
        match &self.before {
            Before::None => {}
            Before::Copied(copied) => {
                let touches = |(offset, entry): &&(u64, Entry)| {
                    *offset < range.end && offset + entry.length > range.start
                };
                touched.extend(copied.iter().filter(touches).cloned());
            }
            Before::Own => {
                let (snapshot, mut from) = (transaction.snapshot(), range.start);
                while from < range.end && touched.len() < limit {
                    let found = layers::own_entries(snapshot, self.id, from..range.end).await?;
                    let Some((last, entry)) = found.last() else { break };
                    from = last + entry.length;
                    touched.extend(found);
                }
            }
        }
        Ok(touched)
    }

    /// Removes `range` from the entries that it touches; what lies before and after it stays.
    fn cut(&self, transaction: &mut Transaction, touched: &Entries, range: &Range<u64>) {
        for (offset, entry) in touched {
            let (offset, end) = (*offset, offset + entry.length);
            transaction.references.release(entry.part.pieces());
            if offset >= range.start {
                transaction.delete(rows::map_entry(self.id, offset));
            }
            let before = offset..range.start.min(end);
            let behind = range.end.max(offset)..end;
            for kept in [before, behind].into_iter().filter(|kept| kept.start < kept.end) {
                let narrowed = entry.narrowed(kept.start - offset, kept.end - kept.start);
                transaction.references.retain(narrowed.part.pieces());
                transaction.put(rows::map_entry(self.id, kept.start), narrowed.encode());
            }
        }
    }
}

/// Entries with their offsets.
type Entries = Vec<(u64, Entry)>;

/// All entries seen in a map, if they are few enough to be copied in a commit or the map has too
/// many layers.
async fn few_entries(snapshot: &dyn Snapshot, map: u64) -> Result<Option<Entries>, Fault> {
    let too_deep = layers::depth(snapshot, map).await? >= LAYERS_MAX;
    let (mut all, mut from) = (Entries::new(), 0);
    while too_deep || all.len() <= COPIED_ENTRIES_MAX {
        let found = layers::entries(snapshot, map, from..u64::MAX).await?;
        let Some((offset, entry)) = found.last() else { return Ok(Some(all)) };
        from = offset + entry.length;
        all.extend(found);
    }
    Ok(None)
}

pub(super) fn decode(row: &Row) -> Result<(u64, Entry), Fault> {
    Ok((rows::map_entry_offset(&row.key)?, Entry::decode(&row.value)?))
}

/// Removes entries of a map without references, and with the last ones the row that condemns it,
/// which names the map below.
pub(crate) async fn remove_condemned_map(domain: &Domain, id: u64) -> Result<(), Failure<()>> {
    let entries = rows::map_entries(id);
    let rest = domain.removal_progress.rest(&entries);
    let key = rows::condemned_map(id);
    let removed = domain
        .transact(&[], async |mut transaction| {
            let Some(ground) = transaction.get(&key).await? else {
                return Ok((Vec::new(), transaction));
            };
            let found = transaction.snapshot().scan(&rest, Order::Ascending, ROWS_PER_SCAN).await?;
            if found.len() < ROWS_PER_SCAN {
                transaction.delete(key.clone());
                if !ground.is_empty() {
                    let ground = Ground::decode(&ground)?;
                    transaction.references.release_map(ground.map);
                }
            }
            let mut removed = Vec::with_capacity(found.len());
            for row in found {
                let (_, entry) = decode(&row)?;
                transaction.references.release(entry.part.pieces());
                transaction.delete(row.key.clone());
                removed.push(row.key);
            }
            Ok((removed, transaction))
        })
        .await?;
    domain.removal_progress.removed(&[entries], &removed, removed.len() == ROWS_PER_SCAN);
    Ok(())
}

#[cfg(test)]
mod tests;
