//! Producers and consumers of one queue, under the schedules of shuttle.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_sync::{explore, future};
use parking_lot::Mutex;

use super::*;
use crate::domain::Domain;
use crate::features::Features;
use crate::metadata::Metadata;
use crate::names::{AccountName, QueueName};
use crate::time::{Clock, Timestamp};

/// Each call returns a later time.
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

#[derive(Clone)]
struct OneQueue(Arc<Domain>);

impl OneQueue {
    async fn new() -> Self {
        let engine = Arc::new(MemoryEngine::default());
        let extents = Arc::new(MemoryExtents::default());
        let clock = Arc::new(Ticking(AtomicU64::new(638_000_000_000_000_000)));
        let domain = Domain::open(engine, extents, clock, Features::default()).await;
        let queue = Self(Arc::new(domain.expect("an empty store")));
        let command = CreateQueue { path: path(), metadata: Metadata::default() };
        queue.0.create_queue(command).await.expect("a new queue");
        queue
    }

    async fn put(&self, text: String) {
        let (delay, time_to_live) = (Duration::ZERO, None);
        let command = PutMessage { path: path(), text, delay, time_to_live };
        self.0.put_message(command).await.expect("put");
    }

    async fn get(&self, count: usize) -> Vec<TextMessage> {
        let visibility_timeout = Duration::from_secs(60);
        let command = GetMessages { path: path(), count, visibility_timeout };
        self.0.get_messages(command).await.expect("got")
    }

    async fn delete(&self, message: &TextMessage) {
        let (id, receipt) = (Some(message.state.id), message.state.receipt);
        let command = DeleteMessage { path: path(), id, receipt };
        self.0.delete_message(command).await.expect("deleted");
    }

    /// Makes it visible to others at once.
    async fn release(&self, message: &TextMessage) {
        let (id, receipt) = (Some(message.state.id), message.state.receipt);
        let visibility_timeout = Duration::ZERO;
        let command = UpdateMessage { path: path(), id, receipt, visibility_timeout, text: None };
        self.0.update_message(command).await.expect("released");
    }

    async fn is_empty(&self) -> bool {
        let (_, count) = self.0.get_queue_and_count(&path()).await.expect("a queue");
        count == 0 && self.get(1).await.is_empty()
    }
}

fn path() -> QueuePath {
    QueuePath {
        account: AccountName::new("account1").expect("a name"),
        queue: QueueName::new("queue1").expect("a name"),
    }
}

#[test]
fn a_queue_is_never_found_empty_while_a_message_is_there() {
    explore(|| {
        future::block_on(async {
            let queue = OneQueue::new().await;
            let clients = [0, 1, 2].map(|client| {
                let queue = queue.clone();
                future::spawn(async move {
                    for cycle in 0..2 {
                        queue.put(format!("{client}/{cycle}")).await;
                        let got = queue.get(1).await;
                        // Each task has put one message before it gets one, so there is always one
                        // left.
                        queue.delete(got.first().expect("a message")).await;
                    }
                })
            });
            for client in clients {
                client.await.expect("done");
            }
            assert!(queue.is_empty().await);
        });
    });
}

/// Which task has which message, and which are deleted.
#[derive(Default)]
struct Seen {
    handed_out: BTreeSet<String>,
    released: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

async fn consume(queue: OneQueue, seen: Arc<Mutex<Seen>>, messages: usize) {
    while seen.lock().deleted.len() < messages {
        for message in queue.get(2).await {
            let text = message.text.clone();
            let is_first_time = {
                let mut seen = seen.lock();
                assert!(seen.handed_out.insert(text.clone()), "{text} is with another");
                seen.released.insert(text.clone())
            };
            if is_first_time {
                seen.lock().handed_out.remove(&text);
                queue.release(&message).await;
            } else {
                queue.delete(&message).await;
                assert!(seen.lock().deleted.insert(text), "deleted twice");
            }
        }
        future::yield_now().await;
    }
}

#[test]
fn no_message_is_lost_or_with_two_consumers() {
    explore(|| {
        future::block_on(async {
            let (queue, seen) = (OneQueue::new().await, Arc::<Mutex<Seen>>::default());
            let producers = [0, 1].map(|producer| {
                let queue = queue.clone();
                future::spawn(async move {
                    queue.put(format!("{producer}/0")).await;
                    queue.put(format!("{producer}/1")).await;
                })
            });
            let consumers =
                [0, 1].map(|_| future::spawn(consume(queue.clone(), Arc::clone(&seen), 4)));
            for task in producers.into_iter().chain(consumers) {
                task.await.expect("done");
            }
            assert!(queue.is_empty().await);
        });
    });
}
