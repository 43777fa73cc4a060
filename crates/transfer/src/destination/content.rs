//! Contents, piece by piece: never more than one piece of each is in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use md5::{Digest as _, Md5};

/// The hash of a content, taken while it passes.
#[derive(Default)]
pub struct ContentHash(Md5);

impl ContentHash {
    pub fn take(&mut self, bytes: &Bytes) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        STANDARD.encode(self.0.finalize())
    }

    pub fn of(bytes: &Bytes) -> String {
        let mut hash = Self::default();
        hash.take(bytes);
        hash.finish()
    }
}
