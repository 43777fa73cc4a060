//! The information classes of [MS-FSCC] as bytes, and the small rules around them: names, patterns,
//! times. Nothing here knows a connection or reads anything.

pub mod directory;
pub mod facts;
pub mod file;
pub mod file_system;
pub mod fsctl;
pub mod path;
pub mod security;
pub mod set;
pub mod time;

use crate::status::Status;

/// What an information class comes to: as much of it as the client has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// [`Status::BUFFER_OVERFLOW`] if something is missing.
    pub status: Status,
}

/// Below `fixed` bytes a class cannot be answered at all; what has a length of its own is cut.
pub(crate) fn fitted(mut bytes: Vec<u8>, fixed: usize, limit: usize) -> Result<Output, Status> {
    if limit < fixed {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    let status = if bytes.len() > limit { Status::BUFFER_OVERFLOW } else { Status::SUCCESS };
    bytes.truncate(limit);
    Ok(Output { bytes, status })
}
