//! Which keys were written recently, and when: enough to tell whether a batch was decided on rows
//! that have changed since, without reading rows.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::engine::{Batch, KeyRange, Write};

pub(super) struct RecentWrites {
    rows: RecentRows,
    keys: RecentKeys,
}

impl RecentWrites {
    pub fn new(horizon: u64, writes_max: usize, key_bytes_max: usize) -> Self {
        // A random seed, so that clients cannot choose keys that collide.
        Self::hashed_by(RandomState::new().hash_one(0), horizon, writes_max, key_bytes_max)
    }

    fn hashed_by(seed: u64, horizon: u64, writes_max: usize, key_bytes_max: usize) -> Self {
        Self {
            rows: RecentRows::new(seed, horizon, writes_max),
            keys: RecentKeys::new(horizon, writes_max, key_bytes_max),
        }
    }

    /// Whether anything the batch relied on was written after its moment, or may have been.
    pub fn has_changed_under(&self, batch: &Batch) -> bool {
        let Some(since) = &batch.since else { return false };
        let since = since.sequence;
        batch.expected_rows.iter().any(|key| self.rows.changed(key, since))
            || batch.expected_ranges.iter().any(|range| self.keys.changed(range, since))
    }

    /// Remembers the writes of the batch committed at `sequence`, and forgets the oldest ones.
    pub fn record(&mut self, sequence: u64, writes: &[Write]) {
        for write in writes {
            self.rows.record(sequence, write.key());
            self.keys.record(sequence, write.key());
        }
    }
}

/// When rows were written last, by the hashes of their keys. A collision only causes a false conflict,
/// after which the caller reads again.
struct RecentRows {
    lines: Box<[Line]>,
    seed: u64,
}

const WRITES_OF_A_LINE: usize = 7;
/// The low bits of an entry, which tell its key from others. The rest is the sequence: enough for a
/// million commits a second for nine years.
const MARK_BITS: u32 = 16;

/// One cache line of the processor: looking for a row then costs one cache miss.
#[derive(Clone)]
#[repr(align(64))]
struct Line {
    /// Every write after this sequence is remembered.
    horizon: u64,
    /// The last write of each row: its sequence, then the mark of its key. None is zero.
    writes: [u64; WRITES_OF_A_LINE],
}

impl RecentRows {
    fn new(seed: u64, horizon: u64, writes_max: usize) -> Self {
        let lines = writes_max.div_ceil(WRITES_OF_A_LINE).next_power_of_two();
        let line = Line { horizon, writes: [0; WRITES_OF_A_LINE] };
        Self { lines: vec![line; lines].into(), seed }
    }

    fn changed(&self, key: &[u8], since: u64) -> bool {
        let (line, mark) = self.place(key);
        let Line { horizon, writes } = &self.lines[line];
        *horizon > since
            || writes.iter().any(|write| sequence_of(*write) > since && mark_of(*write) == mark)
    }

    fn record(&mut self, sequence: u64, key: &[u8]) {
        let (line, mark) = self.place(key);
        let Line { horizon, writes } = &mut self.lines[line];
        let same = writes.iter().position(|write| *write != 0 && mark_of(*write) == mark);
        let index = same.unwrap_or_else(|| {
            let oldest = (1..WRITES_OF_A_LINE).fold(0, |oldest, index| {
                if writes[index] < writes[oldest] { index } else { oldest }
            });
            *horizon = sequence_of(writes[oldest]).max(*horizon);
            oldest
        });
        writes[index] = sequence << MARK_BITS | mark;
    }

    /// The line that has the row, and its mark there.
    fn place(&self, key: &[u8]) -> (usize, u64) {
        let hash = xxh3_64_with_seed(key, self.seed);
        ((hash >> MARK_BITS) as usize & (self.lines.len() - 1), mark_of(hash))
    }
}

fn sequence_of(write: u64) -> u64 {
    write >> MARK_BITS
}

fn mark_of(bits: u64) -> u64 {
    bits & ((1 << MARK_BITS) - 1)
}

/// The keys that were written, in the order of their writes: for ranges.
struct RecentKeys {
    /// Oldest first.
    chunks: VecDeque<Chunk>,
    /// Every write after this sequence is remembered.
    horizon: u64,
    chunk_keys_max: usize,
    chunk_bytes_max: usize,
}

/// The keys are forgotten in this many parts.
const CHUNKS_MAX: usize = 16;

/// Keys, concatenated.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The sequence of each write, and where its key ends.
    ends: Vec<(u64, usize)>,
}

impl RecentKeys {
    fn new(horizon: u64, writes_max: usize, bytes_max: usize) -> Self {
        Self {
            chunks: VecDeque::from([Chunk::default()]),
            horizon,
            chunk_keys_max: writes_max / CHUNKS_MAX,
            chunk_bytes_max: bytes_max / CHUNKS_MAX,
        }
    }

    fn record(&mut self, sequence: u64, key: &[u8]) {
        if self.chunks.back().is_none_or(|chunk| {
            chunk.ends.len() >= self.chunk_keys_max || chunk.bytes.len() >= self.chunk_bytes_max
        }) {
            self.begin_chunk();
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.bytes.extend_from_slice(key);
            chunk.ends.push((sequence, chunk.bytes.len()));
        }
    }

    fn begin_chunk(&mut self) {
        let mut next = Chunk::default();
        if self.chunks.len() >= CHUNKS_MAX
            && let Some(oldest) = self.chunks.pop_front()
        {
            self.horizon = oldest.last_sequence().max(self.horizon);
            next = oldest;
            next.bytes.clear();
            next.ends.clear();
        }
        self.chunks.push_back(next);
    }

