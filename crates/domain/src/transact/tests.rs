mod held_engine;

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_store::memory::MemoryEngine;

use self::held_engine::HeldEngine;
use super::*;

fn counter(value: Option<Bytes>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.as_ref().try_into().expect("8 bytes")))
}

async fn increment(engine: &dyn Engine, latches: &Latches, latched: &[Bytes]) -> u64 {
    let key = Bytes::from_static(b"counter");
    let incremented: Result<(u64, Released), Failure<()>> =
        transact(engine, latches, latched, async |mut transaction: Transaction| {
            let next = counter(transaction.get(&key).await?) + 1;
            transaction.put(key.clone(), next.to_be_bytes().to_vec());
            // Lets others commit between the read and the commit of this attempt.
            tokio::task::yield_now().await;
            Ok((next, transaction))
        })
        .await;
    incremented.expect("the counter is incremented").0
}

#[tokio::test]
async fn concurrent_increments_under_one_latch_lose_nothing() {
    let (engine, latches) = (Arc::new(MemoryEngine::default()), Arc::new(Latches::default()));
    let tasks = (0..100).map(|_| {
        let (engine, latches) = (Arc::clone(&engine), Arc::clone(&latches));
        tokio::spawn(async move {
            increment(&*engine, &latches, &[Bytes::from_static(b"counter")]).await
        })
    });
    let mut seen: Vec<u64> = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        seen.push(task.await.expect("no panic"));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn without_a_latch_the_expectations_alone_prevent_a_lost_update() {
    let (engine, latches) = (MemoryEngine::default(), Latches::default());
    let (first, second) =
        tokio::join!(increment(&engine, &latches, &[]), increment(&engine, &latches, &[]));
    assert_eq!(first.max(second), 2, "both increments counted");
    assert_eq!(engine.statistics().conflicts, 1, "one of them had to try again");
}

#[tokio::test]
async fn an_operation_that_never_wins_is_told_so_after_bounded_attempts() {
    let (engine, latches) = (MemoryEngine::default(), Latches::default());
    let attempts = AtomicUsize::new(0);
    let key = Bytes::from_static(b"contended");
    let outcome: Result<((), Released), Failure<()>> =
        transact(&engine, &latches, &[], async |mut transaction: Transaction| {
            attempts.fetch_add(1, Ordering::Relaxed);
            transaction.get(&key).await?;
            transaction.put(key.clone(), "mine");
            let mut other = Batch::blind();
            other.put(key.clone(), "theirs");
            engine.commit(other).await.expect("blind writes always commit");
            Ok(((), transaction))
        })
        .await;
    assert!(matches!(outcome, Err(Failure::Busy)), "{outcome:?}");
    assert_eq!(attempts.load(Ordering::Relaxed), ATTEMPTS_MAX);
}

#[tokio::test]
async fn a_refusal_commits_nothing() {
    let (engine, latches) = (MemoryEngine::default(), Latches::default());
    let outcome: Result<((), Released), Failure<&str>> =
        transact(&engine, &latches, &[], async |mut transaction: Transaction| {
            transaction.put("key", "value");
            Err(Failure::Refused("no"))
        })
        .await;
    assert!(matches!(outcome, Err(Failure::Refused("no"))));
    assert_eq!(engine.statistics().commits, 0);
}

/// Creates the object unless it exists.
async fn create(engine: &HeldEngine, latches: &Latches) -> Result<(), Failure<&'static str>> {
    let key = Bytes::from_static(b"object");
    let latched = [key.clone()];
    let created = transact_pipelined(engine, latches, &latched, async |mut transaction| {
        if transaction.get(&key).await?.is_some() {
            return Err(Failure::Refused("exists"));
        }
        transaction.put(key.clone(), "created");
        Ok(((), transaction))
    });
    created.await.map(|((), _)| ())
}

/// Runs all tasks that can proceed.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn held() -> (Arc<HeldEngine>, Arc<Latches>) {
    (Arc::default(), Arc::default())
}

fn spawn_create(
    engine: &Arc<HeldEngine>,
    latches: &Arc<Latches>,
) -> tokio::task::JoinHandle<Result<(), Failure<&'static str>>> {
    let (engine, latches) = (Arc::clone(engine), Arc::clone(latches));
    tokio::spawn(async move { create(&engine, &latches).await })
}

