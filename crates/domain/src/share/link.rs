//! Symbolic and hard links, in NFS shares. They are stored and returned; nothing follows them.

use super::model::Names;
use super::node::{NewNode, Wanted, identity};
use super::properties::{NodeProperties, Touch, touch};
use super::tree::{Answer, Found, Located, Tree};
use super::{File, FileRefusal, LinkTarget, Node, NodeAddress, NodeKind, Protocol};
use crate::content::Content;
use crate::domain::Domain;
use crate::failure::Failure;
use crate::lease::{self, LeaseId};
use crate::metadata::Metadata;
use crate::names::PathComponent;

/// The mode of a symbolic link: its target decides what is allowed.
const SYMBOLIC_LINK_MODE: u16 = 0o777;

pub struct CreateSymbolicLink {
    pub address: NodeAddress,
    pub target: LinkTarget,
    pub metadata: Metadata,
    pub properties: NodeProperties,
    pub lease_id: Option<LeaseId>,
}

pub struct CreateHardLink {
    /// The new name.
    pub address: NodeAddress,
    /// The file that gets it, in the same share.
    pub target: NodeAddress,
    pub lease_id: Option<LeaseId>,
}

impl Domain {
    pub(super) async fn create_symbolic_link(
        &self,
        command: &CreateSymbolicLink,
    ) -> Answer<Located> {
        let latches = [command.address.latch()];
        let created = self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &command.address.share).await?;
            let found = tree.find(&mut transaction, &command.address).await?;
            decide_link(&tree, &found, command.lease_id).map_err(Failure::Refused)?;
            let addition = self.add_to(&found).await?;
            let (id, name, inherited) =
                identity(self, &mut transaction, &tree, &found, false).await?;
            let mode = command.properties.mode.or(Some(SYMBOLIC_LINK_MODE));
            let properties = NodeProperties { mode, ..command.properties.clone() };
            let new = NewNode {
                id,
                name,
                metadata: &command.metadata,
                properties: &properties,
                kind: NodeKind::SymbolicLink(command.target.clone()),
            };
            let node = new.make(&mut transaction, &tree, inherited, stamp).await?;
            tree.put(&mut transaction, &found.place, &node);
            let located = Located { place: found.place, node, now: stamp.now };
            Ok(((located, addition), transaction))
        });
        Ok(created.await?.0)
    }

    /// Gives a file another name. `target` is that of the command, as it was found.
    pub(super) async fn create_hard_link(
        &self,
        command: &CreateHardLink,
        target: &NodeAddress,
    ) -> Answer<Located> {
        let latches = [command.address.latch(), target.latch()];
        let created = self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &command.address.share).await?;
            let found = tree.find(&mut transaction, &command.address).await?;
            decide_link(&tree, &found, command.lease_id).map_err(Failure::Refused)?;
            let addition = self.add_to(&found).await?;
            let name = found.name.clone().ok_or(Failure::Refused(FileRefusal::IsRoot))?;
            let target = tree.find(&mut transaction, target).await?;
            let node = decide_target(target.node).map_err(Failure::Refused)?;
            let mut node = tree.begin_change(&mut transaction, &target.place, &node).await?;
            touch(&mut node, Touch::Properties, stamp);
            if let Some(posix) = &mut node.posix {
                posix.links += 1;
            }
            if node.names == Names::One {
                let first = name_of(&node, node.name.clone());
                transaction.put(target.place.key(), crate::rows::Stored::encode(&first));
                node.names = Names::Many;
            }
            let second = name_of(&node, Some(name.clone()));
            transaction.put(found.place.key(), crate::rows::Stored::encode(&second));
            tree.put(&mut transaction, &found.place, &node);
            let node = Node { name: Some(name), ..node };
            let located = Located { place: found.place, node, now: stamp.now };
            Ok(((located, addition), transaction))
        });
        Ok(created.await?.0)
    }
}

fn decide_link(tree: &Tree, found: &Found, lease_id: Option<LeaseId>) -> Result<(), FileRefusal> {
    if tree.share.protocol != Protocol::Nfs {
        return Err(FileRefusal::OtherProtocol);
    }
    if found.node.is_some() {
        return Err(FileRefusal::AlreadyExists);
    }
    Ok(lease::check_absent(lease_id)?)
}

fn decide_target(node: Option<Node>) -> Result<Node, FileRefusal> {
    let node = node.ok_or(FileRefusal::NotFound)?;
    Wanted::File.check(&node)?;
    if let Some(file) = node.file() {
        super::copy::check_no_copy_pending(file)?;
    }
    Ok(node)
}

/// The row for one of the names of a file that has several.
fn name_of(node: &Node, name: Option<PathComponent>) -> Node {
    let file = File {
        length: 0,
        lineage: 0,
        content: Content::Empty,
        headers: Default::default(),
        lease: Default::default(),
        copy: None,
    };
    Node {
        name,
        metadata: Metadata::default(),
        names: Names::Of,
        moves: Vec::new(),
        kind: NodeKind::File(file),
        ..node.clone()
    }
}
