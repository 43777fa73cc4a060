//! Get and Set Blob Tags. Changing tags does not modify the blob otherwise.

use super::entry::{BlobEntry, Found, find_blob};
use super::{Blob, BlobPath, BlobRefusal, Which, check_not_copied_onto};
use crate::condition::{self, Conditions, WriteKind};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::tags::TagSet;
use crate::time::Timestamp;

pub struct GetBlobTags {
    pub path: BlobPath,
    pub which: Which,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

pub struct SetBlobTags {
    pub path: BlobPath,
    pub which: Which,
    /// All tags of the blob from now on.
    pub tags: TagSet,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    pub async fn get_blob_tags(
        &self,
        command: GetBlobTags,
    ) -> Result<TagSet, Failure<BlobRefusal>> {
        let now = self.now();
        let snapshot = self.engine.snapshot().await?;
        let found = find_blob(&*snapshot, &command.path, command.which, now).await?;
        let blob = found.map(|(blob, _)| blob);
        decide_get_tags(blob.as_deref(), &command, now).map_err(Failure::Refused)?;
        Ok(blob.map(|blob| blob.tags).unwrap_or_default())
    }

    pub async fn set_blob_tags(&self, command: SetBlobTags) -> Result<(), Failure<BlobRefusal>> {
        self.transact_pipelined(&[command.path.latch()], async |mut transaction| {
            let entry = BlobEntry::read(&mut transaction, &command.path).await?;
            let found = entry.find(&mut transaction, command.which).await?;
            decide_tags(found.as_ref().map(Found::blob), &command, transaction.now)
                .map_err(Failure::Refused)?;
            match found {
                None => {}
                Some(Found::Current(blob)) => {
                    let tagged = Blob { tags: command.tags.clone(), ..blob };
                    entry.put(&mut transaction, &tagged);
                }
                Some(Found::PastBlob(moment, past)) => {
                    entry.put_past_tags(&mut transaction, moment, past, &command.tags);
                }
            }
            Ok(((), transaction))
        })
        .await
    }
}

fn decide_get_tags(
    blob: Option<&Blob>,
    command: &GetBlobTags,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    condition::check_read_by_pairs(&command.conditions, blob.map(Blob::subject).as_ref())
        .map_err(|refusal| BlobRefusal::of_read(refusal, blob))?;
    let blob = blob.ok_or(BlobRefusal::NotFound)?;
    blob.lease_after(Access::Read, command.lease_id, now)?;
    Ok(())
}

/// Every rule of Set Blob Tags. Neither the archive tier nor a policy prevents changes of tags.
fn decide_tags(
    blob: Option<&Blob>,
    command: &SetBlobTags,
    now: Timestamp,
) -> Result<(), BlobRefusal> {
    let subject = blob.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::InPlace, subject.as_ref())?;
    let blob = blob.ok_or(BlobRefusal::NotFound)?;
    check_not_copied_onto(blob)?;
    blob.lease_after(Access::WriteBeside, command.lease_id, now)?;
    Ok(())
}
