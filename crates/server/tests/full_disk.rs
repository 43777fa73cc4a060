//! A full disk under the real binary: writes are refused with a clear answer, reads and deletes work,
//! and when there is space again so do writes, without a restart.
//!
//! The disk is mounted in a mount namespace of the server and disappears with it. A small tmpfs needs no
//! privileges if the kernel allows user namespaces; an ext4 in an image file needs root and loop
//! devices. Without these the test is skipped and says so.

mod support;

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_testkit::client::{Answer, Client, get};
use holdfast_testkit::process::{ChildProcess, command, socket_address};
use support::{FREE_PORTS, binary};

const JSON: &[(&str, &str)] =
    &[("accept", "application/json;odata=nometadata"), ("content-type", "application/json")];
const BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];
/// Far more than fit.
const WRITES_MAX: u64 = 2000;
const RECOVERY_MAX: Duration = Duration::from_secs(20);

/// What is mounted, by a script that runs in the folder of the mount.
struct Disk {
    namespaces: &'static [&'static str],
    mount: &'static str,
}

const TMPFS: Disk = Disk {
    namespaces: &["--map-root-user", "--mount"],
    mount: "mount -t tmpfs -o size=384m tmpfs \"$PWD\"",
};
/// Without blocks reserved for root.
const EXT4: Disk = Disk {
    namespaces: &["--mount"],
    mount: "truncate -s 416M \"$PWD.img\" && mkfs.ext4 -q -F -m 0 \"$PWD.img\" \
            && mount -o loop \"$PWD.img\" \"$PWD\"",
};

impl Disk {
    /// The program in one process, with its own disk at `folder`.
    fn under(&self, folder: &Path, program: &Path) -> Command {
        let mut command = command(Path::new("unshare"), folder);
        let script = format!("{} && exec \"$@\"", self.mount);
        command.args(self.namespaces).args(["sh", "-c", &script, "sh"]).arg(program);
        command
    }

    fn cannot_be_had(&self, folder: &Path) -> Option<String> {
        match self.under(folder, Path::new("true")).output() {
            Ok(tried) if tried.status.success() => None,
            Ok(tried) => Some(String::from_utf8_lossy(&tried.stderr).trim().to_owned()),
            Err(why) => Some(why.to_string()),
        }
    }
}

struct Node {
    server: ChildProcess,
    ready: String,
    /// The path of the server's disk for this process.
    disk: PathBuf,
}

impl Node {
    fn start(disk: &Disk, mount: &Path) -> Self {
        let data = mount.join("data");
        let arguments = ["--data", data.to_str().expect("UTF-8"), "--log", "error"];
        let server = ChildProcess::spawn(
            disk.under(mount, binary()).args(arguments).args(FREE_PORTS).stderr(Stdio::null()),
        );
        let ready = server.lines_to("ready ").pop().expect("the last line");
        let inside = mount.strip_prefix("/").expect("an absolute path");
        let disk = PathBuf::from(format!("/proc/{}/root", server.id())).join(inside);
        Self { server, ready, disk }
    }

    fn address(&self, service: &str) -> SocketAddr {
        socket_address(&self.ready, service)
    }

    fn health(&self) -> u16 {
        get(&self.address("admin").to_string(), "/healthz").0
    }

    /// Uses up all free space.
    fn fill(&self) -> PathBuf {
        let path = self.disk.join("filler");
        let mut file = File::create(&path).expect("a file of others");
        for piece in [1 << 20, 4096] {
            loop {
                match file.write_all(&vec![1; piece]) {
                    Ok(()) => {}
                    Err(why) if why.kind() == ErrorKind::StorageFull => break,
                    Err(why) => panic!("{why}"),
                }
            }
        }
        path
    }
}

struct Clients {
    blob: Client,
    table: Client,
    queue: Client,
    file: Client,
}

impl Clients {
    fn new(node: &Node) -> Self {
        Self {
            blob: Client::new(node.address("blob")),
            table: Client::of_tables(node.address("table")),
            queue: Client::new(node.address("queue")),
            file: Client::new(node.address("file")),
        }
    }

    async fn put_blob(&mut self, name: &str, bytes: usize) -> Answer {
        let path = format!("/full/{name}");
        let sent = self.blob.send("PUT", &path, &[], BLOB, content(name, bytes)).await;
        sent.expect("an answer")
    }

