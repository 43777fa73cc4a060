//! From which size on a content is better kept in an extent than in its row. Overwrites the contents
//! of a fixed number of names, either whole in the row or as an extent that the row names (the old
//! one is freed), and reads them back at random.
//!
//! ```text
//! cargo run --release -p holdfast-store --example row_or_extent -- [FOLDER] [SECONDS] [WRITERS]
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_random::Random;
use holdfast_store::embedded::{
    DataFolder, EmbeddedEngine, EngineOptions, SegmentExtents, SegmentOptions,
};
use holdfast_store::{Batch, Engine, Extent, ExtentId, Extents};
use parking_lot::Mutex;

/// Total bytes of live content, whatever the size of each.
const LIVE_BYTES: usize = 64 << 20;
/// What a row has besides the content: names, headers, metadata.
const ROW_BYTES: usize = 200;

struct Rate {
    writes: f64,
    written_per_byte: f64,
    reads: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let seconds: f64 = arguments.next().map_or(2.0, |text| text.parse().expect("seconds"));
    let writers: usize = arguments.next().map_or(16, |text| text.parse().expect("writers"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    println!("{writers} writers, then 2 readers; {seconds} s each\n");
    println!(
        "| content | writes/s: row | extent | disk bytes/byte: row | extent | reads/s: row | extent |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kibibytes in [4, 8, 16, 32, 64, 128] {
        let [row, extent] = [false, true].map(|in_extents| {
            let scratch = tempfile::tempdir_in(&folder).expect("a scratch folder");
            let time = Duration::from_secs_f64(seconds);
            runtime.block_on(measure(scratch.path(), kibibytes << 10, writers, time, in_extents))
        });
        println!(
            "| {kibibytes} KiB | {:.0} | {:.0} | {:.1} | {:.1} | {:.0} | {:.0} |",
            row.writes,
            extent.writes,
            row.written_per_byte,
            extent.written_per_byte,
            row.reads,
            extent.reads
        );
    }
}

struct Store {
    engine: EmbeddedEngine,
    extents: SegmentExtents,
    /// Stands for the part of a row that describes its extent.
    named: Vec<Mutex<Option<Extent>>>,
    content: Bytes,
    in_extents: bool,
}

async fn measure(
    folder: &Path,
    bytes: usize,
    writers: usize,
    time: Duration,
    in_extents: bool,
) -> Rate {
    let folder = DataFolder::open(folder.join("data")).expect("a data folder");
    let store = Arc::new(Store {
        engine: EmbeddedEngine::open(&folder, &EngineOptions::default()).expect("an engine"),
        extents: SegmentExtents::open(&folder, &SegmentOptions::default()).expect("extents"),
        named: (0..LIVE_BYTES / bytes).map(|_| Mutex::new(None)).collect(),
        content: holdfast_store::contract::extents::content(1, bytes),
        in_extents,
    });
    let names = store.named.len();
    repeat(&store, 16, Until::Count(names), move |store, count, _| store.write(count % names))
        .await;
    let on_disk = bytes_written_to_disk();
    let writes = repeat(&store, writers, Until::Time(time), move |store, _, random| {
        store.write(random.within(0..names))
    })
    .await;
    let on_disk = bytes_written_to_disk() - on_disk;
    let reads = repeat(&store, 2, Until::Time(time), move |store, _, random| {
        store.read(random.within(0..names))
    })
    .await;
    let written_per_byte = on_disk as f64 / (writes.count as f64 * bytes as f64);
    Rate { writes: writes.per_second, written_per_byte, reads: reads.per_second }
}

enum Until {
    Count(usize),
    Time(Duration),
}

struct Repeated {
    count: u64,
    per_second: f64,
}

async fn repeat<F>(
    store: &Arc<Store>,
    tasks: usize,
    until: Until,
    step: impl Fn(Arc<Store>, usize, &mut Random) -> F + Copy + Send + 'static,
) -> Repeated
where
    F: Future<Output = ()> + Send,
{
    let until = Arc::new(until);
    let (begun, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let started = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let (store, until) = (Arc::clone(store), Arc::clone(&until));
            let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
            tokio::spawn(async move {
                let mut random = Random::new(task as u64);
                loop {
                    let count = begun.fetch_add(1, Ordering::Relaxed) as usize;
                    let goes_on = match *until {
                        Until::Count(limit) => count < limit,
                        Until::Time(limit) => started.elapsed() < limit,
                    };
                    if !goes_on {
                        break;
                    }
                    step(Arc::clone(&store), count, &mut random).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    let count = done.load(Ordering::Relaxed);
    Repeated { count, per_second: count as f64 / started.elapsed().as_secs_f64() }
}

impl Store {
    async fn write(self: Arc<Self>, name: usize) {
        let mut row = vec![0; ROW_BYTES];
        let mut batch = Batch::blind();
        if !self.in_extents {
            row.extend_from_slice(&self.content);
            batch.put(key(name), row);
            return self.engine.commit(batch).await.expect("commit");
        }
        let mut writer = self.extents.writer();
        writer.append(self.content.clone()).await.expect("append");
        let extent = writer.finish().await.expect("finish").remove(0);
        batch.put(key(name), row);
        // Stands for the row by which garbage is found after a crash.
        batch.put(extent.id.to_bytes().to_vec(), vec![0; 8]);
        let old = self.named[name].lock().replace(extent);
        if let Some(old) = &old {
            batch.delete(old.id.to_bytes().to_vec());
        }
        self.engine.commit(batch).await.expect("commit");
        if let Some(Extent { id, length, .. }) = old {
            self.extents.free(id, length);
        }
    }

    async fn read(self: Arc<Self>, name: usize) {
        let all = self.extents.pin_all();
        let snapshot = self.engine.snapshot().await.expect("snapshot");
        let row = snapshot.get(&key(name)).await.expect("get").expect("a row");
        if !self.in_extents {
            assert_eq!(row.len(), ROW_BYTES + self.content.len());
            return;
        }
        let extent = self.named[name].lock().clone().expect("an extent");
        let ids: [ExtentId; 1] = [extent.id];
        let _pin = self.extents.pin(&ids);
        drop(all);
        let read = self.extents.read(&extent, 0..extent.length).await.expect("read");
        assert_eq!(read.len(), self.content.len());
    }
}

fn key(name: usize) -> Vec<u8> {
    format!("account/container/blob-{name:08}").into_bytes()
}

/// What the kernel says this process has written to the disk so far.
fn bytes_written_to_disk() -> u64 {
    let account = std::fs::read_to_string("/proc/self/io").expect("/proc/self/io");
    let line = account.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.expect("write_bytes").parse().expect("a number")
}
