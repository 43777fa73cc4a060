//! Looking up and changing nodes, in a share as it is or as a snapshot sees it.
//!
//! A state of a node is seen by the snapshots that are later than its generation. A change or removal
//! of a state that a snapshot sees keeps it as a past node with the share's generation, in the same
//! commit. So snapshot *g* sees at a place the first past node whose generation is *g* or later, or
//! else the node itself, if its state is older than *g*, and otherwise nothing.

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order, Row, Snapshot};

use super::model::Names;
use super::{At, FileRefusal, Node, NodeAddress, NodeKind, Place, Share, SharePath, ShareState};
use crate::content;
use crate::failure::Failure;
use crate::names::PathComponent;
use crate::rows::Stored;
use crate::time::Timestamp;
use crate::transact::Transaction;

pub(super) type Answer<T> = Result<T, Failure<FileRefusal>>;

/// What nodes are read from: a transaction, which expects what it reads, or a snapshot of the store.
pub(crate) trait NodeRows {
    fn get(&mut self, key: &Bytes) -> impl Future<Output = Result<Option<Bytes>, Fault>> + Send;

    fn scan(
        &mut self,
        range: &KeyRange,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Row>, Fault>> + Send;
}

impl NodeRows for Transaction {
    async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, Fault> {
        Self::get(self, key).await
    }

    async fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Row>, Fault> {
        Self::scan(self, range, limit).await
    }
}

/// The rows of a snapshot of the store. A type of its own: with a reference, every future that
/// holds it would be bound to a lifetime and could not be sent to another thread.
pub(crate) struct Reading(pub Box<dyn Snapshot>);

impl NodeRows for Reading {
    async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, Fault> {
        self.0.get(key).await
    }

    async fn scan(&mut self, range: &KeyRange, limit: usize) -> Result<Vec<Row>, Fault> {
        self.0.scan(range, Order::Ascending, limit).await
    }
}

/// A node, where it is, and when it was read.
#[derive(Clone, Debug)]
pub struct Located {
    pub place: Place,
    pub node: Node,
    pub now: Timestamp,
}

/// What an address leads to.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub place: Place,
    /// As written in the address; `None` for the root and for a place.
    pub name: Option<PathComponent>,
    pub node: Option<Node>,
    /// The directory that it is in, if it was read for the lookup.
    pub parent: Option<Node>,
    /// The numbers of the directories above, from the root on.
    pub above: Vec<u64>,
}

/// Which states of nodes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Current,
    /// As the snapshot of this number sees them.
    Snapshot(u64),
}

impl View {
    /// Whether this view is older than a snapshot.
    pub fn is_before(self, snapshot: u64) -> bool {
        match self {
            Self::Current => false,
            Self::Snapshot(number) => number <= snapshot,
        }
    }
}

/// A share that has been read.
pub(crate) struct Tree {
    pub share: Share,
    pub view: View,
}

impl Tree {
    pub async fn open(rows: &mut impl NodeRows, path: &SharePath) -> Answer<Self> {
        let row = rows.get(&path.key()).await?;
        let row = row.ok_or(Failure::Refused(FileRefusal::ShareNotFound))?;
        Ok(Self { share: Share::decode(&row)?, view: View::Current })
    }

    pub async fn open_in(
        rows: &mut impl NodeRows,
        path: &SharePath,
        state: ShareState,
    ) -> Answer<Self> {
        let tree = Self::open(rows, path).await?;
        let view = match state {
            ShareState::Current => View::Current,
            ShareState::Snapshot(moment) => {
                let number = snapshot_number(rows, &tree.share, moment).await?;
                View::Snapshot(number.ok_or(Failure::Refused(FileRefusal::SnapshotNotFound))?)
            }
        };
        Ok(Self { view, ..tree })
    }

    /// What is at a place.
    pub async fn read(
        &self,
        rows: &mut impl NodeRows,
        place: &Place,
    ) -> Result<Option<Node>, Fault> {
        let node = self.read_row(rows, place).await?;
        match node {
            Some(Node { names: Names::Of, id, name, .. }) => {
                let place = Place::of_many_names(self.share.id, id);
                let node = self.read_row(rows, &place).await?;
                let node =
                    node.ok_or_else(|| Fault::new("a file with several names is missing"))?;
                Ok(Some(Node { name, ..node }))
            }
            Some(_) | None => Ok(node),
        }
    }

    async fn read_row(
        &self,
        rows: &mut impl NodeRows,
        place: &Place,
    ) -> Result<Option<Node>, Fault> {
        let View::Snapshot(number) = self.view else {
            return read_node(rows, &place.key()).await;
        };
        let past_nodes = KeyRange::prefix(place.past_keys()).starting_at(place.past_key(number));
        let state = match rows.scan(&past_nodes, 1).await?.first() {
            Some(row) => Some(Node::decode(&row.value)?),
            None => read_node(rows, &place.key()).await?,
        };
        Ok(state.filter(|node| node.is_seen_by(number)))
    }

    /// Looks up an address. Reads one row for each name of a path.
    pub async fn find(&self, rows: &mut impl NodeRows, address: &NodeAddress) -> Answer<Found> {
        if address.share_number.is_some_and(|number| number != self.share.id) {
            return Err(Failure::Refused(FileRefusal::ShareNotFound));
        }
        let found = match &address.at {
            At::Place(place) => {
                let node = self.read(rows, place).await?;
                Found { place: place.clone(), name: None, node, parent: None, above: Vec::new() }
            }
            At::Path(path) => self.walk(rows, path.components()).await?,
        };
        if address.expected.allows(found.node.as_ref()) {
            Ok(found)
        } else {
            Err(Failure::Refused(FileRefusal::Moved))
        }
    }

