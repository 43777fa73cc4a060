//! The engine on a real PostgreSQL server.

mod contract;
mod proxy;
mod server;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_random::Random;
use holdfast_store::postgres::{PostgresEngine, PostgresOptions};
use holdfast_store::{Batch, CommitError, Engine, KeyRange, Order};
use proxy::{Cut, Proxy};
use server::{Place, patient};

async fn fresh() -> (Place, PostgresEngine) {
    let place = Place::new().await;
    let engine = place.open(patient()).await;
    (place, engine)
}

async fn value_of(engine: &PostgresEngine, key: &[u8]) -> Option<Bytes> {
    engine.snapshot().await.expect("a snapshot").get(key).await.expect("a read")
}

async fn put(engine: &PostgresEngine, key: &'static str, value: &'static str) {
    let mut batch = Batch::blind();
    batch.put(key, value);
    engine.commit(batch).await.expect("nothing stands in the way");
}

/// Longer than an entry of a PostgreSQL index can be, and not compressible to less.
fn long_key(last: u8) -> Bytes {
    let mut key = Random::new(1).bytes(holdfast_store::engine::KEY_BYTES_MAX);
    key[8191] = last;
    key.into()
}

#[tokio::test]
async fn keys_longer_than_an_index_entry_keep_their_order_and_identity() {
    let (_place, engine) = fresh().await;
    let short = long_key(0).slice(..2000);
    let keys = [short.clone(), long_key(1), long_key(2), long_key(3)];
    let mut batch = Batch::blind();
    for key in keys.iter().rev() {
        batch.put(key.clone(), "first");
    }
    engine.commit(batch).await.expect("committed");
    let mut batch = Batch::blind();
    batch.put(keys[2].clone(), "second").delete(keys[3].clone());
    engine.commit(batch).await.expect("committed");

    let snapshot = engine.snapshot().await.expect("a snapshot");
    let found = |rows: Vec<holdfast_store::Row>| {
        rows.into_iter().map(|row| (row.key, row.value)).collect::<Vec<_>>()
    };
    let expected: Vec<(Bytes, Bytes)> =
        keys.iter().cloned().zip(["first", "first", "second"].map(Bytes::from)).collect();
    let rows = snapshot.scan(&KeyRange::all(), Order::Ascending, 10).await.expect("a scan");
    assert_eq!(found(rows), expected);
    let range = KeyRange::prefix(short).after(keys[0].clone());
    let rows = snapshot.scan(&range, Order::Descending, 1).await.expect("a scan");
    assert_eq!(found(rows), expected[2..]);
    assert_eq!(snapshot.get(&keys[2]).await.expect("a read"), Some(Bytes::from("second")));
    assert_eq!(snapshot.get(&keys[3]).await.expect("a read"), None);
}

/// One every 50 ms.
const SWEEPS_MAX: usize = 400;

