//! Wall clocks that jump by days, a process that is stopped and continued, and restarts after either: a
//! lease (of a blob, container, share or file) never has two holders, and a message never two consumers.
//!
//! The server's clock starts with the wall clock and continues with the monotonic one. A run never
//! starts before the last recorded time, so setting the clock back extends a lease at most by the time
//! between two recordings. Setting it forward between two runs ends leases early: then the former
//! holder is refused, before and after another client has the lease.

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_testkit::client::Client;

use super::{CLIENT_CLOCK_AHEAD, NEVER, Server, set_clock};

const THREE_DAYS: i64 = 3 * 24 * 3600;
const LEASE: Duration = Duration::from_secs(15);
/// The time is recorded every five seconds.
const RECORDED_EVERY: Duration = Duration::from_secs(5);
const FIRST: &str = "11111111-1111-1111-1111-111111111111";
const SECOND: &str = "22222222-2222-2222-2222-222222222222";
const THIRD: &str = "33333333-3333-3333-3333-333333333333";

struct Leased {
    address: SocketAddr,
    path: &'static str,
    restype: &'static str,
    /// Whether the lease can expire; leases of files cannot.
    ends: bool,
}

fn leased(server: &Server) -> [Leased; 4] {
    [
        Leased { address: server.blob, path: "/clock/blob", restype: "", ends: true },
        Leased { address: server.blob, path: "/clock", restype: "container", ends: true },
        Leased { address: server.file, path: "/clock", restype: "share", ends: true },
        Leased { address: server.file, path: "/clock/file", restype: "", ends: false },
    ]
}

impl Leased {
    async fn put(&self, comp: &str, headers: &[(&str, &str)]) -> u16 {
        let mut query = vec![("comp", comp), ("restype", self.restype)];
        query.retain(|(_, value)| !value.is_empty());
        let mut client = Client::new(self.address);
        let sent = client.send("PUT", self.path, &query, headers, Vec::new()).await;
        sent.expect("an answer").status.as_u16()
    }

    async fn acquire(&self, id: &str) -> bool {
        let duration = if self.ends { LEASE.as_secs().to_string() } else { "-1".to_owned() };
        let headers = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", duration.as_str()),
            ("x-ms-proposed-lease-id", id),
        ];
        match self.put("lease", &headers).await {
            201 => true,
            409 => false,
            status => panic!("{}: {status}", self.path),
        }
    }

    /// Whether a change with this lease is accepted.
    async fn is_held_by(&self, id: &str) -> bool {
        match self.put("metadata", &[("x-ms-lease-id", id)]).await {
            200 => true,
            412 => false,
            status => panic!("{}: {status}", self.path),
        }
    }

    async fn holders(&self) -> Vec<&'static str> {
        let mut holders = Vec::new();
        for id in [FIRST, SECOND, THIRD] {
            if self.is_held_by(id).await {
                holders.push(id);
            }
        }
        holders
    }
}

struct Message {
    id: String,
    receipt: String,
}

async fn receive(server: &Server) -> Option<Message> {
    let seconds = LEASE.as_secs().to_string();
    let query = [("visibilitytimeout", seconds.as_str())];
    let mut client = Client::new(server.queue);
    let sent = client.send("GET", "/clock/messages", &query, &[], Vec::new()).await;
    let answer = sent.expect("an answer");
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body.to_vec()).expect("UTF-8");
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.to_owned())
    };
    Some(Message { id: field("MessageId")?, receipt: field("PopReceipt")? })
}

/// Makes it invisible again for the same time; `None` if the receipt is not valid any more.
async fn keep(server: &Server, message: &Message) -> Option<Message> {
    let path = format!("/clock/messages/{}", message.id);
    let seconds = LEASE.as_secs().to_string();
    let receipt = message.receipt.as_str();
    let query = [("popreceipt", receipt), ("visibilitytimeout", seconds.as_str())];
    let sent = Client::new(server.queue).send("PUT", &path, &query, &[], Vec::new()).await;
    let answer = sent.expect("an answer");
    match answer.status.as_u16() {
        204 => Some(Message {
            id: message.id.clone(),
            receipt: answer.header("x-ms-popreceipt").expect("a receipt").to_owned(),
        }),
        404 => None,
        status => panic!("{status}"),
    }
}

