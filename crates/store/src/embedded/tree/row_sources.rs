//! What the rows of a tree are read from: its memtables, newest first, and its tables. These sources never
//! change. They are replaced when a memtable is closed or flushed or when tables are merged.

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lsm_tree::merge::Merger;
use lsm_tree::mvcc_stream::MvccStream;
use lsm_tree::table::filter::standard_bloom;
use lsm_tree::{BoxedIterator, InternalValue, Memtable, SeqNo, UserKey};

use super::levels::{Levels, Summarized};
use super::table_file::TableFile;
use crate::engine::{KeyRange, Order, Row};

/// The hash that the filters of tables use.
pub(in crate::embedded) fn hash_of(key: &[u8]) -> u64 {
    standard_bloom::Builder::get_hash(key)
}

#[derive(Clone)]
pub(super) struct RowSources {
    /// Newest first; rows are put into the first.
    pub memtables: Vec<FilteredMemtable>,
    pub levels: Arc<Levels<TableFile>>,
}

/// A part of what a scan finds.
pub(in crate::embedded) struct Scanned {
    pub rows: Vec<Row>,
    /// Where to go on, if the scan has not come to its end.
    pub rest: Option<KeyRange>,
}

impl RowSources {
    pub fn new(levels: Levels<TableFile>) -> Self {
        Self { memtables: vec![FilteredMemtable::default()], levels: Arc::new(levels) }
    }

    pub fn put(&self, hash: u64, row: InternalValue) {
        if let Some(active) = self.memtables.first() {
            // Before the sequence is published, so that every reader that may see the row finds it.
            active.keys.note(hash);
            if row.is_tombstone() {
                active.tombstones.fetch_add(1, Ordering::Relaxed);
            }
            active.rows.insert(row);
        }
    }

    /// The row as seen by a snapshot of what is below `before`.
    pub fn get(
        &self,
        hash: u64,
        key: &[u8],
        before: SeqNo,
    ) -> lsm_tree::Result<Option<InternalValue>> {
        let mut may_have = self.memtables.iter().filter(|memtable| memtable.keys.may_have(hash));
        let found = match may_have.find_map(|memtable| memtable.rows.get(key, before)) {
            Some(row) => Some(row),
            None => self.find_in_tables(hash, key, before)?,
        };
        Ok(found.filter(|row| !row.is_tombstone()))
    }

    fn find_in_tables(
        &self,
        hash: u64,
        key: &[u8],
        before: SeqNo,
    ) -> lsm_tree::Result<Option<InternalValue>> {
        for run in self.levels.runs() {
            // The tables of a flush have the same filters: most rows that are looked for are ruled out by
            // one word of memory, before any key is compared.
            let is_ruled_out = run.tables().first().is_some_and(|table| table.rules_out(hash));
            if !is_ruled_out
                && let Some(table) = run.covering(key)
                && let Some(row) = table.table.get(key, before, hash)?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// At most `limit` rows of the range, in the given order. Reads no more than `steps` versions of rows,
    /// visible or not.
    pub fn scan(
        &self,
        range: &KeyRange,
        order: Order,
        before: SeqNo,
        limit: usize,
        steps: usize,
    ) -> lsm_tree::Result<Scanned> {
        let mut rows = Vec::new();
        let Some(bounds) = Bounds::of(range) else { return Ok(Scanned { rows, rest: None }) };
        let passed = Cell::new(0);
        let versions = Merger::new(self.iterators(range, &bounds));
        let seen = versions.filter(|version| {
            passed.set(passed.get() + 1);
            version.as_ref().map_or(true, |version| version.key.seqno < before)
        });
        let mut newest = MvccStream::new(seen);
        while rows.len() < limit {
            let next = match order {
                Order::Ascending => newest.next(),
                Order::Descending => newest.next_back(),
            };
            let Some(version) = next.transpose()? else { break };
            let is_tombstone = version.is_tombstone();
            let key = Bytes::from(version.key.user_key);
            if !is_tombstone {
                rows.push(Row { key: key.clone(), value: version.value.into() });
            }
            if passed.get() >= steps && rows.len() < limit {
                let rest = match order {
                    Order::Ascending => range.clone().after(key),
                    Order::Descending => range.clone().ending_before(key),
                };
                return Ok(Scanned { rows, rest: Some(rest) });
            }
        }
        Ok(Scanned { rows, rest: None })
    }

    fn iterators<'a>(&'a self, range: &KeyRange, bounds: &Bounds) -> Vec<BoxedIterator<'a>> {
        let in_memory = self.memtables.iter().map(|memtable| memtable.range(bounds));
        let in_tables = self.levels.runs().filter_map(|run| {
            let tables = run.tables();
            let from =
                tables.partition_point(|it| ends_before(it.summary().last_key.as_ref(), range));
            let to =
                tables.partition_point(|it| !begins_behind(it.summary().first_key.as_ref(), range));
            let tables = tables.get(from..to).filter(|tables| !tables.is_empty())?;
            let bounds = (bounds.start.clone(), bounds.end.clone());
            let rows = tables.iter().flat_map(move |it| it.table.range(bounds.clone()));
            Some(Box::new(rows) as BoxedIterator<'a>)
        });
        in_memory.chain(in_tables).collect()
    }
}

/// Whether the range begins after `last`.
fn ends_before(last: &[u8], range: &KeyRange) -> bool {
    match &range.start {
        Bound::Included(start) => *last < **start,
        Bound::Excluded(start) => *last <= **start,
        Bound::Unbounded => false,
    }
}

/// Whether the range ends before `first`.
fn begins_behind(first: &[u8], range: &KeyRange) -> bool {
    match &range.end {
        Bound::Included(end) => *first > **end,
        Bound::Excluded(end) => *first >= **end,
        Bound::Unbounded => false,
    }
}

/// A range as tables take it.
struct Bounds {
    start: Bound<UserKey>,
    end: Bound<UserKey>,
}

impl Bounds {
    /// None if no key can lie between them. There is no empty key.
    fn of(range: &KeyRange) -> Option<Self> {
        let key = |bound: &Bound<Bytes>| match bound {
            Bound::Included(key) => Bound::Included(UserKey::from(key.clone())),
            Bound::Excluded(key) => Bound::Excluded(UserKey::from(key.clone())),
            Bound::Unbounded => Bound::Unbounded,
        };
        let is_empty_key = |bound: &Bound<Bytes>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.is_empty(),
            Bound::Unbounded => false,
        };
        if range.is_empty() || is_empty_key(&range.end) {
            return None;
        }
        let start = if is_empty_key(&range.start) { Bound::Unbounded } else { key(&range.start) };
        Some(Self { start, end: key(&range.end) })
    }
}

