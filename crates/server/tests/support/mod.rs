//! How tests start the real binary.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use holdfast_random::{Random, seed_of_this_run, setting};
use holdfast_testkit::process::{ChildProcess, command, socket_address};

/// Far more than a start takes, so that only a server that hangs exceeds it.
const START_MAX: Duration = Duration::from_secs(60);

pub const FREE_PORTS: [&str; 12] = [
    "--smb-port",
    "0",
    "--blob-port",
    "0",
    "--queue-port",
    "0",
    "--table-port",
    "0",
    "--file-port",
    "0",
    "--admin-port",
    "0",
];

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_holdfast"))
}

/// The server over a folder. Dropping it kills it with SIGKILL, as a crash would.
pub struct Server {
    process: ChildProcess,
    pub blob: SocketAddr,
    pub queue: SocketAddr,
    pub table: SocketAddr,
    pub file: SocketAddr,
    /// `None` if it is not served.
    pub smb: Option<SocketAddr>,
}

impl Server {
    /// Starts the binary on free ports over `data` and waits until it accepts connections. Its log is
    /// appended to `log`, which outlives it.
    pub fn start(data: &Path, log: &Path) -> Self {
        Self::start_on(data, log, ["0"; 4])
    }

    pub fn start_with_smb(data: &Path, log: &Path) -> Self {
        Self::spawn(Self::command(log), data, log, ["0"; 4], "0")
    }

    /// The same on given ports for Blob, Queue, Table and File.
    pub fn start_on(data: &Path, log: &Path, ports: [&str; 4]) -> Self {
        Self::spawn(Self::command(log), data, log, ports, "off")
    }

    /// What starts the binary in the folder of its log, for those who have something to add to it.
    pub fn command(log: &Path) -> Command {
        command(binary(), log.parent().expect("the log is in a folder"))
    }

    pub fn start_as(command: Command, data: &Path, log: &Path) -> Self {
        Self::spawn(command, data, log, ["0"; 4], "off")
    }

    fn spawn(
        mut command: Command,
        data: &Path,
        log: &Path,
        ports: [&str; 4],
        smb_port: &str,
    ) -> Self {
        let errors = File::options().create(true).append(true).open(log).expect("the log opens");
        let flags = ["--blob-port", "--queue-port", "--table-port", "--file-port"];
        command
            .arg("--data")
            .arg(data)
            .args(flags.iter().zip(ports).flat_map(|(flag, port)| [flag, port]))
            .args(["--admin-port", "0", "--smb-port", smb_port, "--log", "warn"])
            .stderr(errors);
        let mut process = ChildProcess::spawn(&mut command);
        let ready = process.next_line(START_MAX).unwrap_or_else(|| {
            let how =
                if process.ended_within(Duration::ZERO).is_some() { "has ended" } else { "hangs" };
            let said = std::fs::read_to_string(log).unwrap_or_default();
            panic!("the server {how} before its ready line: {said}");
        });
        let [blob, queue, table, file] =
            ["blob", "queue", "table", "file"].map(|name| socket_address(&ready, name));
        let smb = (smb_port != "off").then(|| socket_address(&ready, "smb"));
        Self { process, blob, queue, table, file, smb }
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// Runs a test that ends the server by `what` `HOLDFAST_{what}_CYCLES` times, with the random
/// choices of `HOLDFAST_{what}_SEED`; both are printed, so that a failure can be repeated.
pub fn in_cycles(what: &str, cycles_default: u64, run: impl AsyncFnOnce(u64, &mut Random)) {
    let cycles = setting(&format!("HOLDFAST_{what}_CYCLES")).unwrap_or(cycles_default);
    println!("HOLDFAST_{what}_CYCLES={cycles}");
    let seed = seed_of_this_run(&format!("HOLDFAST_{what}_SEED"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(run(cycles, &mut Random::new(seed)));
}

/// Printed without capture, so that a skipped test is not mistaken for a passed one.
pub fn say_skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}
