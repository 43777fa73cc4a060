//! Places of connections: how many there are, which connections hold them, and which is closed when they
//! run out. All listeners share them. Knows addresses and listeners, and nothing of the protocols.
//!
//! A connection begins as a *stranger*. When it has authenticated it *keeps* its place, as long as its
//! address keeps no more than its share and every other listener can still have its own; beyond that
//! its place is *lent*. As long as there are free places every connection gets one. When there are
//! none, a new connection gets that of a stranger or, if there is none, a lent one: the oldest of the
//! address that has the most of them, preferably an idle one. A kept place is never taken away. So
//! neither an address nor a listener nor many clients without credentials can shut others out, and a
//! single address can have all the places that no other needs.

#![forbid(unsafe_code)]

mod admission;
mod crowd;

pub use admission::{Admitted, admit};

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crowd::Crowd;

/// Connections that were told to close and have not yet. While there are so many, new ones wait: each
/// of them still has its descriptor.
pub const LEAVING_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The places of all listeners together.
    pub places: usize,
    /// How many places the connections of one address can keep.
    pub kept_by_address: usize,
    /// How many places are reserved for each listener.
    pub left_to_each_listener: usize,
}

/// The source of a connection: one customer usually has a whole /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Address(u128);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        match address.to_canonical() {
            // Mapped to a range without IPv6 networks.
            IpAddr::V4(address) => Self(u128::from(u32::from(address))),
            IpAddr::V6(address) if address.is_loopback() => Self(1 << 63),
            IpAddr::V6(address) => Self(u128::from(address) & NETWORK),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Standing {
    Stranger,
    Kept,
    Lent,
    /// Told to close: its place belongs to another already.
    Leaving,
    /// It has closed.
    Gone,
}

struct Entry {
    /// Its number in the order of arrival.
    number: u64,
    address: Address,
    listener: usize,
    /// Changed only under the lock of the places.
    standing: AtomicU8,
    works: AtomicBool,
    told_to_go: Notify,
}

impl Entry {
    fn is(&self, standing: Standing) -> bool {
        self.standing.load(Ordering::Relaxed) == standing as u8
    }

    fn becomes(&self, standing: Standing) {
        self.standing.store(standing as u8, Ordering::Relaxed);
    }

    fn works(&self) -> bool {
        self.works.load(Ordering::Relaxed)
    }
}

pub struct Places {
    limits: Limits,
    state: Mutex<State>,
    /// Notified when a place is free, or can be taken now.
    changed: Notify,
}

#[derive(Default)]
struct State {
    newest: u64,
    taken: usize,
    leaving: usize,
    strangers: Crowd,
    lent: Crowd,
    kept: usize,
    kept_by_listener: Vec<usize>,
    kept_by_address: HashMap<Address, usize>,
}

enum Tried {
    Taken(Arc<Entry>),
    Wait,
    Refused,
}

impl Places {
    pub fn new(limits: Limits) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Notify::new());
        Arc::new(Self { limits, state, changed })
    }

    /// For one more listener.
    pub fn entrance(self: &Arc<Self>) -> Entrance {
        let mut state = self.state.lock();
        state.kept_by_listener.push(0);
        Entrance { places: Arc::clone(self), listener: state.kept_by_listener.len() - 1 }
    }

    fn try_take(&self, address: Address, listener: usize) -> Tried {
        let mut state = self.state.lock();
        if state.leaving >= LEAVING_MAX {
            return Tried::Wait;
        }
        if state.taken >= self.limits.places {
            let within_share = state.kept_at(address) < self.limits.kept_by_address;
            match state.victim(within_share) {
                Some(victim) => state.dismiss(&victim),
                None if within_share => return Tried::Wait,
                None => return Tried::Refused,
            }
        }
        state.newest += 1;
        state.taken += 1;
        let entry = Arc::new(Entry {
            number: state.newest,
            address,
            listener,
            standing: AtomicU8::new(Standing::Stranger as u8),
            works: AtomicBool::new(false),
            told_to_go: Notify::new(),
        });
        state.strangers.add(&entry);
        Tried::Taken(entry)
    }

    fn authenticated(&self, entry: &Arc<Entry>) {
        let mut state = self.state.lock();
        if entry.is(Standing::Stranger) {
            state.strangers.remove(entry);
            state.keep_or_lend(&self.limits, entry);
        }
    }

    fn gone(&self, entry: &Arc<Entry>) {
        let mut state = self.state.lock();
        if entry.is(Standing::Gone) {
            return;
        }
        if entry.is(Standing::Leaving) {
            state.leaving -= 1;
        } else {
            state.taken -= 1;
            if entry.is(Standing::Stranger) {
                state.strangers.remove(entry);
            } else if entry.is(Standing::Lent) {
                state.lent.remove(entry);
            } else {
                state.no_longer_kept(&self.limits, entry);
            }
        }
        entry.becomes(Standing::Gone);
        drop(state);
        self.changed.notify_waiters();
    }
}

