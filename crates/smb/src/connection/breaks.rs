//! Sends breaks of oplocks and leases to clients.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use holdfast_domain::share::opens::{CachingEvent, LeaseKey, LeaseVersion};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Connection;
use crate::commands::create::level_to_wire;
use crate::session::Session;
use crate::wire::FileId;
use crate::wire::oplock_break::{LeaseBreak, Notification};

/// The events of the domain for the client of a connection.
pub struct Breaks {
    sender: mpsc::UnboundedSender<CachingEvent>,
    waiting: Mutex<Waiting>,
    /// Held while one is sent: after waiting for it all earlier ones are sent.
    telling: tokio::sync::Mutex<()>,
}

struct Waiting {
    receiver: mpsc::UnboundedReceiver<CachingEvent>,
    received: VecDeque<CachingEvent>,
}

impl Default for Breaks {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Mutex::new(Waiting { receiver, received: VecDeque::new() });
        Self { sender, waiting, telling: tokio::sync::Mutex::default() }
    }
}

impl Breaks {
    pub fn sender(&self) -> mpsc::UnboundedSender<CachingEvent> {
        self.sender.clone()
    }

    fn next(&self) -> Option<CachingEvent> {
        let mut waiting = self.waiting.lock();
        waiting.received.pop_front().or_else(|| waiting.receiver.try_recv().ok())
    }

    fn poll_arrival(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting.lock();
        match waiting.receiver.poll_recv(context) {
            Poll::Ready(Some(event)) => {
                waiting.received.push_back(event);
                Poll::Ready(())
            }
            // This struct holds a sender, too, so the channel never ends.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// Sends breaks until it is dropped.
pub async fn tell_all(connection: &Arc<Connection>) {
    loop {
        poll_fn(|context| connection.breaks.poll_arrival(context)).await;
        tell(connection).await;
    }
}

/// Sends all pending breaks. After that, no earlier one is unsent.
pub async fn tell(connection: &Arc<Connection>) {
    let _telling = connection.breaks.telling.lock().await;
    while let Some(event) = connection.breaks.next() {
        let (session, notification) = match event {
            CachingEvent::OplockBreak { handle, level, .. } => {
                let file_id = FileId { persistent: handle, volatile: handle };
                let level = level_to_wire(level);
                (session_of(connection, file_id), Notification::Oplock { level, file_id })
            }
            CachingEvent::LeaseBreak { key: LeaseKey(key), notice, version } => {
                let lease = LeaseBreak {
                    epoch: match version {
                        LeaseVersion::One => 0,
                        LeaseVersion::Two => notice.epoch,
                    },
                    acknowledge_required: notice.must_acknowledge,
                    key: key.to_le_bytes(),
                    current_state: notice.from.bits(),
                    new_state: notice.to.bits(),
                };
                let session = connection.established_sessions().into_iter().next();
                (session, Notification::Lease(lease))
            }
        };
        if let Some(session) = session {
            connection.notify(&session, &notification).await;
        }
    }
}

/// The session of the open, or any: it only decides whether the message is encrypted.
fn session_of(connection: &Connection, file_id: FileId) -> Option<Arc<Session>> {
    let mut sessions = connection.established_sessions();
    let index = sessions.iter().position(|session| session.opens.get(file_id).is_some());
    (!sessions.is_empty()).then(|| sessions.swap_remove(index.unwrap_or(0)))
}
