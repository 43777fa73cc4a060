//! Deletion of a share and its snapshots, and what follows: its name may be held for a while, and it
//! can be restored as long as it is retained.

use std::time::Duration;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange};
use serde::{Deserialize, Serialize};

use super::lifecycle::{Answer, ShareRefusal, check_lease, existing};
use super::model::{Share, SharePath};
use super::rows;
use crate::account::ServiceKind;
use crate::domain::{Domain, Stamp, read};
use crate::due_task::DueTask;
use crate::failure::Failure;
use crate::held_name;
use crate::lease::{Access, Lease, LeaseId, LeaseStatus};
use crate::names::{DeletedVersion, ShareName};
use crate::rows::{NOTHING, Stored};
use crate::time::Timestamp;
use crate::transact::Transaction;

/// More than there can be.
const SNAPSHOTS_LIMIT: usize = super::snapshot::SNAPSHOTS_MAX + 1;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A share that was deleted and can be restored, with its snapshots.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeletedShare {
    pub share: Share,
    pub at: Timestamp,
    pub until: Timestamp,
}

impl Stored for DeletedShare {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a deleted share";
}

/// What happens to the snapshots of a deleted share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithSnapshots {
    /// There must be none.
    #[default]
    No,
    /// They are deleted, too, if none is leased.
    Include,
    IncludeLeased,
}

pub struct DeleteShare {
    pub path: SharePath,
    /// The snapshot of this moment alone, if there is one.
    pub snapshot: Option<Timestamp>,
    pub with_snapshots: WithSnapshots,
    pub lease_id: Option<LeaseId>,
}

pub struct RestoreShare {
    pub path: SharePath,
    pub deleted_name: ShareName,
    /// `None` for a text that never was a version.
    pub deleted_version: Option<DeletedVersion>,
}

impl Domain {
    /// Its contents are removed in the background, see [`crate::background`], at once or at the end
    /// of the retention.
    pub async fn delete_share(&self, command: DeleteShare) -> Answer<()> {
        if let Some(moment) = command.snapshot {
            return self.delete_share_snapshot(&command.path, moment, command.lease_id).await;
        }
        let key = command.path.key();
        let properties = self.service_properties(&command.path.account, ServiceKind::File).await?;
        let retention = properties.delete_retention.days.map(|days| DAY * days);
        let deleted = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let stamp = self.stamp();
                let share = existing(read(&mut transaction, &key).await?)?;
                let snapshots = snapshots_of(&mut transaction, share.id).await?;
                decide_delete(&share, &snapshots, &command, stamp.now).map_err(Failure::Refused)?;
                transaction.delete(key.clone());
                for (key, mut snapshot) in snapshots {
                    if snapshot.lease != Lease::default() {
                        snapshot.lease = Lease::default();
                        transaction.put(key, snapshot.encode());
                    }
                }
                let id = share.id;
                retain_or_condemn(&mut transaction, &command.path, share, retention, stamp);
                let hold = self.features.share_name_hold;
                held_name::hold(&mut transaction, command.path.hold_key(), hold, stamp);
                Ok((id, transaction))
            })
            .await?;
        self.live_leases.forget(&key);
        self.live_shares.forget(deleted);
        self.opens.end_share(deleted);
        Ok(())
    }

    async fn delete_share_snapshot(
        &self,
        path: &SharePath,
        moment: Timestamp,
        lease_id: Option<LeaseId>,
    ) -> Answer<()> {
        let share_key = path.key();
        let key = self
            .transact(std::slice::from_ref(&share_key), async |mut transaction| {
                let mut share = existing(read(&mut transaction, &share_key).await?)?;
                let key = rows::snapshot(share.id, moment);
                let mut snapshots = snapshots_of(&mut transaction, share.id).await?;
                let at = snapshots.iter().position(|(known, _)| *known == key);
                let missing = Failure::Refused(ShareRefusal::SnapshotNotFound);
                let (_, snapshot) = snapshots.remove(at.ok_or(missing)?);
                check_lease(&snapshot, Access::Delete, lease_id, self.now())
                    .map_err(Failure::Refused)?;
                transaction.delete(key.clone());
                let condemned_key = rows::condemned_snapshot(share.id, snapshot.generation);
                transaction.put(condemned_key, NOTHING);
                share.newest_snapshot =
                    snapshots.last().map_or(0, |(_, snapshot)| snapshot.generation);
                transaction.put(share_key.clone(), share.encode());
                Ok((key, transaction))
            })
            .await?;
        self.live_leases.forget(&key);
        Ok(())
    }

    /// The share is as it was when it was deleted, without its lease.
    pub async fn restore_share(&self, command: RestoreShare) -> Answer<Share> {
        let (key, hold) = (command.path.key(), command.path.hold_key());
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let now = self.now();
            let existing: Option<Share> = read(&mut transaction, &key).await?;
            let deleted_key = command.deleted_version.map(|version| {
                let (account, name) = (command.path.account.as_str(), &command.deleted_name);
                rows::deleted_share(account, name.as_str(), version.0)
            });
            let deleted: Option<DeletedShare> = match &deleted_key {
                Some(deleted_key) => read(&mut transaction, deleted_key).await?,
                None => None,
            };
            let share =
                decide_restore(existing.as_ref(), deleted, now).map_err(Failure::Refused)?;
            transaction.put(key.clone(), share.encode());
            transaction.delete(hold.clone());
            deleted_key.into_iter().for_each(|deleted_key| transaction.delete(deleted_key));
            Ok((share, transaction))
        })
        .await
    }
}

