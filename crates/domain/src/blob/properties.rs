//! Changes of a blob in place.

use super::entry::{BlobEntry, Change};
use super::page::cut_off_pages;
use super::tier::check_length;
use super::{Blob, BlobPath, BlobRefusal, Encryption, Kind, check_changeable};
use crate::condition::{self, Conditions, SequenceAction, WriteKind};
use crate::content::ContentHeaders;
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::metadata::Metadata;

pub struct SetBlobMetadata {
    pub path: BlobPath,
    pub metadata: Metadata,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    pub encryption: Encryption,
}

pub struct SetBlobProperties {
    pub path: BlobPath,
    /// Replaces all of them; absent ones are cleared.
    pub headers: Option<ContentHeaders>,
    /// For page blobs; see [`super::is_page_blob_length`].
    pub length: Option<u64>,
    /// For page blobs.
    pub sequence: Option<SequenceAction>,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

type Answer<T> = Result<T, Failure<BlobRefusal>>;

impl Domain {
    pub async fn set_blob_metadata(&self, command: SetBlobMetadata) -> Answer<Blob> {
        let SetBlobMetadata { path, metadata, conditions, lease_id, encryption } = command;
        let retention = self.retention(&path.container.account).await?;
        self.transact_pipelined(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, &path).await?;
            let existing = entry.current.clone();
            let mut blob =
                decide_change(existing, &conditions, lease_id, stamp).map_err(Failure::Refused)?;
            entry.check_encryption(&blob, &encryption).map_err(Failure::Refused)?;
            blob.metadata = metadata.clone();
            let replaced =
                entry.replace(&mut transaction, blob, Change::Metadata, retention, stamp);
            Ok((replaced.await?, transaction))
        })
        .await
    }

    pub async fn set_blob_properties(&self, command: SetBlobProperties) -> Answer<Blob> {
        let SetBlobProperties { path, conditions, lease_id, .. } = &command;
        self.transact_pipelined(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, path).await?;
            let existing = entry.current.clone();
            let before =
                decide_change(existing, conditions, *lease_id, stamp).map_err(Failure::Refused)?;
            let mut blob = with_properties(&before, &command).map_err(Failure::Refused)?;
            if blob.length < before.length {
                let (length, id) = (blob.length, stamp.etag.ticks());
                blob.content = cut_off_pages(&mut transaction, &before, length, id).await?;
            }
            entry.put(&mut transaction, &blob);
            Ok((blob, transaction))
        })
        .await
    }
}

/// `blob` with the properties that are to be set.
fn with_properties(blob: &Blob, command: &SetBlobProperties) -> Result<Blob, BlobRefusal> {
    let mut blob = blob.clone();
    if let Some(headers) = &command.headers {
        blob.headers = headers.replacing_all();
    }
    match (&mut blob.kind, command.sequence) {
        (_, None) => {}
        (Kind::Page { sequence_number, .. }, Some(action)) => {
            let next = action.apply(*sequence_number);
            *sequence_number = next.map_err(|_| BlobRefusal::SequenceNumberTooLarge)?;
        }
        (Kind::Block | Kind::Append { .. }, Some(_)) => return Err(BlobRefusal::WrongKind),
    }
    match (blob.kind, command.length) {
        (_, None) => {}
        (Kind::Page { .. }, Some(length)) => {
            check_length(blob.tier, length)?;
            blob.length = length;
        }
        (Kind::Block | Kind::Append { .. }, Some(_)) => {
            return Err(BlobRefusal::LengthNotChangeable);
        }
    }
    Ok(blob)
}

/// Checks a change; returns the blob before it, with the stamp of the change.
pub(super) fn decide_change(
    existing: Option<Blob>,
    conditions: &Conditions,
    lease_id: Option<LeaseId>,
    stamp: Stamp,
) -> Result<Blob, BlobRefusal> {
    let Some(mut blob) = existing else {
        condition::check_write(conditions, WriteKind::InPlace, None)?;
        return Err(BlobRefusal::NotFound);
    };
    condition::check_write(conditions, WriteKind::InPlace, Some(&blob.subject()))?;
    check_changeable(&blob, stamp.now)?;
    // Of an archived blob only tags and the tier can be changed.
    if blob.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    blob.lease = blob.lease_after(Access::Write, lease_id, stamp.now)?;
    blob.copy = None;
    blob.etag = stamp.etag;
    blob.last_modified = stamp.now;
    Ok(blob)
}
