//! The one thread that commits: it takes all batches that are waiting, refuses those whose ground
//! has changed, and makes the rest durable with one write and one sync.
//!
//! Order is everything here. A batch is in the log, synced, before it enters the tree, and wholly in
//! the tree before any snapshot can see it and before its caller is answered.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use holdfast_sync::{mpsc, oneshot};
use tokio::runtime::Handle;

use super::Durability;
use super::log::{
    ActiveSegment, BLOCK_BYTES, Fill, Group, SegmentHeader, Spare, decode_writes, group_bytes,
    payload_bytes,
};
use super::recent::RecentWrites;
use super::shared::Shared;
use crate::engine::{Batch, CommitError, Fault, Write};

/// Batches that may wait to be committed; callers beyond wait for room.
pub(super) const QUEUE_MAX: usize = 1024;
/// A group is closed at this size: what is synced at once decides how long the next one waits.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Commits wait while this many memtables are being flushed: it bounds memory, and the time that
/// opening takes after a crash.
pub(super) const SEALED_MAX: usize = 2;

pub(super) struct Waiting {
    pub batch: Batch,
    pub caller: Caller,
}

/// Who is told what becomes of a batch.
pub(super) struct Caller {
    answer: oneshot::Sender<Result<(), CommitError>>,
    thread: ThreadId,
    runtime: Option<Handle>,
}

impl Caller {
    /// For a task that is running on this thread.
    pub fn new(answer: oneshot::Sender<Result<(), CommitError>>) -> Self {
        let thread = std::thread::current().id();
        Self { answer, thread, runtime: Handle::try_current().ok() }
    }

    /// A caller that has gone is not told.
    fn tell(self, outcome: Result<(), CommitError>) {
        let _ = self.answer.send(outcome);
    }

    /// Waking a task of another thread is a call of the system. Those who asked from one thread are
    /// therefore woken by a task beside them, which itself is woken by one call.
    fn tell_all_committed(mut callers: Vec<Self>) {
        while let Some(Self { thread, runtime, .. }) = callers.first() {
            let (thread, runtime) = (*thread, runtime.clone());
            let beside: Vec<_> = callers.extract_if(.., |it| it.thread == thread).collect();
            let are_many = beside.len() > 1;
            let tell = || beside.into_iter().for_each(|caller| caller.tell(Ok(())));
            match runtime {
                Some(runtime) if are_many => drop(runtime.spawn(async move { tell() })),
                Some(_) | None => tell(),
            }
        }
    }
}

pub(super) struct Committer {
    pub shared: Arc<Shared>,
    pub queue: mpsc::Receiver<Waiting>,
    pub segment: ActiveSegment,
    pub recent: RecentWrites,
    pub durability: Durability,
    pub segment_bytes: u64,
    pub next_file: Arc<AtomicU64>,
    pub next_sequence: u64,
}

/// Batches that passed the check, and who waits for each.
#[derive(Default)]
struct Accepted {
    batches: Vec<(u64, Vec<Write>)>,
    callers: Vec<Caller>,
}

impl Committer {
    /// Until every sender of the queue is gone.
    pub fn run(mut self) {
        let guard = PoisonOnPanic(Arc::clone(&self.shared));
        while let Some(first) = self.queue.blocking_recv() {
            let mut bytes = payload_bytes(first.batch.writes());
            let mut group = vec![first];
            while bytes < GROUP_BYTES_MAX {
                let Ok(next) = self.queue.try_recv() else { break };
                bytes += payload_bytes(next.batch.writes());
                group.push(next);
            }
            self.commit(group);
        }
        drop(guard);
    }

    fn commit(&mut self, mut group: Vec<Waiting>) {
        if let Some(fault) = self.shared.upkeep.lock().room.refusal().cloned() {
            for grows in group.extract_if(.., |waiting| !waiting.batch.gives_room()) {
                grows.caller.tell(Err(CommitError::Fault(fault.clone())));
            }
            if group.is_empty() {
                return;
            }
        }
        let sizes = group.iter().map(|waiting| payload_bytes(waiting.batch.writes()));
        // Before anything is accepted: what is in a segment is in the memtable of that segment.
        if let Err(fault) = self.make_room(group_bytes(sizes)) {
            for Waiting { caller, .. } in group {
                caller.tell(Err(CommitError::Fault(fault.clone())));
            }
            return;
        }
        let mut accepted = Accepted::default();
        for waiting in group {
            self.check(waiting, &mut accepted);
        }
        if accepted.batches.is_empty() {
            return;
        }
        match self.make_durable(&accepted.batches) {
            Ok(records) => {
                self.make_visible(records);
                self.shared.commits.fetch_add(accepted.callers.len() as u64, Ordering::Relaxed);
                Caller::tell_all_committed(accepted.callers);
            }
            Err(why) => {
                let fault = Fault::because("writing to the log failed", why);
                self.shared.poison(fault.clone());
                for caller in accepted.callers {
                    caller.tell(Err(CommitError::OutcomeUnknown(fault.clone())));
                }
            }
        }
    }

