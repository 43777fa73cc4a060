//! Which keys were written lately, and when: all that is needed to tell whether a batch was decided
//! on rows that have changed since, without reading any.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::row_cache::ByHash;
use crate::engine::{Batch, KeyRange, Write};

pub(super) struct RecentWrites {
    /// The sequence of the last write of each remembered key, by the hash of the key. Keys that have
    /// one hash pass for one row, so that a batch may be refused for a write of the other; its caller
    /// then reads again.
    last: ByHash<u64>,
    /// Nobody can choose keys whose hashes are near each other.
    seed: u64,
    /// The remembered writes, oldest first.
    order: VecDeque<Remembered>,
    bytes: usize,
    /// Every write after this sequence is remembered.
    horizon: u64,
    entries_max: usize,
    bytes_max: usize,
}

struct Remembered {
    sequence: u64,
    hash: u64,
    key: Box<[u8]>,
}

impl RecentWrites {
    pub fn new(horizon: u64, entries_max: usize, bytes_max: usize) -> Self {
        Self {
            last: ByHash::default(),
            seed: RandomState::new().hash_one(0),
            order: VecDeque::new(),
            bytes: 0,
            horizon,
            entries_max,
            bytes_max,
        }
    }

    /// Whether anything the batch relied on was written after its moment, or may have been.
    pub fn has_changed_under(&self, batch: &Batch) -> bool {
        let Some(since) = &batch.since else { return false };
        if batch.expected_rows.is_empty() && batch.expected_ranges.is_empty() {
            return false;
        }
        let since = since.sequence;
        if since < self.horizon {
            return true;
        }
        batch
            .expected_rows
            .iter()
            .any(|key| self.last.get(&self.hash(key)).is_some_and(|at| *at > since))
            || batch.expected_ranges.iter().any(|range| self.range_changed(range, since))
    }

    fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// Looks at every write since then, which are few unless the batch was long in the making.
    fn range_changed(&self, range: &KeyRange, since: u64) -> bool {
        if range.is_empty() {
            return false;
        }
        let first = self.order.partition_point(|write| write.sequence <= since);
        self.order.range(first..).any(|write| range.contains(&write.key))
    }

    /// Remembers the writes of the batch committed at `sequence`, and forgets the oldest ones.
    pub fn record(&mut self, sequence: u64, writes: &[Write]) {
        for write in writes {
            let (hash, key) = (self.hash(write.key()), Box::from(write.key().as_ref()));
            self.last.insert(hash, sequence);
            self.bytes += write.key().len();
            self.order.push_back(Remembered { sequence, hash, key });
        }
        while self.order.len() > self.entries_max || self.bytes > self.bytes_max {
            let Some(Remembered { sequence, hash, key }) = self.order.pop_front() else { break };
            self.bytes -= key.len();
            self.horizon = sequence;
            if self.last.get(&hash) == Some(&sequence) {
                self.last.remove(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Moment;

    fn batch_since(sequence: u64) -> Batch {
        Batch::since(Moment { sequence, text: None })
    }

    fn put(key: &str) -> [Write; 1] {
        [Write::Put { key: key.to_owned().into(), value: "v".into() }]
    }

    #[test]
    fn write_after_the_moment_conflicts_and_write_at_it_does_not() {
        let mut recent = RecentWrites::new(0, 100, 1000);
        recent.record(5, &put("a"));
        for (since, conflict) in [(4, true), (5, false)] {
            let mut by_row = batch_since(since);
            by_row.expect_row("a");
            assert_eq!(recent.has_changed_under(&by_row), conflict);
            let mut by_range = batch_since(since);
            by_range.expect_range(KeyRange::prefix("a"));
            assert_eq!(recent.has_changed_under(&by_range), conflict);
        }
    }

    #[test]
    fn moment_before_the_horizon_conflicts_only_if_something_is_expected() {
        let mut recent = RecentWrites::new(0, 2, 1000);
        for sequence in 1..=5 {
            recent.record(sequence, &put(&sequence.to_string()));
        }
        let mut old = batch_since(2);
        old.put("other", "v");
        assert!(!recent.has_changed_under(&old));
        old.expect_row("other");
        assert!(recent.has_changed_under(&old));
        let mut young = batch_since(3);
        young.expect_row("other");
        assert!(!recent.has_changed_under(&young));
    }

    #[test]
    fn bytes_of_keys_are_bounded() {
        let mut recent = RecentWrites::new(0, 1000, 100);
        for sequence in 1..=50 {
            recent.record(sequence, &put(&format!("{sequence:010}")));
        }
        assert_eq!(recent.order.len(), 10);
        assert_eq!(recent.last.len(), 10);
        assert_eq!(recent.horizon, 40);
    }

    #[test]
    fn key_written_again_outlives_its_first_mention() {
        let mut recent = RecentWrites::new(0, 2, 1000);
        recent.record(1, &put("a"));
        recent.record(2, &put("a"));
        recent.record(3, &put("b"));
        let mut batch = batch_since(1);
        batch.expect_row("a");
        assert!(recent.has_changed_under(&batch));
    }
}
