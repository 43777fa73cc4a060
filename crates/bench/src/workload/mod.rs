//! What is done to a server, again and again. A family of workloads is one small file: what must be there
//! before it, one operation, and what is removed after it.

mod blob;
mod container;
mod queue;
mod table;

use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;
use holdfast_random::Random;

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
    /// Get Blob of `--payload` bytes at any place of one of `--objects` blobs of `--parts` blocks.
    GetRange,
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
    /// Query Entities, the first page of 1,000 of a table of `--objects` entities.
    ScanEntities,
    /// Put Blob of one blob by all connections.
    HotBlob,
    /// Get Blob Properties and Put Blob with If-Match of one blob by all connections, until it
    /// succeeds; one success is an operation.
    HotBlobIfMatch,
    /// Append Block to one blob by all connections.
    HotAppend,
    /// Insert Or Replace Entity of one entity by all connections.
    HotEntity,
    /// put-blob, get-blob, insert-entity, get-entity and cycle-message at once: each connection does
    /// one of them.
    Mixed,
}

impl WorkloadName {
    /// How many objects there are unless told otherwise.
    pub fn objects_default(self) -> u64 {
        match self {
            Self::ListBlobs | Self::ScanEntities => 5000,
            Self::Download | Self::GetRange => 4,
            Self::HotEntity => 1,
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
            | Self::GetEntity
            | Self::HotBlob
            | Self::HotBlobIfMatch
            | Self::HotAppend
            | Self::Mixed => 1000,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub payload_bytes: usize,
    pub objects: u64,
    pub parts: Parts,
}

/// What a blob that is read in ranges is made of. One part is put with the blob.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub count: u32,
    pub bytes: u32,
}

impl Default for Parts {
    fn default() -> Self {
        Self { count: 1000, bytes: 64 * 1024 }
    }
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

    /// Deletes what [`Workload::populate`] made.
    async fn remove(&self, _client: &mut Client, _index: u64) -> Result<(), Failure> {
        Err(Failure::Wrong("single objects of this workload are not deleted"))
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

/// Workloads that share nothing with any other: each makes names of its own. Connections are shared out
/// among them.
pub fn build(name: WorkloadName, settings: Settings) -> Vec<Arc<dyn Workload>> {
    let blobs = |operation| Arc::new(blob::Blobs::new(operation, settings)) as Arc<dyn Workload>;
    let messages = |operation| Arc::new(queue::Messages::new(operation, settings));
    let entities = |operation| Arc::new(table::Entities::new(operation, settings));
    let one: Arc<dyn Workload> = match name {
        WorkloadName::PutBlob => blobs(blob::Operation::Put),
        WorkloadName::GetBlob => blobs(blob::Operation::Get),
        WorkloadName::HeadBlob => blobs(blob::Operation::Head),
        WorkloadName::ListBlobs => blobs(blob::Operation::List),
        WorkloadName::Upload => blobs(blob::Operation::Upload),
        WorkloadName::Download => blobs(blob::Operation::Download),
        WorkloadName::GetRange => blobs(blob::Operation::GetRange),
        WorkloadName::HotBlob => blobs(blob::Operation::PutOne),
        WorkloadName::HotBlobIfMatch => blobs(blob::Operation::ReplaceOne),
        WorkloadName::HotAppend => blobs(blob::Operation::AppendToOne),
        WorkloadName::CreateDeleteContainer => Arc::new(container::CreateDelete::new()),
        WorkloadName::PutMessage => messages(queue::Operation::Put),
        WorkloadName::CycleMessage => messages(queue::Operation::Cycle),
        WorkloadName::InsertEntity => entities(table::Operation::Insert),
        WorkloadName::UpsertEntity | WorkloadName::HotEntity => entities(table::Operation::Upsert),
        WorkloadName::BatchEntities => entities(table::Operation::Batch),
        WorkloadName::GetEntity => entities(table::Operation::Get),
        WorkloadName::ScanEntities => entities(table::Operation::Scan),
        WorkloadName::Mixed => {
            let parts = [
                WorkloadName::PutBlob,
                WorkloadName::GetBlob,
                WorkloadName::InsertEntity,
                WorkloadName::GetEntity,
                WorkloadName::CycleMessage,
            ];
            return parts.into_iter().flat_map(|part| build(part, settings)).collect();
        }
    };
    vec![one]
}

/// What `churn` fills and empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Blobs,
    Entities,
    Messages,
}

/// A workload whose population is all that counts.
pub fn population(kind: Kind, settings: Settings) -> Arc<dyn Workload> {
    match kind {
        Kind::Blobs => Arc::new(blob::Blobs::new(blob::Operation::Get, settings)),
        Kind::Entities => Arc::new(table::Entities::new(table::Operation::Get, settings)),
        Kind::Messages => Arc::new(queue::Messages::new(queue::Operation::Keep, settings)),
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
    Random::new(1).bytes(length).into()
}
