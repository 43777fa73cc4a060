//! Queues and their messages on the memory store, with a clock that the tests move.

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{
    CreateQueue, Created, DeleteMessage, GetMessages, ListQueues, MessageRefusal, MessageState,
    PeekMessages, PopReceipt, PutMessage, QueuePath, QueueRefusal, SetQueueMetadata, TextMessage,
    UpdateMessage,
};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_store::engine::KeyRange;
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{Engine, Order};
use support::Store;

const SECOND: Duration = Duration::from_secs(1);
const HALF_MINUTE: Duration = Duration::from_secs(30);
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

fn path(name: &str) -> QueuePath {
    QueuePath {
        account: AccountName::new("account1").expect("a name"),
        queue: QueueName::new(name).expect("a name"),
    }
}

fn jobs() -> QueuePath {
    path("jobs")
}

fn metadata(value: &str) -> Metadata {
    Metadata::new([("name".to_owned(), value.to_owned())]).expect("valid")
}

fn refusal<T: std::fmt::Debug, R: std::fmt::Debug>(outcome: Result<T, Failure<R>>) -> R {
    match outcome {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn texts(messages: &[TextMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}

async fn with_queue() -> Store {
    let store = Store::new().await;
    create(&store).await;
    store
}

async fn create(store: &Store) {
    let command = CreateQueue { path: jobs(), metadata: Metadata::default() };
    assert_eq!(store.domain.create_queue(command).await.expect("created"), Created::New);
}

async fn put(store: &Store, text: &str) -> MessageState {
    put_with(store, text, Duration::ZERO, Some(WEEK)).await
}

async fn put_with(
    store: &Store,
    text: &str,
    delay: Duration,
    time_to_live: Option<Duration>,
) -> MessageState {
    let command = PutMessage { path: jobs(), text: text.to_owned(), delay, time_to_live };
    store.domain.put_message(command).await.expect("a message is put")
}

async fn get(store: &Store, count: usize) -> Vec<TextMessage> {
    let command = GetMessages { path: jobs(), count, visibility_timeout: HALF_MINUTE };
    store.domain.get_messages(command).await.expect("messages are got")
}

async fn get_one(store: &Store) -> TextMessage {
    let mut messages = get(store, 1).await;
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

async fn peek(store: &Store, count: usize) -> Vec<TextMessage> {
    let command = PeekMessages { path: jobs(), count };
    store.domain.peek_messages(command).await.expect("messages are peeked at")
}

fn update(message: &MessageState, receipt: PopReceipt) -> UpdateMessage {
    UpdateMessage {
        path: jobs(),
        id: Some(message.id),
        receipt,
        visibility_timeout: HALF_MINUTE,
        text: None,
    }
}

async fn delete(
    store: &Store,
    message: &MessageState,
    receipt: PopReceipt,
) -> Result<(), Failure<MessageRefusal>> {
    let command = DeleteMessage { path: jobs(), id: Some(message.id), receipt };
    store.domain.delete_message(command).await
}

async fn count(store: &Store) -> u64 {
    store.domain.get_queue_and_count(&jobs()).await.expect("a queue").1
}

async fn tend(store: &Store) {
    let mut rounds = 0;
    while store.domain.tend_queues().await.expect("tended") {
        rounds += 1;
        assert!(rounds < 1000, "the work ends");
    }
}

async fn rows(engine: &dyn Engine) -> usize {
    let snapshot = engine.snapshot().await.expect("memory");
    snapshot.scan(&KeyRange::all(), Order::Ascending, usize::MAX).await.expect("memory").len()
}

#[tokio::test]
async fn a_message_is_invisible_while_it_is_handled_and_comes_back() {
    let store = with_queue().await;
    let now = store.clock.now();
    let state = put(&store, "a").await;
    assert_eq!((state.inserted, state.expires, state.next_visible), (now, now.plus(WEEK), now));
    let first = get_one(&store).await;
    assert_eq!((first.text.as_str(), first.state.dequeue_count), ("a", 1));
    assert_eq!(first.state.next_visible, now.plus(HALF_MINUTE));
    assert_eq!((first.state.id, first.state.inserted), (state.id, now));
    assert_ne!(first.state.receipt, state.receipt);
    assert!(get(&store, 32).await.is_empty());
    store.clock.pass(HALF_MINUTE - Duration::from_millis(1));
    assert!(get(&store, 32).await.is_empty());
    assert!(peek(&store, 32).await.is_empty());
    store.clock.pass(Duration::from_millis(1));
    assert_eq!(peek(&store, 32).await[0].state.dequeue_count, 1);
    let second = get_one(&store).await;
    assert_eq!((second.state.id, second.state.dequeue_count), (state.id, 2));
}

#[tokio::test]
async fn messages_come_in_the_order_in_which_they_become_visible() {
    let store = with_queue().await;
    put_with(&store, "late", 2 * SECOND, Some(WEEK)).await;
    for text in ["a", "b", "c"] {
        put(&store, text).await;
    }
    assert_eq!(texts(&peek(&store, 32).await), ["a", "b", "c"]);
    assert_eq!(texts(&get(&store, 2).await), ["a", "b"]);
    store.clock.pass(2 * SECOND);
    put(&store, "d").await;
    assert_eq!(texts(&get(&store, 32).await), ["c", "late", "d"]);
    assert!(get(&store, 32).await.is_empty());
}

#[tokio::test]
async fn peeking_changes_nothing() {
    let store = with_queue().await;
    for text in ["a", "b", "c"] {
        put(&store, text).await;
    }
    for _ in 0..2 {
        let peeked = peek(&store, 2).await;
        assert_eq!(texts(&peeked), ["a", "b"]);
        assert_eq!(peeked[0].state.dequeue_count, 0);
    }
    assert_eq!(texts(&get(&store, 32).await), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_receipt_outlives_its_time_but_not_the_next_consumer() {
    let store = with_queue().await;
    put(&store, "a").await;
    let first = get_one(&store).await.state;
    store.clock.pass(2 * HALF_MINUTE);
    let second = get_one(&store).await.state;
    assert_eq!(refusal(delete(&store, &first, first.receipt).await), MessageRefusal::NotFound);
    store.clock.pass(2 * HALF_MINUTE);
    delete(&store, &second, second.receipt).await.expect("nobody else has got it since");
    assert_eq!(refusal(delete(&store, &second, second.receipt).await), MessageRefusal::NotFound);
    assert!(get(&store, 32).await.is_empty());
    assert_eq!(count(&store).await, 0);
}

#[tokio::test]
async fn the_receipt_of_a_put_is_good_until_the_message_is_got() {
    let store = with_queue().await;
    let (a, b) = (put(&store, "a").await, put(&store, "b").await);
    delete(&store, &a, a.receipt).await.expect("nobody has got it");
    assert_eq!(texts(&get(&store, 32).await), ["b"]);
    assert_eq!(refusal(delete(&store, &b, b.receipt).await), MessageRefusal::NotFound);
}

#[tokio::test]
async fn an_update_gives_a_new_receipt_and_ends_the_old_one() {
    let store = with_queue().await;
    put(&store, "a").await;
    let got = get_one(&store).await.state;
    let later = UpdateMessage { text: Some("b".to_owned()), ..update(&got, got.receipt) };
    // At the same tick and to the same time as before.
    let updated = store.domain.update_message(later).await.expect("updated");
    assert_eq!(updated.next_visible, got.next_visible);
    assert_eq!(updated.dequeue_count, 1);
    let stale = store.domain.update_message(update(&got, got.receipt)).await;
    assert_eq!(refusal(stale), MessageRefusal::NotFound);
    assert_eq!(refusal(delete(&store, &got, got.receipt).await), MessageRefusal::NotFound);
    let at_once =
        UpdateMessage { visibility_timeout: Duration::ZERO, ..update(&got, updated.receipt) };
    let visible = store.domain.update_message(at_once).await.expect("updated");
    assert_eq!(visible.next_visible, store.clock.now());
    let again = get_one(&store).await;
    assert_eq!((again.text.as_str(), again.state.dequeue_count), ("b", 2));
    assert_eq!(refusal(delete(&store, &got, visible.receipt).await), MessageRefusal::NotFound);
    delete(&store, &got, again.state.receipt).await.expect("the current one");
}

#[tokio::test]
async fn the_receipt_of_another_message_is_none_of_this() {
    let store = with_queue().await;
    let (a, b) = (put(&store, "a").await, put(&store, "b").await);
    let refused = refusal(delete(&store, &a, b.receipt).await);
    assert_eq!(refused, MessageRefusal::ReceiptOfOther);
    let nobody = DeleteMessage { path: jobs(), id: None, receipt: a.receipt };
    let refused = refusal(store.domain.delete_message(nobody).await);
    assert_eq!(refused, MessageRefusal::NotFound);
}

#[tokio::test]
async fn an_update_cannot_hide_a_message_beyond_its_expiry_but_getting_it_can() {
    let store = with_queue().await;
    put_with(&store, "a", Duration::ZERO, Some(10 * SECOND)).await;
    let got = get_one(&store).await.state;
    assert!(got.next_visible > got.expires);
    let refused = store.domain.update_message(update(&got, got.receipt)).await;
    assert_eq!(refusal(refused), MessageRefusal::InvisiblePastExpiry { seconds_max: 10 });
    let shorter = UpdateMessage { visibility_timeout: 10 * SECOND, ..update(&got, got.receipt) };
    store.domain.update_message(shorter).await.expect("up to its expiry");
}

#[tokio::test]
async fn expired_messages_are_gone_at_once_and_their_rows_soon() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store).await;
    let empty = rows(&*engine).await;
    let long = "x".repeat(60_000);
    for text in ["a", "b", &long] {
        put_with(&store, text, Duration::ZERO, Some(10 * SECOND)).await;
    }
    put_with(&store, "for ever", Duration::ZERO, None).await;
    let got = get_one(&store).await.state;
    assert_eq!(texts(&peek(&store, 32).await), ["b", &long, "for ever"]);
    store.clock.pass(10 * SECOND);
    assert_eq!(refusal(delete(&store, &got, got.receipt).await), MessageRefusal::NotFound);
    assert_eq!(texts(&peek(&store, 32).await), ["for ever"]);
    assert_eq!(count(&store).await, 4, "their rows are there");
    tend(&store).await;
    assert_eq!(count(&store).await, 1);
    let last = get_one(&store).await;
    assert_eq!((last.text.as_str(), last.state.expires), ("for ever", Timestamp::MAX));
    store.clock.pass(1000 * WEEK);
    tend(&store).await;
    let last = get_one(&store).await.state;
    delete(&store, &last, last.receipt).await.expect("deleted");
    assert_eq!(rows(&*engine).await, empty);
}

#[tokio::test]
async fn long_texts_are_kept_apart_and_come_back_whole() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store).await;
    let empty = rows(&*engine).await;
    let (long, longer) = ("ä".repeat(4096), "b".repeat(65_536));
    put(&store, &long).await;
    assert_eq!(texts(&peek(&store, 1).await), [&long]);
    let mut got = get_one(&store).await;
    assert_eq!(got.text, long);
    for text in [&longer, "short", &long] {
        let command = UpdateMessage {
            text: Some(text.to_owned()),
            visibility_timeout: Duration::ZERO,
            ..update(&got.state, got.state.receipt)
        };
        store.domain.update_message(command).await.expect("updated");
        got = get_one(&store).await;
        assert_eq!(got.text, *text);
    }
    delete(&store, &got.state, got.state.receipt).await.expect("deleted");
    assert_eq!(rows(&*engine).await, empty);
}

#[tokio::test]
async fn a_cleared_queue_is_empty_at_once_and_takes_messages() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store).await;
    let empty = rows(&*engine).await;
    let state = put(&store, "a").await;
    for _ in 0..600 {
        put_with(&store, "b", SECOND, None).await;
    }
    let got = get_one(&store).await.state;
    store.domain.clear_messages(&jobs()).await.expect("cleared");
    assert_eq!(count(&store).await, 0);
    store.clock.pass(WEEK / 2);
    assert!(get(&store, 32).await.is_empty());
    for receipt in [state.receipt, got.receipt] {
        assert_eq!(refusal(delete(&store, &got, receipt).await), MessageRefusal::NotFound);
    }
    let new = put(&store, "new").await;
    tend(&store).await;
    assert_eq!(texts(&peek(&store, 32).await), ["new"]);
    delete(&store, &new, new.receipt).await.expect("deleted");
    assert_eq!(rows(&*engine).await, empty, "nothing is left of the others");
}

