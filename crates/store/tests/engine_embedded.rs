//! The contract of rows, kept in a data folder: with the usual sizes, and with sizes so small that
//! every case crosses ends of log segments, flushes and merges.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_store::Engine;
use holdfast_store::contract::EngineFixture;
use holdfast_store::embedded::{DataFolder, Durability, EmbeddedEngine, EngineOptions};
use tempfile::TempDir;

struct InFolder {
    folder: TempDir,
    options: EngineOptions,
}

impl InFolder {
    fn new(options: EngineOptions) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), options }
    }

    fn open(&self) -> Arc<dyn Engine> {
        let folder = DataFolder::open(self.folder.path().join("data")).unwrap();
        Arc::new(EmbeddedEngine::open(&folder, &self.options).unwrap())
    }
}

#[async_trait]
impl EngineFixture for InFolder {
    async fn create(&self) -> Arc<dyn Engine> {
        self.open()
    }

    async fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        drop(engine);
        Some(self.open())
    }
}

fn small() -> EngineOptions {
    EngineOptions {
        log_segment_bytes: 64 * 1024,
        table_bytes: 64 * 1024,
        cache_bytes: 64 * 1024,
        ..EngineOptions::default()
    }
}

mod usual_sizes {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(EngineOptions::default()));
}

mod small_sizes {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(small()));
}

mod relaxed {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(EngineOptions {
        durability: Durability::Relaxed,
        ..small()
    }));
}
