//! Changes of a blob in place, and its deletion.

use super::target::{Change, Target};
use super::{Blob, BlobPath, BlobRefusal, ContentHeaders, check_changeable, check_key};
use crate::condition::{self, Conditions, DateConditions, WriteKind};
use crate::content::CustomerKey;
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::metadata::Metadata;

pub struct SetBlobMetadata {
    pub path: BlobPath,
    pub metadata: Metadata,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    pub key: Option<CustomerKey>,
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
        let SetBlobMetadata { path, metadata, conditions, lease_id, key } = command;
        self.change_blob(&path, &conditions, lease_id, Change::Metadata, |blob| {
            check_key(blob, key.as_ref())?;
            blob.metadata = metadata.clone();
            Ok(())
        })
        .await
    }

    pub async fn set_blob_properties(&self, command: SetBlobProperties) -> Answer<Blob> {
        let SetBlobProperties { path, headers, conditions, lease_id } = command;
        self.change_blob(&path, &conditions, lease_id, Change::InPlace, |blob| {
            blob.headers = headers.clone();
            Ok(())
        })
        .await
    }

    async fn change_blob(
        &self,
        path: &BlobPath,
        conditions: &Conditions,
        lease_id: Option<LeaseId>,
        change: Change,
        apply: impl Fn(&mut Blob) -> Result<(), BlobRefusal>,
    ) -> Answer<Blob> {
        let keeping = self.keeping(&path.container.account).await?;
        self.transact(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let target = Target::read(&mut transaction, path).await?;
            let existing = target.current.clone();
            let mut blob = decide_change(existing, conditions, Access::Write, lease_id, stamp)
                .map_err(Failure::Refused)?;
            apply(&mut blob).map_err(Failure::Refused)?;
            let replaced = target.replace(&mut transaction, blob, change, keeping, stamp);
            Ok((replaced.await?, transaction))
        })
        .await
    }

    pub async fn delete_blob(&self, command: DeleteBlob) -> Answer<()> {
        let keeping = self.keeping(&command.path.container.account).await?;
        let key = self
            .transact(&[command.path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let target = Target::read(&mut transaction, &command.path).await?;
                let blob = decide_change(
                    target.current.clone(),
                    &command.conditions,
                    Access::Delete,
                    command.lease_id,
                    stamp,
                )
                .map_err(Failure::Refused)?;
                // The tier that a blob begins with is as old as the blob.
                command
                    .tier_conditions
                    .check(blob.tier_changed.unwrap_or(blob.created))
                    .map_err(|_| Failure::Refused(BlobRefusal::ConditionNotMet))?;
                target.remove(&mut transaction, keeping, stamp);
                Ok((target.key(), transaction))
            })
            .await?;
        self.live_leases.forget(&key);
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
    check_changeable(&blob, stamp.now)?;
    blob.lease = blob.lease_after(access, lease_id, stamp.now)?;
    blob.copy = None;
    blob.etag = stamp.etag;
    blob.last_modified = stamp.now;
    Ok(blob)
}
