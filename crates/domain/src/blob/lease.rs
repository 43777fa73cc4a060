//! Lease Blob.

use super::entry::BlobEntry;
use super::{Blob, BlobPath, BlobRefusal, check_not_incremental};
use crate::condition::{self, Conditions, WriteKind};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{self, LeaseAction, LeaseId, LeaseKind, LeaseOutcome};
use crate::time::Timestamp;

pub struct LeaseBlob {
    pub path: BlobPath,
    pub action: LeaseAction,
    /// The id of the lease, if this acquires one without proposing an id.
    pub fresh_id: LeaseId,
    pub conditions: Conditions,
}

impl Domain {
    pub async fn lease_blob(
        &self,
        command: LeaseBlob,
    ) -> Result<(Blob, LeaseOutcome), Failure<BlobRefusal>> {
        let (key, blob, outcome) = self
            .transact(&[command.path.latch()], async |mut transaction| {
                let entry = BlobEntry::read(&mut transaction, &command.path).await?;
                let (blob, outcome) = decide_lease(entry.current.clone(), &command, self.now())
                    .map_err(Failure::Refused)?;
                entry.put(&mut transaction, &blob);
                Ok(((entry.key(), blob, outcome), transaction))
            })
            .await?;
        self.live_leases.note(key, &blob.lease, self.now());
        Ok((blob, outcome))
    }
}

fn decide_lease(
    existing: Option<Blob>,
    command: &LeaseBlob,
    now: Timestamp,
) -> Result<(Blob, LeaseOutcome), BlobRefusal> {
    let Some(mut blob) = existing else {
        condition::check_write(&command.conditions, WriteKind::InPlace, None)?;
        return Err(BlobRefusal::NotFound);
    };
    condition::check_write(&command.conditions, WriteKind::InPlace, Some(&blob.subject()))?;
    check_not_incremental(&blob)?;
    if blob.is_copy_pending() {
        return Err(BlobRefusal::CopyPending);
    }
    let decided =
        lease::decide(&blob.lease, command.action, LeaseKind::Blob, command.fresh_id, now)
            .map_err(BlobRefusal::LeaseAction)?;
    blob.lease = decided.lease;
    Ok((blob, decided.outcome))
}
