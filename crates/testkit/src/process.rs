//! A program as a child process: started, read line by line, watched with a time limit, and ended by its id.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libc::c_int;

/// Generous: CI machines are slow and shared.
pub const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// The program without settings from the environment of the tests.
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

/// The child gets the signal when this process ends, however that happens.
pub fn end_with_parent(command: &mut Command, signal: c_int) {
    // SAFETY: between fork and exec there is one call, which touches no memory.
    unsafe {
        command.pre_exec(move || match libc::prctl(libc::PR_SET_PDEATHSIG, signal) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Runs a command that is expected to end by itself.
pub fn output(command: &mut Command) -> Output {
    output_within(command, PATIENCE)
}

/// The same for one that may take as long as this.
pub fn output_within(command: &mut Command, time: Duration) -> Output {
    let mut child = command.spawn().expect("started");
    let (stdout, stderr) = (read_aside(child.stdout.take()), read_aside(child.stderr.take()));
    let status = wait_at_most(&mut child, time);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let [stdout, stderr] = [stdout, stderr].map(|read| read.join().expect("no reader panicked"));
    let status = status.unwrap_or_else(|| {
        let said = [stdout.as_slice(), &stderr].concat();
        let said = String::from_utf8_lossy(&said);
        panic!("process {} did not end within {time:?}: {said}", child.id())
    });
    Output { status, stdout, stderr }
}

/// Reads to the end while the program runs, so that it never waits for a reader.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child) -> ExitStatus {
    wait_at_most(child, PATIENCE).unwrap_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("process {} did not end within {PATIENCE:?}", child.id())
    })
}

fn wait_at_most(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return Some(status);
        }
        if begun.elapsed() > time {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// A process that is killed when this is dropped, like a crash.
pub struct ChildProcess {
    child: Child,
    /// Behind a lock, so that threads can share the process.
    lines: Mutex<Receiver<String>>,
}

impl ChildProcess {
    pub fn start<A: AsRef<OsStr>>(program: &Path, folder: &Path, arguments: &[A]) -> Self {
        Self::spawn(command(program, folder).args(arguments).stderr(Stdio::null()))
    }

    pub fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).expect("started")
    }

    pub fn try_spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        // Read to the end even if no more is needed, so that the program never blocks on its output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, lines: Mutex::new(lines) })
    }

    /// The next line of its standard output; `None` if there is none in time or it has ended.
    pub fn next_line(&self, time: Duration) -> Option<String> {
        self.lines.lock().expect("no reader panicked").recv_timeout(time).ok()
    }

    pub fn line(&self) -> String {
        self.next_line(PATIENCE).expect("a line within the time limit")
    }

    /// The lines up to the first that begins so, included.
    pub fn lines_to(&self, beginning: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(|line| line.starts_with(beginning)) {
                return lines;
            }
        }
    }

    /// What was printed after the process ended.
    pub fn rest(&self) -> Vec<String> {
        self.lines.lock().expect("no reader panicked").iter().collect()
    }

    /// Its standard input, which the command must have piped.
    pub fn input(&mut self) -> &mut ChildStdin {
        self.child.stdin.as_mut().expect("standard input is piped")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: c_int) {
        let id = libc::pid_t::try_from(self.child.id()).expect("a process id");
        // SAFETY: `kill` touches no memory of ours. The child has not been waited for, so its id is still
        // its own: `ended` is not called before.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    pub fn ended(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// `None` if it runs longer.
    pub fn ended_within(&mut self, time: Duration) -> Option<ExitStatus> {
        wait_at_most(&mut self.child, time)
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub fn kill(&mut self) {
        self.child.kill().expect("it was still running");
        self.child.wait().expect("it can be waited for");
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Neither can fail for an existing child.
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

/// Its host and port.
pub fn socket_address(ready: &str, name: &str) -> SocketAddr {
    let address = address(ready, name);
    let host = address.split('/').next().and_then(|host| host.trim().parse().ok());
    host.unwrap_or_else(|| panic!("no address of {name} in {ready}"))
}
