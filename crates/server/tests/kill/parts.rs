//! Blobs that are changed in part: pages, appended blocks, lists of blocks, with snapshots and copies
//! that share parts. Snapshots and copies never change, and no reader sees half of a change.
//!
//! Each blob has one writer, which knows its state. Readers read all blobs meanwhile: they must get
//! the state that was last acknowledged when they asked, or a later one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::{Killed, Workload, joined};
use holdfast_random::Random;
use holdfast_testkit::client::{ACCOUNT, Answer, Client, NoAnswer};

pub const WRITERS: u64 = 12;
const READERS: u64 = 4;
const CONTAINER: &str = "parts";
const PAGE_BYTES: usize = 512;
const PAGES: u64 = 96;
/// Some have so many entries that a write after a snapshot does not copy them.
const LONG_WRITERS: usize = 2;
const LONG_PAGES: u64 = 2400;
const PAGES_WRITTEN_MAX: u64 = 12;
const APPENDED_MAX: usize = 40;
const BLOCKS: u64 = 5;
const SNAPSHOTS_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pages,
    Log,
    Blocks,
}

const KINDS: [Kind; 3] = [Kind::Pages, Kind::Log, Kind::Blocks];

/// Pages, appended blocks or blocks, in their order.
type Pieces = Vec<Vec<u8>>;

/// The states of one blob since the last start, as hashes of its contents; `None` where it was
/// absent.
#[derive(Default)]
struct History {
    states: Vec<Option<u64>>,
    acknowledged: usize,
}

struct Owned {
    kind: Kind,
    path: String,
    /// Of a page blob.
    pages: u64,
    parts: Option<Pieces>,
    /// The state if the operation without an answer has happened.
    maybe: Option<Pieces>,
    snapshots: BTreeMap<String, Vec<u8>>,
    /// A snapshot whose creation was not answered may exist, and one whose deletion was not
    /// answered may be gone.
    snapshot_maybe: bool,
    deleted_maybe: Option<String>,
    history: Arc<Mutex<History>>,
}

struct Run {
    address: SocketAddr,
    killed: Killed,
    operations: Arc<AtomicU64>,
}

#[derive(Default)]
pub struct Parts {
    operations: Arc<AtomicU64>,
    owned: Vec<Vec<Owned>>,
    writers: Vec<JoinHandle<Vec<Owned>>>,
    readers: Vec<JoinHandle<()>>,
}

#[async_trait]
impl Workload for Parts {
    fn name(&self) -> &'static str {
        "parts"
    }

    async fn prepare(&mut self, server: &Server) {
        let container = format!("/{CONTAINER}");
        let query = [("restype", "container")];
        let mut client = Client::new(server.blob);
        let created = client.send("PUT", &container, &query, &[], Vec::new()).await;
        assert_eq!(created.expect("the server answers").status, 201);
        self.owned = (0..WRITERS).map(blobs_of).collect();
        for blobs in self.owned.iter_mut().take(LONG_WRITERS) {
            write_long(server.blob, blobs).await;
        }
    }

    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random) {
        let run = Arc::new(Run {
            address: server.blob,
            killed: killed.clone(),
            operations: self.operations.clone(),
        });
        for _ in 0..READERS {
            let blobs = self.owned.iter().flatten();
            let watched = blobs.map(|blob| (blob.path.clone(), blob.history.clone())).collect();
            let read = read_until_killed(run.clone(), watched, Random::new(random.number()));
            self.readers.push(tokio::spawn(read));
        }
        for blobs in self.owned.drain(..) {
            let write = write_until_killed(run.clone(), blobs, Random::new(random.number()));
            self.writers.push(tokio::spawn(write));
        }
    }

    async fn end(&mut self) {
        self.owned = joined(&mut self.writers).await;
        joined(&mut self.readers).await;
    }

    async fn check(&mut self, server: &Server) {
        let mut client = Client::new(server.blob);
        for blob in self.owned.iter_mut().flatten() {
            check(&mut client, blob).await;
        }
    }

    fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }
}

