//! All opens of one node, and how a new open affects them. Nothing waits here: a caller that must wait is
//! told for what.

use std::collections::VecDeque;
use std::sync::Arc;

use holdfast_sync::{Mutex, Notify};
use tokio::time::Instant;

use super::access::AccessMask;
use super::breaks::{self, AcknowledgeRefusal, Acknowledged, BREAK_TIMEOUT, Cause, Holder, Notice};
use super::caching::{self, Caching, HolderKind, OplockLevel, Others};
use super::delayed_time::DelayedTime;
use super::handle::{
    CachingEvent, CachingGranted, ClientId, Handle, LeaseGranted, LeaseKey, LeaseVersion,
    LeaseWanted, Position,
};
use super::locking::LockWaiter;
use super::range_locks::{OpenId, RangeLocks};
use super::share_mode::{Claim, compatible};

/// Whose cache it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HolderId {
    Oplock(OpenId),
    Lease(ClientId, LeaseKey),
}

#[derive(Debug)]
struct Held {
    id: HolderId,
    holder: Holder,
    version: LeaseVersion,
    parent: Option<LeaseKey>,
    /// When the break under way times out.
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub struct OpenEntry {
    pub handle: Arc<Handle>,
    pub delete_on_close: bool,
    holder: Option<HolderId>,
}

/// The breaks that a new open must wait for.
pub type Waiting = Vec<HolderId>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    DeletePending,
    SharingViolation,
    LockConflict,
}

/// The outcome of one attempt at the opens of a node.
#[derive(Debug)]
pub enum Attempt<T> {
    Done(T),
    Wait(Waiting),
    Refused(Obstacle),
}

/// What a new open requires of the others.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub claim: Claim,
    pub overwrites: bool,
    pub lease: Option<(ClientId, LeaseWanted)>,
    pub oplock: OplockLevel,
    /// Directories are not cached.
    pub is_directory: bool,
}

impl Wish {
    /// Replacing the content is a write, whatever access the open asks for.
    fn sharing_claim(&self) -> Claim {
        let overwrite = if self.overwrites { AccessMask::WRITE_DATA } else { AccessMask::empty() };
        Claim { access: self.claim.access.union(overwrite), ..self.claim }
    }

    fn own(&self) -> Option<HolderId> {
        self.lease.map(|(client, lease)| HolderId::Lease(client, lease.key))
    }
}

#[derive(Debug, Default)]
pub struct NodeOpens {
    pub opens: Vec<OpenEntry>,
    held: Vec<Held>,
    pub locks: RangeLocks,
    pub lock_waiters: VecDeque<LockWaiter>,
    /// Running REST calls, and what they claim.
    pub calls: Vec<(u64, Claim)>,
    pub delete_pending: bool,
    /// How many additions to this directory are under way.
    pub additions: usize,
    /// Nothing is added to it while it is decided whether it is deleted.
    pub is_sealed: bool,
    /// The last open is closed and the node is being deleted.
    pub removing: bool,
    /// The last handle of a node to be deleted, which knows its place, until it is removed.
    pub last: Option<Arc<Handle>>,
    /// Bytes allocated beyond the end of the file, until the last close.
    pub allocation: u64,
    pub written: DelayedTime,
    pub position: Option<Arc<Mutex<Position>>>,
    /// Closed here, but not yet removed from the registry.
    pub gone: Vec<Arc<Handle>>,
    pub gone_leases: Vec<(ClientId, LeaseKey)>,
    /// Notified when a break is over, an open is closed or a call is done.
    pub changed: Arc<Notify>,
}

impl NodeOpens {
    /// Whether nothing uses the node any more.
    pub fn is_idle(&self) -> bool {
        let removed = !self.removing && self.last.is_none();
        let is_still = self.additions == 0 && !self.is_sealed;
        self.opens.is_empty() && self.calls.is_empty() && removed && is_still
    }

