//! Handles whose connection is lost, and clients that come back for them.

use std::sync::Arc;
use std::time::Duration;

use super::handle::{CachingGranted, Durability, Durable, Handle, LeaseKey, Opener};
use super::range_locks::OpenId;
use super::registry::Opens;
use super::waiting_time;
use crate::time::Timestamp;

/// How long a durable handle waits if its client does not say.
pub const DURABLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest that a client can ask for.
pub const DURABLE_TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// What a client that comes back must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    pub handle: OpenId,
    pub durability: Durability,
    pub lease: Option<LeaseKey>,
}

impl Opens {
    /// Makes a handle durable, if what it caches allows that; says for how long.
    pub(crate) fn make_durable(
        &self,
        handle: &Handle,
        kind: Durability,
        wanted: Duration,
    ) -> Option<Duration> {
        if handle.is_directory || !self.can_be_durable(handle) {
            return None;
        }
        let timeout = if wanted.is_zero() { DURABLE_TIMEOUT } else { wanted };
        let timeout = timeout.min(DURABLE_TIMEOUT_MAX);
        handle.state.lock().durable = Some(Durable { kind, timeout });
        Some(timeout)
    }

    /// The connection of a handle is lost. False if the handle has to be closed.
    pub(crate) fn lose(&self, handle: &Handle) -> bool {
        // Who waits for this client to give up its cache would wait in vain.
        if !self.can_be_durable(handle) || self.is_asked_to_give_up(handle) {
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

    /// Gives a lost handle back to its client.
    pub(crate) fn reclaim(
        &self,
        claimed: Claimed,
        opener: &Opener,
        now: Timestamp,
    ) -> Option<(Arc<Handle>, CachingGranted)> {
        let handle = self.handle(claimed.handle)?;
        self.with(handle.key, |node| node.expire(waiting_time::now()));
        {
            let mut state = handle.state.lock();
            let durable = state.durable.filter(|_| state.lost.is_some() && !state.closed)?;
            // Who knows the number of a handle may come back as if it were of the first kind, which
            // has no identifier of its own.
            let same_kind = match (durable.kind, claimed.durability) {
                (_, Durability::First) | (Durability::First, Durability::Second(0)) => true,
                (kind, claimed) => kind == claimed,
            };
            // Leases are those of one client.
            let same_client = handle.lease.is_none() || state.opener.client == opener.client;
            let same_user = state.opener.user == opener.user;
            if !(same_kind && same_client && same_user && handle.lease == claimed.lease) {
                return None;
            }
            state.lost = None;
            state.reconnected = Some(now);
            state.opener = opener.clone();
        }
        let granted = self.granted_to(&handle);
        Some((handle, granted))
    }
}
