//! Waiting for byte-range locks: first come, first served.

use holdfast_sync::oneshot;

use super::handle::{Handle, NodeKey};
use super::node::NodeOpens;
use super::range_locks::{LockConflict, OpenId, Range, RangeLock, RangeNotLocked};
use super::registry::Opens;

/// A request that waits until all of its locks can be granted at once.
#[derive(Debug)]
pub struct LockWaiter {
    pub id: u64,
    pub locks: Vec<RangeLock>,
    /// True when they are granted, false when the handle was closed.
    pub granted: oneshot::Sender<bool>,
}

impl NodeOpens {
    /// Grants free ranges to the waiters.
    pub fn serve_lock_waiters(&mut self) {
        let mut waiting = std::mem::take(&mut self.lock_waiters);
        while let Some(waiter) = waiting.pop_front() {
            if waiter.granted.is_closed() {
                continue;
            }
            if self.locks.lock(&waiter.locks).is_err() {
                self.lock_waiters.push_back(waiter);
            } else if waiter.granted.send(true).is_err() {
                self.give_back(&waiter.locks);
            }
        }
    }

    pub fn give_back(&mut self, locks: &[RangeLock]) {
        for lock in locks {
            // It was just granted.
            let _ = self.locks.unlock(lock.owner, lock.range);
        }
    }

    /// An open is closed: its locks and waiters are removed.
    pub fn release_locks(&mut self, owner: OpenId) {
        self.lock_waiters = std::mem::take(&mut self.lock_waiters)
            .into_iter()
            .filter_map(|waiter| {
                if waiter.locks.iter().all(|lock| lock.owner != owner) {
                    return Some(waiter);
                }
                let _ = waiter.granted.send(false);
                None
            })
            .collect();
        if self.locks.release(owner) {
            self.serve_lock_waiters();
        }
    }
}

/// Why a lock is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRefusal {
    NotGranted,
    /// The handle was closed meanwhile.
    Closed,
}

/// Leaves the queue when the wait is cancelled.
struct InQueue<'a> {
    opens: &'a Opens,
    key: NodeKey,
    id: u64,
    locks: Vec<RangeLock>,
    granted: oneshot::Receiver<bool>,
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.granted.close();
        // Granted, but the waiter is gone.
        let unused = self.granted.try_recv() == Ok(true);
        self.opens.with(self.key, |node| {
            node.lock_waiters.retain(|waiter| waiter.id != self.id);
            if unused {
                node.give_back(&self.locks);
                node.serve_lock_waiters();
            }
        });
    }
}

impl Opens {
    /// Takes all of the locks, waiting until they are free.
    pub(crate) async fn lock(
        &self,
        handle: &Handle,
        locks: Vec<RangeLock>,
        wait: bool,
    ) -> Result<(), LockRefusal> {
        let (key, id) = (handle.key, self.number());
        let queued = self.with(key, |node| {
            if node.opens.iter().all(|open| open.handle.id != handle.id) {
                return Err(LockRefusal::Closed);
            }
            if node.locks.lock(&locks).is_ok() {
                return Ok(None);
            }
            if !wait {
                return Err(LockRefusal::NotGranted);
            }
            let (sender, granted) = oneshot::channel();
            let waiter = LockWaiter { id, locks: locks.clone(), granted: sender };
            node.lock_waiters.push_back(waiter);
            Ok(Some(granted))
        })?;
        let Some(granted) = queued else { return Ok(()) };
        let mut queue = InQueue { opens: self, key, id, locks, granted };
        match (&mut queue.granted).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(LockRefusal::Closed),
        }
    }

    /// Gives back the ranges in order, up to the first that is not locked.
    pub(crate) fn unlock(&self, handle: &Handle, ranges: &[Range]) -> Result<(), RangeNotLocked> {
        self.with(handle.key, |node| {
            let mut unlocked = ranges.iter().map(|range| node.locks.unlock(handle.id, *range));
            let outcome = unlocked.try_for_each(|outcome| outcome);
            node.serve_lock_waiters();
            outcome
        })
    }

    pub(crate) fn lock_count(&self, handle: &Handle) -> usize {
        self.peek(handle.key, |node| node.locks.held_by(handle.id).count()).unwrap_or(0)
    }

    pub(crate) fn check_read(&self, handle: &Handle, range: Range) -> Result<(), LockConflict> {
        let check = |node: &NodeOpens| node.locks.check_read(Some(handle.id), range);
        self.peek(handle.key, check).unwrap_or(Ok(()))
    }

    pub(crate) fn check_write(&self, handle: &Handle, range: Range) -> Result<(), LockConflict> {
        let check = |node: &NodeOpens| node.locks.check_write(Some(handle.id), range);
        self.peek(handle.key, check).unwrap_or(Ok(()))
    }
}
