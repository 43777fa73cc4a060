//! Shares that clients are connected to, and the end of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::registry::Opens;

/// A share as long as somebody is connected to it.
#[derive(Debug)]
pub struct ConnectedShare {
    /// No other share has or had it.
    pub number: u64,
    is_deleted: AtomicBool,
}

impl ConnectedShare {
    /// Nothing is done over a connection to a share that was deleted, even if another has its name.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }
}

impl Opens {
    /// Clients connected to a share are told when it is deleted.
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

    /// The share is deleted: its connections are of no use any more, and what was opened over them
    /// is closed.
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
