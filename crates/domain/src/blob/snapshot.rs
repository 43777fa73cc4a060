//! Snapshot Blob: keeps the current state of a blob.

use std::time::Duration;

use holdfast_store::Fault;

use super::entry::{BlobEntry, Retention};
use super::model::{PastBlob, Role};
use super::rows::PastBlobGroup;
use super::{AccessTier, Blob, BlobPath, BlobRefusal, Encryption, check_not_copied_onto};
use crate::condition::{self, Conditions, WriteKind};
use crate::content;
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, Lease, LeaseId};
use crate::metadata::Metadata;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// §3.7 of the notes on the protocol: premium page blobs.
const PREMIUM_SNAPSHOTS_MAX: usize = 100;
const PREMIUM_SNAPSHOT_EVERY: Duration = Duration::from_secs(10 * 60);

pub struct SnapshotBlob {
    pub path: BlobPath,
    /// The metadata of the snapshot; if empty, that of the blob.
    pub metadata: Metadata,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    pub encryption: Encryption,
}

/// A new snapshot.
pub struct Snapshotted {
    pub moment: Timestamp,
    pub snapshot: Blob,
    /// The version of the blob itself from now on, if versions are kept.
    pub version: Option<Timestamp>,
}

impl Domain {
    pub async fn snapshot_blob(
        &self,
        command: SnapshotBlob,
    ) -> Result<Snapshotted, Failure<BlobRefusal>> {
        let retention = self.retention(&command.path.container.account).await?;
        self.transact_pipelined(&[command.path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, &command.path).await?;
            let existing = entry.current.as_ref();
            let mut snapshot =
                decide_snapshot(existing, &command, stamp).map_err(Failure::Refused)?;
            entry.check_encryption(&snapshot, &command.encryption).map_err(Failure::Refused)?;
            check_premium(&mut transaction, &entry, &snapshot, stamp.now).await?;
            let moment = Timestamp::from_ticks(stamp.etag.ticks());
            snapshot.content =
                content::share(&mut transaction, &snapshot.content, moment.ticks()).await?;
            let past = PastBlob { blob: snapshot, role: Role::Snapshot, deleted: None };
            entry.put_past(&mut transaction, moment, &past);
            let version = self.version_beside(&mut transaction, &entry, retention, stamp).await?;
            Ok((Snapshotted { moment, snapshot: past.blob, version }, transaction))
        })
        .await
    }

    /// Where versions are kept, a snapshot begins a new one with the same bytes.
    async fn version_beside(
        &self,
        transaction: &mut Transaction,
        entry: &BlobEntry,
        retention: Retention,
        stamp: Stamp,
    ) -> Result<Option<Timestamp>, Fault> {
        let Some(current) = entry.current.as_ref().filter(|_| retention.versions) else {
            return Ok(None);
        };
        // The moment of the snapshot is its id, so the version needs another one.
        let id = self.fresh_id();
        let version = Timestamp::from_ticks(id);
        let content = content::share(transaction, &current.content, id).await?;
        entry.keep(transaction, current, retention, stamp);
        entry.put(transaction, &Blob { version: Some(version), content, ..current.clone() });
        Ok(Some(version))
    }
}

/// The limits of page blobs in a premium tier: few snapshots, and a time between them.
async fn check_premium(
    transaction: &mut Transaction,
    entry: &BlobEntry,
    blob: &Blob,
    now: Timestamp,
) -> Result<(), Failure<BlobRefusal>> {
    if !blob.tier.is_some_and(AccessTier::is_premium) {
        return Ok(());
    }
    let snapshots = entry.past_blobs(transaction, PastBlobGroup::Snapshots).await?;
    let last = snapshots.last().map(|(moment, _)| *moment);
    decide_premium(snapshots.len(), last, now).map_err(Failure::Refused)
}

fn decide_premium(
    snapshots: usize,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    if snapshots >= PREMIUM_SNAPSHOTS_MAX {
        return Err(BlobRefusal::TooManySnapshots);
    }
    if last.is_some_and(|last| last.plus(PREMIUM_SNAPSHOT_EVERY) > now) {
        return Err(BlobRefusal::SnapshotTooSoon);
    }
    Ok(())
}

/// Every rule of Snapshot Blob; returns the state of the snapshot.
fn decide_snapshot(
    existing: Option<&Blob>,
    command: &SnapshotBlob,
    stamp: Stamp,
) -> Result<Blob, BlobRefusal> {
    let subject = existing.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::InPlace, subject.as_ref())?;
    let existing = existing.ok_or(BlobRefusal::NotFound)?;
    existing.lease_after(Access::Read, command.lease_id, stamp.now)?;
    check_not_copied_onto(existing)?;
    if existing.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    let mut snapshot = Blob {
        lease: Lease::default(),
        version: None,
        expires: None,
        immutability: None,
        legal_hold: false,
        ..existing.clone()
    };
    // A snapshot with metadata of its own is not the same state as the blob, and does not have its
    // ETag.
    if !command.metadata.is_empty() {
        snapshot.metadata = command.metadata.clone();
        snapshot.etag = stamp.etag;
        snapshot.last_modified = stamp.now;
    }
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_premium_page_blob_has_100_snapshots_and_one_in_ten_minutes() {
        let now = Timestamp::from_ticks(638_000_000_000_000_000);
        let ago = |seconds: u64| Some(Timestamp::from_ticks(now.ticks() - seconds * 10_000_000));
        for (cell, snapshots, last, expected) in [
            ("3.7 the first", 0, None, Ok(())),
            ("3.7 after ten minutes", 1, ago(600), Ok(())),
            ("3.7 sooner", 1, ago(599), Err(BlobRefusal::SnapshotTooSoon)),
            ("3.7 the 100th", 99, ago(600), Ok(())),
            ("3.7 the 101st", 100, ago(600), Err(BlobRefusal::TooManySnapshots)),
        ] {
            assert_eq!(decide_premium(snapshots, last, now), expected, "{cell}");
        }
    }
}
