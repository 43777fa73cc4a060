//! The archive tier, with a clock that the test moves: what a blob allows while it is archived and
//! rehydrated.

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::blob::{
    AccessTier, Blob, BlobRefusal, Encryption, Expiry, GetBlob, NewBlob, PutBlob,
    RehydratePriority, SetBlobExpiry, SetBlobMetadata, SetBlobProperties, SetBlobTags, SetBlobTier,
    SnapshotBlob, TierOutcome, Which,
};
use holdfast_domain::condition::Conditions;
use holdfast_domain::content::ContentHeaders;
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::tags::TagSet;
use holdfast_domain::time::Clock as _;
use holdfast_store::memory::MemoryEngine;
use support::{Body, Store, blob, get, put};

const HOURS: u64 = 60 * 60;
const REHYDRATION: Duration = Duration::from_secs(15 * HOURS);
const SECOND: Duration = Duration::from_secs(1);

/// A store where rehydration takes 15 hours, with an archived blob.
async fn with_archived() -> Store {
    let features = Features { rehydration: REHYDRATION, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    store.create("photos").await.expect("a new container");
    let Ok(received) = store.domain.receive(&mut Body::of(b"cold")).await else {
        panic!("a body in memory arrives");
    };
    let tier = Some(AccessTier::Archive);
    let command = PutBlob { tier, ..put("archived", NewBlob::Block(received)) };
    store.domain.put_blob(command).await.expect("an archived blob");
    store
}

async fn set_tier(
    store: &Store,
    which: Which,
    tier: AccessTier,
    priority: Option<RehydratePriority>,
) -> Result<TierOutcome, BlobRefusal> {
    let (path, conditions) = (blob("archived"), Conditions::default());
    let command = SetBlobTier { path, which, tier, priority, conditions, lease_id: None };
    match store.domain.set_blob_tier(command).await {
        Ok(outcome) => Ok(outcome),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}

async fn read(store: &Store) -> Blob {
    *store.domain.get_blob_properties(&get("archived")).await.expect("there").blob
}

#[tokio::test]
async fn a_blob_is_back_from_the_archive_when_its_time_has_come_and_not_before() {
    let store = with_archived().await;
    let before = read(&store).await;
    let began = store.clock.now();
    let outcome = set_tier(&store, Which::Current, AccessTier::Cool, None).await;
    assert_eq!(outcome, Ok(TierOutcome::Rehydrating));
    store.clock.pass(REHYDRATION - SECOND);
    let pending = read(&store).await;
    assert_eq!((pending.tier, pending.is_archived()), (Some(AccessTier::Archive), true));
    assert_eq!(pending.rehydration.map(|on| on.to), Some(AccessTier::Cool));
    assert_eq!(store.get("archived", None).await, Err(BlobRefusal::Archived));

    store.clock.pass(SECOND);
    let back = read(&store).await;
    assert_eq!((back.tier, back.rehydration), (Some(AccessTier::Cool), None));
    assert_eq!(back.tier_changed, Some(began.plus(REHYDRATION)), "when it was back, not when seen");
    assert_eq!(store.get("archived", None).await.as_deref(), Ok(&b"cold"[..]));
    assert_eq!((back.etag, back.last_modified), (before.etag, before.last_modified));
}

#[tokio::test]
async fn a_rehydration_can_be_hastened_but_not_turned_aside() {
    use RehydratePriority::{High, Standard};
    let store = with_archived().await;
    let hot = AccessTier::Hot;
    set_tier(&store, Which::Current, hot, Some(Standard)).await.expect("begun");
    store.clock.pass(SECOND);
    let began = read(&store).await.rehydration.expect("under way");
    for (tier, priority, expected) in [
        (hot, Some(High), Ok(TierOutcome::Rehydrating)),
        (hot, Some(Standard), Ok(TierOutcome::Rehydrating)),
        (AccessTier::Cool, None, Err(BlobRefusal::BeingRehydrated)),
        (AccessTier::Archive, None, Err(BlobRefusal::BeingRehydrated)),
    ] {
        assert_eq!(set_tier(&store, Which::Current, tier, priority).await, expected, "{tier:?}");
    }
    let hastened = read(&store).await.rehydration.expect("still under way");
    assert_eq!((hastened.priority, hastened.until), (High, began.until));
    store.clock.pass(REHYDRATION);
    let outcome = set_tier(&store, Which::Current, AccessTier::Archive, None).await;
    assert_eq!(outcome, Ok(TierOutcome::Changed), "back, it can go again");
}

#[tokio::test]
async fn of_what_is_archived_only_tags_and_tier_change() {
    let store = with_archived().await;
    let domain = &store.domain;
    let conditions = Conditions::default;
    let metadata = || SetBlobMetadata {
        path: blob("archived"),
        metadata: Metadata::default(),
        conditions: conditions(),
        lease_id: None,
        encryption: Encryption::Account,
    };
    let properties = SetBlobProperties {
        path: blob("archived"),
        headers: Some(ContentHeaders::default()),
        length: None,
        sequence: None,
        conditions: conditions(),
        lease_id: None,
    };
    let snapshot = SnapshotBlob {
        path: blob("archived"),
        metadata: Metadata::default(),
        conditions: conditions(),
        lease_id: None,
        encryption: Encryption::Account,
    };
    let expiry = SetBlobExpiry { path: blob("archived"), expiry: Expiry::Never };
    for (cell, outcome) in [
        ("Set Blob Metadata", domain.set_blob_metadata(metadata()).await.map(drop)),
        ("Set Blob Properties", domain.set_blob_properties(properties).await.map(drop)),
        ("Snapshot Blob", domain.snapshot_blob(snapshot).await.map(drop)),
        ("Set Blob Expiry", domain.set_blob_expiry(expiry).await.map(drop)),
        ("Put Blob", store.put("archived", b"new").await),
    ] {
        assert!(matches!(outcome, Err(Failure::Refused(BlobRefusal::Archived))), "{cell}");
    }
    let tags = TagSet::parse_header("a=1").expect("tags");
    let (path, which) = (blob("archived"), Which::Current);
    let command = SetBlobTags { path, which, tags, conditions: conditions(), lease_id: None };
    domain.set_blob_tags(command).await.expect("tags are beside the blob");
    set_tier(&store, Which::Current, AccessTier::Hot, None).await.expect("on its way");
    let refused = domain.set_blob_metadata(metadata()).await.map(drop);
    assert!(matches!(refused, Err(Failure::Refused(BlobRefusal::Archived))), "on its way out");
    store.clock.pass(REHYDRATION);
    domain.set_blob_metadata(metadata()).await.expect("back");
}

#[tokio::test]
async fn a_version_comes_back_by_itself_too() {
    let features = Features { rehydration: REHYDRATION, versioning: true, ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    store.create("photos").await.expect("a new container");
    store.put("archived", b"first").await.expect("put");
    let version = read(&store).await.version.expect("a version");
    store.put("archived", b"second").await.expect("put");
    let which = Which::Version(version);
    let of_then = GetBlob { which, ..get("archived") };
    let tier = async || {
        let read = store.domain.get_blob_properties(&of_then).await.expect("there");
        (read.blob.tier, read.current)
    };
    set_tier(&store, which, AccessTier::Archive, None).await.expect("archived");
    set_tier(&store, which, AccessTier::Cold, None).await.expect("on its way");
    assert_eq!(tier().await, (Some(AccessTier::Archive), false));
    assert_eq!(read(&store).await.tier, None, "the current one stays where it is");
    store.clock.pass(REHYDRATION);
    assert_eq!(tier().await, (Some(AccessTier::Cold), false));
}
