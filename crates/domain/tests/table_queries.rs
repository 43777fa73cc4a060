//! Queries of entities: the contents of pages, their cost, and continuation.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::Failure;
use holdfast_domain::condition::EntityCondition;
use holdfast_domain::features::Features;
use holdfast_domain::names::{AccountName, TableName};
use holdfast_domain::table::filter::Filter;
use holdfast_domain::table::{
    Change, EntityChange, EntityKey, EntityPage, EntityRefusal, KeyRange, PAGE_ENTITIES_MAX,
    Position, Properties, QueryEntities, TablePath, ValueRef,
};
use holdfast_store::engine::{EngineStatistics, Moment};
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{
    Batch, CommitError, Engine, Fault, KeyRange as RowRange, Order, Row, Snapshot,
};
use support::{Store, TestClock};

/// A store in memory that counts the rows that are read from it, and on which every scan takes
/// some time of the clock.
#[derive(Default)]
struct Counted {
    rows: MemoryEngine,
    reads: Arc<Reads>,
}

#[derive(Default)]
struct Reads {
    rows: AtomicUsize,
    scans: AtomicUsize,
    slow: parking_lot::Mutex<Option<(Arc<TestClock>, Duration)>>,
}

struct CountedSnapshot {
    rows: Box<dyn Snapshot>,
    reads: Arc<Reads>,
}

#[async_trait]
impl Engine for Counted {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let rows = self.rows.snapshot().await?;
        Ok(Box::new(CountedSnapshot { rows, reads: Arc::clone(&self.reads) }))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.rows.commit(batch).await
    }

    fn poisoned(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> EngineStatistics {
        self.rows.statistics()
    }
}

#[async_trait]
impl Snapshot for CountedSnapshot {
    fn moment(&self) -> Moment {
        self.rows.moment()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.reads.rows.fetch_add(1, Ordering::Relaxed);
        self.rows.get(key).await
    }

    async fn scan(&self, range: &RowRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        let rows = self.rows.scan(range, order, limit).await?;
        self.reads.rows.fetch_add(rows.len(), Ordering::Relaxed);
        self.reads.scans.fetch_add(1, Ordering::Relaxed);
        if let Some((clock, duration)) = &*self.reads.slow.lock() {
            clock.pass(*duration);
        }
        Ok(rows)
    }
}

struct Tables {
    store: Store,
    reads: Arc<Reads>,
}

impl Tables {
    async fn new() -> Self {
        let engine = Counted::default();
        let reads = Arc::clone(&engine.reads);
        let store = Store::on(Arc::new(engine), Features::default()).await;
        store.domain.create_table(&table()).await.expect("a new table");
        Self { store, reads }
    }

    /// `partitions` times `rows` entities: keys of three digits, `n` counts them, `text` is the
    /// same in each.
    async fn filled(partitions: usize, rows: usize, text: &str) -> Self {
        let tables = Self::new().await;
        for partition in 0..partitions {
            let changes: Vec<_> = (0..rows)
                .map(|row| {
                    let n = partition * rows + row;
                    let mut properties = Properties::default();
                    properties.push("n", ValueRef::Int32(n as i32)).expect("a property");
                    properties.push("text", ValueRef::String(text)).expect("a property");
                    insert(&format!("{partition:03}"), &format!("{row:03}"), properties)
                })
                .collect();
            for changes in changes.chunks(100) {
                tables.store.domain.change_entities(&table(), changes).await.expect("inserted");
            }
        }
        tables
    }

    async fn page(&self, query: QueryEntities) -> EntityPage {
        self.store.domain.query_entities(&query).await.expect("a page")
    }

    /// The keys of all pages, and how many pages.
    async fn all(&self, filter: &str, limit: usize) -> (Vec<String>, usize) {
        let (mut keys, mut pages, mut from) = (Vec::new(), 0, None);
        loop {
            let page = self.page(QueryEntities { from, limit, ..query(filter) }).await;
            assert!(page.entities.len() <= limit);
            keys.extend(keys_of(&page));
            pages += 1;
            from = page.next;
            if from.is_none() {
                return (keys, pages);
            }
        }
    }

    /// How many rows it reads, without that of the table.
    async fn rows_read(&self, query: QueryEntities) -> usize {
        let before = self.reads.rows.load(Ordering::Relaxed);
        self.page(query).await;
        self.reads.rows.load(Ordering::Relaxed) - before - 1
    }
}

fn table() -> TablePath {
    TablePath {
        account: AccountName::new("account1").expect("a name"),
        table: TableName::new("Customers").expect("a name"),
    }
}

fn insert(partition: &str, row: &str, properties: Properties) -> EntityChange {
    let key = EntityKey::new(partition, row).expect("a key");
    EntityChange { key, change: Change::Insert(properties) }
}

fn query(filter: &str) -> QueryEntities {
    QueryEntities {
        table: table(),
        filter: Filter::parse(filter).expect("a filter"),
        from: None,
        range: None,
        limit: PAGE_ENTITIES_MAX,
    }
}

