//! Copy Blob and Copy Blob From URL.
//!
//! The content of a source on this server is shared: a copy is one commit, whatever its size. One
//! from elsewhere is fetched by the caller, before the copy or after it (see `pending_copy`).

use super::entry::{BlobEntry, Change, Found, Retention};
use super::immutability::check_policy;
use super::model::Rehydration;
use super::put::check_replaceable;
use super::tier::check_tier;
use super::{
    AccessTier, Blob, BlobPath, BlobRefusal, Encryption, Immutability, Kind, RehydratePriority,
    Which, check_key,
};
use crate::condition::{self, Conditions, SourceRefusal, WriteKind};
use crate::content::{self, Content, ContentHeaders, Received};
use crate::copy::{CopyState, CopyStatus, SourceElsewhere, SourceKind};
use crate::domain::{Domain, Stamp};
use crate::etag::ETag;
use crate::failure::Failure;
use crate::lease::{self, Access, Lease, LeaseId};
use crate::metadata::Metadata;
use crate::rows::{NOTHING, pending_copy};
use crate::tags::TagSet;
use crate::time::Timestamp;
use crate::transact::Transaction;

pub struct CopyBlob {
    pub path: BlobPath,
    pub source: CopySource,
    /// As it is shown later.
    pub source_url: String,
    /// Unique to this copy.
    pub copy_id: String,
    /// Without any, that of the source.
    pub metadata: Option<Metadata>,
    pub tags: CopiedTags,
    /// Without a choice, that of the blob it replaces.
    pub tier: Option<AccessTier>,
    /// How soon a copy of an archived blob can be read.
    pub priority: RehydratePriority,
    /// Whether a copy of an append blob is sealed; else it is if its source is.
    pub sealed: Option<bool>,
    pub immutability: Option<Immutability>,
    pub legal_hold: bool,
    pub encryption: Encryption,
    pub conditions: Conditions,
    pub lease_id: Option<LeaseId>,
    /// Whether a lease id is refused where there is no blob yet.
    pub lease_needs_blob: bool,
    /// The caller may create a blob but not replace one.
    pub create_only: bool,
    pub manner: Manner,
}

/// Which of the two operations it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Copy Blob: of every kind, and it may go on after the request.
    Asynchronous,
    /// Copy Blob From URL: of block blobs that are not too large.
    Synchronous { length_max: u64 },
}

pub enum CopySource {
    Here(SourceHere),
    /// Bytes from elsewhere that have come already.
    Fetched(Received, SourceElsewhere),
    /// Bytes from elsewhere that will come.
    Awaited(SourceElsewhere),
}

/// A blob of this server.
pub struct SourceHere {
    pub path: BlobPath,
    pub which: Which,
    pub conditions: Conditions,
    /// The state that the caller has read; no other is copied.
    pub etag: Option<ETag>,
}

pub enum CopiedTags {
    Sent(TagSet),
    OfSource,
}

/// Which of the two blobs of a copy a refusal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyRefusal {
    Source(BlobRefusal),
    /// The source is too long for this operation.
    SourceTooLarge,
    Destination(BlobRefusal),
}

impl From<BlobRefusal> for CopyRefusal {
    fn from(refusal: BlobRefusal) -> Self {
        Self::Destination(refusal)
    }
}

/// What a copy takes from its source, without the bytes.
struct Copied {
    kind: Kind,
    length: u64,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: TagSet,
    archived: bool,
}

impl Domain {
    pub async fn copy_blob(&self, command: CopyBlob) -> Result<Blob, Failure<CopyRefusal>> {
        let retention = self.retention(&command.path.container.account).await?;
        let mut latches = vec![command.path.latch()];
        if let CopySource::Here(source) = &command.source {
            // All copies of one source change the count of its references.
            latches.push(source.path.latch());
        }
        let written = self
            .transact(&latches, async |mut transaction| {
                let stamp = self.stamp();
                let entry = BlobEntry::read(&mut transaction, &command.path)
                    .await
                    .map_err(|failure| failure.map(CopyRefusal::Destination))?;
                let (copied, content) = self.take(&mut transaction, &command, stamp).await?;
                let existing = entry.current.as_ref();
                let lease = decide_copy(existing, &copied, &command, retention, stamp)
                    .map_err(Failure::Refused)?;
                let encryption = entry
                    .encryption(&command.encryption)
                    .map_err(|refusal| Failure::Refused(refusal.into()))?;
                let online = stamp.now.plus(self.features.rehydration);
                let rehydration = copied.rehydration(&command, online);
                let blob = blob(&command, copied, content, lease, encryption, existing, stamp);
                let blob = Blob { rehydration, ..blob }.at(stamp.now);
                if blob.is_copy_pending() {
                    transaction.put(pending_copy(&entry.key()), NOTHING);
                }
                let replaced =
                    entry.replace(&mut transaction, blob, Change::Overwrite, retention, stamp);
                Ok((replaced.await?, transaction))
            })
            .await;
        match command.source {
            CopySource::Fetched(received, _) => received.conclude(written),
            CopySource::Here(_) | CopySource::Awaited(_) => written,
        }
    }

