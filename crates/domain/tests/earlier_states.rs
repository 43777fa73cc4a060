//! Earlier states of blobs: snapshots, versions and deleted states. The tests are named after cells
//! of the table of operations.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::account::{ServiceKind, ServiceProperties};
use holdfast_domain::blob::{
    Blob, BlobRefusal, DeleteBlob, DeleteSnapshots, Deleted, Encryption, GetBlob, LeaseBlob,
    ListBlobs, Listed, ListedState, NewBlob, SetBlobMetadata, SetBlobProperties, Show,
    SnapshotBlob, Which,
};
use holdfast_domain::condition::{Conditions, DateConditions, ETagList};
use holdfast_domain::content::{ContentHeaders, INLINE_BYTES_MAX};
use holdfast_domain::features::Features;
use holdfast_domain::lease::{LeaseAction, LeaseDuration, LeaseId};
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;
use holdfast_domain::{Failure, names::AccountName};
use holdfast_store::engine::EngineStatistics;
use holdfast_store::memory::MemoryEngine;
use holdfast_store::{
    Batch, CommitError, Engine, Fault, KeyRange, Order, Row, Snapshot, engine::Moment,
};
use support::{Store, blob, container, content, get, put};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const RETENTION_DAYS: u32 = 7;

const ALL: Show = Show {
    current: true,
    snapshots: true,
    versions: true,
    deleted: true,
    deleted_with_versions: false,
    uncommitted: false,
};

/// Which earlier states the account keeps.
#[derive(Clone, Copy, Default)]
struct Keeping {
    versions: bool,
    deleted: bool,
    permanent_delete: bool,
}

const NOTHING: Keeping = Keeping { versions: false, deleted: false, permanent_delete: false };
const DELETED: Keeping = Keeping { deleted: true, ..NOTHING };
const VERSIONS: Keeping = Keeping { versions: true, ..NOTHING };
const BOTH: Keeping = Keeping { versions: true, deleted: true, permanent_delete: false };

struct Kept(Store);

type Outcome<T> = Result<T, BlobRefusal>;

impl Kept {
    async fn with(keeping: Keeping) -> Self {
        Self::on(Arc::new(MemoryEngine::default()), keeping).await
    }

    async fn on(engine: Arc<dyn Engine>, keeping: Keeping) -> Self {
        let features = Features { versioning: keeping.versions, ..Features::default() };
        let store = Store::on(engine, features).await;
        store.create("photos").await.expect("a new container");
        let account = AccountName::new("account1").expect("a name");
        store
            .domain
            .set_service_properties(&account, ServiceKind::Blob, |properties| {
                properties.delete_retention.days = keeping.deleted.then_some(RETENTION_DAYS);
                properties.delete_retention.allow_permanent_delete = keeping.permanent_delete;
            })
            .await
            .expect("set");
        Self(store)
    }

    /// Moves the clock, so that changes are a second apart.
    fn tick(&self) {
        self.0.clock.pass(Duration::from_secs(1));
    }

    async fn put(&self, name: &str, content: &[u8]) {
        self.tick();
        self.0.put(name, content).await.expect("written");
    }

    async fn put_append_blob(&self, name: &str) -> Outcome<Blob> {
        self.tick();
        refusal(self.0.domain.put_blob(put(name, NewBlob::Append)).await)
    }

    async fn snapshot(&self, name: &str) -> Timestamp {
        self.try_snapshot(name, &[], Conditions::default(), None).await.expect("a snapshot").0
    }

    async fn try_snapshot(
        &self,
        name: &str,
        metadata: &[(&str, &str)],
        conditions: Conditions,
        lease_id: Option<LeaseId>,
    ) -> Outcome<(Timestamp, Blob, Option<Timestamp>)> {
        self.tick();
        let command = SnapshotBlob {
            path: blob(name),
            metadata: pairs(metadata),
            conditions,
            lease_id,
            encryption: Encryption::Account,
        };
        let made = refusal(self.0.domain.snapshot_blob(command).await)?;
        Ok((made.moment, made.snapshot, made.version))
    }

    async fn set_metadata(&self, name: &str) -> Blob {
        self.tick();
        let command = SetBlobMetadata {
            path: blob(name),
            metadata: pairs(&[("changed", "yes")]),
            conditions: Conditions::default(),
            lease_id: None,
            encryption: Encryption::Account,
        };
        refusal(self.0.domain.set_blob_metadata(command).await).expect("set")
    }

