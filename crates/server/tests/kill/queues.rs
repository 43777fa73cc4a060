//! Producers and consumers on one queue: an acknowledged put is never lost, an acknowledged delete
//! never undone, and no consumer gets a message while it is invisible, not even across a restart.
//!
//! The text of every message is a number.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::{Killed, Workload, joined};
use holdfast_random::Random;
use holdfast_testkit::client::{Answer, Client};

pub const WORKERS: u64 = PRODUCERS + CONSUMERS;
const PRODUCERS: u64 = 4;
const CONSUMERS: u64 = 8;
const MESSAGES: &str = "/kill-queue/messages";
/// Consumers hold a message for one of these times: the first ends between the kills, both end
/// before the end of the test.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(12);

/// The known state of one message.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its put was acknowledged.
    put: bool,
    deleted: bool,
    /// A delete had no answer.
    maybe_deleted: bool,
    /// The last acknowledged receipt, unless an operation after it had no answer.
    current: Option<(String, String)>,
    dequeue_count: u64,
    /// It must not be returned before this.
    invisible_until: Option<Instant>,
}

#[derive(Default)]
struct Run {
    numbers: AtomicU64,
    known: Mutex<BTreeMap<u64, Known>>,
}

impl Run {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Known>> {
        self.known.lock().expect("no worker panicked")
    }
}

#[derive(Default)]
pub struct Queues {
    run: Arc<Run>,
    workers: Vec<JoinHandle<()>>,
}

#[async_trait]
impl Workload for Queues {
    fn name(&self) -> &'static str {
        "messages"
    }

    async fn prepare(&mut self, server: &Server) {
        let mut client = Client::new(server.queue);
        let created = client.send("PUT", "/kill-queue", &[], &[], Vec::new()).await;
        assert_eq!(created.expect("the server answers").status, 201);
    }

    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random) {
        for _ in 0..PRODUCERS {
            let produce = produce(self.run.clone(), killed.clone(), server.queue);
            self.workers.push(tokio::spawn(produce));
        }
        for _ in 0..CONSUMERS {
            let consume = consume(self.run.clone(), killed.clone(), server.queue, random.number());
            self.workers.push(tokio::spawn(consume));
        }
    }

    async fn end(&mut self) {
        joined(&mut self.workers).await;
    }

    async fn check(&mut self, server: &Server) {
        check_held(&self.run, server.queue).await;
        check_count(&self.run, server.queue).await;
    }

    async fn finish(&mut self, server: &Server) {
        drain(&self.run, server.queue).await;
    }

    fn operations(&self) -> u64 {
        self.run.numbers.load(Ordering::SeqCst)
    }
}

fn body(text: &str) -> Vec<u8> {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>").into_bytes()
}

/// The content of the first element of this name; nothing that is sent here is escaped.
fn element<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

fn check_status(answer: &Answer, expected: u16) {
    assert_eq!(answer.status, expected, "{}", String::from_utf8_lossy(&answer.body));
}

async fn produce(run: Arc<Run>, killed: Killed, address: SocketAddr) {
    let mut client = killed.limit(Client::new(address));
    while !killed.is() {
        let number = run.numbers.fetch_add(1, Ordering::SeqCst);
        run.known().insert(number, Known::default());
        // Some are so long that they have a row of their own.
        let padding = if number.is_multiple_of(8) { " ".repeat(6000) } else { String::new() };
        let sent = body(&format!("{number}{padding}"));
        let Ok(answer) = client.send("POST", MESSAGES, &[], &[], sent).await else { break };
        check_status(&answer, 201);
        run.known().entry(number).or_default().put = true;
    }
    killed.expect();
}

struct Got {
    number: u64,
    id: String,
    receipt: String,
}

async fn consume(run: Arc<Run>, killed: Killed, address: SocketAddr, seed: u64) {
    let (mut client, mut random) = (killed.limit(Client::new(address)), Random::new(seed));
    while !killed.is() {
        let hold = if random.below(2) == 0 { SHORT } else { LONG };
        let Some(messages) = get(&run, &mut client, 1 + random.below(4), hold).await else { break };
        for message in messages {
            let answered = match random.below(4) {
                0 => true,
                1 => release(&run, &mut client, &message).await,
                _ => delete(&run, &mut client, &message).await,
            };
            if !answered {
                break;
            }
        }
    }
    killed.expect();
}

/// Gets some messages and checks that they were visible; `None` if there was no answer.
async fn get(run: &Run, client: &mut Client, count: u64, hold: Duration) -> Option<Vec<Got>> {
    let (count, seconds) = (count.to_string(), hold.as_secs().to_string());
    let query = [("numofmessages", count.as_str()), ("visibilitytimeout", seconds.as_str())];
    let asked = Instant::now();
    let answer = client.send("GET", MESSAGES, &query, &[], Vec::new()).await.ok()?;
    let answered = Instant::now();
    check_status(&answer, 200);
    let text = String::from_utf8(answer.body.to_vec()).expect("the answer is text");
    let mut messages = Vec::new();
    let mut known = run.known();
    for part in text.split("<QueueMessage>").skip(1) {
        let field = |name| element(part, name).expect("every field is there").to_owned();
        let number = field("MessageText").trim().parse().expect("a number of ours");
        let dequeue_count: u64 = field("DequeueCount").parse().expect("a number");
        let (id, receipt) = (field("MessageId"), field("PopReceipt"));
        let known = known.get_mut(&number).expect("a message that somebody has put");
        assert!(!known.deleted, "{number} was deleted: {known:?}");
        assert!(dequeue_count > known.dequeue_count, "{number} was got before: {known:?}");
        let free = known.invisible_until.is_none_or(|until| answered >= until);
        assert!(free, "{number} is with another consumer: {known:?}");
        known.dequeue_count = dequeue_count;
        known.invisible_until = Some(asked + hold);
        known.current = Some((id.clone(), receipt.clone()));
        messages.push(Got { number, id, receipt });
    }
    Some(messages)
}

