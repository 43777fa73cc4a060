//! The requests of a connection that are not answered yet: to cancel them, and to send
//! STATUS_PENDING.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// One running request.
#[derive(Debug)]
pub struct Ticket {
    pub message_id: u64,
    /// Its id after it was answered as pending.
    pub async_id: u64,
    pub session_id: u64,
    cancelled: Signal,
    pending: Signal,
}

impl Ticket {
    /// Waits until the client, or the end of its connection, cancels the request.
    pub async fn cancelled(&self) {
        self.cancelled.wait().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_raised()
    }

    /// Sends STATUS_PENDING. Commands call it before they wait for other clients.
    pub fn tell_pending(&self) {
        self.pending.raise();
    }

    pub async fn told_pending(&self) {
        self.pending.wait().await;
    }
}

/// A signal that is raised once, for current and later waiters.
#[derive(Debug, Default)]
struct Signal {
    is_raised: AtomicBool,
    waiting: Notify,
}

impl Signal {
    fn raise(&self) {
        self.is_raised.store(true, Ordering::Release);
        self.waiting.notify_waiters();
    }

    fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }

    async fn wait(&self) {
        loop {
            // Before the check, so that a signal in between is not missed.
            let raised = self.waiting.notified();
            if self.is_raised() {
                return;
            }
            raised.await;
        }
    }
}

#[derive(Debug, Default)]
pub struct Requests {
    tickets: Mutex<HashMap<u64, Arc<Ticket>>>,
    async_ids: AtomicU64,
}

impl Requests {
    pub fn begin(&self, message_id: u64, session_id: u64) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket {
            message_id,
            async_id: self.async_ids.fetch_add(1, Ordering::Relaxed) + 1,
            session_id,
            cancelled: Signal::default(),
            pending: Signal::default(),
        });
        self.tickets.lock().insert(message_id, Arc::clone(&ticket));
        ticket
    }

    pub fn end(&self, ticket: &Ticket) {
        self.tickets.lock().remove(&ticket.message_id);
    }

    pub fn cancel_message(&self, message_id: u64) {
        if let Some(ticket) = self.tickets.lock().get(&message_id) {
            ticket.cancelled.raise();
        }
    }

    pub fn cancel_async(&self, async_id: u64) {
        let tickets = self.tickets.lock();
        if let Some(ticket) = tickets.values().find(|ticket| ticket.async_id == async_id) {
            ticket.cancelled.raise();
        }
    }

    pub fn cancel_session(&self, session_id: u64) {
        let tickets = self.tickets.lock();
        for ticket in tickets.values().filter(|ticket| ticket.session_id == session_id) {
            ticket.cancelled.raise();
        }
    }

    pub fn cancel_all(&self) {
        self.tickets.lock().values().for_each(|ticket| ticket.cancelled.raise());
    }
}