    async fn set_properties(&self, name: &str) {
        self.tick();
        let command = SetBlobProperties {
            path: blob(name),
            headers: Some(ContentHeaders::default()),
            length: None,
            sequence: None,
            conditions: Conditions::default(),
            lease_id: None,
        };
        refusal(self.0.domain.set_blob_properties(command).await).expect("set");
    }

    async fn delete(&self, name: &str) -> Outcome<Deleted> {
        self.delete_with(name, Which::Current, None, false).await
    }

    async fn delete_with(
        &self,
        name: &str,
        which: Which,
        snapshots: Option<DeleteSnapshots>,
        permanent: bool,
    ) -> Outcome<Deleted> {
        self.tick();
        let command = DeleteBlob {
            path: blob(name),
            which,
            snapshots,
            permanent,
            conditions: Conditions::default(),
            tier_conditions: DateConditions::default(),
            lease_id: None,
        };
        refusal(self.0.domain.delete_blob(command).await)
    }

    async fn undelete(&self, name: &str) -> Outcome<()> {
        self.tick();
        refusal(self.0.domain.undelete_blob(&blob(name)).await)
    }

    async fn read(&self, name: &str, which: Which) -> Outcome<Vec<u8>> {
        let command = GetBlob { which, ..get(name) };
        let mut reader = refusal(self.0.domain.get_blob(&command, None).await)?.reader;
        let mut content = Vec::new();
        while let Some(bytes) = reader.next().await.expect("memory reads") {
            content.extend_from_slice(&bytes);
        }
        Ok(content)
    }

    /// All entries of a listing, in pages of `limit`: what they are, and the length of their blob.
    async fn list(&self, show: Show, delimiter: Option<&str>, limit: usize) -> Vec<String> {
        let (mut told, mut start) = (Vec::new(), None);
        loop {
            let command = ListBlobs {
                container: container("photos"),
                prefix: String::new(),
                delimiter: delimiter.map(str::to_owned),
                start,
                end_before: None,
                limit,
                show,
            };
            let mut page = self.0.domain.list_blobs(command).await.expect("a page");
            let before = told.len();
            loop {
                let entries = page.next().await.expect("memory reads");
                if entries.is_empty() {
                    break;
                }
                told.extend(entries.iter().map(tell));
            }
            assert!(told.len() - before <= limit);
            start = page.next_marker().cloned();
            if start.is_none() {
                return told;
            }
        }
    }

    async fn states(&self) -> Vec<String> {
        self.list(ALL, None, 100).await
    }

    /// Lets the retention end, and runs what is due.
    async fn outlive_retention(&self) {
        self.0.clock.pass(DAY * RETENTION_DAYS);
        while self.0.domain.do_what_is_due().await.expect("done") {}
    }
}

fn tell(entry: &Listed) -> String {
    let (name, listed) = match entry {
        Listed::Blob(name, listed) => (name, listed),
        Listed::Uncommitted(name) => return format!("({name})"),
        Listed::Prefix(name) => return format!("<{name}>"),
    };
    let deleted = if listed.deleted.is_some() { "deleted " } else { "" };
    let state = match listed.state {
        ListedState::Base => "blob",
        ListedState::Snapshot(_) => "snapshot",
        ListedState::Version(_) if listed.has_versions_only => "last version",
        ListedState::Version(_) => "version",
    };
    format!("{name}: {deleted}{state} of {}", listed.blob.length)
}

fn refusal<T>(outcome: Result<T, Failure<BlobRefusal>>) -> Outcome<T> {
    outcome.map_err(|failure| match failure {
        Failure::Refused(refusal) => refusal,
        failure @ (Failure::Busy | Failure::OutcomeUnknown(_) | Failure::Fault(_)) => {
            panic!("{failure:?}")
        }
    })
}

fn pairs(pairs: &[(&str, &str)]) -> Metadata {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Metadata::new(owned).expect("valid metadata")
}

#[tokio::test]
async fn a_snapshot_stays_as_the_blob_was_whatever_becomes_of_the_blob() {
    for length in [0, 10, INLINE_BYTES_MAX + 1] {
        let kept = Kept::with(NOTHING).await;
        kept.put("a", &content(length)).await;
        let moment = kept.snapshot("a").await;
        kept.put("a", b"other").await;
        let which = Which::Snapshot(moment);
        assert_eq!(kept.read("a", which).await, Ok(content(length)), "{length} bytes");
        assert_eq!(kept.read("a", Which::Current).await.as_deref(), Ok(&b"other"[..]));
        kept.delete_with("a", which, None, false).await.expect("deleted");
        assert_eq!(kept.read("a", which).await, Err(BlobRefusal::NotFound));
        assert_eq!(kept.0.bytes_in_extents(), 0, "{length} bytes");
    }
}