    /// Whether it is deleted with its last handle, and refuses new opens until then.
    pub fn is_delete_pending(&self) -> bool {
        self.delete_pending || self.removing
    }

    /// Whether an open will delete it on close, or the deletion is pending already. SMB clients may
    /// still open it; REST is refused, and nothing is added to a directory.
    pub fn is_marked_for_deletion(&self) -> bool {
        self.is_delete_pending() || self.opens.iter().any(|open| open.delete_on_close)
    }

    /// Whether any of what was waited for is still under way.
    pub fn is_breaking(&self, holders: &[HolderId]) -> bool {
        let breaking = |held: &Held| holders.contains(&held.id) && held.holder.is_breaking();
        self.held.iter().any(breaking)
    }

    /// Whether what this open caches is being broken.
    pub fn is_breaking_of(&self, open: OpenId) -> bool {
        let entry = self.opens.iter().find(|entry| entry.handle.id == open);
        entry.and_then(|entry| entry.holder).is_some_and(|id| self.is_breaking(&[id]))
    }

    /// The earliest deadline of these breaks.
    pub fn deadline(&self, holders: &[HolderId]) -> Option<Instant> {
        let waited = self.held.iter().filter(|held| holders.contains(&held.id));
        waited.filter_map(|held| held.deadline).min()
    }

    /// Ends breaks that have timed out, and closes handles that their clients have not reconnected
    /// to in time.
    pub fn expire(&mut self, now: Instant) {
        let late = |entry: &OpenEntry| {
            let lost = entry.handle.state.lock().lost;
            lost.is_some_and(|until| until <= now)
        };
        let late: Vec<OpenId> =
            self.opens.iter().filter(|open| late(open)).map(|open| open.handle.id).collect();
        for open in late {
            self.close(open);
        }
        for held in &mut self.held {
            if held.holder.is_breaking() && held.deadline.is_some_and(|deadline| deadline <= now) {
                held.holder.give_up();
                held.deadline = None;
                self.changed.notify_waiters();
            }
        }
    }

    /// Whether a new open is possible, and what it must wait for.
    pub fn try_open(&mut self, wish: &Wish, now: Instant) -> Attempt<()> {
        self.expire(now);
        if self.is_delete_pending() {
            return Attempt::Refused(Obstacle::DeletePending);
        }
        let own = wish.own();
        if self.conflicts(wish.sharing_claim()) {
            let (waiting, lost) = self.cause(|_| Some(Cause::SharingConflict), own, now);
            return match waiting {
                Some(waiting) => Attempt::Wait(waiting),
                None if lost && !self.conflicts(wish.sharing_claim()) => self.try_open(wish, now),
                None => Attempt::Refused(Obstacle::SharingViolation),
            };
        }
        let access = wish.claim.access;
        let cause = |kind: HolderKind| {
            if wish.overwrites {
                Some(Cause::Overwrite)
            } else {
                let harmless = access.leaves_caches(kind == HolderKind::Lease);
                (!harmless).then_some(Cause::Open)
            }
        };
        match self.cause(cause, own, now).0 {
            Some(waiting) => Attempt::Wait(waiting),
            None => Attempt::Done(()),
        }
    }

    fn conflicts(&self, claim: Claim) -> bool {
        self.opens.iter().any(|open| !compatible(open.handle.claim(), claim))
            || self.calls.iter().any(|(_, call)| !compatible(*call, claim))
    }

