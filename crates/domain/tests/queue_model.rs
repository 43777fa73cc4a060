//! Random operations on one queue, compared with the simplest model that can be right. The seed is
//! printed, and `HOLDFAST_QUEUE_SEED` repeats a run.

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, QueueName};
use holdfast_domain::queue::{
    CreateQueue, DeleteMessage, GetMessages, MessageRefusal, MessageState, PeekMessages,
    PutMessage, QueuePath, TextMessage, UpdateMessage,
};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_random::Random;
use holdfast_store::Engine;
use holdfast_store::memory::MemoryEngine;
use support::Store;

const OPERATIONS: usize = 4000;
const RUNS: u64 = 8;

fn random_seconds(bound: u64, random: &mut Random) -> Duration {
    Duration::from_secs(random.below(bound))
}

/// The expected state of a message; `state` is what was last returned for it.
#[derive(Clone, Debug)]
struct Expected {
    number: u64,
    text: String,
    state: MessageState,
}

#[derive(Default)]
struct Model {
    messages: Vec<Expected>,
    /// All states ever returned; their receipts may be current or not.
    told: Vec<MessageState>,
    put: u64,
}

impl Model {
    fn visible(&self, now: Timestamp, count: usize) -> Vec<Expected> {
        let mut visible: Vec<Expected> = self.live(now).cloned().collect();
        visible.retain(|message| message.state.next_visible <= now);
        visible.sort_by_key(|message| (message.state.next_visible, message.number));
        visible.truncate(count);
        visible
    }

    fn live(&self, now: Timestamp) -> impl Iterator<Item = &Expected> {
        self.messages.iter().filter(move |message| message.state.expires > now)
    }

    /// The message whose current receipt this is.
    fn current(&mut self, told: &MessageState, now: Timestamp) -> Option<&mut Expected> {
        let current = |message: &&mut Expected| {
            message.state.receipt == told.receipt && message.state.expires > now
        };
        self.messages.iter_mut().find(current)
    }
}

fn jobs() -> QueuePath {
    QueuePath {
        account: AccountName::new("account1").expect("a name"),
        queue: QueueName::new("jobs").expect("a name"),
    }
}

async fn put(store: &Store, model: &mut Model, random: &mut Random) {
    let time_to_live = match random.below(4) {
        0 => None,
        _ => Some(Duration::from_secs(1 + random.below(200))),
    };
    let length = if random.below(8) == 0 { 6000 } else { 10 };
    let (text, delay) = (format!("{:0length$}", model.put), random_seconds(20, random));
    let command = PutMessage { path: jobs(), text: text.clone(), delay, time_to_live };
    let state = store.domain.put_message(command).await.expect("put");
    let now = store.clock.now();
    assert_eq!(state.next_visible, now.plus(delay));
    assert_eq!(state.expires, time_to_live.map_or(Timestamp::MAX, |time| now.plus(time)));
    model.messages.push(Expected { number: model.put, text, state });
    model.told.push(state);
    model.put += 1;
}

async fn get(store: &Store, model: &mut Model, random: &mut Random) {
    let (count, now) = (1 + random.below(32) as usize, store.clock.now());
    let visibility_timeout = Duration::from_secs(1 + random.below(60));
    let command = GetMessages { path: jobs(), count, visibility_timeout };
    let got = store.domain.get_messages(command).await.expect("got");
    let expected = model.visible(now, count);
    assert_eq!(got.len(), expected.len());
    for (got, mut expected) in got.into_iter().zip(expected) {
        assert_eq!(got.state.id, expected.state.id);
        assert!(got.text == expected.text, "another text");
        assert_eq!(got.state.dequeue_count, expected.state.dequeue_count + 1);
        assert_eq!(got.state.next_visible, now.plus(visibility_timeout));
        assert_eq!(got.state.expires, expected.state.expires);
        assert!(model.told.iter().all(|told| told.receipt != got.state.receipt));
        expected.state = got.state;
        model.told.push(got.state);
        let number = expected.number;
        let place = model.messages.iter_mut().find(|message| message.number == number);
        *place.expect("it is expected") = expected;
    }
}

async fn peek(store: &Store, model: &Model, random: &mut Random) {
    let count = 1 + random.below(32) as usize;
    let command = PeekMessages { path: jobs(), count };
    let peeked = store.domain.peek_messages(command).await.expect("peeked");
    let expected = model.visible(store.clock.now(), count);
    let states: Vec<_> = peeked.iter().map(|message| message.state).collect();
    let expected_states: Vec<_> = expected.iter().map(|message| message.state).collect();
    assert_eq!(states, expected_states);
    let same = |(peeked, expected): (&TextMessage, &Expected)| peeked.text == expected.text;
    assert!(peeked.iter().zip(&expected).all(same));
}