    /// Reads the source and shares its content with the destination.
    async fn take(
        &self,
        transaction: &mut Transaction,
        command: &CopyBlob,
        stamp: Stamp,
    ) -> Result<(Copied, Content), Failure<CopyRefusal>> {
        let id = stamp.etag.ticks();
        match &command.source {
            CopySource::Here(source) => {
                let blob = find_source(transaction, source)
                    .await
                    .map_err(|failure| failure.map(CopyRefusal::Source))?;
                decide_source(&blob, source, command).map_err(Failure::Refused)?;
                let content = content::share(transaction, &blob.content, id).await?;
                let kind = blob.kind.copied(command.sealed, stamp);
                let archived = blob.is_archived();
                let Blob { length, headers, metadata, tags, .. } = blob;
                Ok((Copied { kind, length, headers, metadata, tags, archived }, content))
            }
            CopySource::Fetched(received, source) => {
                let content = claim(transaction, received, source.kind, id);
                Ok((Copied::from_elsewhere(source, stamp), content))
            }
            CopySource::Awaited(source) => {
                let length = source.kind.length_before(source.length);
                let copied = Copied { length, ..Copied::from_elsewhere(source, stamp) };
                Ok((copied, Content::Empty))
            }
        }
    }
}

/// Makes bytes from elsewhere the content of a blob of this kind.
pub(super) fn claim(
    transaction: &mut Transaction,
    received: &Received,
    kind: SourceKind,
    id: u64,
) -> Content {
    match kind {
        SourceKind::Block => received.claim(transaction, id),
        SourceKind::Page(_) | SourceKind::Append => received.claim_map(transaction, id),
    }
}

pub(super) async fn find_source(
    transaction: &mut Transaction,
    source: &SourceHere,
) -> Result<Blob, Failure<BlobRefusal>> {
    let entry = BlobEntry::read(transaction, &source.path).await?;
    match entry.find(transaction, source.which).await? {
        Some(Found::Current(blob)) => Ok(blob),
        Some(Found::PastBlob(_, past)) => Ok(past.blob),
        None => Err(Failure::Refused(BlobRefusal::NotFound)),
    }
}

/// The blob that a copy to another kind of resource reads.
pub(crate) async fn read_source(
    transaction: &mut Transaction,
    source: &SourceHere,
) -> Result<Blob, Failure<BlobRefusal>> {
    let blob = find_source(transaction, source).await?;
    check_source(&blob, source).map_err(Failure::Refused)?;
    if blob.is_archived() {
        return Err(Failure::Refused(BlobRefusal::Archived));
    }
    Ok(blob)
}

/// The rules about the source of every copy.
fn check_source(blob: &Blob, source: &SourceHere) -> Result<(), BlobRefusal> {
    let checked = condition::check_source(&source.conditions, &blob.subject());
    checked.map_err(|refusal| match refusal {
        SourceRefusal::NotMet => BlobRefusal::ConditionNotMet,
        SourceRefusal::TagsNotMet => BlobRefusal::SourceTagsNotMet,
    })?;
    if source.etag.is_some_and(|etag| etag != blob.etag) {
        return Err(BlobRefusal::ConditionNotMet);
    }
    // A copy would need the key, too, which these operations do not take.
    check_key(blob, None)?;
    if blob.is_copy_pending() {
        return Err(BlobRefusal::CopyPending);
    }
    let is_incremental = blob.copy.as_ref().is_some_and(|copy| copy.incremental.is_some());
    if is_incremental && source.which == Which::Current {
        return Err(BlobRefusal::IncrementalCopyOnly);
    }
    Ok(())
}

/// Every rule about the source of a copy.
fn decide_source(blob: &Blob, source: &SourceHere, command: &CopyBlob) -> Result<(), CopyRefusal> {
    check_source(blob, source).map_err(CopyRefusal::Source)?;
    if blob.is_archived() && !(command.manner.rehydrates() && is_online(command.tier)) {
        return Err(CopyRefusal::Source(BlobRefusal::Archived));
    }
    if let Manner::Synchronous { length_max } = command.manner {
        if blob.kind != Kind::Block {
            return Err(CopyRefusal::Source(BlobRefusal::WrongKind));
        }
        if blob.length > length_max {
            return Err(CopyRefusal::SourceTooLarge);
        }
    }
    Ok(())
}

