//! Nodes through handles, as in SMB: the functions for a protocol whose clients open a file and use
//! it later. The rules are those of the node functions and of [`super::opens`].
//!
//! What a front end calls, all on [`crate::Domain`] (`Answer<T>` is `Result<T,
//! Failure<HandleRefusal>>`):
//!
//! ```text
//! async open_handle(&OpenNode) -> Answer<Opened>              waits for breaks; drop it to cancel
//! async reconnect_handle(&Reconnect) -> Answer<Opened>
//! use_handle(&Handle)                                         before anything below: its CREATE is over
//! async read_handle(&Handle, offset, length) -> Answer<ContentReader>   EndOfFile at or past the end
//! async write_handle(&Handle, WriteAt, Received) -> Answer<()>          body by Domain::receive
//! async flush_handle(&Handle) -> Answer<()>
//! async close_handle(&Handle) -> Answer<NodeInformation>      what it was at the end
//! async query_handle(&Handle) -> Answer<NodeInformation>
//! async set_handle_length(&Handle, u64) -> Answer<()>
//! async set_handle_allocation(&Handle, u64) -> Answer<()>
//! async set_handle_basic(&Handle, &BasicChange) -> Answer<()>
//! async set_handle_disposition(&Handle, delete: bool) -> Answer<()>
//! async rename_handle(&Handle, &RenameTo) -> Answer<()>
//! async lock_handle(&Handle, &[LockRequest], wait: bool) -> Answer<()>  drop it to cancel
//! async unlock_handle(&Handle, &[Range]) -> Answer<()>        both also _in_sequence, with a number
//! async list_handle(&Handle, &ListFrom) -> Answer<Listing>
//! async watch_handle(&Handle, &WatchFor) -> Answer<Watched>   drop it to cancel
//! async handle_descriptor(&Handle) -> Answer<Descriptor>
//! async set_handle_descriptor(&Handle, Descriptor) -> Answer<()>
//! acknowledge_oplock(&Handle, OplockLevel) -> Result<OplockLevel, AcknowledgeRefusal>
//! acknowledge_lease(ClientId, LeaseKey, Caching) -> Result<Caching, AcknowledgeRefusal>
//! async close_tree(session, tree); async close_session(session): everything is closed
//! async disconnect_session(session); async disconnect(connection): durable handles stay
//! async keep_oplock(&Handle), keep_lease(ClientId, LeaseKey): after an acknowledgement, before its answer
//! async restore_opens(): persistent handles of the run before, once
//! async close_expired_handles(): what nobody came back for, every few seconds
//! ```
//!
//! A client that must give up an oplock or a lease is told by [`CachingEvent`]s through the sender of
//! its [`Opener`].

mod access_limits;
mod change;
mod close;
mod command;
mod list;
mod lock;
mod open;
mod open_rules;
mod persist;
mod ranges;
mod refusal;
mod replay;
mod transfer;
mod wildcard;

pub use super::WriteAt;
pub use command::{
    Action, BasicChange, CachingWanted, Disposition, DurableWanted, ListFrom, Listed, Listing,
    LockRequest, NodeInformation, OpenNode, Opened, Options, Reconnect, RenameTo, SetTime,
    WatchFor,
};
pub use refusal::HandleRefusal;

use super::change_events;
use super::opens::Opens;
use crate::domain::Domain;
use crate::failure::Failure;

pub(crate) type Answer<T> = Result<T, Failure<HandleRefusal>>;

impl Domain {
    /// The open handles.
    pub fn opens(&self) -> &Opens {
        &self.opens
    }
}
