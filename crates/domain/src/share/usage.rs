//! The usage of shares, in memory: how many bytes the files of each have, to enforce the quota.
//! Counted by a scan at the first need, and then updated with each commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_store::{Engine, Fault, KeyRange, Order};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedRwLockReadGuard, RwLock};

use super::lifecycle::{Answer, existing};
use super::model::{Node, Share, SharePath};
use super::permission::InheritanceCache;
use super::rows;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;
use crate::transact::{AwaitsOutcome, Transaction};

/// Shares kept at most; those not in use are dropped first.
const SHARES_MAX: usize = 4096;
const ROWS_PER_COUNT: usize = 1024;
const GIB: u64 = 1 << 30;

#[derive(Default)]
pub(crate) struct LiveShares {
    by_id: Mutex<HashMap<u64, Arc<LiveShare>>>,
    pub(super) inherited: InheritanceCache,
}

struct LiveShare {
    id: u64,
    /// Held by every change of lengths from before its commit until its result is recorded here, and
    /// exclusively at the start of a count, which so begins between two changes. It is taken only once
    /// the bytes are counted, so that no holder waits for a count.
    changes: Arc<RwLock<()>>,
    counting: AsyncMutex<()>,
    count: Mutex<Count>,
    /// The count is not reliable; the next caller counts again.
    stale: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Count {
    #[default]
    Unknown,
    Known(u64),
}

/// The share would hold more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverQuota;

impl LiveShares {
    fn of(&self, id: u64) -> Arc<LiveShare> {
        let mut by_id = self.by_id.lock();
        if by_id.get(&id).is_some_and(|known| known.stale.load(Ordering::Relaxed)) {
            by_id.remove(&id);
        }
        if by_id.len() >= SHARES_MAX && !by_id.contains_key(&id) {
            let mut room = SHARES_MAX / 2;
            // A share is in use while its reference count is above one.
            by_id.retain(|_, known| {
                let keep = room == 0 || Arc::strong_count(known) > 1;
                room -= usize::from(!keep);
                keep
            });
        }
        Arc::clone(by_id.entry(id).or_insert_with(|| Arc::new(LiveShare::new(id))))
    }

    /// For a new number that no other request knows yet.
    pub(super) fn start_empty(&self, share: u64) {
        *self.of(share).count.lock() = Count::Known(0);
    }

    pub(super) fn forget(&self, share: u64) {
        self.by_id.lock().remove(&share);
    }
}

impl LiveShare {
    fn new(id: u64) -> Self {
        Self {
            id,
            changes: Arc::default(),
            counting: AsyncMutex::default(),
            count: Mutex::default(),
            stale: AtomicBool::new(false),
        }
    }

    fn known(&self) -> Option<u64> {
        match *self.count.lock() {
            Count::Known(bytes) => Some(bytes),
            Count::Unknown => None,
        }
    }

    async fn count(&self, engine: &dyn Engine) -> Result<u64, Fault> {
        if let Some(bytes) = self.known() {
            return Ok(bytes);
        }
        let _alone = self.counting.lock().await;
        if let Some(bytes) = self.known() {
            return Ok(bytes);
        }
        // No length changes meanwhile: changes wait for this count first.
        let _between_changes = self.changes.write().await;
        let snapshot = engine.snapshot().await?;
        let mut range = KeyRange::prefix(rows::nodes_of_share(self.id));
        let mut bytes = 0;
        loop {
            let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_COUNT).await?;
            for row in &found {
                bytes += Node::decode(&row.value)?.length();
            }
            match found.last() {
                Some(last) if found.len() == ROWS_PER_COUNT => {
                    range = range.after(last.key.clone());
                }
                Some(_) | None => break,
            }
            // A count of millions yields in between.
            tokio::task::yield_now().await;
        }
        *self.count.lock() = Count::Known(bytes);
        Ok(bytes)
    }

