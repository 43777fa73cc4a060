//! What [`Engine`](crate::Engine) promises, as cases. `engine_contract!` makes tests of them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Random, seed};
use crate::engine::{
    Batch, CommitError, Engine, KEY_BYTES_MAX, KeyRange, Order, Row, Snapshot, VALUE_BYTES_MAX,
    Write,
};

/// Makes the engines that the cases run on.
#[async_trait]
pub trait EngineFixture: Send + Sync {
    /// A new engine without rows.
    async fn create(&self) -> Arc<dyn Engine>;

    /// Closes the engine and opens another one over the same rows; `None` if it keeps nothing. The
    /// caller holds no other reference to it and no snapshot of it.
    async fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>>;
}

/// One test for every case, on the fixture that the expression makes.
#[macro_export]
macro_rules! engine_contract {
    ($fixture:expr) => {
        $crate::engine_contract!(@cases $fixture,
            snapshot_stays_still_under_writes,
            reads_agree_with_a_model,
            row_expectation_holds_or_conflicts,
            range_expectation_catches_phantoms,
            range_expectation_ends_at_its_bounds,
            conflict_leaves_nothing,
            expectation_without_writes_is_checked,
            blind_batch_never_conflicts,
            concurrent_increments_lose_nothing,
            last_write_of_a_key_counts,
            longest_keys_and_values_fit,
            batch_is_seen_whole_or_not_at_all,
            reopening_sees_exactly_what_was_committed,
            expectations_work_after_reopening,
            a_placed_batch_is_decided_on_before_it_is_durable,
            a_batch_decided_before_one_that_is_placed_conflicts,
            placed_increments_lose_nothing,
        );
    };
    (@cases $fixture:expr, $($case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::contract::engine::$case(&$fixture).await;
            }
        )*
    };
}

async fn rows_of(snapshot: &dyn Snapshot) -> Vec<(Bytes, Bytes)> {
    let rows = snapshot.scan(&KeyRange::all(), Order::Ascending, usize::MAX).await.unwrap();
    rows.into_iter().map(|row| (row.key, row.value)).collect()
}

async fn put(engine: &dyn Engine, key: &'static str, value: &'static str) {
    let mut batch = Batch::blind();
    batch.put(key, value);
    engine.commit(batch).await.unwrap();
}

async fn delete(engine: &dyn Engine, key: &'static str) {
    let mut batch = Batch::blind();
    batch.delete(key);
    engine.commit(batch).await.unwrap();
}

fn is_conflict(outcome: &Result<(), CommitError>) -> bool {
    matches!(outcome, Err(CommitError::Conflict))
}

pub async fn snapshot_stays_still_under_writes(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    put(&*engine, "changed", "old").await;
    put(&*engine, "deleted", "old").await;
    let before = engine.snapshot().await.unwrap();
    put(&*engine, "changed", "new").await;
    put(&*engine, "added", "new").await;
    delete(&*engine, "deleted").await;
    for step in 0..300 {
        let mut batch = Batch::blind();
        batch.put("changed", step.to_string()).put(format!("more/{step}"), vec![b'x'; 500]);
        engine.commit(batch).await.unwrap();
    }
    let old = Bytes::from("old");
    assert_eq!(before.get(b"changed").await.unwrap(), Some(old.clone()));
    assert_eq!(before.get(b"deleted").await.unwrap(), Some(old.clone()));
    assert_eq!(before.get(b"added").await.unwrap(), None);
    let seen = rows_of(&*before).await;
    assert_eq!(seen, [("changed".into(), old.clone()), ("deleted".into(), old)]);

    let after = engine.snapshot().await.unwrap();
    assert_eq!(after.get(b"changed").await.unwrap(), Some("299".into()));
    assert_eq!(after.get(b"deleted").await.unwrap(), None);
    assert_eq!(after.get(b"added").await.unwrap(), Some("new".into()));
}

/// Short keys over a small alphabet, so that keys are often prefixes of each other and often
/// repeat.
fn random_key(random: &mut Random) -> Bytes {
    const ALPHABET: &[u8] = &[0x00, 0x01, b'a', b'b', 0x7F, 0x80, 0xFE, 0xFF];
    let length = random.within(1..5);
    (0..length).map(|_| ALPHABET[random.within(0..ALPHABET.len())]).collect()
}

