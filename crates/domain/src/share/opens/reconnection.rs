//! Handles whose connection is lost, and clients that reconnect to them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::handle::{
    CachingGranted, ClientId, Durability, Durable, Handle, LeaseKey, NodeKey, Opener,
};
use super::kept_open::PERSISTENT_OPENS_OF_NODE_MAX;
use super::range_locks::OpenId;
use super::registry::Opens;
use super::replay::CreateId;
use super::waiting_time;
use crate::share::handles::DurableWanted;
use crate::time::Timestamp;

/// How long a durable handle waits if its client gives no timeout.
pub const DURABLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum timeout.
pub const DURABLE_TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// What a client must present to reconnect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    pub handle: OpenId,
    pub durability: Durability,
    pub persistent: bool,
    pub lease: Option<LeaseKey>,
}

impl Opens {
    /// Makes a handle durable, if its cache allows that; a persistent one needs no cache. Handles in a
    /// snapshot are not made durable, since snapshots do not change.
    pub(crate) fn make_durable(&self, handle: &Handle, wanted: DurableWanted) {
        let is_persistent = wanted.persistent
            && handle.snapshot.is_none()
            && self.persistent_at(handle.key) < PERSISTENT_OPENS_OF_NODE_MAX;
        if handle.is_directory || !(is_persistent || self.can_be_durable(handle)) {
            return;
        }
        let timeout = Duration::from_millis(wanted.timeout_milliseconds.into());
        let timeout = if timeout.is_zero() { DURABLE_TIMEOUT } else { timeout };
        let timeout = timeout.min(DURABLE_TIMEOUT_MAX);
        let mut state = handle.state.lock();
        if state.closed {
            return;
        }
        state.durable = Some(Durable { kind: wanted.kind, timeout, is_persistent });
        drop(state);
        if is_persistent {
            self.persistent.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The connection of a handle is lost. False if the handle has to be closed.
    pub(crate) fn lose(&self, handle: &Handle) -> bool {
        // Waiting for this client to answer a break is pointless; a persistent handle loses only its
        // cache then.
        let is_kept = handle.is_persistent()
            || self.can_be_durable(handle) && !self.is_asked_to_give_up(handle);
        if !is_kept {
            return false;
        }
        let mut state = handle.state.lock();
        match state.durable {
            Some(durable) if !state.closed => {
                state.lost = Some(waiting_time::now() + durable.timeout);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Closes handles whose clients have not reconnected in time.
    pub(crate) fn expire(&self, key: NodeKey) {
        self.with(key, |node| node.expire(waiting_time::now()));
    }

    /// The handle that a client reconnects to: by its number, or a persistent one by its CREATE.
    pub(crate) fn claimed(&self, claimed: &Claimed, client: ClientId) -> Option<Arc<Handle>> {
        self.handle(claimed.handle).or_else(|| {
            let Durability::Second(guid) = claimed.durability else { return None };
            let create = Some(CreateId { client, guid });
            let found = self.handles_where(|it| it.create == create && it.is_persistent()).next();
            found.filter(|_| claimed.persistent)
        })
    }

    /// Sends a reconnected client the breaks that it has missed.
    pub(crate) fn tell_again(&self, handle: &Handle) {
        self.peek(handle.key, |node| node.tell_again(handle.id));
    }

    /// Gives a lost handle back to its client.
    pub(crate) fn reclaim(
        &self,
        claimed: Claimed,
        opener: &Opener,
        now: Timestamp,
    ) -> Option<(Arc<Handle>, CachingGranted)> {
        let handle = self.handle(claimed.handle)?;
        self.expire(handle.key);
        {
            let mut state = handle.state.lock();
            let durable = state.durable.filter(|_| state.lost.is_some() && !state.closed)?;
            // With the number of a handle a client may reconnect as if it were of version 1, which
            // has no GUID.
            let same_kind = match (durable.kind, claimed.durability) {
                _ if durable.is_persistent => {
                    claimed.persistent && durable.kind == claimed.durability
                }
                (_, Durability::First) | (Durability::First, Durability::Second(0)) => true,
                (kind, claimed) => kind == claimed,
            };
            // A lease belongs to one client.
            let same_client = handle.lease.is_none() || state.opener.client == opener.client;
            let same_user = state.opener.user == opener.user;
            if !(same_kind && same_client && same_user && handle.lease == claimed.lease) {
                return None;
            }
            state.come_back(opener, now);
        }
        self.tell_again(&handle);
        let granted = self.granted_to(&handle);
        Some((handle, granted))
    }
}
