//! The answer of a command, independent of how the connection sends it.

use bytes::Bytes;

use crate::status::Status;
use crate::wire::{HEADER_BYTES, error};

#[derive(Debug)]
pub struct Answer {
    pub status: Status,
    /// Room for the header, then the body.
    pub head: Vec<u8>,
    /// What follows the body and is not copied into it.
    pub payload: Vec<Bytes>,
}

/// Most bodies are shorter.
const BODY_BYTES: usize = 192;

impl Answer {
    /// An answer with what `encode` appends for a body.
    pub fn new(status: Status, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut head = Vec::with_capacity(HEADER_BYTES + BODY_BYTES);
        head.resize(HEADER_BYTES, 0);
        encode(&mut head);
        Self { status, head, payload: Vec::new() }
    }

    pub fn success(encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        Self::new(Status::SUCCESS, encode)
    }

    pub fn empty() -> Self {
        Self::success(error::encode_empty)
    }

    pub fn refusal(status: Status) -> Self {
        Self::new(status, |out| error::encode(&[], out))
    }

    /// A refusal with data, as [MS-SMB2] 2.2.2 defines for a few statuses.
    pub fn refusal_with(status: Status, data: &[u8]) -> Self {
        Self::new(status, |out| error::encode(data, out))
    }

    pub fn with_payload(mut self, payload: Vec<Bytes>) -> Self {
        self.payload = payload;
        self
    }

    /// The length of header, body and payload.
    pub fn length(&self) -> usize {
        self.head.len() + self.payload.iter().map(Bytes::len).sum::<usize>()
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::refusal(status)
    }
}
