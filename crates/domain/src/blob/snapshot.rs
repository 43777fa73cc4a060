//! Snapshot Blob: a state of a blob that stays, beside the blob that goes on.

use holdfast_store::Fault;

use super::model::{Past, Role};
use super::target::{Keeping, Target};
use super::{Blob, BlobPath, BlobRefusal, check_key, check_not_copied_onto};
use crate::condition::{self, Conditions, WriteKind};
use crate::content::{self, CustomerKey};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, Lease, LeaseId};
use crate::metadata::Metadata;
use crate::time::Timestamp;
use crate::transact::Transaction;

pub struct SnapshotBlob {
    pub path: BlobPath,
    /// That of the snapshot; that of the blob if it is empty.
    pub metadata: Metadata,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    pub key: Option<CustomerKey>,
}

/// A new snapshot.
pub struct Snapshotted {
    pub moment: Timestamp,
    pub snapshot: Blob,
    /// The version that the blob itself is from now on, if versions are kept.
    pub version: Option<Timestamp>,
}

impl Domain {
    pub async fn snapshot_blob(
        &self,
        command: SnapshotBlob,
    ) -> Result<Snapshotted, Failure<BlobRefusal>> {
        let keeping = self.keeping(&command.path.container.account).await?;
        self.transact(&[command.path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let target = Target::read(&mut transaction, &command.path).await?;
            let existing = target.current.as_ref();
            let mut snapshot =
                decide_snapshot(existing, &command, stamp).map_err(Failure::Refused)?;
            let moment = Timestamp::from_ticks(stamp.etag.ticks());
            snapshot.content =
                content::share(&mut transaction, &snapshot.content, moment.ticks()).await?;
            let past = Past { blob: snapshot, role: Role::Snapshot, deleted: None };
            target.put_past(&mut transaction, moment, &past);
            let version = self.version_beside(&mut transaction, &target, keeping, stamp).await?;
            Ok((Snapshotted { moment, snapshot: past.blob, version }, transaction))
        })
        .await
    }

    /// Where versions are kept, a snapshot begins a new one with the same bytes.
    async fn version_beside(
        &self,
        transaction: &mut Transaction,
        target: &Target,
        keeping: Keeping,
        stamp: Stamp,
    ) -> Result<Option<Timestamp>, Fault> {
        let Some(current) = target.current.as_ref().filter(|_| keeping.versions) else {
            return Ok(None);
        };
        // The moment of the snapshot tells the snapshot, so the version needs another.
        let id = self.fresh_id();
        let version = Timestamp::from_ticks(id);
        let content = content::share(transaction, &current.content, id).await?;
        target.keep(transaction, current, keeping, stamp);
        target.put(transaction, &Blob { version: Some(version), content, ..current.clone() });
        Ok(Some(version))
    }
}

/// Every rule of Snapshot Blob; the state that the snapshot has.
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
    check_key(existing, command.key.as_ref())?;
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
