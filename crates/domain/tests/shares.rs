//! Shares on the memory store, with a clock that the tests move: deletion and what follows,
//! snapshots, and what is left of them.

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::Failure;
use holdfast_domain::account::ServiceKind;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, FilePath, ShareName, TrailingDots};
use holdfast_domain::share::security::Descriptor;
use holdfast_domain::share::{
    CreateFile, CreateShare, DeleteNode, DeleteShare, FileHeaders, ListShares, ListedState,
    NodeAddress, NodeProperties, Protocol, RestoreShare, Share, ShareMarker, SharePath,
    ShareRefusal, ShareSettings, SnapshotShare, Wanted, WithSnapshots,
};
use holdfast_domain::time::Timestamp;
use holdfast_store::engine::KeyRange;
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{Engine, Order};
use support::share::AtOnce;
use support::{Body, Store};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn path(name: &str) -> SharePath {
    SharePath {
        account: AccountName::new("account1").expect("a name"),
        share: ShareName::new(name).expect("a name"),
    }
}

fn refusal<T: std::fmt::Debug, R: std::fmt::Debug>(outcome: Result<T, Failure<R>>) -> R {
    match outcome {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

async fn create(store: &Store, name: &str) -> Result<Share, Failure<ShareRefusal>> {
    let command = CreateShare {
        path: path(name),
        metadata: Metadata::default(),
        protocol: Protocol::Smb,
        settings: ShareSettings::default(),
    };
    store.domain.create_share(command).await
}

fn address(share: &str, file: &str) -> NodeAddress {
    NodeAddress::path(path(share), FilePath::file(file, TrailingDots::Kept).expect("a path"))
}

async fn put_file(store: &Store, share: &str, file: &str, content: &[u8]) {
    let Ok(received) = store.domain.receive(&mut Body::of(content)).await else {
        panic!("a body in memory arrives");
    };
    let command = CreateFile {
        address: address(share, file),
        id: None,
        length: content.len() as u64,
        content: Some(received),
        headers: FileHeaders::default(),
        metadata: Metadata::default(),
        properties: NodeProperties::default(),
        overwrite: true,
        lease_id: None,
    };
    store.domain.at_once(command).await.expect("a file");
}

async fn delete_file(store: &Store, share: &str, file: &str) {
    let command =
        DeleteNode { address: address(share, file), wanted: Wanted::File, lease_id: None };
    store.domain.at_once(command).await.expect("deleted");
}

async fn snapshot(store: &Store, share: &str) -> Timestamp {
    let command = SnapshotShare { path: path(share), metadata: Metadata::default() };
    store.domain.snapshot_share(command).await.expect("a snapshot").1
}

async fn delete(store: &Store, share: &str, moment: Option<Timestamp>) {
    let command = DeleteShare {
        path: path(share),
        snapshot: moment,
        with_snapshots: WithSnapshots::Include,
        lease_id: None,
    };
    store.domain.delete_share(command).await.expect("deleted");
}

async fn tidy(store: &Store) {
    while store.domain.do_what_is_due().await.expect("done") {}
    while store.domain.collect_garbage().await.expect("collected") {}
}

/// The rows that begin with one of these bytes.
async fn rows(engine: &MemoryEngine, kinds: &[u8]) -> Vec<Bytes> {
    let snapshot = engine.snapshot().await.expect("a snapshot");
    let all = KeyRange::prefix(Bytes::new());
    let rows = snapshot.scan(&all, Order::Ascending, usize::MAX).await.expect("rows");
    rows.into_iter().map(|row| row.key).filter(|key| kinds.contains(&key[0])).collect()
}

fn list(marker: Option<ShareMarker>, limit: usize, deleted: bool) -> ListShares {
    let (account, prefix) = (path("any").account, String::new());
    ListShares { account, prefix, marker, limit, snapshots: true, deleted }
}

async fn listed(store: &Store, deleted: bool) -> Vec<(String, ListedState)> {
    let command = list(None, 100, deleted);
    let mut listing = store.domain.list_shares(command).await.expect("a listing");
    let entries = listing.next().await.expect("entries");
    entries.into_iter().map(|entry| (entry.name, entry.state)).collect()
}

/// The same in pages of one entry.
async fn page_by_page(store: &Store) -> Vec<(String, ListedState)> {
    let (mut all, mut marker) = (Vec::new(), None);
    loop {
        let mut listing = store.domain.list_shares(list(marker, 1, true)).await.expect("a page");
        let entries = listing.next().await.expect("entries");
        all.extend(entries.into_iter().map(|entry| (entry.name, entry.state)));
        assert!(listing.next().await.expect("an end").is_empty());
        let Some(next) = listing.next_marker() else { return all };
        marker = ShareMarker::parse(next);
    }
}

const OF_SHARES: &[u8] = b"0123456789";
const PAST_NODES: &[u8] = b"2";

#[tokio::test]
async fn nothing_is_left_of_a_deleted_share() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store, "photos").await.expect("a share");
    for at in 0..300 {
        put_file(&store, "photos", &format!("file{at}"), &[7; 20_000]).await;
    }
    snapshot(&store, "photos").await;
    put_file(&store, "photos", "file0", b"changed").await;
    let descriptor = Descriptor::parse_sddl("O:SYG:SYD:").expect("a descriptor");
    store.domain.permission_key(&path("photos"), &descriptor).await.expect("a key");
    let first = snapshot(&store, "photos").await;
    delete(&store, "photos", Some(first)).await;
    delete(&store, "photos", None).await;
    tidy(&store).await;
    assert_eq!(rows(&engine, OF_SHARES).await, Vec::<Bytes>::new());
    assert_eq!(rows(&engine, b"xmno").await, Vec::<Bytes>::new(), "contents");
}

