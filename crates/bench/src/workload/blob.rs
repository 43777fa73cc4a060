//! Blobs of one container: put, get, head, list; uploads and downloads in blocks; one blob that all
//! connections change.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast_random::Random;
use hyper::Method;

use super::{Settings, Worker, Workload, payload, unique_name};
use crate::account::Service;
use crate::client::{Call, Client, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Put,
    Get,
    Head,
    List,
    Upload,
    Download,
    GetRange,
    PutOne,
    /// Replaces the blob if it is unchanged since the read.
    ReplaceOne,
    AppendToOne,
}

pub struct Blobs {
    operation: Operation,
    settings: Settings,
    /// `/container`
    container: String,
    payload: Bytes,
    workers: AtomicU64,
}

impl Blobs {
    pub fn new(operation: Operation, settings: Settings) -> Self {
        Self {
            operation,
            settings,
            container: format!("/{}", unique_name()),
            payload: payload(if operation == Operation::GetRange {
                settings.parts.bytes as usize
            } else {
                settings.payload_bytes
            }),
            workers: AtomicU64::new(0),
        }
    }
}

/// What the official clients send and ask for at once, more or less.
const BLOCK_BYTES: usize = 8 * 1024 * 1024;

/// The blob that all connections change.
const ONE: &str = "one";

const CONTAINER: &[(&str, &str)] = &[("restype", "container")];

#[async_trait]
impl Workload for Blobs {
    fn service(&self) -> Service {
        Service::Blob
    }

    async fn prepare(&self, client: &mut Client) -> Result<(), Failure> {
        let call = Call { query: CONTAINER, ..Call::new(Method::PUT, &self.container) };
        client.call(call, 201).await?;
        let one = format!("{}/{ONE}", self.container);
        match self.operation {
            Operation::ReplaceOne => put(client, &one, &self.payload).await.map(drop),
            Operation::AppendToOne => create_append_blob(client, &one).await,
            Operation::Put
            | Operation::Get
            | Operation::Head
            | Operation::List
            | Operation::Upload
            | Operation::Download
            | Operation::GetRange
            | Operation::PutOne => Ok(()),
        }
    }

    fn population(&self) -> u64 {
        match self.operation {
            Operation::Put
            | Operation::Upload
            | Operation::PutOne
            | Operation::ReplaceOne
            | Operation::AppendToOne => 0,
            Operation::Get
            | Operation::Head
            | Operation::List
            | Operation::Download
            | Operation::GetRange => self.settings.objects,
        }
    }

    async fn populate(&self, client: &mut Client, index: u64) -> Result<(), Failure> {
        let path = format!("{}/{index}", self.container);
        match self.settings.parts.count {
            parts if self.operation == Operation::GetRange && parts > 1 => {
                let parts = (0..parts).map(|_| self.payload.clone());
                put_blocks(client, &path, parts).await.map(drop)
            }
            _ => put(client, &path, &self.payload).await.map(drop),
        }
    }

    async fn remove(&self, client: &mut Client, index: u64) -> Result<(), Failure> {
        let path = format!("{}/{index}", self.container);
        client.call(Call::new(Method::DELETE, &path), 202).await.map(drop)
    }

    fn worker(&self) -> Box<dyn Worker> {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        Box::new(BlobWorker {
            operation: self.operation,
            container: self.container.clone(),
            payload: self.payload.clone(),
            settings: self.settings,
            random: Random::new(number + 1),
            number,
            puts: 0,
            path: String::new(),
        })
    }

    async fn clean_up(&self, client: &mut Client) -> Result<(), Failure> {
        let call = Call { query: CONTAINER, ..Call::new(Method::DELETE, &self.container) };
        client.call(call, 202).await.map(drop)
    }
}

struct BlobWorker {
    operation: Operation,
    container: String,
    payload: Bytes,
    settings: Settings,
    random: Random,
    /// The number of this worker in its workload, so that no two write the same blob.
    number: u64,
    puts: u64,
    path: String,
}

#[async_trait]
impl Worker for BlobWorker {
    async fn operation(&mut self, client: &mut Client) -> Result<u64, Failure> {
        match self.operation {
            Operation::Put => {
                self.name_new();
                put(client, &self.path, &self.payload).await
            }
            Operation::Upload => {
                self.name_new();
                let starts = (0..self.payload.len()).step_by(BLOCK_BYTES);
                let end = |start| self.payload.len().min(start + BLOCK_BYTES);
                let blocks = starts.map(|start| self.payload.slice(start..end(start)));
                put_blocks(client, &self.path, blocks).await
            }
            Operation::Download => {
                self.name_any();
                download(client, &self.path, self.payload.len()).await
            }
            Operation::GetRange => {
                self.name_any();
                let Settings { parts, payload_bytes, .. } = self.settings;
                let length = u64::from(parts.count) * u64::from(parts.bytes);
                let start = self.random.below(length.saturating_sub(payload_bytes as u64) + 1);
                let end = length.min(start + payload_bytes as u64);
                get_range(client, &self.path, start, end).await
            }
            Operation::Get => {
                self.name_any();
                let length = client.call(Call::new(Method::GET, &self.path), 200).await?;
                if length != self.payload.len() as u64 {
                    return Err(Failure::Wrong("the blob has another length"));
                }
                Ok(length)
            }
            Operation::Head => {
                self.name_any();
                client.call(Call::new(Method::HEAD, &self.path), 200).await
            }
            Operation::List => {
                let query = &[("comp", "list"), ("restype", "container")];
                let call = Call { query, ..Call::new(Method::GET, &self.container) };
                client.call(call, 200).await
            }
            Operation::PutOne => {
                self.name(format_args!("{ONE}"));
                put(client, &self.path, &self.payload).await
            }
            Operation::ReplaceOne => {
                self.name(format_args!("{ONE}"));
                replace(client, &self.path, &self.payload).await
            }
            Operation::AppendToOne => {
                self.name(format_args!("{ONE}"));
                append(client, &self.path, &self.payload).await
            }
        }
    }
}

