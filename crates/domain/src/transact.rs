//! Read, decide, commit: the one way in which anything is changed.

use std::future::Future;

use bytes::Bytes;
use holdfast_store::{Batch, CommitError, Engine, Fault, KeyRange, Order, Row, Snapshot};

use crate::content::{References, Released};
use crate::failure::Failure;
use crate::latch::Latches;
use crate::share::UsageChange;
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
    /// For what becomes something else by itself, such as a blob that expires.
    pub(crate) now: Timestamp,
    /// What is told whether it was committed.
    usage: Vec<UsageChange>,
}

impl Transaction {
    pub async fn begin(engine: &dyn Engine) -> Result<Self, Fault> {
        let snapshot = engine.snapshot().await?;
        let batch = Batch::since(snapshot.moment());
        let now = Timestamp::default();
        let (references, usage) = (References::default(), Vec::new());
        Ok(Self { snapshot, batch, references, now, usage })
    }

    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// For rows that change only together with a row that has been read through the transaction.
    pub fn snapshot(&self) -> &dyn Snapshot {
        &*self.snapshot
    }

    /// As reading the row does, for a row that is read from the snapshot.
    pub fn expect(&mut self, key: Bytes) {
        self.batch.expect_row(key);
    }

    /// As scanning the range does, for rows that are read from the snapshot.
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

    /// For what removes things without deleting a row at once.
    pub fn even_without_room(&mut self) {
        self.batch.even_without_room();
    }

    pub(crate) fn note_usage(&mut self, change: UsageChange) {
        self.usage.push(change);
    }

    async fn commit(mut self, engine: &dyn Engine) -> Result<Released, CommitError> {
        let released = self.references.settle(&*self.snapshot, &mut self.batch).await;
        let released = released.map_err(CommitError::Fault)?;
        // The snapshot goes first: holding it during the sync would only keep old rows alive.
        drop(self.snapshot);
        if !self.batch.writes().is_empty()
            && let Err(error) = engine.commit(self.batch).await
        {
            if matches!(error, CommitError::OutcomeUnknown(_)) {
                self.usage.into_iter().for_each(UsageChange::unknown);
            }
            return Err(error);
        }
        self.usage.into_iter().for_each(UsageChange::committed);
        Ok(released)
    }
}

/// Runs `attempt` on fresh snapshots until its writes commit, it is refused, or the attempts are
/// used up. `latched` names the objects it changes. The result comes with what to free.
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
            Err(CommitError::Conflict) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Failure::Busy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use holdfast_store::memory::MemoryEngine;

    use super::*;

    fn counter(value: Option<Bytes>) -> u64 {
        value.map_or(0, |bytes| u64::from_be_bytes(bytes.as_ref().try_into().expect("8 bytes")))
    }

    async fn increment(engine: &dyn Engine, latches: &Latches, latched: &[Bytes]) -> u64 {
        let key = Bytes::from_static(b"counter");
        let incremented: Result<(u64, Released), Failure<()>> =
            transact(engine, latches, latched, async |mut transaction: Transaction| {
                let next = counter(transaction.get(&key).await?) + 1;
                transaction.put(key.clone(), next.to_be_bytes().to_vec());
                // Lets others commit between the read and the commit of this attempt.
                tokio::task::yield_now().await;
                Ok((next, transaction))
            })
            .await;
        incremented.expect("the counter is incremented").0
    }

    #[tokio::test]
    async fn concurrent_increments_under_one_latch_lose_nothing() {
        let (engine, latches) = (Arc::new(MemoryEngine::default()), Arc::new(Latches::default()));
        let tasks = (0..100).map(|_| {
            let (engine, latches) = (Arc::clone(&engine), Arc::clone(&latches));
            tokio::spawn(async move {
                increment(&*engine, &latches, &[Bytes::from_static(b"counter")]).await
            })
        });
        let mut seen: Vec<u64> = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            seen.push(task.await.expect("no panic"));
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn without_a_latch_the_expectations_alone_prevent_a_lost_update() {
        let (engine, latches) = (MemoryEngine::default(), Latches::default());
        let (first, second) =
            tokio::join!(increment(&engine, &latches, &[]), increment(&engine, &latches, &[]));
        assert_eq!(first.max(second), 2, "both increments counted");
        assert_eq!(engine.statistics().conflicts, 1, "one of them had to try again");
    }

    #[tokio::test]
    async fn an_operation_that_never_wins_is_told_so_after_bounded_attempts() {
        let (engine, latches) = (MemoryEngine::default(), Latches::default());
        let attempts = AtomicUsize::new(0);
        let key = Bytes::from_static(b"contended");
        let outcome: Result<((), Released), Failure<()>> =
            transact(&engine, &latches, &[], async |mut transaction: Transaction| {
                attempts.fetch_add(1, Ordering::Relaxed);
                transaction.get(&key).await?;
                transaction.put(key.clone(), "mine");
                let mut other = Batch::blind();
                other.put(key.clone(), "theirs");
                engine.commit(other).await.expect("blind writes always commit");
                Ok(((), transaction))
            })
            .await;
        assert!(matches!(outcome, Err(Failure::Busy)), "{outcome:?}");
        assert_eq!(attempts.load(Ordering::Relaxed), ATTEMPTS_MAX);
    }

    #[tokio::test]
    async fn a_refusal_commits_nothing() {
        let (engine, latches) = (MemoryEngine::default(), Latches::default());
        let outcome: Result<((), Released), Failure<&str>> =
            transact(&engine, &latches, &[], async |mut transaction: Transaction| {
                transaction.put("key", "value");
                Err(Failure::Refused("no"))
            })
            .await;
        assert!(matches!(outcome, Err(Failure::Refused("no"))));
        assert_eq!(engine.statistics().commits, 0);
    }
}
