//! Tables and their entities: each operation alone, in transactions, and concurrently.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::access::StoredPolicy;
use holdfast_domain::condition::EntityCondition;
use holdfast_domain::etag::EntityETag;
use holdfast_domain::features::Features;
use holdfast_domain::names::{AccountName, TableName};
use holdfast_domain::table::{
    Change, EntityChange, EntityKey, EntityRefusal, ListTables, Properties, PropertyRefusal,
    RefusedChange, TablePath, TableRefusal, Value, ValueRef,
};
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{Engine, KeyRange};
use support::Store;

const ANY: Option<EntityCondition> = Some(EntityCondition::Any);

fn account() -> AccountName {
    AccountName::new("account").expect("a name")
}

fn table(name: &str) -> TablePath {
    TablePath { account: account(), table: TableName::new(name).expect("a name") }
}

async fn store() -> Store {
    let store = Store::new().await;
    store.domain.create_table(&table("People")).await.expect("a new table");
    store
}

fn properties(values: &[(&str, ValueRef<'_>)]) -> Properties {
    let mut properties = Properties::default();
    for (name, value) in values {
        properties.push(name, *value).expect("a property");
    }
    properties
}

fn numbers(values: &[(&str, i32)]) -> Properties {
    let values: Vec<_> =
        values.iter().map(|(name, value)| (*name, ValueRef::Int32(*value))).collect();
    properties(&values)
}

fn to(row_key: &str, change: Change) -> EntityChange {
    EntityChange { key: EntityKey::new("p", row_key).expect("a key"), change }
}

async fn change(
    store: &Store,
    row_key: &str,
    change: Change,
) -> Result<EntityETag, Failure<EntityRefusal>> {
    store.domain.change_entity(&table("People"), &to(row_key, change)).await
}

fn refusal<T: std::fmt::Debug, R>(result: Result<T, Failure<R>>) -> R {
    match result {
        Err(Failure::Refused(refusal)) => refusal,
        Err(_) => panic!("neither done nor refused"),
        Ok(done) => panic!("done: {done:?}"),
    }
}

async fn get(store: &Store, row_key: &str) -> Option<(EntityETag, Vec<(String, Value)>)> {
    let key = EntityKey::new("p", row_key).expect("a key");
    match store.domain.get_entity(&table("People"), &key).await {
        Ok(stored) => {
            let entity = stored.view().expect("it can be read");
            assert_eq!((entity.partition_key(), entity.row_key()), ("p", row_key));
            let own = entity.own_properties();
            let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Some((entity.etag(), own.collect()))
        }
        Err(Failure::Refused(EntityRefusal::NotFound)) => None,
        Err(failure) => panic!("{failure:?}"),
    }
}

async fn numbers_of(store: &Store, row_key: &str) -> Vec<(String, i32)> {
    let (_, own) = get(store, row_key).await.expect("it is there");
    let number = |value| {
        let Value::Int32(number) = value else { panic!("{value:?}") };
        number
    };
    own.into_iter().map(|(name, value)| (name, number(value))).collect()
}

fn pairs(values: &[(&str, i32)]) -> Vec<(String, i32)> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[tokio::test]
async fn a_table_is_found_in_any_case_and_keeps_the_one_it_was_given() {
    let store = store().await;
    let again = store.domain.create_table(&table("pEOPLE")).await;
    assert_eq!(refusal(again), TableRefusal::AlreadyExists);
    let found = store.domain.get_table(&table("people")).await.expect("it is there");
    assert_eq!(found.name, "People");
    let missing = store.domain.get_table(&table("Places")).await;
    assert_eq!(refusal(missing), TableRefusal::NotFound);
}

#[tokio::test]
async fn a_table_made_again_is_empty_and_the_old_entities_are_collected() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    store.domain.create_table(&table("People")).await.expect("a new table");
    for row in 0..600 {
        let insert = Change::Insert(numbers(&[("a", row)]));
        change(&store, &row.to_string(), insert).await.expect("inserted");
    }
    store.domain.delete_table(&table("people")).await.expect("deleted");
    let gone = change(&store, "1", Change::Insert(Properties::default())).await;
    assert_eq!(refusal(gone), EntityRefusal::TableNotFound);
    assert_eq!(refusal(store.domain.delete_table(&table("People")).await), TableRefusal::NotFound);

    store.domain.create_table(&table("People")).await.expect("its name is free");
    assert!(get(&store, "1").await.is_none());
    change(&store, "1", Change::Insert(numbers(&[("new", 1)]))).await.expect("inserted");
    while store.domain.collect_garbage().await.expect("it goes on") {}
    assert_eq!(numbers_of(&store, "1").await, pairs(&[("new", 1)]));
    let snapshot = engine.snapshot().await.expect("a snapshot");
    let all = snapshot.scan(&KeyRange::all(), holdfast_store::Order::Ascending, 100).await;
    assert_eq!(all.expect("rows").len(), 2, "the table and its one entity");
}

#[tokio::test]
async fn the_name_of_a_deleted_table_can_be_held() {
    let hold = Duration::from_secs(40);
    let features = Features { table_name_hold: hold, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    store.domain.create_table(&table("People")).await.expect("a new table");
    store.domain.delete_table(&table("People")).await.expect("deleted");
    let early = store.domain.create_table(&table("people")).await;
    assert_eq!(refusal(early), TableRefusal::BeingDeleted);
    store.clock.pass(hold);
    store.domain.create_table(&table("People")).await.expect("its name is free");
    store.domain.do_what_is_due().await.expect("done");
    store.domain.get_table(&table("People")).await.expect("it is still there");
}

#[tokio::test]
async fn tables_are_listed_by_name_in_pages() {
    let store = Store::new().await;
    for name in ["delta", "Alpha", "charlie", "Bravo", "alphabet"] {
        store.domain.create_table(&table(name)).await.expect("a new table");
    }
    let mut seen = Vec::new();
    let mut from = None;
    loop {
        let command = ListTables { account: account(), from: from.take(), limit: 2 };
        let page = store.domain.list_tables(command, |name| name != "charlie").await;
        let page = page.expect("a page");
        assert!(page.names.len() <= 2);
        seen.extend(page.names);
        match page.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, ["Alpha", "alphabet", "Bravo", "delta"]);
}

#[tokio::test]
async fn policies_belong_to_their_table() {
    let store = store().await;
    let policy = StoredPolicy {
        id: "id".to_owned(),
        start: None,
        expiry: None,
        permissions: Some("raud".to_owned()),
    };
    let (path, policies) = (table("people"), std::slice::from_ref(&policy));
    store.domain.set_table_policies(&path, policies).await.expect("they are set");
    let found = store.domain.get_table(&table("People")).await.expect("it is there");
    assert_eq!((found.name.as_str(), found.policies), ("People", vec![policy]));
    let missing = store.domain.set_table_policies(&table("Places"), &[]).await;
    assert_eq!(refusal(missing), TableRefusal::NotFound);
}

#[tokio::test]
async fn every_write_operation_does_what_its_row_says() {
    let store = store().await;
    let inserted = change(&store, "r", Change::Insert(numbers(&[("a", 1), ("b", 2)])));
    let inserted = inserted.await.expect("4.4 Insert / absent");
    let twice = change(&store, "r", Change::Insert(numbers(&[]))).await;
    assert_eq!(refusal(twice), EntityRefusal::AlreadyExists, "4.4 Insert / exists");
    assert_eq!(get(&store, "r").await.expect("it is there").0, inserted);

    let merge = Change::Merge(numbers(&[("b", 3), ("c", 4)]), ANY);
    let merged = change(&store, "r", merge).await.expect("4.4 Merge / exists");
    let expected = pairs(&[("a", 1), ("b", 3), ("c", 4)]);
    assert_eq!(numbers_of(&store, "r").await, expected, "4.4 Merge keeps what is not sent");
    assert!(merged > inserted);

    let replace = Change::Replace(numbers(&[("d", 5)]), Some(EntityCondition::Exactly(merged)));
    let replaced = change(&store, "r", replace).await.expect("4.4 Update / ETag");
    assert_eq!(numbers_of(&store, "r").await, pairs(&[("d", 5)]), "4.4 Replace removes");

    for stale in [inserted, merged] {
        let stale = EntityCondition::Exactly(stale);
        for change_of in [
            Change::Replace(numbers(&[]), Some(stale)),
            Change::Merge(numbers(&[]), Some(stale)),
            Change::Delete(stale),
        ] {
            let refused = change(&store, "r", change_of).await;
            assert_eq!(refusal(refused), EntityRefusal::ConditionNotMet, "4.4 stale ETag");
        }
    }
    for change_of in [
        Change::Replace(numbers(&[]), ANY),
        Change::Merge(numbers(&[]), ANY),
        Change::Delete(EntityCondition::Any),
        Change::Delete(EntityCondition::Exactly(replaced)),
    ] {
        let refused = change(&store, "missing", change_of).await;
        assert_eq!(refusal(refused), EntityRefusal::NotFound, "4.4 absent");
    }

    change(&store, "r", Change::Merge(numbers(&[("e", 6)]), None)).await.expect("exists");
    assert_eq!(numbers_of(&store, "r").await, pairs(&[("d", 5), ("e", 6)]), "4.4 Insert Or Merge");
    change(&store, "r", Change::Replace(numbers(&[("f", 7)]), None)).await.expect("exists");
    assert_eq!(numbers_of(&store, "r").await, pairs(&[("f", 7)]), "4.4 Insert Or Replace");
    change(&store, "m", Change::Merge(numbers(&[("g", 8)]), None)).await.expect("absent");
    assert_eq!(numbers_of(&store, "m").await, pairs(&[("g", 8)]), "4.4 Insert Or Merge");
    change(&store, "n", Change::Replace(numbers(&[("h", 9)]), None)).await.expect("absent");
    assert_eq!(numbers_of(&store, "n").await, pairs(&[("h", 9)]), "4.4 Insert Or Replace");

    let (etag, _) = get(&store, "r").await.expect("it is there");
    change(&store, "r", Change::Delete(EntityCondition::Exactly(etag))).await.expect("4.4 Delete");
    assert!(get(&store, "r").await.is_none());
}

#[tokio::test]
async fn a_thousand_changes_within_a_tick_have_a_thousand_etags() {
    let store = store().await;
    let before = store.domain.now();
    let mut etags = HashSet::new();
    for round in 0..1000 {
        let change_of = match round % 4 {
            0 => Change::Replace(numbers(&[("n", round)]), None),
            1 => Change::Merge(numbers(&[("n", round)]), ANY),
            2 => Change::Delete(EntityCondition::Any),
            _ => Change::Insert(numbers(&[("n", round)])),
        };
        etags.insert(change(&store, "r", change_of).await.expect("it is changed"));
    }
    assert_eq!(store.domain.now(), before, "the clock has stood still");
    assert_eq!(etags.len(), 1000);
}

#[tokio::test]
async fn what_a_merge_makes_has_the_limits_of_an_entity() {
    let store = store().await;
    let many = |from: i32, to: i32| {
        let names: Vec<String> = (from..to).map(|at| format!("p{at}")).collect();
        let values: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        numbers(&values)
    };
    change(&store, "r", Change::Insert(many(0, 200))).await.expect("inserted");
    change(&store, "r", Change::Merge(many(100, 252), ANY)).await.expect("252 in all");
    let over = change(&store, "r", Change::Merge(many(252, 253), ANY)).await;
    assert_eq!(refusal(over), EntityRefusal::Property(PropertyRefusal::TooMany));

    let text = "x".repeat(32 * 1024);
    let large = |from: u32, to: u32| {
        let names: Vec<String> = (from..to).map(|at| format!("p{at}")).collect();
        let text = ValueRef::String(&text);
        let values: Vec<_> = names.iter().map(|name| (name.as_str(), text)).collect();
        properties(&values)
    };
    let too_large = EntityRefusal::Property(PropertyRefusal::EntityTooLarge);
    change(&store, "large", Change::Insert(large(0, 15))).await.expect("less than 1 MiB");
    let over = change(&store, "large", Change::Merge(large(15, 16), ANY)).await;
    assert_eq!(refusal(over), too_large, "16 times 64 KiB and their names");
    let (_, own) = get(&store, "large").await.expect("it is there");
    assert_eq!(own.len(), 15, "it is as it was");
}

/// By the formula of the reference: 4 bytes, two for each unit of the keys, and for each property 8,
/// two for each unit of its name, and its value.
#[tokio::test]
async fn an_entity_is_measured_with_its_keys() {
    let store = store().await;
    let texts = |last: usize| {
        let mut properties = Properties::default();
        let text = "x".repeat(32 * 1024);
        for at in 0..15 {
            let name = format!("p{at:02}");
            properties.push(&name, ValueRef::String(&text)).expect("a property");
        }
        properties.push("q", ValueRef::String(&text[..last])).expect("a property");
        properties
    };
    let each = 8 + 2 * 3 + 4 + 64 * 1024;
    let keys = 4 + 2 * 2;
    let rest = 1024 * 1024 - keys - 15 * each - (8 + 2 + 4);
    change(&store, "r", Change::Insert(texts(rest / 2))).await.expect("exactly 1 MiB");
    let over = change(&store, "s", Change::Insert(texts(rest / 2 + 1))).await;
    assert_eq!(refusal(over), EntityRefusal::Property(PropertyRefusal::EntityTooLarge));
}

#[tokio::test]
async fn changes_that_are_made_together_are_all_made_or_none() {
    let store = store().await;
    change(&store, "there", Change::Insert(numbers(&[("n", 0)]))).await.expect("inserted");
    let (etag, _) = get(&store, "there").await.expect("it is there");
    let path = table("People");
    let good = || {
        vec![
            to("a", Change::Insert(numbers(&[("n", 1)]))),
            to("b", Change::Replace(numbers(&[("n", 2)]), None)),
            to("there", Change::Merge(numbers(&[("m", 3)]), Some(EntityCondition::Exactly(etag)))),
        ]
    };
    let other_partition = EntityChange {
        key: EntityKey::new("q", "x").expect("a key"),
        change: Change::Insert(Properties::default()),
    };
    let stale = EntityCondition::Exactly(EntityETag::new(store.domain.now()));
    for (case, bad, expected) in [
        ("409", to("there2", Change::Delete(EntityCondition::Any)), EntityRefusal::NotFound),
        (
            "4.6 same entity twice",
            to("a", Change::Replace(numbers(&[]), None)),
            EntityRefusal::ChangedTwice,
        ),
        ("4.6 same PartitionKey", other_partition, EntityRefusal::OtherPartition),
        ("stale", to("there", Change::Delete(stale)), EntityRefusal::ChangedTwice),
    ] {
        let mut changes = good();
        changes.push(bad);
        let refused = refusal(store.domain.change_entities(&path, &changes).await);
        assert_eq!(refused, RefusedChange { index: 3, refusal: expected }, "{case}");
        assert!(get(&store, "a").await.is_none(), "{case}: nothing is done");
        assert_eq!(numbers_of(&store, "there").await, pairs(&[("n", 0)]), "{case}");
    }
    let changes = [
        to("a", Change::Insert(numbers(&[]))),
        to("there", Change::Insert(numbers(&[]))),
        to("b", Change::Insert(numbers(&[]))),
    ];
    let refused = refusal(store.domain.change_entities(&path, &changes).await);
    assert_eq!(refused, RefusedChange { index: 1, refusal: EntityRefusal::AlreadyExists });

    let etags = store.domain.change_entities(&path, &good()).await.expect("all are made");
    assert_eq!(etags.len(), 3);
    assert_eq!(get(&store, "b").await.expect("it is there").0, etags[1]);
    assert_eq!(numbers_of(&store, "there").await, pairs(&[("n", 0), ("m", 3)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_never_sees_half_of_what_was_written_together() {
    let store = Arc::new(store().await);
    let write = |round: i32| {
        let row = |row: &str| to(row, Change::Replace(numbers(&[("n", round)]), None));
        [row("a"), row("b"), row("c")]
    };
    store.domain.change_entities(&table("People"), &write(0)).await.expect("written");
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0..200 {
                    let changes = write(writer * 1000 + round);
                    let written = store.domain.change_entities(&table("People"), &changes).await;
                    written.expect("upserts are never refused");
                }
            })
        })
        .collect();
    let query = holdfast_domain::table::QueryEntities {
        table: table("People"),
        filter: holdfast_domain::table::filter::Filter::parse("").expect("a filter"),
        from: None,
        range: None,
        limit: 1000,
    };
    while writers.iter().any(|writer| !writer.is_finished()) {
        let page = store.domain.query_entities(&query).await.expect("a page");
        let seen: HashSet<String> = page
            .entities
            .iter()
            .map(|entity| format!("{:?}", entity.view().expect("an entity").property("n")))
            .collect();
        assert_eq!((page.entities.len(), seen.len()), (3, 1), "{seen:?}");
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_changes_to_one_state_one_wins_and_upserts_all_do() {
    let store = Arc::new(store().await);
    let first = change(&store, "r", Change::Insert(numbers(&[("n", 0)]))).await.expect("inserted");
    let race = |change_of: fn(i32, EntityETag) -> Change| {
        let tasks = (0..64).map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let change_of = change_of(number, first);
                store.domain.change_entity(&table("People"), &to("r", change_of)).await
            })
        });
        tasks.collect::<Vec<_>>()
    };
    let mut won = 0;
    for task in race(|number, etag| {
        let condition = Some(EntityCondition::Exactly(etag));
        Change::Replace(numbers(&[("n", number)]), condition)
    }) {
        match task.await.expect("no panic") {
            Ok(_) => won += 1,
            failed => assert_eq!(refusal(failed), EntityRefusal::ConditionNotMet),
        }
    }
    assert_eq!(won, 1);
    let mut etags = HashSet::new();
    for task in race(|number, _| Change::Replace(numbers(&[("n", number)]), None)) {
        etags.insert(task.await.expect("no panic").expect("an upsert is never refused"));
    }
    for task in race(|number, _| Change::Merge(numbers(&[("m", number)]), None)) {
        etags.insert(task.await.expect("no panic").expect("an upsert is never refused"));
    }
    assert_eq!(etags.len(), 128);
    let (last, own) = get(&store, "r").await.expect("it is there");
    assert_eq!(Some(&last), etags.iter().max(), "the last writer has won");
    assert_eq!(own.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_transaction_comes_through_beside_writers_of_its_entities() {
    let store = Arc::new(store().await);
    let merge = |number| Change::Merge(numbers(&[("n", number)]), None);
    let writers = ["a", "b", "c", "d"].map(|row| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in 0..500 {
                let change = to(row, merge(number));
                let merged = store.domain.change_entity(&table("People"), &change).await;
                merged.expect("an upsert is never refused");
            }
        })
    });
    for number in 0..100 {
        let changes = ["a", "b", "c", "d"].map(|row| to(row, merge(number)));
        let changed = store.domain.change_entities(&table("People"), &changes).await;
        assert_eq!(changed.expect("an upsert is never refused").len(), 4);
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_to_different_entities_do_not_get_in_each_others_way() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    store.domain.create_table(&table("People")).await.expect("a new table");
    let store = Arc::new(store);
    let tasks = (0..64).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for round in 0..20 {
                let row = format!("{number}-{round}");
                change(&store, &row, Change::Insert(numbers(&[]))).await.expect("inserted");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    assert_eq!(engine.statistics().conflicts, 0);
}