/// Makes the message visible at once; false if there was no answer.
async fn release(run: &Run, client: &mut Client, message: &Got) -> bool {
    {
        let mut known = run.known();
        let known = known.entry(message.number).or_default();
        (known.current, known.invisible_until) = (None, None);
    }
    let path = format!("{MESSAGES}/{}", message.id);
    let query = [("popreceipt", message.receipt.as_str()), ("visibilitytimeout", "0")];
    let Ok(answer) = client.send("PUT", &path, &query, &[], Vec::new()).await else { return false };
    // If it was held for a short time another consumer may have it.
    assert!(answer.status == 204 || answer.status == 404, "{answer:?}");
    true
}

async fn delete(run: &Run, client: &mut Client, message: &Got) -> bool {
    let path = format!("{MESSAGES}/{}", message.id);
    let query = [("popreceipt", message.receipt.as_str())];
    let answer = client.send("DELETE", &path, &query, &[], Vec::new()).await;
    let mut known = run.known();
    let known = known.entry(message.number).or_default();
    match answer {
        Ok(answer) if answer.status == 204 => known.deleted = true,
        Ok(answer) => check_status(&answer, 404),
        Err(_) => {
            (known.maybe_deleted, known.current) = (true, None);
            return false;
        }
    }
    true
}

/// Checks that acknowledged receipts belong to messages that still exist.
async fn check_held(run: &Run, address: SocketAddr) {
    let mut client = Client::new(address);
    let known: Vec<(u64, Known)> =
        run.known().iter().map(|(number, known)| (*number, known.clone())).collect();
    for (number, known) in known {
        let held = known.invisible_until.is_some_and(|until| until > Instant::now() + SHORT);
        let Some((id, receipt)) = known.current.filter(|_| held && !known.deleted) else {
            continue;
        };
        let path = format!("{MESSAGES}/{id}");
        let seconds = LONG.as_secs().to_string();
        let query = [("popreceipt", receipt.as_str()), ("visibilitytimeout", seconds.as_str())];
        let answer = client.send("PUT", &path, &query, &[], Vec::new()).await;
        let answer = answer.expect("the server answers");
        // Every Get that could have returned it was answered, so no other consumer has it.
        check_status(&answer, 204);
        let receipt = answer.header("x-ms-popreceipt").expect("a receipt").to_owned();
        run.known().entry(number).or_default().current = Some((id, receipt));
    }
}

async fn check_count(run: &Run, address: SocketAddr) {
    let query = [("comp", "metadata")];
    let answer = Client::new(address).send("GET", "/kill-queue", &query, &[], Vec::new()).await;
    let answer = answer.expect("the server answers");
    let count = answer.header("x-ms-approximate-messages-count").and_then(|text| text.parse().ok());
    let count: usize = count.expect("a count");
    let known = run.known();
    let certain = |known: &&Known| known.put && !known.deleted && !known.maybe_deleted;
    let least = known.values().filter(certain).count();
    let most = known.values().filter(|known| !known.deleted).count();
    assert!((least..=most).contains(&count), "{count} counted, there are {least} to {most}");
}

/// Gets all remaining messages; none may be missing.
async fn drain(run: &Run, address: SocketAddr) {
    let mut client = Client::new(address);
    let held: Vec<(u64, (String, String))> = run
        .known()
        .iter()
        .filter(|(_, known)| !known.deleted)
        .filter_map(|(number, known)| Some((*number, known.current.clone()?)))
        .collect();
    for (number, (id, receipt)) in held {
        assert!(release(run, &mut client, &Got { number, id, receipt }).await);
    }
    let mut seen = BTreeSet::new();
    // Messages got without an answer become visible only now.
    let end = Instant::now() + LONG + Duration::from_secs(1);
    loop {
        let messages = get(run, &mut client, 32, 10 * LONG).await.expect("the server answers");
        if messages.is_empty() {
            if Instant::now() > end {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for message in messages {
            assert!(seen.insert(message.number), "{} twice", message.number);
        }
    }
    let known = run.known();
    let missing: Vec<u64> = known
        .iter()
        .filter(|(_, known)| known.put && !known.deleted && !known.maybe_deleted)
        .map(|(number, _)| *number)
        .filter(|number| !seen.contains(number))
        .collect();
    println!("{} were left", seen.len());
    assert!(missing.is_empty(), "lost: {missing:?}");
}
