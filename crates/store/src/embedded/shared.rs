//! What the threads of the engine and its snapshots share.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_sync::{Condvar, Mutex};
use lsm_tree::{AbstractTree, SequenceNumberCounter};

use super::folder::DataFolder;
use super::log::{SealedSegment, Spare};
use super::room::{Reserve, Room};
use super::row_cache::RowCache;
use super::trees::{Tree, Trees};
use crate::engine::{Fault, Write};

pub(super) struct Shared {
    pub trees: Trees,
    /// Gives out the sequence of every batch and, inside the trees, of every change of their files.
    pub sequences: SequenceNumberCounter,
    pub visible: Mutex<Visible>,
    pub upkeep: Mutex<Upkeep>,
    /// Signalled at every change of `upkeep` and when the engine is poisoned.
    pub upkeep_changed: Condvar,
    pub log_folder: PathBuf,
    pub reserve: Reserve,
    pub poison: OnceLock<Fault>,
    pub row_cache: RowCache,
    pub commits: AtomicU64,
    pub conflicts: AtomicU64,
    pub syncs: AtomicU64,
    /// The folder stays locked until the last snapshot is gone.
    pub _folder: DataFolder,
}

/// What readers may see.
pub(super) struct Visible {
    /// Batches before this sequence are durable and wholly in the trees.
    pub before: u64,
    /// Such bounds at which snapshots are held, oldest first, and how many at each.
    pub held: VecDeque<(u64, usize)>,
}

/// The work that the threads hand each other.
#[derive(Default)]
pub(super) struct Upkeep {
    /// Oldest first; each has its own memtable, sealed with it.
    pub sealed: Vec<SealedSegment>,
    /// Oldest first.
    pub spares: VecDeque<Spare>,
    pub room: Room,
    pub compaction_is_due: bool,
    pub stopping: bool,
}

impl Shared {
    /// From now on nothing is committed. The first reason is kept.
    pub fn poison(&self, fault: Fault) {
        if self.poison.set(fault.clone()).is_ok() {
            tracing::error!(?fault, "the row store is poisoned and accepts no more commits");
        }
        // Under the lock, so that nobody misses it between looking and waiting.
        let _upkeep = self.upkeep.lock();
        self.upkeep_changed.notify_all();
    }

    /// Upkeep found no room: the reserve is spent or, if it is already, those who wait are let go.
    pub fn note_no_room(&self, fault: Fault) {
        let mut upkeep = self.upkeep.lock();
        upkeep.room = match upkeep.room {
            Room::Enough => {
                tracing::error!(?fault, "the disk is full: only what gives room back is taken");
                if let Err(why) = self.reserve.spend() {
                    tracing::error!(%why, "the reserve cannot be used");
                }
                Room::Reserve(fault)
            }
            Room::Reserve(_) | Room::None(_) => Room::None(fault),
        };
        self.upkeep_changed.notify_all();
    }

    /// Upkeep has done something after all.
    pub fn note_progress(&self) {
        let mut upkeep = self.upkeep.lock();
        if let Room::None(fault) = &upkeep.room {
            upkeep.room = Room::Reserve(fault.clone());
        }
        self.upkeep_changed.notify_all();
    }

    /// Whether commits wait for tables to be merged.
    pub fn merges_are_awaited(&self) -> bool {
        self.trees.all().any(Tree::merges_are_awaited)
    }

    /// Takes the reserve again, if there is room for it and for more: otherwise it would be spent
    /// again at once.
    pub fn restore_reserve(&self) -> io::Result<()> {
        let awaited = self.trees.all().filter(|tree| tree.merges_are_awaited());
        let merge_bytes = awaited.map(Tree::merge_bytes).max();
        if !self.reserve.could_be_taken(merge_bytes.unwrap_or(0))? {
            return Ok(());
        }
        self.reserve.take()?;
        tracing::warn!("there is room on the disk again");
        self.upkeep.lock().room = Room::Enough;
        self.upkeep_changed.notify_all();
        Ok(())
    }

    /// To be called before the batch is published.
    pub fn apply(&self, sequence: u64, writes: Vec<Write>) {
        for write in writes {
            self.row_cache.forget(write.key(), sequence);
            let tree = self.trees.of(write.key());
            match write {
                Write::Put { key, value } => tree.insert(key, value, sequence),
                Write::Delete { key } => tree.remove(key, sequence),
            };
        }
    }

    pub fn publish(&self, last_sequence: u64) {
        self.visible.lock().before = last_sequence + 1;
    }

    pub fn hold_visible(&self) -> u64 {
        self.visible.lock().hold()
    }

    pub fn release(&self, before: u64) {
        self.visible.lock().release(before);
    }

    /// Versions of a row that only snapshots before this one could see may be dropped.
    pub fn oldest_visible(&self) -> u64 {
        self.visible.lock().oldest().saturating_sub(1)
    }

    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Visible {
    /// The bound of a new snapshot. It never decreases, so the newest is always the last.
    fn hold(&mut self) -> u64 {
        match self.held.back_mut() {
            Some((newest, count)) if *newest == self.before => *count += 1,
            Some(_) | None => self.held.push_back((self.before, 1)),
        }
        self.before
    }

    fn release(&mut self, before: u64) {
        let Ok(at) = self.held.binary_search_by_key(&before, |(bound, _)| *bound) else { return };
        let (_, count) = &mut self.held[at];
        *count -= 1;
        if *count == 0 {
            self.held.remove(at);
        }
    }

    /// The bound of the oldest snapshot, or of the next one if there is none.
    fn oldest(&self) -> u64 {
        self.held.front().map_or(self.before, |(oldest, _)| *oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_counts_until_all_of_its_bound_are_gone() {
        let mut visible = Visible { before: 5, held: VecDeque::new() };
        assert_eq!(visible.oldest(), 5);
        assert_eq!([visible.hold(), visible.hold()], [5, 5]);
        visible.before = 7;
        assert_eq!(visible.hold(), 7);
        visible.before = 9;
        assert_eq!(visible.hold(), 9);
        for (released, oldest) in [(7, 5), (5, 5), (5, 9), (9, 9)] {
            visible.release(released);
            assert_eq!(visible.oldest(), oldest, "{released}");
        }
        visible.before = 10;
        assert_eq!(visible.oldest(), 10, "nobody holds any");
    }
}
