//! Durable ordered rows ([`engine`]) and extents of bytes ([`extents`]), and what implements them.
//!
//! This crate knows keys, values, snapshots and pieces of files. It must not know a word of the
//! services built on it, nor the time of day.

#![deny(unsafe_code)]

#[cfg(feature = "contract")]
pub mod contract;
pub mod embedded;
pub mod engine;
pub mod extents;
pub mod memory;
mod pins;
#[cfg(feature = "postgres")]
pub mod postgres;

pub use engine::{
    Batch, CommitError, Engine, Fault, KeyRange, Moment, Order, Placed, Row, Snapshot, Write,
};
pub use extents::{Extent, ExtentId, ExtentWriter, Extents};
