//! Whole blobs: put, put as blocks, metadata, deletes, and logs that all append to.
//!
//! Every write carries an operation number: the content is a function of the number of the Put Blob,
//! and the metadata holds the number of the last write. So after a restart it is known which write the
//! content and the metadata of each blob come from. A log that all append to must have every
//! acknowledged record at its acknowledged offset.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::{Killed, Workload, joined};
use holdfast_random::Random;
use holdfast_testkit::client::{Answer, Client};

pub const WRITERS: u64 = 16;
const BLOBS_PER_WRITER: u64 = 6;
const SHARED_BLOBS: u64 = 8;
const CONTAINER: &str = "kill";
const RECORD_BYTES_MIN: usize = 17;
const CONTENT_BYTES_MIN: u64 = 100;
const CONTENT_BYTES_MAX: u64 = 300 * 1024;

/// What one blob holds, by operation numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// The ETag is not known when the answer that carried it was lost.
    Present {
        content: u64,
        metadata: u64,
        etag: Option<String>,
    },
}

/// A blob with one writer, so that the order of its writes is known.
#[derive(Clone, Debug)]
struct Owned {
    acknowledged: State,
    /// The state if the operation without an answer has happened.
    maybe: Option<State>,
}

/// A blob that all writers overwrite: ETags, which only increase, give the order.
#[derive(Clone, Debug, Default)]
struct Shared {
    acknowledged: BTreeMap<u64, u64>,
}

struct Run {
    address: SocketAddr,
    killed: Killed,
    operations: Arc<AtomicU64>,
    shared: Arc<Mutex<Vec<Shared>>>,
    log: String,
    /// The operation of each record in the log, by offset.
    appended: Mutex<BTreeMap<u64, u64>>,
}

pub struct Blobs {
    operations: Arc<AtomicU64>,
    shared: Arc<Mutex<Vec<Shared>>>,
    owned: Vec<Vec<Owned>>,
    logs: u64,
    run: Option<Arc<Run>>,
    writers: Vec<JoinHandle<Vec<Owned>>>,
}

impl Default for Blobs {
    fn default() -> Self {
        let untouched = Owned { acknowledged: State::Absent, maybe: None };
        Self {
            operations: Arc::new(AtomicU64::new(1)),
            shared: Arc::new(Mutex::new(vec![Shared::default(); SHARED_BLOBS as usize])),
            owned: vec![vec![untouched; BLOBS_PER_WRITER as usize]; WRITERS as usize],
            logs: 0,
            run: None,
            writers: Vec::new(),
        }
    }
}

#[async_trait]
impl Workload for Blobs {
    fn name(&self) -> &'static str {
        "blobs"
    }

    async fn prepare(&mut self, server: &Server) {
        let path = format!("/{CONTAINER}");
        let query = [("restype", "container")];
        let created = Client::new(server.blob).send("PUT", &path, &query, &[], Vec::new()).await;
        assert_eq!(created.expect("the server answers").status, 201);
    }

    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random) {
        self.logs += 1;
        let log = format!("/{CONTAINER}/log-{}", self.logs);
        let kind = [("x-ms-blob-type", "AppendBlob")];
        let created = Client::new(server.blob).send("PUT", &log, &[], &kind, Vec::new()).await;
        assert_eq!(created.expect("the server answers").status, 201);
        let run = Arc::new(Run {
            address: server.blob,
            killed: killed.clone(),
            operations: self.operations.clone(),
            shared: self.shared.clone(),
            log,
            appended: Mutex::default(),
        });
        for (writer, blobs) in self.owned.drain(..).enumerate() {
            let write = write_until_killed(run.clone(), writer as u64, blobs, random.number());
            self.writers.push(tokio::spawn(write));
        }
        self.run = Some(run);
    }

    async fn end(&mut self) {
        self.owned = joined(&mut self.writers).await;
    }

    async fn check(&mut self, server: &Server) {
        let run = self.run.take().expect("a cycle was begun");
        check_owned(server.blob, &mut self.owned).await;
        check_shared(server.blob, &self.shared).await;
        check_log(server.blob, &run).await;
        check_listing(server.blob, &self.owned, &self.shared).await;
    }

    fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }
}

