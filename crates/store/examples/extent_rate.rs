//! How fast extents are written, against the barest program that does the same: append to a
//! preallocated file, with one thread that syncs for all writers. Both run in turns on the same
//! disk, several times; the table has the median of each.
//!
//! ```text
//! cargo run --release -p holdfast-store --example extent_rate -- [FOLDER] [SECONDS] [ROUNDS] [CASE]
//! ```

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_store::Extents;
use holdfast_store::embedded::{DataFolder, SegmentExtents, SegmentOptions};
use tokio::sync::oneshot;

const SEGMENT_BYTES: u64 = 256 * 1024 * 1024;

struct Case {
    name: &'static str,
    bytes: usize,
    writers: usize,
}

const CASES: [Case; 7] = [
    Case { name: "4 KiB, 64 writers", bytes: 4 << 10, writers: 64 },
    Case { name: "64 KiB, 8 writers", bytes: 64 << 10, writers: 8 },
    Case { name: "256 KiB, 8 writers", bytes: 256 << 10, writers: 8 },
    Case { name: "1 MiB, 1 writer", bytes: 1 << 20, writers: 1 },
    Case { name: "1 MiB, 8 writers", bytes: 1 << 20, writers: 8 },
    Case { name: "8 MiB, 1 writer", bytes: 8 << 20, writers: 1 },
    Case { name: "8 MiB, 8 writers", bytes: 8 << 20, writers: 8 },
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let seconds: f64 = arguments.next().map_or(1.0, |text| text.parse().expect("seconds"));
    let rounds: usize = arguments.next().map_or(3, |text| text.parse().expect("rounds"));
    let only = arguments.next().unwrap_or_default();
    let time = Duration::from_secs_f64(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");

    println!(
        "| case | bare, page cache | bare, O_DIRECT | extents, new files | extents, recycled | ratio |"
    );
    println!("|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|case| case.name.starts_with(&only)) {
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            for (which, rates) in rates.iter_mut().enumerate() {
                let scratch = tempfile::tempdir_in(&folder).expect("a scratch folder");
                let path = scratch.path();
                rates.push(match which {
                    0 => bare(&runtime, path, case, time, 0),
                    1 => bare(&runtime, path, case, time, libc::O_DIRECT),
                    2 => extents(&runtime, path, case, time, false),
                    _ => extents(&runtime, path, case, time, true),
                });
            }
        }
        let rates = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        let shown = rates.map(|rate| {
            let megabytes = rate * case.bytes as f64 / 1e6;
            format!("{rate:.0}/s, {megabytes:.0} MB/s")
        });
        let ratio = rates[2].max(rates[3]) / rates[0].max(rates[1]);
        println!("| {} | {} | {ratio:.2} |", case.name, shown.join(" | "));
    }
}

/// Streams per second. `recycled`: each extent is freed at once, so that files are soon reused;
/// otherwise every file is new.
fn extents(
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    case: &Case,
    time: Duration,
    recycled: bool,
) -> f64 {
    let options = SegmentOptions { segment_bytes: SEGMENT_BYTES, ..SegmentOptions::default() };
    let folder = DataFolder::open(folder.join("data")).expect("a data folder");
    let store = Arc::new(SegmentExtents::open(&folder, &options).expect("a store"));
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    runtime.block_on(async {
        let writers: Vec<_> = (0..case.writers)
            .map(|writer| {
                let (store, done) = (Arc::clone(&store), Arc::clone(&done));
                // As a connection delivers a body: in parts.
                let part = Bytes::from(vec![writer as u8 + 1; case.bytes.min(64 << 10)]);
                let parts = case.bytes / part.len();
                tokio::spawn(async move {
                    while started.elapsed() < time {
                        let mut writer = store.writer();
                        for _ in 0..parts {
                            writer.append(part.clone()).await.expect("append");
                        }
                        let written = writer.finish().await.expect("finish");
                        done.fetch_add(1, Ordering::Relaxed);
                        if recycled {
                            written.iter().for_each(|it| store.free(it.id, it.length));
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.expect("a writer");
        }
    });
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

/// Streams per second when writers hand their bytes to one thread, which writes what it has
/// collected and syncs. Files are preallocated, new, and deleted at the end.
fn bare(
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    case: &Case,
    time: Duration,
    flags: i32,
) -> f64 {
    let (sender, receiver) = mpsc::channel::<oneshot::Sender<()>>();
    let bytes = case.bytes;
    let path = folder.join("bare");
    let appender = std::thread::spawn(move || append_and_sync(&path, bytes, flags, &receiver));
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    runtime.block_on(async {
        let writers: Vec<_> = (0..case.writers)
            .map(|_| {
                let (sender, done) = (sender.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    while started.elapsed() < time {
                        let (reply, synced) = oneshot::channel();
                        sender.send(reply).expect("the appender runs");
                        synced.await.expect("the appender answers");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.expect("a writer");
        }
    });
    drop(sender);
    let elapsed = started.elapsed();
    appender.join().expect("the appender");
    done.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64()
}

fn append_and_sync(
    path: &Path,
    bytes: usize,
    flags: i32,
    receiver: &mpsc::Receiver<oneshot::Sender<()>>,
) {
    let batch_max = (8 << 20) / bytes;
    let room = vec![1u8; bytes * batch_max + 4096];
    let start = room.as_ptr().align_offset(4096);
    let aligned = &room[start..][..bytes * batch_max];
    let (mut file, mut offset, mut files) = (preallocated(path, 0, flags), 0, 0);
    while let Ok(first) = receiver.recv() {
        let mut replies = vec![first];
        while replies.len() < batch_max
            && let Ok(next) = receiver.try_recv()
        {
            replies.push(next);
        }
        let batch = &aligned[..bytes * replies.len()];
        if offset + batch.len() as u64 > SEGMENT_BYTES {
            files += 1;
            (file, offset) = (preallocated(path, files, flags), 0);
        }
        file.write_all_at(batch, offset).expect("write");
        offset += batch.len() as u64;
        file.sync_data().expect("sync");
        for reply in replies {
            reply.send(()).expect("the writer waits");
        }
    }
}

fn preallocated(path: &Path, number: u32, flags: i32) -> File {
    use std::os::fd::AsRawFd;
    let path = path.with_extension(number.to_string());
    let file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(path);
    let file = file.expect("a new file");
    // SAFETY: the descriptor is open; no memory is passed.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, SEGMENT_BYTES as i64) };
    assert_eq!(done, 0, "preallocation");
    file
}
