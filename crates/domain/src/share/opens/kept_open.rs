//! Opens that outlive the process: their rows, and how they are restored from them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use holdfast_sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::access::AccessMask;
use super::caching::{Caching, OplockLevel};
use super::handle::{
    CachingGranted, ClientId, Durability, Durable, FrozenTimes, Handle, HandleState, LeaseGranted,
    LeaseKey, LeaseVersion, NodeKey, Opener, Position,
};
use super::node::{NodeOpens, OpenEntry};
use super::range_locks::{LockKind, OpenId, Range, RangeLock};
use super::registry::Opens;
use super::replay::{CreateId, Created, Earlier};
use super::share_mode::ShareMode;
use super::waiting_time;
use crate::names::FilePath;
use crate::rows::Stored;
use crate::share::handles::Action;
use crate::share::{Place, SharePath, rows};
use crate::time::Timestamp;

/// The length of a row is limited, and it is rewritten with each lock.
pub(crate) const LOCKS_MAX: usize = 10_000;
/// Persistent opens of one node; a change of one checks all of them. Clients keep one or a few; further
/// opens are granted, but do not outlive the process.
pub(super) const PERSISTENT_OPENS_OF_NODE_MAX: usize = 64;

/// A persistent open, as its row has it. Its number is in the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptOpen {
    pub share: SharePath,
    pub node: u64,
    pub directory: u64,
    pub folded_name: String,
    pub path: FilePath,
    access: u32,
    maximal_access: u32,
    sharing: ShareMode,
    write_through: bool,
    opened: Timestamp,
    action: Action,
    client: u128,
    create_guid: u128,
    address: IpAddr,
    client_name: String,
    user: String,
    timeout_milliseconds: u32,
    delete_on_close: bool,
    /// Of the node.
    delete_pending: bool,
    frozen: FrozenTimes,
    caching: KeptCaching,
    locks: Vec<KeptLock>,
    /// The sequence numbers of lock requests, each after its index.
    lock_sequences: Vec<(u8, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum KeptCaching {
    None,
    Oplock { caching: u32 },
    Lease { key: u128, caching: u32, version: LeaseVersion, epoch: u16, parent: Option<u128> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptLock {
    offset: u64,
    length: u64,
    is_exclusive: bool,
}

impl Stored for KeptOpen {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a persistent open";
}

impl KeptOpen {
    /// `None` if it is not to be stored.
    fn of(entry: &OpenEntry, node: &NodeOpens, locks: &[KeptLock]) -> Option<Self> {
        let handle = &entry.handle;
        let create = handle.create?;
        let (place, path) = {
            let position = handle.position.lock();
            (position.place.clone(), position.path.clone())
        };
        let caching = KeptCaching::of(node.granted_to(handle.id));
        let state = handle.state.lock();
        let durable = state.durable.filter(|durable| durable.is_persistent)?;
        let sequences = (0u8..).zip(state.lock_sequences);
        let timeout = durable.timeout.as_millis();
        Some(Self {
            share: handle.share.clone(),
            node: handle.key.node,
            directory: place.directory(),
            folded_name: place.folded_name().to_owned(),
            path,
            access: handle.access.bits(),
            maximal_access: state.maximal_access.bits(),
            sharing: handle.sharing,
            write_through: handle.write_through,
            opened: handle.opened,
            action: state.action,
            client: state.opener.client.0,
            create_guid: create.guid,
            address: state.opener.address,
            client_name: state.opener.client_name.to_string(),
            user: state.opener.user.to_string(),
            timeout_milliseconds: u32::try_from(timeout).unwrap_or(u32::MAX),
            delete_on_close: entry.delete_on_close,
            delete_pending: node.delete_pending,
            frozen: state.frozen,
            caching,
            locks: locks.to_vec(),
            lock_sequences: sequences.filter_map(|(at, number)| Some((at, number?))).collect(),
        })
    }

    pub fn place(&self, share: u64) -> Place {
        Place::folded(share, self.directory, self.folded_name.clone())
    }

    fn locks(&self, owner: OpenId) -> Vec<RangeLock> {
        let kind = |exclusive| if exclusive { LockKind::Exclusive } else { LockKind::Shared };
        let locks = self.locks.iter().map(|lock| RangeLock {
            owner,
            range: Range { offset: lock.offset, length: lock.length },
            kind: kind(lock.is_exclusive),
        });
        locks.collect()
    }

    /// The open without its client, waiting for it to reconnect.
    fn state(&self) -> HandleState {
        // There is no client yet to be told of breaks.
        let (events, _) = mpsc::unbounded_channel();
        let mut state = HandleState::new(Opener {
            connection: 0,
            session: 0,
            tree: 0,
            client: ClientId(self.client),
            address: self.address,
            client_name: Arc::from(self.client_name.as_str()),
            user: Arc::from(self.user.as_str()),
            events,
        });
        let timeout = Duration::from_millis(self.timeout_milliseconds.into());
        let kind = Durability::Second(self.create_guid);
        state.durable = Some(Durable { kind, timeout, is_persistent: true });
        state.lost = Some(waiting_time::now() + timeout);
        (state.action, state.maximal_access) =
            (self.action, AccessMask::from_bits_retain(self.maximal_access));
        state.frozen = self.frozen;
        for (at, number) in &self.lock_sequences {
            if let Some(slot) = state.lock_sequences.get_mut(usize::from(*at)) {
                *slot = Some(*number);
            }
        }
        state
    }

    fn handle(&self, id: OpenId, key: NodeKey, position: Arc<Mutex<Position>>) -> Handle {
        let client = ClientId(self.client);
        Handle {
            id,
            share: self.share.clone(),
            key,
            access: AccessMask::from_bits_retain(self.access),
            sharing: self.sharing,
            is_directory: false,
            snapshot: None,
            write_through: self.write_through,
            opened: self.opened,
            lease: self.caching.lease_key(),
            create: Some(CreateId { client, guid: self.create_guid }),
            is_replayable: AtomicBool::new(true),
            position,
            state: Mutex::new(self.state()),
        }
    }
}

impl KeptCaching {
    fn of(granted: CachingGranted) -> Self {
        match granted {
            CachingGranted::None => Self::None,
            CachingGranted::Oplock(level) => Self::Oplock { caching: level.caching().bits() },
            CachingGranted::Lease(lease) => Self::Lease {
                key: lease.key.0,
                caching: lease.caching.bits(),
                version: lease.version,
                epoch: lease.epoch,
                parent: lease.parent.map(|LeaseKey(key)| key),
            },
        }
    }

    fn granted(&self) -> CachingGranted {
        match *self {
            Self::None => CachingGranted::None,
            Self::Oplock { caching } => {
                CachingGranted::Oplock(OplockLevel::of(Caching::from_bits_truncate(caching)))
            }
            Self::Lease { key, caching, version, epoch, parent } => {
                CachingGranted::Lease(LeaseGranted {
                    key: LeaseKey(key),
                    caching: Caching::from_bits_truncate(caching),
                    version,
                    epoch,
                    parent: parent.map(LeaseKey),
                    breaking: false,
                })
            }
        }
    }

    fn lease_key(&self) -> Option<LeaseKey> {
        match self {
            Self::Lease { key, .. } => Some(LeaseKey(*key)),
            Self::None | Self::Oplock { .. } => None,
        }
    }
}

/// The row of an open.
#[derive(Clone, Debug)]
pub(crate) struct OpenRow {
    pub handle: Arc<Handle>,
    pub value: Bytes,
    /// As last known by this process.
    pub before: Option<Bytes>,
}

impl OpenRow {
    pub fn key(&self) -> Bytes {
        row_key(&self.handle)
    }
}

pub(crate) fn row_key(handle: &Handle) -> Bytes {
    rows::open(handle.key.share, handle.id)
}

impl Opens {
    /// Whether there are any persistent opens: most servers never have one.
    pub(crate) fn has_persistent(&self) -> bool {
        self.persistent.load(Ordering::Acquire) > 0
    }

    /// Whether a node has persistent opens.
    pub(crate) fn has_persistent_at(&self, key: NodeKey) -> bool {
        self.persistent_at(key) > 0
    }

    pub(super) fn persistent_at(&self, key: NodeKey) -> usize {
        if !self.has_persistent() {
            return 0;
        }
        let is_persistent = |open: &&OpenEntry| open.handle.is_persistent();
        let count = |node: &NodeOpens| node.opens.iter().filter(is_persistent).count();
        self.peek(key, count).unwrap_or(0)
    }

    /// The rows of a node's persistent opens that have changed since they were stored.
    pub(crate) fn changed_rows(&self, key: NodeKey) -> Vec<OpenRow> {
        let mut rows = self.rows(key, |_| {});
        rows.retain(|row| row.before.as_ref() != Some(&row.value));
        rows
    }

    /// The rows of a node's persistent opens after a move.
    pub(crate) fn rows_after_move(
        &self,
        key: NodeKey,
        place: &Place,
        path: &FilePath,
    ) -> Vec<OpenRow> {
        if !self.has_persistent() {
            return Vec::new();
        }
        self.rows(key, |kept| {
            kept.directory = place.directory();
            kept.folded_name = place.folded_name().to_owned();
            kept.path = path.clone();
        })
    }

    fn rows(&self, key: NodeKey, change: impl Fn(&mut KeptOpen)) -> Vec<OpenRow> {
        let rows = self.peek(key, |node| {
            // In one pass: a node may have many opens with many locks each.
            let mut locks: HashMap<OpenId, Vec<KeptLock>> = HashMap::new();
            for lock in node.locks.iter() {
                locks.entry(lock.owner).or_default().push(KeptLock {
                    offset: lock.range.offset,
                    length: lock.range.length,
                    is_exclusive: lock.kind == LockKind::Exclusive,
                });
            }
            let rows = node.opens.iter().filter_map(|entry| {
                let locks = locks.get(&entry.handle.id).map_or(&[][..], Vec::as_slice);
                let mut kept = KeptOpen::of(entry, node, locks)?;
                change(&mut kept);
                let handle = Arc::clone(&entry.handle);
                let before = handle.state.lock().kept.clone();
                Some(OpenRow { handle, value: kept.encode(), before })
            });
            rows.collect()
        });
        rows.unwrap_or_default()
    }

    /// These rows are durable.
    pub(crate) fn note_kept(&self, rows: Vec<OpenRow>) {
        for OpenRow { handle, value, .. } in rows {
            handle.state.lock().kept = Some(value);
        }
    }

    /// A rename has written these rows: if an open was closed meanwhile its row must be removed
    /// again.
    pub(crate) fn note_written_again(&self, rows: Vec<OpenRow>) {
        for OpenRow { handle, .. } in rows {
            if handle.is_closed() {
                self.note_row_left(handle);
            }
        }
    }

    fn note_row_left(&self, handle: Arc<Handle>) {
        let mut closed = self.closed_with_rows.lock();
        closed.push(handle);
        self.closed_with_rows_count.store(closed.len(), Ordering::Release);
    }

    /// Closed persistent opens whose rows still exist.
    pub(crate) fn closed_with_rows(&self) -> Vec<Arc<Handle>> {
        match self.has_closed_with_rows() {
            true => self.closed_with_rows.lock().clone(),
            false => Vec::new(),
        }
    }

    pub(crate) fn has_closed_with_rows(&self) -> bool {
        self.closed_with_rows_count.load(Ordering::Acquire) > 0
    }

    /// A persistent open is closed. Called under the lock of its node's shard, so that nothing sees
    /// it closed before.
    pub(super) fn note_closed(&self, handle: &Arc<Handle>) {
        if handle.is_persistent() {
            self.note_row_left(Arc::clone(handle));
            self.persistent.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The rows of these were removed.
    pub(crate) fn note_rows_gone(&self, gone: &[Arc<Handle>]) {
        let mut closed = self.closed_with_rows.lock();
        closed.retain(|handle| gone.iter().all(|gone| gone.id != handle.id));
        self.closed_with_rows_count.store(closed.len(), Ordering::Release);
    }

    /// Restores an open that an earlier process has granted. Its client has the full promised time to
    /// reconnect.
    pub(crate) fn restore(&self, id: OpenId, share: u64, kept: &KeptOpen) {
        let key = NodeKey { share, node: kept.node };
        let position = Position { place: kept.place(share), path: kept.path.clone() };
        let granted = kept.caching.granted();
        let client = ClientId(kept.client);
        self.persistent.fetch_add(1, Ordering::AcqRel);
        let handle = self.with(key, |node| {
            let position = node.position.get_or_insert_with(|| Arc::new(Mutex::new(position)));
            let handle = Arc::new(kept.handle(id, key, Arc::clone(position)));
            if let Some(lease) = handle.lease {
                self.leases.lock().insert((client, lease), key);
            }
            self.handles.lock().insert(id, Arc::clone(&handle));
            node.restore(Arc::clone(&handle), granted, client, kept.delete_on_close);
            node.delete_pending |= kept.delete_pending;
            // Two conflicting rows come from an unlock and a lock that were not answered yet.
            let _ = node.locks.lock(&kept.locks(id));
            handle
        });
        handle.state.lock().kept = Some(kept.encode());
        if let Some(create) = handle.create {
            let created = Created { handle, path: kept.path.clone() };
            self.creates.lock().insert(create, Earlier::Done(Arc::new(created)));
        }
    }
}