    /// Breaks the caches of others, as far as needed. Returns what to wait for, and whether handles
    /// were closed because their clients are disconnected.
    pub fn cause(
        &mut self,
        cause: impl Fn(HolderKind) -> Option<Cause>,
        own: Option<HolderId>,
        now: Instant,
    ) -> (Option<Waiting>, bool) {
        let (mut waiting, mut abandoned) = (Vec::new(), Vec::new());
        for held in &mut self.held {
            // The caller decides what happens to the open's own oplock.
            if Some(held.id) == own {
                continue;
            }
            let decided = cause(held.holder.kind)
                .and_then(|cause| breaks::decide(held.holder.kind, held.holder.held, cause));
            let Some(decided) = decided else { continue };
            let there = |open: &&OpenEntry| open.holder == Some(held.id) && !open.handle.is_lost();
            let kept =
                |open: &&OpenEntry| open.holder == Some(held.id) && open.handle.is_persistent();
            let open = self.opens.iter().find(there);
            let Some(open) = open.or_else(|| self.opens.iter().find(kept)) else {
                abandoned.push(held.id);
                continue;
            };
            // A disconnected client cannot close the handle that conflicts.
            if open.handle.is_lost() && decided.asks_to_close {
                continue;
            }
            let open = first_way(&self.opens, open);
            if let Some(notice) = held.holder.start(decided.to) {
                held.deadline = held.holder.is_breaking().then_some(now + BREAK_TIMEOUT);
                tell(&open.handle, held.id, notice, held.version);
            }
            if decided.waits && held.holder.is_breaking() {
                waiting.push(held.id);
            }
        }
        let lost = !abandoned.is_empty();
        for id in abandoned {
            self.abandon(id);
        }
        ((!waiting.is_empty()).then_some(waiting), lost)
    }

    /// A durable handle is closed with the cache that made it durable.
    fn abandon(&mut self, id: HolderId) {
        let lost: Vec<OpenId> = self
            .opens
            .iter()
            .filter(|open| open.holder == Some(id) && open.handle.is_lost())
            .filter(|open| !open.handle.is_persistent())
            .map(|open| open.handle.id)
            .collect();
        for open in lost {
            self.close(open);
        }
    }

    /// Sends a reconnected client the breaks that it has missed.
    pub fn tell_again(&self, open: OpenId) {
        let Some(entry) = self.opens.iter().find(|entry| entry.handle.id == open) else { return };
        let held = self.held.iter().find(|held| Some(held.id) == entry.holder);
        if let Some(held) = held
            && let Some(notice) = held.holder.asked()
        {
            tell(&entry.handle, held.id, notice, held.version);
        }
    }

    /// Restores an open of an earlier process with its cache.
    pub fn restore(
        &mut self,
        handle: Arc<Handle>,
        granted: CachingGranted,
        client: ClientId,
        delete_on_close: bool,
    ) {
        let held = match granted {
            CachingGranted::None => None,
            CachingGranted::Oplock(level) => {
                let holder = Holder::new(HolderKind::Oplock, level.caching(), 0);
                let (id, version) = (HolderId::Oplock(handle.id), LeaseVersion::One);
                Some(Held { id, holder, version, parent: None, deadline: None })
            }
            CachingGranted::Lease(lease) => {
                let LeaseGranted { key, caching, version, epoch, parent, .. } = lease;
                let holder = Holder::new(HolderKind::Lease, caching, epoch);
                let id = HolderId::Lease(client, key);
                Some(Held { id, holder, version, parent, deadline: None })
            }
        };
        let holder = held.as_ref().map(|held| held.id);
        if let Some(held) = held
            && !self.held.iter().any(|other| other.id == held.id)
        {
            self.held.push(held);
        }
        self.opens.push(OpenEntry { handle, delete_on_close, holder });
    }

    /// Breaks caches for a write, a lock or another change through `handle`: also its own level two
    /// oplock, but not its lease.
    pub fn disturb(&mut self, handle: &Handle, cause: Cause, now: Instant) -> Option<Waiting> {
        self.expire(now);
        let own = self.opens.iter().find(|open| open.handle.id == handle.id);
        let own = own.and_then(|open| open.holder);
        if cause == Cause::Write
            && let Some(HolderId::Oplock(open)) = own
            && let Some(held) = self.held.iter_mut().find(|held| held.id == HolderId::Oplock(open))
            && held.holder.held == Caching::READ
            && !held.holder.is_breaking()
            && let Some(notice) = held.holder.start(Caching::empty())
        {
            tell(handle, held.id, notice, held.version);
        }
        self.cause(|_| Some(cause), own, now).0
    }

