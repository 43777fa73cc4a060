//! Copy File.
//!
//! The content of a source on this server is shared: a copy is one commit, whatever its size. One
//! from elsewhere is fetched by the caller, before the copy or after it (see `pending_copy`).

use super::node::{GetNode, NewNode, check_permission, check_replaceable, identity};
use super::opens::additions::Addition;
use super::permission::{descriptor_of, key_of};
use super::properties::{NodeProperties, TimeChange};
use super::tree::{Located, Tree};
use super::{
    Attributes, File, FileHeaders, FileRefusal, Node, NodeAddress, NodeKind, PermissionKey,
};
use crate::blob::{self, BlobRefusal, SourceHere};
use crate::content::{self, Content, Received};
use crate::copy::{CopyState, CopyStatus, SourceElsewhere};
use crate::domain::{Domain, Stamp};
use crate::failure::{Failure, Fault};
use crate::lease::LeaseId;
use crate::metadata::Metadata;
use crate::rows;
use crate::time::Timestamp;
use crate::transact::Transaction;

pub struct CopyFile {
    pub address: NodeAddress,
    pub source: FileCopySource,
    /// As it is shown later.
    pub source_url: String,
    /// Unique to this copy.
    pub copy_id: String,
    /// Without any, that of the source.
    pub metadata: Option<Metadata>,
    pub properties: CopiedProperties,
    /// Whether an existing file is replaced even if it is read-only.
    pub ignore_read_only: bool,
    /// `x-ms-file-copy-set-archive`
    pub set_archive: bool,
    pub lease_id: Option<LeaseId>,
}

/// Properties of a copy: given, taken from the source where that is a file, or those of any new file.
#[derive(Clone, Debug, Default)]
pub struct CopiedProperties {
    pub attributes: FromSource<Attributes>,
    pub created: FromSource<TimeChange>,
    pub written: FromSource<TimeChange>,
    pub changed: FromSource<TimeChange>,
    /// The descriptor of a source in another share gets a key in this one.
    pub permission: FromSource<PermissionKey>,
    pub mode: FromSource<u16>,
    pub owner: FromSource<u32>,
    pub group: FromSource<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FromSource<T> {
    #[default]
    New,
    Source,
    Given(T),
}

impl<T> FromSource<T> {
    fn choose(self, of_source: Option<T>) -> Option<T> {
        match self {
            Self::New => None,
            Self::Source => of_source,
            Self::Given(given) => Some(given),
        }
    }
}

pub enum FileCopySource {
    /// A file of this account.
    File(GetNode),
    /// A blob of this account.
    Blob(SourceHere),
    /// Bytes from elsewhere that have come already.
    Fetched(Received, SourceElsewhere),
    /// Bytes from elsewhere that will come.
    Awaited(SourceElsewhere),
}

/// Which of the two resources a refusal of a copy is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCopyRefusal {
    SourceFile(FileRefusal),
    SourceBlob(BlobRefusal),
    Destination(FileRefusal),
}

impl From<FileRefusal> for FileCopyRefusal {
    fn from(refusal: FileRefusal) -> Self {
        Self::Destination(refusal)
    }
}

type Answer<T> = Result<T, Failure<FileCopyRefusal>>;

/// What a copy takes from its source.
struct Copied {
    length: u64,
    content: Content,
    headers: FileHeaders,
    metadata: Metadata,
    /// The source, if it is a file, and the share that it is in.
    file: Option<(u64, Node)>,
}

impl CopyFile {
    pub(super) fn conclude_copy(self, copied: Answer<Located>) -> Answer<Located> {
        match self.source {
            FileCopySource::Fetched(received, _) => received.conclude(copied),
            FileCopySource::File(_) | FileCopySource::Blob(_) | FileCopySource::Awaited(_) => {
                copied
            }
        }
    }
}

