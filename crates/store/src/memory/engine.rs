//! Rows in an ordered map, each with the versions that held snapshots can still see.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_sync::RwLock;

use crate::engine::{
    Batch, CommitError, Engine, EngineStatistics, Fault, KeyRange, Moment, Order, Row, Snapshot,
    Write,
};

/// A row's versions, oldest first; `None` is a deletion.
type Versions = Vec<(u64, Option<Bytes>)>;

#[derive(Default)]
pub struct MemoryEngine {
    state: Arc<RwLock<State>>,
}

#[derive(Default)]
struct State {
    sequence: u64,
    rows: BTreeMap<Bytes, Versions>,
    /// How many snapshots are held at each sequence.
    held: BTreeMap<u64, usize>,
    /// Keys whose older versions can go once no snapshot before the sequence is held.
    superseded: VecDeque<(u64, Bytes)>,
    statistics: EngineStatistics,
}

/// Deletions are remembered for this many later commits, so that a batch decided before one still
/// finds its conflict; an older batch is refused.
const COMMITS_REMEMBERED: u64 = 4096;

#[async_trait]
impl Engine for MemoryEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let mut state = self.state.write();
        let sequence = state.sequence;
        *state.held.entry(sequence).or_default() += 1;
        Ok(Box::new(MemorySnapshot { state: Arc::clone(&self.state), sequence }))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let mut state = self.state.write();
        if state.has_changed_under(&batch) {
            state.statistics.conflicts += 1;
            return Err(CommitError::Conflict);
        }
        state.apply(batch.writes);
        state.forget_superseded();
        Ok(())
    }

    fn poisoned(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> EngineStatistics {
        let state = self.state.read();
        EngineStatistics { rows: state.rows.len() as u64, ..state.statistics }
    }
}

impl State {
    fn has_changed_under(&self, batch: &Batch) -> bool {
        let Some(since) = &batch.since else { return false };
        if since.sequence + COMMITS_REMEMBERED < self.sequence {
            return true;
        }
        let changed = |versions: &Versions| {
            versions.last().is_some_and(|(sequence, _)| *sequence > since.sequence)
        };
        batch.expected_rows.iter().any(|key| self.rows.get(key).is_some_and(changed))
            || batch
                .expected_ranges
                .iter()
                .any(|range| self.within(range).any(|(_, versions)| changed(versions)))
    }

    fn within<'state>(
        &'state self,
        range: &KeyRange,
    ) -> Box<dyn DoubleEndedIterator<Item = (&'state Bytes, &'state Versions)> + 'state> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let bounds: (Bound<Bytes>, Bound<Bytes>) = (range.start.clone(), range.end.clone());
        Box::new(self.rows.range(bounds))
    }

    fn apply(&mut self, writes: Vec<Write>) {
        self.sequence += 1;
        self.statistics.commits += 1;
        for write in writes {
            let (key, value) = match write {
                Write::Put { key, value } => (key, Some(value)),
                Write::Delete { key } => (key, None),
            };
            let versions = self.rows.entry(key.clone()).or_default();
            if versions.last().is_some_and(|(sequence, _)| *sequence == self.sequence) {
                versions.pop();
            }
            versions.push((self.sequence, value));
            self.superseded.push_back((self.sequence, key));
        }
    }

    /// Drops versions that neither a held snapshot nor a conflict check can reach.
    fn forget_superseded(&mut self) {
        let oldest_held = self.held.keys().next().copied().unwrap_or(self.sequence);
        let horizon = oldest_held.min(self.sequence.saturating_sub(COMMITS_REMEMBERED + 1));
        while self.superseded.front().is_some_and(|(sequence, _)| *sequence <= horizon) {
            let Some((_, key)) = self.superseded.pop_front() else { break };
            let Some(versions) = self.rows.get_mut(&key) else { continue };
            let visible = versions.iter().rposition(|(sequence, _)| *sequence <= horizon);
            if let Some(visible) = visible {
                versions.drain(..visible);
            }
            if versions.len() == 1 && versions[0].1.is_none() && versions[0].0 <= horizon {
                self.rows.remove(&key);
            }
        }
    }
}

struct MemorySnapshot {
    state: Arc<RwLock<State>>,
    sequence: u64,
}

impl MemorySnapshot {
    fn visible<'row>(&self, versions: &'row [(u64, Option<Bytes>)]) -> Option<&'row Bytes> {
        let version = versions.iter().rev().find(|(sequence, _)| *sequence <= self.sequence)?;
        version.1.as_ref()
    }
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn moment(&self) -> Moment {
        Moment { sequence: self.sequence, text: None }
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let state = self.state.read();
        Ok(state.rows.get(key).and_then(|versions| self.visible(versions)).cloned())
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        let state = self.state.read();
        let rows = state.within(range);
        let rows: Box<dyn Iterator<Item = _>> = match order {
            Order::Ascending => rows,
            Order::Descending => Box::new(rows.rev()),
        };
        Ok(rows
            .filter_map(|(key, versions)| {
                let value = self.visible(versions)?.clone();
                Some(Row { key: key.clone(), value })
            })
            .take(limit)
            .collect())
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut state = self.state.write();
        if let Some(count) = state.held.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.sequence);
            }
        }
    }
}
