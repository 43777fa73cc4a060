//! The requests on a handle, and their results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::FilePath;
use crate::share::opens::handle::Enumeration;
use crate::share::opens::range_locks::{LockKind, Range};
use crate::share::opens::registry::Seen;
use crate::share::opens::{
    AccessMask, CachingGranted, Durability, Handle, LeaseWanted, Opener, OplockLevel, ShareMode,
};
use crate::share::{Attributes, FileTimes, Node, SharePath};
use crate::time::Timestamp;

/// An SMB2 CREATE.
#[derive(Clone, Debug)]
pub struct OpenNode {
    pub share: SharePath,
    /// The number of the share that the client is connected to; by default the one that has the
    /// name.
    pub share_number: Option<u64>,
    pub path: FilePath,
    /// Opens the node in a snapshot of the share, which cannot be written.
    pub snapshot: Option<Timestamp>,
    pub opener: Opener,
    /// As the client sent it, including generic rights.
    pub access: AccessMask,
    /// The maximum access of the client: [`AccessMask::ALL`], except for read-only tree connects.
    pub allowed: AccessMask,
    pub sharing: ShareMode,
    pub disposition: Disposition,
    pub options: Options,
    /// For a node that is created or overwritten.
    pub attributes: Attributes,
    /// Bytes to allocate for a new node.
    pub allocation: u64,
    /// A self-relative security descriptor for a new node.
    pub descriptor: Option<Vec<u8>>,
    pub caching: CachingWanted,
    pub durable: Option<DurableWanted>,
    /// Whether the client may have sent this request before.
    pub is_replay: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    Supersede,
    Open,
    Create,
    OpenIf,
    Overwrite,
    OverwriteIf,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub directory: bool,
    pub non_directory: bool,
    pub delete_on_close: bool,
    pub write_through: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachingWanted {
    #[default]
    None,
    Oplock(OplockLevel),
    Lease(LeaseWanted),
}

/// Granted only with a batch oplock or a lease that caches the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableWanted {
    pub kind: Durability,
    /// In milliseconds; 0 leaves it to the server.
    pub timeout_milliseconds: u32,
    /// Whether it is to outlive the process; then it needs no oplock or lease. Only durable handles
    /// of version 2.
    pub persistent: bool,
}

/// DHnC and DH2C: reconnects to a handle whose connection was lost.
#[derive(Clone, Debug)]
pub struct Reconnect {
    pub share: SharePath,
    pub opener: Opener,
    pub handle: u64,
    /// As given when it was opened; with a GUID for durable handles of version 2.
    pub durability: Durability,
    /// Whether the handle must be persistent.
    pub persistent: bool,
    pub lease: Option<LeaseWanted>,
    /// The name it was opened by; compared if there is a lease.
    pub path: FilePath,
}

#[derive(Clone, Debug)]
pub struct Opened {
    pub handle: Arc<Handle>,
    pub action: Action,
    pub information: NodeInformation,
    pub caching: CachingGranted,
    /// The timeout in milliseconds, if it is durable.
    pub durable: Option<u32>,
    /// The maximum access of the client, for MxAc.
    pub maximal_access: AccessMask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    Superseded,
    Opened,
    Created,
    Overwritten,
}

/// What a client sees of a node besides its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInformation {
    pub id: u64,
    /// The number of the directory it is in; 0 above the root.
    pub directory: u64,
    pub is_directory: bool,
    pub length: u64,
    pub allocation: u64,
    pub times: FileTimes,
    /// Without the bit of a directory.
    pub attributes: Attributes,
    pub links: u32,
    pub delete_pending: bool,
}

/// The unit of reported allocation sizes.
const ALLOCATION_BYTES: u64 = 4096;

impl NodeInformation {
    pub(super) fn of(node: &Node, directory: u64, seen: Seen) -> Self {
        let (length, is_directory) = (node.length(), node.is_directory());
        let taken = length.max(seen.allocation).checked_next_multiple_of(ALLOCATION_BYTES);
        Self {
            id: node.id,
            directory,
            is_directory,
            length: if is_directory { 0 } else { length },
            allocation: if is_directory { 0 } else { taken.unwrap_or(length) },
            times: FileTimes { written: seen.written, ..node.times },
            attributes: node.attributes,
            links: node.posix.as_ref().map_or(1, |posix| posix.links),
            delete_pending: seen.delete_pending,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetTime {
    /// 0: unchanged.
    #[default]
    Keep,
    At(Timestamp),
    /// -1: operations through this handle no longer change it.
    Freeze,
    /// -2: they change it again.
    Thaw,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicChange {
    pub created: SetTime,
    pub accessed: SetTime,
    pub written: SetTime,
    pub changed: SetTime,
    /// None if the client sent 0.
    pub attributes: Option<Attributes>,
    /// Whether the bit of a directory was among the attributes, which a file cannot have.
    pub directory: bool,
}

#[derive(Clone, Debug)]
pub struct RenameTo {
    pub path: FilePath,
    pub replace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    pub range: Range,
    pub kind: LockKind,
}

/// One step of QUERY_DIRECTORY.
#[derive(Clone, Debug)]
pub struct ListFrom {
    /// With the wildcards of [MS-FSA] 2.1.4.4; if empty, the pattern of the first step.
    pub pattern: String,
    /// From the beginning, with this pattern.
    pub restart: bool,
    /// At most so many; those that do not fit the answer are returned by [`Handle::unlist`].
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct Listing {
    /// `.` and `..` come first. Never empty: that is a refusal.
    pub entries: Vec<Listed>,
    /// Where this step began, for [`Handle::list_again`].
    pub from: Enumeration,
}

#[derive(Clone, Debug)]
pub struct Listed {
    pub name: String,
    pub information: NodeInformation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchFor {
    /// The bits of [MS-SMB2] 2.2.35.
    pub filter: u32,
    pub recursive: bool,
    /// How many bytes of FILE_NOTIFY_INFORMATION the client has room for.
    pub capacity: usize,
}
