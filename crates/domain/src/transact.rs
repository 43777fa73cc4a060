//! Read, decide, commit: the one way in which anything is changed.

use std::future::Future;

use bytes::Bytes;
use holdfast_store::{
    Batch, CommitError, Engine, Fault, KeyRange, Moment, Order, Placed, Row, Snapshot,
};

use crate::content::{References, Released};
use crate::failure::Failure;
use crate::latch::Latches;
use crate::time::Timestamp;

/// With the latch held, a conflict comes only from rows the operation shares with others (its
/// container, an extent), so a few attempts are plenty; more would hide a livelock.
const ATTEMPTS_MAX: usize = 16;

/// What an operation reads and wants to write. Everything it reads becomes an expectation of the
/// commit, so a decision can never be applied to a state it was not made for.
pub struct Transaction {
    snapshot: Box<dyn Snapshot>,
    batch: Batch,
    pub(crate) references: References,
    /// For state that changes with time, such as a blob that expires.
    pub(crate) now: Timestamp,
    awaiting_outcome: AwaitingOutcome,
}

/// State in memory that is updated after a commit. If it is dropped without a call, nothing was
/// committed.
pub(crate) trait AwaitsOutcome: Send {
    fn committed(self: Box<Self>);

    /// It may have been committed or not.
    fn unknown(self: Box<Self>);
}

type AwaitingOutcome = Vec<Box<dyn AwaitsOutcome>>;

impl Transaction {
    /// On the newest durable state.
    pub async fn begin(engine: &dyn Engine) -> Result<Self, Fault> {
        Ok(Self::on(engine.snapshot().await?))
    }

    fn on(snapshot: Box<dyn Snapshot>) -> Self {
        let batch = Batch::since(snapshot.moment());
        let now = Timestamp::default();
        let (references, awaiting_outcome) = (References::default(), Vec::new());
        Self { snapshot, batch, references, now, awaiting_outcome }
    }

    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// For reading rows that change only together with a row that the transaction has read.
    pub fn snapshot(&self) -> &dyn Snapshot {
        &*self.snapshot
    }

    /// Adds an expectation for a row that is read from the snapshot.
    pub fn expect(&mut self, key: Bytes) {
        self.batch.expect_row(key);
    }

    /// Adds an expectation for a range that is read from the snapshot.
    pub fn expect_range(&mut self, range: KeyRange) {
        self.batch.expect_range(range);
    }

    pub async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, Fault> {
        self.batch.expect_row(key.clone());
        self.snapshot.get(key).await
    }

    pub async fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Row>, Fault> {
        self.batch.expect_range(range.clone());
        self.snapshot.scan(range, Order::Ascending, limit).await
    }

    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.batch.put(key, value);
    }

    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.batch.delete(key);
    }

    /// For removals that do not delete a row at once.
    pub fn even_without_room(&mut self) {
        self.batch.even_without_room();
    }

    pub(crate) fn tell_outcome(&mut self, to: impl AwaitsOutcome + 'static) {
        self.awaiting_outcome.push(Box::new(to));
    }

    /// Places the writes in the order of commits; they become durable later.
    async fn place(mut self, engine: &dyn Engine) -> Result<PlacedTransaction, CommitError> {
        let released = self.references.settle(&*self.snapshot, &mut self.batch).await;
        let released = released.map_err(CommitError::Fault)?;
        let rests_on = self.snapshot.moment();
        // The snapshot goes first: holding it during the sync would only keep old rows alive.
        drop(self.snapshot);
        let awaiting_outcome = self.awaiting_outcome;
        if self.batch.writes().is_empty() {
            let awaited = Awaited::Basis(rests_on);
            return Ok(PlacedTransaction { awaited, released, awaiting_outcome });
        }
        match engine.place(self.batch).await {
            Ok(placed) => {
                let awaited = Awaited::Batch(placed);
                Ok(PlacedTransaction { awaited, released, awaiting_outcome })
            }
            Err(error) => {
                tell_of_failure(&error, awaiting_outcome);
                Err(error)
            }
        }
    }

    async fn commit(self, engine: &dyn Engine) -> Result<Released, CommitError> {
        self.place(engine).await?.durable(engine).await
    }
}

/// A transaction whose writes have their place among the commits.
struct PlacedTransaction {
    awaited: Awaited,
    released: Released,
    awaiting_outcome: AwaitingOutcome,
}

/// What has to be durable before the answer.
enum Awaited {
    Batch(Placed),
    /// Nothing is written; what was read has to be durable.
    Basis(Moment),
}