    /// Adds an open for which [`NodeOpens::try_open`] found no obstacle.
    pub fn admit(
        &mut self,
        handle: Arc<Handle>,
        wish: &Wish,
        delete_on_close: bool,
    ) -> CachingGranted {
        let (holder, granted) = self.grant(&handle, wish);
        self.opens.push(OpenEntry { handle, delete_on_close, holder });
        granted
    }

    fn grant(&mut self, handle: &Handle, wish: &Wish) -> (Option<HolderId>, CachingGranted) {
        if wish.is_directory {
            return (None, CachingGranted::None);
        }
        let own = wish.own();
        let others = self.others(own);
        if let Some((client, lease)) = wish.lease {
            let granted = caching::grant(HolderKind::Lease, lease.caching, others);
            return self.grant_lease(client, lease, granted);
        }
        let granted = caching::grant(HolderKind::Oplock, wish.oplock.caching(), others);
        if granted.is_empty() {
            return (None, CachingGranted::None);
        }
        let id = HolderId::Oplock(handle.id);
        let holder = Holder::new(HolderKind::Oplock, granted, 0);
        let version = LeaseVersion::One;
        self.held.push(Held { id, holder, version, parent: None, deadline: None });
        (Some(id), CachingGranted::Oplock(OplockLevel::of(granted)))
    }

    fn grant_lease(
        &mut self,
        client: ClientId,
        wanted: LeaseWanted,
        granted: Caching,
    ) -> (Option<HolderId>, CachingGranted) {
        let id = HolderId::Lease(client, wanted.key);
        if let Some(held) = self.held.iter_mut().find(|held| held.id == id) {
            if !held.holder.is_breaking() {
                let caching = caching::upgrade(held.holder.held, wanted.caching, granted);
                held.holder.grow(caching);
            }
        } else {
            let epoch = wanted.epoch.wrapping_add(1);
            let holder = Holder::new(HolderKind::Lease, granted, epoch);
            let (version, parent) = (wanted.version, wanted.parent);
            self.held.push(Held { id, holder, version, parent, deadline: None });
        }
        (Some(id), self.granted(Some(id)))
    }

    /// What a holder has now.
    pub fn granted(&self, id: Option<HolderId>) -> CachingGranted {
        let held = id.and_then(|id| self.held.iter().find(|held| held.id == id));
        match held {
            None => CachingGranted::None,
            Some(Held { id: HolderId::Oplock(_), holder, .. }) => {
                CachingGranted::Oplock(OplockLevel::of(holder.held))
            }
            Some(Held { id: HolderId::Lease(_, key), holder, version, parent, .. }) => {
                CachingGranted::Lease(LeaseGranted {
                    key: *key,
                    caching: holder.held,
                    version: *version,
                    epoch: holder.epoch,
                    parent: *parent,
                    breaking: holder.is_breaking(),
                })
            }
        }
    }

    pub fn granted_to(&self, open: OpenId) -> CachingGranted {
        let entry = self.opens.iter().find(|entry| entry.handle.id == open);
        self.granted(entry.and_then(|entry| entry.holder))
    }

    fn others(&self, own: Option<HolderId>) -> Others {
        let mut others = Others { range_locks: !self.locks.is_empty(), ..Others::default() };
        for open in &self.opens {
            let same = own.is_some() && open.holder == own;
            others.open |= !same && !open.handle.access.leaves_caches(false);
        }
        for held in self.held.iter().filter(|held| Some(held.id) != own) {
            let caching = held.holder.remaining();
            others.cached = others.cached.union(caching);
            match held.holder.kind {
                HolderKind::Oplock => others.oplock |= !caching.is_empty(),
                HolderKind::Lease => others.handle_lease |= caching.contains(Caching::HANDLE),
            }
        }
        others
    }

