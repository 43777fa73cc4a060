//! What directories and files have in common: finding, reading, changing, deleting.

use super::model::Names;
use super::opens::NodeKey;
use super::opens::additions::Addition;
use super::properties::{NodeProperties, Touch, touch};
use super::tree::{Answer, Found, Located, NodeRows, Reading, Tree};
use super::{
    Attributes, FileHeaders, FileRefusal, Node, NodeAddress, NodeKind, PermissionKey, Place,
    PosixProperties, ShareState, rows,
};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{self, Access, Lease, LeaseId, LeaseKind};
use crate::metadata::Metadata;
use crate::names::PathComponent;
use crate::time::Timestamp;
use crate::transact::Transaction;

/// Which kind of node an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Directory,
    /// Neither a directory nor a link.
    File,
    SymbolicLink,
    /// Anything but a directory.
    FileOrLink,
    Any,
}

impl Wanted {
    pub(super) fn check(self, node: &Node) -> Result<(), FileRefusal> {
        match (self, &node.kind) {
            (Self::Any, _)
            | (Self::Directory, NodeKind::Directory(_))
            | (Self::File, NodeKind::File(_))
            | (Self::SymbolicLink, NodeKind::SymbolicLink(_))
            | (Self::FileOrLink, NodeKind::File(_) | NodeKind::SymbolicLink(_)) => Ok(()),
            (
                Self::Directory | Self::File | Self::SymbolicLink | Self::FileOrLink,
                NodeKind::Directory(_) | NodeKind::File(_) | NodeKind::SymbolicLink(_),
            ) => Err(FileRefusal::WrongKind),
        }
    }
}

#[derive(Clone)]
pub struct GetNode {
    pub address: NodeAddress,
    pub state: ShareState,
    pub wanted: Wanted,
    pub lease_id: Option<LeaseId>,
}

pub struct DeleteNode {
    pub address: NodeAddress,
    pub wanted: Wanted,
    pub lease_id: Option<LeaseId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedNode {
    /// How many names a file or link has left, in an NFS share.
    pub links: Option<u32>,
}

pub struct SetNodeProperties {
    pub address: NodeAddress,
    pub wanted: Wanted,
    pub properties: NodeProperties,
    /// Of a file; replaces all of them; absent ones are cleared.
    pub headers: Option<FileHeaders>,
    /// Of a file.
    pub length: Option<u64>,
    /// Through an open that was granted: lease and attributes are not checked again.
    pub by_handle: bool,
    pub lease_id: Option<LeaseId>,
}

pub struct SetNodeMetadata {
    pub address: NodeAddress,
    pub wanted: Wanted,
    pub metadata: Metadata,
    pub lease_id: Option<LeaseId>,
}

/// The result of looking up an address, for callers that decide by it.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    /// Where the node is, or would be.
    pub place: Place,
    pub node: Option<Node>,
    /// The directory that it is in, or would be; `None` for the root, and if only a place was asked
    /// for.
    pub parent: Option<Node>,
    pub now: Timestamp,
}

impl Domain {
    /// Looks up an address, whatever is there; refused only if a directory on the way is missing.
    pub(super) async fn find_node(
        &self,
        address: &NodeAddress,
        state: ShareState,
    ) -> Answer<Lookup> {
        let now = self.now();
        let mut reading = Reading(self.engine.snapshot().await?);
        let rows = &mut reading;
        let tree = Tree::open_in(rows, &address.share, state).await?;
        let found = tree.find(rows, address).await?;
        let parent = match &found.name {
            Some(_) => Some(tree.parent(rows, &found).await?),
            None => None,
        };
        let Found { place, node, .. } = found;
        Ok(Lookup { place, node, parent, now })
    }

