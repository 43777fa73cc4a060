//! The life of containers on the memory store: deleted, held, restored, renamed, purged, listed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_domain::access::PublicAccess;
use holdfast_domain::blob::{
    ContainerPath, ContainerRefusal, CreateContainer, DeleteContainer, LeaseContainer,
    ListContainers, ListedContainer, RenameContainer, RestoreContainer, ScopePolicy,
};
use holdfast_domain::condition::DateConditions;
use holdfast_domain::features::{AccessLists, Features};
use holdfast_domain::lease::{AccessRefusal, LeaseAction, LeaseDuration, LeaseId, LeaseKind};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::names::{AccountName, ContainerName, DeletedVersion};
use holdfast_domain::time::{Clock, Timestamp};
use holdfast_domain::{Domain, Failure};
use holdfast_store::engine::KeyRange;
use holdfast_store::memory::{MemoryEngine, MemoryExtents};
use holdfast_store::{Engine, Order};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const HOLD: Duration = Duration::from_secs(30);
const RETAINED: Features = Features {
    versioning: false,
    container_retention: Some(DAY),
    container_name_hold: Duration::ZERO,
    queue_name_hold: Duration::ZERO,
    table_name_hold: Duration::ZERO,
    share_name_hold: Duration::ZERO,
    rehydration: Duration::ZERO,
    access_lists: AccessLists::Ignored,
};
const HELD: Features = Features {
    versioning: false,
    container_retention: None,
    container_name_hold: HOLD,
    queue_name_hold: Duration::ZERO,
    table_name_hold: Duration::ZERO,
    share_name_hold: Duration::ZERO,
    rehydration: Duration::ZERO,
    access_lists: AccessLists::Ignored,
};

/// A clock that stands still until it is moved.
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.load(Ordering::Relaxed))
    }
}

struct Store {
    domain: Domain,
    engine: Arc<MemoryEngine>,
    clock: Arc<TestClock>,
}

