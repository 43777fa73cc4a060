//! Who has a node open, in the memory of this process, whichever protocol they use.

pub mod access;
pub mod breaks;
pub mod caching;
pub mod range_locks;
pub mod rest;
pub mod sharing;

pub use access::AccessMask;
pub use caching::{Caching, OplockLevel};
pub use rest::RestOperation;
pub use sharing::{Claim, ShareMode};
