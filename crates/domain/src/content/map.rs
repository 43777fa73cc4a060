//! Contents of many parts: a row for each, ordered by where it begins.
//!
//! A map is changed only together with the row of the blob that has it, which the transaction has
//! read; so its own rows need no expectations. A map that several contents have is never changed:
//! the one that writes gets its own first.

use std::ops::Range;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};
use serde::{Deserialize, Serialize};

use super::references::map_references;
use super::{Content, Part};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::{self, Stored};
use crate::transact::Transaction;

/// Rows read at a time; each may hold a part of up to [`super::INLINE_BYTES_MAX`].
const ROWS_PER_SCAN: usize = 256;

/// A window on a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// For a committed block, its id.
    pub block: Option<Bytes>,
    /// Unique to the write that brought the part; kept by copies, so that two states of a blob can
    /// be compared without their bytes.
    pub written: u64,
    /// Where in the part the window begins.
    pub start: u64,
    pub length: u64,
    pub part: Part,
}

impl Stored for Entry {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "an entry of a map";
}

impl Entry {
    pub fn whole(part: Part, written: u64) -> Self {
        Self { block: None, written, start: 0, length: part.length(), part }
    }

    /// The part of the window that begins `skip` bytes in and has `length` bytes.
    fn narrowed(&self, skip: u64, length: u64) -> Self {
        match &self.part {
            Part::Bytes(bytes) => {
                let first = (self.start + skip) as usize;
                let part = Part::Bytes(bytes.slice(first..first + length as usize));
                Self { block: None, written: self.written, start: 0, length, part }
            }
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

/// A map that one content has alone, to be changed in place: by one [`Map::write`] or one
/// [`Map::clear`] in a transaction, since they look at what was there before it.
pub(crate) struct Map {
    id: u64,
    /// The map that had the same entries before the transaction.
    before: u64,
}

impl Map {
    /// The map of `content`, or a copy of it if others have it too. `id` is unused by any other
    /// content.
    pub async fn own(
        transaction: &mut Transaction,
        content: &Content,
        id: u64,
    ) -> Result<Self, Fault> {
        match content {
            Content::Empty => {
                transaction.references.introduce_map(id);
                Ok(Self { id, before: id })
            }
            Content::Mapped(shared) => {
                transaction.expect(rows::map(*shared));
                if map_references(transaction.snapshot(), *shared).await? == 1 {
                    return Ok(Self { id: *shared, before: *shared });
                }
                transaction.references.release_map(*shared);
                transaction.references.introduce_map(id);
                let mut from = 0;
                loop {
                    let found = entries(transaction.snapshot(), *shared, from..u64::MAX).await?;
                    let Some((offset, entry)) = found.last() else { break };
                    from = offset + entry.length;
                    for (offset, entry) in found {
                        transaction.references.retain(entry.part.pieces());
                        transaction.put(rows::map_entry(id, offset), entry.encode());
                    }
                }
                Ok(Self { id, before: *shared })
            }
            Content::Inline(_) | Content::Extents(_) => {
                Err(Fault::new("a content that is changed in place has no map"))
            }
        }
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
        self.clear(transaction, offset..offset + entry.length).await?;
        transaction.put(rows::map_entry(self.id, offset), entry.encode());
        Ok(())
    }

    /// Puts `entry` at `offset`, where the map ends.
    pub fn append(&self, transaction: &mut Transaction, offset: u64, entry: &Entry) {
        transaction.put(rows::map_entry(self.id, offset), entry.encode());
    }

    /// Leaves zeros in `range`.
    pub async fn clear(
        &self,
        transaction: &mut Transaction,
        range: Range<u64>,
    ) -> Result<(), Fault> {
        let mut from = range.start;
        while from < range.end {
            let found = entries(transaction.snapshot(), self.before, from..range.end).await?;
            let Some((last, entry)) = found.last() else { break };
            from = last + entry.length;
            for (offset, entry) in found {
                self.cut(transaction, offset, &entry, &range);
            }
        }
        Ok(())
    }

    /// Takes `range` out of an entry that it touches; what lies before and behind stays.
    fn cut(&self, transaction: &mut Transaction, offset: u64, entry: &Entry, range: &Range<u64>) {
        let end = offset + entry.length;
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

/// Entries of a map that touch `range`, each with where it begins: the first ones, as many as are
/// read at a time; none if there are none.
pub(crate) async fn entries(
    snapshot: &dyn Snapshot,
    map: u64,
    range: Range<u64>,
) -> Result<Vec<(u64, Entry)>, Fault> {
    let all = KeyRange::prefix(rows::map_entries(map));
    let mut found = Vec::new();
    if range.start > 0 {
        let before = all.clone().ending_before(rows::map_entry(map, range.start));
        if let Some(row) = snapshot.scan(&before, Order::Descending, 1).await?.pop() {
            let (offset, entry) = decode(&row)?;
            if offset + entry.length > range.start {
                found.push((offset, entry));
            }
        }
    }
    let within = all.starting_at(rows::map_entry(map, range.start));
    let within = within.ending_before(rows::map_entry(map, range.end));
    if !within.is_empty() {
        for row in snapshot.scan(&within, Order::Ascending, ROWS_PER_SCAN).await? {
            found.push(decode(&row)?);
        }
    }
    Ok(found)
}

fn decode(row: &Row) -> Result<(u64, Entry), Fault> {
    Ok((rows::map_entry_offset(&row.key)?, Entry::decode(&row.value)?))
}

/// Removes entries of a map that no content has any more, and with the last ones its sentence.
pub(crate) async fn remove_condemned_map(domain: &Domain, id: u64) -> Result<(), Failure<()>> {
    let all = KeyRange::prefix(rows::map_entries(id));
    domain
        .transact(&[], async |mut transaction| {
            let sentence = rows::condemned_map(id);
            transaction.expect(sentence.clone());
            let found = transaction.snapshot().scan(&all, Order::Ascending, ROWS_PER_SCAN).await?;
            if found.len() < ROWS_PER_SCAN {
                transaction.delete(sentence);
            }
            for row in found {
                let (_, entry) = decode(&row)?;
                transaction.references.release(entry.part.pieces());
                transaction.delete(row.key);
            }
            Ok(((), transaction))
        })
        .await
}

#[cfg(test)]
mod tests;