impl PlacedTransaction {
    async fn durable(self, engine: &dyn Engine) -> Result<Released, CommitError> {
        let durable = match self.awaited {
            Awaited::Batch(placed) => placed.durable().await,
            Awaited::Basis(moment) => engine.settled(&moment).await.map_err(CommitError::Fault),
        };
        match durable {
            Ok(()) => {
                self.awaiting_outcome.into_iter().for_each(AwaitsOutcome::committed);
                Ok(self.released)
            }
            Err(error) => {
                tell_of_failure(&error, self.awaiting_outcome);
                Err(error)
            }
        }
    }
}

fn tell_of_failure(error: &CommitError, awaiting_outcome: AwaitingOutcome) {
    if matches!(error, CommitError::OutcomeUnknown(_)) {
        awaiting_outcome.into_iter().for_each(AwaitsOutcome::unknown);
    }
}

/// Runs `attempt` on fresh snapshots until its writes commit, it is refused, or the attempts are
/// used up. `latched` names the objects it changes: no other writer has a turn on them until the
/// writes are durable, so that updates in memory happen in the same order. Returns the result and
/// the extents to free.
pub async fn transact<T, R, F>(
    engine: &dyn Engine,
    latches: &Latches,
    latched: &[Bytes],
    mut attempt: impl FnMut(Transaction) -> F,
) -> Result<(T, Released), Failure<R>>
where
    F: Future<Output = Result<(T, Transaction), Failure<R>>>,
{
    let _turn = latches.acquire(latched).await;
    for _ in 0..ATTEMPTS_MAX {
        let transaction = Transaction::begin(engine).await?;
        let (outcome, transaction) = attempt(transaction).await?;
        match transaction.commit(engine).await {
            Ok(released) => return Ok((outcome, released)),
            // The conflicting commit may not be durable yet, and is not seen before it is.
            Err(CommitError::Conflict) => {
                let newest = engine.placed_snapshot().await?.moment();
                engine.settled(&newest).await?;
            }
            Err(other) => return Err(other.into()),
        }
    }
    Err(Failure::Busy)
}

/// As [`transact`], but the next writer has its turn as soon as the writes are placed. So any number
/// of changes of one object share a sync. Every answer waits until everything it rests on is durable;
/// a refusal that rests on durable state does not wait.
pub async fn transact_pipelined<T, R, F>(
    engine: &dyn Engine,
    latches: &Latches,
    latched: &[Bytes],
    mut attempt: impl FnMut(Transaction) -> F,
) -> Result<(T, Released), Failure<R>>
where
    F: Future<Output = Result<(T, Transaction), Failure<R>>>,
{
    let turn = match latches.try_acquire(latched) {
        Some(turn) => turn,
        None => {
            let on_durable = attempt(Transaction::begin(engine).await?).await;
            if let Err(Failure::Refused(refusal)) = on_durable {
                return Err(Failure::Refused(refusal));
            }
            latches.acquire(latched).await
        }
    };
    for _ in 0..ATTEMPTS_MAX {
        let transaction = Transaction::on(engine.placed_snapshot().await?);
        let rests_on = transaction.snapshot.moment();
        let (outcome, transaction) = match attempt(transaction).await {
            Ok(decided) => decided,
            Err(Failure::Refused(refusal)) => {
                drop(turn);
                return Err(Failure::Refused(
                    durable_refusal(engine, refusal, &rests_on, &mut attempt).await?,
                ));
            }
            Err(other) => return Err(other),
        };
        match transaction.place(engine).await {
            Ok(placed) => {
                drop(turn);
                return Ok((outcome, placed.durable(engine).await?));
            }
            Err(CommitError::Conflict) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Failure::Busy)
}

/// A refusal that can be answered: durable state leads to a refusal, too, or now includes what this one
/// rests on.
async fn durable_refusal<T, R, F>(
    engine: &dyn Engine,
    refusal: R,
    rests_on: &Moment,
    attempt: &mut impl FnMut(Transaction) -> F,
) -> Result<R, Fault>
where
    F: Future<Output = Result<(T, Transaction), Failure<R>>>,
{
    let durable = Transaction::begin(engine).await?;
    if durable.snapshot.moment() == *rests_on {
        return Ok(refusal);
    }
    if let Err(Failure::Refused(durable)) = attempt(durable).await {
        return Ok(durable);
    }
    engine.settled(rests_on).await.map(|()| refusal)
}

#[cfg(test)]
mod tests;
