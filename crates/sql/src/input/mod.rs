//! How the records of a blob are found.

pub mod cell;
pub mod delimited;
mod description;
pub mod document;
pub mod json;
pub mod parquet;
mod thrift;

use crate::frames::QueryError;

/// The longest record of delimited text or JSON. It is held whole; a quote that is never closed
/// would make the rest of the blob one record.
pub const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An error that ends the query.
pub fn fatal(name: &'static str, description: impl Into<String>, position: u64) -> QueryError {
    QueryError { fatal: true, name, description: description.into(), position }
}

/// Bytes that were read and not consumed; they are parsed again only when their number has doubled,
/// so that a long record costs at most twice its length.
#[derive(Default)]
pub struct Pending {
    bytes: Vec<u8>,
    used: usize,
    /// The offset of the unconsumed bytes in the blob.
    position: u64,
    wanted: usize,
}

impl Pending {
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn consume(&mut self, length: usize) {
        self.used += length;
        self.position += length as u64;
        self.wanted = 0;
    }

    /// Whether parsing again could find more.
    pub fn is_worth_a_look(&self, last: bool) -> bool {
        last || self.bytes().len() >= self.wanted
    }

    /// The bytes are not a complete record. An error if they can never be.
    pub fn want_more(&mut self) -> Result<(), QueryError> {
        let length = self.bytes().len();
        if length > RECORD_BYTES_MAX {
            return Err(fatal("ParseError", "A record is longer than 4 MiB.", self.position));
        }
        self.wanted = (length * 2).min(RECORD_BYTES_MAX + 1);
        Ok(())
    }

    /// Skips a byte order mark at the beginning; `false` if that is not known yet.
    pub fn skip_mark(&mut self, last: bool) -> bool {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.position > 0 {
            return true;
        }
        if self.bytes().starts_with(MARK) {
            self.consume(MARK.len());
        } else if !last && self.bytes().len() < MARK.len() && MARK.starts_with(self.bytes()) {
            return false;
        }
        true
    }
}
