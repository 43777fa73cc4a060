//! What is done to a server, again and again. A family of workloads is one small file: what must be there
//! before it, one operation, and what is removed after it.

mod blob;
mod container;
mod queue;
mod table;

use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;

use crate::account::Service;
use crate::client::{Client, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Put Blob, a new name each time.
    PutBlob,
    /// Get Blob, whole, of one of `--objects` blobs.
    GetBlob,
    /// Get Blob Properties of one of `--objects` blobs.
    HeadBlob,
    /// List Blobs, the first page of up to 5,000 of a container of `--objects` blobs.
    ListBlobs,
    /// Put Block for every 8 MiB and Put Block List, a new name each time; together one operation.
    Upload,
    /// Get Blob of every 8 MiB of one of `--objects` blobs, one after the other; one operation.
    Download,
    /// Create Container and Delete Container in turn; each is an operation.
    CreateDeleteContainer,
    /// Put Message.
    PutMessage,
    /// Put Message, Get Messages of one, Delete Message; the three are one operation.
    CycleMessage,
    /// Insert Entity, a partition for each connection.
    InsertEntity,
    /// Insert Or Replace Entity, one of `--objects` entities.
    UpsertEntity,
    /// An entity group transaction of 100 insertions, a partition for each; one operation.
    BatchEntities,
    /// Query Entities for one of `--objects` entities by its keys.
    GetEntity,
}

impl WorkloadName {
    /// How many objects there are unless told otherwise.
    pub fn objects_default(self) -> u64 {
        match self {
            Self::ListBlobs => 5000,
            Self::Download => 4,
            Self::PutBlob
            | Self::GetBlob
            | Self::HeadBlob
            | Self::Upload
            | Self::CreateDeleteContainer
            | Self::PutMessage
            | Self::CycleMessage
            | Self::InsertEntity
            | Self::UpsertEntity
            | Self::BatchEntities
            | Self::GetEntity => 1000,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub payload_bytes: usize,
    pub objects: u64,
}

#[async_trait]
pub trait Workload: Send + Sync {
    fn service(&self) -> Service;

    /// Makes what the load needs to exist first.
    async fn prepare(&self, client: &mut Client) -> Result<(), Failure>;

    /// How many times [`Workload::populate`] is called, by many connections at once.
    fn population(&self) -> u64 {
        0
    }

    async fn populate(&self, _client: &mut Client, _index: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// The work of one connection, for one run.
    fn worker(&self) -> Box<dyn Worker>;

    /// Removes everything that was made.
    async fn clean_up(&self, client: &mut Client) -> Result<(), Failure>;
}

#[async_trait]
pub trait Worker: Send {
    /// One operation. Returns the bytes of content that it moved.
    async fn operation(&mut self, client: &mut Client) -> Result<u64, Failure>;

    /// Ends what the last operation began. Not measured.
    async fn finish(&mut self, _client: &mut Client) -> Result<(), Failure> {
        Ok(())
    }
}

/// A workload that shares nothing with any other: each makes names of its own.
pub fn build(name: WorkloadName, settings: Settings) -> Arc<dyn Workload> {
    match name {
        WorkloadName::PutBlob => Arc::new(blob::Blobs::new(blob::Operation::Put, settings)),
        WorkloadName::GetBlob => Arc::new(blob::Blobs::new(blob::Operation::Get, settings)),
        WorkloadName::HeadBlob => Arc::new(blob::Blobs::new(blob::Operation::Head, settings)),
        WorkloadName::ListBlobs => Arc::new(blob::Blobs::new(blob::Operation::List, settings)),
        WorkloadName::Upload => Arc::new(blob::Blobs::new(blob::Operation::Upload, settings)),
        WorkloadName::Download => Arc::new(blob::Blobs::new(blob::Operation::Download, settings)),
        WorkloadName::CreateDeleteContainer => Arc::new(container::CreateDelete::new()),
        WorkloadName::PutMessage => Arc::new(queue::Messages::new(queue::Operation::Put, settings)),
        WorkloadName::CycleMessage => {
            Arc::new(queue::Messages::new(queue::Operation::Cycle, settings))
        }
        WorkloadName::InsertEntity => {
            Arc::new(table::Entities::new(table::Operation::Insert, settings))
        }
        WorkloadName::UpsertEntity => {
            Arc::new(table::Entities::new(table::Operation::Upsert, settings))
        }
        WorkloadName::BatchEntities => {
            Arc::new(table::Entities::new(table::Operation::Batch, settings))
        }
        WorkloadName::GetEntity => Arc::new(table::Entities::new(table::Operation::Get, settings)),
    }
}

/// A name that no other run on the same server has used.
fn unique_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("bench{:x}{:x}{count:x}", since_epoch.as_micros(), std::process::id())
}

/// Bytes that do not compress, the same in every run.
fn payload(length: usize) -> bytes::Bytes {
    let mut sequence = Sequence::new(1);
    (0..length).map(|_| sequence.next().to_be_bytes()[0]).collect::<Vec<u8>>().into()
}

/// A cheap sequence of numbers without a visible pattern.
struct Sequence(u64);

impl Sequence {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end.max(1)
    }
}
