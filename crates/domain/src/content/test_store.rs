//! What the tests of contents have in common: a domain in memory whose time stands still, and bodies.

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_store::memory::{MemoryEngine, MemoryExtents};

use super::ByteSource;
use crate::domain::Domain;
use crate::features::Features;
use crate::time::{Clock, Timestamp};

struct StandingClock;

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(638_000_000_000_000_000)
    }
}

/// Also returns the extents of the domain, to inspect them.
pub async fn open_in_memory() -> (Domain, MemoryExtents) {
    let (engine, extents) = (Arc::new(MemoryEngine::default()), MemoryExtents::default());
    let kept = Arc::new(extents.clone());
    let domain = Domain::open(engine, kept, Arc::new(StandingClock), Features::default());
    (domain.await.expect("memory opens"), extents)
}

/// A body that arrives in one piece.
pub struct Body(pub Option<Bytes>);

#[async_trait]
impl ByteSource for Body {
    type Refusal = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.take())
    }
}
