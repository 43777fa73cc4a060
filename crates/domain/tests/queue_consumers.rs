//! Many consumers of one queue, and the cost of getting messages, on an engine that counts reads
//! and delays commits.

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{
    CreateQueue, DeleteMessage, GetMessages, PeekMessages, PutMessage, QueuePath, TextMessage,
    UpdateMessage,
};
use holdfast_store::engine::{EngineStatistics, KeyRange, Moment, Order, Row, Snapshot};
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{Batch, CommitError, Engine, Fault};
use parking_lot::Mutex;
use support::Store;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Counted {
    engine: MemoryEngine,
    rows_read: Arc<AtomicU64>,
    committing: AtomicUsize,
    committing_most: AtomicUsize,
    /// How many other tasks run between the decision and the commit.
    turns_before_commit: usize,
}

struct CountedSnapshot {
    snapshot: Box<dyn Snapshot>,
    rows_read: Arc<AtomicU64>,
}

#[async_trait]
impl Engine for Counted {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let snapshot = self.engine.snapshot().await?;
        Ok(Box::new(CountedSnapshot { snapshot, rows_read: Arc::clone(&self.rows_read) }))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let committing = self.committing.fetch_add(1, Ordering::SeqCst) + 1;
        self.committing_most.fetch_max(committing, Ordering::SeqCst);
        for _ in 0..self.turns_before_commit {
            tokio::task::yield_now().await;
        }
        self.committing.fetch_sub(1, Ordering::SeqCst);
        self.engine.commit(batch).await
    }

    fn poisoned(&self) -> Option<Fault> {
        None
    }

    fn statistics(&self) -> EngineStatistics {
        self.engine.statistics()
    }
}

#[async_trait]
impl Snapshot for CountedSnapshot {
    fn moment(&self) -> Moment {
        self.snapshot.moment()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.rows_read.fetch_add(1, Ordering::SeqCst);
        self.snapshot.get(key).await
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        let found = self.snapshot.scan(range, order, limit).await?;
        self.rows_read.fetch_add(found.len() as u64, Ordering::SeqCst);
        Ok(found)
    }
}

fn jobs() -> QueuePath {
    QueuePath {
        account: AccountName::new("account1").expect("a name"),
        queue: QueueName::new("jobs").expect("a name"),
    }
}

async fn with_queue(turns_before_commit: usize) -> (Arc<Store>, Arc<Counted>) {
    let engine = Arc::new(Counted { turns_before_commit, ..Counted::default() });
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    let command = CreateQueue { path: jobs(), metadata: Metadata::default() };
    store.domain.create_queue(command).await.expect("created");
    (Arc::new(store), engine)
}

async fn put(store: &Store, text: String, delay: Duration, time_to_live: Duration) {
    let time_to_live = Some(time_to_live);
    let command = PutMessage { path: jobs(), text, delay, time_to_live };
    store.domain.put_message(command).await.expect("put");
}

async fn get(store: &Store, count: usize) -> Vec<TextMessage> {
    let command = GetMessages { path: jobs(), count, visibility_timeout: MINUTE };
    store.domain.get_messages(command).await.expect("got")
}

async fn delete(store: &Store, message: &TextMessage) {
    let (id, receipt) = (Some(message.state.id), message.state.receipt);
    let command = DeleteMessage { path: jobs(), id, receipt };
    store.domain.delete_message(command).await.expect("deleted");
}