#[derive(Clone)]
pub(super) struct FilteredMemtable {
    pub rows: Arc<Memtable>,
    pub keys: Arc<KeyFilter>,
    pub tombstones: Arc<AtomicU64>,
}

impl Default for FilteredMemtable {
    fn default() -> Self {
        // Its number means nothing here.
        let rows = Arc::new(Memtable::new(0));
        Self { rows, keys: Arc::default(), tombstones: Arc::default() }
    }
}

impl FilteredMemtable {
    fn range(&self, bounds: &Bounds) -> BoxedIterator<'_> {
        // Of the versions of a key the newest comes first.
        let newest = |key: &UserKey| InternalValue::new_tombstone(key.clone(), SeqNo::MAX).key;
        let oldest = |key: &UserKey| InternalValue::new_tombstone(key.clone(), 0).key;
        let start = match &bounds.start {
            Bound::Included(key) => Bound::Included(newest(key)),
            Bound::Excluded(key) => Bound::Excluded(oldest(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match &bounds.end {
            Bound::Included(key) => Bound::Included(oldest(key)),
            Bound::Excluded(key) => Bound::Excluded(newest(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let found = self.rows.items.range((start, end));
        Box::new(found.map(|entry| {
            Ok(InternalValue { key: entry.key().clone(), value: entry.value().clone() })
        }))
    }
}

/// The filters of several memtables: a key that none of them has is in none of the memtables.
pub(super) type Filters = Arc<[Arc<KeyFilter>]>;

/// Which keys a memtable may have, and the table that it is flushed to until that is merged. Most rows
/// that are looked for are in neither. A memtable needs a dozen cache misses to tell that, and a table
/// with its own filter about five; this needs one.
pub(super) struct KeyFilter {
    /// Each key has two bits of one word.
    words: Box<[AtomicU64]>,
}

/// 64 bits for each KiB of a memtable: enough to tell most keys apart unless rows are very short.
const FILTER_WORDS: usize = 16 * 1024;

impl Default for KeyFilter {
    fn default() -> Self {
        Self { words: (0..FILTER_WORDS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl KeyFilter {
    fn note(&self, hash: u64) {
        let (word, bits) = self.place(hash);
        word.fetch_or(bits, Ordering::Relaxed);
    }

    pub fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bits = 1 << ((hash >> 32) & 63) | 1 << ((hash >> 40) & 63);
        (&self.words[hash as usize % FILTER_WORDS], bits)
    }
}
