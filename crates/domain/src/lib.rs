//! What the storage services mean: their names, conditions, leases, commands and decisions.
//!
//! No HTTP, no sockets, no files and no clocks: time and randomness are arguments.

pub mod condition;
pub mod etag;
pub mod lease;
pub mod metadata;
pub mod names;
pub mod tags;
pub mod time;