/// The snapshots of a share with their keys, oldest first.
pub(super) async fn snapshots_of(
    transaction: &mut Transaction,
    share: u64,
) -> Result<Vec<(Bytes, Share)>, Fault> {
    let range = KeyRange::prefix(rows::snapshots(share));
    let found = transaction.scan(&range, SNAPSHOTS_LIMIT).await?;
    found.into_iter().map(|row| Ok((row.key, Share::decode(&row.value)?))).collect()
}

fn decide_delete(
    share: &Share,
    snapshots: &[(Bytes, Share)],
    command: &DeleteShare,
    now: Timestamp,
) -> Result<(), ShareRefusal> {
    check_lease(share, Access::Delete, command.lease_id, now)?;
    let leased = |(_, snapshot): &(Bytes, Share)| snapshot.lease.status(now) == LeaseStatus::Locked;
    match command.with_snapshots {
        WithSnapshots::No if !snapshots.is_empty() => Err(ShareRefusal::HasSnapshots),
        WithSnapshots::Include if snapshots.iter().any(leased) => Err(ShareRefusal::SnapshotLeased),
        WithSnapshots::No | WithSnapshots::Include | WithSnapshots::IncludeLeased => Ok(()),
    }
}

fn retain_or_condemn(
    transaction: &mut Transaction,
    path: &SharePath,
    mut share: Share,
    retention: Option<Duration>,
    stamp: Stamp,
) {
    let Some(retention) = retention else {
        transaction.put(rows::condemned_share(share.id), NOTHING);
        return;
    };
    let version = stamp.etag.ticks();
    let key = rows::deleted_share(path.account.as_str(), path.share.as_str(), version);
    let until = stamp.now.plus(retention);
    share.lease = Lease::default();
    let deleted = DeletedShare { share, at: stamp.now, until };
    transaction.put(key.clone(), deleted.encode());
    DueTask::PurgeShare(key).plan(transaction, until, version);
}

fn decide_restore(
    existing: Option<&Share>,
    deleted: Option<DeletedShare>,
    now: Timestamp,
) -> Result<Share, ShareRefusal> {
    if existing.is_some() {
        return Err(ShareRefusal::AlreadyExists);
    }
    match deleted.filter(|deleted| deleted.until > now) {
        Some(deleted) => Ok(deleted.share),
        None => Err(ShareRefusal::DeletedNotFound),
    }
}

/// The retention of the deleted share with this key ends, unless it was restored.
pub(crate) async fn purge_share(
    transaction: &mut Transaction,
    key: &Bytes,
    now: Timestamp,
) -> Result<(), Fault> {
    let deleted: Option<DeletedShare> = read(transaction, key).await?;
    if let Some(deleted) = deleted.filter(|deleted| deleted.until <= now) {
        transaction.delete(key.clone());
        transaction.put(rows::condemned_share(deleted.share.id), NOTHING);
    }
    Ok(())
}
