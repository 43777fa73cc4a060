//! Put Blob: a whole block blob in one request.

use super::{AccessTier, Blob, BlobPath, BlobRefusal, ContentHeaders, read_blob};
use crate::condition::{self, Conditions, WriteKind};
use crate::content::{self, Received, Released};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{self, Access, Lease, LeaseId};
use crate::metadata::Metadata;
use crate::rows::Stored;
use crate::tags::TagSet;

pub struct PutBlob {
    pub path: BlobPath,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    pub tags: TagSet,
    /// Without a choice, that of the blob it replaces.
    pub tier: Option<AccessTier>,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    /// The caller may create a blob but not replace one.
    pub create_only: bool,
}

impl Domain {
    pub async fn put_blob(
        &self,
        command: PutBlob,
        received: Received,
    ) -> Result<Blob, Failure<BlobRefusal>> {
        let written = self
            .transact(&[command.path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let (key, existing) = read_blob(&mut transaction, &command.path).await?;
                let lease =
                    decide_put(existing.as_ref(), &command, stamp).map_err(Failure::Refused)?;
                let released = match &existing {
                    Some(existing) => content::release(&mut transaction, &existing.content).await?,
                    None => Released::default(),
                };
                let content = received.claim(&mut transaction, stamp.etag.ticks());
                let (tier, tier_changed) = match (command.tier, &existing) {
                    (Some(chosen), _) => (Some(chosen), Some(stamp.now)),
                    (None, Some(existing)) => (existing.tier, existing.tier_changed),
                    (None, None) => (None, None),
                };
                let blob = Blob {
                    etag: stamp.etag,
                    created: stamp.now,
                    last_modified: stamp.now,
                    length: received.length(),
                    content,
                    headers: command.headers.clone(),
                    metadata: command.metadata.clone(),
                    tags: command.tags.clone(),
                    lease,
                    tier,
                    tier_changed,
                };
                transaction.put(key, blob.encode());
                Ok(((blob, released), transaction))
            })
            .await;
        match written {
            Ok((blob, released)) => {
                released.free(&*self.extents);
                Ok(blob)
            }
            // A row may name the bytes now; if none does, the next start collects them.
            Err(Failure::OutcomeUnknown(fault)) => Err(Failure::OutcomeUnknown(fault)),
            Err(failure) => {
                received.discard();
                Err(failure)
            }
        }
    }
}

/// Every rule of Put Blob; the lease that the new blob has.
fn decide_put(
    existing: Option<&Blob>,
    command: &PutBlob,
    stamp: Stamp,
) -> Result<Lease, BlobRefusal> {
    if existing.is_some() && command.create_only {
        return Err(BlobRefusal::OverwriteNotPermitted);
    }
    let subject = existing.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::Create, subject.as_ref())?;
    let Some(existing) = existing else {
        lease::check_absent(command.lease_id)?;
        return Ok(Lease::default());
    };
    if existing.tier == Some(AccessTier::Archive) {
        return Err(BlobRefusal::Archived);
    }
    existing.lease_after(Access::Write, command.lease_id, stamp.now)
}
