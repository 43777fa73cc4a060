//! How fast rows are committed and read, beside what the disk can do in the same run.
//!
//! `cargo run --release -p holdfast-store --example commit_rate`
//!
//! `HOLDFAST_RATE_SECONDS` (5) is the length of each measurement and `HOLDFAST_RATE_ROWS`
//! (1,000,000) the number of rows for reading and opening. Files are made in `TMPDIR`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_random::Random;
use holdfast_store::embedded::{DataFolder, EmbeddedEngine, EngineOptions};
use holdfast_store::{Batch, Engine, KeyRange, Order};
use holdfast_testkit::process::ChildProcess;
use tokio::sync::{mpsc, oneshot};

const VALUE_BYTES: usize = 1024;
/// Set for the child that loads rows and is killed.
const CHILD_FOLDER: &str = "HOLDFAST_RATE_CHILD";
/// A million rows take some minutes at most.
const LOADING_MAX: Duration = Duration::from_secs(3600);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let rows = number("HOLDFAST_RATE_ROWS", 1_000_000);
    if let Ok(folder) = std::env::var(CHILD_FOLDER) {
        return load_until_killed(Path::new(&folder), rows as usize).await;
    }
    let time = Duration::from_secs(number("HOLDFAST_RATE_SECONDS", 5));
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=2 {
        println!("round {round}");
        let bare_one = bare_log(&folder.path().join(format!("one-{round}")), 1, time).await;
        bare_one.print("bare log,    1 writer ");
        let bare = bare_log(&folder.path().join(format!("many-{round}")), 64, time).await;
        bare.print("bare log,   64 writers");
        let engine = open(&folder.path().join(format!("data-{round}")));
        let one = commits(&engine, 1, time).await;
        one.print("engine,      1 writer ");
        let many = commits(&engine, 64, time).await;
        many.print("engine,     64 writers");
        println!(
            "engine / bare log: {:.2} with 1 writer (asked: 0.50), {:.2} with 64 (asked: 0.25)",
            one.per_second() / bare_one.per_second(),
            many.per_second() / bare.per_second()
        );
    }
    open_after_kill(&folder.path().join("killed"), rows).await;
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect(variable))
}

fn open(folder: &Path) -> Arc<dyn Engine> {
    let folder = DataFolder::open(folder).unwrap();
    Arc::new(EmbeddedEngine::open(&folder, &EngineOptions::default()).unwrap())
}

struct Rate {
    latencies: Vec<Duration>,
    elapsed: Duration,
}

impl Rate {
    fn of(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        Self { latencies, elapsed }
    }

    fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    fn print(&self, what: &str) {
        let at = |part: f64| self.latencies[((self.latencies.len() - 1) as f64 * part) as usize];
        println!(
            "{what} {:>8.0}/s   p50 {:>9.2?}  p99 {:>9.2?}  p99.9 {:>9.2?}  worst {:>9.2?}",
            self.per_second(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

/// `writers` tasks, each doing the next `write` when the last one is done.
async fn measure<Done: Future<Output = ()> + Send>(
    writers: u64,
    time: Duration,
    write: impl Fn(u64) -> Done + Clone + Send + 'static,
) -> Rate {
    let begin = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let write = write.clone();
            tokio::spawn(async move {
                let mut random = Random::new(writer);
                let mut latencies = Vec::new();
                while begin.elapsed() < time {
                    let asked = Instant::now();
                    write(random.number()).await;
                    latencies.push(asked.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    Rate::of(latencies, begin.elapsed())
}

/// An append-and-fdatasync log that shares syncs, over blocks written before, and nothing else.
async fn bare_log(path: &Path, writers: u64, time: Duration) -> Rate {
    const LOG_BYTES: u64 = 64 * 1024 * 1024;
    let file = File::create_new(path).unwrap();
    file.write_all_at(&vec![0; LOG_BYTES as usize], 0).unwrap();
    file.sync_all().unwrap();
    let (sender, mut queue) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(1024);
    let thread = std::thread::spawn(move || {
        let mut position = 0;
        while let Some((mut bytes, first)) = queue.blocking_recv() {
            let mut answers = vec![first];
            while let Ok((more, answer)) = queue.try_recv() {
                bytes.extend_from_slice(&more);
                answers.push(answer);
            }
            if position + bytes.len() as u64 > LOG_BYTES {
                position = 0;
            }
            file.write_all_at(&bytes, position).unwrap();
            file.sync_data().unwrap();
            position += bytes.len() as u64;
            for answer in answers {
                let _ = answer.send(());
            }
        }
    });
    let rate = measure(writers, time, move |_| {
        let sender = sender.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            sender.send((vec![7; VALUE_BYTES], answer)).await.unwrap();
            answered.await.unwrap();
        }
    })
    .await;
    thread.join().unwrap();
    rate
}

/// Compare-and-set of one random row of a million for each commit.
async fn commits(engine: &Arc<dyn Engine>, writers: u64, time: Duration) -> Rate {
    let engine = Arc::clone(engine);
    measure(writers, time, move |random| {
        let engine = Arc::clone(&engine);
        async move {
            let key = row_key(random % 1_000_000);
            let moment = engine.snapshot().await.unwrap().moment();
            let mut batch = Batch::since(moment);
            batch.expect_row(key.clone()).put(key, row_value(random));
            // A conflict is an answer as well; with random keys there is hardly one.
            let _ = engine.commit(batch).await;
        }
    })
    .await
}

fn row_key(number: u64) -> String {
    format!("account/container/{number:012}")
}

/// Bytes that do not compress away.
fn row_value(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..VALUE_BYTES / 8).flat_map(|_| random.number().to_le_bytes()).collect()
}

async fn load_until_killed(folder: &Path, rows: usize) {
    let engine = open(folder);
    let mut number = 0;
    loop {
        let commits = (0..64).map(|_| {
            let mut batch = Batch::blind();
            for _ in 0..16 {
                let key = row_key((number as u64).wrapping_mul(7919) % rows as u64);
                batch.put(key, row_value(number as u64));
                number += 1;
            }
            engine.commit(batch)
        });
        for outcome in futures_util::future::join_all(commits).await {
            outcome.unwrap();
        }
        if number >= rows + rows / 5 {
            println!("loaded");
        }
    }
}

async fn open_after_kill(folder: &Path, rows: u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = ChildProcess::spawn(command.env(CHILD_FOLDER, folder));
    let loading = Instant::now();
    assert_eq!(child.next_line(LOADING_MAX).as_deref(), Some("loaded"));
    println!("{rows} rows written and overwritten in {:.1?}", loading.elapsed());
    child.kill();

    let opening = Instant::now();
    let engine = open(folder);
    println!("opened after kill -9 in {:.2?} (asked: under 2 s)", opening.elapsed());
    println!("resident after opening: {} MiB", resident_mebibytes());
    let time = Duration::from_secs(3);
    reads(&engine, rows, time, 1).await;
    reads(&engine, rows, time, 100).await;
    println!("resident after reading: {} MiB", resident_mebibytes());
}

async fn reads(engine: &Arc<dyn Engine>, rows: u64, time: Duration, at_once: usize) {
    let mut random = Random::new(1);
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < time {
        let snapshot = engine.snapshot().await.unwrap();
        let key = row_key(random.number() % rows);
        if at_once == 1 {
            assert!(snapshot.get(key.as_bytes()).await.unwrap().is_some());
        } else {
            let range = KeyRange::all().starting_at(key);
            snapshot.scan(&range, Order::Ascending, at_once).await.unwrap();
        }
        done += 1;
    }
    let rate = f64::from(done) / begin.elapsed().as_secs_f64();
    println!("reads of {at_once} rows, 1 task: {rate:.0}/s");
}

fn resident_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
