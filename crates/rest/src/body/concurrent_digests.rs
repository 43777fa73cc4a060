//! Digests of a body; for a long one they are computed on another thread while it is stored.

use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::body::{Digests, FinishedDigests};
use crate::error::{Code, Error};

/// MD5 takes about 2 ns per byte, more than all other work on it. Bytes are collected up to this
/// size and handed to another thread, which is released in between, so that slow clients hold none.
const HANDED_BYTES: usize = 256 * 1024;
/// For a shorter body, computing takes less time than waking another thread.
const ASIDE_BYTES_MIN: u64 = 1024 * 1024;

/// The digests of a body that arrives in pieces. At most twice [`HANDED_BYTES`] of it are held.
pub struct ConcurrentDigests {
    is_short: bool,
    collected: Vec<Bytes>,
    collected_bytes: usize,
    digests: State,
}

enum State {
    Here(Box<Digests>),
    Away(JoinHandle<Box<Digests>>),
    /// A thread that computed them has panicked.
    Lost,
}

#[derive(Debug, thiserror::Error)]
#[error("the thread that computed digests has ended")]
pub struct DigestsLost;

impl From<DigestsLost> for Error {
    fn from(lost: DigestsLost) -> Self {
        tracing::error!(%lost, "a request failed");
        Code::InternalError.into()
    }
}

impl ConcurrentDigests {
    /// For a body of so many bytes.
    pub fn new(digests: Digests, length: u64) -> Self {
        Self {
            is_short: length < ASIDE_BYTES_MIN,
            collected: Vec::new(),
            collected_bytes: 0,
            digests: State::Here(Box::new(digests)),
        }
    }

    /// Adds the next bytes; waits until the batch before is done.
    pub async fn update(&mut self, bytes: &Bytes) -> Result<(), DigestsLost> {
        if self.is_short
            && let State::Here(digests) = &mut self.digests
        {
            digests.update(bytes);
            return Ok(());
        }
        self.collected_bytes += bytes.len();
        self.collected.push(bytes.clone());
        if self.collected_bytes < HANDED_BYTES {
            return Ok(());
        }
        let mut digests = self.back().await?;
        let pieces = std::mem::take(&mut self.collected);
        self.collected_bytes = 0;
        self.digests = State::Away(tokio::task::spawn_blocking(move || {
            pieces.iter().for_each(|piece| digests.update(piece));
            digests
        }));
        Ok(())
    }

    pub async fn finish(mut self) -> Result<FinishedDigests, DigestsLost> {
        let mut digests = self.back().await?;
        self.collected.iter().for_each(|piece| digests.update(piece));
        Ok(digests.finish())
    }

    async fn back(&mut self) -> Result<Box<Digests>, DigestsLost> {
        // If this future is dropped while it waits, so is the body.
        match std::mem::replace(&mut self.digests, State::Lost) {
            State::Here(digests) => Ok(digests),
            State::Away(computing) => computing.await.map_err(|_| DigestsLost),
            State::Lost => Err(DigestsLost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn digests_are_those_of_the_whole_however_it_comes() {
        let body: Vec<u8> = (0..3 * HANDED_BYTES + 17).map(|at| (at % 251) as u8).collect();
        let body = Bytes::from(body);
        let mut whole = Digests::both();
        whole.update(&body);
        let expected = whole.finish();
        for piece in [1000, HANDED_BYTES - 1, HANDED_BYTES, HANDED_BYTES + 1, body.len()] {
            for length in [0, u64::MAX] {
                let mut concurrent = ConcurrentDigests::new(Digests::both(), length);
                for start in (0..body.len()).step_by(piece) {
                    let end = body.len().min(start + piece);
                    concurrent.update(&body.slice(start..end)).await.expect("no panic");
                }
                assert_eq!(concurrent.finish().await.expect("no panic"), expected, "{piece}");
            }
        }
    }
}
