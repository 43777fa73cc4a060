//! Power cuts under the whole server: its data folder is on a separate disk, of which an image is
//! taken atomically, under load. The next server starts on the image, and the load continues there.
//!
//! If no disk can be mounted the tests are skipped and say so. With `HOLDFAST_POWER_CYCLES` set
//! they fail instead.

#![allow(unsafe_code, reason = "tests only: what a child does before it becomes the server")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use libc::{c_long, sock_filter, sock_fprog};

use crate::disk::Disk;
use crate::support::{Server, in_cycles, say_skipped};
use crate::{Ending, Killed, all_workloads, run};
use holdfast_random::{Random, setting};
use holdfast_testkit::process::end_with_parent;

const CYCLES_DEFAULT: u64 = 3;
/// One in so many starts has its power cut, too.
const STARTS_PER_CUT: u64 = 4;
/// About as long as a start takes.
const START_MILLISECONDS: u64 = 300;

struct PowerCut {
    disk: Disk,
    cuts_of_starts: Option<Random>,
    /// After so many cuts the server only pretends to sync.
    pretends_after: Option<u64>,
}

impl PowerCut {
    fn launch(&self) -> Server {
        let syncs = self.pretends_after != Some(self.disk.cuts());
        launch(&self.disk.root().join("data"), &self.disk.elsewhere().join("log"), syncs)
    }

    /// Nothing is acknowledged during a start, but it changes the folder.
    fn cut_start(&mut self, after: Duration) {
        let (data, log) = (self.disk.root().join("data"), self.disk.elsewhere().join("log"));
        let cut = thread::scope(|scope| {
            let starting = scope.spawn(|| launch(&data, &log, true));
            thread::sleep(after);
            let cut = self.disk.cut(|| ());
            drop(starting.join().expect("it starts"));
            cut
        });
        self.disk.restore(cut);
    }
}

impl Ending for PowerCut {
    fn start(&mut self) -> Server {
        if let Some(random) = &mut self.cuts_of_starts
            && random.below(STARTS_PER_CUT) == 0
        {
            let after = Duration::from_millis(random.below(START_MILLISECONDS));
            self.cut_start(after);
        }
        self.launch()
    }

    fn end(&mut self, server: Server, killed: &Killed) {
        let cut = self.disk.cut(|| killed.set());
        drop(server);
        self.disk.restore(cut);
    }
}

fn launch(data: &Path, log: &Path, syncs: bool) -> Server {
    let mut command = Server::command(log);
    // A server that outlives the test would keep its disk mounted.
    end_with_parent(&mut command, libc::SIGKILL);
    if !syncs {
        pretend_to_sync(&mut command);
    }
    Server::start_as(command, data, log)
}

/// Every sync call succeeds and does nothing.
fn pretend_to_sync(command: &mut Command) {
    const CALLS: [c_long; 5] = [
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_syncfs,
        libc::SYS_sync_file_range,
        libc::SYS_msync,
    ];
    let step = |code: u32, if_so: usize, k: u32| sock_filter {
        code: code as u16,
        jt: if_so as u8,
        jf: 0,
        k,
    };
    // The number of the call is the first word of the filter's input.
    let mut filter = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in CALLS.iter().enumerate() {
        let is_call = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(step(is_call, CALLS.len() - at, *call as u32));
    }
    filter.push(step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    // "Fails" with error 0, which is success.
    filter.push(step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO));
    // SAFETY: between fork and exec there are two calls; the filter outlives them.
    unsafe {
        command.pre_exec(move || {
            let program =
                sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            let filtered = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0;
            if filtered { Ok(()) } else { Err(io::Error::last_os_error()) }
        });
    }
}

/// `None` if it is not possible and not required.
fn disk_for(test: &str) -> Option<Disk> {
    match Disk::new() {
        Ok(disk) => Some(disk),
        Err(why) => {
            assert_eq!(setting("HOLDFAST_POWER_CYCLES"), None, "no disk of its own: {why}");
            say_skipped(test, &why.to_string());
            None
        }
    }
}

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    let Some(disk) = disk_for("what_was_acknowledged_survives_power_cuts") else { return };
    in_cycles("POWER", CYCLES_DEFAULT, async |cycles, random| {
        let cuts_of_starts = Some(Random::new(random.number()));
        let mut power = PowerCut { disk, cuts_of_starts, pretends_after: None };
        run(&mut power, &mut all_workloads(), cycles, random).await;
        let starts = power.disk.cuts() - cycles;
        println!("{cycles} power cuts under load and {starts} during starts");
    });
}

/// Shows that the test above can fail: each workload alone detects that nothing was synced.
#[test]
fn server_that_only_pretends_to_sync_is_found_out_after_a_power_cut() {
    let name = "server_that_only_pretends_to_sync_is_found_out_after_a_power_cut";
    let mut idle = Command::new("true");
    pretend_to_sync(&mut idle);
    if let Err(why) = idle.stdin(Stdio::null()).status() {
        return say_skipped(name, &format!("calls of a process cannot be filtered: {why}"));
    }
    for workload in all_workloads() {
        let Some(disk) = disk_for(name) else { return };
        let what = workload.name();
        let mut power = PowerCut { disk, cuts_of_starts: None, pretends_after: Some(1) };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(run(&mut power, &mut [workload], 2, &mut Random::new(1)));
        }));
        assert_eq!(power.disk.cuts(), 2, "{what}: it failed before anything could be lost");
        assert!(ended.is_err(), "{what}: nobody has noticed");
    }
}
