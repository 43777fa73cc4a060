//! Containers made and removed.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use hyper::Method;

use super::{Worker, Workload, unique_name};
use crate::account::Service;
use crate::client::{Call, Client, Failure};

pub struct CreateDelete {
    name: String,
    workers: AtomicU64,
}

impl CreateDelete {
    pub fn new() -> Self {
        Self { name: unique_name(), workers: AtomicU64::new(0) }
    }
}

#[async_trait]
impl Workload for CreateDelete {
    fn service(&self) -> Service {
        Service::Blob
    }

    async fn prepare(&self, _client: &mut Client) -> Result<(), Failure> {
        Ok(())
    }

    fn worker(&self) -> Box<dyn Worker> {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        Box::new(CreateDeleteWorker {
            prefix: format!("/{}-{number}", self.name),
            created: 0,
            existing: None,
        })
    }

    async fn clean_up(&self, _client: &mut Client) -> Result<(), Failure> {
        Ok(())
    }
}

struct CreateDeleteWorker {
    prefix: String,
    created: u64,
    existing: Option<String>,
}

const CONTAINER: &[(&str, &str)] = &[("restype", "container")];

#[async_trait]
impl Worker for CreateDeleteWorker {
    async fn operation(&mut self, client: &mut Client) -> Result<u64, Failure> {
        if let Some(path) = self.existing.take() {
            let call = Call { query: CONTAINER, ..Call::new(Method::DELETE, &path) };
            client.call(call, 202).await?;
            return Ok(0);
        }
        self.created += 1;
        let path = format!("{}-{}", self.prefix, self.created);
        let call = Call { query: CONTAINER, ..Call::new(Method::PUT, &path) };
        client.call(call, 201).await?;
        self.existing = Some(path);
        Ok(0)
    }

    async fn finish(&mut self, client: &mut Client) -> Result<(), Failure> {
        if self.existing.is_some() {
            self.operation(client).await?;
        }
        Ok(())
    }
}
