//! Which tables a tree has, and in which order they are searched. An arrangement is immutable: a flush
//! or a merge makes a new one.
//!
//! Tables come newest first in the order of [`Levels::runs`]: the first version of a row that is
//! found is the newest.

use std::collections::HashSet;
use std::sync::Arc;

/// Flushed tables form runs, newest first; tables below them form levels.
pub(super) const LEVELS: usize = 7;
/// The lowest level.
pub(super) const BOTTOM: usize = LEVELS - 1;

/// What is known of a table without looking into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub id: u64,
    pub first_key: Box<[u8]>,
    pub last_key: Box<[u8]>,
    pub bytes: u64,
    /// Versions of rows, including tombstones.
    pub versions: u64,
    pub tombstones: u64,
    /// The sequence of the newest version.
    pub newest: u64,
}

impl Summary {
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.first_key <= *key && *key <= *self.last_key
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.first_key <= other.last_key && other.first_key <= self.last_key
    }
}

pub(super) trait Summarized {
    fn summary(&self) -> &Summary;
}

/// Tables whose keys do not overlap, in the order of their keys.
pub(super) struct Run<T>(Vec<Arc<T>>);

impl<T> Clone for Run<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Run<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Summarized> Run<T> {
    /// # Panics
    /// If tables overlap: rows would be hidden.
    pub fn new(mut tables: Vec<Arc<T>>) -> Self {
        tables.sort_by(|one, other| one.summary().first_key.cmp(&other.summary().first_key));
        let overlap = tables.windows(2).any(|pair| pair[0].summary().overlaps(pair[1].summary()));
        assert!(!overlap, "the tables of a run overlap");
        Self(tables)
    }

    pub fn tables(&self) -> &[Arc<T>] {
        &self.0
    }

    /// The table that has the key, if any has.
    pub fn covering(&self, key: &[u8]) -> Option<&Arc<T>> {
        let at = self.0.partition_point(|table| *table.summary().last_key < *key);
        self.0.get(at).filter(|table| table.summary().covers(key))
    }

    /// The tables that have keys between these.
    pub fn overlapping(&self, first: &[u8], last: &[u8]) -> &[Arc<T>] {
        let from = self.0.partition_point(|table| *table.summary().last_key < *first);
        let to = self.0.partition_point(|table| *table.summary().first_key <= *last);
        &self.0[from..to.max(from)]
    }

    pub fn bytes(&self) -> u64 {
        bytes_of(&self.0)
    }
}

pub(super) fn bytes_of<T: Summarized>(tables: &[Arc<T>]) -> u64 {
    tables.iter().map(|table| table.summary().bytes).sum()
}

pub(super) struct Levels<T> {
    /// Newest first.
    pub flushed: Vec<Run<T>>,
    /// Below them, by level; that of number 0 is always empty.
    levels: [Run<T>; LEVELS],
}

impl<T> Clone for Levels<T> {
    fn clone(&self) -> Self {
        Self { flushed: self.flushed.clone(), levels: self.levels.clone() }
    }
}

impl<T> Default for Levels<T> {
    fn default() -> Self {
        Self { flushed: Vec::new(), levels: Default::default() }
    }
}

/// Where tables are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before all other flushed tables.
    Newest,
    Level(usize),
}

/// Tables, and where they are put.
pub(super) type Placed<T> = (Place, Vec<Arc<T>>);

impl<T: Summarized> Levels<T> {
    pub fn new(flushed: Vec<Run<T>>, levels: [Run<T>; LEVELS]) -> Self {
        Self { flushed, levels }
    }

    pub fn level(&self, number: usize) -> &Run<T> {
        &self.levels[number]
    }

    /// Newest first.
    pub fn runs(&self) -> impl Iterator<Item = &Run<T>> {
        self.flushed.iter().chain(&self.levels)
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<T>> {
        self.runs().flat_map(|run| run.tables())
    }

    pub fn bytes(&self) -> u64 {
        self.runs().map(Run::bytes).sum()
    }

    /// Whether a table below this level may have the key.
    pub fn is_covered_below(&self, level: usize, key: &[u8]) -> bool {
        self.levels[level + 1..].iter().any(|run| run.covering(key).is_some())
    }

    /// Whether any table may have the key.
    pub fn is_covered(&self, key: &[u8]) -> bool {
        self.runs().any(|run| run.covering(key).is_some())
    }

    /// The last of all keys.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.runs().filter_map(|run| run.0.last()).map(|table| &*table.summary().last_key).max()
    }

