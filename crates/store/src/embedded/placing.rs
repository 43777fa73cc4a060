//! Places batches: checks them against recent writes, gives them a sequence and a record in the log, and
//! puts their rows into the memtable. All of that happens on the thread of the caller, so that many
//! batches on one object are placed during one sync; the committing thread makes them durable, see
//! `commit`. `docs/design/0010-placed-commits.md` says why it is safe.
//!
//! Batches are placed one after the other, in the order of their sequences. A batch is completely in
//! the trees before a snapshot of what is placed sees it.

use std::collections::{HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_sync::{Condvar, Mutex, oneshot};

use super::batch_caller::Caller;
use super::engine_state::EngineState;
use super::log::{ActiveSegment, Group, PlacedRecord, Record, RecordPlace};
use super::recent_writes::RecentWrites;
use crate::engine::{Batch, CommitError, Fault, Placed, Write};

/// A group is closed at this size: the size of one sync decides how long the next group waits.
const GROUP_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Larger batches are placed by the committing thread, since they would block the other connections of
/// the caller's thread.
const PLACED_BY_CALLER_BYTES_MAX: usize = 256 * 1024;
const PLACED_BY_CALLER_WRITES_MAX: usize = 256;

pub(super) struct Placing {
    shared: Arc<EngineState>,
    state: Mutex<State>,
    /// Only the committing thread waits on it.
    has_work: Condvar,
}

struct State {
    recent_writes: RecentWrites,
    next_sequence: u64,
    segment: SegmentRoom,
    /// Placed, and not written yet.
    group: Group,
    /// The callers that wait for `group`.
    callers: Vec<Caller>,
    writing: Writing,
    /// Batches for the committing thread to place, because they are large or may not fit. As long as
    /// there are any, later batches queue behind them.
    line: VecDeque<Waiting>,
    /// The committing thread is placing batches from the line.
    is_admitting: bool,
    is_idle: bool,
    is_closing: bool,
}

/// The space left in the segment that is being written.
#[derive(Clone, Copy)]
pub(super) struct SegmentRoom {
    incarnation: u64,
    bytes: u64,
}

impl SegmentRoom {
    pub fn of(segment: &ActiveSegment) -> Self {
        Self { incarnation: segment.incarnation, bytes: segment.bytes_left() }
    }
}

/// The group that is being made durable.
#[derive(Default)]
struct Writing {
    last_sequence: u64,
    callers: Vec<Caller>,
}

/// A batch in line, and the channel to its caller.
struct Waiting {
    prepared: Prepared,
    placed: oneshot::Sender<Result<Placed, CommitError>>,
}

/// A batch with everything prepared that does not depend on its place.
struct Prepared {
    batch: Batch,
    record: Record,
}

impl Prepared {
    fn new(mut batch: Batch) -> Self {
        batch.writes = last_of_each_key(batch.writes);
        let record = Record::encode(&batch.writes);
        Self { batch, record }
    }

    fn is_large(&self) -> bool {
        self.record.bytes() > PLACED_BY_CALLER_BYTES_MAX
            || self.batch.writes.len() > PLACED_BY_CALLER_WRITES_MAX
    }
}

/// What the committing thread is to do next.
pub(super) enum CommitWork {
    Write(Group),
    /// Place the batches that wait in line.
    Admit,
    End,
}

impl Placing {
    pub fn new(
        shared: Arc<EngineState>,
        recent_writes: RecentWrites,
        last_sequence: u64,
        segment: &ActiveSegment,
    ) -> Self {
        let state = State {
            recent_writes,
            next_sequence: last_sequence + 1,
            segment: SegmentRoom::of(segment),
            group: Group::default(),
            callers: Vec::new(),
            writing: Writing::default(),
            line: VecDeque::new(),
            is_admitting: false,
            is_idle: false,
            is_closing: false,
        };
        Self { shared, state: Mutex::new(state), has_work: Condvar::new() }
    }

    pub async fn place(&self, batch: Batch) -> Result<Placed, CommitError> {
        self.check_room(&batch)?;
        let prepared = Prepared::new(batch);
        let in_line = {
            let mut state = self.state.lock();
            self.check_open(&state)?;
            if prepared.batch.writes.is_empty() {
                return self.confirm(&mut state, &prepared.batch);
            }
            let takes = state.takes(&prepared) && !self.shared.wants_flush.load(Ordering::Relaxed);
            if takes {
                let sequence = self.accept(&mut state, &prepared.batch)?;
                let record = prepared.record.place(&state.place_of(sequence));
                self.shared.apply(sequence, record.writes());
                let placed = self.finish(&mut state, sequence, record);
                self.wake(state);
                return Ok(placed);
            }
            let (placed, in_line) = oneshot::channel();
            state.line.push_back(Waiting { prepared, placed });
            self.wake(state);
            in_line
        };
        in_line.await.unwrap_or_else(|_| Err(CommitError::Fault(self.why_over())))
    }

    /// Waits until the batches up to this sequence are durable.
    pub async fn settled(&self, sequence: u64) -> Result<(), Fault> {
        if self.shared.snapshots.is_durable(sequence) {
            return Ok(());
        }
        let placed = {
            let mut state = self.state.lock();
            self.check_open(&state).map_err(|_| self.why_over())?;
            self.wait_for(&mut state, sequence)
        };
        placed.durable().await.map_err(|error| match error {
            CommitError::OutcomeUnknown(fault) | CommitError::Fault(fault) => fault,
            CommitError::Conflict => Fault::new("a batch without expectations has met a conflict"),
        })
    }

    fn check_room(&self, batch: &Batch) -> Result<(), CommitError> {
        if batch.writes.is_empty() {
            return Ok(());
        }
        match self.shared.upkeep.lock().disk_space.refusal() {
            Some(fault) if !batch.gives_room() => Err(CommitError::Fault(fault.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// Under the lock, so that every batch placed before a failure is told of it.
    fn check_open(&self, state: &State) -> Result<(), CommitError> {
        match self.shared.poison.get() {
            Some(fault) => Err(CommitError::Fault(fault.clone())),
            None if state.is_closing => Err(CommitError::Fault(self.why_over())),
            None => Ok(()),
        }
    }

    fn why_over(&self) -> Fault {
        let poison = self.shared.poison.get().cloned();
        poison.unwrap_or_else(|| Fault::new("the row store is closed"))
    }

    /// A batch without writes: what it relied on must be unchanged, and become durable.
    fn confirm(&self, state: &mut State, batch: &Batch) -> Result<Placed, CommitError> {
        if state.recent_writes.has_changed_under(batch) {
            EngineState::count(&self.shared.conflicts);
            return Err(CommitError::Conflict);
        }
        Ok(match &batch.since {
            Some(since) => self.wait_for(state, since.sequence),
            None => Placed::durable_already(),
        })
    }

    /// The lock has been held since the check of what is durable, so a caller added here is
    /// notified later.
    fn wait_for(&self, state: &mut State, sequence: u64) -> Placed {
        if self.shared.snapshots.is_durable(sequence) {
            return Placed::durable_already();
        }
        let (caller, placed) = Caller::new();
        if sequence <= state.writing.last_sequence {
            state.writing.callers.push(caller);
        } else {
            state.callers.push(caller);
        }
        placed
    }

    /// The sequence of the batch, if nothing it relied on has changed.
    fn accept(&self, state: &mut State, batch: &Batch) -> Result<u64, CommitError> {
        if state.recent_writes.has_changed_under(batch) {
            EngineState::count(&self.shared.conflicts);
            return Err(CommitError::Conflict);
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        state.recent_writes.record(sequence, &batch.writes);
        Ok(sequence)
    }

    /// To be called when all rows of the batch are in the trees.
    fn finish(&self, state: &mut State, sequence: u64, record: PlacedRecord) -> Placed {
        let (caller, placed) = Caller::new();
        state.group.push(record, sequence);
        state.callers.push(caller);
        self.shared.snapshots.publish_placed(sequence);
        placed
    }

    fn wake(&self, mut state: holdfast_sync::MutexGuard<'_, State>) {
        let was_idle = mem::take(&mut state.is_idle);
        drop(state);
        if was_idle {
            self.has_work.notify_one();
        }
    }

    /// Accepts no more batches; those accepted are still committed.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        self.wake(state);
    }
}

/// For the committing thread.
impl Placing {
    /// Waits for work.
    pub fn next_work(&self) -> CommitWork {
        let mut state = self.state.lock();
        loop {
            if self.shared.poison.get().is_some() {
                return CommitWork::End;
            }
            if !state.group.is_empty() {
                let group = mem::take(&mut state.group);
                state.segment.bytes -= group.bytes();
                state.writing.last_sequence = group.last_sequence;
                state.writing.callers = mem::take(&mut state.callers);
                return CommitWork::Write(group);
            }
            if !state.line.is_empty() {
                return CommitWork::Admit;
            }
            if state.is_closing {
                return CommitWork::End;
            }
            state.is_idle = true;
            self.has_work.wait(&mut state);
        }
    }

    /// The group that was given out is durable.
    pub fn written(&self, group: &Group) {
        // Before the callers are taken: see `wait_for`.
        self.shared.snapshots.publish_durable(group.last_sequence);
        self.shared.commits.fetch_add(group.len() as u64, Ordering::Relaxed);
        let callers = mem::take(&mut self.state.lock().writing.callers);
        Caller::tell_all_committed(callers);
    }

    /// Places the batches in line, as long as the group has room for them. Returns the size of the first
    /// one that does not fit. Until the line is empty no other thread places any.
    pub fn admit(&self) -> Option<u64> {
        loop {
            let (Waiting { prepared, placed }, sequence, place) = {
                let mut state = self.state.lock();
                state.is_admitting = !state.line.is_empty();
                let next = state.line.front()?;
                let wants_flush = self.shared.wants_flush.load(Ordering::Relaxed);
                if !state.has_room_for(&next.prepared) || wants_flush {
                    let alone = Group::default().bytes_with(next.prepared.record.bytes());
                    return Some(alone);
                }
                let next = state.line.pop_front()?;
                match self.accept(&mut state, &next.prepared.batch) {
                    Ok(sequence) => (next, sequence, state.place_of(sequence)),
                    Err(conflict) => {
                        // The caller may be gone: then nobody needs the answer.
                        drop(next.placed.send(Err(conflict)));
                        continue;
                    }
                }
            };
            // Not under the lock: it may be large.
            let record = prepared.record.place(&place);
            self.shared.apply(sequence, record.writes());
            let done = self.finish(&mut self.state.lock(), sequence, record);
            drop(placed.send(Ok(done)));
        }
    }

    pub fn has_group(&self) -> bool {
        !self.state.lock().group.is_empty()
    }

    /// Refuses the first batch in line, which cannot be given room.
    pub fn refuse_first(&self, fault: Fault) {
        if let Some(first) = self.state.lock().line.pop_front() {
            drop(first.placed.send(Err(CommitError::Fault(fault))));
        }
    }

    /// Records go to this segment from now on. To be called when everything placed is written.
    pub fn set_segment(&self, segment: SegmentRoom) {
        self.state.lock().segment = segment;
    }

    /// Nothing is committed any more: all waiting callers are told.
    pub fn end(&self) {
        let (waiting, line) = {
            let mut state = self.state.lock();
            state.is_closing = true;
            let mut waiting = mem::take(&mut state.writing.callers);
            waiting.append(&mut state.callers);
            (waiting, mem::take(&mut state.line))
        };
        let fault = self.why_over();
        for caller in waiting {
            caller.tell(Err(CommitError::OutcomeUnknown(fault.clone())));
        }
        for Waiting { placed, .. } in line {
            drop(placed.send(Err(CommitError::Fault(fault.clone()))));
        }
    }
}

impl State {
    /// Whether the caller may place the batch.
    fn takes(&self, prepared: &Prepared) -> bool {
        self.line.is_empty()
            && !self.is_admitting
            && !prepared.is_large()
            && self.has_room_for(prepared)
    }

    /// A batch larger than the maximum is a group of its own.
    fn has_room_for(&self, prepared: &Prepared) -> bool {
        let bytes = self.group.bytes_with(prepared.record.bytes());
        bytes <= self.segment.bytes && (bytes <= GROUP_BYTES_MAX || self.group.is_empty())
    }

    fn place_of(&self, sequence: u64) -> RecordPlace {
        let SegmentRoom { incarnation, .. } = self.segment;
        RecordPlace { incarnation, sequence, is_first_of_group: self.group.is_empty() }
    }
}

const FEW_WRITES: usize = 16;

fn last_of_each_key(mut writes: Vec<Write>) -> Vec<Write> {
    if writes.len() <= FEW_WRITES {
        // Comparing each with those behind it costs less than hashing them.
        let mut at = 0;
        while at < writes.len() {
            if writes[at + 1..].iter().any(|later| later.key() == writes[at].key()) {
                writes.remove(at);
            } else {
                at += 1;
            }
        }
    } else {
        let mut seen = HashSet::with_capacity(writes.len());
        let mut kept: Vec<bool> =
            writes.iter().rev().map(|write| seen.insert(write.key().clone())).collect();
        // `kept` runs from the last write to the first, so popping it follows the order of the
        // writes.
        writes.retain(|_| kept.pop().unwrap_or(true));
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_write_of_a_key_is_kept() {
        let mut batch = Batch::blind();
        batch.put("a", "1").put("b", "2").delete("a").put("c", "3").put("b", "4");
        let mut many = Batch::blind();
        for number in 0..FEW_WRITES {
            many.put(number.to_string(), "0");
        }
        many.writes.extend(batch.writes.iter().cloned());
        let kept = last_of_each_key(batch.writes);
        let expected = [
            Write::Delete { key: "a".into() },
            Write::Put { key: "c".into(), value: "3".into() },
            Write::Put { key: "b".into(), value: "4".into() },
        ];
        assert_eq!(kept, expected);
        assert_eq!(last_of_each_key(many.writes)[FEW_WRITES..], expected);
    }
}