/// Writes every second page separately, several at once.
async fn write_long(address: SocketAddr, blobs: &mut [Owned]) {
    const AT_ONCE: u64 = 16;
    let (mut client, mut random) = (Client::new(address), Random::new(1));
    let blob = &mut blobs[0];
    assert_eq!(blob.kind, Kind::Pages);
    change_pages(&mut client, blob, 0, &mut random).await.expect("created");
    let write = |first: u64, path: String| async move {
        let mut client = Client::new(address);
        for page in (2 * first..LONG_PAGES).step_by(2 * AT_ONCE as usize) {
            let (start, end) = (page * PAGE_BYTES as u64, (page + 1) * PAGE_BYTES as u64 - 1);
            let range = format!("bytes={start}-{end}");
            let headers = [("x-ms-page-write", "update"), ("x-ms-range", range.as_str())];
            let (query, body) = ([("comp", "page")], vec![page as u8 | 1; PAGE_BYTES]);
            let answer = client.send("PUT", &path, &query, &headers, body).await;
            assert_eq!(answer.expect("the server answers").status, 201);
        }
    };
    let writers = (0..AT_ONCE).map(|first| tokio::spawn(write(first, blob.path.clone())));
    joined(&mut writers.collect()).await;
    let pages = blob.parts.as_mut().expect("the blob is there");
    for page in (0..LONG_PAGES).step_by(2) {
        pages[page as usize].fill(page as u8 | 1);
    }
    let state = hash(&pages.concat());
    *lock(&blob.history) = History { states: vec![state], acknowledged: 0 };
}

/// A blob of each kind, and one for copies of each.
fn blobs_of(writer: u64) -> Vec<Owned> {
    let blob = |kind, role: &str| Owned {
        kind,
        path: format!("/{CONTAINER}/{writer:02}-{kind:?}{role}"),
        pages: if writer < LONG_WRITERS as u64 { LONG_PAGES } else { PAGES },
        parts: None,
        maybe: None,
        snapshots: BTreeMap::new(),
        snapshot_maybe: false,
        deleted_maybe: None,
        history: Arc::new(Mutex::new(History { states: vec![None], acknowledged: 0 })),
    };
    let originals = KINDS.map(|kind| blob(kind, ""));
    originals.into_iter().chain(KINDS.map(|kind| blob(kind, "-copy"))).collect()
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().expect("nobody panicked")
}

fn hash(bytes: &[u8]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}

async fn read_until_killed(
    run: Arc<Run>,
    watched: Vec<(String, Arc<Mutex<History>>)>,
    mut random: Random,
) {
    let mut client = run.killed.limit(Client::new(run.address));
    while !run.killed.is() {
        let (path, history) = &watched[random.below(watched.len() as u64) as usize];
        let from = lock(history).acknowledged;
        let Ok(answer) = client.send("GET", path, &[], &[], Vec::new()).await else { return };
        let seen = match answer.status.as_u16() {
            200 => hash(&answer.body),
            404 => None,
            status => panic!("{path}: {status}"),
        };
        let possible = lock(history).states[from..].contains(&seen);
        assert!(possible, "{path}: a reader saw {} bytes that nobody wrote", answer.body.len());
    }
}

async fn write_until_killed(
    run: Arc<Run>,
    mut blobs: Vec<Owned>,
    mut random: Random,
) -> Vec<Owned> {
    let mut client = run.killed.limit(Client::new(run.address));
    while !run.killed.is() {
        let number = run.operations.fetch_add(1, Ordering::SeqCst);
        let at = random.below(KINDS.len() as u64) as usize;
        let done = match random.below(8) {
            0 => snapshot(&mut client, &mut blobs[at]).await,
            1 => copy(&run, &mut client, &mut blobs, at).await,
            // A copy is changed, too, while it shares parts with its source.
            2 => change(&mut client, &mut blobs[at + KINDS.len()], number, &mut random).await,
            _ => change(&mut client, &mut blobs[at], number, &mut random).await,
        };
        if done.is_err() {
            run.killed.expect();
            break;
        }
    }
    blobs
}

/// What operation `number` writes: short enough for a row, or not.
fn bytes_of(number: u64) -> Vec<u8> {
    let length = if number.is_multiple_of(2) { 300 } else { 5000 };
    Random::new(number).bytes(length)
}

