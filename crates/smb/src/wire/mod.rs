//! The packets of [MS-SMB2], as plain values. A request is decoded from the bytes of its message
//! and keeps slices of them; a response is appended to a buffer. Nothing here knows a connection.
//!
//! Bytes from the network are never trusted: each offset and length is checked against the message,
//! and no allocation has a size that a client has sent.

pub mod change_notify;
pub mod close;
pub mod create;
pub mod create_context;
pub mod cursor;
pub mod error;
pub mod file_id;
pub mod flush;
pub mod header;
pub mod ioctl;
pub mod lock;
pub mod negotiate;
pub mod oplock_break;
pub mod query_directory;
pub mod query_info;
pub mod read;
pub mod session_setup;
pub mod set_info;
pub mod text;
pub mod transform;
pub mod tree;
pub mod write;

pub use cursor::{Body, Cursor, Malformed};
pub use file_id::FileId;
pub use header::{Command, Flags, HEADER_BYTES, Header};

/// Appends zeros until `out` is at a multiple of `step` bytes after `start`.
pub fn pad(out: &mut Vec<u8>, start: usize, step: usize) {
    let length = (out.len() - start).next_multiple_of(step);
    out.resize(start + length, 0);
}

#[cfg(test)]
pub(crate) mod tests;
