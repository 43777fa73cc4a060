//! The Blob service: containers and blobs.
//!
//! Each operation reads what it needs in a transaction, decides with a pure function and writes
//! rows; the decisions and their tests stand beside the operation.

mod container;
mod get;
mod lease;
mod list;
mod put;
mod set;

pub use container::{
    ContainerPath, ContainerRefusal, CreateContainer, DeleteContainer, LeaseContainer,
    SetContainerAcl, SetContainerMetadata,
};
pub use get::{Download, GetBlob, ReadRange};
pub use lease::LeaseBlob;
pub use list::{BlobListing, ContainerListing, ListBlobs, ListContainers, Listed};
pub use put::PutBlob;
pub use set::{DeleteBlob, SetBlobMetadata, SetBlobProperties};

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::access::{PublicAccess, StoredPolicy};
use crate::condition;
use crate::content::Content;
use crate::domain::read;
use crate::etag::ETag;
use crate::failure::Failure;
use crate::lease::{
    self as leases, Access, AccessRefusal, Lease, LeaseId, LeaseKind, LeaseRefusal,
};
use crate::metadata::Metadata;
use crate::names::BlobName;
use crate::rows::{self, Stored};
use crate::tags::TagSet;
use crate::time::Timestamp;
use crate::transact::Transaction;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Container {
    /// Unique over all containers there ever were, so that a container created again under its
    /// old name does not see the blobs of the one before.
    pub(crate) id: u64,
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub metadata: Metadata,
    pub public_access: PublicAccess,
    pub policies: Vec<StoredPolicy>,
    pub lease: Lease,
}

impl Stored for Container {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a container";
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    pub etag: ETag,
    pub created: Timestamp,
    pub last_modified: Timestamp,
    pub length: u64,
    pub(crate) content: Content,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    pub tags: TagSet,
    pub lease: Lease,
    /// As the client chose it; without a choice the account's default holds.
    pub tier: Option<AccessTier>,
    /// When the tier was last chosen.
    pub tier_changed: Option<Timestamp>,
}

/// Where a block blob's bytes are kept. They are all kept alike here, but an archived blob must be
/// brought back before it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessTier {
    Hot,
    Cool,
    Cold,
    Archive,
    Smart,
}

impl Stored for Blob {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a blob";
}

impl Blob {
    fn subject(&self) -> condition::Subject<'_> {
        condition::Subject { etag: self.etag, last_modified: self.last_modified, tags: &self.tags }
    }

    /// The lease that is left after an access that it permits.
    fn lease_after(
        &self,
        access: Access,
        given: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<Lease, BlobRefusal> {
        let after = leases::check_access(&self.lease, access, given, LeaseKind::Blob, now)?;
        Ok(after.apply(&self.lease))
    }
}

/// The headers a client stores with a blob and gets back with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHeaders {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    pub content_disposition: Option<String>,
    pub cache_control: Option<String>,
    pub content_md5: Option<[u8; 16]>,
}

/// Which blob: names that have been checked.
#[derive(Clone, Debug)]
pub struct BlobPath {
    pub container: ContainerPath,
    pub blob: BlobName,
}

impl BlobPath {
    /// What writers to this blob line up by: its name, since its key is not known before its
    /// container has been read.
    fn latch(&self) -> Bytes {
        let mut latch = BytesMut::from(self.container.key());
        latch.put_u8(0);
        latch.put_slice(self.blob.as_str().as_bytes());
        latch.freeze()
    }
}

/// The key of a blob and its row, if its container exists.
async fn read_blob(
    transaction: &mut Transaction,
    path: &BlobPath,
) -> Result<(Bytes, Option<Blob>), Failure<BlobRefusal>> {
    let container: Option<Container> = read(transaction, &path.container.key()).await?;
    let container = container.ok_or(Failure::Refused(BlobRefusal::ContainerNotFound))?;
    let key = rows::blob(container.id, path.blob.as_str());
    let blob = read(transaction, &key).await?;
    Ok((key, blob))
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
    /// A read whose blob has not changed since the state that the client knows.
    NotModified {
        etag: ETag,
        last_modified: Timestamp,
    },
    ConditionNotMet,
    /// `If-None-Match: *` on a read can never be met.
    UnsatisfiableCondition,
    /// The range begins at or past the end of a blob of this length.
    InvalidRange {
        length: u64,
    },
    LeaseAccess(AccessRefusal),
    LeaseAction(LeaseRefusal),
}

impl From<AccessRefusal> for BlobRefusal {
    fn from(refusal: AccessRefusal) -> Self {
        Self::LeaseAccess(refusal)
    }
}

impl BlobRefusal {
    /// Why a read of `blob` does not go on.
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
            condition::WriteRefusal::NotMet | condition::WriteRefusal::TargetNotMet => {
                Self::ConditionNotMet
            }
            condition::WriteRefusal::AlreadyExists => Self::AlreadyExists,
        }
    }
}
