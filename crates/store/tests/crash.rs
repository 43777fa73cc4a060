//! What survives a power cut, a killed process or a failing disk, at every point of a workload.
//!
//! Several writers commit batches whose contents follow from the seed alone; each acknowledgement
//! is marked in the record of the disk. At every recorded operation the folder is rebuilt as a disk
//! could hold it, opened, and compared: each writer's rows are exactly those of its acknowledged
//! batches, or of one more that was under way, and the store goes on from there.
//!
//! `HOLDFAST_TEST_SEED` repeats the batches and the choices of what survives. Threads are not
//! deterministic, so reproducing a failure may take a few runs.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_store::contract::{Random, seed};
use holdfast_store::embedded::{DataFolder, EmbeddedEngine, EngineOptions};
use holdfast_store::{Batch, CommitError, Engine, KeyRange, Order, Write};
use support::disk::{self, Op};
use support::trace::{Disk, Survivors};

const WRITERS: usize = 3;
/// A mark is a writer and how many of its batches are acknowledged.
const MARKS_PER_WRITER: u64 = 1_000_000;

/// So small that a few hundred batches cross the ends of segments, checkpoints, flushes and merges.
/// The batches of one writer have rows in both trees.
fn small() -> EngineOptions {
    EngineOptions {
        log_segment_bytes: 48 * 1024,
        table_bytes: 32 * 1024,
        cache_bytes: 64 * 1024,
        apart: Some(b"writer/1/2"),
        ..EngineOptions::default()
    }
}

fn open(folder: &Path) -> Result<EmbeddedEngine, String> {
    let folder = DataFolder::open(folder.join("data")).map_err(|why| format!("{why:?}"))?;
    EmbeddedEngine::open(&folder, &small()).map_err(|why| format!("{why:?}"))
}

/// The batches of one writer, as many as are asked for.
#[derive(Clone)]
struct Script {
    writer: usize,
    random: Random,
    /// The writer's rows after the batches so far.
    rows: BTreeMap<Bytes, Bytes>,
    batches: u64,
}

impl Script {
    fn new(seed: u64, writer: usize) -> Self {
        let random = Random::new(seed ^ (writer as u64 + 1) << 32);
        Self { writer, random, rows: BTreeMap::new(), batches: 0 }
    }

    /// Several rows, so that a torn batch would show; some long, some deleted, some put again.
    fn next_batch(&mut self) -> Batch {
        self.batches += 1;
        let mut batch = Batch::blind();
        for _ in 0..self.random.within(1..5) {
            let key = format!("writer/{}/{:02}", self.writer, self.random.within(0..40));
            if self.random.one_in(4) {
                batch.delete(key);
            } else {
                let bytes_max = [100, 3000, 9000][self.random.within(0..3)];
                let bytes = self.random.within(1..bytes_max);
                batch.put(key, vec![self.random.number() as u8; bytes]);
            }
        }
        batch.put(format!("writer/{}/count", self.writer), self.batches.to_string());
        for write in batch.writes() {
            match write {
                Write::Put { key, value } => self.rows.insert(key.clone(), value.clone()),
                Write::Delete { key } => self.rows.remove(key),
            };
        }
        batch
    }

    fn after(seed: u64, writer: usize, batches: u64) -> Self {
        let mut script = Self::new(seed, writer);
        while script.batches < batches {
            script.next_batch();
        }
        script
    }
}

/// Lets each writer commit `batches` more, marking what is acknowledged. Returns how the first
/// commit that was not acknowledged ended, if there was one.
fn work(engine: &EmbeddedEngine, scripts: Vec<Script>, batches: u64) -> Option<CommitError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let writers = scripts.into_iter().map(async |mut script| {
        for _ in 0..batches {
            if let Err(why) = engine.commit(script.next_batch()).await {
                return Some(why);
            }
            disk::mark(script.writer as u64 * MARKS_PER_WRITER + script.batches);
        }
        None
    });
    let outcomes = runtime.block_on(futures_util::future::join_all(writers));
    outcomes.into_iter().flatten().next()
}

fn scripts(seed: u64, batches: [u64; WRITERS]) -> Vec<Script> {
    (0..WRITERS).map(|writer| Script::after(seed, writer, batches[writer])).collect()
}

async fn rows_of(engine: &EmbeddedEngine, prefix: String) -> BTreeMap<Bytes, Bytes> {
    let snapshot = engine.snapshot().await.unwrap();
    let rows =
        snapshot.scan(&KeyRange::prefix(prefix), Order::Ascending, usize::MAX).await.unwrap();
    rows.into_iter().map(|row| (row.key, row.value)).collect()
}

/// How many batches of each writer are there; an error if rows are lost, torn or mixed.
async fn recovered(
    engine: &EmbeddedEngine,
    seed: u64,
    acknowledged: [u64; WRITERS],
) -> Result<[u64; WRITERS], String> {
    let mut found = [0; WRITERS];
    for writer in 0..WRITERS {
        let rows = rows_of(engine, format!("writer/{writer}/")).await;
        let count = rows.get(format!("writer/{writer}/count").as_bytes());
        let count: u64 =
            count.map_or(0, |count| std::str::from_utf8(count).unwrap().parse().unwrap());
        let least = acknowledged[writer];
        if count < least || count > least + 1 {
            return Err(format!("writer {writer}: {count} batches, {least} acknowledged"));
        }
        if rows != Script::after(seed, writer, count).rows {
            return Err(format!("writer {writer}: not the rows after {count} batches"));
        }
        found[writer] = count;
    }
    Ok(found)
}

