//! Incremental Copy Blob: a blob that follows the snapshots of a page blob on this server, one by
//! one, with a snapshot of its own for each. It cannot be written in another way, and only its
//! snapshots can be read.

use super::copy::{CopyRefusal, SourceHere, find_source};
use super::entry::BlobEntry;
use super::model::{PastBlob, Role};
use super::{Blob, BlobPath, BlobRefusal, Encryption, Kind, Which, check_key};
use crate::condition::{self, Conditions, WriteKind};
use crate::content;
use crate::copy::{CopyState, CopyStatus, Incremental};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Access, Lease};
use crate::tags::TagSet;
use crate::time::Timestamp;

pub struct CopyIncremental {
    pub path: BlobPath,
    pub source: SourceHere,
    /// As it is shown later.
    pub source_url: String,
    /// Of this copy, and no other.
    pub copy_id: String,
    pub conditions: Conditions,
    /// The caller may create a blob but not replace one.
    pub create_only: bool,
}

impl Domain {
    pub async fn copy_incremental(
        &self,
        command: CopyIncremental,
    ) -> Result<Blob, Failure<CopyRefusal>> {
        let latches = [command.path.latch(), command.source.path.latch()];
        self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, &command.path)
                .await
                .map_err(|failure| failure.map(CopyRefusal::Destination))?;
            let moment = source_moment(&command.source).map_err(Failure::Refused)?;
            let source = find_source(&mut transaction, &command.source)
                .await
                .map_err(|failure| failure.map(CopyRefusal::Source))?;
            let existing = entry.current.as_ref();
            let lease = decide_incremental(existing, &source, moment, &command, stamp)
                .map_err(Failure::Refused)?;
            let encryption = entry
                .encryption(&Encryption::Account)
                .map_err(|refusal| Failure::Refused(refusal.into()))?;
            if let Some(existing) = existing {
                content::release(&mut transaction, &existing.content);
            }
            let id = stamp.etag.ticks();
            let own_moment = Timestamp::from_ticks(id);
            let blob = Blob {
                etag: stamp.etag,
                created: existing.map_or(stamp.now, |existing| existing.created),
                last_modified: stamp.now,
                content: content::share(&mut transaction, &source.content, id).await?,
                tags: TagSet::default(),
                lease,
                version: None,
                tier: None,
                tier_changed: None,
                rehydration: None,
                copy: Some(copy_state(&command, source.length, moment, own_moment, stamp)),
                expires: None,
                immutability: None,
                legal_hold: false,
                encryption,
                ..source
            };
            let content = content::share(&mut transaction, &blob.content, self.fresh_id()).await?;
            let snapshot = Blob { content, lease: Lease::default(), ..blob.clone() };
            let past = PastBlob { blob: snapshot, role: Role::Snapshot, deleted: None };
            entry.put_past(&mut transaction, own_moment, &past);
            entry.put(&mut transaction, &blob);
            Ok((blob, transaction))
        })
        .await
    }
}

fn source_moment(source: &SourceHere) -> Result<Timestamp, CopyRefusal> {
    match source.which {
        Which::Snapshot(moment) => Ok(moment),
        Which::Current | Which::Version(_) => Err(BlobRefusal::IncrementalSourceNotSnapshot.into()),
    }
}

/// Every rule of Incremental Copy Blob; the lease that the destination has.
fn decide_incremental(
    existing: Option<&Blob>,
    source: &Blob,
    moment: Timestamp,
    command: &CopyIncremental,
    stamp: Stamp,
) -> Result<Lease, CopyRefusal> {
    let Kind::Page { .. } = source.kind else {
        return Err(CopyRefusal::Source(BlobRefusal::WrongKind));
    };
    check_key(source, None).map_err(CopyRefusal::Source)?;
    let subject = existing.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::Copy, subject.as_ref())
        .map_err(BlobRefusal::from)?;
    let Some(existing) = existing else { return Ok(Lease::default()) };
    if command.create_only {
        return Err(BlobRefusal::OverwriteNotPermitted.into());
    }
    let last = existing.copy.as_ref().and_then(|copy| copy.incremental);
    check_follows(existing.kind, last, source.kind, moment)?;
    Ok(existing.lease_after(Access::CopyOnto, None, stamp.now)?)
}

/// Whether the snapshot at `moment` of a source can be copied onto a blob whose last incremental
/// copy, if it had one, was `last`.
fn check_follows(
    existing: Kind,
    last: Option<Incremental>,
    source: Kind,
    moment: Timestamp,
) -> Result<(), BlobRefusal> {
    match (last, existing, source) {
        // A destination has the lineage of its source, so a source that was replaced is noticed,
        // too.
        (Some(last), Kind::Page { lineage, .. }, Kind::Page { lineage: same, .. })
            if lineage == same =>
        {
            let later = moment > last.source_snapshot;
            if later { Ok(()) } else { Err(BlobRefusal::IncrementalSnapshotEarlier) }
        }
        (Some(_) | None, _, _) => Err(BlobRefusal::IncrementalOtherSource),
    }
}

fn copy_state(
    command: &CopyIncremental,
    length: u64,
    source_snapshot: Timestamp,
    destination_snapshot: Timestamp,
    stamp: Stamp,
) -> CopyState {
    CopyState {
        id: command.copy_id.clone(),
        source: command.source_url.clone(),
        status: CopyStatus::Success,
        bytes_copied: length,
        bytes_total: length,
        completed: Some(stamp.now),
        failure: None,
        incremental: Some(Incremental {
            source_snapshot,
            destination_snapshot: Some(destination_snapshot),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::SequenceNumber;

    #[test]
    fn incremental_copies_follow_one_source_forwards() {
        let page = |lineage| Kind::Page { sequence_number: SequenceNumber::default(), lineage };
        let moment = Timestamp::from_ticks;
        let last = Some(Incremental { source_snapshot: moment(5), destination_snapshot: None });
        let (other, earlier) =
            (BlobRefusal::IncrementalOtherSource, BlobRefusal::IncrementalSnapshotEarlier);
        for (cell, existing, last, source, at, expected) in [
            ("3.8 the next snapshot", page(1), last, page(1), 6, Ok(())),
            ("3.8 the same snapshot", page(1), last, page(1), 5, Err(earlier.clone())),
            ("3.8 an earlier snapshot", page(1), last, page(1), 4, Err(earlier)),
            ("3.8 another source", page(1), last, page(2), 6, Err(other.clone())),
            ("3.8 no incremental copy before", page(1), None, page(1), 6, Err(other.clone())),
            ("3.8 a block blob", Kind::Block, None, page(1), 6, Err(other)),
        ] {
            assert_eq!(check_follows(existing, last, source, moment(at)), expected, "{cell}");
        }
    }
}