    /// Begins to add a node where nothing was found. The result is held until that is committed:
    /// meanwhile the directory cannot be marked for deletion, and a marked one accepts no addition.
    pub(super) async fn add_to(&self, found: &Found) -> Answer<Option<Addition<'_>>> {
        if found.node.is_some() {
            return Ok(None);
        }
        let directory = NodeKey { share: found.place.share(), node: found.place.directory() };
        let addition = self.opens.add_to(directory).await;
        addition.map(Some).map_err(|refusal| Failure::Refused(FileRefusal::Opens(refusal)))
    }

    pub(super) async fn get_node(&self, command: &GetNode) -> Answer<Located> {
        let mut reading = Reading(self.engine.snapshot().await?);
        self.read_located(&mut reading, command).await
    }

    pub(super) async fn read_located(
        &self,
        rows: &mut impl NodeRows,
        command: &GetNode,
    ) -> Answer<Located> {
        let now = self.now();
        let tree = Tree::open_in(rows, &command.address.share, command.state).await?;
        let Found { place, node, .. } = tree.find(rows, &command.address).await?;
        let node = decide_read(node, command, now).map_err(Failure::Refused)?;
        Ok(Located { place, node, now })
    }

    /// Deletes a file or link, or a directory that has nothing in it.
    pub(super) async fn delete_node(&self, command: &DeleteNode) -> Answer<DeletedNode> {
        let (key, deleted) = self
            .transact(&[command.address.latch()], async |mut transaction| {
                let tree = Tree::open(&mut transaction, &command.address.share).await?;
                let found = tree.find(&mut transaction, &command.address).await?;
                let node = decide_delete(&found, command, self.now()).map_err(Failure::Refused)?;
                if node.is_directory() && !tree.is_empty(&mut transaction, node.id).await? {
                    return Err(Failure::Refused(FileRefusal::DirectoryNotEmpty));
                }
                let node = tree.begin_change(&mut transaction, &found.place, &node).await?;
                self.forget_bytes(&mut transaction, &tree, &node).await?;
                let deleted = DeletedNode { links: links_left(&node) };
                tree.remove(&mut transaction, &found.place, node).await?;
                Ok(((found.place.key(), deleted), transaction))
            })
            .await?;
        self.live_leases.forget(&key);
        Ok(deleted)
    }

    /// Subtracts the bytes of a removed node from the share's usage, unless it has other names.
    pub(super) async fn forget_bytes(
        &self,
        transaction: &mut Transaction,
        tree: &Tree,
        node: &Node,
    ) -> Answer<()> {
        match node.is_last_name() {
            true => self.make_room(transaction, tree, node.length(), 0).await,
            false => Ok(()),
        }
    }

    pub(super) async fn set_node_metadata(&self, command: &SetNodeMetadata) -> Answer<Located> {
        let changed = self.change_node(&command.address, |node, stamp| {
            check_change(node, command.wanted, command.lease_id, stamp.now)?;
            check_writable(node)?;
            node.metadata = command.metadata.clone();
            touch(node, Touch::Properties, stamp);
            Ok(())
        });
        Ok(changed.await?.0)
    }

    /// Changes the row of a node, without its content. The caller sets the stamp.
    pub(crate) async fn change_node<T>(
        &self,
        address: &NodeAddress,
        change: impl Fn(&mut Node, Stamp) -> Result<T, FileRefusal>,
    ) -> Answer<(Located, T)> {
        self.transact(&[address.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &address.share).await?;
            let found = tree.find(&mut transaction, address).await?;
            let node = found.node.ok_or(Failure::Refused(FileRefusal::NotFound))?;
            let mut node = tree.begin_change(&mut transaction, &found.place, &node).await?;
            let outcome = change(&mut node, stamp).map_err(Failure::Refused)?;
            tree.put(&mut transaction, &found.place, &node);
            let located = Located { place: found.place, node, now: stamp.now };
            Ok(((located, outcome), transaction))
        })
        .await
    }
}

fn decide_read(node: Option<Node>, command: &GetNode, now: Timestamp) -> Result<Node, FileRefusal> {
    let node = node.ok_or(FileRefusal::NotFound)?;
    command.wanted.check(&node)?;
    if let Some(file) = node.file() {
        lease::check_access(&file.lease, Access::Read, command.lease_id, LeaseKind::File, now)?;
    }
    Ok(node)
}

fn links_left(node: &Node) -> Option<u32> {
    let posix = node.posix.as_ref().filter(|_| !node.is_directory())?;
    Some(posix.links.saturating_sub(1))
}

fn decide_delete(found: &Found, command: &DeleteNode, now: Timestamp) -> Result<Node, FileRefusal> {
    let node = found.node.clone().ok_or(FileRefusal::NotFound)?;
    command.wanted.check(&node)?;
    if found.place.is_root() {
        return Err(FileRefusal::IsRoot);
    }
    if let Some(file) = node.file() {
        super::copy::check_no_copy_pending(file)?;
        lease::check_access(&file.lease, Access::Delete, command.lease_id, LeaseKind::File, now)?;
    }
    Ok(node)
}

/// Whether a node of the wanted kind may be changed under its lease; updates the lease of the node.
pub(super) fn check_change(
    node: &mut Node,
    wanted: Wanted,
    lease_id: Option<LeaseId>,
    now: Timestamp,
) -> Result<(), FileRefusal> {
    wanted.check(node)?;
    if let NodeKind::File(file) = &mut node.kind {
        let after =
            lease::check_access(&file.lease, Access::Write, lease_id, LeaseKind::File, now)?;
        file.lease = after.apply(&file.lease);
        super::copy::check_no_copy_pending(file)?;
    }
    Ok(())
}

