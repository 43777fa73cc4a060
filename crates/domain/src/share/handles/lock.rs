//! Locks, watches and acknowledgements through handles.

use std::sync::Arc;

use super::Answer;
use super::command::{LockRequest, WatchFor};
use super::refusal::HandleRefusal;
use super::transfer::check_open;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::share::opens::breaks::Cause;
use crate::share::opens::handle::{LockSequence, NotedLock};
use crate::share::opens::kept_open::LOCKS_MAX;
use crate::share::opens::locking::LockRefusal;
use crate::share::opens::range_locks::{Range, RangeLock};
use crate::share::opens::watch::{Watch, Watched};
use crate::share::opens::{
    AccessMask, AcknowledgeRefusal, Caching, ClientId, Handle, LeaseKey, Opens, OplockLevel,
};

impl Domain {
    /// Takes all of the locks, or none. Dropping the future ends the wait.
    pub async fn lock_handle(
        &self,
        handle: &Handle,
        wanted: &[LockRequest],
        wait: bool,
    ) -> Answer<()> {
        self.lock_in_sequence(handle, wanted, wait, None).await
    }

    /// As [`Domain::lock_handle`]. The sequence number of the request counts once the locks are
    /// granted, and is stored with them.
    pub async fn lock_in_sequence(
        &self,
        handle: &Handle,
        wanted: &[LockRequest],
        wait: bool,
        sequence: Option<LockSequence>,
    ) -> Answer<()> {
        check_open(handle)?;
        if handle.is_directory {
            return Err(Failure::Refused(HandleRefusal::InvalidParameter));
        }
        let data = AccessMask::READ_DATA.union(AccessMask::WRITE_DATA);
        if !handle.access.intersects(data.union(AccessMask::APPEND_DATA)) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        if handle.is_persistent() && self.opens.lock_count(handle) + wanted.len() > LOCKS_MAX {
            return Err(Failure::Refused(HandleRefusal::TooManyLocks));
        }
        let owner = handle.id;
        let locks = wanted.iter();
        let locks = locks.map(|lock| RangeLock { owner, range: lock.range, kind: lock.kind });
        let locked = self.opens.lock(handle, locks.collect(), wait).await;
        locked.map_err(|refusal| {
            Failure::Refused(match refusal {
                LockRefusal::NotGranted => HandleRefusal::LockNotGranted,
                LockRefusal::Closed => HandleRefusal::RangeNotLocked,
            })
        })?;
        let ranges = wanted.iter().map(|lock| lock.range).collect();
        let before = sequence.map(|sequence| handle.note_lock(sequence));
        let taken = Taken { opens: &self.opens, handle, ranges, before };
        self.opens.disturb(handle, Cause::Write).await;
        self.remove_rows_of_closed().await?;
        self.keep_opens(handle.key).await?;
        taken.keep();
        Ok(())
    }

    /// Gives back the ranges in order, up to the first that is not locked.
    pub async fn unlock_handle(&self, handle: &Handle, ranges: &[Range]) -> Answer<()> {
        self.unlock_in_sequence(handle, ranges, None).await
    }

    /// As [`Domain::unlock_handle`], for a request with a number.
    pub async fn unlock_in_sequence(
        &self,
        handle: &Handle,
        ranges: &[Range],
        sequence: Option<LockSequence>,
    ) -> Answer<()> {
        check_open(handle)?;
        let unlocked = self.opens.unlock(handle, ranges);
        if let (Ok(()), Some(sequence)) = (&unlocked, sequence) {
            handle.note_lock(sequence);
        }
        self.keep_opens(handle.key).await?;
        unlocked.map_err(|_| Failure::Refused(HandleRefusal::RangeNotLocked))
    }

    /// Changes in a directory since the first call; each call returns those since the last.
    pub async fn watch_handle(&self, handle: &Arc<Handle>, watch: &WatchFor) -> Answer<Watched> {
        check_open(handle)?;
        if !handle.is_directory {
            return Err(Failure::Refused(HandleRefusal::InvalidParameter));
        }
        if !handle.access.contains(AccessMask::READ_DATA) {
            return Err(Failure::Refused(HandleRefusal::AccessDenied));
        }
        if self.opens.is_delete_pending(handle.key) {
            return Ok(Watched::DeletePending);
        }
        let asked = {
            let mut state = handle.state.lock();
            if state.closed {
                return Err(Failure::Refused(HandleRefusal::Closed));
            }
            let begins = state.watch.is_none();
            let new = || Watch::new(watch.filter, watch.recursive, watch.capacity);
            let asked = state.watch.get_or_insert_with(new).ask(watch.capacity);
            drop(state);
            if begins {
                self.opens.watch(handle);
            }
            asked
        };
        match asked {
            Ok(watched) => Ok(watched),
            Err(promised) => Ok(promised.await.unwrap_or(Watched::Closed)),
        }
    }

    pub fn acknowledge_oplock(
        &self,
        handle: &Handle,
        level: OplockLevel,
    ) -> Result<OplockLevel, AcknowledgeRefusal> {
        self.opens.acknowledge_oplock(handle, level)
    }

    /// `None` if the client has no lease of this key.
    pub fn acknowledge_lease(
        &self,
        client: ClientId,
        key: LeaseKey,
        kept: Caching,
    ) -> Option<Result<Caching, AcknowledgeRefusal>> {
        self.opens.acknowledge_lease(client, key, kept)
    }
}

/// Locks that the client was not told of yet: dropping this releases them.
struct Taken<'a> {
    opens: &'a Opens,
    handle: &'a Handle,
    ranges: Vec<Range>,
    /// The number that the number of this request has replaced.
    before: Option<NotedLock>,
}

impl Taken<'_> {
    fn keep(mut self) {
        self.ranges.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.ranges.is_empty() {
            // If the handle was closed meanwhile, the locks are released already.
            let _ = self.opens.unlock(self.handle, &self.ranges);
            if let Some(before) = self.before {
                self.handle.note_lock_again(before);
            }
        }
    }
}
