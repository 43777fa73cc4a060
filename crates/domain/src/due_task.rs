//! Tasks for a later time. Each is a row, ordered by that time; before it is done, it is checked
//! again whether it is still needed.

use std::collections::HashSet;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order};
use serde::{Deserialize, Serialize};

use crate::blob::{drop_idle_upload, purge_container, purge_retained, remove_expired};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::held_name;
use crate::rows::{self, Stored};
use crate::share::purge_share;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// Rows taken at a time.
const DUE_PER_COMMIT: usize = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum DueTask {
    /// The retention of an earlier state of a blob, the row with this key, ends.
    PurgePastBlob(Bytes),
    /// The retention of a deleted container, the row with this key, ends.
    PurgeContainer(Bytes),
    /// The hold on the name of something deleted ends, unless this row says otherwise.
    FreeName(Bytes),
    /// Uncommitted blocks to which nothing is added any more: those of the row with this key, while
    /// it has this number.
    DropUpload(Bytes, u64),
    /// A blob expires, unless it was given another time.
    ExpireBlob { account: String, container: u64, name: String },
    /// The retention of a deleted share, the row with this key, ends.
    PurgeShare(Bytes),
}

impl Stored for DueTask {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "something due";
}

impl DueTask {
    /// `id` is unused by anything else that is due at that time.
    pub fn plan(&self, transaction: &mut Transaction, at: Timestamp, id: u64) {
        transaction.put(rows::due_task(at, id), self.encode());
    }

    async fn run(&self, transaction: &mut Transaction, now: Timestamp) -> Result<(), Fault> {
        match self {
            Self::PurgePastBlob(key) => purge_retained(transaction, key, now).await,
            Self::PurgeContainer(key) => purge_container(transaction, key, now).await,
            Self::FreeName(key) => held_name::free(transaction, key, now).await,
            Self::DropUpload(key, id) => drop_idle_upload(transaction, key, *id, now).await,
            Self::ExpireBlob { account, container, name } => {
                remove_expired(transaction, account, *container, name).await
            }
            Self::PurgeShare(key) => purge_share(transaction, key, now).await,
        }
    }
}

impl Domain {
    /// Does what has become due; returns whether there is more to do.
    pub async fn do_what_is_due(&self) -> Result<bool, Failure<()>> {
        let now = self.now();
        let next = Timestamp::from_ticks(now.ticks() + 1);
        let range = KeyRange::prefix(rows::due_tasks()).ending_before(rows::due_task(next, 0));
        self.transact(&[], async |mut transaction| {
            let snapshot = transaction.snapshot();
            let found = snapshot.scan(&range, Order::Ascending, DUE_PER_COMMIT).await?;
            let more = found.len() == DUE_PER_COMMIT;
            let mut done = HashSet::new();
            for row in found {
                transaction.expect(row.key.clone());
                // The same task planned twice must not be done twice on one snapshot.
                if done.insert(row.value.clone()) {
                    DueTask::decode(&row.value)?.run(&mut transaction, now).await?;
                }
                transaction.delete(row.key);
            }
            Ok((more, transaction))
        })
        .await
    }
}