/// REST does not write read-only files. On a directory the attribute means something else.
pub(super) fn check_writable(node: &Node) -> Result<(), FileRefusal> {
    let read_only = node.attributes.contains(Attributes::READ_ONLY);
    if read_only && !node.is_directory() { Err(FileRefusal::ReadOnly) } else { Ok(()) }
}

/// Whether a file may be written in place of an existing one; returns its lease.
pub(super) fn check_replaceable(
    existing: Option<&Node>,
    lease_id: Option<LeaseId>,
    ignore_read_only: bool,
    now: Timestamp,
) -> Result<Lease, FileRefusal> {
    let Some(existing) = existing else {
        lease::check_absent(lease_id)?;
        return Ok(Lease::default());
    };
    let mut existing = existing.clone();
    check_change(&mut existing, Wanted::File, lease_id, now)?;
    if !ignore_read_only {
        check_writable(&existing)?;
    }
    Ok(existing.file().map(|file| file.lease.clone()).unwrap_or_default())
}

/// A node that was not there before.
pub(super) struct NewNode<'a> {
    pub id: u64,
    pub name: PathComponent,
    pub metadata: &'a Metadata,
    pub properties: &'a NodeProperties,
    pub kind: NodeKind,
}

impl NewNode<'_> {
    /// `inherited` is the permission that it has unless one is given.
    pub async fn make(
        self,
        transaction: &mut Transaction,
        tree: &Tree,
        inherited: PermissionKey,
        stamp: Stamp,
    ) -> Answer<Node> {
        let is_directory = matches!(self.kind, NodeKind::Directory(_));
        let default = if is_directory { Attributes::default() } else { Attributes::ARCHIVE };
        let permission = match self.properties.permission {
            Some(key) => check_permission(transaction, tree, key).await?,
            None => inherited,
        };
        Ok(Node {
            id: self.id,
            name: Some(self.name),
            etag: stamp.etag,
            last_modified: stamp.now,
            metadata: self.metadata.clone(),
            times: self.properties.new_times(stamp.now),
            attributes: self.properties.attributes.unwrap_or(default),
            permission,
            posix: self.properties.new_posix(tree.share.protocol, is_directory),
            generation: tree.share.generation,
            placed: tree.share.generation,
            moves: Vec::new(),
            names: Names::One,
            kind: self.kind,
        })
    }

    /// The new node in place of an existing one, whose change has begun and whose content has been
    /// released.
    pub fn in_place_of(node: Node, existing: Option<&Node>) -> Node {
        let Some(existing) = existing else { return node };
        let links = existing.posix.as_ref().map(|posix| posix.links);
        let posix = node
            .posix
            .map(|posix| PosixProperties { links: links.unwrap_or(posix.links), ..posix });
        Node {
            posix,
            placed: existing.placed,
            moves: existing.moves.clone(),
            names: existing.names,
            ..node
        }
    }
}

/// The number, the name and the inherited permission of a node that is created or replaced at an
/// address.
pub(super) async fn identity(
    domain: &Domain,
    transaction: &mut Transaction,
    tree: &Tree,
    found: &Found,
    is_directory: bool,
) -> Answer<(u64, PathComponent, PermissionKey)> {
    let known = found.node.as_ref();
    let id = known.map_or_else(|| domain.fresh_id(), |node| node.id);
    match (&found.name, known) {
        (Some(name), _) => {
            let parent = tree.parent(transaction, found).await?;
            let permission = domain
                .inherited_key(transaction, tree.share.id, parent.permission, is_directory)
                .await?;
            Ok((id, name.clone(), permission))
        }
        // Only its place is known: it keeps the permission that it has inherited before.
        (None, Some(Node { name: Some(name), permission, .. })) => {
            Ok((id, name.clone(), *permission))
        }
        (None, _) => Err(Failure::Refused(FileRefusal::IsRoot)),
    }
}

/// The key, if the share has a permission of this key.
pub(super) async fn check_permission(
    transaction: &mut Transaction,
    tree: &Tree,
    key: PermissionKey,
) -> Answer<PermissionKey> {
    let row = transaction.get(&rows::permission(tree.share.id, key.0)).await?;
    row.map(|_| key).ok_or(Failure::Refused(FileRefusal::PermissionNotFound))
}