#[tokio::test]
async fn a_snapshot_has_the_metadata_of_the_request_or_else_of_the_blob() {
    let kept = Kept::with(NOTHING).await;
    kept.put("a", b"content").await;
    let base = kept.set_metadata("a").await;
    let none = Conditions::default;
    let (_, copied, _) = kept.try_snapshot("a", &[], none(), None).await.expect("a snapshot");
    assert_eq!(copied.metadata.get("changed"), Some("yes"));
    assert_eq!(copied.etag, base.etag, "nothing is different");
    let (_, own, _) =
        kept.try_snapshot("a", &[("own", "1")], none(), None).await.expect("a snapshot");
    assert_eq!((own.metadata.get("changed"), own.metadata.get("own")), (None, Some("1")));
    assert_ne!(own.etag, base.etag);
}

#[tokio::test]
async fn a_snapshot_is_held_against_conditions_leases_and_the_blob() {
    let kept = Kept::with(NOTHING).await;
    let none = Conditions::default;
    let missing = kept.try_snapshot("a", &[], none(), None).await;
    assert_eq!(missing.err(), Some(BlobRefusal::NotFound));
    kept.put("a", b"content").await;
    let unmet = Conditions { if_match: ETagList::parse("\"0x1\""), ..none() };
    assert!(kept.try_snapshot("a", &[], unmet, None).await.is_err());

    let (id, other) = (LeaseId::from_u128(1), LeaseId::from_u128(2));
    let action = LeaseAction::Acquire { proposed: Some(id), duration: LeaseDuration::INFINITE };
    let lease = LeaseBlob { path: blob("a"), action, fresh_id: id, conditions: none() };
    kept.0.domain.lease_blob(lease).await.map(drop).expect("leased");
    let cases =
        [("no id", None, true), ("the id", Some(id), true), ("another", Some(other), false)];
    for (case, given, works) in cases {
        let made = kept.try_snapshot("a", &[], none(), given).await;
        assert_eq!(made.is_ok(), works, "{case}: {made:?}");
    }
}

#[tokio::test]
async fn a_snapshot_begins_a_new_version_where_versions_are_kept() {
    let kept = Kept::with(VERSIONS).await;
    kept.put("a", &content(INLINE_BYTES_MAX + 1)).await;
    let (moment, _, version) =
        kept.try_snapshot("a", &[], Conditions::default(), None).await.expect("a snapshot");
    let version = version.expect("a version");
    assert_ne!(moment, version);
    let expected = Ok(content(INLINE_BYTES_MAX + 1));
    assert_eq!(kept.read("a", Which::Version(version)).await, expected);
    assert_eq!(kept.read("a", Which::Snapshot(moment)).await, expected);
    let states = kept.states().await;
    assert_eq!(states, ["a: version of 16385", "a: snapshot of 16385", "a: blob of 16385"]);
}

#[tokio::test]
async fn a_blob_with_snapshots_is_deleted_only_with_a_word_about_them() {
    let kept = Kept::with(NOTHING).await;
    kept.put("a", b"content").await;
    kept.snapshot("a").await;
    assert_eq!(kept.delete("a").await, Err(BlobRefusal::SnapshotsPresent));
    let only = Some(DeleteSnapshots::Only);
    kept.delete_with("a", Which::Current, only, false).await.expect("deleted");
    assert_eq!(kept.states().await, ["a: blob of 7"]);
    kept.snapshot("a").await;
    let include = Some(DeleteSnapshots::Include);
    let deleted = kept.delete_with("a", Which::Current, include, false).await;
    assert_eq!(deleted, Ok(Deleted::ForGood));
    assert_eq!(kept.states().await, Vec::<String>::new());
    assert_eq!(kept.undelete("a").await, Err(BlobRefusal::NotFound));
}

