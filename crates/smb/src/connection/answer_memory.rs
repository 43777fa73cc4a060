//! Memory for answers: reserved from before they are made until the client has read them.
//!
//! A client that asks for much and reads nothing would make the server hold all of it. So before a
//! long answer is made its memory is taken from the budgets of the connection and of the process; if
//! there is none, the request waits and keeps its credits, so that its client cannot send more
//! without limit. The part of the process's budget that a connection may hold shrinks with what is
//! left, so that clients that do not read leave room for those that do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Shorter answers, and other memory of a request, are counted with the request as this much.
pub const SHORT_ANSWER_BYTES: usize = 4096;
/// Enough to keep the network busy if the client reads.
const CONNECTION_BYTES_MAX: usize = 32 * 1024 * 1024;
const PROCESS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A connection holds at most this part of what is left for all.
const PART_OF_FREE: usize = 8;

/// The budget for answers of all connections.
#[derive(Debug)]
pub struct ProcessAnswerMemory {
    free: Mutex<usize>,
    /// Notified when room is given back.
    freed: Notify,
    /// How many connections wait without holding anything.
    starved: AtomicUsize,
}

impl Default for ProcessAnswerMemory {
    fn default() -> Self {
        Self::of(PROCESS_BYTES_MAX)
    }
}

impl ProcessAnswerMemory {
    pub fn of(bytes: usize) -> Self {
        Self { free: Mutex::new(bytes), freed: Notify::new(), starved: AtomicUsize::new(0) }
    }

    /// Whether clients that do not read their answers delay others.
    pub fn is_short(&self) -> bool {
        self.starved.load(Ordering::Relaxed) > 0
    }
}

/// The budget for answers of one connection.
#[derive(Debug)]
pub struct ConnectionAnswerMemory {
    process: Arc<ProcessAnswerMemory>,
    /// Changed only under the lock of the process.
    held: AtomicUsize,
    /// Waiters queue here first, in order.
    turn: tokio::sync::Mutex<()>,
}

impl ConnectionAnswerMemory {
    pub fn new(process: &Arc<ProcessAnswerMemory>) -> Arc<Self> {
        Arc::new(Self {
            process: Arc::clone(process),
            held: AtomicUsize::new(0),
            turn: tokio::sync::Mutex::default(),
        })
    }

    pub fn process(&self) -> &ProcessAnswerMemory {
        &self.process
    }

    /// Room for so many bytes, if it is available and no other waits.
    pub fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let _turn = self.turn.try_lock().ok()?;
        self.take_now(bytes)
    }

    /// Waits for room. Answers held back must be sent before: they may hold the room that is waited
    /// for.
    pub async fn take(self: &Arc<Self>, bytes: usize) -> Taken {
        let _turn = self.turn.lock().await;
        let mut starving = None;
        loop {
            let mut freed = std::pin::pin!(self.process.freed.notified());
            freed.as_mut().enable();
            if let Some(taken) = self.take_now(bytes) {
                return taken;
            }
            if self.held.load(Ordering::Relaxed) == 0 && starving.is_none() {
                starving = Some(Starving::new(&self.process));
            }
            freed.await;
        }
    }

    fn take_now(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let mut free = self.process.free.lock();
        let held = self.held.load(Ordering::Relaxed);
        let after = held + bytes;
        // The first answer only has to fit.
        let part = CONNECTION_BYTES_MAX.min(*free / PART_OF_FREE);
        let may_hold = if held == 0 { *free } else { part };
        if after > may_hold {
            return None;
        }
        *free -= bytes;
        self.held.store(after, Ordering::Relaxed);
        Some(Taken { room: Arc::clone(self), bytes })
    }

    fn give_back(&self, bytes: usize) {
        let mut free = self.process.free.lock();
        *free += bytes;
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        drop(free);
        self.process.freed.notify_waiters();
    }
}

struct Starving<'a>(&'a ProcessAnswerMemory);

