//! Entities of one table: insert, upsert, get, list, and insert many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_random::Random;
use hyper::Method;

use super::{Settings, Worker, Workload, payload, unique_name};
use crate::account::Service;
use crate::client::{Call, Client, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Insert,
    Upsert,
    Batch,
    Get,
    Scan,
}

pub struct Entities {
    operation: Operation,
    settings: Settings,
    table: String,
    /// The content of the entities, in Base64.
    content: Arc<str>,
    workers: AtomicU64,
}

impl Entities {
    pub fn new(operation: Operation, settings: Settings) -> Self {
        Self {
            operation,
            settings,
            table: unique_name(),
            content: STANDARD.encode(payload(settings.payload_bytes)).into(),
            workers: AtomicU64::new(0),
        }
    }
}

const ACCEPT: (&str, &str) = ("accept", "application/json;odata=nometadata");
const NO_CONTENT: &[(&str, &str)] = &[ACCEPT, ("prefer", "return-no-content")];
/// Entities of one population share this many partitions.
const PARTITIONS: u64 = 16;
const CHANGES_PER_BATCH: usize = 100;

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
            Operation::Insert | Operation::Upsert | Operation::Batch => 0,
            Operation::Get | Operation::Scan => self.settings.objects,
        }
    }

    /// Replaces what is there.
    async fn populate(&self, client: &mut Client, index: u64) -> Result<(), Failure> {
        upsert(client, &format!("/{}", self.table), index, &self.content).await.map(drop)
    }

    async fn remove(&self, client: &mut Client, index: u64) -> Result<(), Failure> {
        let partition = index % PARTITIONS;
        let path = format!("/{}(PartitionKey='{partition}',RowKey='{index}')", self.table);
        let headers = &[ACCEPT, ("if-match", "*")];
        client.call(Call { headers, ..Call::new(Method::DELETE, &path) }, 204).await.map(drop)
    }

    fn worker(&self) -> Box<dyn Worker> {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        Box::new(EntityWorker {
            operation: self.operation,
            path: format!("/{}", self.table),
            content: Arc::clone(&self.content),
            objects: self.settings.objects,
            random: Random::new(number + 1),
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
    content: Arc<str>,
    objects: u64,
    random: Random,
    /// The number of this worker in its workload: the partition that only it inserts into.
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
            Operation::Upsert => {
                let index = self.random.below(self.objects.max(1));
                upsert(client, &self.path, index, &self.content).await
            }
            Operation::Batch => {
                self.inserts += 1;
                let partition = format!("{}-{}", self.number, self.inserts);
                let body = batch(&client.url(), &self.path, &partition, &self.content);
                let call = Call {
                    headers: &[("accept", "application/json")],
                    content_type: "multipart/mixed; boundary=batch_1",
                    body: body.into(),
                    ..Call::new(Method::POST, "/$batch")
                };
                let answer = client.call_for_body(call, 202).await?;
                let done = memchr::memmem::find_iter(&answer, b"HTTP/1.1 204").count();
                if done != CHANGES_PER_BATCH {
                    return Err(Failure::Wrong("a batch was not done"));
                }
                Ok((CHANGES_PER_BATCH * self.content.len()) as u64)
            }
            Operation::Get => {
                let index = self.random.below(self.objects.max(1));
                let partition = index % PARTITIONS;
                let path = format!("{}(PartitionKey='{partition}',RowKey='{index}')", self.path);
                let call = Call { headers: &[ACCEPT], ..Call::new(Method::GET, &path) };
                client.call(call, 200).await
            }
            Operation::Scan => {
                let path = format!("{}()", self.path);
                let call = Call { headers: &[ACCEPT], ..Call::new(Method::GET, &path) };
                client.call(call, 200).await
            }
        }
    }
}

fn properties(content: &str) -> String {
    [r#"{"Content@odata.type":"Edm.Binary","Content":""#, content, r#""}"#].concat()
}

fn entity(partition: &str, row: u64, content: &str) -> String {
    // Not by `format!`, which would move a text of this length several times.
    [
        r#"{"PartitionKey":""#,
        partition,
        r#"","RowKey":""#,
        &row.to_string(),
        r#"","Content@odata.type":"Edm.Binary","Content":""#,
        content,
        r#""}"#,
    ]
    .concat()
}

/// As many insertions as one transaction can have, all into one new partition.
fn batch(url: &str, path: &str, partition: &str, content: &str) -> String {
    let mut body =
        String::from("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
    for row in 0..CHANGES_PER_BATCH {
        let entity = entity(partition, row as u64, content);
        body += &format!(
            "--changeset_1\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\nPOST {url}{path} HTTP/1.1\r\n\
             Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n\
             Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n{entity}\r\n"
        );
    }
    body + "--changeset_1--\r\n--batch_1--\r\n"
}

async fn insert(
    client: &mut Client,
    path: &str,
    partition: u64,
    row: u64,
    content: &str,
) -> Result<u64, Failure> {
    let entity = entity(&partition.to_string(), row, content);
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

async fn upsert(
    client: &mut Client,
    path: &str,
    index: u64,
    content: &str,
) -> Result<u64, Failure> {
    let (partition, entity) = (index % PARTITIONS, properties(content));
    let path = format!("{path}(PartitionKey='{partition}',RowKey='{index}')");
    let bytes = entity.len() as u64;
    let call = Call {
        headers: &[ACCEPT],
        content_type: "application/json",
        body: entity.into(),
        ..Call::new(Method::PUT, &path)
    };
    client.call(call, 204).await?;
    Ok(bytes)
}