#[tokio::test]
async fn delete_blob_with_soft_delete_leaves_a_deleted_blob_with_its_snapshots() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"content").await;
    kept.snapshot("a").await;
    let include = Some(DeleteSnapshots::Include);
    let deleted = kept.delete_with("a", Which::Current, include, false).await;
    assert_eq!(deleted, Ok(Deleted::Kept));
    assert_eq!(kept.read("a", Which::Current).await, Err(BlobRefusal::NotFound));
    assert_eq!(kept.states().await, ["a: deleted snapshot of 7", "a: deleted blob of 7"]);
    let shown = Show { deleted: true, ..Show::default() };
    assert_eq!(kept.list(shown, None, 10).await, ["a: deleted blob of 7"]);
    kept.undelete("a").await.expect("restored");
    assert_eq!(kept.states().await, ["a: snapshot of 7", "a: blob of 7"]);
    assert_eq!(kept.read("a", Which::Current).await.as_deref(), Ok(&b"content"[..]));
    kept.undelete("a").await.expect("nothing to restore");
}

#[tokio::test]
async fn delete_blob_with_both_makes_the_current_version_a_previous_one() {
    for keeping in [VERSIONS, BOTH] {
        let kept = Kept::with(keeping).await;
        kept.put("a", b"content").await;
        assert_eq!(kept.delete("a").await, Ok(Deleted::Kept));
        assert_eq!(kept.states().await, ["a: version of 7"]);
        assert_eq!(kept.read("a", Which::Current).await, Err(BlobRefusal::NotFound));
        let shown = Show { deleted_with_versions: true, ..Show::default() };
        assert_eq!(kept.list(shown, None, 10).await, ["a: last version of 7"]);
    }
}

#[tokio::test]
async fn delete_of_a_snapshot_with_soft_delete_leaves_a_deleted_snapshot() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"content").await;
    let which = Which::Snapshot(kept.snapshot("a").await);
    assert_eq!(kept.delete_with("a", which, None, false).await, Ok(Deleted::Kept));
    assert_eq!(kept.read("a", which).await, Err(BlobRefusal::NotFound));
    assert_eq!(kept.states().await, ["a: deleted snapshot of 7", "a: blob of 7"]);
    kept.undelete("a").await.expect("restored");
    assert_eq!(kept.read("a", which).await.as_deref(), Ok(&b"content"[..]));
}

#[tokio::test]
async fn delete_of_a_version_with_both_leaves_a_deleted_version_and_none_becomes_current() {
    let kept = Kept::with(BOTH).await;
    kept.put("a", b"1").await;
    let first = kept.version("a").await;
    kept.put("a", b"22").await;
    let second = kept.version("a").await;
    let current = kept.delete_with("a", Which::Version(second), None, false).await;
    assert_eq!(current, Err(BlobRefusal::CurrentVersion));
    let deleted = kept.delete_with("a", Which::Version(first), None, false).await;
    assert_eq!(deleted, Ok(Deleted::Kept));
    assert_eq!(kept.states().await, ["a: deleted version of 1", "a: blob of 2"]);
    kept.delete("a").await.expect("deleted");
    assert_eq!(kept.states().await, ["a: deleted version of 1", "a: version of 2"]);
    kept.undelete("a").await.expect("restored");
    assert_eq!(kept.states().await, ["a: version of 1", "a: version of 2"]);
    assert_eq!(kept.read("a", Which::Version(first)).await.as_deref(), Ok(&b"1"[..]));
    assert_eq!(kept.read("a", Which::Current).await, Err(BlobRefusal::NotFound));
}

#[tokio::test]
async fn an_overwrite_with_soft_delete_leaves_a_deleted_snapshot() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"1").await;
    kept.put("a", b"22").await;
    assert_eq!(kept.states().await, ["a: deleted snapshot of 1", "a: blob of 2"]);
    kept.undelete("a").await.expect("restored");
    assert_eq!(kept.states().await, ["a: snapshot of 1", "a: blob of 2"]);
}

#[tokio::test]
async fn an_overwrite_with_both_leaves_a_version() {
    for keeping in [VERSIONS, BOTH] {
        let kept = Kept::with(keeping).await;
        kept.put("a", b"1").await;
        let first = kept.version("a").await;
        kept.put("a", b"22").await;
        assert_eq!(kept.states().await, ["a: version of 1", "a: blob of 2"]);
        assert_eq!(kept.read("a", Which::Version(first)).await.as_deref(), Ok(&b"1"[..]));
        let second = kept.version("a").await;
        assert_eq!(kept.read("a", Which::Version(second)).await.as_deref(), Ok(&b"22"[..]));
    }
}

