//! The Blob service on the memory store: the effects of operations; their decisions are tested
//! beside them.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    BlobRefusal, CreateContainer, DeleteContainer, Encryption, LeaseBlob, ListContainers, NewBlob,
    PutBlob, ScopePolicy, SetBlobMetadata,
};
use holdfast_domain::condition::{Conditions, DateConditions, ETagList};
use holdfast_domain::content::{INLINE_BYTES_MAX, ReadRange};
use holdfast_domain::features::Features;
use holdfast_domain::lease::{
    AccessRefusal, Lease, LeaseAction, LeaseDuration, LeaseId, LeaseKind, LeaseOutcome,
};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::AccountName;
use holdfast_domain::time::Clock as _;
use holdfast_domain::{Domain, Failure};
use holdfast_store::engine::EngineStatistics;
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Batch, CommitError, Engine, Fault, Snapshot};

use tokio::sync::Notify;

use support::{Store, TestClock, blob, container, content, get, put};

/// Commits like the memory engine, but does not answer while it is set to be silent.
#[derive(Default)]
struct SilentEngine {
    memory: MemoryEngine,
    silent: AtomicBool,
    fell_silent: Notify,
}

#[async_trait]
impl Engine for SilentEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        self.memory.snapshot().await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let committed = self.memory.commit(batch).await;
        if self.silent.load(Ordering::Relaxed) {
            self.fell_silent.notify_one();
            std::future::pending::<()>().await;
        }
        committed
    }

    fn poisoned(&self) -> Option<Fault> {
        self.memory.poisoned()
    }

    fn statistics(&self) -> EngineStatistics {
        self.memory.statistics()
    }
}

#[tokio::test]
async fn contents_of_every_size_come_back_whole_and_in_parts() {
    let store = Store::with_container("photos").await;
    for length in [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 3_000_000] {
        let content = content(length);
        store.put("blob", &content).await.expect("written");
        assert_eq!(store.get("blob", None).await.as_ref(), Ok(&content), "{length} bytes");
        if length > 10 {
            let (first, last) = (length as u64 / 2, length as u64 - 2);
            let part = store.get("blob", Some(ReadRange { first, last: Some(last) })).await;
            assert_eq!(part.as_deref(), Ok(&content[length / 2..length - 1]), "{length} bytes");
        }
    }
}

#[tokio::test]
async fn space_comes_back_when_a_blob_is_replaced_deleted_or_refused() {
    let store = Store::with_container("photos").await;
    let large = content(500_000);
    store.put("blob", &large).await.expect("written");
    assert_eq!(store.bytes_in_extents(), 500_000);

    let new_only = Conditions { if_none_match: Some(ETagList::Any), ..Conditions::default() };
    let refused = store.put_with("blob", &large, new_only, None).await;
    assert!(matches!(refused, Err(Failure::Refused(BlobRefusal::AlreadyExists))), "{refused:?}");
    assert_eq!(store.bytes_in_extents(), 500_000, "a refused body is freed");

    store.put("blob", &content(100_000)).await.expect("replaced");
    assert_eq!(store.bytes_in_extents(), 100_000, "the replaced body is freed");
    store.delete("blob").await.expect("deleted");
    assert_eq!(store.bytes_in_extents(), 0, "the deleted body is freed");
}

