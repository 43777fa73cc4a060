//! The real binary as a child process: started, watched with a time limit, and ended by its id.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Generous: CI machines are slow and shared.
pub const PATIENCE: Duration = Duration::from_secs(20);

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

/// The program without any setting of the machine the tests run on.
pub fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("HOLDFAST_") || text.starts_with("AZURITE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command that is expected to end by itself.
pub fn output(command: &mut Command) -> Output {
    let mut child = command.spawn().expect("started");
    let status = wait(&mut child);
    let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    out.as_mut().map(|out| out.read_to_end(&mut output.stdout));
    err.as_mut().map(|err| err.read_to_end(&mut output.stderr));
    output
}

fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end within {PATIENCE:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server that is killed when the test ends, however it ends.
pub struct Server {
    child: Child,
    lines: Receiver<String>,
}

impl Server {
    pub fn start<A: AsRef<OsStr>>(program: &Path, folder: &Path, arguments: &[A]) -> Self {
        Self::spawn(command(program, folder).args(arguments).stderr(Stdio::null()))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("started");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line within the time limit")
    }

    /// Lines up to and with the first that begins so.
    pub fn lines_to(&self, beginning: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(|line| line.starts_with(beginning)) {
                return lines;
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: libc::c_int) {
        let id = libc::pid_t::try_from(self.child.id()).expect("a process id");
        // SAFETY: `kill` touches no memory of ours, and the child has not been waited for yet, so
        // its id is still its own.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    pub fn ended(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// What was printed after the server ended.
    pub fn rest(&self) -> Vec<String> {
        self.lines.iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address after `name=http://` (or the scheme of another protocol) in a ready line.
pub fn address(ready: &str, name: &str) -> String {
    let start = format!("{name}=");
    let field = ready.split(' ').find_map(|field| field.strip_prefix(&start));
    let field = field.and_then(|url| url.split_once("://")).map(|(_, address)| address);
    field.unwrap_or_else(|| panic!("{name} in {ready}")).to_owned()
}

/// Status and body of a GET.
pub fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.expect("a status"), body.expect("a body"))
}