fn random_bound(random: &mut Random) -> Bound<Bytes> {
    match random.within(0..5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(random_key(random)),
        _ => Bound::Excluded(random_key(random)),
    }
}

fn random_range(random: &mut Random) -> KeyRange {
    if random.one_in(4) {
        KeyRange::prefix(random_key(random))
    } else {
        KeyRange { start: random_bound(random), end: random_bound(random) }
    }
}

async fn compare(
    snapshot: &dyn Snapshot,
    model: &BTreeMap<Bytes, Bytes>,
    random: &mut Random,
    reads: usize,
) {
    for _ in 0..reads {
        let key = random_key(random);
        assert_eq!(snapshot.get(&key).await.unwrap(), model.get(&key).cloned(), "{key:?}");
        let range = random_range(random);
        let limit = [0, 1, 2, 7, usize::MAX][random.within(0..5)];
        for order in [Order::Ascending, Order::Descending] {
            let within = model.iter().filter(|(key, _)| range.contains(key));
            let mut expected: Vec<Row> =
                within.map(|(key, value)| Row { key: key.clone(), value: value.clone() }).collect();
            if order == Order::Descending {
                expected.reverse();
            }
            expected.truncate(limit);
            let found = snapshot.scan(&range, order, limit).await.unwrap();
            assert_eq!(found, expected, "{range:?} {order:?} {limit}");
        }
    }
}

fn apply(model: &mut BTreeMap<Bytes, Bytes>, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Put { key, value } => model.insert(key.clone(), value.clone()),
            Write::Delete { key } => model.remove(key),
        };
    }
}

fn random_batch(random: &mut Random) -> Batch {
    let mut batch = Batch::blind();
    for _ in 0..random.within(1..6) {
        let key = random_key(random);
        if random.one_in(3) {
            batch.delete(key);
        } else {
            let value: Vec<u8> = vec![random.number() as u8; random.within(0..200)];
            batch.put(key, value);
        }
    }
    batch
}

pub async fn reads_agree_with_a_model(fixture: &dyn EngineFixture) {
    let mut random = Random::new(seed(20_260_101));
    let engine = fixture.create().await;
    let mut model = BTreeMap::new();
    let mut held: Vec<(Box<dyn Snapshot>, BTreeMap<Bytes, Bytes>)> = Vec::new();
    for _ in 0..400 {
        let batch = random_batch(&mut random);
        apply(&mut model, batch.writes());
        engine.commit(batch).await.unwrap();
        if random.one_in(10) {
            held.push((engine.snapshot().await.unwrap(), model.clone()));
        }
        if random.one_in(10) && !held.is_empty() {
            let (snapshot, then) = held.swap_remove(random.within(0..held.len()));
            compare(&*snapshot, &then, &mut random, 5).await;
        }
        let now = engine.snapshot().await.unwrap();
        compare(&*now, &model, &mut random, 1).await;
    }
    for (snapshot, then) in held {
        compare(&*snapshot, &then, &mut random, 5).await;
        assert_eq!(rows_of(&*snapshot).await, then.into_iter().collect::<Vec<_>>());
    }
}

pub async fn row_expectation_holds_or_conflicts(fixture: &dyn EngineFixture) {
    enum Between {
        Nothing,
        Other,
        Put,
        Delete,
        DeleteAndPutBack,
    }
    use Between::{Delete, DeleteAndPutBack, Nothing, Other, Put};
    let cases = [
        ("present, untouched", true, Nothing, false),
        ("present, another row written", true, Other, false),
        ("present, written again", true, Put, true),
        ("present, deleted", true, Delete, true),
        ("present, deleted and put back", true, DeleteAndPutBack, true),
        ("absent, untouched", false, Nothing, false),
        ("absent, another row written", false, Other, false),
        ("absent, created", false, Put, true),
        ("absent, created and deleted", false, DeleteAndPutBack, true),
    ];
    let engine = fixture.create().await;
    for (case, present, between, conflict) in cases {
        delete(&*engine, "row").await;
        if present {
            put(&*engine, "row", "same").await;
        }
        let snapshot = engine.snapshot().await.unwrap();
        match between {
            Nothing => {}
            Other => put(&*engine, "rows", "x").await,
            Put => put(&*engine, "row", "same").await,
            Delete => delete(&*engine, "row").await,
            DeleteAndPutBack if present => {
                delete(&*engine, "row").await;
                put(&*engine, "row", "same").await;
            }
            DeleteAndPutBack => {
                put(&*engine, "row", "same").await;
                delete(&*engine, "row").await;
            }
        }
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_row("row").put("result", case);
        let outcome = engine.commit(batch).await;
        assert_eq!(is_conflict(&outcome), conflict, "{case}: {outcome:?}");
    }
    assert_eq!(engine.statistics().conflicts, 5, "conflicts are counted");
}