async fn create(server: &Server) {
    let file = [("x-ms-content-length", "10"), ("x-ms-type", "file")];
    let blob = [("x-ms-blob-type", "BlockBlob")];
    let text = b"<QueueMessage><MessageText>m</MessageText></QueueMessage>".to_vec();
    let (container, share) = ([("restype", "container")], [("restype", "share")]);
    let none: &[(&str, &str)] = &[];
    let calls = [
        (server.blob, "PUT", "/clock", &container[..], none, Vec::new()),
        (server.blob, "PUT", "/clock/blob", none, &blob[..], b"blob".to_vec()),
        (server.file, "PUT", "/clock", &share[..], none, Vec::new()),
        (server.file, "PUT", "/clock/file", none, &file[..], Vec::new()),
        (server.queue, "PUT", "/clock", none, none, Vec::new()),
        (server.queue, "POST", "/clock/messages", none, none, text),
    ];
    for (address, method, path, query, headers, body) in calls {
        let answer = Client::new(address).send(method, path, query, headers, body).await;
        assert_eq!(answer.expect("an answer").status, 201, "{method} {path}");
    }
}

/// Checks that the first holder has everything and others get nothing; then renews the first
/// holder's time.
async fn first_has_all(server: &Server, message: &mut Message, when: &str) {
    for leased in leased(server) {
        assert!(!leased.acquire(SECOND).await, "{when}: {} has two holders", leased.path);
        assert_eq!(leased.holders().await, [FIRST], "{when}: {}", leased.path);
        assert!(leased.acquire(FIRST).await, "{when}: {}", leased.path);
    }
    assert!(receive(server).await.is_none(), "{when}: the message has two consumers");
    *message = keep(server, message).await.expect("the first consumer has it still");
}

/// Sets the client's wall clock to the server's: signatures are dated by it.
fn start(data: &std::path::Path, clock_ahead: i64) -> Server {
    CLIENT_CLOCK_AHEAD.set(clock_ahead);
    Server::start(data, NEVER, clock_ahead).expect("it starts")
}

#[test]
fn jumping_clocks_and_stopped_processes_never_make_two_holders() {
    // One thread, since the clock belongs to the thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(jumps());
}

async fn jumps() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = start(folder.path(), 0);
    create(&server).await;
    for leased in leased(&server) {
        assert!(leased.acquire(FIRST).await);
    }
    let mut message = receive(&server).await.expect("the message");
    for ahead in [THREE_DAYS, -THREE_DAYS, 0] {
        set_clock(&mut server.process, ahead);
        first_has_all(&server, &mut message, &format!("a jump to {ahead} s")).await;
    }
    server.process.signal(libc::SIGSTOP);
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.process.signal(libc::SIGCONT);
    first_has_all(&server, &mut message, "stopped and continued").await;

    drop(server);
    let server = start(folder.path(), -THREE_DAYS);
    // The recorded time is a few seconds old at most, so the date of a client whose clock was not set
    // back is near enough.
    CLIENT_CLOCK_AHEAD.set(0);
    first_has_all(&server, &mut message, "a restart three days earlier").await;
    tokio::time::sleep(LEASE + RECORDED_EVERY).await;
    for leased in leased(&server) {
        assert_eq!(
            leased.acquire(SECOND).await,
            leased.ends,
            "{}: a lease ends in time",
            leased.path
        );
        let holder = if leased.ends { SECOND } else { FIRST };
        assert_eq!(leased.holders().await, [holder], "{}", leased.path);
    }
    let again = receive(&server).await.expect("the message is visible in time");
    assert!(keep(&server, &message).await.is_none(), "the receipt of the first is stale");
    assert!(keep(&server, &again).await.is_some());

    drop(server);
    let server = start(folder.path(), THREE_DAYS);
    for leased in leased(&server) {
        let granted = leased.acquire(THIRD).await;
        assert_eq!(granted, leased.ends, "{}: three days are longer than a lease", leased.path);
        let holder = if leased.ends { THIRD } else { FIRST };
        assert_eq!(leased.holders().await, [holder], "{}", leased.path);
    }
    assert!(receive(&server).await.is_some());
    assert!(keep(&server, &again).await.is_none(), "the receipt of the second is stale");
}
