//! What can be decided about a request by looking at nothing else.

pub mod create;
pub mod lock;