pub async fn range_expectation_catches_phantoms(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    type Change = (&'static str, &'static str, bool);
    let cases: [Change; 6] = [
        ("row inserted", "d/2", true),
        ("row inserted at the very start", "d/", true),
        ("row inserted at the very end", "d/\u{7f}", true),
        ("row changed", "d/1", true),
        ("row before the range", "d", false),
        ("row after the range", "d0", false),
    ];
    for (case, key, conflict) in cases {
        put(&*engine, "d/1", "here").await;
        let snapshot = engine.snapshot().await.unwrap();
        put(&*engine, key, "phantom").await;
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_range(KeyRange::prefix("d/")).put("result", case);
        let outcome = engine.commit(batch).await;
        assert_eq!(is_conflict(&outcome), conflict, "{case}: {outcome:?}");
    }
    let snapshot = engine.snapshot().await.unwrap();
    delete(&*engine, "d/1").await;
    let mut batch = Batch::since(snapshot.moment());
    batch.expect_range(KeyRange::prefix("d/")).put("result", "row deleted");
    assert!(is_conflict(&engine.commit(batch).await), "row deleted");

    // Two callers that each saw the range without the other's row: only one may commit.
    let seen_by_both = engine.snapshot().await.unwrap();
    let outcomes = ["e/1", "e/2"].map(|key| {
        let mut batch = Batch::since(seen_by_both.moment());
        batch.expect_range(KeyRange::prefix("e/")).put(key, "mine");
        engine.commit(batch)
    });
    let outcomes = futures_util::future::join_all(outcomes).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
}

pub async fn range_expectation_ends_at_its_bounds(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    let included = |key: &'static str| Bound::Included(Bytes::from(key));
    let excluded = |key: &'static str| Bound::Excluded(Bytes::from(key));
    let cases = [
        (included("b"), included("d"), ["b", "c", "d"].as_slice()),
        (excluded("b"), included("d"), &["c", "d"]),
        (included("b"), excluded("d"), &["b", "c"]),
        (excluded("b"), excluded("d"), &["c"]),
        (Bound::Unbounded, included("b"), &["a", "b"]),
        (Bound::Unbounded, excluded("b"), &["a"]),
        (included("d"), Bound::Unbounded, &["d", "e"]),
        (excluded("d"), Bound::Unbounded, &["e"]),
        (included("d"), included("b"), &[]),
        (excluded("c"), excluded("c"), &[]),
        (Bound::Unbounded, Bound::Unbounded, &["a", "b", "c", "d", "e"]),
    ];
    for (start, end, inside) in cases {
        for key in ["a", "b", "c", "d", "e"] {
            let snapshot = engine.snapshot().await.unwrap();
            put(&*engine, key, "x").await;
            let mut batch = Batch::since(snapshot.moment());
            let range = KeyRange { start: start.clone(), end: end.clone() };
            batch.expect_range(range.clone()).put("z/result", "x");
            let outcome = engine.commit(batch).await;
            // The result of the case before lies inside ranges without an end, but before the
            // snapshot.
            assert_eq!(is_conflict(&outcome), inside.contains(&key), "{range:?} {key}");
        }
    }
}

pub async fn conflict_leaves_nothing(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    put(&*engine, "ground", "1").await;
    put(&*engine, "kept", "1").await;
    let snapshot = engine.snapshot().await.unwrap();
    put(&*engine, "ground", "2").await;
    let before = rows_of(&*engine.snapshot().await.unwrap()).await;
    let mut batch = Batch::since(snapshot.moment());
    batch.expect_row("ground").put("first", "x").delete("kept").put("ground", "3");
    assert!(is_conflict(&engine.commit(batch).await));
    assert_eq!(rows_of(&*engine.snapshot().await.unwrap()).await, before);
    // And what it would have written is not a change either.
    let snapshot = engine.snapshot().await.unwrap();
    let mut batch = Batch::since(snapshot.moment());
    batch.expect_row("first").expect_row("kept").put("second", "x");
    engine.commit(batch).await.unwrap();
}

