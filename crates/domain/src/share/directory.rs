//! Directories: created, and listed page by page.

use holdfast_store::{Fault, KeyRange};

use super::node::{GetNode, NewNode, Wanted};
use super::properties::NodeProperties;
use super::tree::{Answer, Located, NodeRows, Tree, View};
use super::{Directory, FileRefusal, Node, NodeAddress, NodeKind, Place, ShareState, rows};
use crate::domain::{Domain, Stamp};
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::names::fold_text;
use crate::rows::Stored;
use crate::transact::Transaction;

pub struct CreateDirectory {
    pub address: NodeAddress,
    pub metadata: Metadata,
    pub properties: NodeProperties,
}

pub struct ListDirectory {
    pub address: NodeAddress,
    pub state: ShareState,
    /// Of the names, in any case.
    pub prefix: String,
    /// Names up to this one, folded, are passed over.
    pub after: Option<String>,
    pub limit: usize,
}

pub struct DirectoryPage {
    pub directory: Located,
    /// In the order of their folded names.
    pub entries: Vec<Node>,
    /// Where to go on, if there is more: after this folded name.
    pub next: Option<String>,
}

impl Domain {
    pub async fn create_directory(&self, command: &CreateDirectory) -> Answer<Located> {
        self.transact(&[command.address.latch()], async |mut transaction| {
            let stamp = self.stamp();
            let tree = Tree::open(&mut transaction, &command.address.share).await?;
            let found = tree.find(&mut transaction, &command.address).await?;
            if let Some(node) = &found.node {
                let refusal = Wanted::Directory.check(node).err();
                return Err(Failure::Refused(refusal.unwrap_or(FileRefusal::AlreadyExists)));
            }
            let name = found.name.clone().ok_or(Failure::Refused(FileRefusal::ParentNotFound))?;
            let parent = tree.parent(&mut transaction, &found).await?;
            let new = NewNode {
                id: self.fresh_id(),
                name,
                metadata: &command.metadata,
                properties: &command.properties,
                kind: NodeKind::Directory(Directory::default()),
            };
            let node = new.make(&mut transaction, &tree, &parent, stamp).await?;
            tree.put(&mut transaction, &found.place, &node);
            Ok((Located { place: found.place, node, now: stamp.now }, transaction))
        })
        .await
    }

    pub async fn list_directory(&self, command: &ListDirectory) -> Answer<DirectoryPage> {
        let snapshot = self.engine.snapshot().await?;
        let rows = &mut &*snapshot;
        let tree = Tree::open_in(rows, &command.address.share, command.state).await?;
        let get = GetNode {
            address: command.address.clone(),
            state: command.state,
            wanted: Wanted::Directory,
            lease_id: None,
        };
        let directory = self.read_located(rows, &get).await?;
        let (entries, next) = tree.list(rows, directory.node.id, command).await?;
        Ok(DirectoryPage { directory, entries, next })
    }
}

impl Tree {
    async fn list(
        &self,
        rows: &mut impl NodeRows,
        directory: u64,
        command: &ListDirectory,
    ) -> Result<(Vec<Node>, Option<String>), Fault> {
        let (share, prefix) = (self.share.id, fold_text(&command.prefix));
        let mut range = KeyRange::prefix(rows::nodes(share, directory, &prefix));
        if let Some(after) = &command.after
            && *after >= prefix
        {
            range = range.after(rows::node(share, directory, after));
        }
        if self.view != View::Current || range.is_empty() {
            return Ok((Vec::new(), None));
        }
        let found = rows.scan(&range, command.limit.saturating_add(1)).await?;
        let more = found.len() > command.limit;
        let mut entries = Vec::with_capacity(found.len().min(command.limit));
        for row in found.iter().take(command.limit) {
            entries.push(Node::decode(&row.value)?);
        }
        let next = more.then(|| entries.last().map(Node::folded_name)).flatten();
        Ok((entries, next))
    }
}

/// The root of a new share.
pub(crate) fn put_root(
    transaction: &mut Transaction,
    share: &super::Share,
    permission: super::PermissionKey,
    stamp: Stamp,
) {
    let root = Node {
        id: share.id,
        name: None,
        etag: stamp.etag,
        last_modified: stamp.now,
        metadata: Metadata::default(),
        times: super::FileTimes::all(stamp.now),
        attributes: Default::default(),
        permission,
        posix: NodeProperties::default().new_posix(share.protocol, true),
        generation: share.generation,
        kind: NodeKind::Directory(Directory::default()),
    };
    transaction.put(Place::root(share.id).key(), root.encode());
}