    /// The client of a holder acknowledges a break.
    pub fn acknowledge(
        &mut self,
        id: HolderId,
        kept: Caching,
        now: Instant,
    ) -> Result<Caching, AcknowledgeRefusal> {
        self.expire(now);
        let held = self.held.iter_mut().find(|held| held.id == id);
        let held = held.ok_or(AcknowledgeRefusal::NotBreaking)?;
        let outcome = match id {
            HolderId::Lease(..) => held.holder.acknowledge(kept),
            HolderId::Oplock(_) => held.holder.acknowledge_level(OplockLevel::of(kept)),
        };
        let Acknowledged { held: kept, next, .. } = match outcome {
            Ok(acknowledged) => acknowledged,
            Err(refusal) => {
                self.changed.notify_waiters();
                return Err(refusal);
            }
        };
        held.deadline = held.holder.is_breaking().then_some(now + BREAK_TIMEOUT);
        if let Some(notice) = next {
            let version = held.version;
            let open =
                self.opens.iter().find(|open| open.holder == Some(id) && !open.handle.is_lost());
            if let Some(open) = open {
                tell(&first_way(&self.opens, open).handle, id, notice, version);
            }
        }
        self.changed.notify_waiters();
        Ok(kept)
    }

    /// Removes an open with everything that it holds. Then [`NodeOpens::must_remove`] says whether
    /// to delete the node.
    pub fn close(&mut self, id: OpenId) -> bool {
        let Some(index) = self.opens.iter().position(|open| open.handle.id == id) else {
            return false;
        };
        let entry = self.opens.remove(index);
        entry.handle.state.lock().closed = true;
        self.delete_pending |= entry.delete_on_close;
        if let Some(holder) = entry.holder
            && !self.opens.iter().any(|open| open.holder == Some(holder))
        {
            self.held.retain(|held| held.id != holder);
            if let HolderId::Lease(client, key) = holder {
                self.gone_leases.push((client, key));
            }
        }
        self.gone.push(Arc::clone(&entry.handle));
        self.release_locks(id);
        if self.opens.is_empty() {
            self.written = DelayedTime::default();
            self.allocation = 0;
            self.last = self.delete_pending.then_some(entry.handle);
        }
        self.changed.notify_waiters();
        true
    }

    /// Whether the node is to be deleted now; it refuses new opens until that is done.
    pub fn must_remove(&mut self) -> Option<Arc<Handle>> {
        let last = self.last.take_if(|_| self.delete_pending && self.opens.is_empty())?;
        self.removing = true;
        Some(last)
    }

    /// Whether the cache of an open allows a durable handle.
    pub fn can_be_durable(&self, open: OpenId) -> bool {
        self.granted_to(open).allows_durability()
    }
}

/// A client with several connections is told of the breaks of its leases on the oldest of them.
fn first_way<'a>(opens: &'a [OpenEntry], open: &'a OpenEntry) -> &'a OpenEntry {
    let Some(HolderId::Lease(client, _)) = open.holder else { return open };
    let way = |entry: &OpenEntry| {
        let state = entry.handle.state.lock();
        let there = state.lost.is_none() && state.opener.client == client;
        there.then_some(state.opener.connection)
    };
    let ways = opens.iter().filter_map(|entry| way(entry).map(|way| (way, entry)));
    ways.min_by_key(|(way, _)| *way).map_or(open, |(_, entry)| entry)
}

fn tell(handle: &Handle, id: HolderId, notice: Notice, version: LeaseVersion) {
    let event = match id {
        HolderId::Oplock(handle) => CachingEvent::OplockBreak {
            handle,
            level: OplockLevel::of(notice.to),
            must_acknowledge: notice.must_acknowledge,
        },
        HolderId::Lease(_, key) => CachingEvent::LeaseBreak { key, notice, version },
    };
    // If the connection is gone, its handles are about to be closed.
    let _ = handle.state.lock().opener.events.send(event);
}
