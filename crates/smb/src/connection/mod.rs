//! A connection: reads messages, runs their commands concurrently, and sends the answers.

mod answer_memory;
mod breaks;
mod chain;
mod credits;
mod framing;
mod incoming;
mod outgoing;
mod request_memory;
mod requests;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use bytes::BytesMut;
use holdfast_places::Place;
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::crypto::PreauthHash;
use crate::dialect::Negotiated;
use crate::frontend::Frontend;
use crate::ipc::Pipes;
use crate::session::Session;
use crate::wire::oplock_break::Notification;
use answer_memory::{ConnectionAnswerMemory, SHORT_ANSWER_BYTES};
use breaks::Breaks;
use credits::Window;
use outgoing::Outgoing;
use request_memory::{ConnectionWork, Working};
use requests::Requests;

pub use answer_memory::ProcessAnswerMemory;
pub use incoming::can_be_split;
pub use outgoing::answers_of;
pub use request_memory::ProcessRequestMemory;
pub use requests::Ticket;

/// The longest message before authentication.
const STRANGER_MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The largest write with its headers, and more requests in the same compound.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024 + 64 * 1024;
const READ_BUFFER_BYTES: usize = 4096;
/// One authentication under way is a few KiB.
const SESSIONS_MAX: usize = 64;
/// As many ranges as the longest read has: these keep the disk busy, and more would only let a later
/// read be answered before an earlier one.
const STRETCHES_AT_ONCE_MAX: usize = 8;

pub struct Connection {
    /// Unique over all connections.
    pub id: u64,
    pub frontend: Arc<Frontend>,
    pub peer: IpAddr,
    pub(crate) place: Place,
    negotiated: OnceLock<Negotiated>,
    /// The hash of the messages up to the first session.
    pub(crate) preauth: Arc<Mutex<PreauthHash>>,
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
    window: Mutex<Window>,
    pub(crate) requests: Requests,
    outgoing: Outgoing,
    /// Breaks to be sent to the client.
    pub(crate) breaks: Breaks,
    pub(crate) pipes: Pipes,
    /// Limits reads from the store, in the order of requests.
    pub(crate) reading: Semaphore,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All its opens are closed.
    LoggedOff,
    /// Its client may reconnect to durable opens.
    Lost,
}

impl Connection {
    /// Serves until either side closes, or `shutdown` turns true and running requests are answered.
    pub async fn serve(
        frontend: &Arc<Frontend>,
        stream: TcpStream,
        peer: IpAddr,
        place: Place,
        shutdown: watch::Receiver<bool>,
    ) {
        let (from_client, to_client) = stream.into_split();
        let connection = Arc::new(Self {
            id: frontend.next_connection_id(),
            frontend: Arc::clone(frontend),
            peer,
            place,
            negotiated: OnceLock::new(),
            preauth: Arc::default(),
            sessions: Mutex::default(),
            window: Mutex::default(),
            requests: Requests::default(),
            outgoing: Outgoing::new(
                to_client,
                frontend.settings.limits.stall_timeout,
                ConnectionAnswerMemory::new(&frontend.answer_memory),
            ),
            breaks: Breaks::default(),
            pipes: Pipes::default(),
            reading: Semaphore::new(STRETCHES_AT_ONCE_MAX),
        });
        let mut at_work = JoinSet::new();
        let told = Arc::clone(&connection);
        let telling = tokio::spawn(async move { breaks::tell_all(&told).await });
        let ended = {
            let mut reading = pin!(connection.read(from_client, &mut at_work, shutdown));
            tokio::select! {
                biased;
                ended = &mut reading => ended,
                () = connection.place.taken_away() => {
                    // A running command is finished: if it were dropped while ending a session, it
                    // would leave opens without an owner.
                    connection.outgoing.give_up();
                    reading.await
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, %peer, "an SMB connection ended");
        }
        connection.requests.cancel_all();
        while at_work.join_next().await.is_some() {}
        connection.end_all_sessions().await;
        telling.abort();
        connection.outgoing.close().await;
    }

    async fn read(
        self: &Arc<Self>,
        stream: OwnedReadHalf,
        at_work: &mut JoinSet<()>,
        mut shutdown: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let limits = &self.frontend.settings.limits;
        let logon_deadline = Instant::now() + limits.logon_timeout;
        let work = ConnectionWork::new(&self.frontend.request_memory);
        // Most messages arrive complete in one read; long ones bypass the buffer.
        let mut stream = BufReader::with_capacity(READ_BUFFER_BYTES, stream);
        loop {
            let is_known = self.has_established_session();
            let length = tokio::select! {
                _ = shutdown.wait_for(|down| *down) => return Ok(()),
                () = self.outgoing.broken() => return Ok(()),
                () = tokio::time::sleep_until(logon_deadline), if !is_known => {
                    // Do not wait for an unauthenticated client to read its answers.
                    self.outgoing.give_up();
                    return Ok(());
                }
                length = framing::read_prefix(&mut stream) => length?,
            };
            let Some(length) = length else { return Ok(()) };
            let length_max = if is_known { MESSAGE_BYTES_MAX } else { STRANGER_MESSAGE_BYTES_MAX };
            if length > length_max {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let room = tokio::select! {
                () = self.outgoing.broken() => return Ok(()),
                room = work.take(length + SHORT_ANSWER_BYTES) => room,
            };
            let message = tokio::select! {
                () = self.outgoing.broken() => return Ok(()),
                () = tokio::time::sleep_until(logon_deadline), if !is_known => {
                    self.outgoing.give_up();
                    return Ok(());
                }
                message = framing::read_message(&mut stream, length, limits.stall_timeout) => message?,
            };
            match self.receive(message, room, at_work).await {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(()) => return Ok(()),
            }
            while at_work.try_join_next().is_some() {}
        }
    }

    async fn receive(
        self: &Arc<Self>,
        message: BytesMut,
        room: Working,
        at_work: &mut JoinSet<()>,
    ) -> ControlFlow<()> {
        if message.starts_with(&incoming::SMB1_PROTOCOL) {
            return chain::answer_smb1(self, &message).await;
        }
        let Ok(batch) = incoming::unpack(self, message) else { return ControlFlow::Break(()) };
        if self.take_credits(&batch).is_err() {
            return ControlFlow::Break(());
        }
        if batch.runs_in_turn() {
            return chain::work(Arc::clone(self), batch).await;
        }
        let connection = Arc::clone(self);
        let batch = chain::begin(self, batch);
        let mut work = Box::pin(async move {
            let flow = chain::work_on(connection.clone(), batch).await;
            if flow.is_break() {
                connection.outgoing.give_up();
            }
            drop(room);
        });
        // Requests begin in the order of arrival; those that are done at once need no task.
        let is_done = poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_ready())).await;
        if !is_done {
            at_work.spawn(work);
        }
        ControlFlow::Continue(())
    }

