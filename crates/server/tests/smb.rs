//! The SMB port of the real binary, without authentication: nothing can be done, whatever is sent.

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use holdfast_random::Random;
use holdfast_smb::status::Status;
use holdfast_smb::wire::header::TreeOrAsync;
use holdfast_smb::wire::{Command as Smb, Flags, Header};
use holdfast_testkit::process::{ChildProcess, command, socket_address};
use support::binary;

struct Server {
    _process: ChildProcess,
    address: SocketAddr,
}

fn start() -> Server {
    let off = ["--blob-port", "--queue-port", "--table-port", "--file-port", "--admin-port"];
    let mut command = command(binary(), &std::env::temp_dir());
    command
        .args(["--memory", "--smb-port", "0", "--log", "error"])
        .args(off.iter().flat_map(|port| [*port, "off"]))
        .stderr(Stdio::inherit());
    let process = ChildProcess::spawn(&mut command);
    let address = socket_address(&process.line(), "smb");
    Server { _process: process, address }
}

/// A client that sends arbitrary bytes.
struct Client(TcpStream);

impl Client {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        Self(stream)
    }

    fn send(&mut self, message: &[u8]) {
        let mut packet = (message.len() as u32).to_be_bytes().to_vec();
        packet.extend_from_slice(message);
        // The server may have closed the connection already.
        let _ = self.0.write_all(&packet);
    }

    /// The next message; `None` if the server has closed.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut prefix = [0; 4];
        match self.0.read_exact(&mut prefix) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer in time"),
            Err(_) => return None,
        }
        let mut message = vec![0; u32::from_be_bytes(prefix) as usize];
        self.0.read_exact(&mut message).ok()?;
        Some(message)
    }

    /// The status of the next answer; `None` if the server has closed.
    fn status(&mut self) -> Option<Status> {
        self.receive().map(|message| Status(Header::decode(&message).expect("a header").status))
    }
}

fn request(command: Smb, message_id: u64, session_id: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header {
        credit_charge: 1,
        status: 0,
        command: command as u16,
        credits: 10,
        flags: Flags::default(),
        next_command: 0,
        message_id,
        tree_or_async: TreeOrAsync::Tree(1),
        session_id,
        signature: [0; 16],
    }
    .encode(&mut out);
    out.extend_from_slice(body);
    out
}

const EMPTY: [u8; 4] = [4, 0, 0, 0];

fn negotiate(message_id: u64) -> Vec<u8> {
    let mut body = vec![36, 0, 1, 0, 1, 0, 0, 0];
    body.extend_from_slice(&[0; 28]);
    body.extend_from_slice(&0x0210u16.to_le_bytes());
    request(Smb::Negotiate, message_id, 0, &body)
}

fn session_setup(message_id: u64, token: &[u8]) -> Vec<u8> {
    let mut body = vec![25, 0, 0, 1];
    body.extend_from_slice(&[0; 8]);
    body.extend_from_slice(&88u16.to_le_bytes());
    body.extend_from_slice(&(token.len() as u16).to_le_bytes());
    body.extend_from_slice(&[0; 8]);
    body.extend_from_slice(token);
    request(Smb::SessionSetup, message_id, 0, &body)
}

#[test]
fn whoever_does_not_speak_the_protocol_is_hung_up_on() {
    let server = start();
    let response = {
        let mut header = Header::decode(&negotiate(0)).expect("a header");
        header.flags = Flags::RESPONSE;
        let mut out = Vec::new();
        header.encode(&mut out);
        out
    };
    for first in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[],
        &[0xFE, b'S', b'M', b'B'],
        &[0xFD, b'S', b'M', b'B', 0, 0],
        &[0xFF, b'S', b'M', b'B', 0x72],
        &response,
        &request(Smb::Echo, 0, 0, &EMPTY),
        &request(Smb::Create, 0, 1, &[0; 57]),
        &negotiate(1),
    ] {
        let mut client = Client::connect(&server);
        client.send(first);
        assert_eq!(client.receive(), None, "{first:?}");
    }
}

#[test]
fn a_stranger_gets_no_memory_for_a_long_message() {
    let server = start();
    for length in [16 * 1024 + 1, 0x00FF_FFFF, 0x8000_0000, u32::MAX] {
        let mut client = Client::connect(&server);
        client.0.write_all(&length.to_be_bytes()).expect("sent");
        assert_eq!(client.receive(), None, "{length:#x}");
    }
}