/// Sends the operation that leads to `next`, and records whether it was answered.
async fn send(
    client: &mut Client,
    blob: &mut Owned,
    next: Pieces,
    query: &[(&str, &str)],
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<(), NoAnswer> {
    lock(&blob.history).states.push(hash(&next.concat()));
    let answer = client.send("PUT", &blob.path, query, headers, body).await;
    let Ok(answer) = answer else {
        blob.maybe = Some(next);
        return Err(NoAnswer);
    };
    assert!(answer.status.is_success(), "{}: {answer:?}", blob.path);
    blob.parts = Some(next);
    let mut history = lock(&blob.history);
    history.acknowledged = history.states.len() - 1;
    Ok(())
}

async fn change(
    client: &mut Client,
    blob: &mut Owned,
    number: u64,
    random: &mut Random,
) -> Result<(), NoAnswer> {
    match blob.kind {
        Kind::Pages => change_pages(client, blob, number, random).await,
        Kind::Log => change_log(client, blob, number).await,
        Kind::Blocks => change_blocks(client, blob, number, random).await,
    }
}

async fn change_pages(
    client: &mut Client,
    blob: &mut Owned,
    number: u64,
    random: &mut Random,
) -> Result<(), NoAnswer> {
    if blob.parts.is_none() {
        let pages = vec![vec![0; PAGE_BYTES]; blob.pages as usize];
        let length = (blob.pages * PAGE_BYTES as u64).to_string();
        let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &length)];
        return send(client, blob, pages, &[], &headers, Vec::new()).await;
    }
    let clears = random.below(4) == 0;
    // Sometimes most of the blob is cleared at once.
    let most = if clears && random.below(16) == 0 { blob.pages / 2 } else { PAGES_WRITTEN_MAX };
    let count = 1 + random.below(most);
    let first = random.below(blob.pages - count);
    let byte = (!clears).then_some(number as u8 | 1);
    put_pages(client, blob, first..first + count, byte).await
}

/// Fills pages with a byte, or clears them.
async fn put_pages(
    client: &mut Client,
    blob: &mut Owned,
    range: Range<u64>,
    byte: Option<u8>,
) -> Result<(), NoAnswer> {
    let mut pages = blob.parts.clone().expect("the blob is there");
    let written = &mut pages[range.start as usize..range.end as usize];
    written.fill(vec![byte.unwrap_or(0); PAGE_BYTES]);
    let body = written.concat();
    let (start, end) = (range.start * PAGE_BYTES as u64, range.end * PAGE_BYTES as u64 - 1);
    let range = format!("bytes={start}-{end}");
    let (write, body) = if byte.is_none() { ("clear", Vec::new()) } else { ("update", body) };
    let headers = [("x-ms-page-write", write), ("x-ms-range", &range)];
    send(client, blob, pages, &[("comp", "page")], &headers, body).await
}

async fn change_log(client: &mut Client, blob: &mut Owned, number: u64) -> Result<(), NoAnswer> {
    let mut parts = match blob.parts.clone() {
        Some(parts) if parts.len() < APPENDED_MAX => parts,
        Some(_) | None => {
            let headers = [("x-ms-blob-type", "AppendBlob")];
            return send(client, blob, Vec::new(), &[], &headers, Vec::new()).await;
        }
    };
    let body = bytes_of(number);
    parts.push(body.clone());
    send(client, blob, parts, &[("comp", "appendblock")], &[], body).await
}

/// One block is new, the others are already committed.
async fn change_blocks(
    client: &mut Client,
    blob: &mut Owned,
    number: u64,
    random: &mut Random,
) -> Result<(), NoAnswer> {
    let new = random.below(BLOCKS);
    let is_new = |block| blob.parts.is_none() || block == new;
    let (mut parts, mut list) = (Vec::new(), String::from("<BlockList>"));
    for block in 0..BLOCKS {
        // Four digits are Base64 of three bytes.
        let id = format!("{block:04}");
        match &blob.parts {
            Some(committed) if !is_new(block) => {
                parts.push(committed[block as usize].clone());
                list += &format!("<Committed>{id}</Committed>");
            }
            Some(_) | None => {
                let body = bytes_of(number + block);
                let query = [("blockid", id.as_str()), ("comp", "block")];
                let put = client.send("PUT", &blob.path, &query, &[], body.clone()).await?;
                assert_eq!(put.status, 201, "{}", blob.path);
                parts.push(body);
                list += &format!("<Uncommitted>{id}</Uncommitted>");
            }
        }
    }
    let list = (list + "</BlockList>").into_bytes();
    send(client, blob, parts, &[("comp", "blocklist")], &[], list).await
}

/// Copies the blob onto the one that is for its copies.
async fn copy(
    run: &Run,
    client: &mut Client,
    blobs: &mut [Owned],
    from: usize,
) -> Result<(), NoAnswer> {
    let (originals, copies) = blobs.split_at_mut(KINDS.len());
    let Some(parts) = originals[from].parts.clone() else { return Ok(()) };
    let source = format!("http://{}/{ACCOUNT}{}", run.address, originals[from].path);
    let headers = [("x-ms-copy-source", source.as_str())];
    send(client, &mut copies[from], parts, &[], &headers, Vec::new()).await
}

