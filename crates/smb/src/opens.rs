//! What a session has open: pipes, and files and directories of shares.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_domain::share::opens::Handle;
use parking_lot::Mutex;

use crate::ipc::Pipe;
use crate::rules::channel_sequence::{ChannelSequence, Counted};
use crate::status::Status;
use crate::wire::FileId;

/// As many handles as the service has for one client and share.
pub const OPENS_MAX: usize = 10_000;

pub struct Open {
    pub id: FileId,
    /// The tree it was opened in.
    pub tree_id: u32,
    pub kind: OpenKind,
    /// Held shared by running requests; CLOSE waits for earlier ones.
    pub at_work: tokio::sync::RwLock<()>,
    sequence: Mutex<ChannelSequence>,
}

/// A request for an open that is not answered yet.
pub struct Outstanding {
    open: Arc<Open>,
    counted: Counted,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.open.sequence.lock().end(self.counted);
    }
}

pub enum OpenKind {
    Pipe(Mutex<Pipe>),
    File(OpenFile),
}

/// A file or directory.
pub struct OpenFile {
    pub handle: Arc<Handle>,
    /// The mode of reads and writes as given by the client, which can query it.
    pub mode: u32,
    /// Whether it was opened to survive its connection.
    pub is_durable: bool,
}

impl Open {
    /// `channel_sequence` is that of the CREATE.
    pub fn new(id: FileId, tree_id: u32, kind: OpenKind, channel_sequence: u16) -> Self {
        let sequence = Mutex::new(ChannelSequence::new(channel_sequence));
        Self { id, tree_id, kind, at_work: tokio::sync::RwLock::default(), sequence }
    }

    /// Counts a request until the result is dropped; `None` if it must not change anything.
    pub fn begin(self: &Arc<Self>, channel_sequence: u16, is_replay: bool) -> Option<Outstanding> {
        let counted = self.sequence.lock().begin(channel_sequence, is_replay)?;
        Some(Outstanding { open: Arc::clone(self), counted })
    }

    /// Refuses pipes, for operations on files.
    pub fn file(&self) -> Result<&OpenFile, Status> {
        match &self.kind {
            OpenKind::File(file) => Ok(file),
            OpenKind::Pipe(_) => Err(Status::INVALID_DEVICE_REQUEST),
        }
    }
}

/// Opens by the volatile half of their ids.
#[derive(Default)]
pub struct Opens {
    by_id: Mutex<HashMap<u64, Arc<Open>>>,
}

impl Opens {
    /// Adds an open unless its id is there already: a CREATE that was sent twice has opened it once.
    /// Returns false, without adding it, if there are too many.
    pub fn insert(&self, open: Arc<Open>) -> bool {
        let mut opens = self.by_id.lock();
        let has_room = opens.len() < OPENS_MAX || opens.contains_key(&open.id.volatile);
        if has_room {
            opens.entry(open.id.volatile).or_insert(open);
        }
        has_room
    }

    pub fn get(&self, id: FileId) -> Option<Arc<Open>> {
        self.by_id.lock().get(&id.volatile).filter(|open| open.id == id).cloned()
    }

    /// The caller that gets the open closes it.
    pub fn remove(&self, id: FileId) -> Option<Arc<Open>> {
        let mut opens = self.by_id.lock();
        opens.get(&id.volatile).filter(|open| open.id == id)?;
        opens.remove(&id.volatile)
    }

    pub fn remove_all(&self) -> Vec<Arc<Open>> {
        self.by_id.lock().drain().map(|(_, open)| open).collect()
    }

    pub fn remove_of_tree(&self, tree_id: u32) -> Vec<Arc<Open>> {
        let mut opens = self.by_id.lock();
        opens.extract_if(|_, open| open.tree_id == tree_id).map(|(_, open)| open).collect()
    }
}
