//! Handles as REST lists them.

use std::net::IpAddr;
use std::sync::Arc;

use super::handle::{Handle, NodeKey};
use super::range_locks::OpenId;
use super::registry::Opens;
use crate::names::FilePath;
use crate::time::Timestamp;

/// Which handles a request is about.
#[derive(Clone, Debug)]
pub struct HandleScope {
    pub key: NodeKey,
    /// The path of a directory, if handles below it count too.
    pub below: Option<FilePath>,
}

/// One entry of List Handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenHandle {
    pub id: OpenId,
    pub path: FilePath,
    pub node: u64,
    pub directory: u64,
    pub session: u64,
    pub client_address: IpAddr,
    pub client_name: Arc<str>,
    pub opened: Timestamp,
    pub reconnected: Option<Timestamp>,
    pub reads: bool,
    pub writes: bool,
    pub deletes: bool,
}

impl OpenHandle {
    fn of(handle: &Handle) -> Self {
        let (path, directory) = {
            let position = handle.position.lock();
            (position.path.clone(), position.place.directory())
        };
        let state = handle.state.lock();
        Self {
            id: handle.id,
            path,
            node: handle.key.node,
            directory,
            session: state.opener.session,
            client_address: state.opener.address,
            client_name: Arc::clone(&state.opener.client_name),
            opened: handle.opened,
            reconnected: state.reconnected,
            reads: handle.access.reads(),
            writes: handle.access.writes(),
            deletes: handle.access.deletes(),
        }
    }
}

impl HandleScope {
    fn includes(&self, handle: &Handle) -> bool {
        let below = |directory: &FilePath| {
            handle.key.share == self.key.share
                && handle.path().components().starts_with(directory.components())
        };
        handle.key == self.key || self.below.as_ref().is_some_and(below)
    }
}

impl Opens {
    /// In the order of their numbers, from `first` on.
    pub fn list_handles(
        &self,
        scope: &HandleScope,
        first: OpenId,
        limit: usize,
    ) -> Vec<OpenHandle> {
        let found = self.handles_in(scope).filter(|handle| handle.id >= first);
        found.take(limit).map(|handle| OpenHandle::of(&handle)).collect()
    }

    pub(crate) fn handles_in(&self, scope: &HandleScope) -> std::vec::IntoIter<Arc<Handle>> {
        self.handles_where(|handle| handle.snapshot.is_none() && scope.includes(handle))
    }
}
