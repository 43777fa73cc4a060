//! CREATEs that are sent again, [MS-SMB2] 3.3.5.9.10.

use std::sync::Arc;

use super::Answer;
use super::command::{CachingWanted, OpenNode, Opened};
use super::refusal::HandleRefusal;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::names::FilePath;
use crate::share::SharePath;
use crate::share::opens::replay::{Created, Earlier};
use crate::share::opens::{CachingGranted, Handle, LeaseKey, Opener};

impl Domain {
    /// The answer to a CREATE that was sent before.
    pub(super) async fn open_again(&self, command: &OpenNode, earlier: Earlier) -> Answer<Opened> {
        let refused = |refusal| Err(Failure::Refused(refusal));
        let created = match earlier {
            _ if !command.is_replay => return refused(HandleRefusal::AlreadyCreated),
            Earlier::Pending => return refused(HandleRefusal::StillPending),
            Earlier::Done(created) => created,
        };
        let handle = Arc::clone(&created.handle);
        self.opens.expire(handle.key);
        let is_lost = {
            let mut state = handle.state.lock();
            if state.closed {
                // It is just being closed; a moment later it can be opened again.
                return refused(HandleRefusal::StillPending);
            }
            let is_lost = state.lost.is_some();
            let replay = Replay::of(command);
            check(&created, &state.opener, is_lost, &replay).map_err(Failure::Refused)?;
            if is_lost {
                state.come_back(&command.opener, self.now());
            }
            is_lost
        };
        if is_lost {
            self.opens.tell_again(&handle);
        }
        let caching = answered_caching(self.opens.granted_to(&handle), command.caching);
        let information = self.query_handle(&handle).await?;
        let is_durable = caching.allows_durability() || handle.is_persistent();
        let durable = handle.durable_timeout().filter(|_| is_durable);
        let (action, maximal_access) = {
            let state = handle.state.lock();
            (state.action, state.maximal_access)
        };
        Ok(Opened { handle, action, information, caching, durable, maximal_access })
    }

    /// The client uses a handle: it knows the answer to its CREATE, which cannot be replayed from
    /// now on.
    pub fn use_handle(&self, handle: &Handle) {
        self.opens.forget_create(handle);
    }
}

/// A CREATE that is sent again.
struct Replay<'a> {
    opener: &'a Opener,
    share: &'a SharePath,
    path: &'a FilePath,
    lease: Option<LeaseKey>,
}

impl<'a> Replay<'a> {
    fn of(command: &'a OpenNode) -> Self {
        let lease = match command.caching {
            CachingWanted::Lease(lease) => Some(lease.key),
            CachingWanted::None | CachingWanted::Oplock(_) => None,
        };
        Self { opener: &command.opener, share: &command.share, path: &command.path, lease }
    }
}

/// Whether an open belongs to the client that sends its CREATE again. Other attributes or another
/// disposition are ignored, as smbtorture (`smb2.replay.replay6`) finds Windows to do.
fn check(
    created: &Created,
    owner: &Opener,
    is_lost: bool,
    replay: &Replay<'_>,
) -> Result<(), HandleRefusal> {
    let handle = &created.handle;
    // A directory has no lease, even if one was asked for.
    let lease = replay.lease.filter(|_| !handle.is_directory);
    if owner.user != replay.opener.user || handle.lease != lease {
        return Err(HandleRefusal::AccessDenied);
    }
    if (&handle.share, &created.path) != (replay.share, replay.path) {
        return Err(HandleRefusal::InvalidParameter);
    }
    let is_same_way = (owner.session, owner.tree) == (replay.opener.session, replay.opener.tree);
    if is_lost || is_same_way { Ok(()) } else { Err(HandleRefusal::AlreadyCreated) }
}

/// The caching in the answer to a repeated CREATE: a lease as it is now; an oplock no higher than
/// it asks for, though the open keeps what it has.
fn answered_caching(granted: CachingGranted, wanted: CachingWanted) -> CachingGranted {
    match (granted, wanted) {
        (CachingGranted::Oplock(level), CachingWanted::Oplock(asked)) => {
            CachingGranted::oplock(level.caching().intersection(asked.caching()))
        }
        (CachingGranted::Oplock(_), CachingWanted::None | CachingWanted::Lease(_)) => {
            CachingGranted::None
        }
        (CachingGranted::None | CachingGranted::Lease(_), _) => granted,
    }
}
