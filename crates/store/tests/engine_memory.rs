//! The contract of rows, kept in memory.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_store::Engine;
use holdfast_store::contract::EngineFixture;
use holdfast_store::memory::MemoryEngine;

struct InMemory;

#[async_trait]
impl EngineFixture for InMemory {
    async fn create(&self) -> Arc<dyn Engine> {
        Arc::new(MemoryEngine::default())
    }

    async fn reopen(&self, _engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        None
    }
}

holdfast_store::engine_contract!(InMemory);