#[tokio::test]
async fn consumers_do_not_take_turns_at_the_head() {
    const CONSUMERS: usize = 64;
    const MESSAGES: usize = 4096;
    let (store, engine) = with_queue(200).await;
    for number in 0..MESSAGES {
        put(&store, number.to_string(), Duration::ZERO, MINUTE).await;
    }
    let before = engine.statistics();
    engine.committing_most.store(0, Ordering::SeqCst);
    let consumers = (0..CONSUMERS).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut texts = Vec::new();
            loop {
                let messages = get(&store, 1).await;
                let Some(message) = messages.first() else { return texts };
                texts.push(message.text.clone());
                delete(&store, message).await;
            }
        })
    });
    let mut texts: Vec<String> = Vec::new();
    for consumer in consumers.collect::<Vec<_>>() {
        let own = consumer.await.expect("no panic");
        assert!(own.len() > MESSAGES / CONSUMERS / 4, "one got only {}", own.len());
        texts.extend(own);
    }
    let mut numbers: Vec<usize> = texts.iter().map(|text| text.parse().expect("ours")).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..MESSAGES), "every message once");
    let after = engine.statistics();
    assert_eq!(after.conflicts, before.conflicts, "nobody lost a commit to another");
    let most = engine.committing_most.load(Ordering::SeqCst);
    assert!(most >= CONSUMERS / 2, "only {most} commits at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_is_never_with_two_consumers_and_never_lost() {
    const PRODUCERS: usize = 8;
    const CONSUMERS: usize = 32;
    const PER_PRODUCER: usize = 300;
    let (store, _) = with_queue(3).await;
    let held: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let (done, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for producer in 0..PRODUCERS {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for number in 0..PER_PRODUCER {
                put(&store, format!("{producer}/{number}"), Duration::ZERO, MINUTE).await;
            }
        }));
    }
    for consumer in 0..CONSUMERS {
        let (store, held) = (Arc::clone(&store), Arc::clone(&held));
        let (done, finished) = (Arc::clone(&done), Arc::clone(&finished));
        tasks.push(tokio::spawn(async move {
            while !finished.load(Ordering::SeqCst) {
                let messages = get(&store, 1 + consumer % 5).await;
                for message in messages {
                    let other = held.lock().insert(message.text.clone(), consumer);
                    assert_eq!(other, None, "{} is with two consumers", message.text);
                    // Some are released first, and then any consumer may get them.
                    if message.state.dequeue_count == 1 && consumer % 3 == 0 {
                        held.lock().remove(&message.text);
                        let command = UpdateMessage {
                            path: jobs(),
                            id: Some(message.state.id),
                            receipt: message.state.receipt,
                            visibility_timeout: Duration::ZERO,
                            text: None,
                        };
                        store.domain.update_message(command).await.expect("updated");
                        continue;
                    }
                    delete(&store, &message).await;
                    if done.fetch_add(1, Ordering::SeqCst) + 1 == PRODUCERS * PER_PRODUCER {
                        finished.store(true, Ordering::SeqCst);
                    }
                }
                tokio::task::yield_now().await;
            }
        }));
    }
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(60), task).await;
        ended.expect("no message is lost").expect("no panic");
    }
    assert_eq!(held.lock().len(), PRODUCERS * PER_PRODUCER);
    let (_, count) = store.domain.get_queue_and_count(&jobs()).await.expect("a queue");
    assert_eq!(count, 0);
    assert!(get(&store, 32).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_puts_a_message_finds_one() {
    const CLIENTS: usize = 8;
    const CYCLES: usize = 3000;
    let (store, _) = with_queue(0).await;
    let clients = (0..CLIENTS).map(|client| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for cycle in 0..CYCLES {
                put(&store, format!("{client}/{cycle}"), Duration::ZERO, MINUTE).await;
                store.clock.0.fetch_add(1, Ordering::SeqCst);
                let got = get(&store, 1).await;
                let message = got.first().unwrap_or_else(|| panic!("none in cycle {cycle}"));
                delete(&store, message).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("there is one for everybody");
    }
}

/// Rows read by getting, peeking and deleting a few messages.
async fn cost(store: &Store, engine: &Counted) -> u64 {
    let before = engine.rows_read.load(Ordering::SeqCst);
    for _ in 0..300 {
        let command = PeekMessages { path: jobs(), count: 1 };
        assert_eq!(store.domain.peek_messages(command).await.expect("peeked").len(), 1);
        let message = get(store, 1).await.remove(0);
        delete(store, &message).await;
        put(store, "more".to_owned(), Duration::ZERO, MINUTE).await;
    }
    engine.rows_read.load(Ordering::SeqCst) - before
}

#[tokio::test]
async fn getting_costs_the_same_whatever_else_is_in_the_queue() {
    let mut costs = Vec::new();
    for (visible, invisible) in [(10, 0), (20_000, 0), (10, 20_000)] {
        let (store, engine) = with_queue(0).await;
        for _ in 0..visible {
            put(&store, "visible".to_owned(), Duration::ZERO, MINUTE).await;
        }
        for _ in 0..invisible {
            put(&store, "invisible".to_owned(), MINUTE / 2, MINUTE).await;
        }
        costs.push(cost(&store, &engine).await);
    }
    let (least, most) = (costs.iter().min().expect("some"), costs.iter().max().expect("some"));
    assert!(*most < least + least / 2, "rows read: {costs:?}");
}

#[tokio::test]
async fn expired_messages_cost_nothing() {
    let (store, engine) = with_queue(0).await;
    for _ in 0..20 {
        put(&store, "visible".to_owned(), Duration::ZERO, MINUTE * 60).await;
    }
    let usual = cost(&store, &engine).await;
    for _ in 0..20_000 {
        put(&store, "short".to_owned(), Duration::ZERO, MINUTE / 2).await;
    }
    // They were got once; they expire at their places.
    assert_eq!(get(&store, 20).await.len(), 20);
    store.clock.pass(MINUTE / 2);
    for _ in 0..20 {
        put(&store, "visible".to_owned(), Duration::ZERO, MINUTE * 60).await;
    }
    while store.domain.tend_queues().await.expect("tended") {}
    let then = cost(&store, &engine).await;
    assert!(then < usual + usual / 2, "rows read: {then}, without expired ones {usual}");
    let snapshot = engine.snapshot().await.expect("memory");
    let rows = snapshot.scan(&KeyRange::all(), Order::Ascending, usize::MAX).await.expect("memory");
    assert!(rows.len() < 200, "their rows are gone");
}
