//! Files: created, resized and read.

use std::ops::Range;

use super::node::{
    GetNode, NewNode, SetNodeProperties, Wanted, check_change, check_permission, check_replaceable,
    check_writable, identity,
};
use super::properties::{NodeProperties, Touch, touch};
use super::tree::{Answer, Found, Located, Reading, Tree, release_content};
use super::usage::OverQuota;
use super::{File, FileHeaders, FileRefusal, Node, NodeAddress, NodeKind};
use crate::content::{self, Content, ContentReader, ReadRange, Received};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{Lease, LeaseId};
use crate::metadata::Metadata;
use crate::transact::Transaction;

/// 4 TiB.
pub const FILE_BYTES_MAX: u64 = 4 << 40;

pub struct CreateFile {
    pub address: NodeAddress,
    /// The number that it gets if it is new; by default a new one.
    pub id: Option<u64>,
    pub length: u64,
    /// The first bytes; zeros follow up to the length.
    pub content: Option<Received>,
    pub headers: FileHeaders,
    pub metadata: Metadata,
    pub properties: NodeProperties,
    /// Whether an existing file is replaced. It keeps its number and its lease.
    pub overwrite: bool,
    pub lease_id: Option<LeaseId>,
}

pub struct FileDownload {
    pub located: Located,
    pub range: Range<u64>,
    pub reader: ContentReader,
}

impl CreateFile {
    pub(super) fn conclude_create(self, created: Answer<Located>) -> Answer<Located> {
        match self.content {
            Some(received) => received.conclude(created),
            None => created,
        }
    }
}

impl Domain {
    pub(super) async fn create_file(&self, command: CreateFile) -> Answer<Located> {
        let created = self.try_create_file(&command).await;
        command.conclude_create(created)
    }

    /// As [`Domain::create_file`], but the bytes are kept for another attempt.
    pub(super) async fn try_create_file(&self, command: &CreateFile) -> Answer<Located> {
        let latches = [command.address.latch()];
        let created = self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &command.address.share).await?;
            let found = tree.find(&mut transaction, &command.address).await?;
            let addition = self.add_to(&found).await?;
            let node = self.replace_file(&mut transaction, &tree, &found, command, stamp).await?;
            tree.put(&mut transaction, &found.place, &node);
            let located = Located { place: found.place, node, now: stamp.now };
            Ok(((located, addition), transaction))
        });
        Ok(created.await?.0)
    }

    async fn replace_file(
        &self,
        transaction: &mut Transaction,
        tree: &Tree,
        found: &Found,
        command: &CreateFile,
        stamp: Stamp,
    ) -> Answer<Node> {
        let lease = decide_create(found.node.as_ref(), command, stamp).map_err(Failure::Refused)?;
        let (id, name, inherited) = identity(self, transaction, tree, found, false).await?;
        let id = command.id.filter(|_| found.node.is_none()).unwrap_or(id);
        let existing = self.begin_replace(transaction, tree, found, command.length).await?;
        let written = stamp.etag.ticks();
        let content = match &command.content {
            Some(received) => received.claim_map(transaction, written),
            None => Content::Empty,
        };
        let file = File {
            length: command.length,
            lineage: written,
            content,
            headers: command.headers.clone(),
            lease,
            copy: None,
        };
        let new = NewNode {
            id,
            name,
            metadata: &command.metadata,
            properties: &command.properties,
            kind: NodeKind::File(file),
        };
        let node = new.make(transaction, tree, inherited, stamp).await?;
        Ok(NewNode::in_place_of(node, existing.as_ref()))
    }

    /// Releases the content of a file that is about to be replaced, if there is one, by one of
    /// another length.
    pub(super) async fn begin_replace(
        &self,
        transaction: &mut Transaction,
        tree: &Tree,
        found: &Found,
        length: u64,
    ) -> Answer<Option<Node>> {
        let before = found.node.as_ref().map_or(0, Node::length);
        self.make_room(transaction, tree, before, length).await?;
        let Some(existing) = &found.node else { return Ok(None) };
        let existing = tree.begin_change(transaction, &found.place, existing).await?;
        release_content(transaction, &existing);
        Ok(Some(existing))
    }

    /// For directories, too; what is only for files is refused there.
    pub(super) async fn set_node_properties(&self, command: &SetNodeProperties) -> Answer<Located> {
        let address = &command.address;
        self.transact(&[address.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &address.share).await?;
            let found = tree.find(&mut transaction, address).await?;
            let node = found.node.ok_or(Failure::Refused(FileRefusal::NotFound))?;
            if let Some(key) = command.properties.permission {
                check_permission(&mut transaction, &tree, key).await?;
            }
            let mut node = tree.begin_change(&mut transaction, &found.place, &node).await?;
            decide_set(&mut node, command, stamp).map_err(Failure::Refused)?;
            if let (Some(length), NodeKind::File(file)) = (command.length, &mut node.kind) {
                self.make_room(&mut transaction, &tree, file.length, length).await?;
                resize(&mut transaction, file, length, stamp).await?;
            }
            tree.put(&mut transaction, &found.place, &node);
            Ok((Located { place: found.place, node, now: stamp.now }, transaction))
        })
        .await
    }

    /// The file and a reader of its bytes as they are now: whatever is written meanwhile, the
    /// reader sees this state to its end.
    pub(super) async fn get_file(
        &self,
        command: &GetNode,
        range: Option<ReadRange>,
    ) -> Answer<FileDownload> {
        let pin = self.extents.pin_all();
        let mut reading = Reading(self.engine.snapshot().await?);
        let located = self.read_located(&mut reading, command).await?;
        let file = located.node.file().ok_or(Failure::Refused(FileRefusal::WrongKind))?;
        let range = decide_range(range, file.length).map_err(Failure::Refused)?;
        let reader =
            ContentReader::open(&self.extents, reading.0, pin, &file.content, range.clone(), None)
                .await?;
        Ok(FileDownload { located, range, reader })
    }

    /// Reserves room for a change of length from `before` to `after` bytes, within the maximum and
    /// the quota.
    pub(super) async fn make_room(
        &self,
        transaction: &mut Transaction,
        tree: &Tree,
        before: u64,
        after: u64,
    ) -> Answer<()> {
        if after > FILE_BYTES_MAX {
            return Err(Failure::Refused(FileRefusal::TooLong));
        }
        let reserved = self.reserve(transaction, &tree.share, before, after).await;
        reserved.map_err(|failure| failure.map(|OverQuota| FileRefusal::OverQuota))
    }
}