async fn update(store: &Store, model: &mut Model, random: &mut Random) {
    let Some(told) = chosen(model, random) else { return };
    let now = store.clock.now();
    let visibility_timeout = random_seconds(100, random);
    let text = (random.below(2) == 0)
        .then(|| random.number().to_string().repeat(1 + model.put as usize % 400));
    let command = UpdateMessage {
        path: jobs(),
        id: Some(told.id),
        receipt: told.receipt,
        visibility_timeout,
        text: text.clone(),
    };
    let outcome = store.domain.update_message(command).await;
    let visible = now.plus(visibility_timeout);
    match (outcome, model.current(&told, now)) {
        (Ok(state), Some(message)) => {
            assert!(visible <= message.state.expires);
            let previous = message.state;
            assert_ne!(state.receipt, previous.receipt);
            assert_eq!(state.next_visible, visible);
            assert_eq!(state.dequeue_count, previous.dequeue_count);
            message.state = state;
            message.text = text.unwrap_or_else(|| message.text.clone());
            model.told.push(state);
        }
        (Err(Failure::Refused(MessageRefusal::NotFound)), None) => {}
        (Err(Failure::Refused(MessageRefusal::InvisiblePastExpiry { .. })), Some(message)) => {
            assert!(visible > message.state.expires);
        }
        (outcome, message) => panic!("{outcome:?} for {message:?}"),
    }
}

async fn delete(store: &Store, model: &mut Model, random: &mut Random) {
    let Some(told) = chosen(model, random) else { return };
    let command = DeleteMessage { path: jobs(), id: Some(told.id), receipt: told.receipt };
    let outcome = store.domain.delete_message(command).await;
    match (outcome, model.current(&told, store.clock.now()).map(|message| message.number)) {
        (Ok(()), Some(number)) => model.messages.retain(|message| message.number != number),
        (Err(Failure::Refused(MessageRefusal::NotFound)), None) => {}
        (outcome, message) => panic!("{outcome:?} for {message:?}"),
    }
}

/// Mostly one returned recently.
fn chosen(model: &Model, random: &mut Random) -> Option<MessageState> {
    let recent = model.told.len().min(1 + random.below(60) as usize);
    let from = &model.told[model.told.len() - recent..];
    (!from.is_empty()).then(|| from[random.below(from.len() as u64) as usize])
}

async fn check_count(store: &Store, model: &Model) {
    let (_, count) = store.domain.get_queue_and_count(&jobs()).await.expect("a queue");
    let live = model.live(store.clock.now()).count() as u64;
    assert!(count >= live, "{count} counted, {live} there");
    assert!(count <= model.messages.len() as u64, "{count} counted, some of them twice");
}

async fn run(seed: u64) {
    println!("HOLDFAST_QUEUE_SEED={seed}");
    let mut random = Random::new(seed);
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    let mut store = Store::on(Arc::clone(&engine), Features::default()).await;
    let mut model = Model::default();
    let command = CreateQueue { path: jobs(), metadata: Metadata::default() };
    store.domain.create_queue(command).await.expect("created");
    for _ in 0..OPERATIONS {
        match random.below(100) {
            0..=29 => put(&store, &mut model, &mut random).await,
            30..=49 => get(&store, &mut model, &mut random).await,
            50..=59 => peek(&store, &model, &mut random).await,
            60..=69 => update(&store, &mut model, &mut random).await,
            70..=84 => delete(&store, &mut model, &mut random).await,
            85..=92 => store.clock.pass(random_seconds(15, &mut random)),
            93..=94 => check_count(&store, &model).await,
            95..=97 => {
                while store.domain.tend_queues().await.expect("tended") {}
                let now = store.clock.now();
                model.messages.retain(|message| message.state.expires > now);
                check_count(&store, &model).await;
            }
            98 if random.below(4) == 0 => {
                store.domain.clear_messages(&jobs()).await.expect("cleared");
                model.messages.clear();
            }
            98 => {}
            _ => {
                store.clock.pass(Duration::from_secs(1));
                let now = store.clock.now();
                store.domain.keep_time().await.expect("recorded");
                drop(store);
                store = Store::on(Arc::clone(&engine), Features::default()).await;
                store.clock.pass(now.since(store.clock.now()));
            }
        }
    }
}

#[tokio::test]
async fn a_queue_does_what_the_model_does() {
    if let Ok(seed) = std::env::var("HOLDFAST_QUEUE_SEED") {
        return run(seed.parse().expect("a number")).await;
    }
    for seed in 1..=RUNS {
        run(seed).await;
    }
}
