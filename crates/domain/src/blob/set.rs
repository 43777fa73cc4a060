//! Changes of a blob in place, and its deletion.

use super::{Blob, BlobPath, BlobRefusal, ContentHeaders, read_blob};
use crate::condition::{self, Conditions, DateConditions, WriteKind};
use crate::content;
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::metadata::Metadata;
use crate::rows::Stored;

pub struct SetBlobMetadata {
    pub path: BlobPath,
    pub metadata: Metadata,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

pub struct SetBlobProperties {
    pub path: BlobPath,
    /// Replaces all of them, those that are absent too.
    pub headers: ContentHeaders,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

pub struct DeleteBlob {
    pub path: BlobPath,
    pub conditions: Conditions,
    /// Held against the time of the last change of tier.
    pub tier_conditions: DateConditions,
    pub lease_id: Option<LeaseId>,
}

type Answer<T> = Result<T, Failure<BlobRefusal>>;

impl Domain {
    pub async fn set_blob_metadata(&self, command: SetBlobMetadata) -> Answer<Blob> {
        self.change_blob(&command.path, &command.conditions, command.lease_id, |blob| {
            blob.metadata = command.metadata.clone();
        })
        .await
    }

    pub async fn set_blob_properties(&self, command: SetBlobProperties) -> Answer<Blob> {
        self.change_blob(&command.path, &command.conditions, command.lease_id, |blob| {
            blob.headers = command.headers.clone();
        })
        .await
    }

    async fn change_blob(
        &self,
        path: &BlobPath,
        conditions: &Conditions,
        lease_id: Option<LeaseId>,
        change: impl Fn(&mut Blob),
    ) -> Answer<Blob> {
        self.transact(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let (key, existing) = read_blob(&mut transaction, path).await?;
            let mut blob = decide_change(existing, conditions, Access::Write, lease_id, stamp)
                .map_err(Failure::Refused)?;
            change(&mut blob);
            transaction.put(key, blob.encode());
            Ok((blob, transaction))
        })
        .await
    }

    pub async fn delete_blob(&self, command: DeleteBlob) -> Answer<()> {
        let (key, released) = self
            .transact(&[command.path.latch()], async |mut transaction| {
                let (key, existing) = read_blob(&mut transaction, &command.path).await?;
                let blob = decide_change(
                    existing,
                    &command.conditions,
                    Access::Delete,
                    command.lease_id,
                    self.stamp(),
                )
                .map_err(Failure::Refused)?;
                // The tier that a blob begins with is as old as the blob.
                command
                    .tier_conditions
                    .check(blob.tier_changed.unwrap_or(blob.created))
                    .map_err(|_| Failure::Refused(BlobRefusal::ConditionNotMet))?;
                let released = content::release(&mut transaction, &blob.content).await?;
                transaction.delete(key.clone());
                Ok(((key, released), transaction))
            })
            .await?;
        self.live_leases.forget(&key);
        released.free(&*self.extents);
        Ok(())
    }
}

/// The blob as a permitted change finds it, with the stamp of the change.
fn decide_change(
    existing: Option<Blob>,
    conditions: &Conditions,
    access: Access,
    lease_id: Option<LeaseId>,
    stamp: Stamp,
) -> Result<Blob, BlobRefusal> {
    let Some(mut blob) = existing else {
        condition::check_write(conditions, WriteKind::InPlace, None)?;
        return Err(BlobRefusal::NotFound);
    };
    condition::check_write(conditions, WriteKind::InPlace, Some(&blob.subject()))?;
    blob.lease = blob.lease_after(access, lease_id, stamp.now)?;
    blob.etag = stamp.etag;
    blob.last_modified = stamp.now;
    Ok(blob)
}