pub async fn expectation_without_writes_is_checked(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    let snapshot = engine.snapshot().await.unwrap();
    let still_true = || {
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_row("row");
        batch
    };
    engine.commit(still_true()).await.unwrap();
    put(&*engine, "row", "x").await;
    assert!(is_conflict(&engine.commit(still_true()).await));
}

pub async fn blind_batch_never_conflicts(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    let commits = (0..32).map(|value| {
        let mut batch = Batch::blind();
        batch.put("row", value.to_string());
        engine.commit(batch)
    });
    for outcome in futures_util::future::join_all(commits).await {
        outcome.unwrap();
    }
}

async fn increment(engine: &dyn Engine, key: &'static [u8], times: usize) {
    let mut done = 0;
    while done < times {
        let snapshot = engine.snapshot().await.unwrap();
        let value = snapshot.get(key).await.unwrap();
        let count: u64 =
            value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap());
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_row(key).put(key, (count + 1).to_string());
        match engine.commit(batch).await {
            Ok(()) => done += 1,
            Err(CommitError::Conflict) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

pub async fn concurrent_increments_lose_nothing(fixture: &dyn EngineFixture) {
    const TASKS: usize = 8;
    const TIMES: usize = 25;
    let engine = fixture.create().await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { increment(&*engine, b"count", TIMES).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let count = engine.snapshot().await.unwrap().get(b"count").await.unwrap().unwrap();
    assert_eq!(count, (TASKS * TIMES).to_string());
}

pub async fn last_write_of_a_key_counts(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    put(&*engine, "gone", "x").await;
    let mut batch = Batch::blind();
    batch.put("a", "1").put("a", "2").delete("b").put("b", "3").put("c", "4").delete("c");
    batch.put("gone", "5").delete("gone").put("a", "6");
    engine.commit(batch).await.unwrap();
    let rows = rows_of(&*engine.snapshot().await.unwrap()).await;
    assert_eq!(rows, [("a".into(), "6".into()), ("b".into(), "3".into())]);
}

pub async fn longest_keys_and_values_fit(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    let long_key = |last: u8| {
        let mut key = vec![0xFF; KEY_BYTES_MAX];
        key[KEY_BYTES_MAX - 1] = last;
        Bytes::from(key)
    };
    let value: Bytes = (0..VALUE_BYTES_MAX).map(|index| (index * 31 % 251) as u8).collect();
    let mut batch = Batch::blind();
    batch.put(long_key(1), value.clone()).put(long_key(2), value.clone()).put("short", "");
    engine.commit(batch).await.unwrap();
    let check = async |engine: &dyn Engine| {
        let snapshot = engine.snapshot().await.unwrap();
        let found = snapshot.get(&long_key(2)).await.unwrap();
        assert!(found.as_ref() == Some(&value), "the longest value is changed");
        assert_eq!(snapshot.get(b"short").await.unwrap(), Some(Bytes::new()));
        let range = KeyRange { start: Bound::Excluded(long_key(1)), end: Bound::Unbounded };
        let rows = snapshot.scan(&range, Order::Ascending, 10).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].key, long_key(2));
    };
    check(&*engine).await;
    if let Some(reopened) = fixture.reopen(engine).await {
        check(&*reopened).await;
    }
}

pub async fn batch_is_seen_whole_or_not_at_all(fixture: &dyn EngineFixture) {
    const ROWS: usize = 10;
    let engine = fixture.create().await;
    let writer = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            for step in 0..200 {
                let mut batch = Batch::blind();
                for row in 0..ROWS {
                    batch.put(format!("row/{row}"), step.to_string());
                }
                engine.commit(batch).await.unwrap();
            }
        })
    };
    let mut looked = 0;
    while !writer.is_finished() || looked == 0 {
        let snapshot = engine.snapshot().await.unwrap();
        let rows = rows_of(&*snapshot).await;
        assert!(rows.is_empty() || rows.len() == ROWS, "{rows:?}");
        assert!(rows.windows(2).all(|pair| pair[0].1 == pair[1].1), "{rows:?}");
        looked += 1;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}

