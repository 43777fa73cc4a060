//! What is kept in memory of queues in use: the head of each (see [`Head`]) and how many messages
//! it has. All of it can be read again from the rows.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_store::{Engine, Fault, KeyRange, Order};
use holdfast_sync::{AsyncMutex, AsyncRwLock, Mutex, OwnedRwLockReadGuard};

use super::head::Head;
use super::model::{Message, Place};
use super::rows;
use super::upkeep::Upkeep;
use crate::rows::Stored;
use crate::time::{Clock, Timestamp};

/// Queues kept at most; those not in use are dropped first.
const QUEUES_MAX: usize = 4096;
/// Rows read in one step. A message is returned after the step that finds it, so this bounds how
/// long the first consumer waits while messages for others are read.
const ROWS_PER_LOOK: usize = 128;
const ROWS_PER_COUNT: usize = 1024;

#[derive(Default)]
pub(crate) struct LiveQueues {
    by_id: Mutex<HashMap<u64, Arc<LiveQueue>>>,
    pub(super) upkeep: Mutex<Upkeep>,
}

pub(super) struct LiveQueue {
    id: u64,
    /// Held by every change of messages from before its commit until its result is recorded here,
    /// and exclusively at the start of a count, which so begins between two changes.
    changes: Arc<AsyncRwLock<()>>,
    /// Held while the queue is scanned or its messages are counted.
    looking: AsyncMutex<()>,
    counting: AsyncMutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    head: Head,
    count: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Count {
    #[default]
    Unknown,
    /// What was added and removed since the count began.
    Underway(i64),
    Known(i64),
}

impl Count {
    fn change(&mut self, by: i64) {
        match self {
            Self::Unknown => {}
            Self::Underway(count) | Self::Known(count) => *count += by,
        }
    }
}

impl LiveQueues {
    pub(super) fn of(&self, id: u64) -> Arc<LiveQueue> {
        let mut by_id = self.by_id.lock();
        if by_id.len() >= QUEUES_MAX && !by_id.contains_key(&id) {
            let mut room = QUEUES_MAX / 2;
            // A queue is in use while its reference count is above one.
            by_id.retain(|_, known| {
                let keep = room == 0 || Arc::strong_count(known) > 1;
                room -= usize::from(!keep);
                keep
            });
        }
        Arc::clone(by_id.entry(id).or_insert_with(|| Arc::new(LiveQueue::new(id))))
    }

    /// For a new number that no other request knows yet.
    pub(super) fn start_empty(&self, id: u64) {
        self.of(id).state.lock().count = Count::Known(0);
    }

    pub(super) fn forget(&self, id: u64) {
        self.by_id.lock().remove(&id);
    }
}

impl LiveQueue {
    fn new(id: u64) -> Self {
        Self {
            id,
            changes: Arc::default(),
            looking: AsyncMutex::default(),
            counting: AsyncMutex::default(),
            state: Mutex::default(),
        }
    }

    pub async fn begin(self: &Arc<Self>) -> PendingChange {
        PendingChange {
            known: Arc::clone(self),
            _change: Arc::clone(&self.changes).read_owned().await,
            taken: Vec::new(),
            put: Vec::new(),
            left: Vec::new(),
            added: 0,
            removed: 0,
            committed: false,
        }
    }

    /// Some of the next places, in order; they may be empty by the time they are read.
    pub async fn peek(
        &self,
        engine: &dyn Engine,
        count: usize,
        clock: &dyn Clock,
    ) -> Result<Vec<Place>, Fault> {
        let called = clock.now();
        loop {
            {
                let head = &self.state.lock().head;
                let places = head.peek(count);
                let is_all = !places.is_empty() && head.has_seen(Place::last_at(called));
                if places.len() >= count || is_all {
                    return Ok(places);
                }
            }
            if self.is_empty(engine, count, clock, called).await? {
                return Ok(Vec::new());
            }
        }
    }

    /// These places have been read and are empty.
    pub fn removed(&self, places: &[Place]) {
        let mut state = self.state.lock();
        places.iter().for_each(|place| state.head.removed(*place));
    }

    /// Whether the queue was empty at some time after the call. Scans the next rows, unless `count`
    /// places are ready.
    async fn is_empty(
        &self,
        engine: &dyn Engine,
        count: usize,
        clock: &dyn Clock,
        called: Timestamp,
    ) -> Result<bool, Fault> {
        let _alone = self.looking.lock().await;
        let (from, now, nothing_ready) = {
            let head = &mut self.state.lock().head;
            if head.ready_count() >= count {
                return Ok(false);
            }
            if head.was_empty_after(called) {
                return Ok(true);
            }
            (head.begin_look(), clock.now(), head.ready_count() == 0)
        };
        let look = Look(Some(self));
        let snapshot = engine.snapshot().await?;
        let range = rows::messages_visible(self.id, from, now);
        let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_LOOK).await?;
        let through = match found.last() {
            Some(last) if found.len() == ROWS_PER_LOOK => rows::place(&last.key)?,
            Some(_) | None => from.max(Place::last_at(now)),
        };
        let mut places = Vec::with_capacity(found.len());
        for row in found {
            // Expired ones are removed in the background, and are not read again until then.
            if !Message::decode(&row.value)?.has_expired(now) {
                places.push(rows::place(&row.key)?);
            }
        }
        let is_whole = through >= Place::last_at(now);
        Ok(look.end(from, places, through, (is_whole && nothing_ready).then_some(now)))
    }