#[tokio::test]
async fn sweep_removes_deletions_and_refuses_moments_before_them() {
    let (place, engine) = fresh().await;
    put(&engine, "gone", "1").await;
    put(&engine, "back", "1").await;
    let before = engine.snapshot().await.expect("a snapshot").moment();
    let mut batch = Batch::blind();
    batch.delete("gone").delete("back");
    engine.commit(batch).await.expect("committed");
    put(&engine, "back", "2").await;

    assert_eq!(engine.sweep_deletions(&before).await.expect("swept"), 0);
    let mut batch = Batch::since(before.clone());
    batch.expect_row("gone").put("other", "1");
    assert!(matches!(engine.commit(batch).await, Err(CommitError::Conflict)));

    // Transactions of other tests that began before the deletion keep it until they have ended.
    let (mut swept, mut after) = (0, before.clone());
    for _ in 0..SWEEPS_MAX {
        after = engine.snapshot().await.expect("a snapshot").moment();
        swept = engine.sweep_deletions(&after).await.expect("swept");
        if swept > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(swept, 2);
    assert_eq!(place.count("holdfast_rows").await, 1);
    assert_eq!(place.count("holdfast_deletions").await, 0);
    assert_eq!(value_of(&engine, b"back").await, Some(Bytes::from("2")));
    let mut batch = Batch::since(before);
    batch.expect_row("untouched").put("other", "1");
    assert!(matches!(engine.commit(batch).await, Err(CommitError::Conflict)));
    let mut batch = Batch::since(after);
    batch.expect_row("gone").expect_range(KeyRange::all()).put("other", "1");
    engine.commit(batch).await.expect("nothing was written since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commits_in_flight_together_never_each_miss_the_other() {
    let (_place, engine) = fresh().await;
    let engine = Arc::new(engine);
    for round in 0..60 {
        let directory = format!("{round}");
        let child = format!("{round}/child");
        let mut batch = Batch::blind();
        batch.put(directory.clone(), "");
        engine.commit(batch).await.expect("committed");
        let moment = engine.snapshot().await.expect("a snapshot").moment();

        let mut delete_directory = Batch::since(moment.clone());
        delete_directory.expect_range(KeyRange::prefix(format!("{round}/")));
        delete_directory.delete(directory.clone());
        let mut create_child = Batch::since(moment);
        create_child.expect_row(directory).put(child, "");
        let (first, second) = (Arc::clone(&engine), Arc::clone(&engine));
        let first = tokio::spawn(async move { first.commit(delete_directory).await });
        let second = tokio::spawn(async move { second.commit(create_child).await });
        match (first.await.expect("no panic"), second.await.expect("no panic")) {
            (Ok(()), Err(CommitError::Conflict)) | (Err(CommitError::Conflict), Ok(())) => {}
            both => panic!("round {round}: {both:?}"),
        }
    }
}

#[tokio::test]
async fn waiting_for_a_snapshot_is_bounded_and_commits_do_not_wait_for_snapshots() {
    let place = Place::new().await;
    // Opening and every statement have to be done within the same time, on a busy machine too.
    let wait_max = Duration::from_secs(5);
    let options = PostgresOptions { snapshots_max: 2, commits_max: 1, wait_max };
    let engine = place.open(options).await;
    let first = engine.snapshot().await.expect("a snapshot");
    let second = engine.snapshot().await.expect("a snapshot");
    assert!(engine.snapshot().await.is_err(), "both connections are held");
    put(&engine, "key", "value").await;
    drop(first);
    let third = engine.snapshot().await.expect("one was given back");
    assert_eq!(third.get(b"key").await.expect("a read"), Some(Bytes::from("value")));
    assert_eq!(second.get(b"key").await.expect("a read"), None);
}

#[tokio::test]
async fn commit_cancelled_halfway_leaves_its_connection_usable_and_nothing_written() {
    let place = Place::new().await;
    let options = PostgresOptions { commits_max: 1, ..patient() };
    let engine = place.open(options).await;
    put(&engine, "key", "old").await;
    let mut batch = Batch::blind();
    batch.put("key", "new");
    {
        let mut commit = std::pin::pin!(engine.commit(batch));
        // One poll sends the first round trip; its answer cannot be there yet.
        assert!(futures_util::poll!(commit.as_mut()).is_pending());
    }
    put(&engine, "other", "value").await;
    assert_eq!(value_of(&engine, b"key").await, Some(Bytes::from("old")));
}

/// The outcome of a commit that meets the cut, and whether it took place.
async fn commit_through(cut: Cut) -> (CommitError, bool) {
    let place = Place::new().await;
    let proxy = Proxy::start(server::port(), cut).await;
    let connection = place.connection_by(proxy.port);
    let engine = PostgresEngine::open(&connection, patient()).await.expect("the proxy carries");
    put(&engine, "before", "value").await;
    proxy.arm();
    let mut batch = Batch::blind();
    batch.put("key", "value");
    let error = engine.commit(batch).await.expect_err("the connection is cut");
    let direct = place.open(patient()).await;
    (error, value_of(&direct, b"key").await.is_some())
}

#[tokio::test]
async fn connection_lost_before_commit_is_a_fault_and_nothing_is_written() {
    let (error, written) = commit_through(Cut::BeforeWriting).await;
    assert!(matches!(error, CommitError::Fault(_)), "{error:?}");
    assert!(!written);
}

#[tokio::test]
async fn commit_lost_on_its_way_to_the_server_is_of_unknown_outcome() {
    let (error, written) = commit_through(Cut::BeforeCommit).await;
    assert!(matches!(error, CommitError::OutcomeUnknown(_)), "{error:?}");
    assert!(!written);
}

#[tokio::test]
async fn commit_whose_answer_is_lost_is_of_unknown_outcome() {
    let (error, written) = commit_through(Cut::AfterCommit).await;
    assert!(matches!(error, CommitError::OutcomeUnknown(_)), "{error:?}");
    assert!(written);
}

#[tokio::test]
async fn store_opens_while_another_process_reads_and_shares_rows_and_moments() {
    let (place, other) = fresh().await;
    put(&other, "key", "value").await;
    let held = other.snapshot().await.expect("a snapshot");
    assert_eq!(held.get(b"key").await.expect("a read"), Some(Bytes::from("value")));
    let engine = place.open(patient()).await;
    assert_eq!(value_of(&engine, b"key").await, Some(Bytes::from("value")));
    let mut batch = Batch::since(held.moment());
    batch.expect_row("key").put("key", "newer");
    engine.commit(batch).await.expect("nothing was written since");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_together_create_one_store() {
    let place = Arc::new(Place::new().await);
    let starting: Vec<_> = (0..6)
        .map(|_| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.open(patient()).await })
        })
        .collect();
    for engine in starting {
        put(&engine.await.expect("it opens"), "key", "value").await;
    }
    assert_eq!(place.count("holdfast_store").await, 1);
}

#[tokio::test]
async fn newer_format_and_foreign_cluster_are_refused_untouched() {
    for (change, reason) in [("format = 2", "format 2"), ("cluster = 1", "another PostgreSQL")] {
        let (place, engine) = fresh().await;
        drop(engine);
        place.run(&format!("UPDATE holdfast_store SET {change}")).await;
        let refused = PostgresEngine::open(&place.connection(), patient()).await;
        let fault = refused.err().expect("it is refused");
        assert!(fault.to_string().contains(reason), "{fault}");
    }
}
