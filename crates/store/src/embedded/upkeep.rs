//! The two threads behind the committing one: one flushes memtables so that the log can be used
//! again, one merges tables so that reads stay cheap.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::commit::PoisonOnPanic;
use super::disk_space::{DiskSpace, RETRY, UpkeepError};
use super::engine_state::EngineState;
use super::log::{Fill, SealedSegment, Spare};
use super::tree::Effort;

/// Segments kept ready: the next one, and one more in case that is used up before another is ready.
pub(super) const SPARES_MAX: usize = 2;
/// After so long without a flush, there is time for merges that only clean up.
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// So many tombstones in a memtable are worth a flush then: scans must skip them and what they delete.
const TOMBSTONES_FLUSHED: u64 = 1024;

pub(super) struct Flusher {
    pub shared: Arc<EngineState>,
    pub segment_bytes: u64,
    pub next_file: Arc<AtomicU64>,
}

enum FlusherWork {
    MakeSpare,
    Flush { segments: usize },
    RestoreReserve,
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
                FlusherWork::RestoreReserve => {
                    // Another process may have taken the space meanwhile: then it is tried again.
                    if let Err(why) = self.shared.restore_reserve() {
                        tracing::warn!(%why, "the reserve cannot be restored yet");
                    }
                    continue;
                }
            };
            match done {
                Ok(()) => self.shared.note_progress(),
                Err(UpkeepError::NoRoom(fault)) => self.shared.note_no_room(fault),
                Err(UpkeepError::NoDescriptors(fault)) => self.shared.note_no_descriptors(fault),
                Err(UpkeepError::Broken(fault)) => {
                    self.shared.poison(fault);
                    break;
                }
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
            let standstill = upkeep.disk_space.standstill().is_some();
            if standstill {
                self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
            }
            // A spare segment comes first: without one, commits wait. If there is no space for one,
            // flushing frees one.
            let can_flush = !upkeep.sealed.is_empty();
            if upkeep.spares.is_empty() && !(standstill && can_flush) {
                return FlusherWork::MakeSpare;
            }
            if can_flush {
                return FlusherWork::Flush { segments: upkeep.sealed.len() };
            }
            match upkeep.disk_space {
                // No commit waits for what failed, unless for merging, which resets this itself.
                DiskSpace::NoDescriptors(_) if !self.shared.merges_are_awaited() => {
                    upkeep.descriptors_are_back();
                }
                DiskSpace::Enough | DiskSpace::NoDescriptors(_) => {
                    self.shared.upkeep_changed.wait(&mut upkeep);
                }
                DiskSpace::Reserve(_) | DiskSpace::None(_) => {
                    self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
                    if !upkeep.stopping {
                        return FlusherWork::RestoreReserve;
                    }
                }
            }
        }
    }

    fn make_spare(&self) -> Result<(), UpkeepError> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let spare = Spare::create(&self.shared.log_folder, number, self.segment_bytes, Fill::Zeros)
            .map_err(|why| UpkeepError::because("making a segment of the log failed", why))?;
        self.shared.upkeep.lock().spares.push_back(spare);
        self.shared.upkeep_changed.notify_all();
        Ok(())
    }

    /// Flushes the memtables of the oldest `segments` segments, and then lets those be used again.
    fn flush(&self, segments: usize) -> Result<(), UpkeepError> {
        let oldest = self.shared.snapshots.oldest();
        self.shared.trees.all().try_for_each(|tree| tree.flush(oldest))?;
        let newest = {
            let mut upkeep = self.shared.upkeep.lock();
            upkeep.compaction_is_due = true;
            upkeep.sealed[..segments].last().map(|segment| segment.checkpoint)
        };
        // The tables are durable by now. The checkpoint is durable before any segment it releases
        // is written again: after any crash, the log from the checkpoint on is complete. If there
        // is no space for it, the old one is still there, and the segments stay sealed.
        if let Some(checkpoint) = newest {
            checkpoint
                .store(&self.shared.log_folder)
                .map_err(|why| UpkeepError::because("storing the checkpoint failed", why))?;
        }
        let released: Vec<SealedSegment> =
            self.shared.upkeep.lock().sealed.drain(..segments).collect();
        let reused: Vec<_> = released.into_iter().map(|it| self.reuse(it.spare)).collect();
        self.shared.upkeep_changed.notify_all();
        let reused: io::Result<()> = reused.into_iter().collect();
        reused.map_err(|why| UpkeepError::because("releasing a segment of the log failed", why))
    }

    fn reuse(&self, spare: Spare) -> io::Result<()> {
        if spare.capacity == self.segment_bytes {
            let mut upkeep = self.shared.upkeep.lock();
            if upkeep.spares.len() < SPARES_MAX {
                upkeep.spares.push_back(spare);
                return Ok(());
            }
        }
        fs::remove_file(&spare.path)?;
        self.shared.log_folder.sync()
    }
}

pub(super) struct Compactor {
    pub shared: Arc<EngineState>,
}

impl Compactor {
    pub fn run(self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        while let Some(effort) = self.wait_until_due() {
            match self.merge_each(effort) {
                Ok(()) => self.shared.upkeep.lock().descriptors_are_back(),
                Err(UpkeepError::NoDescriptors(fault)) => {
                    if self.shared.merges_are_awaited() {
                        self.shared.note_no_descriptors(fault);
                    }
                    self.wait_for_room();
                }
                Err(UpkeepError::NoRoom(fault)) => {
                    // Merging can wait, and there may be enough space for everything else. It uses
                    // the reserve only when commits wait for it.
                    if self.shared.merges_are_awaited() {
                        self.shared.note_no_room(fault);
                    }
                    self.wait_for_room();
                }
                Err(UpkeepError::Broken(fault)) => {
                    self.shared.poison(fault);
                    break;
                }
            }
        }
        drop(guard);
    }

    /// Merging is due again after a while.
    fn wait_for_room(&self) {
        let mut upkeep = self.shared.upkeep.lock();
        upkeep.compaction_is_due = true;
        if !upkeep.stopping {
            self.shared.upkeep_changed.wait_for(&mut upkeep, RETRY);
        }
    }

    /// How much is to be done now; `None` if the engine is closing.
    fn wait_until_due(&self) -> Option<Effort> {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if upkeep.stopping || self.shared.poison.get().is_some() {
                return None;
            }
            if upkeep.compaction_is_due {
                upkeep.compaction_is_due = false;
                return Some(Effort::Needed);
            }
            let waited = self.shared.upkeep_changed.wait_for(&mut upkeep, IDLE_AFTER);
            if waited.timed_out() && !upkeep.compaction_is_due {
                return Some(Effort::Idle);
            }
        }
    }

    /// One merge in each tree. If one changes something, another is due.
    fn merge_each(&self, effort: Effort) -> Result<(), UpkeepError> {
        for tree in self.shared.trees.all() {
            if tree.merge_once(self.shared.snapshots.oldest(), effort)? {
                self.shared.upkeep.lock().compaction_is_due = true;
                self.shared.upkeep_changed.notify_all();
            } else if effort == Effort::Idle && tree.tombstones_in_memory() >= TOMBSTONES_FLUSHED {
                self.shared.wants_flush.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
