//! Deleted resources with thousands of rows are removed step by step, and no step scans what the steps
//! before have removed.

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::blob::DeleteContainer;
use holdfast_domain::condition::DateConditions;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, QueueName, TableName};
use holdfast_domain::queue::{CreateQueue, PutMessage, QueuePath};
use holdfast_domain::share::Protocol;
use holdfast_domain::table::{Change, EntityChange, EntityKey, Properties, TablePath};
use holdfast_store::Engine;
use support::counting::CountingEngine;
use support::share::Files;
use support::{Store, container};

const ROWS: usize = 2000;
/// Rows such as those that condemn: a few for each step.
const PASSED_OVER_MAX: u64 = 100;

struct Filled {
    store: Store,
    engine: Arc<CountingEngine>,
}

impl Filled {
    async fn new() -> Self {
        let engine = Arc::new(CountingEngine::default());
        let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
        Self { store, engine }
    }

    async fn check_that_removal_goes_on_where_it_was(&self) {
        let before = self.engine.passed_over();
        self.store.do_what_is_due().await;
        while self.store.domain.tend_queues().await.expect("memory works") {}
        let passed_over = self.engine.passed_over() - before;
        assert!(passed_over < PASSED_OVER_MAX, "{passed_over} removed rows were passed over");
    }
}

fn account() -> AccountName {
    AccountName::new("account1").expect("a name")
}

#[tokio::test]
async fn a_deleted_table_is_emptied_without_passing_over_what_is_gone() {
    let filled = Filled::new().await;
    let domain = &filled.store.domain;
    let path = TablePath { account: account(), table: TableName::new("People").expect("a name") };
    domain.create_table(&path).await.expect("a new table");
    for number in 0..ROWS {
        let key = EntityKey::new("p", number.to_string()).expect("a key");
        let change = Change::Insert(Properties::default());
        domain.change_entity(&path, &EntityChange { key, change }).await.expect("inserted");
    }
    domain.delete_table(&path).await.expect("deleted");
    filled.check_that_removal_goes_on_where_it_was().await;
    assert_eq!(rows(&*filled.engine).await, 0);
}

#[tokio::test]
async fn a_deleted_container_is_emptied_without_passing_over_what_is_gone() {
    let filled = Filled::new().await;
    filled.store.create("photos").await.expect("a new container");
    for number in 0..ROWS {
        filled.store.put(&number.to_string(), b"").await.expect("put");
    }
    let conditions = DateConditions::default();
    let command = DeleteContainer { path: container("photos"), conditions, lease_id: None };
    filled.store.domain.delete_container(command).await.expect("deleted");
    filled.check_that_removal_goes_on_where_it_was().await;
    assert_eq!(rows(&*filled.engine).await, 0);
}

#[tokio::test]
async fn a_deleted_share_is_emptied_without_passing_over_what_is_gone() {
    let engine = Arc::new(CountingEngine::default());
    let files = Files::on(Arc::clone(&engine) as Arc<dyn Engine>).await;
    files.create_share(Protocol::Smb).await;
    for number in 0..ROWS {
        files.create_file(&number.to_string(), 0).await.expect("created");
    }
    files.delete_share().await;
    let filled = Filled { store: files.store, engine };
    filled.check_that_removal_goes_on_where_it_was().await;
}

#[tokio::test]
async fn a_deleted_queue_is_emptied_without_passing_over_what_is_gone() {
    let filled = Filled::new().await;
    let domain = &filled.store.domain;
    let path = QueuePath { account: account(), queue: QueueName::new("jobs").expect("a name") };
    let command = CreateQueue { path: path.clone(), metadata: Metadata::default() };
    domain.create_queue(command).await.expect("created");
    for _ in 0..ROWS {
        let (path, text) = (path.clone(), String::from("text"));
        let (delay, time_to_live) = (Duration::ZERO, None);
        let command = PutMessage { path, text, delay, time_to_live };
        domain.put_message(command).await.expect("put");
    }
    domain.delete_queue(&path).await.expect("deleted");
    filled.check_that_removal_goes_on_where_it_was().await;
    assert_eq!(rows(&*filled.engine).await, 0);
}

async fn rows(engine: &dyn Engine) -> usize {
    let snapshot = engine.snapshot().await.expect("memory works");
    let all = holdfast_store::KeyRange::all();
    let found = snapshot.scan(&all, holdfast_store::Order::Ascending, usize::MAX).await;
    found.expect("memory works").len()
}
