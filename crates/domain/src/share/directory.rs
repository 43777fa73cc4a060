//! Directories: created, and listed page by page.

use super::list::ListFrom;
use super::node::{GetNode, NewNode, Wanted, identity};
use super::properties::NodeProperties;
use super::tree::{Answer, Located, Reading, Tree};
use super::{Directory, FileRefusal, Node, NodeAddress, NodeKind, ShareState};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::names::fold_text;

pub struct CreateDirectory {
    pub address: NodeAddress,
    /// The number that it gets; by default a new one.
    pub id: Option<u64>,
    pub metadata: Metadata,
    pub properties: NodeProperties,
}

pub struct ListDirectory {
    pub address: NodeAddress,
    pub state: ShareState,
    /// The prefix of the names, in any case.
    pub prefix: String,
    /// Names up to this one, folded, are skipped.
    pub after: Option<String>,
    pub limit: usize,
}

pub struct DirectoryPage {
    pub directory: Located,
    /// In the order of their folded names.
    pub entries: Vec<Node>,
    /// Where to continue, if there is more: after this folded name.
    pub next: Option<String>,
}

impl Domain {
    pub(super) async fn create_directory(&self, command: &CreateDirectory) -> Answer<Located> {
        let latches = [command.address.latch()];
        let created = self.transact(&latches, async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &command.address.share).await?;
            let found = tree.find(&mut transaction, &command.address).await?;
            if let Some(node) = &found.node {
                let refusal = Wanted::Directory.check(node).err();
                return Err(Failure::Refused(refusal.unwrap_or(FileRefusal::AlreadyExists)));
            }
            let addition = self.add_to(&found).await?;
            let (id, name, inherited) =
                identity(self, &mut transaction, &tree, &found, true).await?;
            let new = NewNode {
                id: command.id.unwrap_or(id),
                name,
                metadata: &command.metadata,
                properties: &command.properties,
                kind: NodeKind::Directory(Directory::default()),
            };
            let node = new.make(&mut transaction, &tree, inherited, stamp).await?;
            tree.put(&mut transaction, &found.place, &node);
            let located = Located { place: found.place, node, now: stamp.now };
            Ok(((located, addition), transaction))
        });
        Ok(created.await?.0)
    }

    pub(super) async fn list_directory(&self, command: &ListDirectory) -> Answer<DirectoryPage> {
        let mut reading = Reading(self.engine.snapshot().await?);
        let rows = &mut reading;
        let tree = Tree::open_in(rows, &command.address.share, command.state).await?;
        let get = GetNode {
            address: command.address.clone(),
            state: command.state,
            wanted: Wanted::Directory,
            lease_id: None,
        };
        let directory = self.read_located(rows, &get).await?;
        let from = ListFrom { prefix: fold_text(&command.prefix), after: command.after.clone() };
        let (entries, next) = tree.list(rows, directory.node.id, &from, command.limit).await?;
        Ok(DirectoryPage { directory, entries, next })
    }
}
