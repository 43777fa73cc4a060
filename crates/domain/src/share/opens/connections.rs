//! Shares that clients are connected to, and their deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::registry::Opens;

/// A share to which clients are connected.
#[derive(Debug)]
pub struct ConnectedShare {
    /// Unique over all shares there ever were.
    pub number: u64,
    is_deleted: AtomicBool,
}

impl ConnectedShare {
    /// Whether the share was deleted: its connections are invalid then, even if another share has
    /// its name.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }
}

impl Opens {
    /// Registers a connection to a share, which is told when the share is deleted.
    pub(crate) fn connect(&self, number: u64) -> Arc<ConnectedShare> {
        let mut connected = self.connected.lock();
        if let Some(share) = connected.get(&number).and_then(|share| share.upgrade()) {
            return share;
        }
        connected.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(ConnectedShare { number, is_deleted: AtomicBool::new(false) });
        connected.insert(number, Arc::downgrade(&share));
        share
    }

    /// The share is deleted: its connections become invalid, and everything opened over them is
    /// closed.
    pub(crate) fn end_share(&self, number: u64) {
        let connected = self.connected.lock().remove(&number);
        if let Some(share) = connected.and_then(|share| share.upgrade()) {
            share.is_deleted.store(true, Ordering::Release);
        }
        for handle in self.handles_where(|handle| handle.key.share == number) {
            self.close_quietly(&handle);
        }
    }
}
