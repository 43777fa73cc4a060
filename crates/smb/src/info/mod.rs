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

/// The output of an information class, as much as fits the client's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// [`Status::BUFFER_OVERFLOW`] if it is cut.
    pub status: Status,
}

/// With less than `fixed` bytes a class cannot be answered at all; the variable part is cut.
pub(crate) fn fitted(mut bytes: Vec<u8>, fixed: usize, limit: usize) -> Result<Output, Status> {
    if limit < fixed {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    let status = if bytes.len() > limit { Status::BUFFER_OVERFLOW } else { Status::SUCCESS };
    bytes.truncate(limit);
    Ok(Output { bytes, status })
}