pub async fn reopening_sees_exactly_what_was_committed(fixture: &dyn EngineFixture) {
    let mut random = Random::new(seed(20_260_102));
    let mut engine = fixture.create().await;
    let mut model = BTreeMap::new();
    for _ in 0..5 {
        for _ in 0..60 {
            let batch = random_batch(&mut random);
            apply(&mut model, batch.writes());
            engine.commit(batch).await.unwrap();
        }
        let Some(reopened) = fixture.reopen(engine).await else { return };
        engine = reopened;
        let snapshot = engine.snapshot().await.unwrap();
        let expected: Vec<_> =
            model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(rows_of(&*snapshot).await, expected);
        compare(&*snapshot, &model, &mut random, 20).await;
    }
}

pub async fn expectations_work_after_reopening(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    put(&*engine, "row", "1").await;
    let Some(engine) = fixture.reopen(engine).await else { return };
    let snapshot = engine.snapshot().await.unwrap();
    let decided = || {
        let mut batch = Batch::since(snapshot.moment());
        batch.expect_row("row").expect_range(KeyRange::prefix("r")).put("row", "2");
        batch
    };
    engine.commit(decided()).await.unwrap();
    assert!(is_conflict(&engine.commit(decided()).await));
}

pub async fn a_placed_batch_is_decided_on_before_it_is_durable(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    for round in 0..50_u32 {
        let value = Bytes::copy_from_slice(&round.to_be_bytes());
        let mut first = Batch::blind();
        first.put("first", value.clone());
        let first = engine.place(first).await.unwrap();
        let seen = engine.placed_snapshot().await.unwrap();
        assert_eq!(seen.get(b"first").await.unwrap(), Some(value.clone()));
        let mut second = Batch::since(seen.moment());
        second.expect_row("first").expect_range(KeyRange::prefix("f")).put("second", value.clone());
        let second = engine.place(second).await.expect("nothing has changed since");
        second.durable().await.unwrap();
        let durable = engine.snapshot().await.unwrap();
        assert_eq!(
            durable.get(b"first").await.unwrap(),
            Some(value.clone()),
            "it is the older one"
        );
        assert_eq!(durable.get(b"second").await.unwrap(), Some(value));
        engine.settled(&seen.moment()).await.unwrap();
        first.durable().await.unwrap();
    }
}

pub async fn a_batch_decided_before_one_that_is_placed_conflicts(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    put(&*engine, "row", "before").await;
    let snapshot = engine.snapshot().await.unwrap();
    let mut changing = Batch::blind();
    changing.put("row", "after");
    let placed = engine.place(changing).await.unwrap();
    let decided = |expect: fn(&mut Batch)| {
        let mut batch = Batch::since(snapshot.moment());
        expect(&mut batch);
        batch
    };
    for (case, expect) in [
        ("row", (|it| _ = it.expect_row("row").put("row", "late")) as fn(&mut Batch)),
        ("range", |it| _ = it.expect_range(KeyRange::prefix("r")).put("other", "late")),
        ("without writes", |it| _ = it.expect_row("row")),
    ] {
        let outcome = engine.commit(decided(expect)).await;
        assert!(is_conflict(&outcome), "{case}: {outcome:?}");
    }
    let newest = engine.placed_snapshot().await.unwrap();
    engine.settled(&newest.moment()).await.unwrap();
    let durable = engine.snapshot().await.unwrap();
    assert_eq!(durable.get(b"row").await.unwrap(), Some("after".into()));
    placed.durable().await.unwrap();
}

pub async fn placed_increments_lose_nothing(fixture: &dyn EngineFixture) {
    let engine = fixture.create().await;
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    let tasks = (0..200).map(|_| {
        let (engine, turn) = (Arc::clone(&engine), Arc::clone(&turn));
        tokio::spawn(async move {
            let alone = turn.lock().await;
            let snapshot = engine.placed_snapshot().await.unwrap();
            let value = snapshot.get(b"count").await.unwrap();
            let next = value.map_or(0, |value| value[0]) + 1;
            let mut batch = Batch::since(snapshot.moment());
            batch.expect_row("count").put("count", vec![next]);
            let placed = engine.place(batch).await.expect("nobody else has a turn");
            drop(alone);
            placed.durable().await.unwrap();
            let durable = engine.snapshot().await.unwrap().get(b"count").await.unwrap();
            assert!(durable.is_some_and(|value| value[0] >= next), "acknowledged");
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let count = engine.snapshot().await.unwrap().get(b"count").await.unwrap();
    assert_eq!(count, Some(vec![200].into()));
}
