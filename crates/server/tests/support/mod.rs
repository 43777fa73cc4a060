//! What tests of the real binary share: the process, a signing client, seeded randomness.

#![allow(dead_code, reason = "each test file uses some of it")]

pub mod client;
pub mod random;

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use random::Random;

/// Far above what a start takes, so that only a server that hangs gets there.
const START_SECONDS_MAX: u64 = 60;

/// The server as a child process. Dropping it kills it with SIGKILL, as a crash would.
pub struct Server {
    process: Child,
    pub blob: SocketAddr,
    pub queue: SocketAddr,
    pub table: SocketAddr,
    pub file: SocketAddr,
    /// None where it is not served.
    pub smb: Option<SocketAddr>,
}

impl Server {
    /// Starts the binary on free ports over `data` and waits until it accepts connections. Its log is
    /// appended to `log`, which outlives it.
    pub fn start(data: &Path, log: &Path) -> Self {
        Self::start_on(data, log, ["0"; 4])
    }

    pub fn start_with_smb(data: &Path, log: &Path) -> Self {
        Self::spawn(data, log, ["0"; 4], "0")
    }

    /// The same on given ports for Blob, Queue, Table and File.
    pub fn start_on(data: &Path, log: &Path, ports: [&str; 4]) -> Self {
        Self::spawn(data, log, ports, "off")
    }

    fn spawn(data: &Path, log: &Path, ports: [&str; 4], smb_port: &str) -> Self {
        Self::spawn_as(Self::command(), data, log, ports, smb_port)
    }

    /// What starts the binary, for those who have something to add to it.
    pub fn command() -> Command {
        Command::new(env!("CARGO_BIN_EXE_holdfast"))
    }

    pub fn start_as(command: Command, data: &Path, log: &Path) -> Self {
        Self::spawn_as(command, data, log, ["0"; 4], "off")
    }

    fn spawn_as(
        mut command: Command,
        data: &Path,
        log: &Path,
        ports: [&str; 4],
        smb_port: &str,
    ) -> Self {
        let errors = File::options().create(true).append(true).open(log).expect("the log opens");
        let flags = ["--blob-port", "--queue-port", "--table-port", "--file-port"];
        let mut process = command
            .arg("--data")
            .arg(data)
            .args(flags.iter().zip(ports).flat_map(|(flag, port)| [flag, port]))
            .args(["--admin-port", "0", "--smb-port", smb_port, "--log", "warn"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("the binary starts");

        let output = process.stdout.take().expect("standard output is piped");
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let line = BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .find(|line| line.starts_with("ready "));
            // The receiver is gone only if it gave up waiting.
            let _ = sender.send(line);
        });
        let ready = match receiver.recv_timeout(Duration::from_secs(START_SECONDS_MAX)) {
            Ok(Some(line)) => line,
            not_ready @ (Ok(None) | Err(_)) => {
                let _ = process.kill();
                let how = if not_ready.is_ok() { "has ended" } else { "hangs" };
                let said = std::fs::read_to_string(log).unwrap_or_default();
                panic!("the server {how} before its ready line: {said}");
            }
        };
        let [blob, queue, table, file] =
            ["blob", "queue", "table", "file"].map(|name| address(&ready, name, "http"));
        let smb = (smb_port != "off").then(|| address(&ready, "smb", "smb"));
        Self { process, blob, queue, table, file, smb }
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub fn kill(&mut self) {
        self.process.kill().expect("the server was still running");
        self.process.wait().expect("the server can be waited for");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The host and port of `service=scheme://HOST:PORT[/...]` in the ready line.
fn address(ready: &str, service: &str, scheme: &str) -> SocketAddr {
    let prefix = format!("{service}={scheme}://");
    ready
        .split(' ')
        .find_map(|word| word.strip_prefix(&prefix))
        .and_then(|rest| rest.split('/').next())
        .and_then(|address| address.parse().ok())
        .unwrap_or_else(|| panic!("no {service} address in: {ready}"))
}

/// Runs a test that ends the server by `what` `HOLDFAST_{what}_CYCLES` times, in the way that
/// `HOLDFAST_{what}_SEED` decides; both are printed, so that a failure can be repeated.
pub fn in_cycles(what: &str, cycles_default: u64, run: impl AsyncFnOnce(u64, &mut Random)) {
    let cycles = setting(&format!("HOLDFAST_{what}_CYCLES")).unwrap_or(cycles_default);
    let seed = setting(&format!("HOLDFAST_{what}_SEED")).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        now.as_nanos() as u64
    });
    println!("HOLDFAST_{what}_SEED={seed} HOLDFAST_{what}_CYCLES={cycles}");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(run(cycles, &mut Random::new(seed)));
}

pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Said past the capture of tests that pass: nobody must take what was skipped for what was shown.
pub fn say_skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}