/// Every rule about the destination of a copy; the lease that it has then.
fn decide_copy(
    existing: Option<&Blob>,
    copied: &Copied,
    command: &CopyBlob,
    retention: Retention,
    stamp: Stamp,
) -> Result<Lease, CopyRefusal> {
    let is_append = matches!(copied.kind, Kind::Append { .. });
    if command.sealed == Some(true) && !is_append {
        return Err(BlobRefusal::WrongKind.into());
    }
    if let Some(tier) = command.tier {
        check_tier(copied.kind, copied.length, tier)?;
    }
    if let Some(policy) = command.immutability {
        check_policy(None, policy, stamp.now)?;
    }
    if existing.is_some() && command.create_only {
        return Err(BlobRefusal::OverwriteNotPermitted.into());
    }
    let subject = existing.map(Blob::subject);
    condition::check_write(&command.conditions, WriteKind::Copy, subject.as_ref())
        .map_err(BlobRefusal::from)?;
    let Some(existing) = existing else {
        let given = command.lease_id.filter(|_| command.lease_needs_blob);
        lease::check_absent(given).map_err(BlobRefusal::from)?;
        return Ok(Lease::default());
    };
    check_replaceable(existing, copied.kind, retention, stamp)?;
    let access = match command.manner {
        Manner::Asynchronous => Access::CopyOnto,
        Manner::Synchronous { .. } => Access::Write,
    };
    Ok(existing.lease_after(access, command.lease_id, stamp.now)?)
}

/// The destination as the copy leaves it.
fn blob(
    command: &CopyBlob,
    copied: Copied,
    content: Content,
    lease: Lease,
    encryption: Encryption,
    existing: Option<&Blob>,
    stamp: Stamp,
) -> Blob {
    let (tier, tier_changed) = match (command.tier, existing) {
        (Some(_), _) if copied.archived => (Some(AccessTier::Archive), Some(stamp.now)),
        (Some(chosen), _) => (Some(chosen), Some(stamp.now)),
        (None, Some(existing)) => (existing.tier, existing.tier_changed),
        (None, None) => (None, None),
    };
    Blob {
        kind: copied.kind,
        etag: stamp.etag,
        created: stamp.now,
        last_modified: stamp.now,
        length: copied.length,
        content,
        headers: copied.headers,
        metadata: command.metadata.clone().unwrap_or(copied.metadata),
        tags: match &command.tags {
            CopiedTags::Sent(tags) => tags.clone(),
            CopiedTags::OfSource => copied.tags,
        },
        lease,
        version: None,
        tier,
        tier_changed,
        rehydration: None,
        copy: Some(command.copy_state(copied.length, stamp)),
        expires: None,
        immutability: command.immutability,
        legal_hold: command.legal_hold,
        encryption,
        encryption_context: None,
    }
}

impl CopyBlob {
    fn copy_state(&self, length: u64, stamp: Stamp) -> CopyState {
        let state = CopyState {
            id: self.copy_id.clone(),
            source: self.source_url.clone(),
            status: CopyStatus::Success,
            bytes_copied: length,
            bytes_total: length,
            completed: Some(stamp.now),
            failure: None,
            incremental: None,
        };
        match &self.source {
            CopySource::Here(_) | CopySource::Fetched(..) => state,
            CopySource::Awaited(source) => CopyState {
                status: CopyStatus::Pending,
                bytes_copied: 0,
                bytes_total: source.length,
                completed: None,
                ..state
            },
        }
    }
}

impl Manner {
    /// Whether a copy of an archived blob begins to be rehydrated.
    fn rehydrates(self) -> bool {
        self == Self::Asynchronous
    }
}

fn is_online(tier: Option<AccessTier>) -> bool {
    tier.is_some_and(|tier| tier != AccessTier::Archive)
}

impl Copied {
    /// How the copy of an archived blob gets to the tier that was asked for.
    fn rehydration(&self, command: &CopyBlob, until: Timestamp) -> Option<Rehydration> {
        let to = command.tier.filter(|_| self.archived)?;
        Some(Rehydration { to, priority: command.priority, until })
    }

    fn from_elsewhere(source: &SourceElsewhere, stamp: Stamp) -> Self {
        Self {
            kind: source.kind.kind(source.length, stamp),
            length: source.length,
            headers: source.headers.clone(),
            metadata: source.metadata.clone(),
            tags: TagSet::default(),
            archived: false,
        }
    }
}

impl SourceKind {
    fn kind(self, length: u64, stamp: Stamp) -> Kind {
        match self {
            Self::Block => Kind::Block,
            Self::Page(sequence_number) => {
                Kind::Page { sequence_number, lineage: stamp.etag.ticks() }
            }
            // Its blocks become one.
            Self::Append => Kind::Append { blocks: u32::from(length > 0), sealed: false },
        }
    }

    /// How long the destination is while its bytes are awaited.
    fn length_before(self, length: u64) -> u64 {
        match self {
            Self::Page(_) => length,
            Self::Block | Self::Append => 0,
        }
    }
}

impl From<Kind> for SourceKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Block => Self::Block,
            Kind::Page { sequence_number, .. } => Self::Page(sequence_number),
            Kind::Append { .. } => Self::Append,
        }
    }
}

impl Kind {
    /// What a copy of a blob of this kind is.
    fn copied(self, sealed: Option<bool>, stamp: Stamp) -> Self {
        match self {
            Self::Block => Self::Block,
            Self::Page { sequence_number, .. } => {
                Self::Page { sequence_number, lineage: stamp.etag.ticks() }
            }
            Self::Append { blocks, sealed: was } => {
                Self::Append { blocks, sealed: sealed.unwrap_or(was) }
            }
        }
    }
}