    /// An upper bound of the number of messages: one counts from before it can be seen until after
    /// its removal. Counted once and then kept up to date.
    pub async fn count(&self, engine: &dyn Engine) -> Result<u64, Fault> {
        let _alone = self.counting.lock().await;
        if let Count::Known(count) = self.state.lock().count {
            return Ok(u64::try_from(count).unwrap_or(0));
        }
        let snapshot = {
            let _between_changes = self.changes.write().await;
            self.state.lock().count = Count::Underway(0);
            engine.snapshot().await?
        };
        let mut counted = 0;
        let mut range = KeyRange::prefix(rows::messages(self.id));
        loop {
            let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_COUNT).await?;
            counted += found.len() as i64;
            match found.last() {
                Some(last) if found.len() == ROWS_PER_COUNT => {
                    range = range.after(last.key.clone());
                }
                Some(_) | None => break,
            }
            // A count of millions yields in between.
            tokio::task::yield_now().await;
        }
        let mut state = self.state.lock();
        let total = match state.count {
            Count::Underway(since) | Count::Known(since) => counted + since,
            Count::Unknown => counted,
        };
        state.count = Count::Known(total);
        Ok(u64::try_from(total).unwrap_or(0))
    }
}

/// A scan of a queue. If it is dropped before its end, it is discarded.
struct Look<'known>(Option<&'known LiveQueue>);

impl Look<'_> {
    /// Ends the scan; `empty_at` is the time at which nothing was ready, if everything after it has
    /// been scanned.
    fn end(
        mut self,
        from: Place,
        found: Vec<Place>,
        through: Place,
        empty_at: Option<Timestamp>,
    ) -> bool {
        let Some(known) = self.0.take() else { return false };
        let head = &mut known.state.lock().head;
        let has_more = head.end_look(from, found, through);
        match empty_at {
            Some(then) if !has_more => {
                head.was_empty_at(then);
                true
            }
            Some(_) | None => false,
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.0 {
            known.state.lock().head.break_off_look();
        }
    }
}

/// A change of messages, from before its commit until its result is known. If it is dropped without
/// [`PendingChange::committed`] it has changed nothing, and gives back what it took; so it must not be
/// dropped during its commit, which is why front ends finish every request they have begun.
pub(super) struct PendingChange {
    known: Arc<LiveQueue>,
    _change: OwnedRwLockReadGuard<()>,
    taken: Vec<Place>,
    put: Vec<Place>,
    left: Vec<Place>,
    added: i64,
    removed: i64,
    committed: bool,
}

impl PendingChange {
    /// Takes places until it has `count`, if there are so many.
    pub async fn take(
        &mut self,
        engine: &dyn Engine,
        count: usize,
        clock: &dyn Clock,
    ) -> Result<&[Place], Fault> {
        let called = clock.now();
        loop {
            let missing = count.saturating_sub(self.taken.len());
            let has_seen_all = {
                let head = &mut self.known.state.lock().head;
                self.taken.extend(head.take(missing));
                head.has_seen(Place::last_at(called))
            };
            let is_enough = self.taken.len() >= count || (!self.taken.is_empty() && has_seen_all);
            if is_enough || self.known.is_empty(engine, 1, clock, called).await? {
                return Ok(&self.taken);
            }
        }
    }

    /// These of the taken places are empty: they are not given back.
    pub fn let_go(&mut self, gone: &[Place]) {
        self.taken.retain(|place| !gone.contains(place));
        self.known.state.lock().head.let_go(gone);
    }

    /// A message is about to be put there, a new one or one from another place.
    pub fn will_put(&mut self, place: Place) {
        self.put.push(place);
    }

    /// A new message is about to be committed; it counts already.
    pub fn will_add(&mut self, place: Place) {
        self.will_put(place);
        self.added += 1;
        self.known.state.lock().count.change(1);
    }

    /// The message is about to leave this place for another one.
    pub fn will_leave(&mut self, place: Place) {
        self.left.push(place);
    }

    /// The message at this place is about to be removed; it counts until then.
    pub fn will_remove(&mut self, place: Place) {
        self.will_leave(place);
        self.removed += 1;
    }

    pub fn committed(mut self) {
        self.committed = true;
    }
}

impl Drop for PendingChange {
    fn drop(&mut self) {
        let mut state = self.known.state.lock();
        if self.committed {
            state.count.change(-self.removed);
            state.head.let_go(&self.taken);
            self.left.iter().for_each(|place| state.head.removed(*place));
        } else {
            state.count.change(-self.added);
            state.head.give_back(&self.taken);
        }
        for place in self.put.drain(..) {
            state.head.put(place);
        }
    }
}