    /// Accepts the batch into the group, or answers it at once.
    fn check(&mut self, waiting: Waiting, accepted: &mut Accepted) {
        let Waiting { batch, caller } = waiting;
        if self.recent.has_changed_under(&batch) {
            Shared::count(&self.shared.conflicts);
            caller.tell(Err(CommitError::Conflict));
        } else if batch.writes.is_empty() {
            caller.tell(Ok(()));
        } else {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            let writes = last_of_each_key(batch.writes);
            // Known before it is durable: a later batch of the same group must find its conflict.
            // Should the group fail, the engine is poisoned and nobody else is let in.
            self.recent.record(sequence, &writes);
            accepted.batches.push((sequence, writes));
            accepted.callers.push(caller);
        }
    }

    fn make_durable(&mut self, batches: &[(u64, Vec<Write>)]) -> io::Result<Group> {
        let group = Group::encode(self.segment.incarnation, batches);
        self.segment.append(&group)?;
        if self.durability == Durability::Fsync {
            Shared::count(&self.shared.syncs);
            self.segment.sync()?;
        }
        Ok(group)
    }

    fn make_visible(&self, group: Group) {
        for (sequence, payload) in &group.records {
            // The tree keeps parts of the one buffer that was written to the log, so a row is
            // never kept alive together with a whole request body.
            let writes = decode_writes(payload).expect("a group decodes as encoded");
            self.shared.apply(*sequence, writes);
        }
        self.shared.snapshots.publish(self.segment.last_sequence);
    }

    /// Waits for upkeep and sees that the segment can take so many bytes. Nothing is written yet
    /// when it fails.
    fn make_room(&mut self, bytes: usize) -> Result<(), Fault> {
        self.wait_for_upkeep()?;
        let is_flush_wanted = self.shared.wants_flush.swap(false, Ordering::Relaxed);
        if self.segment.has_room_for(bytes) && !is_flush_wanted {
            return Ok(());
        }
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
            if let Some(fault) = upkeep.room.standstill() {
                return Err(fault.clone());
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// A segment of the usual size or, for a group that is larger, one made for it.
    fn spare_for(&self, bytes: usize) -> Result<Spare, Fault> {
        let needed = (BLOCK_BYTES + bytes) as u64;
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
            if let Some(fault) = upkeep.room.standstill() {
                return Err(fault.clone());
            }
            self.shared.upkeep_changed.wait(&mut upkeep);
        }
    }

    /// Closes the segment together with its memtable and goes on in another one.
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

fn last_of_each_key(mut writes: Vec<Write>) -> Vec<Write> {
    if writes.len() > 1 {
        let mut seen = HashSet::with_capacity(writes.len());
        let mut kept: Vec<bool> =
            writes.iter().rev().map(|write| seen.insert(write.key().clone())).collect();
        // `kept` runs from the last write to the first, so popping it goes with the writes.
        writes.retain(|_| kept.pop().unwrap_or(true));
    }
    writes
}

/// Tells later callers why nothing is committed any more, should the thread that does it die.
pub(super) struct PoisonOnPanic(pub Arc<Shared>);

impl Drop for PoisonOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(Fault::new("a thread of the row store has panicked"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_write_of_a_key_is_kept() {
        let mut batch = Batch::blind();
        batch.put("a", "1").put("b", "2").delete("a").put("c", "3").put("b", "4");
        let kept = last_of_each_key(batch.writes);
        let expected = [
            Write::Delete { key: "a".into() },
            Write::Put { key: "c".into(), value: "3".into() },
            Write::Put { key: "b".into(), value: "4".into() },
        ];
        assert_eq!(kept, expected);
    }
}
