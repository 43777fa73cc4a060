//! The Blob service: containers and blobs.
//!
//! Each operation reads what it needs in a transaction, decides with a pure function and writes
//! rows; decisions and their tests are in the file of the operation.

mod append;
mod block;
mod container;
mod copy;
mod delete;
mod deleted_container;
mod earlier_formats;
mod entry;
mod expiry;
mod find_by_tags;
mod garbage;
mod get;
mod immutability;
mod incremental_copy;
mod lease;
mod list;
mod list_containers;
mod model;
mod page;
mod pending_copy;
mod properties;
mod put;
pub(crate) mod rows;
mod snapshot;
mod tags;
mod tier;

pub use append::{AppendBlock, Appended, SealAppendBlob};
pub(crate) use block::drop_idle_upload;
pub use block::{
    BlockId, BlockList, BlockListEntry, BlockSource, BlockTypes, GetBlockList, ListedBlock,
    PutBlock,
};
pub use container::{
    ContainerPath, ContainerRefusal, CreateContainer, DeleteContainer, LeaseContainer,
    RenameContainer, SetContainerAcl, SetContainerMetadata,
};
pub(crate) use copy::read_source;
pub use copy::{CopiedTags, CopyBlob, CopyRefusal, CopySource, Manner, SourceHere};
pub use delete::{DeleteBlob, DeleteSnapshots, Deleted};
pub(crate) use deleted_container::purge_container;
pub use deleted_container::{DeletedContainer, RestoreContainer};
pub(crate) use entry::{purge_retained, remove_expired};
pub use expiry::{Expiry, SetBlobExpiry};
pub use find_by_tags::{FindBlobs, FindRefusal, FoundBlob, FoundBlobs};
pub use get::{Download, GetBlob, ReadBlob};
pub use immutability::{DeleteImmutabilityPolicy, SetImmutabilityPolicy, SetLegalHold};
pub use incremental_copy::CopyIncremental;
pub use lease::LeaseBlob;
pub use list::{BlobListing, ListBlobs, Listed, ListedBlob, ListedState, Position, Show};
pub use list_containers::{ContainerListing, ListContainers, ListedContainer, ListedDeletion};
pub(crate) use model::ContainerPlace;
pub use model::{
    AccessTier, Blob, Container, Deletion, Encryption, Immutability, Kind, PastBlob,
    RehydratePriority, Rehydration, Role, ScopePolicy, Upload, Which,
};
pub use page::{
    GetPageRanges, PUT_PAGES_BYTES_MAX, PageChange, PageRange, PageRanges, PutPages,
    is_page_blob_length,
};
pub use pending_copy::AbortCopy;
pub(crate) use pending_copy::fail_interrupted;
pub use properties::{SetBlobMetadata, SetBlobProperties};
pub use put::{NewBlob, PutBlob};
pub use snapshot::{SnapshotBlob, Snapshotted};
pub use tags::{GetBlobTags, SetBlobTags};
pub use tier::{SetBlobTier, TierOutcome};

use bytes::{BufMut, Bytes, BytesMut};

use crate::condition::{self, AppendRefusal};
use crate::content::CustomerKey;
use crate::copy::CopyStatus;
use crate::etag::ETag;
use crate::lease::{AccessRefusal, LeaseRefusal};
use crate::names::BlobName;
use crate::time::Timestamp;

/// Which blob: names that have been checked.
#[derive(Clone, Debug)]
pub struct BlobPath {
    pub container: ContainerPath,
    pub blob: BlobName,
}

impl BlobPath {
    /// The key of the latch for writers to this blob: its name, since its row key is not known
    /// before its container has been read.
    fn latch(&self) -> Bytes {
        let mut latch = BytesMut::from(self.container.key());
        latch.put_u8(0);
        latch.put_slice(self.blob.as_str().as_bytes());
        latch.freeze()
    }
}

/// Whether a blob may be changed at all, no matter by which request.
fn check_changeable(blob: &Blob, now: Timestamp) -> Result<(), BlobRefusal> {
    check_not_copied_onto(blob)?;
    check_not_held(blob, now)
}

/// Whether more than incremental copies can be made of a blob.
fn check_not_incremental(blob: &Blob) -> Result<(), BlobRefusal> {
    let incremental = blob.copy.as_ref().is_some_and(|copy| copy.incremental.is_some());
    if incremental { Err(BlobRefusal::IncrementalCopyOnly) } else { Ok(()) }
}

/// Whether a request that reads or writes the bytes of `blob` has their key.
fn check_key(blob: &Blob, given: Option<&CustomerKey>) -> Result<(), BlobRefusal> {
    match (&blob.encryption, given) {
        (Encryption::Account | Encryption::Scope(_), None) => Ok(()),
        (Encryption::CustomerKey { sha256 }, Some(key)) if key.sha256() == *sha256 => Ok(()),
        (Encryption::Account | Encryption::CustomerKey { .. } | Encryption::Scope(_), _) => {
            Err(BlobRefusal::OtherKey)
        }
    }
}

/// Refuses a blob that a pending copy is writing.
fn check_not_copied_onto(blob: &Blob) -> Result<(), BlobRefusal> {
    check_not_incremental(blob)?;
    check_no_copy_pending(blob)
}

fn check_no_copy_pending(blob: &Blob) -> Result<(), BlobRefusal> {
    match &blob.copy {
        Some(copy) if copy.status == CopyStatus::Pending => Err(BlobRefusal::CopyPending),
        Some(_) | None => Ok(()),
    }
}

