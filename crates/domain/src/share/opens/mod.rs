//! The opens of nodes by both protocols, in the memory of this process.
//!
//! The first modules decide, on plain values. [`node`] keeps all opens of one node, [`registry`] all
//! nodes; waiting happens only there. A REST call enters by [`Opens::enter`] and is an open until it
//! drops the result; SMB clients use [`super::handles`]. `kept_open` has the rows of opens that outlive
//! the process.

pub mod access;
pub(crate) mod additions;
pub mod breaks;
pub mod caching;
pub(crate) mod connections;
pub mod delayed_time;
pub mod handle;
pub(crate) mod kept_open;
pub mod listing;
pub mod locking;
pub mod node;
pub mod range_locks;
pub(crate) mod reconnection;
pub mod registry;
pub mod replay;
pub mod rest_entry;
pub mod rest_operation;
pub mod share_mode;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle;
pub(crate) mod waiting_time;
pub mod watch;

pub use access::AccessMask;
pub use breaks::AcknowledgeRefusal;
pub use caching::{Caching, OplockLevel};
pub use connections::ConnectedShare;
pub use handle::{
    CachingEvent, CachingGranted, ClientId, Durability, Enumeration, Handle, LeaseGranted,
    LeaseKey, LeaseVersion, LeaseWanted, LockSequence, NodeKey, Opener,
};
pub use listing::{HandleScope, OpenHandle};
pub use range_locks::OpenId;
pub use registry::Opens;
pub use replay::CreateId;
pub use rest_entry::{EnterRefusal, Entered};
pub use rest_operation::RestOperation;
pub use share_mode::{Claim, ShareMode};
pub use watch::{Change, ChangeAction, Watched};
