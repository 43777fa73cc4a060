//! Put Blob: a whole block blob in one request, or an empty page or append blob. Put Block List: a
//! block blob made of existing blocks.

use std::borrow::Cow;

use super::block::{self, BlockListEntry};
use super::entry::{BlobEntry, Change, Retention};
use super::expiry::Expiry;
use super::immutability::check_policy;
use super::model::{Blob, Encryption, Immutability, Kind};
use super::tier::check_tier;
use super::{AccessTier, BlobPath, BlobRefusal, check_changeable};
use crate::condition::{self, Conditions, ETagList, SequenceNumber, WriteKind};
use crate::content::{Content, ContentHeaders, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{self, Access, Lease, LeaseId, LeaseStatus};
use crate::metadata::Metadata;
use crate::tags::TagSet;
use crate::time::Timestamp;

pub struct PutBlob {
    pub path: BlobPath,
    pub blob: NewBlob,
    pub headers: ContentHeaders,
    pub metadata: Metadata,
    pub tags: TagSet,
    /// Without a choice, that of the blob it replaces.
    pub tier: Option<AccessTier>,
    pub immutability: Option<Immutability>,
    pub legal_hold: bool,
    pub encryption: Encryption,
    pub encryption_context: Option<String>,
    pub expiry: Option<Expiry>,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    /// Whether a lease id is refused where there is no blob yet.
    pub lease_needs_blob: bool,
    /// The caller may create a blob but not replace one.
    pub create_only: bool,
}

pub enum NewBlob {
    Block(Received),
    /// Of these blocks, in this order.
    BlockList(Vec<BlockListEntry>),
    Page {
        length: u64,
        sequence_number: SequenceNumber,
    },
    Append,
}

impl Domain {
    pub async fn put_blob(&self, command: PutBlob) -> Result<Blob, Failure<BlobRefusal>> {
        let retention = self.retention(&command.path.container.account).await?;
        let written = self
            .transact_pipelined(&[command.path.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let entry = BlobEntry::read(&mut transaction, &command.path).await?;
                let existing = entry.current.as_ref();
                let expires = command.expires(stamp).map_err(Failure::Refused)?;
                let lease =
                    decide_put(existing, &command, retention, stamp).map_err(Failure::Refused)?;
                let encryption = entry.encryption(&command.encryption).map_err(Failure::Refused)?;
                let (content, length) = match &command.blob {
                    NewBlob::Block(received) => {
                        (received.claim(&mut transaction, stamp.etag.ticks()), received.length())
                    }
                    NewBlob::BlockList(list) => {
                        if let Some(existing) = existing {
                            check_scope(existing, &encryption).map_err(Failure::Refused)?;
                        }
                        block::commit(&mut transaction, &entry, list, &encryption, stamp).await?
                    }
                    NewBlob::Page { length, .. } => (Content::Empty, *length),
                    NewBlob::Append => (Content::Empty, 0),
                };
                let (tier, tier_changed) = match (command.tier, existing) {
                    (Some(chosen), _) => (Some(chosen), Some(stamp.now)),
                    (None, Some(existing)) => (existing.tier, existing.tier_changed),
                    (None, None) => (None, None),
                };
                let blob = Blob {
                    kind: command.blob.kind(stamp),
                    etag: stamp.etag,
                    created: stamp.now,
                    last_modified: stamp.now,
                    length,
                    content,
                    headers: command.headers.clone(),
                    metadata: command.metadata.clone(),
                    tags: command.tags.clone(),
                    lease,
                    version: None,
                    tier,
                    tier_changed,
                    rehydration: None,
                    copy: None,
                    expires,
                    immutability: command.immutability,
                    legal_hold: command.legal_hold,
                    encryption,
                    encryption_context: command.encryption_context.clone(),
                };
                let replaced =
                    entry.replace(&mut transaction, blob, Change::Overwrite, retention, stamp);
                let replaced = replaced.await?;
                if let Some(expires) = expires {
                    entry.remove_when_expired(&mut transaction, expires, stamp.etag.ticks());
                }
                Ok((replaced, transaction))
            })
            .await;
        match command.blob {
            NewBlob::Block(received) => received.conclude(written),
            NewBlob::BlockList(_) | NewBlob::Page { .. } | NewBlob::Append => written,
        }
    }
}

impl PutBlob {
    /// Puts `blob` unconditionally, with default options.
    pub fn new(path: BlobPath, blob: NewBlob) -> Self {
        Self {
            path,
            blob,
            headers: ContentHeaders::default(),
            metadata: Metadata::default(),
            tags: TagSet::default(),
            tier: None,
            immutability: None,
            legal_hold: false,
            encryption: Encryption::Account,
            encryption_context: None,
            expiry: None,
            conditions: Conditions::default(),
            lease_id: None,
            lease_needs_blob: true,
            create_only: false,
        }
    }

    /// The conditions that apply. The service lets the holder of a lease replace a block blob that was
    /// to be created only, if it comes whole: Python's `upload_blob(data, lease=…)` and
    /// `upload_blob_from_url` send both, and their tests expect a 201.
    fn conditions_on(&self, existing: Option<&Blob>, now: Timestamp) -> Cow<'_, Conditions> {
        let holds_lease = existing.is_some_and(|blob| {
            blob.lease.status(now) == LeaseStatus::Locked && blob.lease.id() == self.lease_id
        });
        let is_any = self.conditions.if_none_match == Some(ETagList::Any);
        if matches!(self.blob, NewBlob::Block(_)) && holds_lease && is_any {
            Cow::Owned(Conditions { if_none_match: None, ..self.conditions.clone() })
        } else {
            Cow::Borrowed(&self.conditions)
        }
    }

    /// When the new blob, created now, expires.
    fn expires(&self, stamp: Stamp) -> Result<Option<Timestamp>, BlobRefusal> {
        self.expiry.map_or(Ok(None), |expiry| expiry.decide(stamp.now, stamp.now))
    }
}

