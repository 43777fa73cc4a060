//! What goes behind the requests: past nodes that no snapshot sees any more, and all that a deleted
//! share held. Each function does a bounded piece of work.

use bytes::Bytes;
use holdfast_store::{KeyRange, Order};

use super::tree::release_content;
use super::{Node, rows};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::rows::Stored;

/// Rows looked at in one commit: enough to share a sync, few enough not to delay other commits.
const ROWS_PER_COMMIT: usize = 256;

impl Domain {
    /// Removes past nodes that none of these snapshots sees, from after a key on. The key to go on
    /// after, if there may be more.
    ///
    /// Snapshots that are taken meanwhile see none of the past nodes there are, so they need not be
    /// among them.
    #[allow(dead_code, reason = "called when a snapshot is deleted")]
    pub(crate) async fn prune_past_nodes(
        &self,
        share: u64,
        snapshots: &[u64],
        after: Option<Bytes>,
    ) -> Result<Option<Bytes>, Failure<()>> {
        let mut range = KeyRange::prefix(rows::all_past_nodes(share));
        if let Some(after) = after {
            range = range.after(after);
        }
        self.transact(&[], async |mut transaction| {
            let snapshot = transaction.snapshot();
            let found = snapshot.scan(&range, Order::Ascending, ROWS_PER_COMMIT).await?;
            let full = found.len() == ROWS_PER_COMMIT;
            let last = found.last().filter(|_| full).map(|row| row.key.clone());
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
            Ok((last, transaction))
        })
        .await
    }

    /// Removes some of what a deleted share held; whether there may be more.
    #[allow(dead_code, reason = "called when a share is deleted")]
    pub(crate) async fn empty_condemned_share(&self, share: u64) -> Result<bool, Failure<()>> {
        let removed = self
            .transact(&[], async |mut transaction| {
                let mut removed = Vec::new();
                for prefix in rows::all_of_share(share) {
                    let room = ROWS_PER_COMMIT - removed.len();
                    // Nobody adds to them: whoever did would have to read the row of the share.
                    let range = KeyRange::prefix(prefix);
                    let snapshot = transaction.snapshot();
                    for row in snapshot.scan(&range, Order::Ascending, room).await? {
                        transaction.expect(row.key.clone());
                        if rows::has_content(&row.key) {
                            release_content(&mut transaction, &Node::decode(&row.value)?);
                        }
                        transaction.delete(row.key.clone());
                        removed.push(row.key);
                    }
                }
                Ok((removed, transaction))
            })
            .await?;
        for key in &removed {
            self.live_leases.forget(key);
        }
        Ok(removed.len() == ROWS_PER_COMMIT)
    }
}