    async fn insert(&mut self, row: &str) -> Answer {
        let text = "x".repeat(30_000);
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","Text":"{text}"}}"#);
        let sent = self.table.send("POST", "/Full", &[], JSON, body.into_bytes()).await;
        sent.expect("an answer")
    }

    async fn put_message(&mut self, text: &str) -> Answer {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let sent = self.queue.send("POST", "/full/messages", &[], &[], body.into_bytes()).await;
        sent.expect("an answer")
    }

    async fn create_file(&mut self, name: &str) -> Answer {
        let headers = [("x-ms-content-length", "1024"), ("x-ms-type", "file")];
        let path = format!("/full/{name}");
        self.file.send("PUT", &path, &[], &headers, Vec::new()).await.expect("an answer")
    }

    async fn prepare(&mut self) {
        let container = [("restype", "container")];
        let made = self.blob.send("PUT", "/full", &container, &[], Vec::new()).await;
        assert_eq!(made.expect("an answer").status, 201);
        let name = br#"{"TableName":"Full"}"#.to_vec();
        let made = self.table.send("POST", "/Tables", &[], JSON, name).await;
        assert_eq!(made.expect("an answer").status, 201);
        let made = self.queue.send("PUT", "/full", &[], &[], Vec::new()).await;
        assert_eq!(made.expect("an answer").status, 201);
        let share = [("restype", "share")];
        let made = self.file.send("PUT", "/full", &share, &[], Vec::new()).await;
        assert_eq!(made.expect("an answer").status, 201);
    }

    async fn write_victims(&mut self) {
        for number in 0..VICTIMS {
            let name = format!("victim-{number}");
            assert_eq!(self.put_blob(&name, victim_bytes(number)).await.status, 201);
            assert_eq!(self.insert(&name).await.status, 201);
            assert_eq!(self.put_message(&name).await.status, 201);
            assert_eq!(self.create_file(&name).await.status, 201);
        }
    }

    async fn expect_blob(&mut self, name: &str, bytes: usize) {
        let got = self.blob.send("GET", &format!("/full/{name}"), &[], &[], Vec::new()).await;
        let got = got.expect("an answer");
        assert_eq!(got.status, 200, "{name}");
        assert!(got.body == content(name, bytes), "{name} has other bytes");
    }

    async fn delete_victim(&mut self, number: u64) {
        let path = format!("/full/victim-{number}");
        let gone = self.blob.send("DELETE", &path, &[], &[], Vec::new()).await;
        assert_eq!(gone.expect("an answer").status, 202, "blob {number}");
        let gone = self.file.send("DELETE", &path, &[], &[], Vec::new()).await;
        assert_eq!(gone.expect("an answer").status, 202, "file {number}");
        let entity = format!("/Full(PartitionKey='p',RowKey='victim-{number}')");
        let mut headers = JSON.to_vec();
        headers.push(("if-match", "*"));
        let gone = self.table.send("DELETE", &entity, &[], &headers, Vec::new()).await;
        assert_eq!(gone.expect("an answer").status, 204, "entity {number}");
        let got = self.queue.send("GET", "/full/messages", &[], &[], Vec::new()).await;
        let got = got.expect("an answer");
        assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.body));
        let text = String::from_utf8(got.body.to_vec()).expect("UTF-8");
        let field = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>")).expect("the field");
            rest.split_once("</").expect("its end").0.to_owned()
        };
        let path = format!("/full/messages/{}", field("MessageId"));
        let receipt = field("PopReceipt");
        let query = [("popreceipt", receipt.as_str())];
        let gone = self.queue.send("DELETE", &path, &query, &[], Vec::new()).await;
        assert_eq!(gone.expect("an answer").status, 204, "message {number}");
    }
}

const VICTIMS: u64 = 60;

/// Some in rows, some in extents.
fn victim_bytes(number: u64) -> usize {
    if number.is_multiple_of(3) { 200_000 } else { 3000 }
}

fn content(name: &str, bytes: usize) -> Vec<u8> {
    name.bytes().cycle().take(bytes).collect()
}

fn is_full(answer: &Answer) -> bool {
    if answer.status.is_success() {
        return false;
    }
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, 503, "{body}");
    assert!(body.contains("ServerBusy") && body.contains("no room left"), "{body}");
    true
}

