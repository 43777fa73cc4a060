//! One file written and read by REST and SMB clients at once, checked as one history.
//!
//! SMB is spoken by the package smbprotocol, in processes of their own (`tests/smb/slots.py`);
//! `scripts/setup` installs it.

mod support;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_testkit::process::ChildProcess;
use holdfast_verify::account::{Account, DEVELOPMENT_KEY, DEVELOPMENT_NAME, Service};
use holdfast_verify::connection::Connection;
use holdfast_verify::content::{self, PIECE_BYTES};
use holdfast_verify::file::http::{FileTarget, slots};
use holdfast_verify::file::{Answer, FileWorkload, Request, SLOT_BYTES};
use holdfast_verify::record::{Extent, Target, Workload, record};
use holdfast_verify::scratch_space;
use support::Server;

/// An SMB client process, which answers line by line.
struct Smb(ChildProcess);

impl Smb {
    fn start(address: SocketAddr, share: &str, file: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = root.join(".local/python/bin/python");
        assert!(python.is_file(), "run scripts/setup first: it installs a client of SMB");
        let mut command = Command::new(python);
        command
            .arg(root.join("tests/smb/slots.py"))
            .args([share, file, DEVELOPMENT_NAME])
            .env("CONFORMANCE_SMB_ENDPOINT", format!("smb://{address}"))
            .env("ACCOUNT_KEY", DEVELOPMENT_KEY)
            .stdin(Stdio::piped());
        Self(ChildProcess::spawn(&mut command))
    }

    fn ask(&mut self, request: &Request) -> Answer {
        let line = match request {
            Request::Write { slots, value } => {
                let bytes = content::encode(*value, slots.len() * SLOT_BYTES / PIECE_BYTES);
                let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("write {} {hexadecimal}", slots.start * SLOT_BYTES)
            }
            Request::Get | Request::Create | Request::Clear { .. } | Request::Delete => {
                "read".to_owned()
            }
        };
        writeln!(self.0.input(), "{line}").expect("the client reads");
        let answer = self.0.line();
        match answer.trim().split_once(' ') {
            None if answer.trim() == "written" => Answer::Written { etag: None },
            Some(("read", hexadecimal)) => {
                let pairs = hexadecimal.as_bytes().chunks(2);
                let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
                let bytes = pairs.map(byte).collect::<Option<Vec<u8>>>().unwrap_or_default();
                match slots(&bytes) {
                    Some(slots) => Answer::Read { slots, etag: None },
                    None => Answer::Nonsense(format!("{} bytes by SMB", bytes.len())),
                }
            }
            Some(("refused", "STATUS_OBJECT_NAME_NOT_FOUND")) => {
                Answer::Refused { status: 404, code: "ResourceNotFound".to_owned() }
            }
            _ => Answer::Nonsense(answer),
        }
    }
}

enum Client {
    Rest(Box<FileTarget>),
    Smb(Smb),
}

impl Target<FileWorkload> for Client {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        match self {
            Self::Rest(target) => target.call(request).await,
            Self::Smb(smb) => Some(tokio::task::block_in_place(|| smb.ask(request))),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn histories_of_one_file_by_both_protocols_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start_with_smb(&folder.path().join("data"), &folder.path().join("log"));
    let smb = server.smb.expect("SMB is served");
    let url = |_| Some(format!("http://{}/devstoreaccount1", server.file));
    let account = Arc::new(Account::development(url).expect("the address is valid"));
    let mut connection = Connection::new(Arc::clone(&account), Service::File);
    let share = scratch_space::create(&mut connection, Service::File).await.expect("a share");

    for (round, seed) in [5_u64, 6, 7].into_iter().enumerate() {
        let file = format!("file{round}");
        let rest = |_| {
            Client::Rest(Box::new(FileTarget {
                connection: Connection::new(Arc::clone(&account), Service::File),
                path: format!("/{share}/{file}"),
            }))
        };
        let mut clients: Vec<Client> = (0..3).map(rest).collect();
        clients.extend((0..3).map(|_| Client::Smb(Smb::start(smb, &share, &file))));
        let extent = Extent { operations_per_client: 80, duration_max: Duration::from_secs(20) };
        let begun = tokio::time::Instant::now();
        let workload = FileWorkload::Shared;
        let (history, _) = record(&workload, clients, seed, begun, extent).await;
        let verdict = workload.check(&history);
        assert!(!verdict.is_unjudged);
        assert!(verdict.violations.is_empty(), "seed {seed}: {}", verdict.violations[0]);
        assert!(history.len() > 100, "only {} operations", history.len());
    }
}
