//! What all connections share: the domain, the settings, and who is logged on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use holdfast_domain::Domain;
use parking_lot::Mutex;

use crate::connection::{Connection, Ending, ProcessAnswerMemory, ProcessRequestMemory};
use crate::session::Session;
use crate::settings::Settings;
use crate::status::Status;
use crate::wire::Command;

pub struct Frontend {
    pub domain: Arc<Domain>,
    pub settings: Settings,
    pub guid: [u8; 16],
    pub(crate) answer_memory: Arc<ProcessAnswerMemory>,
    pub(crate) request_memory: Arc<ProcessRequestMemory>,
    sessions: Mutex<HashMap<u64, LoggedOn>>,
    session_ids: AtomicU64,
    open_ids: AtomicU64,
    connection_ids: AtomicU64,
    observer: Arc<dyn Observer>,
}

/// Counts connections and answers.
pub trait Observer: Send + Sync + 'static {
    /// A connection is open until the answer is dropped.
    fn connection_opened(&self) -> Box<dyn Send + '_>;
    fn answered(&self, answered: Answered);
}

#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub command: Command,
    pub status: Status,
    pub duration: Duration,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

struct LoggedOn {
    session: Weak<Session>,
    connection: Weak<Connection>,
}

impl Frontend {
    pub fn new(domain: Arc<Domain>, settings: Settings, observer: Arc<dyn Observer>) -> Self {
        Self {
            domain,
            guid: random(),
            answer_memory: Arc::default(),
            request_memory: Arc::default(),
            settings,
            sessions: Mutex::default(),
            // Numbers of another run must not be valid in this one. Session ids are short: some
            // clients keep only 32 bits.
            session_ids: AtomicU64::new(u64::from_le_bytes(random()) >> 33),
            open_ids: AtomicU64::new(u64::from_le_bytes(random()) >> 16),
            connection_ids: AtomicU64::new(0),
            observer,
        }
    }

    pub(crate) fn next_connection_id(&self) -> u64 {
        self.connection_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_session_id(&self) -> u64 {
        self.session_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The id of a new open, never reused.
    pub fn next_open_id(&self) -> u64 {
        self.open_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    pub(crate) fn logged_on(&self, session: &Arc<Session>, connection: &Arc<Connection>) {
        connection.place.authenticated();
        // Even an idle connection may have files open.
        connection.place.works(true);
        let session_id = session.id;
        let (session, connection) = (Arc::downgrade(session), Arc::downgrade(connection));
        self.sessions.lock().insert(session_id, LoggedOn { session, connection });
    }

    pub(crate) fn logged_off(&self, session_id: u64) {
        self.sessions.lock().remove(&session_id);
    }

    /// Finds a session on any connection.
    pub(crate) fn session(&self, session_id: u64) -> Option<Arc<Session>> {
        self.sessions.lock().get(&session_id)?.session.upgrade()
    }

    /// Ends a previous session of a client, on any connection.
    pub(crate) async fn end_previous(&self, session_id: u64, account: &str) {
        let found = {
            let sessions = self.sessions.lock();
            let found = sessions.get(&session_id);
            found.and_then(|it| Some((it.session.upgrade()?, it.connection.upgrade()?)))
        };
        let Some((session, connection)) = found else { return };
        let is_own = session.established().is_some_and(|it| &*it.user.account == account);
        if is_own {
            connection.end_session(&session, Ending::Lost).await;
        }
    }
}

pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}