/// Opens what a crash left and checks it; does both again, as after another crash before anything
/// was written; then writes more, and checks once more.
fn check(folder: &Path, seed: u64, acknowledged: [u64; WRITERS]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let found = recovered(&open(folder)?, seed, acknowledged).await?;
        let engine = open(folder)?;
        still(&engine, seed, found).await?;
        let mut batch = Batch::blind();
        batch.put("after", "the crash").put("more", "of it");
        engine.commit(batch).await.map_err(|why| format!("commit after the crash: {why:?}"))?;
        drop(engine);
        let engine = open(folder)?;
        still(&engine, seed, found).await?;
        if rows_of(&engine, "after".into()).await.len() != 1 {
            return Err("a commit after the crash is lost".into());
        }
        Ok(())
    })
}

/// What was absent at one opening must not appear at a later one.
async fn still(engine: &EmbeddedEngine, seed: u64, found: [u64; WRITERS]) -> Result<(), String> {
    let again = recovered(engine, seed, found).await?;
    if again == found {
        Ok(())
    } else {
        Err(format!("{found:?} batches became {again:?} by opening once more"))
    }
}

fn acknowledged_by(ops: &[Op], from: [u64; WRITERS]) -> [u64; WRITERS] {
    let mut acknowledged = from;
    for op in ops {
        if let Op::Mark(mark) = op {
            acknowledged[(mark / MARKS_PER_WRITER) as usize] = mark % MARKS_PER_WRITER;
        }
    }
    acknowledged
}

/// Cuts the power after every operation of the record except the first ones, which stand for what
/// was there before.
fn cut_everywhere(
    ops: &[Op],
    before: usize,
    root: &Path,
    seed: u64,
    from: [u64; WRITERS],
    survivors: &[Survivors],
) -> usize {
    let scratch = support::scratch();
    let mut disk = Disk::default();
    let mut checked = 0;
    for (index, op) in ops.iter().enumerate() {
        disk.apply(op);
        if index < before || matches!(op, Op::Mark(_)) {
            continue;
        }
        let acknowledged = acknowledged_by(&ops[..=index], from);
        for (variant, survivors) in survivors.iter().enumerate() {
            let mut random = Random::new(seed ^ (index * 16 + variant) as u64);
            let folder = scratch.path().join("cut");
            disk.rebuild(root, &folder, *survivors, &mut random);
            if let Err(why) = check(&folder, seed, acknowledged) {
                let kept = scratch.keep();
                panic!(
                    "HOLDFAST_TEST_SEED={seed}: cut after operation {index} of {} ({}), {survivors:?} \
                     survive: {why}; see {}",
                    ops.len(),
                    summary(op),
                    kept.display()
                );
            }
            std::fs::remove_dir_all(&folder).unwrap();
            checked += 1;
        }
    }
    checked
}

fn summary(op: &Op) -> String {
    if let Op::Write { file, offset, bytes } = op {
        return format!("write of {} bytes at {offset} of file {file}", bytes.len());
    }
    format!("{op:?}")
}

