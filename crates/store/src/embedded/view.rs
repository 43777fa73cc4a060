//! What single rows of a tree are read from: its memtables, the newest first, and its tables.
//!
//! The tree has that too, behind a lock which it holds while a manifest is written and synced, several
//! times a second under load: whoever reads or commits would wait for the disk. A view never changes.
//! It is replaced when a memtable is closed or tables have changed.
//!
//! A flush or a merge leaves versions of rows out that only snapshots before it can see. So those go on
//! with the tables that were there before, of which the last are kept here; what is older still, the
//! tree has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lsm_tree::table::filter::standard_bloom;
use lsm_tree::{
    AbstractTree, AnyTree, InternalValue, Memtable, SeqNo, SequenceNumberCounter, TableId,
};

pub(super) struct View {
    newest: Arc<Places>,
    before_that: Option<Arc<Places>>,
}

/// Where rows are.
struct Places {
    /// The newest first, which is the one that rows are put into.
    memtables: Vec<FilteredMemtable>,
    tables: Arc<Tables>,
}

struct Tables {
    /// Of the tree's files.
    version: u64,
    /// Snapshots that see less than this are not to look here.
    from: SeqNo,
    find: Box<Find>,
    /// Those that are not merged yet, and which keys they may have. Nobody knows that of those that
    /// were there when the tree was opened.
    flushed: Vec<(TableId, Option<Filters>)>,
    unmerged_runs: usize,
}

/// Finds a row among tables. The tree's own type for them has no name outside of it.
type Find = dyn Fn(u64, &[u8], SeqNo) -> lsm_tree::Result<Option<InternalValue>> + Send + Sync;

/// By this hash the filters of tables know their keys.
pub(super) fn hash_of(key: &[u8]) -> u64 {
    standard_bloom::Builder::get_hash(key)
}

impl View {
    /// Of a tree that has just been opened.
    pub fn new(rows: &AnyTree) -> Self {
        let memtables = vec![FilteredMemtable::new(rows.active_memtable())];
        // There are no snapshots yet that could be too old.
        let tables = Arc::new(Tables::of(rows, None, &[], None));
        Self { newest: Arc::new(Places { memtables, tables }), before_that: None }
    }

    /// Rows are put into another memtable from now on. No sequence of theirs is known yet.
    pub fn with_memtable(&self, active: Arc<Memtable>) -> Self {
        let Places { memtables, tables } = &*self.newest;
        let active = std::iter::once(FilteredMemtable::new(active));
        let memtables = active.chain(memtables.iter().cloned()).collect();
        let newest = Places { memtables, tables: Arc::clone(tables) };
        Self { newest: Arc::new(newest), before_that: self.before_that.clone() }
    }

    /// The tables of the tree may have changed. `sequences` is what it numbers its versions from.
    pub fn with_tables_of(
        &self,
        rows: &AnyTree,
        sequences: &SequenceNumberCounter,
    ) -> Option<Self> {
        let Places { memtables, tables } = &*self.newest;
        // Before the tables are looked at: what is flushed in between is then in both, not in neither.
        let unflushed = 1 + rows.sealed_memtable_count();
        if rows.current_version().id() == tables.version && unflushed >= memtables.len() {
            return None;
        }
        let closed = memtables.iter().skip(1).map(|memtable| Arc::clone(&memtable.keys)).collect();
        let tables = Arc::new(Tables::of(rows, Some(sequences), &tables.flushed, Some(closed)));
        let memtables = memtables.iter().take(unflushed).cloned().collect();
        let newest = Arc::new(Places { memtables, tables });
        Some(Self { newest, before_that: Some(Arc::clone(&self.newest)) })
    }

    pub fn put(&self, hash: u64, row: InternalValue) {
        if let Some(active) = self.newest.memtables.first() {
            // Whoever may see the row reads its sequence, which is published after this.
            active.keys.note(hash);
            active.rows.insert(row);
        }
    }

