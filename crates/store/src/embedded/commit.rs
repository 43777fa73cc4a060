//! The one thread that commits: it makes the batches that have been placed durable, with one write and
//! one sync for all that came in the meantime, and goes on to the next segment of the log.
//!
//! A batch is in the log, synced, before a snapshot of what is durable sees it and before its caller is
//! answered. A memtable is closed only when everything placed in it is durable, and nothing is placed
//! meanwhile: so a segment and its memtable hold the same batches, and no row is flushed before its log
//! is synced.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Durability;
use super::engine_state::EngineState;
use super::log::{ActiveSegment, BLOCK_BYTES, Fill, Group, SegmentHeader, Spare};
use super::placing::{CommitWork, Placing, SegmentRoom};
use crate::engine::Fault;

/// No further memtable is closed while this many are being flushed: it bounds memory, and the time that
/// opening takes after a crash.
pub(super) const SEALED_MAX: usize = 2;

pub(super) struct Committer {
    pub shared: Arc<EngineState>,
    pub placing: Arc<Placing>,
    pub segment: ActiveSegment,
    pub durability: Durability,
    pub segment_bytes: u64,
    pub next_file: Arc<AtomicU64>,
}

impl Committer {
    /// Until the engine is closed or poisoned.
    pub fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let _ending = Ending { shared, placing: Arc::clone(&self.placing) };
        loop {
            match self.placing.next_work() {
                CommitWork::Write(group) => self.write(&group),
                CommitWork::Admit => self.admit(),
                CommitWork::End => break,
            }
        }
    }

    fn write(&mut self, group: &Group) {
        match self.make_durable(group) {
            Ok(()) => self.placing.written(group),
            Err(why) => self.shared.poison(Fault::because("writing to the log failed", why)),
        }
    }

    fn make_durable(&mut self, group: &Group) -> io::Result<()> {
        self.segment.append(group)?;
        if self.durability == Durability::Fsync {
            EngineState::count(&self.shared.syncs);
            self.segment.sync()?;
        }
        Ok(())
    }

    /// Places the batches in line, and goes on to another segment where they need one.
    fn admit(&mut self) {
        while let Some(bytes) = self.placing.admit() {
            if self.placing.has_group() {
                // What is placed already belongs to this segment and memtable.
                return;
            }
            match self.make_room(bytes) {
                Ok(()) => self.placing.set_segment(SegmentRoom::of(&self.segment)),
                Err(fault) => self.placing.refuse_first(fault),
            }
        }
    }

    /// Switches to a segment with room for so many bytes. If it fails, nothing has been written.
    fn make_room(&mut self, bytes: u64) -> Result<(), Fault> {
        let is_flush_wanted = self.shared.wants_flush.swap(false, Ordering::Relaxed);
        if self.segment.bytes_left() >= bytes && !is_flush_wanted {
            return Ok(());
        }
        self.wait_for_upkeep()?;
        let spare = self.spare_for(bytes)?;
        self.begin_segment(spare).map_err(|why| {
            let fault = Fault::because("beginning a segment of the log failed", why);
            self.shared.poison(fault.clone());
            fault
        })
    }

    /// Holds commits back while flushing or merging cannot keep up.
    fn wait_for_upkeep(&self) -> Result<(), Fault> {
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if let Some(fault) = self.shared.poison.get() {
                return Err(fault.clone());
            }
            if upkeep.sealed.len() < SEALED_MAX && !self.shared.merges_are_awaited() {
                return Ok(());
            }
            if let Some(fault) = upkeep.disk_space.standstill() {
                return Err(fault.clone());
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// A segment of the usual size, or a larger one for a group that needs it.
    fn spare_for(&self, bytes: u64) -> Result<Spare, Fault> {
        let needed = BLOCK_BYTES as u64 + bytes;
        if needed > self.segment_bytes {
            let number = self.next_file.fetch_add(1, Ordering::Relaxed);
            return Spare::create(&self.shared.log_folder, number, needed, Fill::Reserved)
                .map_err(|why| Fault::because("making a segment of the log failed", why));
        }
        let mut upkeep = self.shared.upkeep.lock();
        loop {
            if let Some(spare) = upkeep.spares.pop_front() {
                self.shared.upkeep_changed.notify_all();
                return Ok(spare);
            }
            if let Some(fault) = self.shared.poison.get() {
                return Err(fault.clone());
            }
            if let Some(fault) = upkeep.disk_space.standstill() {
                return Err(fault.clone());
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// Closes the segment together with its memtable and begins another one.
    fn begin_segment(&mut self, spare: Spare) -> io::Result<()> {
        if self.durability == Durability::Relaxed {
            // The tree's files must never be ahead of the log, whatever a power cut takes.
            self.segment.sync()?;
        }
        let segment = spare.begin(SegmentHeader {
            incarnation: self.segment.incarnation + 1,
            base_sequence: self.segment.last_sequence,
            durability: self.durability,
        })?;
        let sealed = std::mem::replace(&mut self.segment, segment).seal();
        self.shared.trees.close_memtables();
        self.shared.upkeep.lock().sealed.push(sealed);
        self.shared.upkeep_changed.notify_all();
        Ok(())
    }
}

/// Answers the waiting callers, however the thread ends.
struct Ending {
    shared: Arc<EngineState>,
    placing: Arc<Placing>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        drop(PoisonOnPanic(Arc::clone(&self.shared)));
        self.placing.end();
    }
}

/// Tells later callers why nothing is committed any more if the committing thread panics.
pub(super) struct PoisonOnPanic(pub Arc<EngineState>);

impl Drop for PoisonOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(Fault::new("a thread of the row store has panicked"));
        }
    }
}