fn keys_of(page: &EntityPage) -> Vec<String> {
    let key = |entity: &holdfast_domain::table::StoredEntity| {
        let entity = entity.view().expect("an entity");
        format!("{}/{}", entity.partition_key(), entity.row_key())
    };
    page.entities.iter().map(key).collect()
}

fn at(partition: &str, row: Option<&str>) -> Option<Position> {
    Some(Position { partition_key: partition.to_owned(), row_key: row.map(str::to_owned) })
}

#[tokio::test]
async fn a_page_has_what_the_filter_matches_in_the_order_of_keys() {
    let tables = Tables::filled(5, 10, "x").await;
    for (filter, expected) in [
        ("PartitionKey eq '002' and RowKey lt '003'", "002/000 002/001 002/002"),
        ("n ge 18 and n lt 22", "001/008 001/009 002/000 002/001"),
        ("RowKey eq '007' and n gt 20", "002/007 003/007 004/007"),
        ("PartitionKey eq '004' and RowKey eq '001' or n eq 3", "000/003 004/001"),
        ("not (n lt 48)", "004/008 004/009"),
        ("Missing ne 5", ""),
        ("text eq 'x' and PartitionKey gt '003' and RowKey ge '008'", "004/008 004/009"),
        ("false", ""),
    ] {
        let (keys, pages) = tables.all(filter, PAGE_ENTITIES_MAX).await;
        assert_eq!(keys.join(" "), expected, "{filter}");
        assert_eq!(pages, 1, "{filter}");
    }
    let (keys, pages) = tables.all("", PAGE_ENTITIES_MAX).await;
    assert_eq!((keys.len(), pages), (50, 1));
    assert!(keys.is_sorted());
}

#[tokio::test]
async fn a_query_of_a_table_that_is_not_there_is_refused() {
    let store = Store::new().await;
    let outcome = store.domain.query_entities(&query("")).await;
    assert!(matches!(outcome, Err(Failure::Refused(EntityRefusal::TableNotFound))), "{outcome:?}");
}

