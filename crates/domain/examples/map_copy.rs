//! What the first write after a snapshot costs, by the number of parts that the blob has, and the
//! background work that follows.
//!
//! ```text
//! cargo run --release -p holdfast-domain --example map_copy -- [FOLDER] [PARTS] [BYTES_OF_A_PART]
//! ```

#![allow(clippy::disallowed_methods, reason = "the clock on the wall is what is measured with")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::Domain;
use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    AppendBlock, BlobPath, ContainerPath, CreateContainer, Encryption, NewBlob, PutBlob,
    ScopePolicy, SnapshotBlob,
};
use holdfast_domain::condition::{AppendConditions, Conditions};
use holdfast_domain::content::{ByteSource, Received};
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, BlobName, ContainerName};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_store::embedded::{
    DataFolder, Durability, EmbeddedEngine, EngineOptions, SegmentExtents, SegmentOptions,
};

struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

struct Body(Option<Bytes>);

#[async_trait]
impl ByteSource for Body {
    type Refusal = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.take())
    }
}

fn container() -> ContainerPath {
    ContainerPath {
        account: AccountName::new("account1").expect("a name"),
        container: ContainerName::new("photos").expect("a name"),
    }
}

fn blob() -> BlobPath {
    BlobPath { container: container(), blob: BlobName::new("blob").expect("a name") }
}

async fn receive(domain: &Domain, bytes: usize) -> Received {
    let body = Bytes::from(vec![7; bytes]);
    let Ok(received) = domain.receive_part(&mut Body(Some(body)), None).await else {
        panic!("a body in memory arrives");
    };
    received
}

async fn append(domain: &Domain, bytes: usize) {
    let command = AppendBlock {
        path: blob(),
        content: receive(domain, bytes).await,
        conditions: Conditions::default(),
        append_conditions: AppendConditions::default(),
        lease_id: None,
        encryption: Encryption::Account,
    };
    domain.append_block(command).await.expect("appended");
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let parts: usize = arguments.next().map_or(49_000, |text| text.parse().expect("a number"));
    let bytes: usize = arguments.next().map_or(512, |text| text.parse().expect("a number"));
    let scratch = tempfile::tempdir_in(&folder).expect("a scratch folder");
    let data = DataFolder::open(scratch.path()).expect("a folder");
    let relaxed = Durability::Relaxed;
    let options = EngineOptions { durability: relaxed, ..EngineOptions::default() };
    let engine = Arc::new(EmbeddedEngine::open(&data, &options).expect("an engine"));
    let options = SegmentOptions { durability: relaxed, ..SegmentOptions::default() };
    let extents = Arc::new(SegmentExtents::open(&data, &options).expect("extents"));
    let clock = Arc::new(Ticking(AtomicU64::new(638_000_000_000_000_000)));
    let domain = Domain::open(engine, extents, clock, Features::default()).await.expect("a store");
    let command = CreateContainer {
        path: container(),
        metadata: Metadata::default(),
        public_access: PublicAccess::None,
        scope: ScopePolicy::default(),
    };
    domain.create_container(command).await.expect("a container");
    let command = PutBlob::new(blob(), NewBlob::Append);
    domain.put_blob(command).await.expect("an append blob");
    let begun = Instant::now();
    for _ in 0..parts {
        append(&domain, bytes).await;
    }
    println!("{parts} parts of {bytes} bytes appended in {:?}", begun.elapsed());
    for _ in 0..4 {
        let command = SnapshotBlob {
            path: blob(),
            metadata: Metadata::default(),
            conditions: Conditions::default(),
            lease_id: None,
            encryption: Encryption::Account,
        };
        let begun = Instant::now();
        domain.snapshot_blob(command).await.expect("a snapshot");
        let snapshot = begun.elapsed();
        let begun = Instant::now();
        append(&domain, bytes).await;
        let first = begun.elapsed();
        let begun = Instant::now();
        append(&domain, bytes).await;
        let second = begun.elapsed();
        let (mut steps, mut longest) = (0, Duration::ZERO);
        let filling = Instant::now();
        loop {
            let begun = Instant::now();
            let more = domain.collect_garbage().await.expect("filled");
            longest = longest.max(begun.elapsed());
            if !more {
                break;
            }
            steps += 1;
        }
        println!(
            "snapshot {snapshot:?}, first write {first:?}, second {second:?}; filled behind them in \
             {steps} commits, {:?} in all, {longest:?} the longest",
            filling.elapsed()
        );
    }
}
