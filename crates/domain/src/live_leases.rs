//! How many leases are held, for the metrics. Kept in memory only: a lease that was
//! granted by an earlier run is counted once this one has changed it.

use std::collections::HashMap;

use bytes::Bytes;
use holdfast_sync::Mutex;

use crate::lease::{Lease, LeaseStatus};
use crate::time::Timestamp;

/// Ended leases are looked for when there are twice as many as were held at the last look.
const ENTRIES_BEFORE_FIRST_LOOK: usize = 1024;

pub(crate) struct LiveLeases {
    held: Mutex<Held>,
}

struct Held {
    leases: HashMap<Bytes, Lease>,
    look_at: usize,
}

impl Default for LiveLeases {
    fn default() -> Self {
        let look_at = ENTRIES_BEFORE_FIRST_LOOK;
        Self { held: Mutex::new(Held { leases: HashMap::new(), look_at }) }
    }
}

impl LiveLeases {
    /// The resource with this key was committed with this lease.
    pub fn note(&self, key: Bytes, lease: &Lease, now: Timestamp) {
        let mut held = self.held.lock();
        match lease.status(now) {
            LeaseStatus::Unlocked => drop(held.leases.remove(&key)),
            LeaseStatus::Locked => drop(held.leases.insert(key, lease.clone())),
        }
        if held.leases.len() >= held.look_at {
            held.count(now);
        }
    }

    /// The resource with this key was deleted.
    pub fn forget(&self, key: &Bytes) {
        self.held.lock().leases.remove(key);
    }

    pub fn count(&self, now: Timestamp) -> u64 {
        self.held.lock().count(now)
    }
}

impl Held {
    fn count(&mut self, now: Timestamp) -> u64 {
        self.leases.retain(|_, lease| lease.status(now) == LeaseStatus::Locked);
        self.look_at = (self.leases.len() * 2).max(ENTRIES_BEFORE_FIRST_LOOK);
        self.leases.len() as u64
    }
}
