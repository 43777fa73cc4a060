//! What can be decided about a request by looking at nothing else.

pub mod channel_sequence;
pub mod create;
pub mod lock;