#[tokio::test]
async fn an_overwrite_of_a_deleted_blob_by_another_kind_purges_it() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", &content(INLINE_BYTES_MAX + 1)).await;
    kept.delete("a").await.expect("deleted");
    kept.put_append_blob("a").await.expect("written");
    assert_eq!(kept.states().await, ["a: blob of 0"]);
    assert_eq!(kept.0.bytes_in_extents(), 0);
}

#[tokio::test]
async fn what_was_deleted_while_it_was_retained_is_still_purged_when_it_is_not_any_more() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"1").await;
    kept.delete("a").await.expect("deleted");
    let account = AccountName::new("account1").expect("a name");
    let off = |properties: &mut ServiceProperties| properties.delete_retention = Default::default();
    kept.0.domain.set_service_properties(&account, ServiceKind::Blob, off).await.expect("set");
    kept.put_append_blob("a").await.expect("written");
    assert_eq!(kept.states().await, ["a: blob of 0"]);
}

#[tokio::test]
async fn an_overwrite_of_a_deleted_blob_by_its_own_kind_keeps_it_as_a_deleted_snapshot() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"1").await;
    kept.delete("a").await.expect("deleted");
    kept.put("a", b"22").await;
    assert_eq!(kept.states().await, ["a: deleted snapshot of 1", "a: blob of 2"]);
    let shown = Show { deleted: true, ..Show::default() };
    assert_eq!(kept.list(shown, None, 10).await, ["a: blob of 2"]);
}

#[tokio::test]
async fn set_blob_metadata_makes_a_version_and_set_blob_properties_none() {
    let table = [
        ("soft delete", DELETED, vec!["a: blob of 7"]),
        ("both", BOTH, vec!["a: version of 7", "a: blob of 7"]),
    ];
    for (case, keeping, expected) in table {
        let kept = Kept::with(keeping).await;
        kept.put("a", b"content").await;
        kept.set_properties("a").await;
        assert_eq!(kept.states().await, ["a: blob of 7"], "{case}");
        kept.set_metadata("a").await;
        assert_eq!(kept.states().await, expected, "{case}");
        assert_eq!(kept.read("a", Which::Current).await.as_deref(), Ok(&b"content"[..]), "{case}");
    }
}

#[tokio::test]
async fn retention_ends_with_the_bytes_given_back() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", &content(INLINE_BYTES_MAX + 1)).await;
    kept.snapshot("a").await;
    let include = Some(DeleteSnapshots::Include);
    kept.delete_with("a", Which::Current, include, false).await.expect("deleted");
    kept.0.clock.pass(DAY * RETENTION_DAYS);
    assert_eq!(kept.states().await, Vec::<String>::new(), "though not purged yet");
    assert_eq!(kept.undelete("a").await, Err(BlobRefusal::NotFound));
    kept.outlive_retention().await;
    assert_eq!(kept.0.bytes_in_extents(), 0);
}

#[tokio::test]
async fn what_was_restored_is_not_purged_when_its_first_retention_ends() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"content").await;
    kept.delete("a").await.expect("deleted");
    kept.undelete("a").await.expect("restored");
    kept.outlive_retention().await;
    assert_eq!(kept.read("a", Which::Current).await.as_deref(), Ok(&b"content"[..]));
}

#[tokio::test]
async fn deleting_for_good_needs_the_account_to_allow_it_and_the_item_to_be_deleted() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"content").await;
    let which = Which::Snapshot(kept.snapshot("a").await);
    kept.delete_with("a", which, None, false).await.expect("deleted");
    let refused = kept.delete_with("a", which, None, true).await;
    assert_eq!(refused, Err(BlobRefusal::PermanentDeleteNotAllowed));

    let kept = Kept::with(Keeping { permanent_delete: true, ..DELETED }).await;
    kept.put("a", b"content").await;
    let which = Which::Snapshot(kept.snapshot("a").await);
    let purge = async |which| kept.delete_with("a", which, None, true).await;
    assert_eq!(purge(Which::Current).await, Err(BlobRefusal::NotDeleted));
    assert_eq!(purge(which).await, Err(BlobRefusal::NotDeleted));
    kept.delete_with("a", which, None, false).await.expect("deleted");
    assert_eq!(purge(which).await, Ok(Deleted::ForGood));
    assert_eq!(kept.states().await, ["a: blob of 7"]);
    assert_eq!(purge(which).await, Err(BlobRefusal::NotFound));
}