    /// The row as a snapshot sees it that sees what is below `before`; none of either if the snapshot
    /// is too old for this view.
    pub fn get(
        &self,
        hash: u64,
        key: &[u8],
        before: SeqNo,
    ) -> Option<lsm_tree::Result<Option<InternalValue>>> {
        let mut places = std::iter::once(&self.newest).chain(&self.before_that);
        places.find(|places| places.tables.from <= before).map(|it| it.get(hash, key, before))
    }

    /// Runs of tables that are not merged yet.
    pub fn unmerged_runs(&self) -> usize {
        self.newest.tables.unmerged_runs
    }
}

impl Places {
    fn get(&self, hash: u64, key: &[u8], before: SeqNo) -> lsm_tree::Result<Option<InternalValue>> {
        let mut may_have = self.memtables.iter().filter(|memtable| memtable.keys.may_have(hash));
        let found = match may_have.find_map(|memtable| memtable.rows.get(key, before)) {
            Some(row) => Some(row),
            None => (self.tables.find)(hash, key, before)?,
        };
        Ok(found.filter(|row| !row.is_tombstone()))
    }
}

impl Tables {
    /// Tables that are not among the `known` ones have been flushed since, from memtables that have the
    /// keys `closed`.
    fn of(
        rows: &AnyTree,
        sequences: Option<&SequenceNumberCounter>,
        known: &[(TableId, Option<Filters>)],
        closed: Option<Filters>,
    ) -> Self {
        let version = rows.current_version();
        // Behind the version, whose own number is below this.
        let from = sequences.map_or(0, SequenceNumberCounter::get);
        let mut flushed = Vec::new();
        let mut unmerged: Vec<Option<Filters>> = Vec::new();
        for run in version.l0().iter() {
            let first = flushed.len();
            for id in run.iter().map(|table| table.id()) {
                let known = known.iter().find(|(known, _)| *known == id);
                let filters = known.map_or(&closed, |(_, filters)| filters).clone();
                flushed.push((id, filters));
            }
            // Of a run with a table that nobody knows the keys of, nobody knows the keys.
            let filters: Option<Vec<&Filters>> =
                flushed[first..].iter().map(|(_, filters)| filters.as_ref()).collect();
            let filters = filters.map(|them| them.into_iter().flat_map(|it| it.iter()).cloned());
            unmerged.push(filters.map(Iterator::collect));
        }
        let (id, unmerged_runs) = (version.id(), unmerged.len());
        let find = move |hash: u64, key: &[u8], before: SeqNo| {
            // The first of the levels is that of the runs that are not merged.
            let filters = unmerged.iter().map(Option::as_ref).chain(std::iter::repeat(None));
            let runs = version.iter_levels().flat_map(|level| level.iter()).zip(filters);
            for (run, filters) in runs {
                if filters.is_none_or(|filters| filters.iter().any(|keys| keys.may_have(hash)))
                    && let Some(table) = run.get_for_key(key)
                    && let Some(row) = table.get(key, before, hash)?
                {
                    return Ok(Some(row));
                }
            }
            Ok(None)
        };
        Self { version: id, from, find: Box::new(find), flushed, unmerged_runs }
    }
}

#[derive(Clone)]
struct FilteredMemtable {
    rows: Arc<Memtable>,
    keys: Arc<KeyFilter>,
}

impl FilteredMemtable {
    fn new(rows: Arc<Memtable>) -> Self {
        Self { rows, keys: Arc::default() }
    }
}

/// A row is in one of those that have the filters, if it is in any.
type Filters = Arc<[Arc<KeyFilter>]>;

/// Which keys a memtable may have, and the table that it is flushed to until that is merged. Most rows
/// that are looked for are in neither. To find that out from a memtable takes a dozen steps, each of
/// which waits for memory, and from a table with its own filter some five; this is one.
struct KeyFilter {
    /// Each key has two bits of one word.
    words: Box<[AtomicU64]>,
}

