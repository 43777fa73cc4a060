//! The whole server under injected faults: a disk that fails, a wall clock that jumps.
//!
//! The test binary is its own server: it starts itself again with `DATA` set, and its `write`, `pwrite`,
//! `fsync`, `clock_gettime` and similar functions replace those of the C library. They do the same,
//! except that one call on a regular file fails with EIO if requested, and the wall clock is off by a
//! requested time.

#![allow(unsafe_code, reason = "tests only: functions of the C library are taken the place of")]

mod clock;
mod disk;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use holdfast_testkit::client::get;
use holdfast_testkit::process::{ChildProcess, address, socket_address};
use libc::{c_int, c_void, clockid_t, iovec, off_t, size_t, ssize_t, timespec};

const DATA: &str = "TEST_SERVER_DATA";
const FAIL_AFTER: &str = "TEST_SERVER_FAILS_AFTER";
const NEVER: i64 = -1;
/// Far more than a start takes, so that only a server that hangs exceeds it.
const START_MAX: Duration = Duration::from_secs(60);

/// How many seconds the wall clock of this process is ahead.
static WALL_CLOCK_AHEAD: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The same for the thread of one test, since other tests run in the process.
    static CLIENT_CLOCK_AHEAD: Cell<i64> = const { Cell::new(0) };
}
/// How many more calls succeed before one fails; negative if none fails.
static CALLS_LEFT: AtomicI64 = AtomicI64::new(NEVER);

fn fails_now(descriptor: c_int) -> bool {
    if CALLS_LEFT.load(Ordering::Relaxed) < 0 {
        return false;
    }
    // SAFETY: all zeros are a valid value of the structure, which outlives the call.
    let is_file = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        let known = libc::fstat(descriptor, &mut found) == 0;
        known && matches!(found.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR)
    };
    is_file && CALLS_LEFT.fetch_sub(1, Ordering::Relaxed) == 0
}

/// Safety is as in the C library throughout.
#[allow(clippy::missing_safety_doc, reason = "they are the C library's")]
mod interposed {
    use super::*;

    macro_rules! interpose {
        ($(fn $name:ident($descriptor:ident: c_int $(, $argument:ident: $kind:ty)*) -> $result:ty
            = $call:ident($($passed:expr),*);)*) => {
            $(
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $name($descriptor: c_int $(, $argument: $kind)*) -> $result {
                    if fails_now($descriptor) {
                        // SAFETY: the location is this thread's own.
                        unsafe { *libc::__errno_location() = libc::EIO };
                        return -1;
                    }
                    // SAFETY: the caller's promise.
                    unsafe { libc::syscall(libc::$call, $descriptor $(, $passed)*) as $result }
                }
            )*
        };
    }

    interpose! {
        fn write(descriptor: c_int, bytes: *const c_void, count: size_t) -> ssize_t
            = SYS_write(bytes, count);
        fn pwrite(descriptor: c_int, bytes: *const c_void, count: size_t, at: off_t) -> ssize_t
            = SYS_pwrite64(bytes, count, at);
        fn pwrite64(descriptor: c_int, bytes: *const c_void, count: size_t, at: off_t) -> ssize_t
            = SYS_pwrite64(bytes, count, at);
        fn pwritev(descriptor: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t
            = SYS_pwritev(parts, count, at, 0);
        fn pwritev64(descriptor: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t
            = SYS_pwritev(parts, count, at, 0);
        fn fsync(descriptor: c_int) -> c_int = SYS_fsync();
        fn fdatasync(descriptor: c_int) -> c_int = SYS_fdatasync();
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            let done = libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int;
            if done == 0 && clock == libc::CLOCK_REALTIME {
                let ahead = WALL_CLOCK_AHEAD.load(Ordering::Relaxed);
                (*time).tv_sec += ahead + CLIENT_CLOCK_AHEAD.get();
            }
            done
        }
    }
}

/// The server itself, if this binary is started for that; otherwise an empty test. Numbers on standard
/// input set how far the wall clock is ahead from then on.
#[test]
fn server_process() {
    let (Some(data), Ok(after)) = (std::env::var_os(DATA), std::env::var(FAIL_AFTER)) else {
        return;
    };
    follow_jump();
    std::thread::spawn(|| while follow_jump() {});
    CALLS_LEFT.store(after.parse().expect("a number"), Ordering::Relaxed);
    let mut arguments = vec!["holdfast".into(), "--data".into(), data];
    arguments.extend(["--log", "off", "--smb-port", "off"].map(Into::into));
    for service in ["blob", "queue", "table", "file", "admin"] {
        arguments.extend([format!("--{service}-port").into(), "0".into()]);
    }
    let prepared = crate::prepare(&arguments, &BTreeMap::new()).expect("good settings");
    if let Err(error) = crate::run::run(prepared) {
        panic!("{}", crate::with_reasons(error.as_ref()));
    }
}

/// Returns whether there was one.
fn follow_jump() -> bool {
    let mut line = String::new();
    if !std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        return false;
    }
    let ahead = line.trim_end().parse().expect("a number of seconds");
    WALL_CLOCK_AHEAD.store(ahead, Ordering::Relaxed);
    true
}

struct Server {
    process: ChildProcess,
    blob: SocketAddr,
    queue: SocketAddr,
    file: SocketAddr,
    admin: String,
}

impl Server {
    /// `None` if the failure came before it was ready, and it has ended.
    fn start(data: &Path, fail_after: i64, clock_ahead: i64) -> Option<Self> {
        let name = format!("{}::server_process", module_path!().split_once("::")?.1);
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args([&name, "--exact", "--nocapture"])
            .env(DATA, data)
            .env(FAIL_AFTER, fail_after.to_string())
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = ChildProcess::spawn(&mut command);
        set_clock(&mut process, clock_ahead);
        let lines = std::iter::from_fn(|| process.next_line(START_MAX));
        let ready = lines.into_iter().find(|line| line.starts_with("ready "));
        let Some(ready) = ready else {
            assert!(!process.ended().success(), "it ended as if all were well");
            return None;
        };
        let [blob, queue, file] =
            ["blob", "queue", "file"].map(|service| socket_address(&ready, service));
        Some(Self { process, blob, queue, file, admin: address(&ready, "admin") })
    }

    fn is_healthy(&self) -> bool {
        get(&self.admin, "/healthz").0 == 200
    }
}

fn set_clock(process: &mut ChildProcess, seconds_ahead: i64) {
    writeln!(process.input(), "{seconds_ahead}").expect("the server reads its input");
}
