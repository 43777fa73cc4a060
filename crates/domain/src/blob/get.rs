//! Get Blob and Get Blob Properties.

use std::ops::Range;

use holdfast_store::Snapshot;

use super::entry::find_blob;
use super::{Blob, BlobPath, BlobRefusal, Which, check_key, check_not_incremental};
use crate::condition::{self, CombinationRule, Conditions};
use crate::content::{ContentReader, CustomerKey, ReadRange};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{Access, LeaseId};
use crate::time::Timestamp;

pub struct GetBlob {
    pub path: BlobPath,
    pub which: Which,
    pub conditions: Conditions,
    pub combination: CombinationRule,
    pub lease_id: Option<LeaseId>,
    /// The key that the bytes were encrypted with, if the client has chosen one.
    pub key: Option<CustomerKey>,
}

/// A state of a blob as a reader sees it.
pub struct ReadBlob {
    pub blob: Box<Blob>,
    /// Whether this is the current state of the blob.
    pub current: bool,
    pub now: Timestamp,
}

impl ReadBlob {
    /// Whether the bytes can be read, too.
    pub(super) fn check_bytes(&self) -> Result<(), BlobRefusal> {
        if self.current { check_not_incremental(&self.blob) } else { Ok(()) }
    }
}

pub struct Download {
    pub read: ReadBlob,
    pub range: Range<u64>,
    pub reader: ContentReader,
}

impl Domain {
    pub async fn get_blob_properties(
        &self,
        command: &GetBlob,
    ) -> Result<ReadBlob, Failure<BlobRefusal>> {
        let snapshot = self.engine.snapshot().await?;
        self.read_blob(&*snapshot, command).await
    }

    /// The blob and a reader of its bytes as they are now: whatever is written meanwhile, the
    /// reader sees this state to its end.
    pub async fn get_blob(
        &self,
        command: &GetBlob,
        range: Option<ReadRange>,
    ) -> Result<Download, Failure<BlobRefusal>> {
        let pin = self.extents.pin_all();
        let snapshot = self.engine.snapshot().await?;
        let read = self.read_blob(&*snapshot, command).await?;
        read.check_bytes().map_err(Failure::Refused)?;
        let blob = &read.blob;
        if blob.is_archived() {
            return Err(Failure::Refused(BlobRefusal::Archived));
        }
        let range = decide_range(range, blob.length).map_err(Failure::Refused)?;
        let reader = ContentReader::open(
            &self.extents,
            snapshot,
            pin,
            &blob.content,
            range.clone(),
            command.key.clone(),
        )
        .await?;
        Ok(Download { read, range, reader })
    }

    async fn read_blob(
        &self,
        snapshot: &dyn Snapshot,
        command: &GetBlob,
    ) -> Result<ReadBlob, Failure<BlobRefusal>> {
        let read = self.find_readable(snapshot, command).await?;
        check_key(&read.blob, command.key.as_ref()).map_err(Failure::Refused)?;
        Ok(read)
    }

    /// For a read that does not need the key of the bytes.
    pub(super) async fn find_readable(
        &self,
        snapshot: &dyn Snapshot,
        command: &GetBlob,
    ) -> Result<ReadBlob, Failure<BlobRefusal>> {
        let now = self.now();
        let (blob, current) = find_blob(snapshot, &command.path, command.which, now).await?.unzip();
        let blob = decide_read(blob, command, now).map_err(Failure::Refused)?;
        Ok(ReadBlob { blob, current: current.unwrap_or_default(), now })
    }
}

fn decide_read(
    blob: Option<Box<Blob>>,
    command: &GetBlob,
    now: Timestamp,
) -> Result<Box<Blob>, BlobRefusal> {
    let check = match command.combination {
        CombinationRule::Free => condition::check_read,
        CombinationRule::Pairs => condition::check_read_by_pairs,
    };
    let check = |blob: Option<&Blob>| {
        check(&command.conditions, blob.map(Blob::subject).as_ref())
            .map_err(|refusal| BlobRefusal::of_read(refusal, blob))
    };
    let Some(blob) = blob else {
        check(None)?;
        return Err(BlobRefusal::NotFound);
    };
    blob.lease_after(Access::Read, command.lease_id, now)?;
    check(Some(&blob))?;
    Ok(blob)
}

pub(super) fn decide_range(
    range: Option<ReadRange>,
    length: u64,
) -> Result<Range<u64>, BlobRefusal> {
    match range {
        None => Ok(0..length),
        Some(range) => range.within(length).ok_or(BlobRefusal::InvalidRange { length }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_end_and_refused_past_it() {
        let cases = [
            ("the first byte", 0, Some(0), 10, Some(0..1)),
            ("to the end", 3, None, 10, Some(3..10)),
            ("past the end", 3, Some(99), 10, Some(3..10)),
            ("the largest end", 0, Some(u64::MAX), 10, Some(0..10)),
            ("begins at the end", 10, None, 10, None),
            ("of an empty blob", 0, None, 0, None),
        ];
        for (case, first, last, length, expected) in cases {
            let decided = decide_range(Some(ReadRange { first, last }), length);
            assert_eq!(decided, expected.ok_or(BlobRefusal::InvalidRange { length }), "{case}");
        }
    }
}
