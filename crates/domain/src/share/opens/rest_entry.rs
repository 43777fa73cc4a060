//! REST calls among the opens: each is an open while it runs.

use std::time::Duration;

use tokio::time::Instant;

use super::breaks::Cause;
use super::handle::NodeKey;
use super::node::{Attempt, NodeOpens, Obstacle};
use super::registry::Opens;
use super::rest_operation::{Entry, REST_BREAK_WAIT_MAX, RestOperation};
use super::share_mode::compatible;
use super::waiting_time;
use crate::names::FilePath;
use crate::share::Place;

/// Why a REST call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnterRefusal {
    #[error("an SMB client has the file marked for deletion")]
    DeletePending,
    #[error("an SMB client has the file open in a way that excludes this")]
    SharingViolation,
    #[error("an SMB client has locked a part of the file")]
    LockConflict,
    #[error("an SMB client has not given up its cache of the file in time")]
    CacheFlushDelay,
}

/// A REST call running on a node. It counts as an open until this is dropped.
#[must_use]
pub struct Entered<'a> {
    opens: &'a Opens,
    key: NodeKey,
    call: u64,
}

impl Entered<'_> {
    /// The call has moved the node.
    pub fn moved(&self, place: Place, path: FilePath) {
        self.opens.moved(self.key, place, path);
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.opens.with(self.key, |node| {
            node.calls.retain(|(call, _)| *call != self.call);
            node.changed.notify_waiters();
        });
    }
}

impl NodeOpens {
    fn try_enter(&mut self, entry: Entry, call: u64, now: Instant) -> Attempt<()> {
        self.expire(now);
        if self.is_marked_for_deletion() {
            return Attempt::Refused(Obstacle::DeletePending);
        }
        let excludes = |node: &Self| {
            node.opens
                .iter()
                .any(|open| entry.alone || !compatible(open.handle.claim(), entry.claim))
        };
        if excludes(self) {
            let (waiting, _) = self.cause(|_| Some(Cause::SharingConflict), None, now);
            if let Some(waiting) = waiting {
                return Attempt::Wait(waiting);
            }
            if excludes(self) {
                return Attempt::Refused(Obstacle::SharingViolation);
            }
        }
        if entry.whole_file_written && self.locks.check_rest_write().is_err() {
            return Attempt::Refused(Obstacle::LockConflict);
        }
        if let (Some(waiting), _) = self.cause(|_| entry.cause, None, now) {
            return Attempt::Wait(waiting);
        }
        self.calls.push((call, entry.claim));
        Attempt::Done(())
    }
}

impl Opens {
    /// Enters a REST call, which may wait for SMB clients to write back their caches, up to the
    /// timeout of the request.
    pub async fn enter(
        &self,
        key: NodeKey,
        operation: RestOperation,
        timeout: Duration,
    ) -> Result<Entered<'_>, EnterRefusal> {
        let (entry, call) = (operation.entry(), self.number());
        let deadline = waiting_time::now() + timeout.min(REST_BREAK_WAIT_MAX);
        loop {
            match self.with(key, |node| node.try_enter(entry, call, waiting_time::now())) {
                Attempt::Done(()) => return Ok(Entered { opens: self, key, call }),
                Attempt::Refused(Obstacle::DeletePending) => {
                    return Err(EnterRefusal::DeletePending);
                }
                Attempt::Refused(Obstacle::SharingViolation) => {
                    return Err(EnterRefusal::SharingViolation);
                }
                Attempt::Refused(Obstacle::LockConflict) => return Err(EnterRefusal::LockConflict),
                Attempt::Wait(waiting) => {
                    let settled = self.settled(key, &waiting);
                    if tokio::time::timeout_at(deadline, settled).await.is_err() {
                        return Err(EnterRefusal::CacheFlushDelay);
                    }
                }
            }
        }
    }

    /// Whether REST lists the node: what is about to be deleted is hidden.
    pub fn is_listed(&self, key: NodeKey) -> bool {
        !self.is_marked_for_deletion(key)
    }
}
