//! Entities and batches in one table: a batch is there completely or not at all, and no ETag is
//! used twice.
//!
//! Every writer has its own partition, whose rows it writes together, in batches with one number;
//! and a counter that it changes under the ETag of its last state. All writers overwrite one entity,
//! whose ETags give the order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdfast_domain::etag::EntityETag;
use hyper::StatusCode;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::{Killed, Workload, joined};
use holdfast_random::Random;
use holdfast_testkit::client::{ACCOUNT, Answer, Client};

pub const WRITERS: u64 = 12;
const ROWS_PER_BATCH: u64 = 5;
const TABLE: &str = "KillTable";
const JSON: &[(&str, &str)] =
    &[("accept", "application/json;odata=nometadata"), ("content-type", "application/json")];
const BATCH: &[(&str, &str)] = &[("content-type", "multipart/mixed; boundary=batch_1")];

/// The number stored in an entity; `None` if it is absent.
type State = Option<u64>;

/// The state of what one writer writes alone.
#[derive(Clone, Debug, Default)]
struct Owned {
    rows: Known,
    counter: Known,
    /// The ETag of the counter, unless the answer with it was lost.
    etag: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: State,
    /// The state if the operation without an answer has happened.
    maybe: Option<State>,
}

impl Known {
    fn settle(&mut self, found: State, what: &str) {
        let expected = found == self.acknowledged || Some(found) == self.maybe;
        assert!(expected, "{what} is {found:?}, but {self:?}");
        *self = Self { acknowledged: found, maybe: None };
    }
}

struct Run {
    address: SocketAddr,
    killed: Killed,
    numbers: Arc<AtomicU64>,
    /// The number for each acknowledged ETag of the shared entity, over all cycles.
    shared: Arc<Mutex<BTreeMap<EntityETag, u64>>>,
}

pub struct Tables {
    numbers: Arc<AtomicU64>,
    shared: Arc<Mutex<BTreeMap<EntityETag, u64>>>,
    owned: Vec<Owned>,
    writers: Vec<JoinHandle<Owned>>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            numbers: Arc::new(AtomicU64::new(1)),
            shared: Arc::default(),
            owned: vec![Owned::default(); WRITERS as usize],
            writers: Vec::new(),
        }
    }
}

#[async_trait]
impl Workload for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    async fn prepare(&mut self, server: &Server) {
        let body = format!(r#"{{"TableName":"{TABLE}"}}"#).into_bytes();
        let mut client = Client::of_tables(server.table);
        let created = client.send("POST", "/Tables", &[], JSON, body).await;
        assert_eq!(created.expect("the server answers").status, StatusCode::CREATED);
    }

    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random) {
        let run = Arc::new(Run {
            address: server.table,
            killed: killed.clone(),
            numbers: self.numbers.clone(),
            shared: self.shared.clone(),
        });
        for (writer, owned) in self.owned.drain(..).enumerate() {
            let write = write_until_killed(run.clone(), writer as u64, owned, random.number());
            self.writers.push(tokio::spawn(write));
        }
    }

    async fn end(&mut self) {
        self.owned = joined(&mut self.writers).await;
    }

    async fn check(&mut self, server: &Server) {
        check_owned(server.table, &mut self.owned).await;
        check_shared(server.table, &self.shared).await;
    }

    fn operations(&self) -> u64 {
        self.numbers.load(Ordering::SeqCst)
    }
}

fn entity_path(partition: &str, row: &str) -> String {
    format!("/{TABLE}(PartitionKey='{partition}',RowKey='{row}')")
}

async fn write_until_killed(run: Arc<Run>, writer: u64, mut owned: Owned, seed: u64) -> Owned {
    let mut random = Random::new(seed);
    let mut client = run.killed.limit(Client::of_tables(run.address));
    while !run.killed.is() {
        let number = run.numbers.fetch_add(1, Ordering::SeqCst);
        let answered = match random.below(4) {
            0 => overwrite_shared(&run, &mut client, number).await,
            1 => count(&mut client, writer, number, &mut owned).await,
            _ => write_batch(&mut client, writer, number, &mut owned, random.below(5) == 0).await,
        };
        if !answered {
            run.killed.expect();
            break;
        }
    }
    owned
}

