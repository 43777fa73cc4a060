//! An engine on which commits become durable only when the test says so.

use async_trait::async_trait;
use holdfast_store::engine::EngineStatistics;
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{Batch, CommitError, Engine, Fault, Moment, Placed, Snapshot, Write};
use holdfast_sync::oneshot;
use parking_lot::Mutex;

/// What is placed and what is durable are engines of their own. Both see the same batches in the same
/// order, so a moment of one is the same moment of the other.
#[derive(Default)]
pub struct HeldEngine {
    placed: MemoryEngine,
    durable: MemoryEngine,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    batches: Vec<Vec<Write>>,
    callers: Vec<oneshot::Sender<Result<(), CommitError>>>,
}

fn lost() -> Fault {
    Fault::new("the log could not be written")
}

impl HeldEngine {
    /// Batches that are placed and not durable.
    pub fn waiting(&self) -> usize {
        self.held.lock().batches.len()
    }

    pub async fn make_durable(&self) {
        let Held { batches, callers } = std::mem::take(&mut *self.held.lock());
        for writes in batches {
            let mut batch = Batch::blind();
            for write in writes {
                match write {
                    Write::Put { key, value } => batch.put(key, value),
                    Write::Delete { key } => batch.delete(key),
                };
            }
            self.durable.commit(batch).await.expect("a blind batch has no conflict");
        }
        callers.into_iter().for_each(|caller| drop(caller.send(Ok(()))));
    }

    pub fn lose(&self) {
        let Held { callers, .. } = std::mem::take(&mut *self.held.lock());
        for caller in callers {
            drop(caller.send(Err(CommitError::OutcomeUnknown(lost()))));
        }
    }

    fn wait(&self) -> Placed {
        let (caller, outcome) = oneshot::channel();
        self.held.lock().callers.push(caller);
        Placed::awaiting(outcome)
    }
}

#[async_trait]
impl Engine for HeldEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        self.durable.snapshot().await
    }

    async fn placed_snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        self.placed.snapshot().await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.place(batch).await?.durable().await
    }

    async fn place(&self, batch: Batch) -> Result<Placed, CommitError> {
        let writes = batch.writes().to_vec();
        self.placed.commit(batch).await?;
        self.held.lock().batches.push(writes);
        Ok(self.wait())
    }

    async fn settled(&self, _moment: &Moment) -> Result<(), Fault> {
        if self.waiting() == 0 {
            return Ok(());
        }
        self.wait().durable().await.map_err(|_| lost())
    }

    fn poisoned(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> EngineStatistics {
        self.placed.statistics()
    }
}
