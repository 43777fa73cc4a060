//! Removal in the background: earlier states of nodes that no snapshot sees any more, and all that a deleted
//! share held. Each function does a bounded piece of work.

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Snapshot};

use super::tree::release_content;
use super::{Node, SNAPSHOTS_MAX, Share, rows};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::{Stored, condemned_id, pending_copy};

/// Rows read in one commit: enough to share a sync, few enough not to delay other commits.
const ROWS_PER_COMMIT: usize = 256;

impl Domain {
    /// Removes some of the past nodes that no snapshot sees since one was deleted. The row with this
    /// key records the progress, and is removed with the last ones.
    pub(crate) async fn prune_past_nodes(&self, condemned_key: &Bytes) -> Result<(), Failure<()>> {
        let (share, _) = rows::condemned_snapshot_of(condemned_key)?;
        self.transact(&[], async |mut transaction| {
            let Some(after) = transaction.get(condemned_key).await? else {
                return Ok(((), transaction));
            };
            let mut range = KeyRange::prefix(rows::all_past_nodes(share));
            if !after.is_empty() {
                range = range.after(after);
            }
            let snapshot = transaction.snapshot();
            // Snapshots taken meanwhile see none of the existing past nodes.
            let snapshots = snapshot_numbers(snapshot, share).await?;
            let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_COMMIT).await?;
            match found.last() {
                Some(last) if found.len() == ROWS_PER_COMMIT => {
                    transaction.put(condemned_key.clone(), last.key.clone());
                }
                Some(_) | None => transaction.delete(condemned_key.clone()),
            }
            for row in found {
                let node = Node::decode(&row.value)?;
                let (_, generation) = rows::past_node_name(&row.key)?;
                let sees = |snapshot: &u64| node.is_seen_by(*snapshot) && *snapshot <= generation;
                if !snapshots.iter().any(sees) {
                    transaction.expect(row.key.clone());
                    release_content(&mut transaction, &node);
                    transaction.delete(row.key);
                }
            }
            Ok(((), transaction))
        })
        .await
    }

    /// Removes some of what a deleted share held, and with the last of it the row that condemns it.
    pub(crate) async fn empty_condemned_share(
        &self,
        condemned_key: &Bytes,
    ) -> Result<(), Failure<()>> {
        let prefixes = rows::all_of_share(condemned_id(condemned_key)?);
        let removed = self
            .transact(&[], async |mut transaction| {
                transaction.expect(condemned_key.clone());
                let mut removed = Vec::new();
                for prefix in &prefixes {
                    let room = ROWS_PER_COMMIT - removed.len();
                    // Nothing is added to them: a change reads the row of the share first.
                    let rest = self.removal_progress.rest(prefix);
                    let found = transaction.snapshot().scan(&rest, Order::Ascending, room).await?;
                    for row in found {
                        transaction.expect(row.key.clone());
                        if rows::has_content(&row.key) {
                            let node = Node::decode(&row.value)?;
                            release_content(&mut transaction, &node);
                            if node.is_copy_pending() {
                                transaction.delete(pending_copy(&row.key));
                            }
                        }
                        transaction.delete(row.key.clone());
                        removed.push(row.key);
                    }
                }
                if removed.len() < ROWS_PER_COMMIT {
                    transaction.delete(condemned_key.clone());
                }
                Ok((removed, transaction))
            })
            .await?;
        self.removal_progress.removed(&prefixes, &removed, removed.len() == ROWS_PER_COMMIT);
        for key in &removed {
            self.live_leases.forget(key);
        }
        Ok(())
    }
}

async fn snapshot_numbers(snapshot: &dyn Snapshot, share: u64) -> Result<Vec<u64>, Fault> {
    let range = KeyRange::prefix(rows::snapshots(share));
    let found = snapshot.scan(&range, Order::Ascending, SNAPSHOTS_MAX + 1).await?;
    found.iter().map(|row| Ok(Share::decode(&row.value)?.generation)).collect()
}