type Refused = Option<ContainerRefusal>;

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Failure<ContainerRefusal>>) -> Refused {
    match outcome {
        Ok(_) => None,
        Err(Failure::Refused(refusal)) => Some(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}

fn name(name: &str) -> ContainerName {
    ContainerName::new(name).expect("a name")
}

fn path(container: &str) -> ContainerPath {
    let account = AccountName::new("account1").expect("a name");
    ContainerPath { account, container: name(container) }
}

impl Store {
    async fn with(features: Features) -> Self {
        let clock = Arc::new(TestClock(AtomicU64::new(638_000_000_000_000_000)));
        let engine = Arc::new(MemoryEngine::default());
        let extents = Arc::new(MemoryExtents::default());
        let domain = Domain::open(engine.clone(), extents, clock.clone(), features).await;
        Self { domain: domain.expect("memory opens"), engine, clock }
    }

    async fn pass(&self, duration: Duration) {
        self.clock.0.store(self.clock.now().plus(duration).ticks(), Ordering::Relaxed);
        while self.domain.do_what_is_due().await.expect("memory works") {}
        while self.domain.collect_garbage().await.expect("memory works") {}
    }

    async fn create(&self, container: &str) -> Refused {
        let (metadata, public_access) = (Metadata::default(), PublicAccess::None);
        let command = CreateContainer {
            path: path(container),
            metadata,
            public_access,
            scope: ScopePolicy::default(),
        };
        refusal(self.domain.create_container(command).await)
    }

    async fn delete(&self, container: &str) -> Refused {
        let conditions = DateConditions::default();
        let command = DeleteContainer { path: path(container), conditions, lease_id: None };
        refusal(self.domain.delete_container(command).await)
    }

    async fn restore(&self, from: &ListedContainer, to: &str) -> Refused {
        let command = RestoreContainer {
            path: path(to),
            deleted_name: name(&from.name),
            deleted_version: Some(from.deleted.expect("a deleted one").version),
        };
        refusal(self.domain.restore_container(command).await)
    }

    async fn rename(&self, from: &str, to: &str, source_lease_id: Option<LeaseId>) -> Refused {
        let command = RenameContainer { path: path(to), source: name(from), source_lease_id };
        refusal(self.domain.rename_container(command).await)
    }

    /// The entries of all pages, each of `limit` at most.
    async fn list(&self, prefix: &str, limit: usize, system: bool) -> Vec<ListedContainer> {
        let (mut marker, mut found) = (None, Vec::new());
        loop {
            let command = ListContainers {
                account: path("any").account,
                prefix: prefix.to_owned(),
                marker,
                limit,
                deleted: true,
                system,
            };
            let mut page = self.domain.list_containers(command).await.expect("a page");
            let mut entries = 0;
            loop {
                let next = page.next().await.expect("memory reads");
                entries += next.len();
                if next.is_empty() {
                    break;
                }
                found.extend(next);
            }
            assert!(entries <= limit, "{entries} entries in a page of {limit}");
            marker = page.next_marker().map(str::to_owned);
            if marker.is_none() {
                return found;
            }
        }
    }

    async fn deleted(&self, container: &str) -> ListedContainer {
        let listed = self.list(container, 10, false).await;
        listed.into_iter().find(|listed| listed.deleted.is_some()).expect("a deleted one")
    }

    async fn rows(&self) -> usize {
        let snapshot = self.engine.snapshot().await.expect("memory reads");
        snapshot.scan(&KeyRange::all(), Order::Ascending, 1000).await.expect("memory reads").len()
    }
}

#[tokio::test]
async fn without_retention_and_hold_a_deleted_container_is_gone_and_its_name_free() {
    let store = Store::with(Features::default()).await;
    assert_eq!(store.create("photos").await, None);
    assert_eq!(store.delete("photos").await, None);
    assert_eq!(store.delete("photos").await, Some(ContainerRefusal::NotFound));
    assert!(store.list("", 10, true).await.is_empty());
    assert_eq!(store.create("photos").await, None);
}

#[tokio::test]
async fn a_name_is_held_after_its_container_was_deleted() {
    let store = Store::with(HELD).await;
    store.create("photos").await;
    store.create("others").await;
    store.delete("photos").await;
    assert_eq!(store.create("photos").await, Some(ContainerRefusal::BeingDeleted), "3.16 Create");
    assert_eq!(store.delete("photos").await, Some(ContainerRefusal::NotFound), "3.16 Delete");
    let renamed = store.rename("others", "photos", None).await;
    assert_eq!(renamed, Some(ContainerRefusal::BeingDeleted));
    store.pass(HOLD - Duration::from_secs(1)).await;
    assert_eq!(store.create("photos").await, Some(ContainerRefusal::BeingDeleted));
    store.pass(Duration::from_secs(1)).await;
    assert_eq!(store.create("photos").await, None);
    assert_eq!(store.rows().await, 2 * 2, "two containers, and no row of the hold");
}

#[tokio::test]
async fn a_deleted_container_is_restored_once_while_it_is_retained() {
    let store = Store::with(RETAINED).await;
    store.create("photos").await;
    store.delete("photos").await;
    let deleted = store.deleted("photos").await;
    let deletion = deleted.deleted.expect("deleted");
    assert_eq!(deletion.until.since(deletion.at), DAY);
    store.pass(DAY - Duration::from_secs(1)).await;
    assert_eq!(store.restore(&deleted, "photos").await, None);
    assert_eq!(store.restore(&deleted, "again").await, Some(ContainerRefusal::DeletedNotFound));
    store.pass(DAY).await;
    let listed = store.list("", 10, false).await;
    assert_eq!(listed.len(), 1, "what was restored is not purged");
    assert_eq!(listed[0].deleted, None);
    assert_eq!(listed[0].container.etag, deleted.container.etag);
}

#[tokio::test]
async fn a_deleted_container_is_purged_when_its_retention_ends() {
    let store = Store::with(RETAINED).await;
    store.create("photos").await;
    store.delete("photos").await;
    let deleted = store.deleted("photos").await;
    store.pass(DAY).await;
    assert_eq!(store.restore(&deleted, "photos").await, Some(ContainerRefusal::DeletedNotFound));
    assert_eq!(store.rows().await, 0);
}

#[tokio::test]
async fn restoring_needs_a_free_name_and_may_take_another() {
    let store = Store::with(RETAINED).await;
    store.create("photos").await;
    store.delete("photos").await;
    store.create("photos").await;
    let deleted = store.deleted("photos").await;
    assert_eq!(store.restore(&deleted, "photos").await, Some(ContainerRefusal::AlreadyExists));
    assert_eq!(store.restore(&deleted, "others").await, None);
    let unknown = RestoreContainer {
        path: path("new"),
        deleted_name: name("photos"),
        deleted_version: DeletedVersion::parse("0000000000000001"),
    };
    let unknown = refusal(store.domain.restore_container(unknown).await);
    assert_eq!(unknown, Some(ContainerRefusal::DeletedNotFound));
}

#[tokio::test]
async fn deleted_containers_are_listed_behind_the_one_that_has_their_name_now() {
    let store = Store::with(RETAINED).await;
    for _ in 0..3 {
        store.create("a-b").await;
        store.delete("a-b").await;
    }
    for container in ["a-b", "a-b-c", "a-a", "$root", "$web", "$logs", "$blobchangefeed"] {
        store.create(container).await;
    }
    store.create("z-deleted").await;
    store.delete("z-deleted").await;
    let shape = |listed: &ListedContainer| (listed.name.clone(), listed.deleted.is_some());
    let whole = store.list("", 100, false).await;
    let shapes: Vec<_> = whole.iter().map(shape).collect();
    let expected = [
        ("$root", false),
        ("$web", false),
        ("a-a", false),
        ("a-b", false),
        ("a-b", true),
        ("a-b", true),
        ("a-b", true),
        ("a-b-c", false),
        ("z-deleted", true),
    ]
    .map(|(name, deleted)| (name.to_owned(), deleted));
    assert_eq!(shapes, expected);
    let versions: Vec<_> = whole.iter().filter_map(|listed| listed.deleted).collect();
    assert!(versions.is_sorted_by(|one, other| one.version < other.version));
    for limit in 1..10 {
        let paged: Vec<_> = store.list("", limit, false).await.iter().map(shape).collect();
        assert_eq!(paged, expected, "in pages of {limit}");
    }
    assert_eq!(store.list("a-b-", 10, false).await.len(), 1);
    let system: Vec<_> = store.list("$", 10, true).await.iter().map(shape).collect();
    assert_eq!(system.len(), 4, "with those that the service writes");
}

#[tokio::test]
async fn a_renamed_container_is_the_same_under_its_new_name() {
    let store = Store::with(HELD).await;
    store.create("old").await;
    store.create("taken").await;
    let missing = store.rename("absent", "new", None).await;
    assert_eq!(missing, Some(ContainerRefusal::NotFound), "source missing");
    let exists = store.rename("old", "taken", None).await;
    assert_eq!(exists, Some(ContainerRefusal::AlreadyExists), "target exists");
    let itself = store.rename("old", "old", None).await;
    assert_eq!(itself, Some(ContainerRefusal::AlreadyExists), "onto itself");

    let id = LeaseId::from_u128(1);
    let duration = LeaseDuration::parse(-1, LeaseKind::Container).expect("a duration");
    let lease = LeaseContainer {
        path: path("old"),
        action: LeaseAction::Acquire { proposed: Some(id), duration },
        fresh_id: id,
        conditions: DateConditions::default(),
    };
    store.domain.lease_container(lease).await.expect("leased");
    let leased = |refusal| Some(ContainerRefusal::LeaseAccess(refusal));
    let without = store.rename("old", "new", None).await;
    assert_eq!(without, leased(AccessRefusal::IdMissing), "2.5 no id");
    let other = store.rename("old", "new", Some(LeaseId::from_u128(2))).await;
    assert_eq!(other, leased(AccessRefusal::IdMismatch), "2.5 id B");
    assert_eq!(store.rename("old", "new", Some(id)).await, None, "2.5 id A");
    assert_eq!(store.delete("new").await, leased(AccessRefusal::IdMissing), "the lease goes along");
    assert_eq!(store.domain.live_leases(), 1);
    assert_eq!(store.create("old").await, None, "the old name is free");
}