/// Writes all rows of the partition with one number, or deletes them all.
async fn write_batch(
    client: &mut Client,
    writer: u64,
    number: u64,
    owned: &mut Owned,
    delete: bool,
) -> bool {
    let delete = delete && owned.rows.acknowledged.is_some();
    let after = (!delete).then_some(number);
    let mut body =
        String::from("--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n");
    for row in 0..ROWS_PER_BATCH {
        let path = entity_path(&format!("rows-{writer}"), &row.to_string());
        body += "--changeset_1\r\nContent-Type: application/http\r\n\r\n";
        body += &match delete {
            true => format!("DELETE /{ACCOUNT}{path} HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n"),
            false => format!(
                "PUT /{ACCOUNT}{path} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n\
                 {{\"n\":{number}}}\r\n"
            ),
        };
    }
    body += "--changeset_1--\r\n--batch_1--\r\n";
    owned.rows.maybe = Some(after);
    let Ok(answer) = client.send("POST", "/$batch", &[], BATCH, body.into_bytes()).await else {
        return false;
    };
    let text = String::from_utf8_lossy(&answer.body);
    let done = text.matches("HTTP/1.1 204 ").count() as u64;
    assert_eq!((answer.status, done), (StatusCode::ACCEPTED, ROWS_PER_BATCH), "{text}");
    owned.rows = Known { acknowledged: after, maybe: None };
    true
}

/// Changes the counter under the ETag of its last state, as long as that is known.
async fn count(client: &mut Client, writer: u64, number: u64, owned: &mut Owned) -> bool {
    let path = entity_path("counters", &writer.to_string());
    let mut headers = JSON.to_vec();
    if let Some(etag) = &owned.etag {
        headers.push(("if-match", etag));
    }
    let body = format!(r#"{{"n":{number}}}"#).into_bytes();
    let sent = client.send("PUT", &path, &[], &headers, body).await;
    owned.counter.maybe = Some(Some(number));
    let Ok(answer) = sent else {
        owned.etag = None;
        return false;
    };
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}");
    owned.counter = Known { acknowledged: Some(number), maybe: None };
    owned.etag = answer.header("etag").map(str::to_owned);
    true
}

async fn overwrite_shared(run: &Run, client: &mut Client, number: u64) -> bool {
    let body = format!(r#"{{"n":{number}}}"#).into_bytes();
    let path = entity_path("shared", "one");
    let Ok(answer) = client.send("PUT", &path, &[], JSON, body).await else { return false };
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let mut shared = run.shared.lock().expect("no writer panicked");
    let before = shared.insert(etag_of(&answer), number);
    assert_eq!(before, None, "an ETag came twice");
    true
}

fn etag_of(answer: &Answer) -> EntityETag {
    answer.header("etag").and_then(EntityETag::parse).expect("the answer has an ETag")
}

async fn get(client: &mut Client, path: &str) -> Answer {
    client.send("GET", path, &[], JSON, Vec::new()).await.expect("the server answers")
}

fn number(entity: &Value) -> u64 {
    entity["n"].as_u64().expect("it has its number")
}

fn state(answer: &Answer) -> State {
    match answer.status {
        StatusCode::NOT_FOUND => None,
        StatusCode::OK => {
            Some(number(&serde_json::from_slice(&answer.body).expect("the body is JSON")))
        }
        status => panic!("{status}"),
    }
}

async fn check_owned(address: SocketAddr, owned: &mut [Owned]) {
    let mut client = Client::of_tables(address);
    for (writer, owned) in owned.iter_mut().enumerate() {
        let mut found = Vec::new();
        for row in 0..ROWS_PER_BATCH {
            let path = entity_path(&format!("rows-{writer}"), &row.to_string());
            found.push(state(&get(&mut client, &path).await));
        }
        assert!(found.windows(2).all(|two| two[0] == two[1]), "half of a batch: {found:?}");
        owned.rows.settle(found[0], "a batch");
        let answer = get(&mut client, &entity_path("counters", &writer.to_string())).await;
        owned.counter.settle(state(&answer), "a counter");
        owned.etag = answer.header("etag").map(str::to_owned);
    }
}

async fn check_shared(address: SocketAddr, shared: &Mutex<BTreeMap<EntityETag, u64>>) {
    let mut client = Client::of_tables(address);
    let answer = get(&mut client, &entity_path("shared", "one")).await;
    let shared = shared.lock().expect("no writer panicked");
    let Some((last, _)) = shared.last_key_value() else { return };
    let found = etag_of(&answer);
    assert!(found >= *last, "an acknowledged write is gone");
    // One newer than all acknowledged ones belongs to a write without an answer.
    if let Some(expected) = shared.get(&found) {
        assert_eq!(state(&answer), Some(*expected));
    }
}
