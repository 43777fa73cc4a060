//! An open of a node that lasts longer than a call, and its owner.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use holdfast_sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::access::AccessMask;
use super::breaks::Notice;
use super::caching::{Caching, OplockLevel};
use super::range_locks::OpenId;
use super::replay::CreateId;
use super::share_mode::{Claim, ShareMode};
use super::watch::Watch;
use crate::names::FilePath;
use crate::share::handles::Action;
use crate::share::{Place, SharePath};
use crate::time::Timestamp;

/// Identifies a node of any share within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeKey {
    pub share: u64,
    pub node: u64,
}

/// The GUID by which a client names itself on all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseKey(pub u128);

/// Through which connection, session and tree connect a client has opened a node.
#[derive(Clone, Debug)]
pub struct Opener {
    pub connection: u64,
    pub session: u64,
    pub tree: u64,
    pub client: ClientId,
    pub address: IpAddr,
    /// The name of the client's machine; empty if it sends none.
    pub client_name: Arc<str>,
    pub user: Arc<str>,
    pub events: mpsc::UnboundedSender<CachingEvent>,
}

/// What a connection must send to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachingEvent {
    OplockBreak { handle: OpenId, level: OplockLevel, must_acknowledge: bool },
    LeaseBreak { key: LeaseKey, notice: Notice, version: LeaseVersion },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseVersion {
    One,
    Two,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseWanted {
    pub key: LeaseKey,
    pub caching: Caching,
    pub version: LeaseVersion,
    /// As the client counts.
    pub epoch: u16,
    pub parent: Option<LeaseKey>,
}

/// What an open may cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachingGranted {
    #[default]
    None,
    Oplock(OplockLevel),
    Lease(LeaseGranted),
}

impl CachingGranted {
    /// For a cache without a lease.
    pub fn oplock(caching: Caching) -> Self {
        let level = OplockLevel::of(caching);
        if level == OplockLevel::None { Self::None } else { Self::Oplock(level) }
    }

    /// Whether a handle with this caching can be durable.
    pub fn allows_durability(self) -> bool {
        match self {
            Self::None => false,
            Self::Oplock(level) => level == OplockLevel::Batch,
            Self::Lease(lease) => lease.caching.contains(Caching::HANDLE),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseGranted {
    pub key: LeaseKey,
    pub caching: Caching,
    /// The version of the first open with this key, whatever this open has used.
    pub version: LeaseVersion,
    pub epoch: u16,
    pub parent: Option<LeaseKey>,
    pub breaking: bool,
}

/// Which kind of durable handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    First,
    /// Version 2, with the GUID of the CREATE.
    Second(u128),
}

#[derive(Clone, Copy, Debug)]
pub struct Durable {
    pub kind: Durability,
    pub timeout: Duration,
    /// Whether it outlives the process, too.
    pub is_persistent: bool,
}

/// The number of a lock request that a client sends again if its connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSequence {
    /// From 1 to 64.
    pub index: u8,
    pub number: u8,
}

impl LockSequence {
    fn slot(self) -> Option<usize> {
        usize::from(self.index).checked_sub(1)
    }
}

/// The number stored under an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotedLock {
    index: u8,
    number: Option<u8>,
}

/// Where a node is now. All handles of a node share it, so that a rename updates all of them.
#[derive(Debug)]
pub struct Position {
    pub place: Place,
    pub path: FilePath,
}

#[derive(Debug)]
pub struct Handle {
    pub id: OpenId,
    pub share: SharePath,
    pub key: NodeKey,
    pub access: AccessMask,
    pub sharing: ShareMode,
    pub is_directory: bool,
    pub snapshot: Option<Timestamp>,
    pub write_through: bool,
    pub opened: Timestamp,
    pub lease: Option<LeaseKey>,
    /// The CREATE that has opened it, if it has an identifier.
    pub create: Option<CreateId>,
    /// Whether that CREATE may be sent again: until the client uses the handle.
    pub(crate) is_replayable: AtomicBool,
    pub(crate) position: Arc<Mutex<Position>>,
    pub(crate) state: Mutex<HandleState>,
}

