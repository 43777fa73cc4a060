//! Snapshots of shares. Taking one writes one row, whatever the share holds: see
//! `docs/design/0006-files.md`.

use super::deleted_share::snapshots_of;
use super::lifecycle::{Answer, ShareRefusal, check_lease, existing};
use super::model::{Share, SharePath};
use super::rows;
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::lease::{Access, Lease};
use crate::metadata::Metadata;
use crate::rows::Stored;
use crate::time::Timestamp;

/// Snapshots that a share can have.
pub const SNAPSHOTS_MAX: usize = 200;

pub struct SnapshotShare {
    pub path: SharePath,
    /// The metadata of the snapshot; if empty, those of the share.
    pub metadata: Metadata,
}

impl Domain {
    /// The snapshot and its moment.
    pub async fn snapshot_share(&self, command: SnapshotShare) -> Answer<(Share, Timestamp)> {
        let key = command.path.key();
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let now = self.now();
            let mut share = existing(read(&mut transaction, &key).await?)?;
            check_lease(&share, Access::Read, None, now).map_err(Failure::Refused)?;
            let snapshots = snapshots_of(&mut transaction, share.id).await?;
            if snapshots.len() >= SNAPSHOTS_MAX {
                return Err(Failure::Refused(ShareRefusal::TooManySnapshots));
            }
            let moment = match snapshots.last() {
                Some((last, _)) => now.max(rows::snapshot_moment(last)?.next()),
                None => now,
            };
            share.generation += 1;
            share.newest_snapshot = share.generation;
            transaction.put(key.clone(), share.encode());
            let mut snapshot = share;
            snapshot.lease = Lease::default();
            if !command.metadata.is_empty() {
                snapshot.metadata = command.metadata.clone();
            }
            transaction.put(rows::snapshot(snapshot.id, moment), snapshot.encode());
            Ok(((snapshot, moment), transaction))
        })
        .await
    }
}
