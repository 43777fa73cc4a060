//! Which ranges were read recently. What is read only once is not worth a place in the page cache,
//! where it would evict what is read often; what is read again is.

use std::sync::atomic::{AtomicU64, Ordering};

use super::BLOCK_BYTES;

/// One for each range that is remembered: 4 GiB of long reads.
const MARKS: usize = 4096;
/// Spreads numbers that follow each other (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A range may be forgotten early, when another takes its slot, but is never mistaken for another.
pub(super) struct RecentReads(Box<[AtomicU64]>);

impl Default for RecentReads {
    fn default() -> Self {
        Self((0..MARKS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl RecentReads {
    /// Remembers that the range that begins here was read. Returns whether it was remembered already.
    pub(super) fn record(&self, segment: u64, offset: u64) -> bool {
        // A segment has far fewer blocks than 2³², and no range has the mark 0.
        let mark = (segment << 32) + offset / BLOCK_BYTES + 1;
        let place = mark.wrapping_mul(SPREAD) >> (u64::BITS - MARKS.ilog2());
        self.0[place as usize].swap(mark, Ordering::Relaxed) == mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_remembered_and_others_are_not() {
        let reads = RecentReads::default();
        assert!(!reads.record(0, 0));
        assert!(reads.record(0, 0));
        assert!(!reads.record(0, BLOCK_BYTES));
        assert!(!reads.record(1, 0));
        assert!(reads.record(0, BLOCK_BYTES));
    }

    #[test]
    fn most_of_a_large_file_is_remembered() {
        let reads = RecentReads::default();
        let stretches = || (0..2048).map(|number| (number / 256, (number % 256) << 20));
        assert!(stretches().all(|(segment, offset)| !reads.record(segment, offset)));
        let again = stretches().filter(|(segment, offset)| reads.record(*segment, *offset)).count();
        assert!(again > 1024, "{again} of 2048");
    }
}
