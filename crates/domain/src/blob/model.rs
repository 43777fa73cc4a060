//! The rows of the Blob service.

use serde::{Deserialize, Serialize};

use crate::access::{PublicAccess, StoredPolicy};
use crate::condition::{self, SequenceNumber};
use crate::content::{Content, ContentHeaders, Part};
use crate::copy::{CopyState, CopyStatus};
use crate::etag::ETag;
use crate::lease::{self, Access, Lease, LeaseId, LeaseKind};
use crate::metadata::Metadata;
use crate::rows::Stored;
use crate::tags::TagSet;
use crate::time::Timestamp;

use super::{BlobRefusal, check_not_held, earlier_formats};

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
    pub scope: ScopePolicy,
}

/// The encryption scope of the blobs in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopePolicy {
    /// For blobs that name none.
    pub default: Option<String>,
    /// A blob can have no other.
    pub fixed: bool,
}

impl Stored for Container {
    const FORMAT: u8 = 2;
    const WHAT: &'static str = "a container";
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    pub kind: Kind,
    pub etag: ETag,
    pub created: Timestamp,
    pub last_modified: Timestamp,
    pub length: u64,
    pub(crate) content: Content,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    pub tags: TagSet,
    pub lease: Lease,
    /// Given by the change that made this state, if versions were kept then.
    pub version: Option<Timestamp>,
    /// The client's choice; without one the account's default applies.
    pub tier: Option<AccessTier>,
    /// When the tier was last chosen.
    pub tier_changed: Option<Timestamp>,
    /// While the blob is being rehydrated.
    pub rehydration: Option<Rehydration>,
    /// The copy that made this state, or that is pending.
    pub copy: Option<CopyState>,
    /// From then on the blob does not exist.
    pub expires: Option<Timestamp>,
    pub immutability: Option<Immutability>,
    pub legal_hold: bool,
    pub encryption: Encryption,
    /// What a client keeps with the blob for its own encryption; nothing here depends on it.
    pub encryption_context: Option<String>,
}

impl Stored for Blob {
    const FORMAT: u8 = 3;
    const WHAT: &'static str = "a blob";

    fn decode_earlier(format: u8, row: &[u8]) -> Option<Result<Self, postcard::Error>> {
        let without_context = || postcard::from_bytes::<earlier_formats::Blob2>(row);
        (format == 2).then(|| without_context().map(Self::from))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Block,
    Page {
        sequence_number: SequenceNumber,
        /// Unique to the write that created the blob; snapshots of it have the same.
        lineage: u64,
    },
    Append {
        blocks: u32,
        sealed: bool,
    },
}

impl Kind {
    /// Whether both are of the same kind, whatever their other fields.
    pub(super) fn is_alike(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Where the container with a certain number is found. The row outlives the deletion of the
/// container until everything in it is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContainerPlace {
    pub account: String,
    pub name: String,
}

impl Stored for ContainerPlace {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "the place of a container";
}

/// Where a blob's bytes are kept. They are all kept alike here, but an archived blob must be
/// brought back before it can be read. The `P…` tiers are those of page blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessTier {
    Hot,
    Cool,
    Cold,
    Archive,
    Smart,
    P4,
    P6,
    P10,
    P15,
    P20,
    P30,
    P40,
    P50,
    P60,
    P70,
    P80,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    pub to: AccessTier,
    pub priority: RehydratePriority,
    /// When the blob has reached the tier.
    pub until: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RehydratePriority {
    Standard,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Immutability {
    pub until: Timestamp,
    pub locked: bool,
}

/// Whose key the bytes are encrypted with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    #[default]
    Account,
    /// The client's, of which only the digest is known.
    CustomerKey {
        sha256: [u8; 32],
    },
    Scope(String),
}

impl Encryption {
    /// The digest of the client's key, if it is one.
    pub(super) fn key_sha256(&self) -> Option<[u8; 32]> {
        match self {
            Self::CustomerKey { sha256 } => Some(*sha256),
            Self::Account | Self::Scope(_) => None,
        }
    }
}

impl Blob {
    pub(super) fn subject(&self) -> condition::Subject<'_> {
        condition::Subject { etag: self.etag, last_modified: self.last_modified, tags: &self.tags }
    }

    /// The lease to store after an access that it permits.
    pub(super) fn lease_after(
        &self,
        access: Access,
        given: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<Lease, BlobRefusal> {
        let after = lease::check_access(&self.lease, access, given, LeaseKind::Blob, now)?;
        Ok(after.apply(&self.lease))
    }

    pub(super) fn is_copy_pending(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
    }

    /// This state as of `now`: a rehydration ends by itself.
    pub(super) fn at(mut self, now: Timestamp) -> Self {
        self.advance(now);
        self
    }

    /// As [`Blob::at`], in its place.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if let Some(rehydration) = self.rehydration
            && rehydration.until <= now
        {
            self.tier = Some(rehydration.to);
            self.tier_changed = Some(rehydration.until);
            self.rehydration = None;
        }
    }

    /// A blob that is held does not expire.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now) && check_not_held(self, now).is_ok()
    }

    pub fn is_archived(&self) -> bool {
        self.tier == Some(AccessTier::Archive)
    }

    /// The id of this state among the versions of its blob.
    pub(super) fn version_id(&self) -> Timestamp {
        self.version.unwrap_or(Timestamp::from_ticks(self.etag.ticks()))
    }
}

/// An earlier state of a blob, keyed by its name and a unique moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PastBlob {
    pub blob: Blob,
    pub role: Role,
    /// It can be restored, and nothing else.
    pub deleted: Option<Deletion>,
}

impl Stored for PastBlob {
    const FORMAT: u8 = 2;
    const WHAT: &'static str = "an earlier state of a blob";

    fn decode_earlier(format: u8, row: &[u8]) -> Option<Result<Self, postcard::Error>> {
        let without_context = || postcard::from_bytes::<earlier_formats::Past1>(row);
        (format == 1).then(|| without_context().map(Self::from))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    Snapshot,
    Version,
    /// What was deleted or overwritten. While there is no blob, the latest one is the deleted blob;
    /// all others are deleted snapshots.
    Replaced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    pub at: Timestamp,
    /// When it is removed permanently.
    pub until: Timestamp,
}

/// The blocks of a blob that are not committed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upload {
    /// The number that its blocks are kept under.
    pub(crate) id: u64,
    pub created: Timestamp,
    pub last_activity: Timestamp,
    pub block_id_bytes: u8,
    pub blocks: u32,
    /// The digest of the client's key that all of them are encrypted with, if it has chosen one.
    pub(crate) key_sha256: Option<[u8; 32]>,
}

impl Stored for Upload {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "blocks that are not committed";
}

/// A block that is not committed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Block {
    pub part: Part,
}

impl Stored for Block {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a block";
}

/// Which state of a blob is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    Current,
    Snapshot(Timestamp),
    Version(Timestamp),
}