#[tokio::test]
async fn a_deleted_queue_is_gone_with_its_messages() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store).await;
    for _ in 0..600 {
        put(&store, "a").await;
    }
    store.domain.delete_queue(&jobs()).await.expect("deleted");
    let again = store.domain.delete_queue(&jobs()).await;
    assert_eq!(refusal(again), QueueRefusal::NotFound);
    let command = PeekMessages { path: jobs(), count: 1 };
    let refused = refusal(store.domain.peek_messages(command).await);
    assert_eq!(refused, MessageRefusal::QueueNotFound);
    let command = GetMessages { path: jobs(), count: 1, visibility_timeout: SECOND };
    let refused = refusal(store.domain.get_messages(command).await);
    assert_eq!(refused, MessageRefusal::QueueNotFound);
    // The name is free at once, and the old messages are not seen again.
    create(&store).await;
    assert!(peek(&store, 32).await.is_empty());
    tend(&store).await;
    assert_eq!(rows(&*engine).await, 1, "only the new queue");
}

#[tokio::test]
async fn the_name_of_a_deleted_queue_is_held_where_the_operator_wants_it() {
    let features = Features { queue_name_hold: HALF_MINUTE, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    create(&store).await;
    store.domain.delete_queue(&jobs()).await.expect("deleted");
    let again = || CreateQueue { path: jobs(), metadata: Metadata::default() };
    let refused = refusal(store.domain.create_queue(again()).await);
    assert_eq!(refused, QueueRefusal::BeingDeleted);
    store.clock.pass(HALF_MINUTE);
    while store.domain.do_what_is_due().await.expect("done") {}
    create(&store).await;
}

#[tokio::test]
async fn metadata_are_replaced_whole_and_decide_whether_a_queue_is_the_same() {
    let store = Store::new().await;
    let command = |value| CreateQueue { path: jobs(), metadata: metadata(value) };
    let created = store.domain.create_queue(command("1")).await;
    assert_eq!(created.expect("created"), Created::New);
    put(&store, "a").await;
    let created = store.domain.create_queue(command("1")).await;
    assert_eq!(created.expect("there"), Created::AlreadyThere);
    let refused = refusal(store.domain.create_queue(command("2")).await);
    assert_eq!(refused, QueueRefusal::AlreadyExists);
    let set = SetQueueMetadata { path: jobs(), metadata: metadata("2") };
    store.domain.set_queue_metadata(set).await.expect("set");
    let (queue, count) = store.domain.get_queue_and_count(&jobs()).await.expect("a queue");
    assert_eq!((queue.metadata, count), (metadata("2"), 1));
    let other = SetQueueMetadata { path: path("other"), metadata: metadata("2") };
    let refused = refusal(store.domain.set_queue_metadata(other).await);
    assert_eq!(refused, QueueRefusal::NotFound);
}

#[tokio::test]
async fn queues_are_listed_by_name_in_pages() {
    let store = Store::new().await;
    for name in ["b-1", "a-1", "b-3", "b-2", "c-1"] {
        let command = CreateQueue { path: path(name), metadata: metadata(name) };
        store.domain.create_queue(command).await.expect("created");
    }
    let (mut names, mut pages, mut marker) = (Vec::new(), 0, None);
    loop {
        let account = AccountName::new("account1").expect("a name");
        let command = ListQueues { account, prefix: "b".to_owned(), marker, limit: 2 };
        let mut page = store.domain.list_queues(command).await.expect("a page");
        loop {
            let queues = page.next().await.expect("memory");
            if queues.is_empty() {
                break;
            }
            names.extend(queues.into_iter().map(|listed| listed.name));
        }
        pages += 1;
        marker = page.next_marker().map(str::to_owned);
        if marker.is_none() {
            break;
        }
    }
    assert_eq!((names, pages), (["b-1", "b-2", "b-3"].map(str::to_owned).to_vec(), 2));
}

#[tokio::test]
async fn messages_and_receipts_outlive_a_restart() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine), Features::default()).await;
    create(&store).await;
    for text in ["a", "b", "c"] {
        put(&store, text).await;
    }
    let got = get_one(&store).await.state;
    let now = store.clock.now();
    drop(store);

    let store = Store::on(engine, Features::default()).await;
    store.clock.pass(now.since(store.clock.now()));
    assert_eq!(count(&store).await, 3);
    assert_eq!(texts(&peek(&store, 32).await), ["b", "c"]);
    delete(&store, &got, got.receipt).await.expect("it is still the current one");
    assert_eq!(texts(&get(&store, 32).await), ["b", "c"]);
    store.clock.pass(HALF_MINUTE);
    let again = get(&store, 32).await;
    assert_eq!(texts(&again), ["b", "c"]);
    assert_eq!(again[0].state.dequeue_count, 2);
    assert_eq!(count(&store).await, 2);
}
