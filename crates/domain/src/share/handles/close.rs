//! The end of handles: by their client, with its session or connection, or by REST.

use std::sync::Arc;
use std::time::Duration;

use super::command::NodeInformation;
use super::refusal::{HandleRefusal, refused};
use super::transfer::{check_open, state};
use super::{Answer, change_events};
use crate::domain::Domain;
use crate::failure::Failure;
use crate::share::opens::waiting_time;
use crate::share::opens::watch::ChangeAction;
use crate::share::opens::{Handle, HandleScope, NodeKey, OpenId};
use crate::share::{DeleteNode, FileRefusal, GetNode, NodeAddress, Place, SharePath, Wanted};

/// How often an operation follows a node that is moved meanwhile.
const MOVES_MAX: u32 = 8;

/// The first wait for a rename to tell where the node is now; each further one is twice as long.
const MOVE_PAUSE: Duration = Duration::from_millis(1);

impl Domain {
    /// Where the node of a handle is now.
    pub(super) fn address(&self, handle: &Handle) -> NodeAddress {
        NodeAddress::place(handle.share.clone(), handle.place(), handle.key.node)
    }

    /// Runs an operation on the node of a handle, following it if it is moved meanwhile.
    pub(super) async fn at_place<T, F>(
        &self,
        handle: &Handle,
        work: impl Fn(NodeAddress) -> F,
    ) -> Answer<T>
    where
        F: Future<Output = Result<T, Failure<FileRefusal>>>,
    {
        for look in 0..MOVES_MAX {
            let place = handle.place();
            match work(self.address(handle)).await {
                // The rename is committed, and its new place is recorded here a moment later.
                Err(Failure::Refused(FileRefusal::Moved)) if handle.place() == place => {
                    tokio::time::sleep(MOVE_PAUSE * (1 << look)).await;
                }
                Err(Failure::Refused(FileRefusal::Moved)) => {}
                other => return other.map_err(|failure| failure.map(refused)),
            }
        }
        Err(Failure::Refused(HandleRefusal::Closed))
    }

    pub async fn query_handle(&self, handle: &Handle) -> Answer<NodeInformation> {
        check_open(handle)?;
        let located = self
            .at_place(handle, async |address| {
                let state = state(handle);
                self.get_node(&GetNode { address, state, wanted: Wanted::Any, lease_id: None })
                    .await
            })
            .await?;
        Ok(self.information(&located.place, handle.key, &located.node))
    }

    /// Closes a handle and returns the state of the node. The node is removed if it was to be
    /// deleted with its last handle.
    pub async fn close_handle(&self, handle: &Handle) -> Answer<NodeInformation> {
        check_open(handle)?;
        let noted = self.note_close(handle).await;
        self.opens.reveal_written(handle.key);
        let information = self.query_handle(handle).await;
        self.end_handle(handle).await?;
        noted.and(information)
    }

    /// Writes whose time is not shown yet count as done when the file is closed.
    async fn note_close(&self, handle: &Handle) -> Answer<()> {
        let left = handle.access.writes() && self.opens.is_written_left_to_close(handle.key);
        if !left || handle.state.lock().frozen.written {
            return Ok(());
        }
        self.at_place(handle, async |address| {
            self.change_node(&address, |node, stamp| {
                (node.etag, node.last_modified) = (stamp.etag, stamp.now);
                node.times.written = stamp.now;
                Ok(())
            })
            .await
        })
        .await?;
        Ok(())
    }

    /// Closes a handle, if it is still open.
    async fn end_handle(&self, handle: &Handle) -> Answer<bool> {
        let Some(after) = self.opens.close(handle) else { return Ok(false) };
        if after.remove {
            self.remove_node(handle).await?;
        }
        self.remove_rows_of_closed().await?;
        Ok(true)
    }

