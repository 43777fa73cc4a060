//! Rows in one PostgreSQL table, for several processes over one database.
//!
//! A snapshot is an open `REPEATABLE READ READ ONLY` transaction; its [`Moment`] is what
//! `pg_current_snapshot()` said inside it. Each row carries the transaction that wrote it last, so
//! a commit finds out whether anything it relied on changed by asking for a row whose writer the
//! moment could not see. A deletion keeps its row, without a value, until
//! [`PostgresEngine::sweep_deletions`] removes it and moves the horizon: moments before the horizon
//! can no longer tell, and conflict.
//!
//! Commits are `SERIALIZABLE`, which settles what two commits in flight cannot see of each other.
//! Snapshots stand outside of that, so that no read ever fails for it. The price: while commit A,
//! which relied on a row that it did not write, is in flight, commit B may change that row and be
//! acknowledged; a snapshot taken then sees B but not A, though A was decided without B. Commits
//! among themselves are strictly serializable.
//!
//! The rows name transactions of their database cluster, so a table restored from a dump into
//! another cluster is refused at [`PostgresEngine::open`].

mod commit;
mod schema;
mod sessions;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::engine::{Batch, CommitError, Engine, EngineStatistics, Fault, Moment, Snapshot};
use commit::{Attempt, Parameters};
use sessions::Sessions;
use snapshot::PostgresSnapshot;

/// A commit that lost to another one in flight is tried again, this many times in all: its
/// expectations are still checked against its own moment, so a real conflict shows as such. Most
/// losses are between neighbours in the index that did not touch each other's rows.
const ATTEMPTS_MAX: usize = 8;

/// Blind batches can lose only to others that write the same rows, one of which wins each time.
const BLIND_ATTEMPTS_MAX: usize = 128;

/// Deletions removed by one statement, so that a sweep never holds many locks.
const SWEEP_ROWS_MAX: i64 = 1000;

#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Connections that hold snapshots, and so how many snapshots can be held.
    pub snapshots_max: usize,
    /// Connections that commit. They are apart from the snapshots' so that holding a snapshot while
    /// committing can never wait for itself.
    pub commits_max: usize,
    /// How long to wait for a free connection, and then for each answer of the server.
    pub wait_max: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { snapshots_max: 32, commits_max: 16, wait_max: Duration::from_secs(10) }
    }
}

pub struct PostgresEngine {
    snapshots: Arc<Sessions>,
    commits: Arc<Sessions>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    conflicts: AtomicU64,
    rows: AtomicU64,
}

impl PostgresEngine {
    /// Opens the store that a connection string (`host=… dbname=…` or `postgresql://…`) leads to,
    /// and creates its tables, in the first schema of the search path, if they are not there.
    ///
    /// Must be called within a tokio runtime; that runtime then serves the connections.
    pub async fn open(connection: &str, options: PostgresOptions) -> Result<Self, Fault> {
        let mut configuration: tokio_postgres::Config = connection
            .parse()
            .map_err(|error| fault("the PostgreSQL connection string is not valid", error))?;
        configuration.connect_timeout(options.wait_max);
        configuration.application_name("holdfast");
        schema::create(&configuration, options.wait_max).await?;
        let engine = Self {
            snapshots: Sessions::new(&configuration, options.snapshots_max, options.wait_max),
            commits: Sessions::new(&configuration, options.commits_max, options.wait_max),
            counters: Counters::default(),
        };
        engine.estimate_rows().await?;
        Ok(engine)
    }

    /// Removes what is left of the rows deleted before `before`, and returns how many there were.
    /// From then on a batch decided on a moment that may precede one of those deletions conflicts;
    /// so `before` should be older than any decision still under way.
    pub async fn sweep_deletions(&self, before: &Moment) -> Result<u64, Fault> {
        let text = text_of(before)?;
        let session = self.commits.take().await?;
        // Before the first deletion goes: a commit that misses a deletion must see the horizon.
        session.wait(session.client().execute(schema::RAISE_HORIZON, &[&text])).await?;
        let mut swept_total = 0;
        loop {
            let sweep = session.client().query_one(schema::SWEEP, &[&SWEEP_ROWS_MAX]);
            let swept: i64 = session.wait(sweep).await?.get(0);
            swept_total += swept.unsigned_abs();
            if swept < SWEEP_ROWS_MAX {
                break;
            }
        }
        drop(session);
        self.estimate_rows().await?;
        Ok(swept_total)
    }

    async fn estimate_rows(&self) -> Result<(), Fault> {
        let session = self.commits.take().await?;
        let row = session.wait(session.client().query_one(schema::ESTIMATE_ROWS, &[])).await?;
        self.counters.rows.store(row.get::<_, i64>(0).unsigned_abs(), Ordering::Relaxed);
        Ok(())
    }

    async fn try_commit(&self, batch: &Batch) -> Result<Attempt, CommitError> {
        let parameters = Parameters::of(batch).map_err(CommitError::Fault)?;
        let attempts_max = match &batch.since {
            Some(_) => ATTEMPTS_MAX,
            None => BLIND_ATTEMPTS_MAX,
        };
        for _ in 0..attempts_max {
            let mut session = self.commits.take().await.map_err(CommitError::Fault)?;
            match commit::attempt(&mut session, &parameters).await? {
                Attempt::Lost => {}
                settled @ (Attempt::Committed | Attempt::Changed) => return Ok(settled),
            }
        }
        Ok(Attempt::Lost)
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        Ok(Box::new(PostgresSnapshot::begin(self.snapshots.take().await?).await?))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        match self.try_commit(&batch).await? {
            Attempt::Committed => {
                self.counters.commits.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Attempt::Changed | Attempt::Lost => {
                self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
                Err(CommitError::Conflict)
            }
        }
    }

    /// Never: a failure affects one connection, and the server is responsible for its own disk.
    fn poisoned(&self) -> Option<Fault> {
        None
    }

    /// Syncs are the server's and not counted; rows are its estimate at the last open or sweep.
    fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            commits: self.counters.commits.load(Ordering::Relaxed),
            conflicts: self.counters.conflicts.load(Ordering::Relaxed),
            syncs: 0,
            rows: self.counters.rows.load(Ordering::Relaxed),
        }
    }
}

fn text_of(moment: &Moment) -> Result<&str, Fault> {
    moment.text.as_deref().ok_or_else(|| Fault::new("the moment is another engine's"))
}

/// The server's own message is the reason, where there is one: the client library's says nothing
/// more.
fn fault(what: &'static str, error: tokio_postgres::Error) -> Fault {
    match error.as_db_error() {
        Some(answer) => Fault::because(what, answer.clone()),
        None => Fault::because(what, error),
    }
}
