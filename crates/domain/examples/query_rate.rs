//! How fast table queries read and filter entities, on one thread.
//!
//! `cargo run --release -p holdfast-domain --example query_rate`
//!
//! `HOLDFAST_RATE_PARTITIONS` (10,000) of 100 entities each are written to a data folder in
//! `TMPDIR`, and queried.

#![allow(clippy::disallowed_methods, reason = "a measurement looks at the clock")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_domain::Domain;
use holdfast_domain::features::Features;
use holdfast_domain::names::{AccountName, TableName};
use holdfast_domain::table::filter::Filter;
use holdfast_domain::table::{
    Change, EntityChange, EntityKey, PAGE_ENTITIES_MAX, Properties, QueryEntities, TablePath,
    ValueRef,
};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_store::Engine;
use holdfast_store::embedded::{DataFolder, Durability, EmbeddedEngine, EngineOptions};
use holdfast_store::memory::{MemoryEngine, MemoryExtents};

const ROWS: usize = 100;

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp::from_unix(since_epoch.unwrap_or_default())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let partitions = match std::env::var("HOLDFAST_RATE_PARTITIONS") {
        Ok(text) => text.parse().expect("HOLDFAST_RATE_PARTITIONS"),
        Err(_) => 10_000,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let data = DataFolder::open(folder.path()).expect("a data folder");
    let options = EngineOptions { durability: Durability::Relaxed, ..EngineOptions::default() };
    let embedded = EmbeddedEngine::open(&data, &options).expect("it opens");
    measure("embedded", Arc::new(embedded), partitions).await;
    measure("memory", Arc::new(MemoryEngine::default()), partitions).await;
}

async fn measure(name: &str, engine: Arc<dyn Engine>, partitions: usize) {
    println!("{name}: {} entities in {partitions} partitions", partitions * ROWS);
    let extents = Arc::new(MemoryExtents::default());
    let opened = Domain::open(engine, extents, Arc::new(WallClock), Features::default()).await;
    let domain = opened.expect("it opens");
    fill(&domain, partitions).await;
    let middle = partitions / 2;
    for filter in [
        format!("PartitionKey eq '{middle:05}' and RowKey eq '050'"),
        format!("PartitionKey eq '{middle:05}'"),
        format!("PartitionKey eq '{middle:05}' and Age gt 40"),
        "Name eq 'nobody'".to_owned(),
        "Active and Balance gt 1e9 or Age lt 0".to_owned(),
        "Age ge 40 and Age lt 41".to_owned(),
        String::new(),
    ] {
        run(&domain, &filter).await;
    }
}

async fn fill(domain: &Domain, partitions: usize) {
    domain.create_table(&table()).await.expect("a new table");
    let begun = Instant::now();
    for partition in 0..partitions {
        let changes: Vec<_> = (0..ROWS).map(|row| entity(partition, row)).collect();
        domain.change_entities(&table(), &changes).await.expect("inserted");
    }
    println!("  written in {:.1?}", begun.elapsed());
}

/// About 150 bytes in seven properties.
fn entity(partition: usize, row: usize) -> EntityChange {
    let n = partition * ROWS + row;
    let mut properties = Properties::default();
    let (name, address) = (format!("customer {n}"), format!("{n} Main Street, Springfield"));
    for (property, value) in [
        ("Name", ValueRef::String(&name)),
        ("Address", ValueRef::String(&address)),
        ("Age", ValueRef::Int32((n % 90) as i32)),
        ("Balance", ValueRef::Double(n as f64 * 0.25)),
        ("Orders", ValueRef::Int64(n as i64 * 7)),
        ("Active", ValueRef::Boolean(n.is_multiple_of(3))),
        ("Since", ValueRef::DateTime(Timestamp::from_ticks(638_000_000_000_000_000 + n as u64))),
    ] {
        properties.push(property, value).expect("a property");
    }
    let key = EntityKey::new(format!("{partition:05}"), format!("{row:03}")).expect("a key");
    EntityChange { key, change: Change::Insert(properties) }
}

fn table() -> TablePath {
    TablePath {
        account: AccountName::new("account1").expect("a name"),
        table: TableName::new("Customers").expect("a name"),
    }
}

/// All pages of a query.
async fn run(domain: &Domain, filter: &str) {
    let mut query = QueryEntities {
        table: table(),
        filter: Filter::parse(filter).expect("a filter"),
        from: None,
        range: None,
        limit: PAGE_ENTITIES_MAX,
    };
    let (begun, mut longest) = (Instant::now(), Duration::ZERO);
    let (mut pages, mut entities) = (0, 0);
    loop {
        let page_begun = Instant::now();
        let page = domain.query_entities(&query).await.expect("a page");
        longest = longest.max(page_begun.elapsed());
        pages += 1;
        entities += page.entities.len();
        query.from = page.next;
        if query.from.is_none() {
            break;
        }
    }
    let elapsed = begun.elapsed();
    println!(
        "  {filter:?}: {entities} entities in {pages} pages, {elapsed:.2?} (longest {longest:.2?})"
    );
}