    async fn walk(&self, rows: &mut impl NodeRows, path: &[PathComponent]) -> Answer<Found> {
        let share = self.share.id;
        let Some((name, above)) = path.split_last() else {
            let place = Place::root(share);
            let node = self.read(rows, &place).await?;
            return Ok(Found { place, name: None, node, parent: None, above: Vec::new() });
        };
        // The number of the root is that of its share.
        let (mut directory, mut parent, mut above_ids) =
            (self.share.root(), None, vec![self.share.root()]);
        for component in above {
            let node = self.read(rows, &Place::child(share, directory, component)).await?;
            let node = node.filter(Node::is_directory);
            let node = node.ok_or(Failure::Refused(FileRefusal::ParentNotFound))?;
            directory = node.id;
            above_ids.push(directory);
            parent = Some(node);
        }
        let place = Place::child(share, directory, name);
        let node = self.read(rows, &place).await?;
        Ok(Found { place, name: Some(name.clone()), node, parent, above: above_ids })
    }

    pub async fn root(&self, rows: &mut impl NodeRows) -> Result<Node, Fault> {
        let root = self.read(rows, &Place::root(self.share.id)).await?;
        root.ok_or_else(|| Fault::new("the root of a share is missing"))
    }

    /// The directory of something that was found by its path.
    pub async fn parent(&self, rows: &mut impl NodeRows, found: &Found) -> Result<Node, Fault> {
        match &found.parent {
            Some(parent) => Ok(parent.clone()),
            None => self.root(rows).await,
        }
    }

    /// Begins a change of what is there: states that a snapshot sees are kept. The returned node
    /// has its own reference to its content, to keep, change or release.
    pub async fn begin_change(
        &self,
        transaction: &mut Transaction,
        place: &Place,
        node: &Node,
    ) -> Result<Node, Fault> {
        let place = self.kept_at(place, node);
        if let Some(generation) = self.share.leaves_behind(node) {
            let mut past = node.clone();
            if let NodeKind::File(file) = &mut past.kind {
                file.lease = Default::default();
                // Empty or a map, so sharing only adds a reference.
                content::share(transaction, &file.content, 0).await?;
            }
            transaction.put(place.past_key(generation), past.encode());
        }
        Ok(Node { generation: self.share.generation, ..node.clone() })
    }

    /// Writes a node that is new, or whose change has begun.
    pub fn put(&self, transaction: &mut Transaction, place: &Place, node: &Node) {
        transaction.put(self.key_of(place, node), node.encode());
    }

    /// Removes a node whose change has begun: the name at this place, and with the last name the
    /// node and its content.
    pub async fn remove(
        &self,
        transaction: &mut Transaction,
        place: &Place,
        mut node: Node,
    ) -> Result<(), Fault> {
        if node.names == Names::Many {
            self.take_name(transaction, place).await?;
        }
        if node.is_last_name() {
            release_content(transaction, &node);
            transaction.delete(self.key_of(place, &node));
        } else {
            if let Some(posix) = &mut node.posix {
                posix.links -= 1;
            }
            self.put(transaction, place, &node);
        }
        Ok(())
    }

    /// Writes a node whose change has begun under another name.
    pub async fn put_at(
        &self,
        transaction: &mut Transaction,
        from: &Place,
        to: &Place,
        node: &Node,
    ) -> Result<(), Fault> {
        if node.names == Names::Many {
            let name = self.take_name(transaction, from).await?;
            let name = Node { name: node.name.clone(), ..name };
            transaction.put(to.key(), name.encode());
        } else {
            transaction.delete(from.key());
        }
        self.put(transaction, to, node);
        Ok(())
    }

    /// Removes one of several names.
    async fn take_name(&self, transaction: &mut Transaction, place: &Place) -> Result<Node, Fault> {
        let name = self.read_row(transaction, place).await?;
        let name = name.ok_or_else(|| Fault::new("a name of a file is missing"))?;
        let name = self.begin_change(transaction, place, &name).await?;
        transaction.delete(place.key());
        Ok(name)
    }

    /// The key of the row of the node that is found at a place.
    pub fn key_of(&self, place: &Place, node: &Node) -> Bytes {
        self.kept_at(place, node).key()
    }

    /// Where the node itself is that is found at a place.
    fn kept_at(&self, place: &Place, node: &Node) -> Place {
        match node.names {
            Names::One | Names::Of => place.clone(),
            Names::Many => Place::of_many_names(self.share.id, node.id),
        }
    }

    /// Whether a directory is empty; that becomes an expectation.
    pub async fn is_empty(&self, transaction: &mut Transaction, id: u64) -> Result<bool, Fault> {
        let children = KeyRange::prefix(super::rows::nodes(self.share.id, id, ""));
        Ok(transaction.scan(&children, 1).await?.is_empty())
    }
}

pub(super) fn release_content(transaction: &mut Transaction, node: &Node) {
    if let NodeKind::File(file) = &node.kind {
        content::release(transaction, &file.content);
    }
}

async fn read_node(rows: &mut impl NodeRows, key: &Bytes) -> Result<Option<Node>, Fault> {
    rows.get(key).await?.map(|row| Node::decode(&row)).transpose()
}

/// The number of the snapshot that was taken of a share at this moment, if it is still there.
pub(super) async fn snapshot_number(
    rows: &mut impl NodeRows,
    share: &Share,
    moment: Timestamp,
) -> Result<Option<u64>, Fault> {
    let row = rows.get(&super::rows::snapshot(share.id, moment)).await?;
    let snapshot = row.map(|row| Share::decode(&row)).transpose()?;
    Ok(snapshot.map(|snapshot| snapshot.generation))
}