impl Domain {
    /// Bytes that came with it are kept for another attempt.
    pub(super) async fn try_copy_file(
        &self,
        command: &CopyFile,
        source: &FileCopySource,
    ) -> Answer<Located> {
        let mut latches = vec![command.address.latch()];
        if let FileCopySource::File(source) = source {
            // All copies of one source change the count of its references.
            latches.push(source.address.latch());
        }
        let copied = self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let copied = self.take_source(&mut transaction, source, stamp).await?;
            let located = self.put_copy(&mut transaction, command, copied, stamp).await;
            Ok((located.map_err(|failure| failure.map(FileCopyRefusal::from))?, transaction))
        });
        Ok(copied.await?.0)
    }

    async fn put_copy(
        &self,
        transaction: &mut Transaction,
        command: &CopyFile,
        copied: Copied,
        stamp: Stamp,
    ) -> super::tree::Answer<(Located, Option<Addition<'_>>)> {
        let tree = Tree::open(transaction, &command.address.share).await?;
        let found = tree.find(transaction, &command.address).await?;
        let addition = self.add_to(&found).await?;
        let (lease_id, ignore_read_only) = (command.lease_id, command.ignore_read_only);
        let lease = check_replaceable(found.node.as_ref(), lease_id, ignore_read_only, stamp.now)
            .map_err(Failure::Refused)?;
        let (id, name, inherited) = identity(self, transaction, &tree, &found, false).await?;
        let existing = self.begin_replace(transaction, &tree, &found, copied.length).await?;
        let permission = copied.permission(transaction, &tree, command).await?;
        let properties = copied.properties(command);
        let file = File {
            length: copied.length,
            lineage: stamp.etag.ticks(),
            content: copied.content,
            headers: copied.headers,
            lease,
            copy: Some(command.copy_state(copied.length, stamp.now)),
        };
        let new = NewNode {
            id,
            name,
            metadata: command.metadata.as_ref().unwrap_or(&copied.metadata),
            properties: &properties,
            kind: NodeKind::File(file),
        };
        let permission = permission.unwrap_or(inherited);
        let node = new.make(transaction, &tree, permission, stamp).await?;
        let node = NewNode::in_place_of(node, existing.as_ref());
        if let FileCopySource::Awaited(_) = command.source {
            transaction.put(rows::pending_copy(&tree.key_of(&found.place, &node)), rows::NOTHING);
        }
        tree.put(transaction, &found.place, &node);
        Ok((Located { place: found.place, node, now: stamp.now }, addition))
    }

    /// Reads the source and shares its content with the destination.
    async fn take_source(
        &self,
        transaction: &mut Transaction,
        source: &FileCopySource,
        stamp: Stamp,
    ) -> Answer<Copied> {
        let id = stamp.etag.ticks();
        match source {
            FileCopySource::File(source) => {
                let tree = Tree::open_in(transaction, &source.address.share, source.state).await;
                let tree = tree.map_err(|failure| failure.map(FileCopyRefusal::SourceFile))?;
                let found = tree.find(transaction, &source.address).await;
                let found = found.map_err(|failure| failure.map(FileCopyRefusal::SourceFile))?;
                let node = decide_source(found.node)
                    .map_err(|refusal| Failure::Refused(FileCopyRefusal::SourceFile(refusal)))?;
                Ok(Copied::of_file(transaction, tree.share.id, node, id).await?)
            }
            FileCopySource::Blob(source) => {
                let blob = blob::read_source(transaction, source).await;
                let blob = blob.map_err(|failure| failure.map(FileCopyRefusal::SourceBlob))?;
                let content = content::share_as_map(transaction, &blob.content, id).await?;
                let (length, headers, metadata) = (blob.length, blob.headers, blob.metadata);
                Ok(Copied { length, content, headers, metadata, file: None })
            }
            FileCopySource::Fetched(received, source) => {
                let content = received.claim_map(transaction, id);
                Ok(Copied { length: received.length(), ..Copied::of_elsewhere(source, content) })
            }
            FileCopySource::Awaited(source) => Ok(Copied::of_elsewhere(source, Content::Empty)),
        }
    }
}

