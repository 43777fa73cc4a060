//! Entities of one table: insert and get.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;

use super::{Sequence, Settings, Worker, Workload, payload, unique_name};
use crate::account::Service;
use crate::client::{Call, Client, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Insert,
    Get,
}

pub struct Entities {
    operation: Operation,
    settings: Settings,
    table: String,
    /// The content of the entities, in Base64.
    content: String,
    workers: AtomicU64,
}

impl Entities {
    pub fn new(operation: Operation, settings: Settings) -> Self {
        Self {
            operation,
            settings,
            table: unique_name(),
            content: STANDARD.encode(payload(settings.payload_bytes)),
            workers: AtomicU64::new(0),
        }
    }
}

const ACCEPT: (&str, &str) = ("accept", "application/json;odata=nometadata");
const NO_CONTENT: &[(&str, &str)] = &[ACCEPT, ("prefer", "return-no-content")];
/// Entities of one population share this many partitions.
const PARTITIONS: u64 = 16;

#[async_trait]
impl Workload for Entities {
    fn service(&self) -> Service {
        Service::Table
    }

    async fn prepare(&self, client: &mut Client) -> Result<(), Failure> {
        let call = Call {
            headers: NO_CONTENT,
            content_type: "application/json",
            body: format!(r#"{{"TableName":"{}"}}"#, self.table).into(),
            ..Call::new(Method::POST, "/Tables")
        };
        client.call(call, 204).await.map(drop)
    }

    fn population(&self) -> u64 {
        match self.operation {
            Operation::Insert => 0,
            Operation::Get => self.settings.objects,
        }
    }

    async fn populate(&self, client: &mut Client, index: u64) -> Result<(), Failure> {
        let path = format!("/{}", self.table);
        insert(client, &path, index % PARTITIONS, index, &self.content).await.map(drop)
    }

    fn worker(&self) -> Box<dyn Worker> {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        Box::new(EntityWorker {
            operation: self.operation,
            path: format!("/{}", self.table),
            content: self.content.clone(),
            objects: self.settings.objects,
            sequence: Sequence::new(number + 1),
            number,
            inserts: 0,
        })
    }

    async fn clean_up(&self, client: &mut Client) -> Result<(), Failure> {
        let path = format!("/Tables('{}')", self.table);
        let call = Call { headers: &[ACCEPT], ..Call::new(Method::DELETE, &path) };
        client.call(call, 204).await.map(drop)
    }
}

struct EntityWorker {
    operation: Operation,
    path: String,
    content: String,
    objects: u64,
    sequence: Sequence,
    /// Of this worker among all of the workload: the partition that only it inserts into.
    number: u64,
    inserts: u64,
}

#[async_trait]
impl Worker for EntityWorker {
    async fn operation(&mut self, client: &mut Client) -> Result<u64, Failure> {
        match self.operation {
            Operation::Insert => {
                self.inserts += 1;
                insert(client, &self.path, self.number, self.inserts, &self.content).await
            }
            Operation::Get => {
                let index = self.sequence.below(self.objects);
                let partition = index % PARTITIONS;
                let path = format!("{}(PartitionKey='{partition}',RowKey='{index}')", self.path);
                let call = Call { headers: &[ACCEPT], ..Call::new(Method::GET, &path) };
                client.call(call, 200).await
            }
        }
    }
}

async fn insert(
    client: &mut Client,
    path: &str,
    partition: u64,
    row: u64,
    content: &str,
) -> Result<u64, Failure> {
    let entity = format!(
        r#"{{"PartitionKey":"{partition}","RowKey":"{row}","Content@odata.type":"Edm.Binary","Content":"{content}"}}"#
    );
    let bytes = entity.len() as u64;
    let call = Call {
        headers: NO_CONTENT,
        content_type: "application/json",
        body: entity.into(),
        ..Call::new(Method::POST, path)
    };
    client.call(call, 204).await?;
    Ok(bytes)
}