    /// The last handle of a node that is pending delete is closed.
    async fn remove_node(&self, handle: &Handle) -> Answer<()> {
        let removed = self
            .at_place(handle, async |address| {
                let delete = DeleteNode { address, wanted: Wanted::Any, lease_id: None };
                self.delete_node(&delete).await
            })
            .await;
        self.opens.forget(handle.key);
        match removed {
            Ok(_) => {
                let path = handle.path();
                let gone = change_events::named(&path, handle.is_directory, ChangeAction::Removed);
                self.tell(handle.key.share, &[gone]);
                Ok(())
            }
            // The node stays, as if its deletion had been refused before.
            Err(Failure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn check_empty(
        &self,
        share: &SharePath,
        place: &Place,
        id: u64,
    ) -> Answer<()> {
        let address = NodeAddress::place(share.clone(), place.clone(), id);
        let list = crate::share::ListDirectory {
            address,
            state: crate::share::ShareState::Current,
            prefix: String::new(),
            after: None,
            limit: 1,
        };
        let page = self.list_directory(&list).await.map_err(|failure| failure.map(refused))?;
        if page.entries.is_empty() {
            Ok(())
        } else {
            Err(Failure::Refused(HandleRefusal::DirectoryNotEmpty))
        }
    }

    async fn end_handles(&self, handles: impl Iterator<Item = Arc<Handle>>, keep_durable: bool) {
        for handle in handles {
            if keep_durable && self.opens.lose(&handle) {
                continue;
            }
            // No client is left to be told of a failure.
            let _ = self.end_handle(&handle).await;
        }
    }

    /// A tree connect ended: everything opened through it is closed.
    pub async fn close_tree(&self, session: u64, tree: u64) {
        let handles = self.opens.handles_where(|handle| {
            let state = handle.state.lock();
            state.lost.is_none() && state.opener.session == session && state.opener.tree == tree
        });
        self.end_handles(handles, false).await;
    }

    /// A session was logged off, and everything that was opened in it is closed.
    pub async fn close_session(&self, session: u64) {
        self.end_handles(self.handles_of_session(session), false).await;
    }

    /// A session was replaced by another of its client: durable handles wait for it.
    pub async fn disconnect_session(&self, session: u64) {
        self.end_handles(self.handles_of_session(session), true).await;
    }

    fn handles_of_session(&self, session: u64) -> impl Iterator<Item = Arc<Handle>> {
        self.opens.handles_where(|handle| {
            let state = handle.state.lock();
            state.lost.is_none() && state.opener.session == session
        })
    }

    /// A connection is lost: durable handles wait for their client to come back.
    pub async fn disconnect(&self, connection: u64) {
        let handles = self.opens.handles_where(|handle| {
            let state = handle.state.lock();
            state.lost.is_none() && state.opener.connection == connection
        });
        self.end_handles(handles, true).await;
    }

    /// Closes handles that their clients have not come back for. Due every few seconds.
    pub async fn close_expired_handles(&self) {
        let now = waiting_time::now();
        let late = self
            .opens
            .handles_where(|handle| handle.state.lock().lost.is_some_and(|until| until <= now));
        self.end_handles(late, false).await;
        self.remove_left_behind().await;
        // For handles that other operations have closed. Tried again the next time if it fails.
        let _ = self.remove_rows_of_closed::<()>().await;
    }

    /// Deletes nodes whose last handles were closed without deleting them. Returns whether there
    /// were any.
    pub(super) async fn remove_left_behind(&self) -> bool {
        let removable = self.opens.take_removable();
        for handle in &removable {
            let _ = self.remove_node(handle).await;
        }
        !removable.is_empty()
    }

    /// Force Close; returns how many of the handles were closed.
    pub async fn force_close_handles(
        &self,
        scope: &HandleScope,
        only: Option<OpenId>,
    ) -> Answer<usize> {
        let mut closed = 0;
        for handle in self.opens.handles_in(scope) {
            if only.is_none_or(|only| only == handle.id) && self.end_handle(&handle).await? {
                closed += 1;
            }
        }
        Ok(closed)
    }

    /// Whether REST shows a node in listings.
    pub fn is_listed(&self, share: u64, node: u64) -> bool {
        self.opens.is_listed(NodeKey { share, node })
    }
}
