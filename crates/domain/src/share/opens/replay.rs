//! CREATEs that a client may send again because it has received no answer, [MS-SMB2] 3.3.5.9.10.
//! Each has a GUID; the answer is the same handle until the client has used it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handle::{ClientId, Handle};
use super::registry::Opens;
use crate::names::FilePath;

/// Identifies a CREATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreateId {
    pub client: ClientId,
    pub guid: u128,
}

/// The result of a CREATE.
#[derive(Debug)]
pub(crate) struct Created {
    pub handle: Arc<Handle>,
    /// As it was asked for.
    pub path: FilePath,
}

/// An earlier CREATE with the same identifier.
#[derive(Clone, Debug)]
pub(crate) enum Earlier {
    Pending,
    Done(Arc<Created>),
}

/// A CREATE under way. If it fails, it may be sent again as new.
pub(crate) struct Creating<'a> {
    opens: &'a Opens,
    id: CreateId,
    is_done: bool,
}

impl Creating<'_> {
    pub fn done(mut self, created: Created) {
        self.is_done = true;
        let handle = Arc::clone(&created.handle);
        handle.is_replayable.store(true, Ordering::Release);
        self.opens.creates.lock().insert(self.id, Earlier::Done(Arc::new(created)));
        if handle.is_closed() {
            self.opens.forget_create(&handle);
        }
    }
}

impl Drop for Creating<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.opens.creates.lock().remove(&self.id);
        }
    }
}

impl Opens {
    pub(crate) fn begin_create(&self, id: CreateId) -> Result<Creating<'_>, Earlier> {
        let mut creates = self.creates.lock();
        if let Some(earlier) = creates.get(&id) {
            return Err(earlier.clone());
        }
        creates.insert(id, Earlier::Pending);
        Ok(Creating { opens: self, id, is_done: false })
    }

    /// The client has used the handle and so knows the answer to its CREATE; or the handle is
    /// closed.
    pub(crate) fn forget_create(&self, handle: &Handle) {
        // For nearly all requests this was done before.
        if !handle.is_replayable.load(Ordering::Acquire)
            || !handle.is_replayable.swap(false, Ordering::AcqRel)
        {
            return;
        }
        let Some(id) = handle.create else { return };
        let mut creates = self.creates.lock();
        if let Some(Earlier::Done(created)) = creates.get(&id)
            && created.handle.id == handle.id
        {
            creates.remove(&id);
        }
    }
}