/// Every rule of Create File about an existing file; returns the lease of the new one.
fn decide_create(
    existing: Option<&Node>,
    command: &CreateFile,
    stamp: Stamp,
) -> Result<Lease, FileRefusal> {
    if command.content.as_ref().is_some_and(|received| received.length() > command.length) {
        return Err(FileRefusal::LengthMismatch);
    }
    if let Some(existing) = existing.filter(|_| !command.overwrite) {
        Wanted::File.check(existing)?;
        return Err(FileRefusal::AlreadyExists);
    }
    check_replaceable(existing, command.lease_id, false, stamp.now)
}

/// Every rule of Set File Properties and Set Directory Properties.
fn decide_set(
    node: &mut Node,
    command: &SetNodeProperties,
    stamp: Stamp,
) -> Result<(), FileRefusal> {
    command.wanted.check(node)?;
    if !command.by_handle {
        check_change(node, command.wanted, command.lease_id, stamp.now)?;
        // A request that removes the attribute must be allowed.
        let keeps_read_only = command
            .properties
            .attributes
            .is_none_or(|attributes| attributes.contains(super::Attributes::READ_ONLY));
        if keeps_read_only {
            check_writable(node)?;
        }
    }
    let before = node.times;
    let is_resized = command.length.is_some_and(|length| length != node.length());
    touch(node, if is_resized { Touch::Data } else { Touch::Properties }, stamp);
    command.properties.apply(node, before, stamp.now);
    match (&mut node.kind, &command.headers, command.length) {
        (_, None, None) => Ok(()),
        (NodeKind::File(file), headers, _) => {
            if let Some(headers) = headers {
                file.headers = headers.replacing_all();
            }
            Ok(())
        }
        (NodeKind::Directory(_) | NodeKind::SymbolicLink(_), _, _) => Err(FileRefusal::WrongKind),
    }
}

/// Changes the length of a file: bytes past it are removed, new bytes read as zeros.
async fn resize(
    transaction: &mut Transaction,
    file: &mut File,
    length: u64,
    stamp: Stamp,
) -> Answer<()> {
    if length == 0 {
        content::release(transaction, &file.content);
        file.content = Content::Empty;
    } else if length < file.length && file.content != Content::Empty {
        let mut map = content::Map::own(transaction, &file.content, stamp.etag.ticks()).await?;
        map.cut_off(transaction, length..file.length).await?;
        file.content = map.content();
    }
    file.length = length;
    Ok(())
}

pub(super) fn decide_range(
    range: Option<ReadRange>,
    length: u64,
) -> Result<Range<u64>, FileRefusal> {
    match range {
        None => Ok(0..length),
        Some(range) => range.within(length).ok_or(FileRefusal::InvalidRange { length }),
    }
}
