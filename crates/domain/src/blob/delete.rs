//! Delete Blob, of a blob or of one of its earlier states, and Undelete Blob.

use super::entry::{BlobEntry, Retention, deletion, keeps_version};
use super::model::{PastBlob, Role};
use super::rows::PastBlobGroup;
use super::{Blob, BlobPath, BlobRefusal, Which, check_no_copy_pending, check_not_held};
use crate::condition::{self, Conditions, DateConditions, WriteKind};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::time::Timestamp;
use crate::transact::Transaction;

pub struct DeleteBlob {
    pub path: BlobPath,
    pub which: Which,
    /// What happens to the snapshots of the blob; if not given there must be none.
    pub snapshots: Option<DeleteSnapshots>,
    /// Removes what is already deleted, so that it cannot be restored.
    pub permanent: bool,
    pub conditions: Conditions,
    /// Compared with the time of the last change of tier.
    pub tier_conditions: DateConditions,
    pub lease_id: Option<LeaseId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteSnapshots {
    /// With the blob.
    Include,
    /// Without it.
    Only,
}

impl DeleteBlob {
    fn deletes_base(&self) -> bool {
        self.which == Which::Current && self.snapshots != Some(DeleteSnapshots::Only)
    }
}

/// The outcome of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    ForGood,
    /// It can be restored or is still there as a version.
    Kept,
}

type Answer<T> = Result<T, Failure<BlobRefusal>>;

impl Domain {
    pub async fn delete_blob(&self, command: DeleteBlob) -> Answer<Deleted> {
        let retention = self.retention(&command.path.container.account).await?;
        let (deleted, gone) = self
            .transact(&[command.path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let entry = BlobEntry::read(&mut transaction, &command.path).await?;
                let deleted = match command.which {
                    _ if command.permanent => {
                        purge(&mut transaction, &entry, &command, retention, stamp).await?
                    }
                    Which::Current => {
                        delete_current(&mut transaction, &entry, &command, retention, stamp).await?
                    }
                    Which::Snapshot(_) | Which::Version(_) => {
                        delete_past(&mut transaction, &entry, &command, retention, stamp).await?
                    }
                };
                let gone = command.deletes_base().then(|| entry.key());
                Ok(((deleted, gone), transaction))
            })
            .await?;
        if let Some(key) = gone {
            self.live_leases.forget(&key);
        }
        Ok(deleted)
    }

    /// Restores what was deleted under a name and is still kept.
    pub async fn undelete_blob(&self, path: &BlobPath) -> Answer<()> {
        self.transact(&[path.latch()], async |mut transaction| {
            let now = self.now();
            let entry = BlobEntry::read(&mut transaction, path).await?;
            let restored = restore(&mut transaction, &entry, now).await?;
            let there = restored
                || entry.current.is_some()
                || entry.has_past_blobs(&mut transaction, PastBlobGroup::Versions).await?;
            if !there {
                return Err(Failure::Refused(BlobRefusal::NotFound));
            }
            Ok(((), transaction))
        })
        .await
    }
}

async fn delete_current(
    transaction: &mut Transaction,
    entry: &BlobEntry,
    command: &DeleteBlob,
    retention: Retention,
    stamp: Stamp,
) -> Answer<Deleted> {
    let current = entry.current.as_ref();
    let current =
        decide_delete(current, command, retention, stamp.now).map_err(Failure::Refused)?;
    let deletion = deletion(retention, stamp.now);
    match command.snapshots {
        None => {
            if entry.has_past_blobs(transaction, PastBlobGroup::Snapshots).await? {
                return Err(Failure::Refused(BlobRefusal::SnapshotsPresent));
            }
        }
        Some(DeleteSnapshots::Include | DeleteSnapshots::Only) => {
            for (moment, past) in entry.past_blobs(transaction, PastBlobGroup::Snapshots).await? {
                check_not_held(&past.blob, stamp.now).map_err(Failure::Refused)?;
                entry.delete_past(transaction, moment, past, deletion);
            }
        }
    }
    if command.deletes_base() {
        entry.drop_upload(transaction).await?;
        entry.remove(transaction, retention, stamp);
    }
    let kept = deletion.is_some() || (command.deletes_base() && keeps_version(current, retention));
    Ok(if kept { Deleted::Kept } else { Deleted::ForGood })
}

async fn delete_past(
    transaction: &mut Transaction,
    entry: &BlobEntry,
    command: &DeleteBlob,
    retention: Retention,
    stamp: Stamp,
) -> Answer<Deleted> {
    let (group, moment) = match command.which {
        Which::Version(id) if entry.is_current_version(id) => {
            return Err(Failure::Refused(BlobRefusal::CurrentVersion));
        }
        Which::Version(id) => (PastBlobGroup::Versions, id),
        Which::Snapshot(moment) => (PastBlobGroup::Snapshots, moment),
        Which::Current => return Err(Failure::Refused(BlobRefusal::NotFound)),
    };
    let past = entry.past(transaction, group, moment).await?;
    let past = decide_delete_past(past, command, stamp.now).map_err(Failure::Refused)?;
    let deletion = deletion(retention, stamp.now);
    entry.delete_past(transaction, moment, past, deletion);
    Ok(if deletion.is_some() { Deleted::Kept } else { Deleted::ForGood })
}