#[tokio::test]
async fn a_deleted_share_is_restored_with_its_snapshots_until_its_retention_ends() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    let account = path("photos").account;
    store
        .domain
        .set_service_properties(&account, ServiceKind::File, |properties| {
            properties.delete_retention.days = Some(2);
        })
        .await
        .expect("set");
    let share = create(&store, "photos").await.expect("a share");
    put_file(&store, "photos", "file", b"content").await;
    let moment = snapshot(&store, "photos").await;
    delete(&store, "photos", None).await;
    tidy(&store).await;
    assert_eq!(
        refusal(store.domain.get_share(&path("photos"), None, None).await),
        ShareRefusal::NotFound
    );
    let [(_, of_snapshot), (_, deleted)] = listed(&store, true).await[..] else {
        panic!("the deleted share is listed behind its snapshot");
    };
    let ListedState::Deleted { version, until, at, .. } = deleted else { panic!("{deleted:?}") };
    let snapshot = Some(moment);
    assert_eq!(of_snapshot, ListedState::Deleted { version, snapshot, at, until });
    assert_eq!(deleted, ListedState::Deleted { version, snapshot: None, at, until });
    assert_eq!(until, store.domain.now().plus(2 * DAY));
    assert_eq!(page_by_page(&store).await, listed(&store, true).await);
    store.clock.pass(DAY);
    let restore = || RestoreShare {
        path: path("photos"),
        deleted_name: path("photos").share,
        deleted_version: Some(version),
    };
    let restored = store.domain.restore_share(restore()).await.expect("restored");
    assert_eq!(restored.etag, share.etag);
    let expected = [
        ("photos".to_owned(), ListedState::Snapshot(moment)),
        ("photos".to_owned(), ListedState::Live),
    ];
    assert_eq!(listed(&store, true).await, expected);
    assert_eq!(store.domain.share_usage(&path("photos")).await.expect("usage").1, 7);

    delete(&store, "photos", None).await;
    let [_, (_, ListedState::Deleted { version, .. })] = listed(&store, true).await[..] else {
        panic!("the deleted share is listed");
    };
    store.clock.pass(2 * DAY);
    assert_eq!(listed(&store, true).await, []);
    let late = RestoreShare { deleted_version: Some(version), ..restore() };
    assert_eq!(refusal(store.domain.restore_share(late).await), ShareRefusal::DeletedNotFound);
    tidy(&store).await;
    assert_eq!(rows(&engine, OF_SHARES).await, Vec::<Bytes>::new());
}

#[tokio::test]
async fn the_name_of_a_deleted_share_is_held_as_long_as_it_is_said() {
    let hold = Duration::from_secs(30);
    let features = Features { share_name_hold: hold, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    create(&store, "photos").await.expect("a share");
    assert_eq!(refusal(create(&store, "photos").await), ShareRefusal::AlreadyExists);
    delete(&store, "photos", None).await;
    assert_eq!(refusal(create(&store, "photos").await), ShareRefusal::BeingDeleted);
    store.clock.pass(hold);
    create(&store, "photos").await.expect("the name is free");
}

#[tokio::test]
async fn past_nodes_go_with_the_last_snapshot_that_sees_them() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    create(&store, "photos").await.expect("a share");
    put_file(&store, "photos", "a", b"one").await;
    put_file(&store, "photos", "b", b"one").await;
    let first = snapshot(&store, "photos").await;
    put_file(&store, "photos", "a", b"two").await;
    let second = snapshot(&store, "photos").await;
    put_file(&store, "photos", "a", b"three").await;
    delete_file(&store, "photos", "b").await;
    assert_eq!(rows(&engine, PAST_NODES).await.len(), 3, "a twice, and b which both see");
    delete(&store, "photos", Some(second)).await;
    tidy(&store).await;
    assert_eq!(rows(&engine, PAST_NODES).await.len(), 2);
    // No past nodes are kept for a deleted snapshot.
    put_file(&store, "photos", "a", b"four").await;
    put_file(&store, "photos", "b", b"again").await;
    put_file(&store, "photos", "b", b"and again").await;
    assert_eq!(rows(&engine, PAST_NODES).await.len(), 2);
    delete(&store, "photos", Some(first)).await;
    tidy(&store).await;
    assert_eq!(rows(&engine, PAST_NODES).await, Vec::<Bytes>::new());
    assert_eq!(
        refusal(store.domain.get_share(&path("photos"), Some(first), None).await),
        ShareRefusal::SnapshotNotFound
    );
}

#[tokio::test]
async fn equal_descriptors_have_one_key() {
    let store = Store::new().await;
    create(&store, "photos").await.expect("a share");
    let key = async |text: &str| {
        let descriptor = Descriptor::parse_sddl(text).expect("a descriptor");
        store.domain.permission_key(&path("photos"), &descriptor).await.expect("a key")
    };
    let first = key("O:SYG:BAD:(A;;FA;;;WD)").await;
    assert_eq!(key("O:S-1-5-18G:BAD:(A;;0x1f01ff;;;S-1-1-0)").await, first);
    assert_ne!(key("O:SYG:BAD:(A;;FR;;;WD)").await, first);
    let found = store.domain.descriptor(&path("photos"), first).await.expect("a descriptor");
    assert_eq!(found.to_sddl().as_deref(), Ok("O:SYG:BAD:(A;;FA;;;WD)"));
}
