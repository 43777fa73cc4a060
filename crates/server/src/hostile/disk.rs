//! A disk that fails once: the failed write or sync is never acknowledged, the server reports that it
//! accepts no more writes, reads work, and after a restart everything acknowledged is there.
//!
//! `HOLDFAST_FAULT_ROUNDS` sets the number of failures, `HOLDFAST_TEST_SEED` repeats their places.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_random::{Random, seed_of_this_run, setting};
use holdfast_testkit::client::Client;

use super::{NEVER, Server};

const ROUNDS_DEFAULT: u64 = 12;
/// A start in a new folder needs about 50 calls; this reaches a little beyond it.
const CALLS_OF_START: u64 = 64;
const LATER_CALLS_MAX: u64 = 1024;
const WRITERS: u64 = 8;
const WRITES_PER_WRITER_MAX: u64 = 1500;
const PATIENCE: Duration = Duration::from_secs(60);

/// Short enough for a row, for one extent, and for a stream of several chunks.
fn content(name: &str) -> Vec<u8> {
    let lengths = [300, 20_000, 2_500_000];
    let mut random =
        Random::new(name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(byte)));
    let at = random.below(32) as usize;
    random.bytes(lengths[if at == 31 { 2 } else { at % 2 }])
}

#[derive(Default)]
struct Run {
    acknowledged: Mutex<Vec<String>>,
    stop: AtomicBool,
}

async fn write_until_failure(run: Arc<Run>, address: SocketAddr, writer: u64) {
    let mut client = Client::new(address);
    let headers = [("x-ms-blob-type", "BlockBlob")];
    for number in 0..WRITES_PER_WRITER_MAX {
        if run.stop.load(Ordering::SeqCst) {
            return;
        }
        let name = format!("/faults/{writer}-{number}");
        let sent = client.send("PUT", &name, &[], &headers, content(&name)).await;
        let status = sent.expect("the server goes on answering").status;
        if status != 201 {
            assert_eq!(status, 500, "{name}");
            run.stop.store(true, Ordering::SeqCst);
            return;
        }
        run.acknowledged.lock().expect("no writer panicked").push(name);
    }
}

/// Returns whether the failure happened while the server ran.
async fn round(fail_after: i64) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let run = Arc::new(Run::default());
    let mut reached = false;
    if let Some(server) = Server::start(folder.path(), fail_after, 0) {
        let mut client = Client::new(server.blob);
        let query = [("restype", "container")];
        let made = client.send("PUT", "/faults", &query, &[], Vec::new()).await.expect("an answer");
        if made.status == 201 {
            let write = |writer| write_until_failure(run.clone(), server.blob, writer);
            let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(writer))).collect();
            for writer in writers {
                writer.await.expect("no writer saw anything wrong");
            }
        }
        reached = made.status != 201 || run.stop.load(Ordering::SeqCst);
        if reached {
            let since = Instant::now();
            while server.is_healthy() {
                assert!(since.elapsed() < PATIENCE, "{fail_after}: it failed and stays healthy");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for bytes in [10, 100_000] {
                let headers = [("x-ms-blob-type", "BlockBlob")];
                let later =
                    client.send("PUT", "/faults/later", &[], &headers, vec![1; bytes]).await;
                let status = later.expect("an answer").status;
                // Only one of the two stores need be poisoned: contents may still be stored, but
                // nothing that needs the other is acknowledged.
                assert!(
                    bytes == 10 || !status.is_success(),
                    "{fail_after}: {status} after the failure"
                );
            }
            expect_all(&mut client, &run).await;
        }
    }
    let server = Server::start(folder.path(), NEVER, 0).expect("it starts again");
    assert!(server.is_healthy());
    let mut client = Client::new(server.blob);
    expect_all(&mut client, &run).await;
    reached
}

async fn expect_all(client: &mut Client, run: &Run) {
    let acknowledged = run.acknowledged.lock().expect("no writer panicked").clone();
    for name in acknowledged {
        let got = client.send("GET", &name, &[], &[], Vec::new()).await.expect("an answer");
        assert_eq!(got.status, 200, "{name} was acknowledged");
        assert!(got.body == content(&name), "{name} has other bytes");
    }
}

#[test]
fn failing_disk_turns_health_red_and_costs_nothing_acknowledged() {
    let rounds = setting("HOLDFAST_FAULT_ROUNDS").unwrap_or(ROUNDS_DEFAULT);
    println!("HOLDFAST_FAULT_ROUNDS={rounds}");
    let seed = seed_of_this_run("HOLDFAST_TEST_SEED");
    let (mut random, mut reached) = (Random::new(seed), 0);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    for number in 0..rounds {
        let fail_after = if number % 3 == 0 {
            random.below(CALLS_OF_START)
        } else {
            let magnitude = random.below(u64::from(LATER_CALLS_MAX.ilog2()) + 1);
            CALLS_OF_START + random.below(1 << magnitude)
        };
        reached += u64::from(runtime.block_on(round(fail_after as i64)));
    }
    println!("{reached} of {rounds} failures came while the server ran");
    assert!(reached * 2 >= rounds, "hardly any failure was reached");
}