/// 64 bits for each KiB of a memtable: few rows are so short that these do not tell most keys apart.
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

    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bits = 1 << ((hash >> 32) & 63) | 1 << ((hash >> 40) & 63);
        (&self.words[hash as usize % FILTER_WORDS], bits)
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::{Config, SequenceNumberCounter, ValueType};

    use super::*;

    struct Rows {
        rows: AnyTree,
        sequences: SequenceNumberCounter,
        view: View,
    }

    impl Rows {
        fn open(folder: &std::path::Path, next: SeqNo) -> Self {
            let sequences = SequenceNumberCounter::new(next);
            let visible = SequenceNumberCounter::new(1);
            let rows = Config::new(folder, sequences.clone(), visible).open();
            let rows = rows.expect("a tree can be opened");
            let view = View::new(&rows);
            Self { rows, sequences, view }
        }

        /// Writes the sequence itself, which is returned; or deletes the row.
        fn write(&mut self, key: &str, is_put: bool) -> SeqNo {
            let sequence = self.sequences.next();
            let row = if is_put {
                InternalValue::from_components(
                    key,
                    sequence.to_string(),
                    sequence,
                    ValueType::Value,
                )
            } else {
                InternalValue::new_tombstone(key, sequence)
            };
            self.view.put(hash_of(key.as_bytes()), row);
            sequence
        }

        fn close(&mut self) {
            self.rows.rotate_memtable().expect("there are rows");
            self.view = self.view.with_memtable(self.rows.active_memtable());
        }

        /// Leaves out what only snapshots see that are older than `oldest`.
        fn flush(&mut self, oldest: SeqNo) {
            self.flush_unseen(oldest);
            self.look();
        }

        fn flush_unseen(&self, oldest: SeqNo) {
            let lock = self.rows.get_flush_lock();
            self.rows.flush(&lock, oldest).expect("it is flushed");
        }

        fn merge(&mut self, oldest: SeqNo) {
            self.rows.major_compact(u64::MAX, oldest).expect("they are merged");
            self.look();
        }

        fn look(&mut self) {
            let view = self.view.with_tables_of(&self.rows, &self.sequences);
            self.view = view.expect("there are other tables");
        }

        /// The sequence of the write that a snapshot behind `last` sees.
        fn seen(&self, key: &str, last: SeqNo) -> Option<SeqNo> {
            let value = match self.view.get(hash_of(key.as_bytes()), key.as_bytes(), last + 1) {
                Some(row) => row.expect("it can be read").map(|row| row.value),
                None => self.rows.get(key, last + 1).expect("it can be read"),
            };
            let value = value?;
            Some(std::str::from_utf8(&value).expect("a text").parse().expect("a sequence"))
        }

        /// In how many places a table is looked for in vain.
        fn false_alarms(&self, key: &str) -> usize {
            let may_have = |keys: &Arc<KeyFilter>| keys.may_have(hash_of(key.as_bytes()));
            let Places { memtables, tables } = &*self.view.newest;
            let memtables = memtables.iter().filter(|memtable| may_have(&memtable.keys));
            let is_asked = |(_, filters): &&(TableId, Option<Filters>)| {
                filters.as_ref().is_none_or(|filters| filters.iter().any(may_have))
            };
            memtables.count() + tables.flushed.iter().filter(is_asked).count()
        }

        /// How many memtables, runs that are not merged, and tables in them there are.
        fn counts(&self) -> (usize, usize, usize) {
            let Places { memtables, tables } = &*self.view.newest;
            (memtables.len(), tables.unmerged_runs, tables.flushed.len())
        }
    }

    #[test]
    fn every_snapshot_finds_its_rows_wherever_they_have_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path(), 1);
        let mut expected = Vec::new();
        let check = |rows: &Rows, expected: &[(String, SeqNo, Option<SeqNo>)]| {
            for (key, last, seen) in expected {
                assert_eq!(rows.seen(key, *last), *seen, "{key} at {last}");
                assert_eq!(rows.seen(key, 0), None, "{key} at the beginning");
            }
            let alarms: usize = (0..1000).map(|it| rows.false_alarms(&format!("no {it}"))).sum();
            assert!(alarms < 10, "{alarms}");
        };
        for round in 0..6 {
            for number in 0..50 {
                let key = format!("{}", number * (round + 1));
                let is_put = (number + round) % 7 != 0;
                let written = rows.write(&key, is_put);
                expected.push((key, written, is_put.then_some(written)));
            }
            check(&rows, &expected);
            rows.close();
            check(&rows, &expected);
            if round % 2 == 1 {
                // Two memtables at once.
                rows.flush(0);
                check(&rows, &expected);
                assert_eq!(rows.counts().0, 1);
            }
        }
        assert_eq!(rows.counts(), (1, 3, 3));
        rows.merge(0);
        check(&rows, &expected);
        assert_eq!(rows.counts(), (1, 0, 0));
    }

    #[test]
    fn tables_that_were_there_before_are_asked_for_every_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path(), 1);
        let old = rows.write("old", true);
        rows.close();
        rows.flush(0);
        drop(rows);

        let mut rows = Rows::open(folder.path(), 100);
        assert_eq!(rows.seen("old", 100), Some(old));
        let new = rows.write("new", true);
        rows.close();
        rows.flush(0);
        // The tree makes one run of tables that do not overlap.
        assert_eq!(rows.counts(), (1, 1, 2));
        assert_eq!((rows.seen("old", new), rows.seen("new", new)), (Some(old), Some(new)));
    }

    #[test]
    fn what_is_flushed_while_a_memtable_is_closed_is_in_the_memtable_or_the_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path(), 1);
        let first = rows.write("first", true);
        rows.close();
        let second = rows.write("second", true);
        // Flushed, and the next memtable closed, before the view is replaced.
        rows.flush_unseen(0);
        rows.close();
        let third = rows.write("third", true);
        rows.look();
        assert_eq!(rows.counts().0, 2);
        for (key, written) in [("first", first), ("second", second), ("third", third)] {
            assert_eq!(rows.seen(key, third), Some(written), "{key}");
        }
        rows.flush(0);
        assert_eq!(rows.seen("second", third), Some(second));
    }

    #[test]
    fn a_snapshot_sees_what_later_changes_of_the_tables_leave_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path(), 1);
        let (old, deleted) = (rows.write("old", true), rows.write("deleted", true));
        let snapshot = rows.write("between", true);
        let new = rows.write("old", true);
        rows.write("deleted", false);
        let check = |rows: &Rows, case: &str| {
            assert_eq!(rows.seen("old", snapshot), Some(old), "{case}");
            assert_eq!(rows.seen("deleted", snapshot), Some(deleted), "{case}");
            let last = rows.sequences.get();
            assert_eq!(rows.seen("old", last), Some(new), "{case}");
            assert_eq!(rows.seen("deleted", last), None, "{case}");
        };
        rows.close();
        rows.flush(snapshot);
        check(&rows, "by the tables before that");
        rows.write("another", true);
        rows.close();
        rows.flush(snapshot);
        check(&rows, "by the tree");
        rows.merge(snapshot);
        check(&rows, "after a merge");
    }

    #[test]
    fn the_same_tables_are_no_new_view() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = Rows::open(folder.path(), 1);
        rows.write("row", true);
        assert!(rows.view.with_tables_of(&rows.rows, &rows.sequences).is_none());
        rows.close();
        assert!(rows.view.with_tables_of(&rows.rows, &rows.sequences).is_none());
        rows.flush(0);
        assert!(rows.view.with_tables_of(&rows.rows, &rows.sequences).is_none());
    }
}