#[tokio::test]
async fn a_put_that_is_given_up_during_its_commit_leaves_the_blob_its_bytes() {
    let engine = Arc::new(SilentEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    store.create("photos").await.expect("a new container");
    let expected = content(INLINE_BYTES_MAX + 1);

    engine.silent.store(true, Ordering::Relaxed);
    tokio::select! {
        put = store.put("a", &expected) => panic!("the engine gives no answer, but {put:?}"),
        () = engine.fell_silent.notified() => {}
    }
    engine.silent.store(false, Ordering::Relaxed);

    assert_eq!(store.bytes_in_extents(), expected.len() as u64);
    store.put("b", &vec![7; INLINE_BYTES_MAX + 1]).await.expect("a put");
    assert_eq!(store.get("a", None).await, Ok(expected));
}

#[tokio::test]
async fn a_deletion_is_held_against_the_time_of_the_last_change_of_tier() {
    let store = Store::with_container("photos").await;
    store.put("blob", b"content").await.expect("written");
    let now = store.clock.now();
    store.clock.pass(Duration::from_secs(10));
    let changed = DateConditions { if_modified_since: Some(now), ..DateConditions::default() };
    let refused = store.delete_with("blob", changed).await;
    assert!(matches!(refused, Err(Failure::Refused(BlobRefusal::ConditionNotMet))), "{refused:?}");
    let unchanged = DateConditions { if_unmodified_since: Some(now), ..DateConditions::default() };
    store.delete_with("blob", unchanged).await.expect("deleted");
}

#[tokio::test]
async fn a_download_sees_one_state_to_its_end() {
    let store = Store::with_container("photos").await;
    let (before, after) = (content(3_000_000), vec![7; 3_000_000]);
    store.put("blob", &before).await.expect("written");
    let download = store.domain.get_blob(&get("blob"), None).await.expect("a download");
    let mut reader = download.reader;
    let mut seen = reader.next().await.expect("memory reads").expect("some bytes").to_vec();

    store.put("blob", &after).await.expect("replaced");
    store.delete("blob").await.expect("deleted");
    while let Some(bytes) = reader.next().await.expect("memory reads") {
        seen.extend_from_slice(&bytes);
    }
    assert!(seen == before, "the bytes of the replaced blob");
    drop(reader);
    assert_eq!(store.bytes_in_extents(), 0, "freed once the download has ended");
}

#[tokio::test]
async fn a_part_of_a_download_is_read_from_its_state() {
    let store = Store::with_container("photos").await;
    for length in [100, 3_000_000] {
        let whole = content(length);
        store.put("blob", &whole).await.expect("written");
        let download = store.domain.get_blob(&get("blob"), None).await.expect("a download");
        store.delete("blob").await.expect("deleted");
        for range in [0..1, 0..length, 10..20, length / 2..length / 2 + 7, length - 1..length] {
            let mut part = download.reader.part(range.start as u64..range.end as u64);
            assert_eq!(part.remaining(), range.len() as u64);
            let mut seen = Vec::new();
            while let Some(bytes) = part.next().await.expect("memory reads") {
                seen.extend_from_slice(&bytes);
            }
            assert!(seen == whole[range.clone()], "{range:?} of {length}");
        }
    }
}

#[tokio::test]
async fn a_container_created_again_is_empty_and_the_old_blobs_are_collected() {
    let store = Store::with_container("photos").await;
    for number in 0..600 {
        store.put(&format!("blob-{number}"), &content(100)).await.expect("written");
    }
    store.put("large", &content(500_000)).await.expect("written");
    let path = container("photos");
    let conditions = DateConditions::default();
    let deleted = DeleteContainer { path, conditions, lease_id: None };
    store.domain.delete_container(deleted).await.expect("deleted");
    assert_eq!(store.get("large", None).await, Err(BlobRefusal::ContainerNotFound));

    store.create("photos").await.expect("the name is free at once");
    assert_eq!(store.get("large", None).await, Err(BlobRefusal::NotFound));
    store.put("new", b"kept").await.expect("written");
    store.collect_garbage().await;
    assert_eq!(store.bytes_in_extents(), 0);
    assert_eq!(store.get("new", None).await.as_deref(), Ok(b"kept".as_slice()));
}

#[tokio::test]
async fn listings_by_hierarchy_fold_common_prefixes_on_every_page_size() {
    let store = Store::with_container("photos").await;
    let names = ["a", "a/1", "a/2/x", "a/3", "b", "c/1", "c/2", "c0", "d//x", "e/"];
    for name in names {
        store.put(name, b"x").await.expect("written");
    }
    for number in 0..1200 {
        store.put(&format!("many/{number:04}"), b"x").await.expect("written");
    }
    let top = ["a", "<a/>", "b", "<c/>", "c0", "<d/>", "<e/>", "<many/>"];
    for limit in 1..10 {
        let (found, pages) = store.list("", Some("/"), limit).await;
        assert_eq!(found, top, "pages of {limit}");
        assert_eq!(pages, top.len().div_ceil(limit), "pages of {limit}");
        let (found, _) = store.list("a/", Some("/"), limit).await;
        assert_eq!(found, ["a/1", "<a/2/>", "a/3"], "below a/, pages of {limit}");
    }
    let (flat, pages) = store.list("", None, 7).await;
    assert_eq!((flat.len(), pages), (1210, 173));
    assert!(flat.is_sorted(), "in the order of the bytes of their names");
    assert_eq!(store.list("many/01", None, 1000).await.0.len(), 100);
    assert_eq!(store.list("", Some("//"), 5000).await.0.len(), 1210, "a longer delimiter");
    assert_eq!(store.list("none", Some("/"), 10).await, (Vec::new(), 1));
}

#[tokio::test]
async fn containers_of_an_account_are_listed_in_pages() {
    let store = Store::new().await;
    for name in ["blue", "green", "red-1", "red-2", "red-3"] {
        store.create(name).await.expect("created");
    }
    let list = async |prefix: &str, marker: Option<String>| {
        let command = ListContainers {
            account: AccountName::new("account1").expect("a name"),
            prefix: prefix.to_owned(),
            marker,
            limit: 2,
            deleted: false,
            system: false,
        };
        let mut page = store.domain.list_containers(command).await.expect("a page");
        let mut names = Vec::new();
        loop {
            let containers = page.next().await.expect("memory reads");
            if containers.is_empty() {
                return (names, page.next_marker().map(str::to_owned));
            }
            names.extend(containers.into_iter().map(|listed| listed.name));
        }
    };
    let (first, marker) = list("red-", None).await;
    assert_eq!(first, ["red-1", "red-2"]);
    assert_eq!(list("red-", marker).await, (vec!["red-3".to_owned()], None));
    assert_eq!(list("x", None).await, (Vec::new(), None));
}

#[tokio::test]
async fn a_lease_guards_writes_until_it_ends_and_survives_an_overwrite() {
    let store = Store::with_container("photos").await;
    store.put("blob", b"1").await.expect("written");
    let id = LeaseId::from_u128(1);
    let duration = LeaseDuration::parse(15, LeaseKind::Blob).expect("a duration");
    let action = LeaseAction::Acquire { proposed: None, duration };
    let command =
        LeaseBlob { path: blob("blob"), action, fresh_id: id, conditions: Conditions::default() };
    let (_, outcome) = store.domain.lease_blob(command).await.expect("leased");
    assert_eq!(outcome, LeaseOutcome::Acquired(id));
    assert_eq!(store.domain.live_leases(), 1);

    assert!(matches!(store.put("blob", b"2").await, Err(Failure::Refused(_))));
    assert!(matches!(store.delete("blob").await, Err(Failure::Refused(_))));
    store.put_with("blob", b"3", Conditions::default(), Some(id)).await.expect("the holder may");
    assert!(matches!(store.put("blob", b"4").await, Err(Failure::Refused(_))), "still leased");
    store.clock.pass(Duration::from_secs(15));
    assert_eq!(store.domain.live_leases(), 0);
    store.put("blob", b"5").await.expect("the lease has ended");
}

#[tokio::test]
async fn an_if_match_update_wins_once_however_many_try_it() {
    let store = Arc::new(Store::with_container("photos").await);
    store.put("blob", b"1").await.expect("written");
    let found = store.domain.get_blob_properties(&get("blob")).await.expect("found").blob.etag;
    let tries = (0..50).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let command = SetBlobMetadata {
                path: blob("blob"),
                metadata: Metadata::default(),
                conditions: Conditions { if_match: Some(found.into()), ..Conditions::default() },
                lease_id: None,
                encryption: Encryption::Account,
            };
            store.domain.set_blob_metadata(command).await.is_ok()
        })
    });
    let mut won = 0;
    for attempt in tries.collect::<Vec<_>>() {
        won += usize::from(attempt.await.expect("no panic"));
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn etags_go_on_above_those_of_an_earlier_run_when_the_clock_was_set_back() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    let open = async |ticks: u64| {
        let clock = Arc::new(TestClock(AtomicU64::new(ticks)));
        let extents = Arc::new(MemoryExtents::default());
        Domain::open(Arc::clone(&engine), extents, clock, Features::default()).await.expect("opens")
    };
    let create = async |domain: &Domain, name: &str| {
        let command = CreateContainer {
            path: container(name),
            metadata: Metadata::default(),
            public_access: PublicAccess::None,
            scope: ScopePolicy::default(),
        };
        domain.create_container(command).await.expect("created").etag
    };
    let first_run = open(638_000_000_000_000_000).await;
    first_run.keep_time().await.expect("recorded");
    let earlier = create(&first_run, "one").await;
    let second_run = open(637_000_000_000_000_000).await;
    assert!(create(&second_run, "two").await > earlier);
}

