//! Connections with their prepared statements, a bounded number of them, lent and taken back.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::{Client, Config, NoTls};

use super::fault;
use super::schema::{PREPARE_SESSION, Statements};
use crate::engine::Fault;

pub struct Sessions {
    configuration: Config,
    wait_max: Duration,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
    runtime: Handle,
}

struct Session {
    client: Client,
    statements: Statements,
}

/// Connects, and serves the connection until its client is dropped.
pub async fn connect(configuration: &Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = configuration.connect(NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL has ended");
        }
    });
    Ok(client)
}

impl Sessions {
    pub fn new(configuration: &Config, sessions_max: usize, wait_max: Duration) -> Arc<Self> {
        Arc::new(Self {
            configuration: configuration.clone(),
            wait_max,
            free: Arc::new(Semaphore::new(sessions_max)),
            idle: Mutex::new(Vec::new()),
            runtime: Handle::current(),
        })
    }

    pub async fn take(self: &Arc<Self>) -> Result<LentSession, Fault> {
        let permit = tokio::time::timeout(self.wait_max, Arc::clone(&self.free).acquire_owned())
            .await
            .map_err(|elapsed| Fault::because("no connection to PostgreSQL became free", elapsed))?
            .map_err(|closed| Fault::because("the connections are closed", closed))?;
        let session = match self.take_idle() {
            Some(session) => session,
            None => self.connect().await?,
        };
        Ok(LentSession {
            lent: Some((session, permit)),
            sessions: Arc::clone(self),
            in_transaction: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        })
    }

    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle.lock();
        while let Some(session) = idle.pop() {
            if !session.client.is_closed() {
                return Some(session);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Session, Fault> {
        let what = "PostgreSQL could not be reached";
        let work = async {
            let client = connect(&self.configuration).await?;
            client.batch_execute(PREPARE_SESSION).await?;
            let statements = Statements::prepare(&client).await?;
            Ok(Session { client, statements })
        };
        tokio::time::timeout(self.wait_max, work)
            .await
            .map_err(|elapsed| Fault::because(what, elapsed))?
            .map_err(|error| fault(what, error))
    }
}

/// A session until it is dropped. A transaction left open is rolled back before anyone else gets
/// the session, also when the work on it was cancelled halfway.
pub struct LentSession {
    lent: Option<(Session, OwnedSemaphorePermit)>,
    sessions: Arc<Sessions>,
    in_transaction: AtomicBool,
    abandoned: AtomicBool,
}

/// Why an answer did not come, or was an error.
pub enum Unanswered {
    Failed(tokio_postgres::Error),
    TimedOut(tokio::time::error::Elapsed),
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Failed(error) => fault("PostgreSQL failed", error),
            Unanswered::TimedOut(elapsed) => {
                Fault::because("PostgreSQL did not answer in time", elapsed)
            }
        }
    }
}

impl LentSession {
    fn session(&self) -> &Session {
        let (session, _) = self.lent.as_ref().expect("a session is taken back only when dropped");
        session
    }

    pub fn client(&self) -> &Client {
        &self.session().client
    }

    pub fn statements(&self) -> &Statements {
        &self.session().statements
    }

    /// To be called before `BEGIN` is sent, and again once the transaction has ended.
    pub fn set_in_transaction(&self, in_transaction: bool) {
        self.in_transaction.store(in_transaction, Ordering::Relaxed);
    }

    /// Waits for an answer as long as the options allow. After a missed one the session is not used
    /// again.
    pub async fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Unanswered> {
        match tokio::time::timeout(self.sessions.wait_max, answer).await {
            Ok(answer) => answer.map_err(Unanswered::Failed),
            Err(elapsed) => {
                self.abandoned.store(true, Ordering::Relaxed);
                Err(Unanswered::TimedOut(elapsed))
            }
        }
    }
}

impl Drop for LentSession {
    fn drop(&mut self) {
        let Some((session, permit)) = self.lent.take() else { return };
        if *self.abandoned.get_mut() || session.client.is_closed() {
            return;
        }
        if !*self.in_transaction.get_mut() {
            self.sessions.idle.lock().push(session);
            return;
        }
        let sessions = Arc::clone(&self.sessions);
        self.sessions.runtime.spawn(async move {
            let rollback = session.client.batch_execute("ROLLBACK");
            if let Ok(Ok(())) = tokio::time::timeout(sessions.wait_max, rollback).await {
                sessions.idle.lock().push(session);
            }
            drop(permit);
        });
    }
}
