//! What the storage services mean: their names, conditions, leases, commands and decisions.
//!
//! No HTTP, no sockets, no files and no clocks: time and randomness are arguments.

pub mod time;
