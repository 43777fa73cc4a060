//! What readers may see, and which snapshots are held.
//!
//! Every request holds a snapshot for a moment. Threads use different shards, so that they do not
//! contend for one lock or one cache line.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use holdfast_sync::Mutex;

pub(super) const SHARDS: usize = 16;

pub(super) struct Snapshots {
    /// Batches before this sequence are durable and completely in the trees.
    durable: AtomicU64,
    /// Batches before this sequence are placed and completely in the trees.
    placed: AtomicU64,
    shards: [Shard; SHARDS],
}

/// What a snapshot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// What is durable.
    Durable,
    /// Also what has its place and is not durable yet.
    Placed,
}

/// Two cache lines, which the processor fetches together.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<ByKind>);

/// The bounds of each kind only grow, so each has its own list.
#[derive(Default)]
struct ByKind {
    durable: Held,
    placed: Held,
}

/// Bounds at which snapshots are held, oldest first, and how many at each.
#[derive(Default)]
struct Held(VecDeque<(u64, usize)>);

/// The shard of this thread; threads get shards round-robin.
pub(super) fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

impl Snapshots {
    pub fn new() -> Self {
        let (durable, placed) = (AtomicU64::new(1), AtomicU64::new(1));
        Self { durable, placed, shards: Default::default() }
    }

    /// All batches up to this one are completely in the trees.
    pub fn publish_placed(&self, last_sequence: u64) {
        self.placed.store(last_sequence + 1, Ordering::Release);
    }

    /// All batches up to this one are durable, too.
    pub fn publish_durable(&self, last_sequence: u64) {
        self.durable.store(last_sequence + 1, Ordering::Release);
    }

    pub fn is_durable(&self, sequence: u64) -> bool {
        sequence < self.durable.load(Ordering::Acquire)
    }

    /// Holds a new snapshot in a shard. It sees the batches before the returned sequence.
    pub fn hold(&self, shard: usize, seen: Seen) -> u64 {
        let mut held = self.shards[shard].0.lock();
        // Under the lock: see `oldest`.
        let before = match seen {
            Seen::Durable => self.durable.load(Ordering::Acquire),
            Seen::Placed => self.placed.load(Ordering::Acquire),
        };
        held.of(seen).hold(before);
        before
    }

    pub fn release(&self, shard: usize, seen: Seen, before: u64) {
        self.shards[shard].0.lock().of(seen).release(before);
    }

    /// The bound of the oldest snapshot, or of the next one if there is none.
    pub fn oldest(&self) -> u64 {
        // First: a reader that holds a snapshot in a shard that was already looked at sees at least this.
        let next = self.durable.load(Ordering::Acquire);
        let oldest = self.shards.iter().filter_map(|shard| shard.0.lock().oldest()).min();
        oldest.map_or(next, |oldest| oldest.min(next))
    }
}

impl ByKind {
    fn of(&mut self, seen: Seen) -> &mut Held {
        match seen {
            Seen::Durable => &mut self.durable,
            Seen::Placed => &mut self.placed,
        }
    }

    fn oldest(&self) -> Option<u64> {
        self.durable.oldest().into_iter().chain(self.placed.oldest()).min()
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
    use super::Seen::{Durable, Placed};
    use super::*;

    #[test]
    fn the_oldest_snapshot_counts_until_all_of_its_bound_are_gone() {
        let snapshots = Snapshots::new();
        snapshots.publish_durable(4);
        assert_eq!(snapshots.oldest(), 5, "nobody holds any");
        assert_eq!([0, 0, 3].map(|shard| snapshots.hold(shard, Durable)), [5, 5, 5]);
        snapshots.publish_durable(6);
        assert_eq!(snapshots.hold(0, Durable), 7);
        snapshots.publish_durable(8);
        assert_eq!(snapshots.hold(1, Durable), 9);
        for (shard, released, oldest) in [(0, 7, 5), (0, 5, 5), (3, 5, 5), (0, 5, 9), (1, 9, 9)] {
            snapshots.release(shard, Durable, released);
            assert_eq!(snapshots.oldest(), oldest, "{shard} {released}");
        }
        snapshots.publish_durable(9);
        assert_eq!(snapshots.oldest(), 10, "nobody holds any");
    }

    #[test]
    fn a_snapshot_of_what_is_placed_counts_when_the_durable_bound_has_passed_it() {
        let snapshots = Snapshots::new();
        snapshots.publish_placed(7);
        assert_eq!(snapshots.hold(0, Placed), 8);
        assert_eq!(snapshots.hold(0, Durable), 1, "below one that is held already");
        assert_eq!(snapshots.oldest(), 1);
        snapshots.release(0, Durable, 1);
        assert_eq!(snapshots.oldest(), 1, "the next one may be as old");
        snapshots.publish_durable(20);
        assert_eq!(snapshots.oldest(), 8);
        snapshots.release(0, Placed, 8);
        assert_eq!(snapshots.oldest(), 21);
        assert!(snapshots.is_durable(20) && !snapshots.is_durable(21));
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
            let held = [(0, Seen::Durable), (1, Seen::Durable), (SHARDS - 1, Seen::Placed)];
            let readers = held.map(|(shard, seen)| {
                let (snapshots, dropped) = (Arc::clone(&snapshots), Arc::clone(&dropped));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let before = snapshots.hold(shard, seen);
                        assert!(dropped.load(Ordering::SeqCst) <= before, "when it was taken");
                        thread::yield_now();
                        assert!(dropped.load(Ordering::SeqCst) <= before, "while it was held");
                        snapshots.release(shard, seen, before);
                    }
                })
            });
            let publisher = {
                let snapshots = Arc::clone(&snapshots);
                thread::spawn(move || {
                    for sequence in 1..5 {
                        snapshots.publish_placed(sequence);
                        thread::yield_now();
                        snapshots.publish_durable(sequence);
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