/// Fills the disk to the last block, so that neither rows nor bytes are accepted. Returns how many
/// rows were accepted before, and the file to remove.
async fn fill(node: &Node, clients: &mut Clients, name: &str) -> (u64, PathBuf) {
    let filler = node.fill();
    let mut rows = 0;
    while !is_full(&clients.insert(&format!("{name}-{rows}")).await) {
        rows += 1;
        assert!(rows < WRITES_MAX, "the disk does not become full");
    }
    assert_eq!(node.health(), 503, "it is unhealthy while writes are refused");
    assert!(is_full(&clients.put_message("more").await));
    assert!(is_full(&clients.create_file("more").await));
    assert!(is_full(&clients.put_blob("more", 10).await));
    assert!(is_full(&clients.put_blob("more", 100_000).await));
    (rows, filler)
}

async fn expect_recovery(node: &Node, clients: &mut Clients, how: &str) {
    let since = Instant::now();
    while is_full(&clients.put_blob(how, 1 << 20).await)
        || is_full(&clients.put_message(how).await)
        || is_full(&clients.insert(how).await)
    {
        assert!(since.elapsed() < RECOVERY_MAX, "it does not recover");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("writes again after {:?}, {how}", since.elapsed());
    assert_eq!(node.health(), 200);
    clients.expect_blob(how, 1 << 20).await;
}

async fn refuses_writes_and_nothing_else_and_recovers_by_itself(test: &str, disk: &Disk) {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = folder.path().join("disk");
    fs::create_dir(&mount).expect("created");
    if let Some(why) = disk.cannot_be_had(&mount) {
        return support::say_skipped(test, &why);
    }
    let node = Node::start(disk, &mount);
    let mut clients = Clients::new(&node);
    clients.prepare().await;
    clients.write_victims().await;
    assert_eq!(node.health(), 200);

    let mut blobs = 0;
    while !is_full(&clients.put_blob(&format!("blob-{blobs}"), 1 << 20).await) {
        blobs += 1;
        assert!(blobs < WRITES_MAX, "the disk does not become full");
    }
    let (rows, filler) = fill(&node, &mut clients, "row").await;
    println!("{blobs} blobs of 1 MiB, then {rows} entities of 30,000 characters");
    assert!(blobs > 10 && rows > 0, "the disk was full from the beginning");
    for number in 0..VICTIMS {
        clients.expect_blob(&format!("victim-{number}"), victim_bytes(number)).await;
    }
    for number in 0..VICTIMS / 2 {
        clients.delete_victim(number).await;
    }
    assert!(is_full(&clients.put_message("still more").await));

    let kept = blobs / 4;
    for number in kept..blobs {
        let path = format!("/full/blob-{number}");
        let gone = clients.blob.send("DELETE", &path, &[], &[], Vec::new()).await;
        assert_eq!(gone.expect("an answer").status, 202, "blob {number}");
    }
    expect_recovery(&node, &mut clients, "by-deletes").await;

    fs::remove_file(filler).expect("removed");
    let (_, filler) = fill(&node, &mut clients, "later").await;
    fs::remove_file(filler).expect("removed");
    expect_recovery(&node, &mut clients, "by-others").await;

    for number in 0..kept {
        clients.expect_blob(&format!("blob-{number}"), 1 << 20).await;
    }
    for number in VICTIMS / 2..VICTIMS {
        clients.expect_blob(&format!("victim-{number}"), victim_bytes(number)).await;
        clients.delete_victim(number).await;
    }
    for row in [0, rows - 1] {
        let path = format!("/Full(PartitionKey='p',RowKey='row-{row}')");
        let got = clients.table.send("GET", &path, &[], JSON, Vec::new()).await;
        assert_eq!(got.expect("an answer").status, 200, "row {row} was acknowledged");
    }
    drop(node.server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_tmpfs_refuses_writes_and_nothing_else_and_recovers_by_itself() {
    let test = "full_tmpfs_refuses_writes_and_nothing_else_and_recovers_by_itself";
    refuses_writes_and_nothing_else_and_recovers_by_itself(test, &TMPFS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_ext4_refuses_writes_and_nothing_else_and_recovers_by_itself() {
    let test = "full_ext4_refuses_writes_and_nothing_else_and_recovers_by_itself";
    refuses_writes_and_nothing_else_and_recovers_by_itself(test, &EXT4).await;
}
