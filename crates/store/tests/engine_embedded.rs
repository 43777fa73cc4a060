//! The contract of rows, kept in a data folder: with the usual sizes, and with sizes so small that
//! every case crosses ends of log segments, flushes and merges.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_store::contract::EngineFixture;
use holdfast_store::embedded::{DataFolder, Durability, EmbeddedEngine, EngineOptions};
use holdfast_store::{Batch, Engine};
use tempfile::TempDir;

struct InFolder {
    folder: TempDir,
    options: EngineOptions,
}

impl InFolder {
    fn new(options: EngineOptions) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), options }
    }

    fn open(&self) -> Arc<dyn Engine> {
        let folder = DataFolder::open(self.folder.path().join("data")).unwrap();
        Arc::new(EmbeddedEngine::open(&folder, &self.options).unwrap())
    }
}

#[async_trait]
impl EngineFixture for InFolder {
    async fn create(&self) -> Arc<dyn Engine> {
        self.open()
    }

    async fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        drop(engine);
        Some(self.open())
    }
}

fn small() -> EngineOptions {
    EngineOptions {
        log_segment_bytes: 64 * 1024,
        table_bytes: 64 * 1024,
        cache_bytes: 64 * 1024,
        ..EngineOptions::default()
    }
}

mod usual_sizes {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(EngineOptions::default()));
}

mod small_sizes {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(small()));
}

mod two_trees {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(EngineOptions { apart: Some(b"c"), ..small() }));
}

mod relaxed {
    use super::*;
    holdfast_store::engine_contract!(InFolder::new(EngineOptions {
        durability: Durability::Relaxed,
        ..small()
    }));
}

/// The reason why the folder cannot be opened.
fn refusal(fixture: &InFolder) -> String {
    let folder = DataFolder::open(fixture.folder.path().join("data")).unwrap();
    match EmbeddedEngine::open(&folder, &fixture.options) {
        Ok(_) => panic!("the damaged folder is opened"),
        Err(why) => format!("{why:?}"),
    }
}

async fn put(engine: &dyn Engine, key: &str) {
    let mut batch = Batch::blind();
    batch.put(key.to_owned(), vec![b'x'; 1000]);
    engine.commit(batch).await.unwrap();
}

#[tokio::test]
async fn folder_made_with_one_tree_keeps_to_it() {
    let mut fixture = InFolder::new(small());
    let engine = fixture.open();
    put(&*engine, "c1").await;
    drop(engine);
    fixture.options.apart = Some(b"c");
    let engine = fixture.open();
    put(&*engine, "c2").await;
    let snapshot = engine.snapshot().await.unwrap();
    for key in [b"c1", b"c2"] {
        assert!(snapshot.get(key).await.unwrap().is_some());
    }
    assert!(!fixture.folder.path().join("data/rows-apart").exists());
}

#[tokio::test]
async fn folder_made_with_two_trees_is_not_opened_with_one() {
    let mut fixture = InFolder::new(EngineOptions { apart: Some(b"c"), ..small() });
    drop(fixture.open());
    fixture.options.apart = None;
    let why = refusal(&fixture);
    assert!(why.contains("rows-apart"), "{why}");
}

#[tokio::test]
async fn damaged_log_is_refused_and_not_cut_short() {
    let fixture = InFolder::new(EngineOptions::default());
    let engine = fixture.open();
    for key in ["a", "b", "c"] {
        put(&*engine, key).await;
    }
    drop(engine);
    let segment = fixture.folder.path().join("data/log/00000001.log");
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    // Inside the second of three groups of one block each.
    file.write_all_at(b"?", 2 * 4096 + 100).unwrap();
    let why = refusal(&fixture);
    assert!(why.contains("damaged") && why.contains("00000001.log"), "{why}");
}

