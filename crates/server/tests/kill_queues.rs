//! `kill -9` of the real binary while producers and consumers work on one queue: an acknowledged put is
//! never lost, an acknowledged delete never undone, and nobody gets a message while it is invisible for
//! them, not even across a restart.
//!
//! Every message has a number for its text. Of an operation without an answer it is not known whether
//! it happened; everything else must be exactly as acknowledged.
//!
//! `HOLDFAST_KILL_CYCLES` sets the number of kills, `HOLDFAST_KILL_SEED` repeats the choices of a run
//! (which the scheduler of the machine still interleaves as it likes).

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use support::client::{Answer, Client};
use support::random::Random;
use support::{Server, in_cycles};

const PRODUCERS: u64 = 16;
const CONSUMERS: u64 = 32;
const CYCLES_DEFAULT: u64 = 8;
const MESSAGES: &str = "/kill-queue/messages";
/// Consumers hold a message for one of these times: the first comes back between the kills, both
/// before the end.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(12);

/// What is known of one message.
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
    /// Nobody may get it before this.
    invisible_until: Option<Instant>,
}

#[derive(Default)]
struct Run {
    killed: AtomicBool,
    numbers: AtomicU64,
    known: Mutex<BTreeMap<u64, Known>>,
}

impl Run {
    fn known(&self) -> MutexGuard<'_, BTreeMap<u64, Known>> {
        self.known.lock().expect("no worker panicked")
    }
}

#[test]
fn messages_survive_kill_9() {
    in_cycles(CYCLES_DEFAULT, run);
}

async fn run(cycles: u64, random: &mut Random) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let run = Arc::new(Run::default());
    let mut server = Server::start(&data, &log);
    let created = Client::new(server.queue).send("PUT", "/kill-queue", &[], &[], Vec::new()).await;
    assert_eq!(created.expect("the server answers").status, 201);
    for cycle in 1..=cycles {
        run.killed.store(false, Ordering::SeqCst);
        let producers = (0..PRODUCERS).map(|_| tokio::spawn(produce(run.clone(), server.queue)));
        let mut workers: Vec<_> = producers.collect();
        for _ in 0..CONSUMERS {
            workers.push(tokio::spawn(consume(run.clone(), server.queue, random.next())));
        }
        tokio::time::sleep(Duration::from_millis(150 + random.below(1350))).await;
        run.killed.store(true, Ordering::SeqCst);
        server.kill();
        for worker in workers {
            worker.await.expect("no worker saw anything wrong");
        }
        server = Server::start(&data, &log);
        check_held(&run, server.queue).await;
        check_count(&run, server.queue).await;
        println!("cycle {cycle}: {} messages so far", run.numbers.load(Ordering::SeqCst));
    }
    drain(&run, server.queue).await;
    assert!(run.numbers.load(Ordering::SeqCst) > cycles * PRODUCERS, "there was hardly any load");
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

async fn produce(run: Arc<Run>, address: SocketAddr) {
    let mut client = Client::new(address);
    while !run.killed.load(Ordering::SeqCst) {
        let number = run.numbers.fetch_add(1, Ordering::SeqCst);
        run.known().insert(number, Known::default());
        // Some are so long that they have a row of their own.
        let padding = if number.is_multiple_of(8) { " ".repeat(6000) } else { String::new() };
        let sent = body(&format!("{number}{padding}"));
        let Ok(answer) = client.send("POST", MESSAGES, &[], &[], sent).await else { break };
        check_status(&answer, 201);
        run.known().entry(number).or_default().put = true;
    }
    assert!(run.killed.load(Ordering::SeqCst), "a connection broke while the server ran");
}

struct Got {
    number: u64,
    id: String,
    receipt: String,
}

async fn consume(run: Arc<Run>, address: SocketAddr, seed: u64) {
    let (mut client, mut random) = (Client::new(address), Random::new(seed));
    while !run.killed.load(Ordering::SeqCst) {
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
    assert!(run.killed.load(Ordering::SeqCst), "a connection broke while the server ran");
}

/// Gets some messages and checks that they could be got; none when there was no answer.
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

/// Lets others have the message at once; false when there was no answer.
async fn release(run: &Run, client: &mut Client, message: &Got) -> bool {
    {
        let mut known = run.known();
        let known = known.entry(message.number).or_default();
        (known.current, known.invisible_until) = (None, None);
    }
    let path = format!("{MESSAGES}/{}", message.id);
    let query = [("popreceipt", message.receipt.as_str()), ("visibilitytimeout", "0")];
    let Ok(answer) = client.send("PUT", &path, &query, &[], Vec::new()).await else { return false };
    // Where it was held for a short time somebody else may have it.
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

/// Receipts that were acknowledged are those of messages that are still there.
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
        // Nobody could get it without an answer that is known here, so nobody has.
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

/// Gets whatever is left, and nothing else may be missing.
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
    // What was got without an answer comes back only now.
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