#[tokio::test]
async fn pages_of_a_listing_continue_in_the_middle_of_the_states_of_a_name() {
    let kept = Kept::with(BOTH).await;
    for name in ["a", "b/1", "b/2", "c"] {
        kept.put(name, b"1").await;
        kept.put(name, b"22").await;
        kept.snapshot(name).await;
    }
    kept.delete_with("c", Which::Current, Some(DeleteSnapshots::Include), false)
        .await
        .expect("deleted");
    let whole = kept.states().await;
    assert_eq!(whole.len(), 16, "{whole:?}");
    for limit in 1..=whole.len() {
        assert_eq!(kept.list(ALL, None, limit).await, whole, "pages of {limit}");
    }
    let by_prefix = kept.list(Show { versions: true, ..Show::default() }, Some("/"), 2).await;
    let b = by_prefix.iter().filter(|entry| entry.starts_with("<b/>")).count();
    assert_eq!(b, 1, "{by_prefix:?}");
}

#[tokio::test]
async fn a_listing_of_deleted_blobs_alone_shows_no_others() {
    let kept = Kept::with(DELETED).await;
    kept.put("a", b"1").await;
    kept.put("b", b"1").await;
    kept.put("b", b"22").await;
    kept.delete("a").await.expect("deleted");
    let shown = Show { current: false, deleted: true, ..Show::default() };
    assert_eq!(kept.list(shown, None, 10).await, ["a: deleted blob of 1"]);
}

#[tokio::test]
async fn a_page_costs_what_it_shows_however_much_there_is() {
    let engine = Arc::new(CountingEngine::default());
    let kept = Kept::on(Arc::clone(&engine) as Arc<dyn Engine>, BOTH).await;
    for number in 0..300 {
        let name = format!("folder{}/blob{number:03}", number / 100);
        kept.put(&name, b"1").await;
        for _ in 0..5 {
            kept.put(&name, b"22").await;
        }
        kept.snapshot(&name).await;
    }
    let page = async |show, delimiter: Option<&str>, limit| {
        engine.rows.store(0, Ordering::Relaxed);
        let command = ListBlobs {
            container: container("photos"),
            prefix: String::new(),
            delimiter: delimiter.map(str::to_owned),
            start: None,
            end_before: None,
            limit,
            show,
        };
        let mut page = kept.0.domain.list_blobs(command).await.expect("a page");
        while !page.next().await.expect("memory reads").is_empty() {}
        engine.rows.load(Ordering::Relaxed)
    };
    // One row more for the marker, and one for the container.
    assert_eq!(page(Show::default(), None, 10).await, 12, "current ones only");
    let snapshots = Show { snapshots: true, ..Show::default() };
    let read = page(snapshots, None, 10).await;
    assert!(read <= 2 * 11 + 1 + 10, "{read} rows for 10 entries of two sources");
    let read = page(ALL, None, 10).await;
    assert!(read <= 6 * 11 + 1 + 10, "{read} rows for 10 entries of all sources");
    let latest = Show { deleted_with_versions: true, ..Show::default() };
    let read = page(latest, None, 10).await;
    assert!(read <= 12 * 4, "{read} rows for 10 entries with the latest versions");
    let versions = Show { versions: true, ..Show::default() };
    let read = page(versions, Some("/"), 10).await;
    assert!(read <= 2 * 3 * 64 + 1, "{read} rows for three common prefixes of two sources");
}

impl Kept {
    /// The current version of a blob.
    async fn version(&self, name: &str) -> Timestamp {
        let read = self.0.domain.get_blob_properties(&get(name)).await.expect("properties");
        read.blob.version.expect("a version")
    }
}

/// Counts the rows that are read.
#[derive(Default)]
struct CountingEngine {
    memory: MemoryEngine,
    rows: Arc<AtomicUsize>,
}

struct CountingSnapshot(Box<dyn Snapshot>, Arc<AtomicUsize>);

#[async_trait]
impl Engine for CountingEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let snapshot = self.memory.snapshot().await?;
        Ok(Box::new(CountingSnapshot(snapshot, Arc::clone(&self.rows))))
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.memory.commit(batch).await
    }

    fn poisoned(&self) -> Option<Fault> {
        self.memory.poisoned()
    }

    fn statistics(&self) -> EngineStatistics {
        self.memory.statistics()
    }
}

#[async_trait]
impl Snapshot for CountingSnapshot {
    fn moment(&self) -> Moment {
        self.0.moment()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(key).await
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        let found = self.0.scan(range, order, limit).await?;
        self.1.fetch_add(found.len(), Ordering::Relaxed);
        Ok(found)
    }
}