/// Whether a policy or a legal hold prevents changes of a blob.
fn check_not_held(blob: &Blob, now: Timestamp) -> Result<(), BlobRefusal> {
    if blob.legal_hold {
        return Err(BlobRefusal::LegalHold);
    }
    if blob.immutability.is_some_and(|policy| policy.until > now) {
        return Err(BlobRefusal::Immutable);
    }
    Ok(())
}

/// Every outcome of an operation on a blob, other than success, that a client can tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobRefusal {
    ContainerNotFound,
    NotFound,
    /// `If-None-Match: *` on a write that creates.
    AlreadyExists,
    /// The caller may create blobs but not replace them.
    OverwriteNotPermitted,
    /// The bytes of an archived blob can be neither read nor replaced.
    Archived,
    /// The operation is for blobs of another kind.
    WrongKind,
    /// The blob has snapshots, and the request does not mention them.
    SnapshotsPresent,
    /// The current version is deleted as the blob, not by its id.
    CurrentVersion,
    /// Permanent deletion is not allowed in the account.
    PermanentDeleteNotAllowed,
    /// Only what is deleted and can be restored can be deleted permanently.
    NotDeleted,
    CopyPending,
    NoCopyPending,
    CopyIdMismatch,
    /// The blob is written by incremental copies only.
    IncrementalCopyOnly,
    /// An incremental copy is made of a snapshot.
    IncrementalSourceNotSnapshot,
    /// The blob does not come from incremental copies of this source.
    IncrementalOtherSource,
    /// A snapshot that is not older than this one has been copied already.
    IncrementalSnapshotEarlier,
    /// The container fixes another encryption scope.
    ScopeNotAllowed,
    /// The request does not have the key that the bytes are encrypted with.
    OtherKey,
    Immutable,
    LegalHold,
    /// A policy or an expiry whose time has come already.
    DateNotInFuture,
    /// The blob is being rehydrated to another tier than the one asked for.
    BeingRehydrated,
    /// A snapshot cannot be rehydrated.
    SnapshotStaysArchived,
    /// A page blob never goes to a lower tier.
    LowerTier,
    /// The page blob is too long for the tier.
    TierTooSmall,
    /// The page blob would become too long for the tier that it is in.
    LengthOverTier,
    /// A page blob in a tier has no more snapshots than this.
    TooManySnapshots,
    /// A page blob in a tier has its next snapshot only some time after the last.
    SnapshotTooSoon,
    /// The tier is not for blobs of this kind.
    TierOfOtherKind,
    /// The condition on the tags of the source of a copy.
    SourceTagsNotMet,
    /// No more blocks fit into the blob.
    TooManyBlocks,
    /// No more blocks may wait to be committed.
    TooManyUncommittedBlocks,
    /// The ids of the blocks of one blob are of equal length.
    BlockIdLength,
    BlockListTooLong,
    /// The list names a block that is not there, or one block in two ways.
    InvalidBlockList,
    /// Nothing is appended to a blob that is sealed.
    Sealed,
    AppendConditionNotMet(AppendRefusal),
    /// A read whose blob has not changed since the state that the client knows.
    NotModified {
        etag: ETag,
        last_modified: Timestamp,
    },
    ConditionNotMet,
    /// The same, on the destination of a copy.
    TargetConditionNotMet,
    /// `If-None-Match: *` on a read can never be met.
    UnsatisfiableCondition,
    /// The range begins at or past the end of a blob of this length.
    InvalidRange {
        length: u64,
    },
    /// Pages past the end of the blob.
    InvalidPageRange,
    /// The bytes are more or fewer than those of the pages they are for.
    PagesLengthMismatch,
    SequenceConditionNotMet,
    /// There is no sequence number after the stored one.
    SequenceNumberTooLarge,
    /// Only a page blob can be given another length.
    LengthNotChangeable,
    PreviousSnapshotNotFound,
    /// The snapshot to compare with is not older than what is compared with it.
    PreviousSnapshotNewer,
    /// The blob was replaced by another since the snapshot to compare with.
    Overwritten,
    LeaseAccess(AccessRefusal),
    LeaseAction(LeaseRefusal),
}

impl From<AccessRefusal> for BlobRefusal {
    fn from(refusal: AccessRefusal) -> Self {
        Self::LeaseAccess(refusal)
    }
}

impl From<AppendRefusal> for BlobRefusal {
    fn from(refusal: AppendRefusal) -> Self {
        Self::AppendConditionNotMet(refusal)
    }
}

impl BlobRefusal {
    /// Why a read of `blob` is refused.
    fn of_read(refusal: condition::ReadRefusal, blob: Option<&Blob>) -> Self {
        match (refusal, blob) {
            (condition::ReadRefusal::NotModified, Some(blob)) => {
                Self::NotModified { etag: blob.etag, last_modified: blob.last_modified }
            }
            (condition::ReadRefusal::NotModified, None) => Self::NotFound,
            (condition::ReadRefusal::NotMet, _) => Self::ConditionNotMet,
            (condition::ReadRefusal::Unsatisfiable, _) => Self::UnsatisfiableCondition,
        }
    }
}

impl From<condition::WriteRefusal> for BlobRefusal {
    fn from(refusal: condition::WriteRefusal) -> Self {
        match refusal {
            condition::WriteRefusal::NotMet => Self::ConditionNotMet,
            condition::WriteRefusal::TargetNotMet => Self::TargetConditionNotMet,
            condition::WriteRefusal::AlreadyExists => Self::AlreadyExists,
        }
    }
}