#[derive(Debug)]
pub(crate) struct HandleState {
    pub opener: Opener,
    pub reconnected: Option<Timestamp>,
    /// Until when it waits for its client, if its connection is lost.
    pub lost: Option<Instant>,
    pub durable: Option<Durable>,
    pub closed: bool,
    pub offset: u64,
    pub enumeration: Option<Enumeration>,
    pub frozen: FrozenTimes,
    /// The last sequence numbers of lock requests by index, to detect repetitions.
    pub lock_sequences: [Option<u8>; 64],
    pub watch: Option<Watch>,
    /// The action taken by its CREATE.
    pub action: Action,
    pub maximal_access: AccessMask,
    /// Its last written row, if it is persistent.
    pub kept: Option<Bytes>,
}

impl HandleState {
    /// The state of a handle that was just opened.
    pub fn new(opener: Opener) -> Self {
        Self {
            opener,
            reconnected: None,
            lost: None,
            durable: None,
            closed: false,
            offset: 0,
            enumeration: None,
            frozen: FrozenTimes::default(),
            lock_sequences: [None; 64],
            watch: None,
            action: Action::Opened,
            maximal_access: AccessMask::empty(),
            kept: None,
        }
    }
}

impl HandleState {
    /// The client of a lost handle has reconnected.
    pub fn come_back(&mut self, opener: &Opener, now: Timestamp) {
        self.lost = None;
        self.reconnected = Some(now);
        self.opener = opener.clone();
    }
}

/// Which times operations through this handle no longer change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrozenTimes {
    pub created: bool,
    pub accessed: bool,
    pub written: bool,
    pub changed: bool,
}

/// How far a directory has been listed.
#[derive(Clone, Debug)]
pub struct Enumeration {
    pub(crate) pattern: String,
    /// How many of `.` and `..` are listed already.
    pub(crate) dots: u8,
    pub(crate) after: Option<String>,
    pub(crate) told_any: bool,
}

impl Handle {
    pub fn claim(&self) -> Claim {
        Claim { access: self.access, share: self.sharing }
    }

    pub fn path(&self) -> FilePath {
        self.position.lock().path.clone()
    }

    pub fn place(&self) -> Place {
        self.position.lock().place.clone()
    }

    /// Whether it waits for its client to reconnect.
    pub fn is_lost(&self) -> bool {
        self.state.lock().lost.is_some()
    }

    /// Whether it outlives the process, unless it is closed.
    pub fn is_persistent(&self) -> bool {
        self.state.lock().durable.is_some_and(|durable| durable.is_persistent)
    }

    /// In milliseconds, if it is durable.
    pub fn durable_timeout(&self) -> Option<u32> {
        let durable = self.state.lock().durable?;
        Some(u32::try_from(durable.timeout.as_millis()).unwrap_or(u32::MAX))
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// The file position set by the client; the server does not use it.
    pub fn offset(&self) -> u64 {
        self.state.lock().offset
    }

    pub fn set_offset(&self, offset: u64) {
        self.state.lock().offset = offset;
    }

    pub fn opener(&self) -> Opener {
        self.state.lock().opener.clone()
    }

    /// Whether this lock request was done before.
    pub fn is_lock_replayed(&self, sequence: LockSequence) -> bool {
        let state = self.state.lock();
        sequence.slot().and_then(|slot| state.lock_sequences.get(slot))
            == Some(&Some(sequence.number))
    }

    /// Records this lock request as done. Returns what was stored there before.
    pub(crate) fn note_lock(&self, sequence: LockSequence) -> NotedLock {
        let noted = NotedLock { index: sequence.index, number: Some(sequence.number) };
        NotedLock { number: self.note_lock_again(noted), ..noted }
    }

    pub(crate) fn note_lock_again(&self, noted: NotedLock) -> Option<u8> {
        let mut state = self.state.lock();
        let slot = LockSequence { index: noted.index, number: 0 }.slot();
        let slot = slot.and_then(|slot| state.lock_sequences.get_mut(slot))?;
        std::mem::replace(slot, noted.number)
    }

    /// Nothing listed since `from` fitted the answer.
    pub fn list_again(&self, from: Enumeration) {
        self.state.lock().enumeration = Some(from);
    }

    /// What was listed after this name did not fit the answer.
    pub fn unlist(&self, last_told: &str) {
        let mut state = self.state.lock();
        if let Some(enumeration) = &mut state.enumeration {
            match last_told {
                "." => (enumeration.dots, enumeration.after) = (1, None),
                ".." => (enumeration.dots, enumeration.after) = (2, None),
                name => enumeration.after = Some(crate::names::fold_text(name)),
            }
        }
    }
}
