//! Blobs whose bytes are still to come from another host; they are fetched in [`crate::copy`].

use bytes::Bytes;
use holdfast_store::Fault;

use super::copy::claim;
use super::entry::{BlobEntry, Change};
use super::model::{Blob, Kind};
use super::{BlobPath, BlobRefusal};
use crate::content::{self, Content};
use crate::copy::{CopyEnd, CopyFailure, CopyState, CopyStatus};
use crate::domain::{Domain, Stamp, read};
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::rows::{Stored, pending_copy};
use crate::transact::Transaction;

pub struct AbortCopy {
    pub path: BlobPath,
    pub copy_id: String,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    /// Records how much of a pending copy has arrived; returns whether it is still wanted.
    pub async fn note_copy_progress(
        &self,
        path: &BlobPath,
        copy_id: &str,
        bytes_copied: u64,
    ) -> Result<bool, Failure<BlobRefusal>> {
        let noted = self
            .transact(&[path.latch()], async |mut transaction| {
                let entry = BlobEntry::read(&mut transaction, path).await?;
                let mut blob =
                    decide_pending(entry.current.clone(), copy_id).map_err(Failure::Refused)?;
                if let Some(copy) = &mut blob.copy {
                    copy.bytes_copied = bytes_copied;
                }
                entry.put(&mut transaction, &blob);
                Ok(((), transaction))
            })
            .await;
        match noted {
            Ok(()) => Ok(true),
            Err(Failure::Refused(_)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Ends a pending copy. Refused if it has been ended otherwise.
    pub async fn end_copy(
        &self,
        path: &BlobPath,
        copy_id: &str,
        end: CopyEnd,
    ) -> Result<(), Failure<BlobRefusal>> {
        let retention = self.retention(&path.container.account).await?;
        let ended = self
            .transact(&[path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let entry = BlobEntry::read(&mut transaction, path).await?;
                let blob =
                    decide_pending(entry.current.clone(), copy_id).map_err(Failure::Refused)?;
                let blob = ended(&mut transaction, blob, &end, stamp);
                transaction.delete(pending_copy(&entry.key()));
                entry.replace(&mut transaction, blob, Change::InPlace, retention, stamp).await?;
                Ok(((), transaction))
            })
            .await;
        match end {
            CopyEnd::Fetched(received) => received.conclude(ended),
            CopyEnd::Failed(_) => ended,
        }
    }

    pub async fn abort_copy(&self, command: AbortCopy) -> Result<(), Failure<BlobRefusal>> {
        let AbortCopy { path, copy_id, lease_id } = &command;
        let retention = self.retention(&path.container.account).await?;
        self.transact(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, path).await?;
            let mut blob =
                decide_pending(entry.current.clone(), copy_id).map_err(Failure::Refused)?;
            blob.lease = blob
                .lease_after(Access::AbortCopy, *lease_id, stamp.now)
                .map_err(Failure::Refused)?;
            let blob = stopped(&mut transaction, blob, CopyStatus::Aborted, None, stamp);
            transaction.delete(pending_copy(&entry.key()));
            entry.replace(&mut transaction, blob, Change::InPlace, retention, stamp).await?;
            Ok(((), transaction))
        })
        .await
    }
}

/// Fails the copy onto the blob with this key, which an earlier run left pending. It is found by its
/// key: its container may have been renamed. Nothing changes that index rows depend on.
pub(crate) async fn fail_interrupted(
    transaction: &mut Transaction,
    key: Bytes,
    stamp: Stamp,
) -> Result<(), Fault> {
    let blob: Option<Blob> = read(transaction, &key).await?;
    if let Some(blob) = blob.filter(Blob::is_copy_pending) {
        let why = Some(CopyFailure::Interrupted);
        let failed = stopped(transaction, blob, CopyStatus::Failed, why, stamp);
        transaction.put(key, failed.encode());
    }
    Ok(())
}

/// The blob that a pending copy is for, if it still is.
fn decide_pending(existing: Option<Blob>, copy_id: &str) -> Result<Blob, BlobRefusal> {
    let blob = existing.ok_or(BlobRefusal::NotFound)?;
    match &blob.copy {
        Some(copy) if copy.status != CopyStatus::Pending => Err(BlobRefusal::NoCopyPending),
        Some(copy) if copy.id != copy_id => Err(BlobRefusal::CopyIdMismatch),
        Some(_) => Ok(blob),
        None => Err(BlobRefusal::NoCopyPending),
    }
}

fn ended(transaction: &mut Transaction, blob: Blob, end: &CopyEnd, stamp: Stamp) -> Blob {
    let received = match end {
        CopyEnd::Fetched(received) => received,
        CopyEnd::Failed(why) => {
            return stopped(transaction, blob, CopyStatus::Failed, Some(why.clone()), stamp);
        }
    };
    let content = claim(transaction, received, blob.kind.into(), stamp.etag.ticks());
    let length = received.length();
    let copy = blob.copy.as_ref().map(|copy| CopyState {
        status: CopyStatus::Success,
        bytes_copied: length,
        bytes_total: length,
        completed: Some(stamp.now),
        ..copy.clone()
    });
    Blob { etag: stamp.etag, last_modified: stamp.now, length, content, copy, ..blob }
}

/// A failed or aborted copy leaves a blob without bytes.
fn stopped(
    transaction: &mut Transaction,
    blob: Blob,
    status: CopyStatus,
    failure: Option<CopyFailure>,
    stamp: Stamp,
) -> Blob {
    content::release(transaction, &blob.content);
    let copy = blob.copy.as_ref().map(|copy| CopyState {
        status,
        completed: Some(stamp.now),
        failure,
        ..copy.clone()
    });
    let kind = match blob.kind {
        Kind::Append { .. } => Kind::Append { blocks: 0, sealed: false },
        kind @ (Kind::Block | Kind::Page { .. }) => kind,
    };
    Blob {
        kind,
        etag: stamp.etag,
        last_modified: stamp.now,
        length: 0,
        content: Content::Empty,
        copy,
        ..blob
    }
}
