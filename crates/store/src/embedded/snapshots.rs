//! What readers may see, and which snapshots are held.
//!
//! Every request holds a snapshot for a moment. Threads hold theirs in different shards, so that they do
//! not wait for each other, nor carry one list from processor to processor.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use holdfast_sync::Mutex;

pub(super) const SHARDS: usize = 16;

pub(super) struct Snapshots {
    /// Batches before this sequence are durable and wholly in the trees.
    before: AtomicU64,
    shards: [Shard; SHARDS],
}

/// Two lines of the processor's cache, which are fetched together.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Held>);

/// Bounds at which snapshots are held, oldest first, and how many at each.
#[derive(Default)]
struct Held(VecDeque<(u64, usize)>);

/// The shard of this thread; threads take them in turn.
pub(super) fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

impl Snapshots {
    pub fn new() -> Self {
        Self { before: AtomicU64::new(1), shards: Default::default() }
    }

    pub fn publish(&self, last_sequence: u64) {
        self.before.store(last_sequence + 1, Ordering::Release);
    }

    /// Holds a new snapshot in a shard. It sees the batches before the sequence that is answered.
    pub fn hold(&self, shard: usize) -> u64 {
        let mut held = self.shards[shard].0.lock();
        // Under the lock: see `oldest`.
        let before = self.before.load(Ordering::Acquire);
        held.hold(before);
        before
    }

    pub fn release(&self, shard: usize, before: u64) {
        self.shards[shard].0.lock().release(before);
    }

    /// The bound of the oldest snapshot, or of the next one if there is none.
    pub fn oldest(&self) -> u64 {
        // First: whoever holds a snapshot in a shard that was already looked at sees at least this.
        let next = self.before.load(Ordering::Acquire);
        let oldest = self.shards.iter().filter_map(|shard| shard.0.lock().oldest()).min();
        oldest.map_or(next, |oldest| oldest.min(next))
    }
}

impl Held {
    /// A bound is never below one that was held before it.
    fn hold(&mut self, before: u64) {
        match self.0.back_mut() {
            Some((newest, count)) if *newest == before => *count += 1,
            Some(_) | None => self.0.push_back((before, 1)),
        }
    }

    fn release(&mut self, before: u64) {
        let Ok(at) = self.0.binary_search_by_key(&before, |(bound, _)| *bound) else { return };
        let (_, count) = &mut self.0[at];
        *count -= 1;
        if *count == 0 {
            self.0.remove(at);
        }
    }

    fn oldest(&self) -> Option<u64> {
        self.0.front().map(|(oldest, _)| *oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_counts_until_all_of_its_bound_are_gone() {
        let snapshots = Snapshots::new();
        snapshots.publish(4);
        assert_eq!(snapshots.oldest(), 5, "nobody holds any");
        assert_eq!([snapshots.hold(0), snapshots.hold(0), snapshots.hold(3)], [5, 5, 5]);
        snapshots.publish(6);
        assert_eq!(snapshots.hold(0), 7);
        snapshots.publish(8);
        assert_eq!(snapshots.hold(1), 9);
        for (shard, released, oldest) in [(0, 7, 5), (0, 5, 5), (3, 5, 5), (0, 5, 9), (1, 9, 9)] {
            snapshots.release(shard, released);
            assert_eq!(snapshots.oldest(), oldest, "{shard} {released}");
        }
        snapshots.publish(9);
        assert_eq!(snapshots.oldest(), 10, "nobody holds any");
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod shuttle {
    use std::sync::Arc;

    use holdfast_sync::{explore, thread};

    use super::*;

    #[test]
    fn nothing_is_dropped_that_a_snapshot_sees_whenever_it_is_taken() {
        explore(|| {
            let snapshots = Arc::new(Snapshots::new());
            // Below this everything has been dropped.
            let dropped = Arc::new(AtomicU64::new(0));
            let readers = [0, 1, SHARDS - 1].map(|shard| {
                let (snapshots, dropped) = (Arc::clone(&snapshots), Arc::clone(&dropped));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let before = snapshots.hold(shard);
                        assert!(dropped.load(Ordering::SeqCst) <= before, "when it was taken");
                        thread::yield_now();
                        assert!(dropped.load(Ordering::SeqCst) <= before, "while it was held");
                        snapshots.release(shard, before);
                    }
                })
            });
            let publisher = {
                let snapshots = Arc::clone(&snapshots);
                thread::spawn(move || {
                    for sequence in 1..5 {
                        snapshots.publish(sequence);
                        thread::yield_now();
                    }
                })
            };
            for _ in 0..3 {
                dropped.fetch_max(snapshots.oldest(), Ordering::SeqCst);
                thread::yield_now();
            }
            publisher.join().expect("no panic");
            for reader in readers {
                reader.join().expect("no panic");
            }
            assert_eq!(snapshots.oldest(), 5, "nobody holds any");
        });
    }
}
