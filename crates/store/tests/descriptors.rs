//! The store when file descriptors run out: some writes and reads are refused, nothing acknowledged
//! is lost, and when there are descriptors again it works without being reopened.
//!
//! The limit is that of a process, so each test is run once more in a process of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_store::contract::{Random, seed};
use holdfast_store::embedded::{
    DataFolder, EmbeddedEngine, EngineOptions, SegmentExtents, SegmentOptions,
};
use holdfast_store::engine::Fault;
use holdfast_store::extents::Extent;
use holdfast_store::{Batch, CommitError, Engine, Extents, KeyRange, Order};
use holdfast_testkit::process::{command, output_within};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const IN_CHILD: &str = "HOLDFAST_TEST_FEW_DESCRIPTORS";
const DESCRIPTORS: u64 = 128;
const RECOVERY_MAX: Duration = Duration::from_secs(20);
/// Above what the recovery and the rounds before it take, so that a child can say what failed.
const CHILD_MAX: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 60;

/// Runs the rest of the test in a process with few descriptors; returns true there.
fn is_child(test: &str) -> bool {
    if std::env::var_os(IN_CHILD).is_some() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum }).unwrap();
        return true;
    }
    let mut child = command(&std::env::current_exe().unwrap(), Path::new("."));
    let seed = seed(1);
    child.args(["--exact", test, "--nocapture"]).env(IN_CHILD, "1");
    child.env("HOLDFAST_TEST_SEED", seed.to_string());
    let done = output_within(&mut child, CHILD_MAX);
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "seed {seed}\n{}", String::from_utf8_lossy(&said));
    false
}

/// Takes all descriptors that are left, until it is dropped or gives some back.
struct Hoard(Vec<File>);

impl Hoard {
    fn fill(&mut self) {
        while let Ok(file) = File::open("/dev/null") {
            self.0.push(file);
        }
    }
}

/// So small that a few batches cross the ends of segments, checkpoints, flushes and merges.
fn options() -> EngineOptions {
    EngineOptions {
        log_segment_bytes: 48 * 1024,
        table_bytes: 32 * 1024,
        cache_bytes: 64 * 1024,
        row_cache_bytes: 0,
        open_tables_max: 8,
        apart: Some(b"apart/"),
        ..EngineOptions::default()
    }
}

fn row(random: &mut Random, number: u64) -> (String, Bytes) {
    let tree = if number.is_multiple_of(3) { "apart" } else { "row" };
    let value = vec![number as u8; random.within(500..4500)];
    (format!("{tree}/{:04}", random.within(0..2000)), value.into())
}

fn expect_lack(fault: &Fault) {
    assert!(fault.is_no_descriptors(), "{fault:?}");
}

async fn put(engine: &EmbeddedEngine, key: &str, value: &Bytes) -> bool {
    let mut batch = Batch::blind();
    batch.put(key.to_owned(), value.clone());
    match engine.commit(batch).await {
        Ok(()) => true,
        Err(CommitError::Fault(fault)) => {
            expect_lack(&fault);
            false
        }
        Err(other) => panic!("{other:?}"),
    }
}

async fn expect_rows(engine: &EmbeddedEngine, expected: &BTreeMap<String, Bytes>) {
    let snapshot = engine.snapshot().await.unwrap();
    let rows = snapshot.scan(&KeyRange::all(), Order::Ascending, usize::MAX).await.unwrap();
    let rows = rows.into_iter().map(|row| (String::from_utf8(row.key.into()).unwrap(), row.value));
    assert!(rows.eq(expected.clone()), "rows are missing, or are not what was written");
}