    /// A copy without some tables and with others.
    pub fn changed(&self, removed: &[Arc<T>], added: Vec<Placed<T>>) -> Self {
        let removed: HashSet<u64> = removed.iter().map(|table| table.summary().id).collect();
        let kept = |run: &Run<T>| -> Vec<Arc<T>> {
            let is_kept = |table: &&Arc<T>| !removed.contains(&table.summary().id);
            run.0.iter().filter(is_kept).cloned().collect()
        };
        let mut flushed: Vec<Run<T>> = self.flushed.iter().map(|run| Run(kept(run))).collect();
        let mut levels: [Vec<Arc<T>>; LEVELS] = std::array::from_fn(|it| kept(&self.levels[it]));
        for (place, tables) in added {
            match place {
                Place::Newest => flushed.insert(0, Run::new(tables)),
                Place::Level(number) => levels[number].extend(tables),
            }
        }
        flushed.retain(|run| !run.0.is_empty());
        Self { flushed, levels: levels.map(Run::new) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    impl Summarized for Summary {
        fn summary(&self) -> &Summary {
            self
        }
    }

    pub fn table(id: u64, keys: [&str; 2], bytes: u64) -> Arc<Summary> {
        let [first_key, last_key] = keys.map(|key| Box::from(key.as_bytes()));
        Arc::new(Summary {
            id,
            first_key,
            last_key,
            bytes,
            versions: 100,
            tombstones: 0,
            newest: 1,
        })
    }

    pub fn ids(tables: &[Arc<Summary>]) -> Vec<u64> {
        tables.iter().map(|table| table.id).collect()
    }

    #[test]
    fn tables_of_a_run_are_found_by_their_keys() {
        let run = Run::new(vec![table(2, ["d", "f"], 1), table(1, ["a", "b"], 1)]);
        for (key, expected) in [("a", Some(1)), ("b", Some(1)), ("c", None), ("e", Some(2))] {
            assert_eq!(run.covering(key.as_bytes()).map(|it| it.id), expected, "{key}");
        }
        for (keys, expected) in [
            (["a", "z"], vec![1, 2]),
            (["b", "c"], vec![1]),
            (["c", "c"], vec![]),
            (["c", "d"], vec![2]),
            (["g", "z"], vec![]),
        ] {
            let [first, last] = keys.map(str::as_bytes);
            assert_eq!(ids(run.overlapping(first, last)), expected, "{keys:?}");
        }
    }

    #[test]
    #[should_panic(expected = "overlap")]
    fn tables_that_overlap_are_no_run() {
        Run::new(vec![table(1, ["a", "d"], 1), table(2, ["d", "f"], 1)]);
    }

    #[test]
    fn a_change_takes_tables_out_of_any_place_and_puts_others_in() {
        let levels = Levels::default()
            .changed(&[], vec![(Place::Newest, vec![table(1, ["a", "z"], 1)])])
            .changed(&[], vec![(Place::Newest, vec![table(2, ["a", "c"], 1)])])
            .changed(&[], vec![(Place::Level(BOTTOM), vec![table(3, ["a", "b"], 1)])]);
        assert_eq!(levels.tables().map(|it| it.id).collect::<Vec<_>>(), [2, 1, 3]);
        assert!(levels.is_covered_below(1, b"b") && !levels.is_covered_below(BOTTOM, b"b"));
        assert_eq!(levels.last_key(), Some(b"z".as_slice()));

        let removed = [table(1, ["a", "z"], 1), table(3, ["a", "b"], 1)];
        let added = vec![(Place::Level(BOTTOM), vec![table(4, ["a", "z"], 1)])];
        let levels = levels.changed(&removed, added);
        assert_eq!(levels.tables().map(|it| it.id).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(levels.flushed.len(), 1);
    }
}