impl BlobWorker {
    fn name(&mut self, name: std::fmt::Arguments<'_>) {
        self.path.clear();
        write!(self.path, "{}/{name}", self.container).expect("a string takes all");
    }

    fn name_new(&mut self) {
        self.puts += 1;
        let (number, puts) = (self.number, self.puts);
        self.name(format_args!("{number}-{puts}"));
    }

    fn name_any(&mut self) {
        let index = self.random.below(self.settings.objects.max(1));
        self.name(format_args!("{index}"));
    }
}

async fn put(client: &mut Client, path: &str, payload: &Bytes) -> Result<u64, Failure> {
    let call = Call {
        headers: &[("x-ms-blob-type", "BlockBlob")],
        content_type: "application/octet-stream",
        body: payload.clone(),
        ..Call::new(Method::PUT, path)
    };
    client.call(call, 201).await?;
    Ok(payload.len() as u64)
}

/// Reads and writes until no other write came between.
async fn replace(client: &mut Client, path: &str, payload: &Bytes) -> Result<u64, Failure> {
    loop {
        let read = client.exchange(Call::new(Method::HEAD, path)).await?;
        let etag = read.headers.get("etag").ok_or(Failure::Wrong("no ETag"))?;
        let call = Call {
            headers: &[("if-match", etag), ("x-ms-blob-type", "BlockBlob")],
            content_type: "application/octet-stream",
            body: payload.clone(),
            ..Call::new(Method::PUT, path)
        };
        match client.call(call, 201).await {
            Ok(_) => return Ok(payload.len() as u64),
            Err(Failure::Refused { status: 412, .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
}

async fn create_append_blob(client: &mut Client, path: &str) -> Result<(), Failure> {
    let headers = &[("x-ms-blob-type", "AppendBlob")];
    client.call(Call { headers, ..Call::new(Method::PUT, path) }, 201).await.map(drop)
}

/// A blob with the maximum number of blocks is created again.
async fn append(client: &mut Client, path: &str, payload: &Bytes) -> Result<u64, Failure> {
    loop {
        let call = Call {
            query: &[("comp", "appendblock")],
            body: payload.clone(),
            ..Call::new(Method::PUT, path)
        };
        match client.call(call, 201).await {
            Ok(_) => return Ok(payload.len() as u64),
            Err(Failure::Refused { status: 409, .. }) => create_append_blob(client, path).await?,
            Err(failure) => return Err(failure),
        }
    }
}

/// Returns their total length.
async fn put_blocks(
    client: &mut Client,
    path: &str,
    blocks: impl Iterator<Item = Bytes> + Send,
) -> Result<u64, Failure> {
    let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    let mut bytes = 0;
    for (number, block) in blocks.enumerate() {
        bytes += block.len() as u64;
        let id = STANDARD.encode(format!("{number:06}"));
        let call = Call {
            query: &[("blockid", &id), ("comp", "block")],
            body: block,
            ..Call::new(Method::PUT, path)
        };
        client.call(call, 201).await?;
        list.extend(["<Latest>", &id, "</Latest>"]);
    }
    list.push_str("</BlockList>");
    let call = Call {
        query: &[("comp", "blocklist")],
        content_type: "application/xml",
        body: list.into(),
        ..Call::new(Method::PUT, path)
    };
    client.call(call, 201).await?;
    Ok(bytes)
}

async fn download(client: &mut Client, path: &str, length: usize) -> Result<u64, Failure> {
    for start in (0..length).step_by(BLOCK_BYTES) {
        get_range(client, path, start as u64, length.min(start + BLOCK_BYTES) as u64).await?;
    }
    Ok(length as u64)
}

async fn get_range(client: &mut Client, path: &str, start: u64, end: u64) -> Result<u64, Failure> {
    let range = format!("bytes={start}-{}", end - 1);
    let call = Call { headers: &[("x-ms-range", &range)], ..Call::new(Method::GET, path) };
    if client.call(call, 206).await? != end - start {
        return Err(Failure::Wrong("the range has another length"));
    }
    Ok(end - start)
}
