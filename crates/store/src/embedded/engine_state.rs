//! What the threads of the engine and its snapshots share.

use std::collections::VecDeque;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdfast_sync::{Condvar, Mutex};

use super::disk_space::{DiskSpace, Reserve};
use super::folder::{DataFolder, OpenFolder};
use super::log::{SealedSegment, Spare};
use super::row_cache::RowCache;
use super::snapshots::Snapshots;
use super::tree::{Tree, hash_of};
use super::trees::Trees;
use crate::engine::{Fault, Write};

pub(super) struct EngineState {
    pub trees: Trees,
    pub snapshots: Snapshots,
    pub upkeep: Mutex<Upkeep>,
    /// Signalled at every change of `upkeep` and when the engine is poisoned.
    pub upkeep_changed: Condvar,
    pub log_folder: OpenFolder,
    pub reserve: Reserve,
    /// The next commit must begin a new log segment, so that memtables are flushed.
    pub wants_flush: AtomicBool,
    pub poison: OnceLock<Fault>,
    pub row_cache: RowCache,
    pub commits: AtomicU64,
    pub conflicts: AtomicU64,
    pub syncs: AtomicU64,
    /// The folder stays locked until the last snapshot is gone.
    pub _folder: DataFolder,
}

/// The work that the threads hand to each other.
#[derive(Default)]
pub(super) struct Upkeep {
    /// Oldest first; each has its own memtable, sealed with it.
    pub sealed: Vec<SealedSegment>,
    /// Oldest first.
    pub spares: VecDeque<Spare>,
    pub disk_space: DiskSpace,
    pub compaction_is_due: bool,
    pub stopping: bool,
}

impl Upkeep {
    pub fn descriptors_are_back(&mut self) {
        if matches!(self.disk_space, DiskSpace::NoDescriptors(_)) {
            tracing::warn!("file descriptors are available again");
            self.disk_space = DiskSpace::Enough;
        }
    }
}

impl EngineState {
    /// From now on nothing is committed. The first reason is kept.
    pub fn poison(&self, fault: Fault) {
        if self.poison.set(fault.clone()).is_ok() {
            tracing::error!(?fault, "the row store is poisoned and accepts no more commits");
        }
        // Under the lock, so that no thread misses it between its check and its wait.
        let _upkeep = self.upkeep.lock();
        self.upkeep_changed.notify_all();
    }

    /// Upkeep found the disk full: the reserve is released or, if it already was, waiting commits
    /// are refused.
    pub fn note_no_room(&self, fault: Fault) {
        let mut upkeep = self.upkeep.lock();
        upkeep.disk_space = match upkeep.disk_space {
            DiskSpace::Enough | DiskSpace::NoDescriptors(_) => {
                tracing::error!(
                    ?fault,
                    "the disk is full: only writes that free space are accepted"
                );
                if let Err(why) = self.reserve.spend() {
                    tracing::error!(%why, "the reserve cannot be used");
                }
                DiskSpace::Reserve(fault)
            }
            DiskSpace::Reserve(_) | DiskSpace::None(_) => DiskSpace::None(fault),
        };
        self.upkeep_changed.notify_all();
    }

    /// Upkeep got no descriptor: commits that wait for it are refused.
    pub fn note_no_descriptors(&self, fault: Fault) {
        let mut upkeep = self.upkeep.lock();
        upkeep.disk_space = match upkeep.disk_space {
            DiskSpace::Enough => {
                tracing::error!(?fault, "no descriptors are left: some writes are refused");
                DiskSpace::NoDescriptors(fault)
            }
            DiskSpace::NoDescriptors(_) => DiskSpace::NoDescriptors(fault),
            DiskSpace::Reserve(_) | DiskSpace::None(_) => DiskSpace::None(fault),
        };
        self.upkeep_changed.notify_all();
    }

    /// Upkeep works again.
    pub fn note_progress(&self) {
        let mut upkeep = self.upkeep.lock();
        upkeep.descriptors_are_back();
        if let DiskSpace::None(fault) = &upkeep.disk_space {
            upkeep.disk_space = DiskSpace::Reserve(fault.clone());
        }
        self.upkeep_changed.notify_all();
    }

    /// Whether commits wait for tables to be merged.
    pub fn merges_are_awaited(&self) -> bool {
        self.trees.all().any(Tree::merges_are_awaited)
    }

    /// Takes the reserve again if there is space for it and for more: otherwise it would be needed
    /// again at once.
    pub fn restore_reserve(&self) -> io::Result<()> {
        let awaited = self.trees.all().filter(|tree| tree.merges_are_awaited());
        let merge_bytes = awaited.map(Tree::merge_bytes_needed).max();
        if !self.reserve.could_be_taken(merge_bytes.unwrap_or(0))? {
            return Ok(());
        }
        self.reserve.take()?;
        tracing::warn!("there is space on the disk again");
        self.upkeep.lock().disk_space = DiskSpace::Enough;
        self.upkeep_changed.notify_all();
        Ok(())
    }

    /// To be called before the batch is published.
    pub fn apply(&self, sequence: u64, writes: Vec<Write>) {
        for write in writes {
            let hash = hash_of(write.key());
            self.row_cache.forget(hash, sequence);
            self.trees.of(write.key()).write(hash, write, sequence);
        }
    }

    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