impl NewBlob {
    fn kind(&self, stamp: Stamp) -> Kind {
        match self {
            Self::Block(_) | Self::BlockList(_) => Kind::Block,
            Self::Page { sequence_number, .. } => {
                Kind::Page { sequence_number: *sequence_number, lineage: stamp.etag.ticks() }
            }
            Self::Append => Kind::Append { blocks: 0, sealed: false },
        }
    }

    /// The size that a page blob reserves, which its tier must allow.
    fn reserved(&self) -> u64 {
        match self {
            Self::Page { length, .. } => *length,
            Self::Block(_) | Self::BlockList(_) | Self::Append => 0,
        }
    }
}

/// The rules for blobs of all kinds; returns the lease of the new blob.
fn decide_put(
    existing: Option<&Blob>,
    command: &PutBlob,
    retention: Retention,
    stamp: Stamp,
) -> Result<Lease, BlobRefusal> {
    let kind = command.blob.kind(stamp);
    if let Some(tier) = command.tier {
        check_tier(kind, command.blob.reserved(), tier)?;
    }
    if let Some(policy) = command.immutability {
        check_policy(None, policy, stamp.now)?;
    }
    if existing.is_some() && command.create_only {
        return Err(BlobRefusal::OverwriteNotPermitted);
    }
    let subject = existing.map(Blob::subject);
    let conditions = command.conditions_on(existing, stamp.now);
    condition::check_write(&conditions, WriteKind::Create, subject.as_ref())?;
    let Some(existing) = existing else {
        lease::check_absent(command.lease_id.filter(|_| command.lease_needs_blob))?;
        return Ok(Lease::default());
    };
    check_replaceable(existing, kind, retention, stamp)?;
    existing.lease_after(Access::Write, command.lease_id, stamp.now)
}

/// Whether a list of blocks names the scope of the existing blob.
fn check_scope(existing: &Blob, chosen: &Encryption) -> Result<(), BlobRefusal> {
    match &existing.encryption {
        scope @ Encryption::Scope(_) if scope != chosen => Err(BlobRefusal::OtherKey),
        Encryption::Account | Encryption::CustomerKey { .. } | Encryption::Scope(_) => Ok(()),
    }
}

/// Whether a whole new blob of this kind may replace `existing`.
pub(super) fn check_replaceable(
    existing: &Blob,
    kind: Kind,
    retention: Retention,
    stamp: Stamp,
) -> Result<(), BlobRefusal> {
    if existing.is_archived() {
        return Err(BlobRefusal::Archived);
    }
    if !existing.kind.is_alike(kind) {
        return Err(BlobRefusal::WrongKind);
    }
    match check_changeable(existing, stamp.now) {
        // A held state stays as a version.
        Err(BlobRefusal::Immutable | BlobRefusal::LegalHold) if retention.versions => Ok(()),
        checked => checked,
    }
}
