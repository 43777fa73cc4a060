//! All opens of this process.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use holdfast_sync::{AsyncMutex, Mutex};

use super::breaks::{AcknowledgeRefusal, Cause};
use super::caching::{Caching, OplockLevel};
use super::connections::ConnectedShare;
use super::handle::{CachingGranted, ClientId, Handle, LeaseKey, NodeKey, Position};
use super::node::{Attempt, HolderId, NodeOpens, Obstacle, Waiting, Wish};
use super::range_locks::OpenId;
use super::replay::{CreateId, Earlier};
use super::share_mode::{Claim, compatible};
use super::waiting_time;
use super::watch::{ChangeEvent, Watched};
use crate::names::FilePath;
use crate::share::Place;
use crate::time::Timestamp;

/// Nodes in one shard share a lock that is held only briefly.
const SHARDS: usize = 64;

type Shard = HashMap<NodeKey, NodeOpens>;

pub struct Opens {
    shards: Box<[Mutex<Shard>]>,
    /// Locked after a shard, never before one.
    pub(super) handles: Mutex<HashMap<OpenId, Arc<Handle>>>,
    /// A key is used for one file at a time.
    pub(super) leases: Mutex<HashMap<(ClientId, LeaseKey), NodeKey>>,
    /// Directories that are watched, by share.
    watched: Mutex<HashMap<u64, Vec<Arc<Handle>>>>,
    /// Shares that clients are connected to, by their numbers.
    pub(super) connected: Mutex<HashMap<u64, Weak<ConnectedShare>>>,
    /// CREATEs that may be sent again.
    pub(super) creates: Mutex<HashMap<CreateId, Earlier>>,
    /// How many persistent opens there are.
    pub(super) persistent: AtomicUsize,
    /// Closed persistent opens that still have rows.
    pub(super) closed_with_rows: Mutex<Vec<Arc<Handle>>>,
    pub(super) closed_with_rows_count: AtomicUsize,
    /// Held while such rows are removed: after waiting for it, rows of opens closed before are
    /// gone.
    pub(crate) removing_rows: AsyncMutex<()>,
    calls: AtomicU64,
}

impl Default for Opens {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            handles: Mutex::default(),
            leases: Mutex::default(),
            watched: Mutex::default(),
            connected: Mutex::default(),
            creates: Mutex::default(),
            persistent: AtomicUsize::new(0),
            closed_with_rows: Mutex::default(),
            closed_with_rows_count: AtomicUsize::new(0),
            removing_rows: AsyncMutex::new(()),
            calls: AtomicU64::new(1),
        }
    }
}

/// Why an open was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitRefusal {
    Obstacle(Obstacle),
    /// The key of the lease is in use for another file.
    LeaseElsewhere,
}

/// What clients see of a node besides what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Bytes allocated for it.
    pub allocation: u64,
    pub delete_pending: bool,
    pub written: Timestamp,
}

/// What remains to be done after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterClose {
    /// The node is to be deleted, and then told to [`Opens::forget`].
    pub remove: bool,
}

