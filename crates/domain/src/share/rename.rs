//! Renames files and directories, within their directory or to another one of the share. Only the
//! row of the node moves.

use super::address::Expected;
use super::copy::check_no_copy_pending;
use super::model::{Move, Names};
use super::node::{Wanted, check_permission, check_writable};
use super::opens::NodeKey;
use super::properties::{NodeProperties, Touch, touch};
use super::tree::{Answer, Found, Located, Tree};
use super::{FileRefusal, Node, NodeAddress, NodeKind, Place};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::lease::{self, Access, Lease, LeaseId, LeaseKind};
use crate::metadata::Metadata;
use crate::names::{FilePath, PathComponent};
use crate::time::Timestamp;

/// Earlier places that a node remembers: as many as there can be snapshots.
const MOVES_MAX: usize = 200;

pub struct RenameNode {
    pub source: NodeAddress,
    /// In the same share.
    pub destination: FilePath,
    pub destination_expected: Expected,
    pub wanted: Wanted,
    /// Whether an existing file is replaced. A directory is never replaced.
    pub replace: bool,
    /// Whether it is replaced even if it is read-only.
    pub ignore_read_only: bool,
    /// Through an open that was granted: the lease of the source is not checked again.
    pub by_handle: bool,
    pub source_lease_id: Option<LeaseId>,
    pub destination_lease_id: Option<LeaseId>,
    /// What is given is set; the rest stays.
    pub properties: NodeProperties,
    pub metadata: Option<Metadata>,
    /// Of a file.
    pub content_type: Option<String>,
}

pub struct Renamed {
    pub located: Located,
    /// Where it was before.
    pub from: Place,
    /// The number of the file that was replaced.
    pub replaced: Option<u64>,
}

impl Domain {
    pub(super) async fn rename_node(&self, command: &RenameNode) -> Answer<Renamed> {
        let destination =
            NodeAddress::path(command.source.share.clone(), command.destination.clone())
                .expecting(command.destination_expected);
        let (renamed, opens, addition) = self
            .transact(&[command.source.latch(), destination.latch()], async |mut transaction| {
                let stamp = self.stamp();
                let tree = Tree::open(&mut transaction, &destination.share).await?;
                let source = tree.find(&mut transaction, &command.source).await?;
                let target = tree.find(&mut transaction, &destination).await?;
                let (node, name) = decide_rename(&source, &target, command, stamp.now)
                    .map_err(Failure::Refused)?;
                if let Some(key) = command.properties.permission {
                    check_permission(&mut transaction, &tree, key).await?;
                }
                let addition = self.add_to(&target).await?;
                let from = source.place;
                let mut replaced = None;
                if let Some(existing) = target.node.filter(|existing| existing.id != node.id) {
                    let gone =
                        tree.begin_change(&mut transaction, &target.place, &existing).await?;
                    self.forget_bytes(&mut transaction, &tree, &gone).await?;
                    tree.remove(&mut transaction, &target.place, gone).await?;
                    replaced = Some(existing.id);
                }
                let node = tree.begin_change(&mut transaction, &from, &node).await?;
                let node = moved(node, &from, &target.place, name, tree.share.generation);
                let node = with_properties(node, command, stamp);
                tree.put_at(&mut transaction, &from, &target.place, &node).await?;
                let key = NodeKey { share: tree.share.id, node: node.id };
                let opens = self.opens.rows_after_move(key, &target.place, &command.destination);
                for open in &opens {
                    transaction.expect(open.key());
                    transaction.put(open.key(), open.value.clone());
                }
                let located = Located { place: target.place, node, now: stamp.now };
                Ok(((Renamed { located, from, replaced }, opens, addition), transaction))
            })
            .await?;
        drop(addition);
        self.opens.note_written_again(opens);
        self.live_leases.forget(&renamed.from.key());
        if let Some(file) = renamed.located.node.file() {
            self.live_leases.note(renamed.located.place.key(), &file.lease, renamed.located.now);
        }
        Ok(renamed)
    }
}

/// Every rule of Rename File and Rename Directory; returns the node and its new name.
fn decide_rename(
    source: &Found,
    target: &Found,
    command: &RenameNode,
    now: Timestamp,
) -> Result<(Node, PathComponent), FileRefusal> {
    let mut node = source.node.clone().ok_or(FileRefusal::NotFound)?;
    command.wanted.check(&node)?;
    let name = target.name.clone().ok_or(FileRefusal::IsRoot)?;
    if source.place.is_root() {
        return Err(FileRefusal::IsRoot);
    }
    if target.above.contains(&node.id) {
        return Err(FileRefusal::IntoItself);
    }
    if let NodeKind::File(file) = &mut node.kind {
        check_no_copy_pending(file)?;
        if !command.by_handle {
            file.lease = lease_after(&file.lease, Access::Write, command.source_lease_id, now)?;
        }
    }
    match &target.node {
        None => lease::check_absent(command.destination_lease_id)?,
        // Another spelling of its own name.
        Some(existing) if target.place == source.place => debug_assert_eq!(existing.id, node.id),
        Some(existing) => check_replaceable(&node, existing, command, now)?,
    }
    Ok((node, name))
}

/// Whether the node at the destination is replaced.
fn check_replaceable(
    node: &Node,
    existing: &Node,
    command: &RenameNode,
    now: Timestamp,
) -> Result<(), FileRefusal> {
    if !command.replace {
        return Err(FileRefusal::AlreadyExists);
    }
    // A directory may replace a file through REST (the SDKs' tests do it), but nothing through SMB.
    match (node.is_directory(), existing.is_directory()) {
        (true, true) => return Err(FileRefusal::AlreadyExists),
        (true, false) if command.by_handle => return Err(FileRefusal::AlreadyExists),
        (false, true) => return Err(FileRefusal::WrongKind),
        (_, false) => {}
    }
    if let Some(file) = existing.file() {
        check_no_copy_pending(file)?;
        lease_after(&file.lease, Access::Delete, command.destination_lease_id, now)?;
    }
    if command.ignore_read_only { Ok(()) } else { check_writable(existing) }
}

fn lease_after(
    lease: &Lease,
    access: Access,
    id: Option<LeaseId>,
    now: Timestamp,
) -> Result<Lease, FileRefusal> {
    let after = lease::check_access(lease, access, id, LeaseKind::File, now)?;
    Ok(after.apply(lease))
}

/// The node under its new name, with the earlier places where snapshots see it.
fn moved(mut node: Node, from: &Place, to: &Place, name: PathComponent, generation: u64) -> Node {
    if from == to {
        return Node { name: Some(name), ..node };
    }
    if node.placed < generation && node.names == Names::One {
        let (directory, folded_name) = (from.directory(), from.folded_name().to_owned());
        node.moves.push(Move { generation, directory, folded_name });
        let forgotten = node.moves.len().saturating_sub(MOVES_MAX);
        node.moves.drain(..forgotten);
    }
    Node { name: Some(name), placed: generation, ..node }
}

fn with_properties(mut node: Node, command: &RenameNode, stamp: Stamp) -> Node {
    let before = node.times;
    touch(&mut node, Touch::Properties, stamp);
    command.properties.apply(&mut node, before, stamp.now);
    if let Some(metadata) = &command.metadata {
        node.metadata = metadata.clone();
    }
    if let (NodeKind::File(file), Some(content_type)) = (&mut node.kind, &command.content_type) {
        file.headers.content_type = Some(content_type.clone());
    }
    node
}
