//! Rules that depend on nothing but the request.

pub mod channel_sequence;
pub mod create;
pub mod lock;
