//! `kill -9` of the real binary, and power cuts of its disk (`power`), while 64 writers work on all four
//! services: what was acknowledged is there after the restart, and no operation is half done.
//!
//! Each service has its own workload, which knows what was acknowledged. An operation without an
//! answer may have happened or not; everything else must be exactly as acknowledged.
//!
//! `HOLDFAST_KILL_CYCLES` sets the number of kills, `HOLDFAST_KILL_SEED` repeats the choices of a run
//! (but not their interleaving); `HOLDFAST_POWER_CYCLES` and `HOLDFAST_POWER_SEED` do so for power
//! cuts.

mod blobs;
mod disk;
mod files;
mod parts;
mod power;
mod queues;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use holdfast_random::Random;
use holdfast_testkit::client::Client;
use support::{Server, in_cycles};
use tokio::task::JoinHandle;

const CYCLES_DEFAULT: u64 = 20;
const WRITERS: u64 =
    blobs::WRITERS + parts::WRITERS + tables::WRITERS + queues::WORKERS + files::WRITERS;

/// How the server ends in each cycle, and what the next one finds.
trait Ending {
    fn start(&mut self) -> Server;

    /// Ends the server. Answers after `killed` was set count as missing.
    fn end(&mut self, server: Server, killed: &Killed);
}

struct Kill {
    data: PathBuf,
    log: PathBuf,
}

impl Ending for Kill {
    fn start(&mut self) -> Server {
        Server::start(&self.data, &self.log)
    }

    fn end(&mut self, mut server: Server, killed: &Killed) {
        killed.set();
        server.kill();
    }
}

/// The load on one service, and the checks after a kill.
#[async_trait]
trait Workload: Send {
    fn name(&self) -> &'static str;

    /// Called once, before the first cycle.
    async fn prepare(&mut self, server: &Server);

    /// Starts the writers of one cycle.
    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random);

    /// Waits for the writers, after the server has ended.
    async fn end(&mut self);

    /// Compares the server's state after the restart with what was acknowledged.
    async fn check(&mut self, server: &Server);

    /// Called once, after the last cycle.
    async fn finish(&mut self, _server: &Server) {}

    fn operations(&self) -> u64;
}

/// Whether the server of this cycle has ended: the only reason for a missing answer.
#[derive(Clone, Default)]
struct Killed(Arc<AtomicBool>);

impl Killed {
    fn is(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn limit(&self, client: Client) -> Client {
        client.until(self.0.clone())
    }

    fn expect(&self) {
        assert!(self.is(), "a connection broke while the server ran");
    }
}

async fn joined<T>(writers: &mut Vec<JoinHandle<T>>) -> Vec<T> {
    let mut left = Vec::new();
    for writer in writers.drain(..) {
        left.push(writer.await.expect("no writer saw anything wrong"));
    }
    left
}

fn all_workloads() -> Vec<Box<dyn Workload>> {
    vec![
        Box::<blobs::Blobs>::default(),
        Box::<parts::Parts>::default(),
        Box::<tables::Tables>::default(),
        Box::<queues::Queues>::default(),
        Box::<files::Files>::default(),
    ]
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    assert_eq!(WRITERS, 64);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut kill = Kill { data: folder.path().join("data"), log: folder.path().join("log") };
    in_cycles("KILL", CYCLES_DEFAULT, async |cycles, random| {
        run(&mut kill, &mut all_workloads(), cycles, random).await;
    });
}

async fn run(
    ending: &mut dyn Ending,
    workloads: &mut [Box<dyn Workload>],
    cycles: u64,
    random: &mut Random,
) {
    let mut server = ending.start();
    for workload in workloads.iter_mut() {
        workload.prepare(&server).await;
    }
    for cycle in 1..=cycles {
        let killed = Killed::default();
        for workload in workloads.iter_mut() {
            workload.begin(&server, &killed, random).await;
        }
        tokio::time::sleep(Duration::from_millis(150 + random.below(1350))).await;
        ending.end(server, &killed);
        for workload in workloads.iter_mut() {
            workload.end().await;
        }
        let killed_at = Instant::now();
        server = ending.start();
        let started = killed_at.elapsed();
        let mut counts = String::new();
        for workload in workloads.iter_mut() {
            workload.check(&server).await;
            counts += &format!(" {} {}", workload.name(), workload.operations());
        }
        println!("cycle {cycle}: started in {started:.1?}; operations so far:{counts}");
    }
    for workload in workloads.iter_mut() {
        workload.finish(&server).await;
        let enough = workload.operations() > 2 * cycles;
        assert!(enough, "there was hardly any load of {}", workload.name());
    }
}
