//! Connections and descriptors under the real binary: neither unauthenticated clients nor a single
//! address block others, and after a shortage of descriptors everything works again.

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdfast_testkit::client::{Answer, Client, get};
use holdfast_testkit::process::{ChildProcess, PATIENCE, address, command, socket_address};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use socket2::{Domain, Socket, Type};
use support::{FREE_PORTS, binary};

const JSON: &[(&str, &str)] =
    &[("accept", "application/json;odata=nometadata"), ("content-type", "application/json")];
/// Far more than are accepted before one is refused.
const WRITES_MAX: u64 = 4000;

fn started(folder: &Path, limit: &str, more: &[&str]) -> (ChildProcess, String) {
    let mut shell = command(Path::new("sh"), folder);
    let script = format!(r#"{limit} exec "$@""#);
    shell.args(["-c", &script, "sh"]).arg(binary()).args(FREE_PORTS).args(more);
    let server = ChildProcess::spawn(shell.args(["--log", "error"]).stderr(Stdio::null()));
    let ready = server.lines_to("ready ").pop().expect("the last line");
    (server, ready)
}

/// Connections that send nothing.
fn strangers(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(to).expect("connected")).collect()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    match stream.read(&mut [0]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(why) => why.kind() != ErrorKind::WouldBlock,
    }
}