impl State {
    fn kept_at(&self, address: Address) -> usize {
        self.kept_by_address.get(&address).copied().unwrap_or(0)
    }

    /// Whether one more place can be kept without using those reserved for other listeners.
    fn can_keep(&self, limits: &Limits, entry: &Entry) -> bool {
        let others = self.kept_by_listener.iter().enumerate();
        let others = others.filter(|(listener, _)| *listener != entry.listener);
        let left: usize =
            others.map(|(_, kept)| limits.left_to_each_listener.saturating_sub(*kept)).sum();
        self.kept + left < limits.places && self.kept_at(entry.address) < limits.kept_by_address
    }

    fn keep_or_lend(&mut self, limits: &Limits, entry: &Arc<Entry>) {
        if self.can_keep(limits, entry) {
            entry.becomes(Standing::Kept);
            self.kept += 1;
            self.kept_by_listener[entry.listener] += 1;
            *self.kept_by_address.entry(entry.address).or_default() += 1;
        } else {
            entry.becomes(Standing::Lent);
            self.lent.add(entry);
        }
    }

    /// Another connection of the same address with a lent place may keep it from now on.
    fn no_longer_kept(&mut self, limits: &Limits, entry: &Entry) {
        self.kept -= 1;
        self.kept_by_listener[entry.listener] -= 1;
        if let Some(kept) = self.kept_by_address.get_mut(&entry.address) {
            *kept -= 1;
            if *kept == 0 {
                self.kept_by_address.remove(&entry.address);
            }
        }
        if let Some(next) = self.lent.oldest_of(entry.address) {
            self.lent.remove(&next);
            self.keep_or_lend(limits, &next);
        }
    }

    /// The connection that gives up its place. A busy one is chosen only for a new connection whose
    /// address is below its share.
    fn victim(&self, within_share: bool) -> Option<Arc<Entry>> {
        let idle = || self.strangers.oldest_idle().or_else(|| self.lent.oldest_idle());
        let any = || self.strangers.oldest().or_else(|| self.lent.oldest());
        idle().or_else(|| within_share.then(any).flatten())
    }

    fn dismiss(&mut self, victim: &Arc<Entry>) {
        let crowd =
            if victim.is(Standing::Stranger) { &mut self.strangers } else { &mut self.lent };
        crowd.remove(victim);
        victim.becomes(Standing::Leaving);
        self.taken -= 1;
        self.leaving += 1;
        victim.told_to_go.notify_one();
    }
}

/// The access of one listener to the places.
#[derive(Clone)]
pub struct Entrance {
    places: Arc<Places>,
    listener: usize,
}

impl Entrance {
    /// A place for a connection of this address. Waits while all are kept by others; `None` if the
    /// address has its share already.
    pub async fn take(&self, address: IpAddr) -> Option<Place> {
        let address = Address::from(address);
        loop {
            let mut changed = std::pin::pin!(self.places.changed.notified());
            // Before the check, so that later changes are not missed.
            changed.as_mut().enable();
            match self.places.try_take(address, self.listener) {
                Tried::Taken(entry) => {
                    return Some(Place { places: Arc::clone(&self.places), entry });
                }
                Tried::Refused => return None,
                Tried::Wait => changed.await,
            }
        }
    }
}

/// Held by a connection until this is dropped or [`Place::closed`] is called.
pub struct Place {
    places: Arc<Places>,
    entry: Arc<Entry>,
}

impl Place {
    /// The client has authenticated.
    pub fn authenticated(&self) {
        // Only the first authenticated request of a connection goes further.
        if self.entry.is(Standing::Stranger) {
            self.places.authenticated(&self.entry);
        }
    }

    pub fn is_authenticated(&self) -> bool {
        !self.entry.is(Standing::Stranger)
    }

    /// Sets whether the connection is busy rather than waiting for its client.
    pub fn works(&self, works: bool) {
        self.entry.works.store(works, Ordering::Relaxed);
    }

    /// Returns when the place was taken away: the connection must be closed soon. For one waiter.
    pub async fn taken_away(&self) {
        self.entry.told_to_go.notified().await;
    }

    /// The connection has closed, though a request may still be running.
    pub fn closed(&self) {
        self.places.gone(&self.entry);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.gone(&self.entry);
    }
}

#[cfg(test)]
mod tests;