impl Opens {
    fn shard(&self, key: NodeKey) -> &Mutex<Shard> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        &self.shards[hasher.hash_one(key) as usize % SHARDS]
    }

    /// A number for a call or a waiter.
    pub(super) fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads or changes the opens of a node.
    pub(super) fn with<T>(&self, key: NodeKey, work: impl FnOnce(&mut NodeOpens) -> T) -> T {
        let mut shard = self.shard(key).lock();
        let node = shard.entry(key).or_default();
        let outcome = work(node);
        let gone = std::mem::take(&mut node.gone);
        gone.iter().for_each(|handle| self.note_closed(handle));
        self.drop_leases(key, node);
        if node.is_idle() {
            shard.remove(&key);
        }
        drop(shard);
        for handle in gone {
            self.drop_handle(&handle);
        }
        outcome
    }

    fn drop_leases(&self, key: NodeKey, node: &mut NodeOpens) {
        if node.gone_leases.is_empty() {
            return;
        }
        let mut leases = self.leases.lock();
        for lease in node.gone_leases.drain(..) {
            if leases.get(&lease) == Some(&key) {
                leases.remove(&lease);
            }
        }
    }

    fn drop_handle(&self, handle: &Arc<Handle>) {
        self.handles.lock().remove(&handle.id);
        self.forget_create(handle);
        let watch = handle.state.lock().watch.take();
        if let Some(mut watch) = watch {
            watch.end(&Watched::Closed);
            let mut watched = self.watched.lock();
            if let Some(handles) = watched.get_mut(&handle.key.share) {
                handles.retain(|other| other.id != handle.id);
                if handles.is_empty() {
                    watched.remove(&handle.key.share);
                }
            }
        }
    }

    /// As [`Opens::with`], if the node has opens.
    pub(super) fn peek<T>(&self, key: NodeKey, look: impl FnOnce(&NodeOpens) -> T) -> Option<T> {
        self.shard(key).lock().get(&key).map(look)
    }

    /// Waits until breaks are over, one way or the other.
    pub(super) async fn settled(&self, key: NodeKey, waiting: &Waiting) {
        loop {
            let pending = self.with(key, |node| {
                node.expire(waiting_time::now());
                let deadline = node.deadline(waiting)?;
                let pending = node.is_breaking(waiting);
                pending.then(|| (Arc::clone(&node.changed), deadline))
            });
            let Some((changed, deadline)) = pending else { return };
            let mut notified = std::pin::pin!(changed.notified());
            notified.as_mut().enable();
            // It may have happened between the check and the wait.
            if self.peek(key, |node| node.is_breaking(waiting)) == Some(true) {
                let _ = tokio::time::timeout_at(deadline, notified).await;
            }
        }
    }

    /// Waits until an open is possible.
    pub(crate) async fn approach(&self, key: NodeKey, wish: &Wish) -> Result<(), AdmitRefusal> {
        self.check_lease(wish, Some(key))?;
        loop {
            match self.with(key, |node| node.try_open(wish, waiting_time::now())) {
                Attempt::Done(()) => return Ok(()),
                Attempt::Wait(waiting) => self.settled(key, &waiting).await,
                Attempt::Refused(obstacle) => return Err(AdmitRefusal::Obstacle(obstacle)),
            }
        }
    }

    /// Whether the key of a lease is free for this node, or for one that is yet to be created.
    pub(crate) fn check_lease(
        &self,
        wish: &Wish,
        key: Option<NodeKey>,
    ) -> Result<(), AdmitRefusal> {
        let Some((client, lease)) = wish.lease else { return Ok(()) };
        match self.leases.lock().get(&(client, lease.key)) {
            Some(used) if Some(*used) != key => Err(AdmitRefusal::LeaseElsewhere),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds an open, if nothing has come in between since [`Opens::approach`]; `None` if that has
    /// to be repeated.
    pub(crate) fn admit(
        &self,
        make: impl FnOnce(Arc<Mutex<Position>>) -> Arc<Handle>,
        key: NodeKey,
        position: Position,
        wish: &Wish,
        delete_on_close: bool,
    ) -> Option<(Arc<Handle>, CachingGranted)> {
        self.with(key, |node| {
            let Attempt::Done(()) = node.try_open(wish, waiting_time::now()) else { return None };
            if let Some((client, lease)) = wish.lease.filter(|_| !wish.is_directory) {
                let mut leases = self.leases.lock();
                if *leases.entry((client, lease.key)).or_insert(key) != key {
                    return None;
                }
            }
            let position =
                node.position.get_or_insert_with(|| Arc::new(Mutex::new(position))).clone();
            let handle = make(position);
            self.handles.lock().insert(handle.id, Arc::clone(&handle));
            let granted = node.admit(Arc::clone(&handle), wish, delete_on_close);
            Some((handle, granted))
        })
    }

    /// Breaks the caches of others before an operation through a handle, and waits for it.
    pub(crate) async fn disturb(&self, handle: &Handle, cause: Cause) {
        let waiting =
            self.with(handle.key, |node| node.disturb(handle, cause, waiting_time::now()));
        if let Some(waiting) = waiting {
            self.settled(handle.key, &waiting).await;
        }
    }

    pub(crate) fn close(&self, handle: &Handle) -> Option<AfterClose> {
        self.with(handle.key, |node| {
            let pending = node.delete_pending;
            if !node.close(handle.id) {
                return None;
            }
            if node.delete_pending && !pending {
                end_watches(node);
            }
            Some(AfterClose { remove: node.must_remove().is_some() })
        })
    }

    /// Closes an open that failed, without deleting its node even if it asked for that.
    pub(crate) fn close_quietly(&self, handle: &Handle) {
        self.with(handle.key, |node| {
            for open in node.opens.iter_mut().filter(|open| open.handle.id == handle.id) {
                open.delete_on_close = false;
            }
            node.close(handle.id);
        });
    }

    /// The last handles of nodes to be deleted that were closed by a timeout.
    pub(crate) fn take_removable(&self) -> Vec<Arc<Handle>> {
        let mut removable = Vec::new();
        for shard in &self.shards {
            removable.extend(shard.lock().values_mut().filter_map(NodeOpens::must_remove));
        }
        removable
    }

    /// The node was deleted, or cannot be.
    pub(crate) fn forget(&self, key: NodeKey) {
        self.with(key, |node| {
            node.removing = false;
            node.delete_pending = false;
            node.last = None;
            node.changed.notify_waiters();
        });
    }

    /// Waits while a node is being removed. Returns whether it was.
    pub(crate) async fn removed(&self, key: NodeKey) -> bool {
        self.wait_while(key, |node| node.removing).await
    }

    pub(crate) fn is_delete_pending(&self, key: NodeKey) -> bool {
        self.peek(key, NodeOpens::is_delete_pending) == Some(true)
    }

    pub(crate) fn is_marked_for_deletion(&self, key: NodeKey) -> bool {
        self.peek(key, NodeOpens::is_marked_for_deletion) == Some(true)
    }

    pub(crate) fn set_delete_pending(&self, key: NodeKey, pending: bool) {
        self.with(key, |node| {
            node.delete_pending = pending;
            if pending {
                end_watches(node);
            }
        });
    }

    /// Whether the node is open.
    pub(crate) fn is_open(&self, key: NodeKey) -> bool {
        self.peek(key, |node| !node.opens.is_empty()) == Some(true)
    }

    /// Whether an open of the node excludes this claim.
    pub(crate) fn excludes(&self, key: NodeKey, claim: Claim) -> bool {
        let excludes = |node: &NodeOpens| {
            node.opens.iter().any(|open| !compatible(open.handle.claim(), claim))
        };
        self.peek(key, excludes) == Some(true)
    }

    /// Whether anything below a directory is open.
    pub(crate) fn is_open_below(&self, share: u64, directory: &FilePath) -> bool {
        let directory = directory.components();
        self.handles_where(|handle| {
            let path = handle.path();
            let path = path.components();
            handle.key.share == share && path.len() > directory.len() && path.starts_with(directory)
        })
        .next()
        .is_some()
    }

    /// Records the new place of a node for all of its opens.
    pub(crate) fn moved(&self, key: NodeKey, place: Place, path: FilePath) {
        let position = self.peek(key, |node| node.position.clone()).flatten();
        if let Some(position) = position {
            *position.lock() = Position { place, path };
        }
    }

    /// What clients see of a node, given its stored state.
    pub(crate) fn seen(&self, key: NodeKey, written: Timestamp) -> Seen {
        let mut shard = self.shard(key).lock();
        let Some(node) = shard.get_mut(&key) else {
            return Seen { allocation: 0, delete_pending: false, written };
        };
        Seen {
            allocation: node.allocation,
            delete_pending: node.is_delete_pending(),
            written: node.written.seen(written, waiting_time::now()),
        }
    }

    /// Records when the node was last written, as read from its row on opening.
    pub(crate) fn know_written(&self, key: NodeKey, written: Timestamp) {
        self.with(key, |node| node.written.know(written));
    }

    pub(crate) fn note_written(&self, key: NodeKey, written: Timestamp) {
        self.with(key, |node| node.written.write(written, waiting_time::now()));
    }

    /// Whether closing the node shows writes that were not shown before.
    pub(crate) fn is_written_left_to_close(&self, key: NodeKey) -> bool {
        self.peek(key, |node| node.written.is_left_to_close()) == Some(true)
    }

    pub(crate) fn reveal_written(&self, key: NodeKey) {
        self.with(key, |node| node.written.reveal());
    }

    pub(crate) fn set_allocation(&self, key: NodeKey, bytes: u64) {
        self.with(key, |node| node.allocation = bytes);
    }

    pub(crate) fn granted_to(&self, handle: &Handle) -> CachingGranted {
        self.peek(handle.key, |node| node.granted_to(handle.id)).unwrap_or_default()
    }

    /// Whether a break of what the handle caches is under way.
    pub(crate) fn is_asked_to_give_up(&self, handle: &Handle) -> bool {
        self.peek(handle.key, |node| node.is_breaking_of(handle.id)) == Some(true)
    }

    pub(crate) fn can_be_durable(&self, handle: &Handle) -> bool {
        self.peek(handle.key, |node| node.can_be_durable(handle.id)) == Some(true)
    }

    pub fn acknowledge_oplock(
        &self,
        handle: &Handle,
        level: OplockLevel,
    ) -> Result<OplockLevel, AcknowledgeRefusal> {
        let id = HolderId::Oplock(handle.id);
        let acknowledge =
            |node: &mut NodeOpens| node.acknowledge(id, level.caching(), waiting_time::now());
        self.with(handle.key, acknowledge).map(OplockLevel::of)
    }

    /// `None` if the client has no lease of this key.
    pub fn acknowledge_lease(
        &self,
        client: ClientId,
        key: LeaseKey,
        kept: Caching,
    ) -> Option<Result<Caching, AcknowledgeRefusal>> {
        let node = *self.leases.lock().get(&(client, key))?;
        let id = HolderId::Lease(client, key);
        Some(self.with(node, |node| node.acknowledge(id, kept, waiting_time::now())))
    }

    /// The node for which a client has a lease with this key.
    pub(crate) fn leased(&self, client: ClientId, key: LeaseKey) -> Option<NodeKey> {
        self.leases.lock().get(&(client, key)).copied()
    }

    pub fn handle(&self, id: OpenId) -> Option<Arc<Handle>> {
        self.handles.lock().get(&id).cloned()
    }

    pub(crate) fn handles_where(
        &self,
        wanted: impl Fn(&Handle) -> bool,
    ) -> std::vec::IntoIter<Arc<Handle>> {
        let all: Vec<Arc<Handle>> = self.handles.lock().values().cloned().collect();
        let mut found: Vec<_> = all.into_iter().filter(|handle| wanted(handle)).collect();
        found.sort_unstable_by_key(|handle| handle.id);
        found.into_iter()
    }

    pub(crate) fn watch(&self, handle: &Arc<Handle>) {
        self.watched.lock().entry(handle.key.share).or_default().push(Arc::clone(handle));
    }

    pub(crate) fn is_watched(&self, share: u64) -> bool {
        self.watched.lock().contains_key(&share)
    }

    /// Notifies the watchers.
    pub(crate) fn tell(&self, share: u64, change_events: &[ChangeEvent]) {
        let watching = self.watched.lock().get(&share).cloned().unwrap_or_default();
        for handle in watching {
            let path = handle.path();
            if let Some(watch) = &mut handle.state.lock().watch {
                watch.notice(path.components(), change_events);
            }
        }
    }
}

fn end_watches(node: &NodeOpens) {
    for open in &node.opens {
        if let Some(watch) = &mut open.handle.state.lock().watch {
            watch.end(&Watched::DeletePending);
        }
    }
}