    /// Looks at every write since then: few, unless the batch took long to decide.
    fn changed(&self, range: &KeyRange, since: u64) -> bool {
        if range.is_empty() {
            return false;
        }
        let mut newer = self.chunks.iter().rev().take_while(|chunk| chunk.last_sequence() > since);
        self.horizon > since || newer.any(|chunk| chunk.changed(range, since))
    }
}

impl Chunk {
    fn last_sequence(&self) -> u64 {
        self.ends.last().map_or(0, |(sequence, _)| *sequence)
    }

    fn changed(&self, range: &KeyRange, since: u64) -> bool {
        let first = self.ends.partition_point(|(sequence, _)| *sequence <= since);
        let mut start = first.checked_sub(1).map_or(0, |before| self.ends[before].1);
        self.ends[first..].iter().any(|(_, end)| {
            let key = &self.bytes[std::mem::replace(&mut start, *end)..*end];
            range.contains(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Moment;

    /// With a fixed seed, so that the same keys collide in every run.
    fn recent(horizon: u64, writes_max: usize, key_bytes_max: usize) -> RecentWrites {
        RecentWrites::hashed_by(1, horizon, writes_max, key_bytes_max)
    }

    fn put(key: &str) -> [Write; 1] {
        [Write::Put { key: key.to_owned().into(), value: "v".into() }]
    }

    /// Whether a batch of that moment is refused that expects the row, or the range of its key.
    fn changed(recent: &RecentWrites, key: &str, since: u64) -> (bool, bool) {
        let batch = || Batch::since(Moment { sequence: since, text: None });
        let (mut by_row, mut by_range) = (batch(), batch());
        by_row.expect_row(key.to_owned());
        by_range.expect_range(KeyRange::prefix(key.to_owned()));
        (recent.has_changed_under(&by_row), recent.has_changed_under(&by_range))
    }

    #[test]
    fn write_after_the_moment_conflicts_and_write_at_it_does_not() {
        let mut recent = recent(0, 100, 1000);
        recent.record(5, &put("a"));
        assert_eq!(changed(&recent, "a", 4), (true, true));
        assert_eq!(changed(&recent, "a", 5), (false, false));
        assert_eq!(changed(&recent, "b", 4), (false, false));
    }

    #[test]
    fn moment_before_the_horizon_conflicts_only_if_something_is_expected() {
        let recent = recent(3, 100, 1000);
        assert_eq!(changed(&recent, "other", 2), (true, true));
        assert_eq!(changed(&recent, "other", 3), (false, false));
        let mut blind = Batch::since(Moment { sequence: 2, text: None });
        blind.put("other", "v");
        assert!(!recent.has_changed_under(&blind));
    }

    /// A change is never overlooked because it was forgotten, and recent writes are never forgotten.
    #[test]
    fn every_write_is_remembered_or_behind_the_horizon() {
        let writes_max = 700;
        let mut recent = recent(0, writes_max, 1 << 20);
        let key = |sequence: u64| format!("key {:03}", sequence * 7919 % 1000);
        for sequence in 1..=5000 {
            recent.record(sequence, &put(&key(sequence)));
            // Each key is written every thousandth time.
            for age in [0, 1, 10, 100, 999] {
                let Some(written) = sequence.checked_sub(age).filter(|at| *at > 0) else {
                    continue;
                };
                assert_eq!(changed(&recent, &key(written), written - 1), (true, true));
            }
        }
        let refused = (4901..=5000).filter(|at| changed(&recent, &key(*at), *at) != (false, false));
        assert_eq!(refused.count(), 0, "nothing was written since");
        let others = (0..100).map(|number| changed(&recent, &format!("other {number}"), 1));
        let (by_row, by_range): (Vec<bool>, Vec<bool>) = others.unzip();
        assert!(by_row.iter().filter(|refused| **refused).count() > 20, "of the lines that forgot");
        assert!(by_range.iter().all(|refused| *refused), "it is long ago");
    }

    #[test]
    fn a_range_sees_all_its_keys_and_no_others() {
        let mut recent = recent(0, 64, 1000);
        for (sequence, key) in (1..).zip(["a1", "b1", "c1", "a2", "b2", "c2"]) {
            recent.record(sequence, &put(key));
        }
        for (prefix, last) in [("a", 4), ("b", 5), ("c", 6), ("d", 0)] {
            for since in 0..=6 {
                let (_, by_range) = changed(&recent, prefix, since);
                assert_eq!(by_range, since < last, "{prefix} since {since}");
            }
        }
    }

    #[test]
    fn bytes_of_keys_are_bounded() {
        let mut recent = recent(0, 1000, 160);
        for sequence in 1..=50 {
            recent.record(sequence, &put(&format!("{sequence:010}")));
        }
        let bytes: usize = recent.keys.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        assert!(bytes <= 160, "{bytes}");
        assert_eq!(recent.keys.horizon, 34);
    }

    #[test]
    fn key_written_again_outlives_its_first_mention() {
        let mut recent = recent(0, 2, 1000);
        for (sequence, key) in (1..).zip(["a", "a", "b"]) {
            recent.record(sequence, &put(key));
        }
        assert_eq!(changed(&recent, "a", 1), (true, true));
        assert_eq!(changed(&recent, "a", 2), (false, false));
    }
}