#[tokio::test]
async fn only_the_rows_that_can_match_are_read() {
    let tables = Tables::filled(100, 50, "x").await;
    for (filter, at_most) in [
        ("PartitionKey eq '042' and RowKey eq '007'", 1),
        ("PartitionKey eq '042' and RowKey eq '007' and n eq 1", 1),
        ("(PartitionKey eq '9' and RowKey eq '9')", 1),
        (
            "(PartitionKey eq '042' and RowKey eq '007') or (PartitionKey eq '001' and RowKey eq \
             '001')",
            2,
        ),
        ("PartitionKey eq '042'", 50),
        ("PartitionKey eq '042' and n gt 7", 50),
        ("PartitionKey eq '042' and RowKey ge '010' and RowKey lt '020'", 10),
        ("PartitionKey eq '042' or PartitionKey eq '013'", 100),
        ("PartitionKey ge '010' and PartitionKey lt '012'", 100),
        ("PartitionKey eq '999'", 0),
        ("PartitionKey eq '042' and PartitionKey eq '043'", 0),
        ("false", 0),
        ("n eq 7", 5000),
    ] {
        let read = tables.rows_read(query(filter)).await;
        assert!(read <= at_most, "{filter}: {read} rows");
    }
    // A small page of a large table is cheap, too, even if all rows match.
    let read = tables.rows_read(QueryEntities { limit: 5, ..query("") }).await;
    assert!(read <= 7, "{read} rows");
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repetition() {
    let tables = Tables::filled(4, 25, "x").await;
    let (whole, _) = tables.all("", PAGE_ENTITIES_MAX).await;
    for limit in [1, 2, 7, 25, 33, 50, 99, 100, 101] {
        let (keys, pages) = tables.all("", limit).await;
        assert_eq!(keys, whole, "{limit}");
        assert_eq!(pages, 100_usize.div_ceil(limit), "{limit}: no page comes back empty");
    }
    for filter in ["n ge 30 and n lt 60", "PartitionKey eq '002'", "RowKey gt '020'"] {
        let (whole, _) = tables.all(filter, PAGE_ENTITIES_MAX).await;
        for limit in [1, 3, 10] {
            assert_eq!(tables.all(filter, limit).await.0, whole, "{filter} by {limit}");
        }
    }
}

#[tokio::test]
async fn a_thousand_entities_are_the_most_of_a_page() {
    let tables = Tables::filled(3, 500, "x").await;
    for limit in [PAGE_ENTITIES_MAX, usize::MAX] {
        let page = tables.page(QueryEntities { limit, ..query("") }).await;
        assert_eq!(page.entities.len(), 1000);
        assert_eq!(page.next, at("002", Some("000")));
    }
}

#[tokio::test]
async fn a_page_has_at_most_4_mib_and_at_least_one_entity() {
    let text = "x".repeat(30_000);
    let tables = Tables::filled(2, 100, &text).await;
    let page = tables.page(query("")).await;
    assert!((130..140).contains(&page.entities.len()), "{}", page.entities.len());
    let (keys, pages) = tables.all("", PAGE_ENTITIES_MAX).await;
    assert_eq!((keys.len(), pages), (200, 2));
}

#[tokio::test]
async fn a_page_that_takes_too_long_ends_with_what_it_has_and_a_place_to_go_on() {
    let tables = Tables::filled(10, 100, "x").await;
    *tables.reads.slow.lock() = Some((Arc::clone(&tables.store.clock), Duration::from_secs(2)));
    let page = tables.page(query("n eq 999")).await;
    assert!(page.entities.is_empty());
    assert!(page.next.is_some(), "an empty page goes on");
    let (keys, pages) = tables.all("n eq 999", PAGE_ENTITIES_MAX).await;
    assert_eq!(keys, ["009/099"]);
    assert!((2..10).contains(&pages), "{pages} pages");
}

#[tokio::test]
async fn pages_go_on_while_entities_come_and_go() {
    let tables = Tables::filled(2, 10, "x").await;
    let domain = &tables.store.domain;
    let first = tables.page(QueryEntities { limit: 3, ..query("") }).await;
    assert_eq!(first.next, at("000", Some("003")));
    // The entity to continue from is deleted, one before it and one after it are new.
    let delete = |row: &str| EntityChange {
        key: EntityKey::new("000", row).expect("a key"),
        change: Change::Delete(EntityCondition::Any),
    };
    domain.change_entity(&table(), &delete("003")).await.expect("deleted");
    for row in ["0025", "0045"] {
        let change = insert("000", row, Properties::default());
        domain.change_entity(&table(), &change).await.expect("inserted");
    }
    let second = tables.page(QueryEntities { limit: 3, from: first.next, ..query("") }).await;
    assert_eq!(keys_of(&second), ["000/004", "000/0045", "000/005"]);
}

#[tokio::test]
async fn a_place_without_a_row_is_the_beginning_of_its_partition() {
    let tables = Tables::filled(3, 5, "x").await;
    for (from, first) in [
        (at("001", None), "001/000"),
        (at("001", Some("")), "001/000"),
        (at("001", Some("003")), "001/003"),
        (at("001", Some("9")), "002/000"),
        (at("0005", None), "001/000"),
        (at("", None), "000/000"),
    ] {
        let page = tables.page(QueryEntities { from: from.clone(), ..query("") }).await;
        assert_eq!(keys_of(&page).first().map(String::as_str), Some(first), "{from:?}");
    }
    let page = tables.page(QueryEntities { from: at("9", None), ..query("") }).await;
    assert!(page.entities.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn a_page_is_one_state_of_the_table() {
    // Writers move a mark through the table, two entities at a time; a reader never sees one of
    // the two moved and the other not.
    let tables = Arc::new(Tables::filled(1, 100, "x").await);
    let writer = tokio::spawn({
        let tables = Arc::clone(&tables);
        async move {
            for round in 0..200 {
                let change = |row: &str| {
                    let mut properties = Properties::default();
                    properties.push("n", ValueRef::Int32(round)).expect("a property");
                    EntityChange {
                        key: EntityKey::new("000", row).expect("a key"),
                        change: Change::Replace(properties, None),
                    }
                };
                let changes = [change("000"), change("099")];
                tables.store.domain.change_entities(&table(), &changes).await.expect("changed");
                tokio::task::yield_now().await;
            }
        }
    });
    while !writer.is_finished() {
        let page = tables.page(query("")).await;
        let n = |at: usize| {
            let entity = page.entities[at].view().expect("an entity");
            match entity.property("n") {
                Some(ValueRef::Int32(n)) => n,
                other => panic!("{other:?}"),
            }
        };
        if n(0) != 0 || n(99) != 99 {
            assert_eq!(n(0), n(99));
        }
    }
    writer.await.expect("no panic");
}

#[tokio::test]
async fn a_caller_sees_only_the_keys_it_is_allowed() {
    let tables = Tables::filled(4, 4, "x").await;
    let owned = |text: &str| Some(text.to_owned());
    let range = KeyRange {
        start_partition: owned("001"),
        start_row: owned("002"),
        end_partition: owned("002"),
        end_row: owned("001"),
    };
    let allowed = |filter: &str| QueryEntities { range: Some(range.clone()), ..query(filter) };
    for (filter, expected) in [
        ("", "001/002 001/003 002/000 002/001"),
        ("RowKey eq '002'", "001/002"),
        ("PartitionKey eq '002'", "002/000 002/001"),
        ("PartitionKey eq '000'", ""),
        ("PartitionKey eq '000' or n gt 0", "001/002 001/003 002/000 002/001"),
        ("PartitionKey eq '001' and RowKey eq '001'", ""),
        ("PartitionKey eq '001' and RowKey eq '002'", "001/002"),
    ] {
        let page = tables.page(allowed(filter)).await;
        assert_eq!(keys_of(&page).join(" "), expected, "{filter}");
    }
    let read = tables.rows_read(allowed("n gt 100")).await;
    assert_eq!(read, 4, "nothing else is read");
    let beyond = QueryEntities { from: at("002", Some("001")), ..allowed("") };
    assert_eq!(keys_of(&tables.page(beyond).await), ["002/001"]);
}