#[tokio::test]
async fn the_id_of_an_active_lease_overrules_if_none_match_for_a_whole_block_blob() {
    let store = Store::with_container("photos").await;
    let (held, other) = (LeaseId::from_u128(7), LeaseId::from_u128(8));
    for name in ["leased", "free"] {
        store.put(name, b"old").await.expect("created");
    }
    let duration = LeaseDuration::parse(15, LeaseKind::Blob).expect("a duration");
    let acquire = LeaseBlob {
        path: blob("leased"),
        action: LeaseAction::Acquire { proposed: None, duration },
        fresh_id: held,
        conditions: Conditions::default(),
    };
    store.domain.lease_blob(acquire).await.expect("leased");
    let conditions = Conditions { if_none_match: Some(ETagList::Any), ..Conditions::default() };
    let exists = |written: Result<_, Failure<BlobRefusal>>| match written {
        Ok(_) => false,
        Err(Failure::Refused(BlobRefusal::AlreadyExists)) => true,
        Err(failure) => panic!("{failure:?}"),
    };
    for (case, name, lease_id, expected) in [
        ("its id", "leased", Some(held), false),
        ("another id", "leased", Some(other), true),
        ("no id", "leased", None, true),
        ("no lease", "free", Some(held), true),
    ] {
        let written = store.put_with(name, b"new", conditions.clone(), lease_id).await;
        assert_eq!(exists(written), expected, "{case}");
    }
    let list = put("leased", NewBlob::BlockList(Vec::new()));
    let command = PutBlob { conditions, lease_id: Some(held), ..list };
    assert!(exists(store.domain.put_blob(command).await.map(drop)), "a block list");
    store.clock.pass(Duration::from_secs(15));
    let any = Conditions { if_none_match: Some(ETagList::Any), ..Conditions::default() };
    assert!(exists(store.put_with("leased", b"new", any, Some(held)).await), "a lease that ended");
}

#[tokio::test]
async fn a_lease_id_for_no_blob_is_refused_unless_the_version_passes_over_it() {
    let store = Store::with_container("photos").await;
    let lease_id = Some(LeaseId::from_u128(7));
    for (cell, lease_needs_blob, created) in
        [("2.4 from 2013-08-15", true, false), ("2.4 before", false, true)]
    {
        let command = PutBlob { lease_id, lease_needs_blob, ..put("new", NewBlob::Append) };
        let created_now = match store.domain.put_blob(command).await {
            Ok(blob) => {
                assert_eq!(blob.lease, Lease::default(), "{cell}");
                true
            }
            Err(Failure::Refused(refusal)) => {
                assert_eq!(refusal, AccessRefusal::NotPresent.into(), "{cell}");
                false
            }
            Err(failure) => panic!("{failure:?}"),
        };
        assert_eq!(created_now, created, "{cell}");
    }
}