#[tokio::test]
async fn pipelined_changes_of_one_object_wait_for_one_sync_and_lose_nothing() {
    let (engine, latches) = held();
    let key = Bytes::from_static(b"counter");
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (engine, latches, key) = (Arc::clone(&engine), Arc::clone(&latches), key.clone());
            tokio::spawn(async move {
                let counted: Result<(u64, Released), Failure<()>> = transact_pipelined(
                    &*engine,
                    &latches,
                    slice::from_ref(&key),
                    async |mut transaction| {
                        let next = counter(transaction.get(&key).await?) + 1;
                        transaction.put(key.clone(), next.to_be_bytes().to_vec());
                        Ok((next, transaction))
                    },
                )
                .await;
                counted.expect("counted").0
            })
        })
        .collect();
    settle().await;
    assert_eq!(engine.waiting(), 20, "all have their place");
    assert!(tasks.iter().all(|task| !task.is_finished()), "and nobody was told");
    engine.make_durable().await;
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(task.await.expect("no panic"));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_refusal_by_what_may_be_lost_waits_until_it_is_durable() {
    let (engine, latches) = held();
    let first = spawn_create(&engine, &latches);
    settle().await;
    let second = spawn_create(&engine, &latches);
    settle().await;
    assert!(!first.is_finished() && !second.is_finished());
    engine.make_durable().await;
    assert!(matches!(first.await, Ok(Ok(()))));
    assert!(matches!(second.await, Ok(Err(Failure::Refused("exists")))));
}

#[tokio::test]
async fn a_refusal_by_what_was_lost_is_a_fault() {
    let (engine, latches) = held();
    let first = spawn_create(&engine, &latches);
    settle().await;
    let second = spawn_create(&engine, &latches);
    settle().await;
    engine.lose();
    assert!(matches!(first.await, Ok(Err(Failure::OutcomeUnknown(_)))));
    assert!(matches!(second.await, Ok(Err(Failure::Fault(_)))));
}

#[tokio::test]
async fn a_refusal_by_what_is_durable_waits_for_nobody() {
    let (engine, latches) = held();
    let first = spawn_create(&engine, &latches);
    settle().await;
    engine.make_durable().await;
    assert!(matches!(first.await, Ok(Ok(()))));
    let mut other = Batch::blind();
    other.put("other", "x");
    let _not_durable = engine.place(other).await.expect("placed");
    assert!(matches!(create(&engine, &latches).await, Err(Failure::Refused("exists"))));
    let _turn = latches.acquire(&["object"]).await;
    assert!(matches!(create(&engine, &latches).await, Err(Failure::Refused("exists"))));
}

#[tokio::test]
async fn what_writes_nothing_waits_for_what_it_has_read() {
    let (engine, latches) = held();
    let first = spawn_create(&engine, &latches);
    settle().await;
    let look = tokio::spawn({
        let (engine, latches) = (Arc::clone(&engine), Arc::clone(&latches));
        async move {
            let key = Bytes::from_static(b"object");
            let seen: Result<(bool, Released), Failure<()>> = transact_pipelined(
                &*engine,
                &latches,
                slice::from_ref(&key),
                async |mut transaction| Ok((transaction.get(&key).await?.is_some(), transaction)),
            )
            .await;
            seen.expect("no refusal").0
        }
    });
    settle().await;
    assert!(!look.is_finished());
    engine.make_durable().await;
    assert!(look.await.expect("no panic"));
    assert!(matches!(first.await, Ok(Ok(()))));
}

#[tokio::test]
async fn a_conflict_with_what_is_not_durable_yet_is_waited_for() {
    let (engine, latches) = held();
    let first = spawn_create(&engine, &latches);
    settle().await;
    let second = tokio::spawn({
        let (engine, latches) = (Arc::clone(&engine), Arc::clone(&latches));
        async move {
            let key = Bytes::from_static(b"object");
            let changed: Result<(bool, Released), Failure<()>> =
                transact(&*engine, &latches, &[], async |mut transaction: Transaction| {
                    let existed = transaction.get(&key).await?.is_some();
                    transaction.put(key.clone(), "changed");
                    Ok((existed, transaction))
                })
                .await;
            changed.expect("not busy").0
        }
    });
    settle().await;
    engine.make_durable().await;
    settle().await;
    engine.make_durable().await;
    assert!(second.await.expect("no panic"), "it saw what it had met a conflict with");
    assert!(matches!(first.await, Ok(Ok(()))));
}