#[test]
fn what_was_agreed_on_is_agreed_on_once() {
    let server = start();
    let mut client = Client::connect(&server);
    client.send(&negotiate(0));
    assert_eq!(client.status(), Some(Status::SUCCESS));
    client.send(&negotiate(1));
    assert_eq!(client.receive(), None);
}

#[test]
fn a_number_is_good_for_one_message() {
    let server = start();
    let mut client = Client::connect(&server);
    client.send(&negotiate(0));
    assert_eq!(client.status(), Some(Status::SUCCESS));
    client.send(&request(Smb::Echo, 5, 0, &EMPTY));
    assert_eq!(client.status(), Some(Status::SUCCESS));
    client.send(&request(Smb::Echo, 5, 0, &EMPTY));
    assert_eq!(client.receive(), None);
}

#[test]
fn nothing_is_done_without_a_session() {
    let server = start();
    let mut client = Client::connect(&server);
    client.send(&negotiate(0));
    assert_eq!(client.status(), Some(Status::SUCCESS));
    for (message_id, command) in
        Smb::ALL.into_iter().filter(|command| *command as u16 > 1).zip(1u64..).map(|(a, b)| (b, a))
    {
        if matches!(command, Smb::Cancel) {
            continue;
        }
        client.send(&request(command, message_id, 77, &EMPTY));
        let expected = match matches!(command, Smb::Echo) {
            true => Status::SUCCESS,
            false => Status::USER_SESSION_DELETED,
        };
        assert_eq!(client.status(), Some(expected), "{command:?}");
    }
    for (message_id, token) in [(30, &b""[..]), (31, b"junk"), (32, b"NTLMSSP\0\x03\0\0\0")] {
        client.send(&session_setup(message_id, token));
        assert_eq!(client.status(), Some(Status::INVALID_PARAMETER), "{token:?}");
    }
}

#[test]
fn a_client_of_smb_1_is_told_what_there_is() {
    let server = start();
    for (name, dialect) in [("SMB 2.???", 0x02FF), ("SMB 2.002", 0x0202)] {
        let mut client = Client::connect(&server);
        let mut message = vec![0xFF, b'S', b'M', b'B', 0x72];
        message.resize(32, 0);
        let names = format!("\x02NT LM 0.12\0\x02{name}\0");
        message.push(0);
        message.extend_from_slice(&(names.len() as u16).to_le_bytes());
        message.extend_from_slice(names.as_bytes());
        client.send(&message);
        let answer = client.receive().expect("an answer");
        assert_eq!(answer[68..70], u16::to_le_bytes(dialect), "{name}");
        if dialect == 0x02FF {
            client.send(&negotiate(1));
            assert_eq!(client.status(), Some(Status::SUCCESS));
        }
    }
}

#[test]
fn requests_in_one_message_are_answered_in_one() {
    let server = start();
    let mut client = Client::connect(&server);
    client.send(&negotiate(0));
    assert_eq!(client.status(), Some(Status::SUCCESS));
    let mut first = request(Smb::Echo, 1, 0, &EMPTY);
    first.resize(72, 0);
    first[20..24].copy_from_slice(&72u32.to_le_bytes());
    first.extend(request(Smb::Close, 2, 5, &EMPTY));
    client.send(&first);
    let answer = client.receive().expect("an answer");
    let header = Header::decode(&answer).expect("a header");
    assert_eq!((header.status, header.next_command), (0, 72));
    let second = Header::decode(&answer[72..]).expect("a header");
    assert_eq!(second.status, Status::USER_SESSION_DELETED.0);
}

#[test]
fn packets_changed_at_random_do_not_harm_the_server() {
    let server = start();
    let mut random = Random::new(0x5EED);
    let originals = [
        negotiate(0),
        session_setup(1, b"NTLMSSP\0\x01\0\0\0\0\0\0\0"),
        request(Smb::Echo, 2, 0, &EMPTY),
    ];
    for _ in 0..300 {
        let mut client = Client::connect(&server);
        client.0.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
        client.send(&originals[0]);
        for original in &originals[1..] {
            let mut changed = original.clone();
            for _ in 0..3 {
                let place = random.below(changed.len() as u64) as usize;
                changed[place] = random.below(256) as u8;
            }
            client.send(&changed);
        }
    }
    let mut client = Client::connect(&server);
    client.send(&negotiate(0));
    assert_eq!(client.status(), Some(Status::SUCCESS));
}
