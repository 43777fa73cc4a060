//! An engine that counts rows read and written, and the removed rows that scans skip.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_store::engine::EngineStatistics;
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{
    Batch, CommitError, Engine, Fault, KeyRange, Moment, Order, Row, Snapshot, Write,
};
use parking_lot::Mutex;

#[derive(Default)]
pub struct CountingEngine {
    engine: MemoryEngine,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
    removed: Mutex<BTreeSet<Bytes>>,
    passed_over: AtomicU64,
}

impl CountingEngine {
    /// Rows read and rows written since it was last asked.
    pub fn take(&self) -> (u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        (take(&self.counts.read), take(&self.counts.written))
    }

    /// How many removed rows scans have skipped on a store that never drops them.
    pub fn passed_over(&self) -> u64 {
        self.counts.passed_over.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Engine for CountingEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let snapshot = self.engine.snapshot().await?;
        Ok(Box::new(CountingSnapshot { snapshot, counts: Arc::clone(&self.counts) }))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.counts.written.fetch_add(batch.writes().len() as u64, Ordering::Relaxed);
        for write in batch.writes() {
            let mut removed = self.counts.removed.lock();
            match write {
                Write::Put { key, .. } => drop(removed.remove(key)),
                Write::Delete { key } => drop(removed.insert(key.clone())),
            }
        }
        self.engine.commit(batch).await
    }

    fn poisoned(&self) -> Option<Fault> {
        self.engine.poisoned()
    }

    fn statistics(&self) -> EngineStatistics {
        self.engine.statistics()
    }
}

struct CountingSnapshot {
    snapshot: Box<dyn Snapshot>,
    counts: Arc<Counts>,
}

#[async_trait]
impl Snapshot for CountingSnapshot {
    fn moment(&self) -> Moment {
        self.snapshot.moment()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        self.snapshot.get(key).await
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        let found = self.snapshot.scan(range, order, limit).await?;
        self.counts.read.fetch_add(found.len().max(1) as u64, Ordering::Relaxed);
        if order == Order::Ascending && !range.is_empty() {
            let last = found.last().filter(|_| found.len() == limit);
            let end = last.map_or(range.end.clone(), |row| Bound::Included(row.key.clone()));
            let passed_over = self.counts.removed.lock().range((range.start.clone(), end)).count();
            self.counts.passed_over.fetch_add(passed_over as u64, Ordering::Relaxed);
        }
        Ok(found)
    }
}
