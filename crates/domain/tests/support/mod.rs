//! Shared by the tests of the Blob service: a store in memory, and commands with default options.

#![allow(dead_code, reason = "each test file uses some of it")]

pub mod counting;
pub mod share;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    BlobPath, BlobRefusal, ContainerPath, ContainerRefusal, CreateContainer, DeleteBlob, GetBlob,
    ListBlobs, Listed, NewBlob, PutBlob, ScopePolicy, Show, Which,
};
use holdfast_domain::condition::{CombinationRule, Conditions, DateConditions};
use holdfast_domain::content::{ByteSource, ReadRange};
use holdfast_domain::features::Features;
use holdfast_domain::lease::LeaseId;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, BlobName, ContainerName};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_domain::{Domain, Failure};
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Engine, Extents};

/// A clock that stands still until it is moved.
pub struct TestClock(pub AtomicU64);

impl TestClock {
    pub fn pass(&self, duration: Duration) {
        let now = self.now().plus(duration);
        self.0.store(now.ticks(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.load(Ordering::Relaxed))
    }
}

pub struct Body(VecDeque<Bytes>);

impl Body {
    pub fn of(content: &[u8]) -> Self {
        Self(content.chunks(10_000).map(Bytes::copy_from_slice).collect())
    }
}

#[async_trait]
impl ByteSource for Body {
    type Refusal = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.pop_front())
    }
}

pub struct Store {
    pub domain: Domain,
    pub clock: Arc<TestClock>,
    pub extents: MemoryExtents,
}

impl Store {
    pub async fn new() -> Self {
        Self::on(Arc::new(MemoryEngine::default()), Features::default()).await
    }

    pub async fn on(engine: Arc<dyn Engine>, features: Features) -> Self {
        let clock = Arc::new(TestClock(AtomicU64::new(638_000_000_000_000_000)));
        let extents = MemoryExtents::default();
        let domain = Domain::open(
            engine,
            Arc::new(extents.clone()),
            Arc::clone(&clock) as Arc<dyn Clock>,
            features,
        )
        .await
        .expect("memory opens");
        Self { domain, clock, extents }
    }

    pub async fn with_container(name: &str) -> Self {
        let store = Self::new().await;
        store.create(name).await.expect("a new container");
        store
    }

    pub async fn create(&self, name: &str) -> Result<(), Failure<ContainerRefusal>> {
        let command = CreateContainer {
            path: container(name),
            metadata: Metadata::default(),
            public_access: PublicAccess::None,
            scope: ScopePolicy::default(),
        };
        self.domain.create_container(command).await.map(drop)
    }

    pub async fn put(&self, name: &str, content: &[u8]) -> Result<(), Failure<BlobRefusal>> {
        self.put_with(name, content, Conditions::default(), None).await
    }

    pub async fn put_with(
        &self,
        name: &str,
        content: &[u8],
        conditions: Conditions,
        lease_id: Option<LeaseId>,
    ) -> Result<(), Failure<BlobRefusal>> {
        let Ok(received) = self.domain.receive(&mut Body::of(content)).await else {
            panic!("a body in memory arrives");
        };
        let command = PutBlob { conditions, lease_id, ..put(name, NewBlob::Block(received)) };
        self.domain.put_blob(command).await.map(drop)
    }

    pub async fn get(&self, name: &str, range: Option<ReadRange>) -> Result<Vec<u8>, BlobRefusal> {
        let download = match self.domain.get_blob(&get(name), range).await {
            Ok(download) => download,
            Err(Failure::Refused(refusal)) => return Err(refusal),
            Err(failure) => panic!("{failure:?}"),
        };
        let (mut reader, mut content) = (download.reader, Vec::new());
        while let Some(bytes) = reader.next().await.expect("memory reads") {
            content.extend_from_slice(&bytes);
        }
        Ok(content)
    }

    pub async fn delete(&self, name: &str) -> Result<(), Failure<BlobRefusal>> {
        self.delete_with(name, DateConditions::default()).await
    }

    pub async fn delete_with(
        &self,
        name: &str,
        tier_conditions: DateConditions,
    ) -> Result<(), Failure<BlobRefusal>> {
        let (path, conditions) = (blob(name), Conditions::default());
        let command = DeleteBlob {
            path,
            which: Which::Current,
            snapshots: None,
            permanent: false,
            conditions,
            tier_conditions,
            lease_id: None,
        };
        self.domain.delete_blob(command).await.map(drop)
    }

    /// Names and prefixes (in angle brackets) of all pages of a listing, and how many pages.
    pub async fn list(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        limit: usize,
    ) -> (Vec<String>, usize) {
        self.list_with(prefix, delimiter, limit, false).await
    }

    /// As [`Store::list`], with names without committed blocks in parentheses.
    pub async fn list_with(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        limit: usize,
        uncommitted: bool,
    ) -> (Vec<String>, usize) {
        let (mut names, mut pages, mut start) = (Vec::new(), 0, None);
        loop {
            let command = ListBlobs {
                container: container("photos"),
                prefix: prefix.to_owned(),
                delimiter: delimiter.map(str::to_owned),
                start,
                end_before: None,
                limit,
                show: Show { uncommitted, ..Show::default() },
            };
            let mut page = self.domain.list_blobs(command).await.expect("a page");
            let names_before = names.len();
            loop {
                let entries = page.next().await.expect("memory reads");
                if entries.is_empty() {
                    break;
                }
                names.extend(entries.into_iter().map(|entry| match entry {
                    Listed::Blob(name, _) => name,
                    Listed::Uncommitted(name) => format!("({name})"),
                    Listed::Prefix(name) => format!("<{name}>"),
                }));
            }
            assert!(names.len() - names_before <= limit);
            pages += 1;
            start = page.next_marker().cloned();
            if start.is_none() {
                return (names, pages);
            }
        }
    }

    pub async fn collect_garbage(&self) {
        let mut rounds = 0;
        while self.domain.collect_garbage().await.expect("collected") {
            rounds += 1;
            assert!(rounds < 100, "the collection ends");
        }
    }

    /// All background work.
    pub async fn do_what_is_due(&self) {
        while self.domain.do_what_is_due().await.expect("done") {}
        self.collect_garbage().await;
    }

    pub fn bytes_in_extents(&self) -> u64 {
        let statistics = self.extents.statistics();
        statistics.bytes_written - statistics.bytes_freed
    }
}

pub fn container(name: &str) -> ContainerPath {
    ContainerPath {
        account: AccountName::new("account1").expect("a name"),
        container: ContainerName::new(name).expect("a name"),
    }
}

pub fn blob(name: &str) -> BlobPath {
    BlobPath { container: container("photos"), blob: BlobName::new(name).expect("a name") }
}

pub fn put(name: &str, new: NewBlob) -> PutBlob {
    PutBlob::new(blob(name), new)
}

pub fn get(name: &str) -> GetBlob {
    GetBlob {
        path: blob(name),
        which: Which::Current,
        conditions: Conditions::default(),
        combination: CombinationRule::Free,
        lease_id: None,
        key: None,
    }
}

pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}