fn owned_path(writer: u64, blob: u64) -> String {
    format!("/{CONTAINER}/owned-{writer:02}-{blob}")
}

fn shared_path(blob: u64) -> String {
    format!("/{CONTAINER}/shared-{blob}")
}

/// The content that operation `number` puts. Sizes are distributed logarithmically, so that small
/// contents (in rows) and large ones (in extents) both occur often.
fn content(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let doublings = (CONTENT_BYTES_MAX / CONTENT_BYTES_MIN).ilog2() + 1;
    let magnitude = CONTENT_BYTES_MIN << random.below(u64::from(doublings));
    let length = (magnitude + random.below(magnitude)).min(CONTENT_BYTES_MAX);
    random.bytes(length as usize)
}

async fn write_until_killed(
    run: Arc<Run>,
    writer: u64,
    mut blobs: Vec<Owned>,
    seed: u64,
) -> Vec<Owned> {
    let mut random = Random::new(seed);
    let mut client = run.killed.limit(Client::new(run.address));
    while !run.killed.is() {
        let answered = match random.below(8) {
            0 | 1 => overwrite_shared(&run, &mut client, random.below(SHARED_BLOBS)).await,
            2 => append_to_log(&run, &mut client).await,
            _ => {
                let blob = random.below(BLOBS_PER_WRITER);
                let owned = &mut blobs[blob as usize];
                write_owned(&run, &mut client, &owned_path(writer, blob), owned, &mut random).await
            }
        };
        if !answered {
            run.killed.expect();
            break;
        }
    }
    blobs
}

/// One operation on a blob of this writer; false when there was no answer.
async fn write_owned(
    run: &Run,
    client: &mut Client,
    path: &str,
    owned: &mut Owned,
    random: &mut Random,
) -> bool {
    let number = run.operations.fetch_add(1, Ordering::SeqCst);
    let text = number.to_string();
    let mark = [("x-ms-meta-operation", text.as_str())];
    let (answer, next, expected) = match (&owned.acknowledged, random.below(10)) {
        (State::Present { .. }, 0) => {
            (client.send("DELETE", path, &[], &[], Vec::new()).await, State::Absent, 202)
        }
        (State::Present { content, .. }, 1 | 2) => {
            let next = State::Present { content: *content, metadata: number, etag: None };
            let query = [("comp", "metadata")];
            (client.send("PUT", path, &query, &mark, Vec::new()).await, next, 200)
        }
        (State::Present { .. } | State::Absent, 3 | 4) => {
            let Some(list) = put_blocks(client, path, number).await else { return false };
            let next = State::Present { content: number, metadata: number, etag: None };
            (client.send("PUT", path, &[("comp", "blocklist")], &mark, list).await, next, 201)
        }
        (State::Present { .. } | State::Absent, _) => {
            let next = State::Present { content: number, metadata: number, etag: None };
            (client.send("PUT", path, &[], &put_headers(&text), content(number)).await, next, 201)
        }
    };
    let Ok(answer) = answer else {
        owned.maybe = Some(next);
        return false;
    };
    assert_eq!(answer.status, expected, "{path}: {}", String::from_utf8_lossy(&answer.body));
    owned.acknowledged = match next {
        State::Absent => State::Absent,
        State::Present { content, metadata, .. } => {
            State::Present { content, metadata, etag: Some(etag_of(&answer)) }
        }
    };
    true
}

/// Sends the content of operation `number` in blocks, and returns the list that commits them; `None`
/// if an answer was missing.
async fn put_blocks(client: &mut Client, path: &str, number: u64) -> Option<Vec<u8>> {
    const BLOCKS: usize = 3;
    let content = content(number);
    let mut list = String::from("<BlockList>");
    for (block, bytes) in content.chunks(content.len().div_ceil(BLOCKS)).enumerate() {
        // Four digits are Base64 of three bytes.
        let id = format!("{block:04}");
        let query = [("blockid", id.as_str()), ("comp", "block")];
        let answer = client.send("PUT", path, &query, &[], bytes.to_vec()).await.ok()?;
        assert_eq!(answer.status, 201, "{path}: {}", String::from_utf8_lossy(&answer.body));
        list += &format!("<Latest>{id}</Latest>");
    }
    Some((list + "</BlockList>").into_bytes())
}

