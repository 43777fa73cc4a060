//! The row store with all its threads, under the schedules of shuttle: what committers are told is
//! what happened, and readers see consistent states.

#[path = "support/disk.rs"]
#[allow(dead_code, reason = "the record of the disk is for the crash tests")]
mod disk;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_store::embedded::{DataFolder, EmbeddedEngine, EngineOptions};
use holdfast_store::{Batch, CommitError, Engine, KeyRange};
use holdfast_sync::rand::{Rng, thread_rng};
use holdfast_sync::{explore, future};

/// So small that a few batches cross the end of a log segment. One of the two counter rows is in the
/// second tree.
fn open(folder: &Path) -> Arc<EmbeddedEngine> {
    let options = EngineOptions {
        log_segment_bytes: 16 * 1024,
        table_bytes: 32 * 1024,
        cache_bytes: 64 * 1024,
        apart: Some(b"count/"),
        ..EngineOptions::default()
    };
    let folder = DataFolder::open(folder.join("data")).expect("a folder");
    Arc::new(EmbeddedEngine::open(&folder, &options).expect("an engine"))
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.as_ref().try_into().expect("8 bytes")))
}

/// Increments two rows that are always equal; retries until there is no conflict.
async fn increment(engine: &EmbeddedEngine) -> u64 {
    loop {
        let snapshot = engine.snapshot().await.expect("a snapshot");
        let next = number(snapshot.get(b"count").await.expect("read")) + 1;
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_range(KeyRange::prefix("count"));
        for key in ["count", "count/again"] {
            batch.put(key, next.to_be_bytes().to_vec());
        }
        match engine.commit(batch).await {
            Ok(()) => return next,
            Err(CommitError::Conflict) => {
                // The conflicting batch may not be durable, and then is not seen yet.
                let newest = engine.placed_snapshot().await.expect("a snapshot").moment();
                engine.settled(&newest).await.expect("durable");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Both rows at one moment.
async fn count(engine: &EmbeddedEngine) -> u64 {
    let snapshot = engine.snapshot().await.expect("a snapshot");
    let count = number(snapshot.get(b"count").await.expect("read"));
    future::yield_now().await;
    let again = number(snapshot.get(b"count/again").await.expect("read"));
    assert_eq!(count, again, "a part of a batch");
    count
}

#[test]
fn each_commit_is_applied_once_as_a_whole_and_seen_by_whoever_comes_after() {
    let _turn = disk::exclusive();
    explore(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open(folder.path());
        future::block_on(async {
            let writers = [0, 1, 2].map(|_| {
                let engine = Arc::clone(&engine);
                future::spawn(async move {
                    let mut counted = Vec::new();
                    for _ in 0..2 {
                        counted.push(increment(&engine).await);
                        assert!(Some(&count(&engine).await) >= counted.last(), "acknowledged");
                    }
                    counted
                })
            });
            let reader = {
                let engine = Arc::clone(&engine);
                future::spawn(async move {
                    let first = count(&engine).await;
                    assert!(count(&engine).await >= first, "time goes backwards");
                })
            };
            reader.await.expect("done");
            let mut counted = Vec::new();
            for writer in writers {
                counted.extend(writer.await.expect("done"));
            }
            counted.sort_unstable();
            assert_eq!(counted, [1, 2, 3, 4, 5, 6], "each is counted once");
            assert_eq!(count(&engine).await, 6);
        });
    });
}

/// How many batches were reported to a writer as committed, and whether it then met a failure.
async fn put_until_refused(engine: &EmbeddedEngine, writer: usize) -> (u64, bool) {
    for batch in 0..3_u64 {
        let was_poisoned = engine.poisoned().is_some();
        let mut next = Batch::blind();
        next.put(format!("{writer}/{batch}"), vec![1; 3000]);
        let outcome = engine.commit(next).await;
        assert!(!(was_poisoned && outcome.is_ok()), "acknowledged after a failure");
        if outcome.is_err() {
            return (batch, true);
        }
    }
    (3, false)
}

#[test]
fn a_failed_write_or_sync_acknowledges_nobody_and_loses_nothing_acknowledged() {
    let _turn = disk::exclusive();
    explore(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open(folder.path());
        disk::start(folder.path());
        disk::fail_after(thread_rng().gen_range(0..12));
        let told = future::block_on(async {
            let writers = [0, 1, 2].map(|writer| {
                let engine = Arc::clone(&engine);
                future::spawn(async move { put_until_refused(&engine, writer).await })
            });
            let mut told = Vec::new();
            for writer in writers {
                told.push(writer.await.expect("done"));
            }
            // Whichever thread has met the failure is about to say so.
            while disk::has_failed() && engine.poisoned().is_none() {
                future::yield_now().await;
            }
            told
        });
        let (has_failed, is_poisoned) = (disk::has_failed(), engine.poisoned().is_some());
        drop(engine);
        disk::stop();
        assert!(!told.iter().any(|(_, refused)| *refused) || is_poisoned, "refused for nothing");
        assert!(!is_poisoned || has_failed, "poisoned for nothing");

        let engine = open(folder.path());
        future::block_on(async {
            let snapshot = engine.snapshot().await.expect("a snapshot");
            for (writer, (acknowledged, _)) in told.into_iter().enumerate() {
                for batch in 0..acknowledged {
                    let row = snapshot.get(format!("{writer}/{batch}").as_bytes()).await;
                    assert!(row.expect("read").is_some(), "{writer}/{batch} was acknowledged");
                }
            }
        });
    });
}

/// Increments the placed state. Returns the highest count that it knows to be durable: its own or, on a
/// conflict, the one it has waited for.
async fn count_on_placed(engine: &EmbeddedEngine) -> u64 {
    let mut told = 0;
    for round in 0..4_u64 {
        let Ok(snapshot) = engine.placed_snapshot().await else { break };
        let Ok(row) = snapshot.get(b"count").await else { break };
        let seen = number(row);
        if round % 2 == 1 {
            // Like a refusal: nothing is written, but the answer rests on what was seen.
            if engine.settled(&snapshot.moment()).await.is_err() {
                break;
            }
            told = told.max(seen);
            continue;
        }
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_row("count").put("count", (seen + 1).to_be_bytes().to_vec());
        batch.put("filling", vec![1; 3000]);
        match engine.place(batch).await {
            Ok(placed) => match placed.durable().await {
                Ok(()) => told = told.max(seen + 1),
                Err(_) => break,
            },
            Err(CommitError::Conflict) => {}
            Err(_) => break,
        }
    }
    told
}

#[test]
fn whoever_is_answered_by_what_is_placed_finds_it_after_a_failure() {
    let _turn = disk::exclusive();
    explore(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open(folder.path());
        disk::start(folder.path());
        disk::fail_after(thread_rng().gen_range(0..16));
        let told = future::block_on(async {
            let writers = [0, 1, 2].map(|_| {
                let engine = Arc::clone(&engine);
                future::spawn(async move { count_on_placed(&engine).await })
            });
            let mut told = 0;
            for writer in writers {
                told = told.max(writer.await.expect("done"));
            }
            while disk::has_failed() && engine.poisoned().is_none() {
                future::yield_now().await;
            }
            told
        });
        drop(engine);
        disk::stop();
        let engine = open(folder.path());
        let kept = future::block_on(async {
            let snapshot = engine.snapshot().await.expect("a snapshot");
            number(snapshot.get(b"count").await.expect("read"))
        });
        assert!(kept >= told, "told of {told}, {kept} are kept");
    });
}
