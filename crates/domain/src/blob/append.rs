//! Append blobs: Append Block and Append Blob Seal.

use super::block::COMMITTED_BLOCKS_MAX;
use super::entry::BlobEntry;
use super::model::{Blob, Kind};
use super::properties::decide_change;
use super::{BlobPath, BlobRefusal, Encryption};
use crate::condition::{AppendConditions, Conditions};
use crate::content::{Entry, Map, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::LeaseId;

pub struct AppendBlock {
    pub path: BlobPath,
    /// By [`Domain::receive_part`].
    pub content: Received,
    pub conditions: Conditions,
    pub append_conditions: AppendConditions,
    pub lease_id: Option<LeaseId>,
    /// The key that the content is encrypted with, if the client has chosen one.
    pub encryption: Encryption,
}

pub struct SealAppendBlob {
    pub path: BlobPath,
    pub conditions: Conditions,
    pub append_conditions: AppendConditions,
    pub lease_id: Option<LeaseId>,
}

pub struct Appended {
    pub blob: Blob,
    /// Where the block begins.
    pub offset: u64,
    /// Including this one.
    pub blocks: u32,
}

impl Domain {
    pub async fn append_block(
        &self,
        command: AppendBlock,
    ) -> Result<Appended, Failure<BlobRefusal>> {
        let AppendBlock { path, content, conditions, append_conditions, lease_id, encryption } =
            command;
        let length = content.length();
        let written = self
            .transact_pipelined(&[path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let entry = BlobEntry::read(&mut transaction, &path).await?;
                let existing = entry.current.clone();
                let (mut blob, before) =
                    decide_append_change(existing, &conditions, lease_id, stamp)
                        .map_err(Failure::Refused)?;
                entry.check_encryption(&blob, &encryption).map_err(Failure::Refused)?;
                let offset = blob.length;
                let blocks = decide_append(before, offset, length, append_conditions)
                    .map_err(Failure::Refused)?;
                let id = stamp.etag.ticks();
                let map = Map::own(&mut transaction, &blob.content, id).await?;
                let part = content.claim_part(&mut transaction);
                map.append(&mut transaction, offset, &Entry::whole(part, id));
                blob.content = map.content();
                blob.length = offset + length;
                blob.kind = Kind::Append { blocks, sealed: false };
                entry.put(&mut transaction, &blob);
                Ok((Appended { blob, offset, blocks }, transaction))
            })
            .await;
        content.conclude(written)
    }

    /// Seals the blob: nothing can be appended any more. Sealing again changes nothing.
    pub async fn seal_append_blob(
        &self,
        command: SealAppendBlob,
    ) -> Result<Blob, Failure<BlobRefusal>> {
        let SealAppendBlob { path, conditions, append_conditions, lease_id } = command;
        self.transact_pipelined(&[path.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let entry = BlobEntry::read(&mut transaction, &path).await?;
            let existing = entry.current.clone();
            let (mut blob, before) = decide_append_change(existing, &conditions, lease_id, stamp)
                .map_err(Failure::Refused)?;
            append_conditions
                .check(blob.length, 0)
                .map_err(|refusal| Failure::Refused(refusal.into()))?;
            if let (true, Some(sealed)) = (before.sealed, &entry.current) {
                return Ok((sealed.clone(), transaction));
            }
            blob.kind = Kind::Append { blocks: before.blocks, sealed: true };
            entry.put(&mut transaction, &blob);
            Ok((blob, transaction))
        })
        .await
    }
}

/// The state that only append blobs have.
#[derive(Clone, Copy)]
struct AppendState {
    blocks: u32,
    sealed: bool,
}

/// Checks a change; returns the append blob before it, with the stamp of the change.
fn decide_append_change(
    existing: Option<Blob>,
    conditions: &Conditions,
    lease_id: Option<LeaseId>,
    stamp: Stamp,
) -> Result<(Blob, AppendState), BlobRefusal> {
    let before = match existing.as_ref().map(|blob| blob.kind) {
        Some(Kind::Append { blocks, sealed }) => AppendState { blocks, sealed },
        Some(Kind::Block | Kind::Page { .. }) => return Err(BlobRefusal::WrongKind),
        None => AppendState { blocks: 0, sealed: false },
    };
    Ok((decide_change(existing, conditions, lease_id, stamp)?, before))
}

/// How many blocks the blob has after the append.
fn decide_append(
    before: AppendState,
    blob_length: u64,
    block_length: u64,
    conditions: AppendConditions,
) -> Result<u32, BlobRefusal> {
    if before.sealed {
        return Err(BlobRefusal::Sealed);
    }
    conditions.check(blob_length, block_length)?;
    if before.blocks >= COMMITTED_BLOCKS_MAX {
        return Err(BlobRefusal::TooManyBlocks);
    }
    Ok(before.blocks + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::AppendRefusal;

    #[test]
    fn an_append_is_refused_by_a_seal_its_conditions_and_the_number_of_blocks() {
        let at = |position| AppendConditions { position: Some(position), ..Default::default() };
        let open = |blocks| AppendState { blocks, sealed: false };
        let sealed = AppendState { blocks: 1, sealed: true };
        let moved = BlobRefusal::AppendConditionNotMet(AppendRefusal::PositionNotMet);
        for (cell, before, conditions, expected) in [
            ("3.4 the first block", open(0), at(10), Ok(1)),
            ("3.4 the 50,000th block", open(49_999), at(10), Ok(50_000)),
            ("3.4 over 50,000 blocks", open(50_000), at(10), Err(BlobRefusal::TooManyBlocks)),
            ("3.4 sealed", sealed, at(10), Err(BlobRefusal::Sealed)),
            ("1.8 appendpos", open(1), at(9), Err(moved)),
        ] {
            assert_eq!(decide_append(before, 10, 5, conditions), expected, "{cell}");
        }
    }
}