fn put_headers(number: &str) -> [(&'static str, &str); 2] {
    [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-operation", number)]
}

async fn overwrite_shared(run: &Run, client: &mut Client, blob: u64) -> bool {
    let number = run.operations.fetch_add(1, Ordering::SeqCst);
    let text = number.to_string();
    let (path, headers) = (shared_path(blob), put_headers(&text));
    let answer = client.send("PUT", &path, &[], &headers, content(number)).await;
    let Ok(answer) = answer else { return false };
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    let mut shared = run.shared.lock().expect("no writer panicked");
    let acknowledged = &mut shared[blob as usize].acknowledged;
    let earlier = acknowledged.insert(etag_number(&etag_of(&answer)), number);
    assert_eq!(earlier, None, "two writes of shared-{blob} got the same ETag");
    true
}

/// What operation `number` appends: its number, once (stored in a row) or often (in an extent).
fn record(number: u64) -> Vec<u8> {
    let times = if number.is_multiple_of(2) { 1 } else { 200 };
    format!("{number:0width$}\n", width = RECORD_BYTES_MIN - 1).repeat(times).into_bytes()
}

async fn append_to_log(run: &Run, client: &mut Client) -> bool {
    let number = run.operations.fetch_add(1, Ordering::SeqCst);
    let query = [("comp", "appendblock")];
    let answer = client.send("PUT", &run.log, &query, &[], record(number)).await;
    let Ok(answer) = answer else { return false };
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    let offset = answer.header("x-ms-blob-append-offset").and_then(|text| text.parse().ok());
    let offset: u64 = offset.expect("every append answers its offset");
    let earlier = run.appended.lock().expect("no writer panicked").insert(offset, number);
    assert_eq!(earlier, None, "two records of the log got the same place");
    true
}

fn etag_of(answer: &Answer) -> String {
    answer.header("etag").expect("every write answers an ETag").to_owned()
}

/// ETags have the form `"0x…"` and increase with every change of an object.
fn etag_number(etag: &str) -> u64 {
    let digits = etag.trim_matches('"').strip_prefix("0x");
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_else(|| panic!("not the form of an ETag: {etag}"))
}

async fn get(client: &mut Client, path: &str) -> Answer {
    let answer = client.send("GET", path, &[], &[], Vec::new()).await.expect("the server answers");
    assert!(answer.status == 200 || answer.status == 404, "{path}: {answer:?}");
    answer
}

/// The state of the blob in operation numbers; `candidates` are the Put Blobs it may come from.
fn observed(answer: &Answer, path: &str, candidates: &[u64]) -> State {
    if answer.status == 404 {
        return State::Absent;
    }
    let content = *candidates
        .iter()
        .find(|candidate| content(**candidate) == answer.body)
        .unwrap_or_else(|| panic!("{path}: {} bytes that nobody wrote", answer.body.len()));
    let metadata = answer.header("x-ms-meta-operation").and_then(|text| text.parse().ok());
    State::Present {
        content,
        metadata: metadata.unwrap_or_else(|| panic!("{path}: its metadata is lost")),
        etag: Some(etag_of(answer)),
    }
}

async fn check_owned(address: SocketAddr, owned: &mut [Vec<Owned>]) {
    let mut client = Client::new(address);
    for (writer, blobs) in owned.iter_mut().enumerate() {
        for (blob, owned) in blobs.iter_mut().enumerate() {
            let path = owned_path(writer as u64, blob as u64);
            let answer = get(&mut client, &path).await;
            let candidates: Vec<u64> = [Some(&owned.acknowledged), owned.maybe.as_ref()]
                .into_iter()
                .flatten()
                .filter_map(|state| match state {
                    State::Present { content, .. } => Some(*content),
                    State::Absent => None,
                })
                .collect();
            let now = observed(&answer, &path, &candidates);
            let is_maybe = owned.maybe.as_ref().is_some_and(|maybe| same_but_etag(maybe, &now));
            assert!(now == owned.acknowledged || is_maybe, "{path}: {owned:?}, but it is {now:?}");
            *owned = Owned { acknowledged: now, maybe: None };
        }
    }
}

fn same_but_etag(left: &State, right: &State) -> bool {
    match (left, right) {
        (State::Absent, State::Absent) => true,
        (
            State::Present { content: left, metadata: left_metadata, .. },
            State::Present { content: right, metadata: right_metadata, .. },
        ) => (left, left_metadata) == (right, right_metadata),
        (State::Absent, State::Present { .. }) | (State::Present { .. }, State::Absent) => false,
    }
}

async fn check_shared(address: SocketAddr, shared: &Mutex<Vec<Shared>>) {
    let mut client = Client::new(address);
    for blob in 0..SHARED_BLOBS {
        let path = shared_path(blob);
        let answer = get(&mut client, &path).await;
        let mut shared = shared.lock().expect("no writer panicked");
        let acknowledged = &mut shared[blob as usize].acknowledged;
        let newest = acknowledged.last_key_value().map(|(etag, _)| *etag);
        if answer.status == 404 {
            assert_eq!(newest, None, "{path}: an acknowledged blob is gone");
            continue;
        }
        let number: u64 = answer
            .header("x-ms-meta-operation")
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| panic!("{path}: its metadata is lost"));
        assert_eq!(answer.body, content(number), "{path}: content and metadata differ in origin");
        let etag = etag_number(&etag_of(&answer));
        assert!(
            newest.is_none_or(|newest| etag >= newest),
            "{path}: an acknowledged write is gone"
        );
        // An ETag from an answer belongs to that write; a new one to a write whose answer was lost.
        assert_eq!(*acknowledged.entry(etag).or_insert(number), number, "{path}: wrong ETag");
    }
}

/// Checks that the log has only complete records, with every acknowledged one in its place. Then
/// deletes it.
async fn check_log(address: SocketAddr, run: &Run) {
    let mut client = Client::new(address);
    let answer = get(&mut client, &run.log).await;
    let (mut found, mut offset) = (BTreeMap::new(), 0);
    while offset < answer.body.len() {
        let rest = &answer.body[offset..];
        let digits =
            rest.get(..RECORD_BYTES_MIN - 1).and_then(|text| std::str::from_utf8(text).ok());
        let number = digits.and_then(|text| text.parse().ok());
        let number: u64 = number.unwrap_or_else(|| panic!("no record at {offset} of the log"));
        assert!(
            rest.starts_with(&record(number)),
            "the record at {offset} of the log is not whole"
        );
        found.insert(offset as u64, number);
        offset += record(number).len();
    }
    let blocks =
        answer.header("x-ms-blob-committed-block-count").and_then(|text| text.parse().ok());
    assert_eq!(blocks, Some(found.len()), "the log has other records than blocks");
    for (offset, number) in &*run.appended.lock().expect("no writer panicked") {
        assert_eq!(found.get(offset), Some(number), "an acknowledged record is not in the log");
    }
    let deleted = client.send("DELETE", &run.log, &[], &[], Vec::new()).await;
    assert_eq!(deleted.expect("the server answers").status, 202);
}

/// Checks that the listing has exactly the existing blobs.
async fn check_listing(address: SocketAddr, owned: &[Vec<Owned>], shared: &Mutex<Vec<Shared>>) {
    let mut expected: Vec<String> = Vec::new();
    for (writer, blobs) in owned.iter().enumerate() {
        for (blob, owned) in blobs.iter().enumerate() {
            if owned.acknowledged != State::Absent {
                expected.push(owned_path(writer as u64, blob as u64));
            }
        }
    }
    for (blob, shared) in shared.lock().expect("no writer panicked").iter().enumerate() {
        if !shared.acknowledged.is_empty() {
            expected.push(shared_path(blob as u64));
        }
    }
    let mut client = Client::new(address);
    let query = [("comp", "list"), ("restype", "container")];
    let answer = client.send("GET", &format!("/{CONTAINER}"), &query, &[], Vec::new()).await;
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status, 200);
    let listing = String::from_utf8(answer.body.to_vec()).expect("the listing is UTF-8");
    let mut listed: Vec<String> = listing
        .split("<Name>")
        .skip(1)
        .filter_map(|part| part.split("</Name>").next())
        .map(|name| format!("/{CONTAINER}/{name}"))
        .collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
}