#[tokio::test]
async fn log_without_its_checkpoint_is_refused() {
    let fixture = InFolder::new(small());
    let engine = fixture.open();
    // A block for each commit and 15 for each segment: long enough that the first one is used again.
    for number in 0..500 {
        put(&*engine, &number.to_string()).await;
    }
    drop(engine);
    std::fs::remove_file(fixture.folder.path().join("data/log/checkpoint")).unwrap();
    let why = refusal(&fixture);
    assert!(why.contains("lacks its segment 1"), "{why}");
}

#[tokio::test]
async fn flipped_bit_of_a_manifest_is_refused() {
    let fixture = InFolder::new(EngineOptions { apart: Some(b"1"), ..small() });
    let engine = fixture.open();
    for number in 0..200 {
        put(&*engine, &number.to_string()).await;
    }
    drop(engine);
    let data = fixture.folder.path().join("data");
    flip_bits_of_manifest(&fixture, &data.join("rows"));
    flip_bits_of_manifest(&fixture, &data.join("rows-apart"));
    drop(fixture.open());
}

fn flip_bits_of_manifest(fixture: &InFolder, rows: &Path) {
    let path = rows.join("levels");
    let whole = std::fs::read(&path).unwrap();
    for bit in (0..whole.len() * 8).step_by(7) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, damaged).unwrap();
        let why = refusal(fixture);
        assert!(why.contains(rows.to_str().unwrap()), "bit {bit} of {}: {why}", path.display());
    }
    std::fs::write(&path, whole).unwrap();
}

/// What the tables of a tree take up.
fn bytes_of_tables(fixture: &InFolder, tree: &str) -> u64 {
    let tables = fixture.folder.path().join("data").join(tree).join("tables");
    // One may be merged away meanwhile.
    let bytes = |entry: std::fs::DirEntry| entry.metadata().map_or(0, |it| it.len());
    std::fs::read_dir(tables).unwrap().map(|entry| bytes(entry.unwrap())).sum()
}

/// Rows in both trees are put, overwritten and deleted; then only one row changes from time to time, as
/// the time of the server does.
#[tokio::test]
async fn room_of_what_was_deleted_and_overwritten_is_given_back() {
    let fixture = InFolder::new(EngineOptions { apart: Some(b"content/"), ..small() });
    let engine = fixture.open();
    let mut next = 0;
    for round in 0..3 {
        for row in 0..1500 {
            let mut batch = Batch::blind();
            // A new content for each round, as for a blob that is overwritten.
            batch.put(format!("content/{next:08}"), vec![b'x'; 2000]);
            batch.put(format!("row/{row:08}"), vec![b'x'; 500]);
            if round > 0 {
                batch.delete(format!("content/{:08}", next - 1500));
            }
            engine.commit(batch).await.unwrap();
            next += 1;
        }
    }
    for row in 0..1500 {
        let mut batch = Batch::blind();
        batch.delete(format!("content/{:08}", next - 1500 + row));
        batch.delete(format!("row/{row:08}"));
        engine.commit(batch).await.unwrap();
    }
    let left = || ["rows", "rows-apart"].map(|tree| bytes_of_tables(&fixture, tree));
    for _ in 0..600 {
        put(&*engine, "time").await;
        if left().into_iter().all(|bytes| bytes < 64 * 1024) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{:?} bytes are left of rows that are deleted", left());
}

#[tokio::test]
async fn keys_and_values_over_the_limits_are_refused_whole() {
    use holdfast_store::engine::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
    let fixture = InFolder::new(EngineOptions::default());
    let engine = fixture.open();
    let cases = [
        (vec![b'k'; KEY_BYTES_MAX + 1], vec![]),
        (vec![], vec![]),
        (b"key".to_vec(), vec![b'v'; VALUE_BYTES_MAX + 1]),
    ];
    for (key, value) in cases {
        let mut batch = Batch::blind();
        batch.put("good", "x").put(key, value);
        engine.commit(batch).await.unwrap_err();
    }
    assert_eq!(engine.snapshot().await.unwrap().get(b"good").await.unwrap(), None);
    assert!(engine.poisoned().is_none());
}
