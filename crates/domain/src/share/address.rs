//! How a file or directory is named: by its path, as in a request, or by its place, if it was found
//! before.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Node, SharePath, rows};
use crate::names::{FilePath, PathComponent};
use crate::time::Timestamp;

/// Where a node is stored: the number of its directory, and its name there. It does not change when
/// a directory above is renamed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    share: u64,
    directory: u64,
    folded_name: String,
}

impl Place {
    pub(crate) fn root(share: u64) -> Self {
        Self { share, directory: rows::ABOVE_ROOT, folded_name: String::new() }
    }

    pub(crate) fn child(share: u64, directory: u64, name: &PathComponent) -> Self {
        Self::folded(share, directory, name.key())
    }

    pub(crate) fn folded(share: u64, directory: u64, folded_name: String) -> Self {
        Self { share, directory, folded_name }
    }

    /// Where a file with several names is kept.
    pub(crate) fn of_many_names(share: u64, id: u64) -> Self {
        Self::folded(share, rows::OF_MANY_NAMES, format!("{id:016X}"))
    }

    /// The number of the share, which no other has or had.
    pub fn share(&self) -> u64 {
        self.share
    }

    /// The number of the directory; 0 above the root.
    pub fn directory(&self) -> u64 {
        self.directory
    }

    pub fn is_root(&self) -> bool {
        self.directory == rows::ABOVE_ROOT
    }

    pub fn folded_name(&self) -> &str {
        &self.folded_name
    }

    pub(crate) fn key(&self) -> Bytes {
        rows::node(self.share, self.directory, &self.folded_name)
    }

    /// The prefix of the keys of earlier states there.
    pub(crate) fn past_keys(&self) -> Bytes {
        rows::past_nodes_at(self.share, self.directory, &self.folded_name)
    }

    pub(crate) fn past_key(&self, generation: u64) -> Bytes {
        rows::past_node(self.share, self.directory, &self.folded_name, generation)
    }
}

/// Which node of a share.
#[derive(Clone, Debug)]
pub struct NodeAddress {
    pub share: SharePath,
    /// The number of the share, for callers that mean this share and no later one of the same name.
    pub share_number: Option<u64>,
    pub at: At,
    pub expected: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    Path(FilePath),
    Place(Place),
}

/// What the caller relies on from an earlier lookup. If it has changed, the answer is
/// [`super::FileRefusal::Moved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Anything,
    Nothing,
    Node(u64),
}

impl Expected {
    pub(crate) fn allows(self, found: Option<&Node>) -> bool {
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) => true,
            (Self::Node(id), Some(node)) => node.id == id,
            (Self::Nothing, Some(_)) | (Self::Node(_), None) => false,
        }
    }
}

impl NodeAddress {
    pub fn path(share: SharePath, path: FilePath) -> Self {
        let (at, expected) = (At::Path(path), Expected::Anything);
        Self { share, share_number: None, at, expected }
    }

    /// A node that was found before.
    pub fn place(share: SharePath, place: Place, id: u64) -> Self {
        let share_number = Some(place.share());
        Self { share, share_number, at: At::Place(place), expected: Expected::Node(id) }
    }

    #[must_use]
    pub fn within(mut self, share_number: Option<u64>) -> Self {
        self.share_number = share_number;
        self
    }

    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// The key of the latch for writers to this node.
    pub(crate) fn latch(&self) -> Bytes {
        match &self.at {
            At::Place(place) => place.key(),
            At::Path(path) => {
                let mut latch = BytesMut::from(self.share.key());
                for component in path.components() {
                    latch.put_u8(0);
                    latch.put_slice(component.key().as_bytes());
                }
                latch.freeze()
            }
        }
    }
}

/// A share as it is, or as it was when a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareState {
    Current,
    Snapshot(Timestamp),
}