impl<'a> Starving<'a> {
    fn new(process: &'a ProcessAnswerMemory) -> Self {
        process.starved.fetch_add(1, Ordering::Relaxed);
        Self(process)
    }
}

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        self.0.starved.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Room held until this is dropped.
#[derive(Debug)]
pub struct Taken {
    room: Arc<ConnectionAnswerMemory>,
    bytes: usize,
}

impl Taken {
    /// The answer is no longer than this.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(unused) = self.bytes.checked_sub(bytes).filter(|unused| *unused > 0) {
            self.bytes = bytes;
            self.room.give_back(unused);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: usize = 1024 * 1024;

    async fn waits(taking: impl Future<Output = Taken>) -> bool {
        tokio::time::timeout(Duration::from_millis(5), taking).await.is_err()
    }

    #[tokio::test]
    async fn a_connection_has_its_own_limit() {
        let process = Arc::new(ProcessAnswerMemory::default());
        let (greedy, other) =
            (ConnectionAnswerMemory::new(&process), ConnectionAnswerMemory::new(&process));
        let mut held: Vec<Taken> = Vec::new();
        while let Some(taken) = greedy.try_take(MIB) {
            held.push(taken);
        }
        assert!(held.len() * MIB > CONNECTION_BYTES_MAX / 2);
        assert!(held.len() * MIB <= CONNECTION_BYTES_MAX);
        assert!(waits(greedy.take(MIB)).await);
        assert!(other.try_take(8 * MIB).is_some(), "others do not wait for it");
        held.pop();
        assert!(greedy.try_take(MIB).is_some());
    }

    #[tokio::test]
    async fn many_connections_that_do_not_read_leave_room_for_one_more() {
        for bytes in [MIB, 8 * MIB] {
            let process = Arc::new(ProcessAnswerMemory::default());
            let mut held = Vec::new();
            for _ in 0..20 {
                let greedy = ConnectionAnswerMemory::new(&process);
                while let Some(taken) = greedy.try_take(bytes) {
                    held.push(taken);
                }
            }
            assert!(ConnectionAnswerMemory::new(&process).try_take(8 * MIB).is_some(), "{bytes}");
            assert!(!process.is_short());
        }
    }

    #[tokio::test]
    async fn who_holds_nothing_and_waits_is_known_to_wait() {
        let process = Arc::new(ProcessAnswerMemory::of(2 * MIB));
        let (greedy, starved) =
            (ConnectionAnswerMemory::new(&process), ConnectionAnswerMemory::new(&process));
        let held = greedy.try_take(2 * MIB).expect("the first answer only has to fit");
        let waiting = tokio::spawn({
            let starved = Arc::clone(&starved);
            async move { starved.take(MIB).await }
        });
        while !process.is_short() {
            tokio::task::yield_now().await;
        }
        drop(held);
        let taken = waiting.await.expect("no panic");
        assert!(!process.is_short());
        drop(taken);
        assert_eq!(*process.free.lock(), 2 * MIB);
    }

    #[tokio::test]
    async fn what_an_answer_does_not_need_goes_back_at_once() {
        let process = Arc::new(ProcessAnswerMemory::default());
        let room = ConnectionAnswerMemory::new(&process);
        let mut taken = room.try_take(20 * MIB).expect("room");
        assert!(room.try_take(20 * MIB).is_none());
        taken.shrink_to(100);
        assert!(room.try_take(20 * MIB).is_some());
        drop(taken);
        assert_eq!(room.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn those_who_wait_are_served_in_turn() {
        let process = Arc::new(ProcessAnswerMemory::default());
        let room = ConnectionAnswerMemory::new(&process);
        let held = room.try_take(CONNECTION_BYTES_MAX).expect("room");
        let long = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.take(CONNECTION_BYTES_MAX).await }
        });
        tokio::task::yield_now().await;
        assert!(waits(room.take(1)).await, "it came later");
        drop(held);
        drop(long.await.expect("no panic"));
        assert!(!waits(room.take(1)).await);
    }
}