/// Deletes for good what is deleted already.
async fn purge(
    transaction: &mut Transaction,
    entry: &BlobEntry,
    command: &DeleteBlob,
    retention: Retention,
    stamp: Stamp,
) -> Answer<Deleted> {
    if !retention.permanent_delete {
        return Err(Failure::Refused(BlobRefusal::PermanentDeleteNotAllowed));
    }
    let (groups, moment): (&[PastBlobGroup], _) = match command.which {
        Which::Current => return Err(Failure::Refused(BlobRefusal::NotDeleted)),
        // What was overwritten is listed as a deleted snapshot.
        Which::Snapshot(moment) => {
            (&[PastBlobGroup::DeletedSnapshots, PastBlobGroup::Replaced], moment)
        }
        Which::Version(id) => (&[PastBlobGroup::DeletedVersions], id),
    };
    for group in groups {
        if let Some(past) = entry.past(transaction, *group, moment).await? {
            check_not_held(&past.blob, stamp.now).map_err(Failure::Refused)?;
            entry.purge_past_blob(transaction, moment, &past);
            return Ok(Deleted::ForGood);
        }
    }
    let there = entry.find(transaction, command.which).await?;
    let refusal = there.map_or(BlobRefusal::NotFound, |_| BlobRefusal::NotDeleted);
    Err(Failure::Refused(refusal))
}

/// Restores the earlier states of a name, and the blob if there is none; returns whether there was
/// any.
async fn restore(transaction: &mut Transaction, entry: &BlobEntry, now: Timestamp) -> Answer<bool> {
    let is_kept = |(_, past): &(Timestamp, PastBlob)| past.is_restorable(now);
    let mut restored = false;
    let mut replaced = entry.past_blobs(transaction, PastBlobGroup::Replaced).await?;
    replaced.retain(is_kept);
    if entry.current.is_none()
        && let Some((moment, past)) = replaced.pop()
    {
        entry.take_past(transaction, moment, &past);
        entry.put(transaction, &past.blob);
        restored = true;
    }
    let mut others = replaced;
    for group in [PastBlobGroup::DeletedSnapshots, PastBlobGroup::DeletedVersions] {
        others.extend(entry.past_blobs(transaction, group).await?.into_iter().filter(is_kept));
    }
    for (moment, past) in others {
        entry.take_past(transaction, moment, &past);
        let role = match past.role {
            Role::Replaced | Role::Snapshot => Role::Snapshot,
            Role::Version => Role::Version,
        };
        entry.put_past(transaction, moment, &PastBlob { role, deleted: None, ..past });
        restored = true;
    }
    Ok(restored)
}

/// Every rule of Delete Blob for the current state of a blob, except those about its snapshots.
fn decide_delete<'blob>(
    current: Option<&'blob Blob>,
    command: &DeleteBlob,
    retention: Retention,
    now: Timestamp,
) -> Result<&'blob Blob, BlobRefusal> {
    condition::check_write(
        &command.conditions,
        WriteKind::InPlace,
        current.map(Blob::subject).as_ref(),
    )?;
    let current = current.ok_or(BlobRefusal::NotFound)?;
    check_no_copy_pending(current)?;
    if command.deletes_base() && !keeps_version(current, retention) {
        check_not_held(current, now)?;
    }
    current.lease_after(Access::Delete, command.lease_id, now)?;
    check_tier(current, command)?;
    Ok(current)
}

/// Every rule of Delete Blob for an earlier state of a blob.
fn decide_delete_past(
    past: Option<PastBlob>,
    command: &DeleteBlob,
    now: Timestamp,
) -> Result<PastBlob, BlobRefusal> {
    let blob = past.as_ref().map(|past| &past.blob);
    condition::check_write(
        &command.conditions,
        WriteKind::InPlace,
        blob.map(Blob::subject).as_ref(),
    )?;
    let past = past.ok_or(BlobRefusal::NotFound)?;
    check_not_held(&past.blob, now)?;
    past.blob.lease_after(Access::Delete, command.lease_id, now)?;
    check_tier(&past.blob, command)?;
    Ok(past)
}

fn check_tier(blob: &Blob, command: &DeleteBlob) -> Result<(), BlobRefusal> {
    // The tier that a blob begins with is as old as the blob.
    let changed = blob.tier_changed.unwrap_or(blob.created);
    command.tier_conditions.check(changed).map_err(|_| BlobRefusal::ConditionNotMet)
}

impl PastBlob {
    /// Whether this is deleted and its retention has not ended.
    pub(super) fn is_restorable(&self, now: Timestamp) -> bool {
        self.deleted.is_some_and(|deleted| deleted.until > now)
    }
}
