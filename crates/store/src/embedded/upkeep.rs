//! The two threads behind the committing one: one flushes memtables so that the log can be used
//! again, one merges tables so that reads stay cheap.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lsm_tree::AbstractTree;
use lsm_tree::compaction::CompactionStrategy;

use super::commit::PoisonOnPanic;
use super::folder::sync_folder;
use super::log::{Fill, SealedSegment, Spare};
use super::shared::Shared;
use crate::engine::Fault;

/// Segments kept ready: one to go on in, one for when the next is needed before this work is done.
pub(super) const SPARES_MAX: usize = 2;

pub(super) struct Flusher {
    pub shared: Arc<Shared>,
    pub segment_bytes: u64,
    pub next_file: Arc<AtomicU64>,
}

enum FlusherWork {
    MakeSpare,
    Flush { segments: usize },
    Stop,
}

impl Flusher {
    pub fn run(self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        loop {
            let done = match self.next_work() {
                FlusherWork::Stop => break,
                FlusherWork::MakeSpare => self.make_spare(),
                FlusherWork::Flush { segments } => self.flush(segments),
            };
            if let Err(fault) = done {
                self.shared.poison(fault);
                break;
            }
        }
        drop(guard);
    }

    fn next_work(&self) -> FlusherWork {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if upkeep.stopping || self.shared.poison.get().is_some() {
                return FlusherWork::Stop;
            }
            // A segment to go on in comes first: without one, commits wait.
            if upkeep.spares.is_empty() {
                return FlusherWork::MakeSpare;
            }
            if !upkeep.sealed.is_empty() {
                return FlusherWork::Flush { segments: upkeep.sealed.len() };
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    fn make_spare(&self) -> Result<(), Fault> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let spare = Spare::create(&self.shared.log_folder, number, self.segment_bytes, Fill::Zeros)
            .map_err(|why| Fault::because("making a segment of the log failed", why))?;
        self.shared.upkeep.lock().spares.push(spare);
        self.shared.upkeep_changed.notify_all();
        Ok(())
    }

    /// Flushes the memtables of the oldest `segments` segments, and then lets those be used again.
    fn flush(&self, segments: usize) -> Result<(), Fault> {
        self.shared.turns.flush(|| {
            let tree = &self.shared.tree;
            let lock = tree.get_flush_lock();
            tree.flush(&lock, self.shared.oldest_visible())
                .map(|_| ())
                .map_err(|why| Fault::because("flushing rows failed", why))
        })?;
        let released: Vec<SealedSegment> = {
            let mut upkeep = self.shared.upkeep.lock();
            upkeep.compaction_is_due = true;
            upkeep.sealed.drain(..segments).collect()
        };
        // The tables are durable by now. The checkpoint is durable before any segment it releases
        // is written again: whatever a crash leaves, the log from the checkpoint on is whole.
        if let Some(newest) = released.last() {
            newest
                .checkpoint
                .store(&self.shared.log_folder)
                .map_err(|why| Fault::because("storing the checkpoint failed", why))?;
        }
        for segment in released {
            self.reuse(segment.spare)
                .map_err(|why| Fault::because("releasing a segment of the log failed", why))?;
        }
        self.shared.upkeep_changed.notify_all();
        Ok(())
    }

    fn reuse(&self, spare: Spare) -> io::Result<()> {
        if spare.capacity == self.segment_bytes {
            let mut upkeep = self.shared.upkeep.lock();
            if upkeep.spares.len() < SPARES_MAX {
                upkeep.spares.push(spare);
                return Ok(());
            }
        }
        fs::remove_file(&spare.path)?;
        sync_folder(&self.shared.log_folder)
    }
}

pub(super) struct Compactor {
    pub shared: Arc<Shared>,
    pub strategy: Arc<dyn CompactionStrategy + Send + Sync>,
}

impl Compactor {
    pub fn run(self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        while self.wait_until_due() {
            if let Err(fault) = self.compact_once() {
                self.shared.poison(fault);
                break;
            }
        }
        drop(guard);
    }

    fn wait_until_due(&self) -> bool {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if upkeep.stopping || self.shared.poison.get().is_some() {
                return false;
            }
            if upkeep.compaction_is_due {
                upkeep.compaction_is_due = false;
                return true;
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// One step of merging. As long as a step changes something, another is due.
    fn compact_once(&self) -> Result<(), Fault> {
        let tree = &self.shared.tree;
        let before = tree.current_version().id();
        self.shared.turns.merge(|| {
            tree.compact(Arc::clone(&self.strategy) as Arc<_>, self.shared.oldest_visible())
                .map_err(|why| Fault::because("merging tables failed", why))
        })?;
        if tree.current_version().id() != before {
            self.shared.upkeep.lock().compaction_is_due = true;
            self.shared.upkeep_changed.notify_all();
        }
        Ok(())
    }
}
