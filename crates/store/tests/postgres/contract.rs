//! The contract of rows, kept by PostgreSQL.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use holdfast_store::Engine;
use holdfast_store::contract::EngineFixture;

use crate::server::{Place, patient};

/// The place of the one engine that a case makes.
#[derive(Default)]
struct OnPostgres {
    place: OnceLock<Place>,
}

#[async_trait]
impl EngineFixture for OnPostgres {
    async fn create(&self) -> Arc<dyn Engine> {
        let place = Place::new().await;
        let engine = place.open(patient()).await;
        assert!(self.place.set(place).is_ok(), "a case makes one engine");
        Arc::new(engine)
    }

    async fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        drop(engine);
        let place = self.place.get().expect("an engine was made");
        Some(Arc::new(place.open(patient()).await))
    }
}

holdfast_store::engine_contract!(OnPostgres::default());