    fn change(&self, change: impl FnOnce(u64) -> u64) {
        if let Count::Known(bytes) = &mut *self.count.lock() {
            *bytes = change(*bytes);
        }
    }

    /// Adds so many bytes, if they fit.
    fn add(&self, bytes: u64, quota: u64) -> Result<(), OverQuota> {
        if let Count::Known(held) = &mut *self.count.lock() {
            let sum = held.saturating_add(bytes);
            if sum > quota {
                return Err(OverQuota);
            }
            *held = sum;
        }
        Ok(())
    }
}

/// A change of the length of a file, from before its commit until its outcome is known.
struct UsageChange {
    known: Arc<LiveShare>,
    _change: OwnedRwLockReadGuard<()>,
    /// Counted already; subtracted again if nothing is committed.
    added: u64,
    /// Counted until it is committed.
    removed: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Committed,
    Unknown,
}

impl AwaitsOutcome for UsageChange {
    fn committed(mut self: Box<Self>) {
        self.outcome = Outcome::Committed;
    }

    /// From now on the count may be wrong.
    fn unknown(mut self: Box<Self>) {
        self.outcome = Outcome::Unknown;
    }
}

impl Drop for UsageChange {
    fn drop(&mut self) {
        let (added, removed) = (self.added, self.removed);
        match self.outcome {
            Outcome::Nothing => self.known.change(|bytes| bytes.saturating_sub(added)),
            Outcome::Committed => self.known.change(|bytes| bytes.saturating_sub(removed)),
            Outcome::Unknown => self.known.stale.store(true, Ordering::Relaxed),
        }
    }
}

impl Domain {
    /// How many bytes the files of a share have.
    pub async fn share_usage(&self, path: &SharePath) -> Answer<(Share, u64)> {
        let share = existing(self.find_share(path).await?)?;
        let bytes = self.live_shares.of(share.id).count(self.engine()).await?;
        Ok((share, bytes))
    }

    /// Reserves room in the share for another length of a file, once the transaction is committed.
    pub(super) async fn reserve(
        &self,
        transaction: &mut Transaction,
        share: &Share,
        before: u64,
        after: u64,
    ) -> Result<(), Failure<OverQuota>> {
        if before == after {
            return Ok(());
        }
        let known = self.live_shares.of(share.id);
        known.count(self.engine()).await?;
        let change = Arc::clone(&known.changes).read_owned().await;
        let (added, removed) = (after.saturating_sub(before), before.saturating_sub(after));
        if added > 0 {
            known.add(added, u64::from(share.quota_gib) * GIB).map_err(Failure::Refused)?;
        }
        let outcome = Outcome::Nothing;
        let change = UsageChange { known, _change: change, added, removed, outcome };
        transaction.tell_outcome(change);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn change(known: &Arc<LiveShare>, added: u64, removed: u64) -> UsageChange {
        let guard = Arc::clone(&known.changes).read_owned().await;
        let outcome = Outcome::Nothing;
        UsageChange { known: Arc::clone(known), _change: guard, added, removed, outcome }
    }

    #[tokio::test]
    async fn what_is_not_committed_does_not_count() {
        let known = Arc::new(LiveShare::new(1));
        *known.count.lock() = Count::Known(100);
        known.add(50, 150).expect("it fits");
        drop(change(&known, 50, 0).await);
        assert_eq!(known.known(), Some(100));
        drop(change(&known, 0, 30).await);
        assert_eq!(known.known(), Some(100));
        Box::new(change(&known, 0, 30).await).committed();
        assert_eq!(known.known(), Some(70));
        known.add(50, 150).expect("it fits");
        Box::new(change(&known, 50, 0).await).committed();
        assert_eq!(known.known(), Some(120));
        assert_eq!(known.add(31, 150), Err(OverQuota));
        assert_eq!(known.add(u64::MAX, 150), Err(OverQuota));
        assert_eq!(known.known(), Some(120));
    }
}