/// The status for a client without credentials at this local address.
fn status_from(here: &str, to: SocketAddr) -> u16 {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let here: SocketAddr = format!("{here}:0").parse().expect("an address");
    socket.bind(&here.into()).expect("bound");
    socket.connect_timeout(&to.into(), PATIENCE).expect("connected");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request =
        "GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

async fn create_table(client: &mut Client) {
    let name = br#"{"TableName":"Rows"}"#.to_vec();
    let made = client.send("POST", "/Tables", &[], JSON, name).await;
    assert_eq!(made.expect("an answer").status, 201);
}

async fn insert(client: &mut Client, row: u64) -> Answer {
    let text = "x".repeat(30_000);
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","Text":"{text}"}}"#);
    client.send("POST", "/Rows", &[], JSON, body.into_bytes()).await.expect("an answer")
}

async fn expect_row(client: &mut Client, row: u64) {
    let path = format!("/Rows(PartitionKey='p',RowKey='{row}')");
    let got = client.send("GET", &path, &[], JSON, Vec::new()).await;
    assert_eq!(got.expect("an answer").status, 200, "row {row} was acknowledged");
}

async fn list(client: &mut Client) -> u16 {
    let listed = client.send("GET", "/", &[("comp", "list")], &[], Vec::new()).await;
    listed.map_or(0, |answer| answer.status.as_u16())
}

/// More connections than there are descriptors, and more rows than fit into a few segments of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_leave_descriptors_to_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, ready) = started(folder.path(), "ulimit -n 512;", &["--data", "data"]);
    let mut client = Client::of_tables(socket_address(&ready, "table"));
    create_table(&mut client).await;
    let _idle = [
        strangers(socket_address(&ready, "blob"), 300),
        strangers(socket_address(&ready, "smb"), 300),
    ];
    const ROWS: u64 = 1500;
    for row in 0..ROWS {
        let answer = insert(&mut client, row).await;
        assert_eq!(answer.status, 201, "row {row}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(get(&address(&ready, "admin"), "/healthz").0, 200);
    for row in (0..ROWS).step_by(100) {
        expect_row(&mut client, row).await;
    }
    drop(server);
}

fn set_limit(server: &ChildProcess, current: u64) {
    let id = Pid::from_raw(server.id().cast_signed()).expect("a process id");
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    prlimit(Some(id), Resource::Nofile, Rlimit { current: Some(current), maximum }).expect("set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_go_on_when_there_are_descriptors_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, ready) = started(folder.path(), "", &["--data", "data"]);
    let mut client = Client::of_tables(socket_address(&ready, "table"));
    create_table(&mut client).await;
    set_limit(&server, 3);
    let mut row = 0;
    loop {
        let answer = insert(&mut client, row).await;
        if answer.status == 201 {
            row += 1;
            assert!(row < WRITES_MAX, "it has descriptors from somewhere");
            continue;
        }
        let body = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, 503, "{body}");
        assert!(body.contains("ServerBusy") && body.contains("open more files"), "{body}");
        break;
    }
    assert!(row > 0, "what needs no new file is written");
    set_limit(&server, 1024);
    let since = Instant::now();
    while insert(&mut client, row).await.status != 201 {
        assert!(since.elapsed() < PATIENCE, "it does not recover");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Enough for another segment of the log, and one more flush.
    for later in row + 1..row + 1200 {
        assert_eq!(insert(&mut client, later).await.status, 201);
    }
    assert_eq!(get(&address(&ready, "admin"), "/healthz").0, 200);
    for row in (0..row + 1200).step_by(97) {
        expect_row(&mut client, row).await;
    }
    drop((client, server));

    let (_server, ready) = started(folder.path(), "", &["--data", "data"]);
    let mut client = Client::of_tables(socket_address(&ready, "table"));
    for row in 0..row + 1200 {
        expect_row(&mut client, row).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_shut_nobody_out_of_any_service() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, ready) = started(folder.path(), "", &["--memory", "--max-connections", "40"]);
    let mut known = Client::new(socket_address(&ready, "blob"));
    assert_eq!(list(&mut known).await, 200);
    let mut idle = strangers(socket_address(&ready, "smb"), 60);
    idle.extend(strangers(socket_address(&ready, "blob"), 60));
    // Wait until all are accepted and the surplus is closed: forty that connect at the same time as a
    // client could take its place before it has authenticated.
    let begun = Instant::now();
    while idle.iter_mut().filter_map(|it| is_closed(it).then_some(())).count() < idle.len() - 40 {
        assert!(begun.elapsed() < PATIENCE, "too many are open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    for name in ["blob", "queue", "file"] {
        assert_eq!(list(&mut Client::new(socket_address(&ready, name))).await, 200, "{name}");
    }
    assert!(status_from("127.0.0.1", socket_address(&ready, "table")) >= 400);
    assert_eq!(list(&mut known).await, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let open = idle.iter_mut().filter_map(|it| (!is_closed(it)).then_some(())).count();
    assert!((1..=40).contains(&open), "{open} are open");
}

/// Sends SMB requests without end and reads no answers.
fn deaf_stranger(to: SocketAddr) -> TcpStream {
    let message = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
    let header = |command: u16, charge: u16, message_id: u64| {
        let mut header = b"\xFESMB\x40\0".to_vec();
        header.extend(charge.to_le_bytes());
        header.extend([0; 4]);
        header.extend(command.to_le_bytes());
        header.extend(64u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(message_id.to_le_bytes());
        header.extend([0; 32]);
        header
    };
    let mut stream = TcpStream::connect(to).expect("connected");
    // NEGOTIATE of dialect 3.0.2.
    let negotiate = [&[36, 0, 1, 0, 1][..], &[0; 31], &[2, 3]].concat();
    stream.write_all(&message(&[header(0, 0, 0), negotiate].concat())).expect("sent");
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("answered");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).expect("answered");
    // ECHO, until the server reads no more because its answers are not read.
    stream.set_write_timeout(Some(Duration::from_millis(200))).expect("set");
    for message_id in 1.. {
        let echo = message(&[header(13, 1, message_id), vec![4, 0, 0, 0]].concat());
        if stream.write_all(&echo).is_err() {
            return stream;
        }
    }
    unreachable!("it goes on until the server does not read")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_read_no_answers_shut_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, ready) = started(folder.path(), "", &["--memory", "--max-connections", "80"]);
    let smb = socket_address(&ready, "smb");
    let _deaf: Vec<TcpStream> = std::thread::scope(|scope| {
        let made: Vec<_> = (0..80).map(|_| scope.spawn(|| deaf_stranger(smb))).collect();
        made.into_iter().map(|made| made.join().expect("no panic")).collect()
    });
    let begun = Instant::now();
    // More than may be waiting to be sent at once.
    for _ in 0..80 {
        assert!(status_from("127.0.0.2", socket_address(&ready, "blob")) >= 400);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn address_with_every_connection_gives_some_up_for_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, ready) = started(folder.path(), "", &["--memory", "--max-connections", "40"]);
    let blob = socket_address(&ready, "blob");
    let mut clients: Vec<Client> = (0..40).map(|_| Client::new(blob)).collect();
    for client in &mut clients {
        assert_eq!(list(client).await, 200);
    }
    for _ in 0..10 {
        assert!(status_from("127.0.0.2", blob) >= 400);
    }
    // Legitimate clients still get in: one whose connection was closed makes another.
    for client in &mut clients {
        assert_eq!(list(client).await, 200);
    }
}