fn decide_source(node: Option<Node>) -> Result<Node, FileRefusal> {
    let node = node.ok_or(FileRefusal::NotFound)?;
    let file = node.file().ok_or(FileRefusal::WrongKind)?;
    check_no_copy_pending(file)?;
    Ok(node)
}

impl Copied {
    async fn of_file(
        transaction: &mut Transaction,
        share: u64,
        node: Node,
        id: u64,
    ) -> Result<Self, Fault> {
        let file = node.file().ok_or_else(|| Fault::new("a copy of what is no file"))?;
        Ok(Self {
            length: file.length,
            content: content::share(transaction, &file.content, id).await?,
            headers: file.headers.clone(),
            metadata: node.metadata.clone(),
            file: Some((share, node)),
        })
    }

    fn of_elsewhere(source: &SourceElsewhere, content: Content) -> Self {
        let (headers, metadata) = (source.headers.clone(), source.metadata.clone());
        Self { length: source.length, content, headers, metadata, file: None }
    }

    /// All except the permission.
    fn properties(&self, command: &CopyFile) -> NodeProperties {
        let given = &command.properties;
        let file = self.file.as_ref().map(|(_, node)| node);
        let posix = file.and_then(|node| node.posix.as_ref());
        let time = |given: FromSource<TimeChange>, time: fn(&Node) -> Timestamp| {
            given.choose(file.map(|node| TimeChange::At(time(node))))
        };
        let attributes = given.attributes.choose(file.map(|node| node.attributes));
        let with_archive = |attributes: Attributes| match command.set_archive {
            true => attributes.union(Attributes::ARCHIVE),
            false => attributes,
        };
        NodeProperties {
            attributes: attributes.map(with_archive),
            created: time(given.created, |node| node.times.created),
            written: time(given.written, |node| node.times.written),
            changed: time(given.changed, |node| node.times.changed),
            permission: None,
            mode: given.mode.choose(posix.map(|posix| posix.mode)),
            owner: given.owner.choose(posix.map(|posix| posix.owner)),
            group: given.group.choose(posix.map(|posix| posix.group)),
        }
    }

    /// Its key in the share of the copy.
    async fn permission(
        &self,
        transaction: &mut Transaction,
        tree: &Tree,
        command: &CopyFile,
    ) -> super::tree::Answer<Option<PermissionKey>> {
        match (command.properties.permission, &self.file) {
            (FromSource::New, _) | (FromSource::Source, None) => Ok(None),
            (FromSource::Given(key), _) => check_permission(transaction, tree, key).await.map(Some),
            (FromSource::Source, Some((share, node))) if *share == tree.share.id => {
                Ok(Some(node.permission))
            }
            (FromSource::Source, Some((share, node))) => {
                let descriptor = descriptor_of(transaction, *share, node.permission).await?;
                let descriptor =
                    descriptor.ok_or_else(|| Fault::new("the permission of a file is missing"))?;
                let bytes = descriptor.to_bytes();
                Ok(Some(key_of(transaction, tree.share.id, &bytes).await?))
            }
        }
    }
}

impl CopyFile {
    fn copy_state(&self, length: u64, now: Timestamp) -> CopyState {
        let is_awaited = matches!(self.source, FileCopySource::Awaited(_));
        CopyState {
            id: self.copy_id.clone(),
            source: self.source_url.clone(),
            status: if is_awaited { CopyStatus::Pending } else { CopyStatus::Success },
            bytes_copied: if is_awaited { 0 } else { length },
            bytes_total: length,
            completed: (!is_awaited).then_some(now),
            failure: None,
            incremental: None,
        }
    }
}

/// Refuses a file that a pending copy is writing.
pub(super) fn check_no_copy_pending(file: &File) -> Result<(), FileRefusal> {
    match &file.copy {
        Some(copy) if copy.status == CopyStatus::Pending => Err(FileRefusal::CopyPending),
        Some(_) | None => Ok(()),
    }
}
