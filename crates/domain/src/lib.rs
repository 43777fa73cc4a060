//! What the storage services mean: their names, conditions, leases, commands and decisions.
//!
//! No HTTP, no sockets, no files and no clocks: time and randomness are arguments.

#![forbid(unsafe_code)]

pub mod access;
pub mod account;
pub mod background;
pub mod blob;
pub mod condition;
pub mod content;
pub mod copy;
mod cursor;
pub mod delegator;
mod domain;
mod due_task;
pub mod etag;
pub mod failure;
pub mod features;
mod held_name;
mod latch;
pub mod lease;
mod live_leases;
pub mod metadata;
pub mod names;
pub mod queue;
mod removal_progress;
mod rows;
pub mod scrub;
mod service_properties;
pub mod share;
pub mod table;
pub mod tags;
pub mod time;
mod transact;
pub mod workers;
mod yield_budget;

pub use domain::{Domain, recorded_time};
pub use failure::Failure;