/// Writes until one is refused, then gives a few descriptors back at a time, so that upkeep fails
/// at different files.
async fn starve_rows(folder: &Path) {
    let mut random = Random::new(seed(1));
    let data = DataFolder::open(folder).unwrap();
    let engine = EmbeddedEngine::open(&data, &options()).unwrap();
    let mut expected = BTreeMap::new();
    let (mut hoard, mut number, mut refused) = (Hoard(Vec::new()), 0, 0);
    for _ in 0..ROUNDS {
        hoard.fill();
        for _ in 0..40 {
            number += 1;
            let (key, value) = row(&mut random, number);
            if put(&engine, &key, &value).await {
                expected.insert(key, value);
            } else {
                refused += 1;
                break;
            }
        }
        let key = format!("row/{:04}", random.within(0..2000));
        match engine.snapshot().await.unwrap().get(key.as_bytes()).await {
            Ok(found) => assert_eq!(found.as_ref(), expected.get(&key)),
            Err(fault) => expect_lack(&fault),
        }
        assert!(engine.poisoned().is_none(), "{:?}", engine.poisoned());
        let given_back = random.within(0..6);
        hoard.0.truncate(hoard.0.len().saturating_sub(given_back));
        tokio::time::sleep(Duration::from_millis(random.within(0..40) as u64)).await;
    }
    assert!(refused > 0, "there were descriptors all the time");
    println!("{number} writes, {refused} refused");
    drop(hoard);

    let since = Instant::now();
    for key in (0..200).map(|number| format!("row/after-{number:03}")) {
        let value = Bytes::from(vec![1; 4000]);
        while !put(&engine, &key, &value).await {
            assert!(since.elapsed() < RECOVERY_MAX, "it does not recover");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        expected.insert(key, value);
    }
    while let Some(fault) = engine.short_of_room() {
        assert!(since.elapsed() < RECOVERY_MAX, "still {fault:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    expect_rows(&engine, &expected).await;
    drop(engine);
    drop(data);
    let data = DataFolder::open(folder).unwrap();
    expect_rows(&EmbeddedEngine::open(&data, &options()).unwrap(), &expected).await;
}

#[test]
fn rows_survive_a_lack_of_descriptors() {
    if !is_child("rows_survive_a_lack_of_descriptors") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(starve_rows(&folder.path().join("data")));
}

async fn write_extent(extents: &SegmentExtents, bytes: &Bytes) -> Result<Vec<Extent>, Fault> {
    let mut writer = extents.writer();
    writer.append(bytes.clone()).await?;
    writer.finish().await
}

async fn starve_extents(folder: &Path) {
    let mut random = Random::new(seed(1));
    let data = DataFolder::open(folder).unwrap();
    let options = SegmentOptions {
        segment_bytes: 1024 * 1024,
        empty_segments_kept: 1,
        slack_bytes: 0,
        read_files_max: 4,
        ..SegmentOptions::default()
    };
    let extents = SegmentExtents::open(&data, &options).unwrap();
    let mut kept: Vec<(Vec<Extent>, Bytes)> = Vec::new();
    let (mut hoard, mut refused) = (Hoard(Vec::new()), 0);
    for round in 0..ROUNDS {
        hoard.fill();
        let bytes = Bytes::from(vec![round as u8; random.within(1..600_000)]);
        match write_extent(&extents, &bytes).await {
            Ok(written) => kept.push((written, bytes)),
            Err(fault) => {
                expect_lack(&fault);
                refused += 1;
            }
        }
        if kept.len() > 20 {
            let (freed, _) = kept.swap_remove(random.within(0..20));
            freed.iter().for_each(|extent| extents.free(extent.id, extent.length));
        }
        assert!(extents.poisoned().is_none(), "{:?}", extents.poisoned());
        let given_back = random.within(0..6);
        hoard.0.truncate(hoard.0.len().saturating_sub(given_back));
    }
    assert!(refused > 0, "there were descriptors all the time");
    drop(hoard);
    for _ in 0..4 {
        let bytes = Bytes::from(vec![7; 600_000]);
        kept.push((write_extent(&extents, &bytes).await.unwrap(), bytes));
    }
    for (written, bytes) in kept {
        let mut read = Vec::new();
        for extent in &written {
            let mut from = 0;
            while from < extent.length {
                let part = extents.read(extent, from..extent.length).await.unwrap();
                from += part.len() as u64;
                read.extend_from_slice(&part);
            }
        }
        assert!(read == bytes, "an extent is not what was written");
    }
}

#[test]
fn extents_survive_a_lack_of_descriptors() {
    if !is_child("extents_survive_a_lack_of_descriptors") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(starve_extents(&folder.path().join("data")));
}