/// Takes a snapshot of the blob or, if it has enough, deletes its oldest.
async fn snapshot(client: &mut Client, blob: &mut Owned) -> Result<(), NoAnswer> {
    let Some(parts) = &blob.parts else { return Ok(()) };
    if blob.snapshots.len() < SNAPSHOTS_MAX {
        let query = [("comp", "snapshot")];
        let Ok(answer) = client.send("PUT", &blob.path, &query, &[], Vec::new()).await else {
            blob.snapshot_maybe = true;
            return Err(NoAnswer);
        };
        assert_eq!(answer.status, 201, "{}: {answer:?}", blob.path);
        let moment = answer.header("x-ms-snapshot").expect("every snapshot has its moment");
        blob.snapshots.insert(moment.to_owned(), parts.concat());
    } else if let Some((oldest, content)) = blob.snapshots.pop_first() {
        let query = [("snapshot", oldest.as_str())];
        let Ok(answer) = client.send("DELETE", &blob.path, &query, &[], Vec::new()).await else {
            blob.deleted_maybe = Some(oldest.clone());
            blob.snapshots.insert(oldest, content);
            return Err(NoAnswer);
        };
        assert_eq!(answer.status, 202, "{}: {answer:?}", blob.path);
    }
    Ok(())
}

/// After a restart: checks that the blob and its snapshots are as acknowledged, or as after the
/// operation without an answer.
async fn check(client: &mut Client, blob: &mut Owned) {
    let Owned { path, maybe, .. } = blob;
    let answer = get(client, path, &[]).await;
    let seen = (answer.status == 200).then(|| answer.body.to_vec());
    let of = |parts: &Option<Pieces>| parts.as_ref().map(|parts| parts.concat());
    if seen != of(&blob.parts) {
        assert!(maybe.is_some() && seen == of(maybe), "{path}: it is neither of what it may be");
        blob.parts = maybe.take();
    }
    blob.maybe = None;
    let state = seen.as_deref().and_then(hash);
    *lock(&blob.history) = History { states: vec![state], acknowledged: 0 };

    let mut listed = listed_snapshots(client, path).await;
    for (moment, content) in &blob.snapshots {
        let was_listed = listed.remove(moment);
        let answer = get(client, path, &[("snapshot", moment)]).await;
        assert_eq!(was_listed, answer.status == 200, "{path} at {moment}: a listing knows better");
        let may_be_gone = blob.deleted_maybe.as_ref() == Some(moment);
        assert!(was_listed || may_be_gone, "{path} at {moment}: the snapshot is lost");
        assert!(!was_listed || answer.body == *content, "{path} at {moment}: it has changed");
    }
    if let Some(moment) = blob.deleted_maybe.take()
        && get(client, path, &[("snapshot", &moment)]).await.status == 404
    {
        blob.snapshots.remove(&moment);
    }
    for moment in listed.0 {
        assert!(std::mem::take(&mut blob.snapshot_maybe), "{path} at {moment}: nobody made it");
        let answer = get(client, path, &[("snapshot", &moment)]).await;
        assert_eq!(Some(answer.body.to_vec()), seen, "{path} at {moment}: not what the blob was");
        blob.snapshots.insert(moment, answer.body.to_vec());
    }
    blob.snapshot_maybe = false;
}

async fn get(client: &mut Client, path: &str, query: &[(&str, &str)]) -> Answer {
    let answer = client.send("GET", path, query, &[], Vec::new()).await;
    let answer = answer.expect("the server answers");
    assert!(answer.status == 200 || answer.status == 404, "{path}: {answer:?}");
    answer
}

/// The snapshots in a listing.
struct Listed(Vec<String>);

impl Listed {
    fn remove(&mut self, moment: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|listed| listed != moment);
        self.0.len() < before
    }
}

async fn listed_snapshots(client: &mut Client, path: &str) -> Listed {
    let name = path.trim_start_matches(&format!("/{CONTAINER}/")).to_owned();
    let query = [
        ("comp", "list"),
        ("include", "snapshots"),
        ("prefix", name.as_str()),
        ("restype", "container"),
    ];
    let answer = client.send("GET", &format!("/{CONTAINER}"), &query, &[], Vec::new()).await;
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status, 200);
    let listing = String::from_utf8(answer.body.to_vec()).expect("the listing is UTF-8");
    let whole_name = format!("<Name>{name}</Name>");
    let snapshots = listing.split("<Blob>").filter(|blob| blob.contains(&whole_name));
    let moment = |blob: &str| {
        let after = blob.split_once("<Snapshot>")?.1;
        Some(after.split_once("</Snapshot>")?.0.to_owned())
    };
    Listed(snapshots.filter_map(moment).collect())
}