    fn take_credits(&self, batch: &incoming::Batch) -> Result<(), credits::OutOfWindow> {
        let has_charges =
            self.negotiated().is_some_and(|negotiated| negotiated.dialect.has_large_requests());
        let mut window = self.window.lock();
        for message in batch.messages.iter().filter(|message| !message.is_cancel()) {
            let charge = if has_charges { message.header.credit_charge } else { 1 };
            window.take(message.header.message_id, charge)?;
        }
        Ok(())
    }

    pub(crate) fn grant(&self, asked: u16) -> u16 {
        self.window.lock().grant(asked)
    }

    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Returns false if it was negotiated before.
    pub(crate) fn negotiate(&self, negotiated: Negotiated) -> bool {
        self.negotiated.set(negotiated).is_ok()
    }

    pub fn session(&self, id: u64) -> Option<Arc<Session>> {
        self.sessions.lock().get(&id).cloned()
    }

    /// `None` if there are too many.
    pub(crate) fn new_session(&self) -> Option<Arc<Session>> {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS_MAX {
            return None;
        }
        let id = self.frontend.next_session_id();
        let session = Arc::new(Session::new(id, self.preauth.lock().clone()));
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    fn has_established_session(&self) -> bool {
        self.sessions.lock().values().any(|session| session.established().is_some())
    }

    /// Closes the opens of the session; requests that wait on them get an error, all other waiting
    /// requests are cancelled.
    pub async fn end_session(&self, session: &Arc<Session>, ending: Ending) {
        self.sessions.lock().remove(&session.id);
        self.frontend.logged_off(session.id);
        session.remove_all_trees();
        let opens = session.opens.remove_all();
        match ending {
            Ending::Lost => self.frontend.domain.disconnect_session(session.id).await,
            Ending::LoggedOff => {
                for open in opens {
                    crate::commands::close::close(self, &open).await;
                }
            }
        }
        self.requests.cancel_session(session.id);
    }

    pub(crate) fn established_sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.lock();
        sessions.values().filter(|session| session.established().is_some()).cloned().collect()
    }

    async fn end_all_sessions(&self) {
        let all: Vec<Arc<Session>> = self.sessions.lock().values().cloned().collect();
        for session in all {
            self.end_session(&session, Ending::Lost).await;
        }
    }

    /// Sends a message that is not an answer.
    pub async fn notify(&self, session: &Arc<Session>, notification: &Notification) {
        self.outgoing.send_notification(session, notification).await;
    }
}