/// The kinds of change in a record, to show that the workload reaches all of them.
fn counted(ops: &[Op], root: &Path) -> [(&'static str, usize); 5] {
    let renames_to = |name: &str| {
        let target = root.join("data").join(name);
        ops.iter().filter(|op| matches!(op, Op::Rename { to, .. } if *to == target)).count()
    };
    let tables = root.join("data/rows/tables");
    let below_tables = |path: &Path| path.starts_with(&tables);
    [
        ("checkpoints", renames_to("log/checkpoint")),
        ("changes of the manifest", renames_to("rows/levels")),
        ("changes of the manifest of the second tree", renames_to("rows-apart/levels")),
        (
            "tables made",
            ops.iter()
                .filter(|op| matches!(op, Op::Link { path, .. } if below_tables(path)))
                .count(),
        ),
        (
            "tables merged away",
            ops.iter().filter(|op| matches!(op, Op::Unlink { path } if below_tables(path))).count(),
        ),
    ]
}

/// Merging runs in the background. Tables are numbered consecutively, so missing numbers have been
/// merged away.
fn wait_for_merges(root: &Path) {
    for _ in 0..1000 {
        let entries = std::fs::read_dir(root.join("data/rows/tables")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let numbers: Vec<usize> = names.map(|name| name.parse().unwrap()).collect();
        if numbers.iter().max().is_some_and(|newest| newest + 1 >= numbers.len() + 3) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn power_cut_anywhere_loses_and_tears_nothing() {
    let _turn = disk::exclusive();
    let seed = seed(1);
    let folder = support::scratch();
    disk::start(folder.path());
    let engine = open(folder.path()).unwrap();
    assert!(work(&engine, scripts(seed, [0; WRITERS]), 40).is_none());
    wait_for_merges(folder.path());
    drop(engine);
    let ops = disk::stop();
    for (what, count) in counted(&ops, folder.path()) {
        assert!(count >= 3, "the workload is too small: {count} {what}");
    }
    let survivors = [Survivors::None, Survivors::All, Survivors::Some, Survivors::Some];
    let checked = cut_everywhere(&ops, 0, folder.path(), seed, [0; WRITERS], &survivors);
    eprintln!("{checked} power cuts in {} operations", ops.len());
}

#[test]
fn power_cut_while_recovering_from_one_loses_and_tears_nothing() {
    let _turn = disk::exclusive();
    let seed = seed(2);
    let mut random = Random::new(seed);
    let first = support::scratch();
    disk::start(first.path());
    let engine = open(first.path()).unwrap();
    assert!(work(&engine, scripts(seed, [0; WRITERS]), 40).is_none());
    drop(engine);
    let ops = disk::stop();
    let mut checked = 0;
    for _ in 0..8 {
        let cut = random.within(ops.len() / 4..ops.len());
        let mut disk_then = Disk::default();
        ops[..cut].iter().for_each(|op| disk_then.apply(op));
        let second = support::scratch();
        disk_then.rebuild(first.path(), second.path(), Survivors::Some, &mut random);
        let acknowledged = acknowledged_by(&ops[..cut], [0; WRITERS]);

        let before = disk::start(second.path());
        let engine = open(second.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(recovered(&engine, seed, acknowledged)).unwrap();
        assert!(work(&engine, scripts(seed, found), 6).is_none());
        drop(engine);
        let ops = disk::stop();
        let survivors = [Survivors::None, Survivors::Some];
        checked += cut_everywhere(&ops, before, second.path(), seed, found, &survivors);
    }
    eprintln!("{checked} power cuts while recovering");
}

#[test]
fn failing_disk_is_never_taken_for_success() {
    let _turn = disk::exclusive();
    let seed = seed(3);
    let mut random = Random::new(seed);
    let mut poisoned = 0;
    for round in 0..120 {
        let folder = support::scratch();
        disk::start(folder.path());
        disk::fail_after(random.within(0..1000));
        let mut not_acknowledged = None;
        // Opening may fail as well, and then says so.
        if let Ok(engine) = open(folder.path()) {
            not_acknowledged = work(&engine, scripts(seed, [0; WRITERS]), 60);
            if let Some(why) = &not_acknowledged {
                poisoned += 1;
                assert!(!matches!(why, CommitError::Conflict), "round {round}: {why:?}");
                assert!(engine.poisoned().is_some(), "round {round}: not poisoned by {why:?}");
                let mut batch = Batch::blind();
                batch.put("later", "x");
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let later = runtime.block_on(engine.commit(batch));
                assert!(matches!(later, Err(CommitError::Fault(_))), "round {round}: {later:?}");
            }
        }
        let failed = disk::has_failed();
        let ops = disk::stop();
        assert!(failed || not_acknowledged.is_none(), "round {round}: refused without a failure");

        let mut disk_then = Disk::default();
        ops.iter().for_each(|op| disk_then.apply(op));
        let after = support::scratch();
        let survivors = [Survivors::None, Survivors::All, Survivors::Some][round % 3];
        disk_then.rebuild(folder.path(), after.path(), survivors, &mut random);
        let acknowledged = acknowledged_by(&ops, [0; WRITERS]);
        if let Err(why) = check(after.path(), seed, acknowledged) {
            panic!("HOLDFAST_TEST_SEED={seed}: round {round}, {survivors:?} survive: {why}");
        }
    }
    assert!(poisoned > 10, "only {poisoned} failures reached a commit");
}

/// If a change could bypass the record, the suite would prove nothing.
#[test]
fn record_misses_no_change() {
    let _turn = disk::exclusive();
    let folder = support::scratch();
    disk::start(folder.path());
    let engine = Arc::new(open(folder.path()).unwrap());
    assert!(work(&engine, scripts(4, [0; WRITERS]), 60).is_none());
    drop(engine);
    let ops = disk::stop();
    let mut settled = Disk::default();
    ops.iter().for_each(|op| settled.apply(op));
    settled.settle();
    let rebuilt = support::scratch();
    settled.rebuild(folder.path(), rebuilt.path(), Survivors::None, &mut Random::new(0));
    let contents = |root: &Path| {
        let mut found = Vec::new();
        disk::list(root, &mut found);
        let inside = |path: &Path| path.strip_prefix(root).unwrap().to_path_buf();
        let mut found: Vec<_> =
            found.into_iter().map(|(path, content)| (inside(&path), content)).collect();
        found.sort();
        found
    };
    let (real, rebuilt) = (contents(folder.path()), contents(rebuilt.path()));
    let names = |found: &[(std::path::PathBuf, Option<Vec<u8>>)]| {
        found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&real), names(&rebuilt));
    for ((path, real), (_, rebuilt)) in real.iter().zip(&rebuilt) {
        assert!(real == rebuilt, "{} differs", path.display());
    }
}
