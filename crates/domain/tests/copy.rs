//! Copies: what they share, what they refuse, and how those from elsewhere end.

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::blob::{
    AbortCopy, AccessTier, Blob, BlobRefusal, BlockId, BlockListEntry, BlockSource, BlockTypes,
    CopiedTags, CopyBlob, CopyRefusal, CopySource, Encryption, GetBlockList, Kind, Manner, NewBlob,
    PutBlob, PutBlock, RehydratePriority, SourceHere, Which,
};
use holdfast_domain::condition::{Conditions, ETagList, SequenceNumber};
use holdfast_domain::content::{ByteSource, ContentHeaders, Received};
use holdfast_domain::copy::{
    CopyDestination, CopyEnd, CopyFailure, CopyStatus, RemoteBytes, RemoteSource, SourceElsewhere,
    SourceKind,
};
use holdfast_domain::features::Features;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::tags::TagSet;
use holdfast_domain::workers::{Progress, WorkerState, WorkerTotals};
use holdfast_domain::{Domain, Failure};
use holdfast_store::Engine;
use holdfast_store::memory::MemoryEngine;
use support::{Body, Store, blob, content, get, put};

const KIB: usize = 1024;
const ID: &str = "the copy";

fn here(name: &str) -> CopySource {
    CopySource::Here(SourceHere {
        path: blob(name),
        which: Which::Current,
        conditions: Conditions::default(),
        etag: None,
    })
}

fn elsewhere(kind: SourceKind, length: u64) -> SourceElsewhere {
    let (headers, metadata) = (ContentHeaders::default(), Metadata::default());
    SourceElsewhere { kind, length, headers, metadata }
}

fn copy(source: CopySource, to: &str) -> CopyBlob {
    CopyBlob {
        path: blob(to),
        source,
        source_url: "http://source".to_owned(),
        copy_id: ID.to_owned(),
        metadata: None,
        tags: CopiedTags::Sent(TagSet::default()),
        tier: None,
        priority: RehydratePriority::Standard,
        sealed: None,
        immutability: None,
        legal_hold: false,
        encryption: Encryption::Account,
        conditions: Conditions::default(),
        lease_id: None,
        lease_needs_blob: true,
        create_only: false,
        manner: Manner::Asynchronous,
    }
}

async fn receive(store: &Store, content: &[u8]) -> Received {
    match store.domain.receive(&mut Body::of(content)).await {
        Ok(received) => received,
        Err(_) => panic!("a body in memory arrives"),
    }
}

async fn copied(store: &Store, command: CopyBlob) -> Result<Blob, CopyRefusal> {
    match store.domain.copy_blob(command).await {
        Ok(blob) => Ok(blob),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}

async fn current(store: &Store, name: &str) -> Blob {
    *store.domain.get_blob_properties(&get(name)).await.expect("the blob").blob
}

fn refusal<T>(result: Result<T, Failure<BlobRefusal>>) -> Option<BlobRefusal> {
    match result {
        Ok(_) => None,
        Err(Failure::Refused(refusal)) => Some(refusal),
        Err(failure) => panic!("{failure:?}"),
    }
}

/// A block blob made of `count` equal blocks.
async fn put_blocks(store: &Store, name: &str, block: &[u8], count: usize) {
    let id = BlockId::new(&b"a"[..]).expect("an id");
    let Ok(content) = store.domain.receive_part(&mut Body::of(block), None).await else {
        panic!("a body in memory arrives");
    };
    let (path, encryption) = (blob(name), Encryption::Account);
    let staged =
        PutBlock { path, id: id.clone(), content, encryption, lease_id: None, create_only: false };
    store.domain.put_block(staged).await.expect("a block");
    let entry = BlockListEntry { id, source: BlockSource::Latest };
    let list = NewBlob::BlockList(vec![entry; count]);
    store.domain.put_blob(put(name, list)).await.expect("a blob of blocks");
}

#[tokio::test]
async fn a_copy_shares_the_bytes_of_its_source_and_outlives_it() {
    for length in [0, 100, 20 * KIB, 200 * KIB] {
        let store = Store::with_container("photos").await;
        let bytes = content(length);
        store.put("source", &bytes).await.expect("put");
        let before = store.bytes_in_extents();
        copied(&store, copy(here("source"), "copy")).await.expect("a copy");
        assert_eq!(store.bytes_in_extents(), before, "no bytes are written");
        store.delete("source").await.expect("deleted");
        store.collect_garbage().await;
        assert_eq!(store.get("copy", None).await.expect("its bytes"), bytes, "{length}");
        store.delete("copy").await.expect("deleted");
        store.collect_garbage().await;
        assert_eq!(store.bytes_in_extents(), 0, "{length}");
    }
}

#[tokio::test]
async fn a_blob_copied_onto_itself_keeps_its_bytes() {
    for length in [100, 200 * KIB] {
        let store = Store::with_container("photos").await;
        let bytes = content(length);
        store.put("blob", &bytes).await.expect("put");
        copied(&store, copy(here("blob"), "blob")).await.expect("a copy");
        store.collect_garbage().await;
        assert_eq!(store.get("blob", None).await.expect("its bytes"), bytes, "{length}");
        store.delete("blob").await.expect("deleted");
        store.collect_garbage().await;
        assert_eq!(store.bytes_in_extents(), 0, "{length}");
    }
}

#[tokio::test]
async fn a_copy_of_a_gibibyte_writes_as_many_rows_as_one_of_a_kibibyte() {
    let store = Store::with_container("photos").await;
    put_blocks(&store, "small", &content(KIB), 1).await;
    put_blocks(&store, "large", &content(4 * KIB * KIB), 256).await;
    assert_eq!(current(&store, "large").await.length, 1024 * 1024 * 1024);
    let mut written = Vec::new();
    for name in ["small", "large"] {
        let before = store.domain.engine().statistics().rows;
        copied(&store, copy(here(name), &format!("{name} copy"))).await.expect("a copy");
        written.push(store.domain.engine().statistics().rows - before);
    }
    assert!(written[1] <= written[0] + 1, "rows of a small and a large copy: {written:?}");
}

#[tokio::test]
async fn a_copy_has_the_committed_block_list_of_its_source() {
    let store = Store::with_container("photos").await;
    put_blocks(&store, "source", &content(30 * KIB), 3).await;
    copied(&store, copy(here("source"), "copy")).await.expect("a copy");
    let asked = GetBlockList {
        path: blob("copy"),
        which: Which::Current,
        types: BlockTypes::All,
        conditions: Conditions::default(),
        lease_id: None,
    };
    let list = store.domain.get_block_list(&asked).await.expect("a list");
    assert_eq!((list.committed.len(), list.uncommitted.len()), (3, 0));
}

#[tokio::test]
async fn a_copy_is_refused_by_what_is_wrong_with_its_source() {
    let store = Store::with_container("photos").await;
    let source = |refusal| Some(CopyRefusal::Source(refusal));
    store.put("source", b"bytes").await.expect("put");
    let archived = PutBlob {
        tier: Some(AccessTier::Archive),
        ..put("archived", NewBlob::Block(receive(&store, b"cold").await))
    };
    store.domain.put_blob(archived).await.expect("an archived blob");
    let page = NewBlob::Page { length: 512, sequence_number: SequenceNumber::default() };
    store.domain.put_blob(put("page", page)).await.expect("a page blob");
    let etag = current(&store, "archived").await.etag;
    let conditional = |conditions| {
        let (path, which) = (blob("source"), Which::Current);
        CopySource::Here(SourceHere { path, which, conditions, etag: None })
    };
    let other = Conditions { if_match: Some(ETagList::from(etag)), ..Conditions::default() };
    let any = Conditions { if_match: Some(ETagList::Any), ..Conditions::default() };
    let synchronous = Manner::Synchronous { length_max: 4 };
    let tier = |tier| CopyBlob { tier: Some(tier), ..copy(here("archived"), "to") };
    let cases = [
        ("3.8 missing", copy(here("none"), "to"), source(BlobRefusal::NotFound)),
        ("1.6 source, met", copy(conditional(any), "to"), None),
        (
            "1.6 source, not met",
            copy(conditional(other), "to"),
            source(BlobRefusal::ConditionNotMet),
        ),
        ("3.8 archived", copy(here("archived"), "to"), source(BlobRefusal::Archived)),
        ("3.8 archived to Archive", tier(AccessTier::Archive), source(BlobRefusal::Archived)),
        ("3.8 archived to Hot", tier(AccessTier::Hot), None),
        (
            "3.8 sync, archived",
            CopyBlob { manner: synchronous, ..tier(AccessTier::Hot) },
            source(BlobRefusal::Archived),
        ),
        (
            "3.8 sync, page blob",
            CopyBlob { manner: synchronous, ..copy(here("page"), "to") },
            source(BlobRefusal::WrongKind),
        ),
        (
            "3.8 sync, too large",
            CopyBlob { manner: synchronous, ..copy(here("source"), "to") },
            Some(CopyRefusal::SourceTooLarge),
        ),
        (
            "3.8 type mismatch",
            copy(here("page"), "source"),
            Some(CopyRefusal::Destination(BlobRefusal::WrongKind)),
        ),
        (
            "3.4 only append blobs are sealed",
            CopyBlob { sealed: Some(true), ..copy(here("source"), "to") },
            Some(CopyRefusal::Destination(BlobRefusal::WrongKind)),
        ),
    ];
    for (cell, command, expected) in cases {
        let to = command.path.clone();
        assert_eq!(copied(&store, command).await.err(), expected, "{cell}");
        if expected.is_none() {
            store.delete(to.blob.as_str()).await.expect("deleted");
        }
    }
}

#[tokio::test]
async fn a_copy_of_an_archived_blob_is_on_its_way_out_of_the_archive() {
    let features = Features { rehydration: Duration::from_secs(60), ..Features::default() };
    let store = Store::on(Arc::new(MemoryEngine::default()), features).await;
    store.create("photos").await.expect("a new container");
    let archived = PutBlob {
        tier: Some(AccessTier::Archive),
        ..put("archived", NewBlob::Block(receive(&store, b"cold").await))
    };
    store.domain.put_blob(archived).await.expect("an archived blob");
    let command = CopyBlob { tier: Some(AccessTier::Cool), ..copy(here("archived"), "copy") };
    let copy = copied(&store, command).await.expect("a copy");
    assert!(copy.is_archived());
    assert_eq!(copy.rehydration.map(|on| on.to), Some(AccessTier::Cool));
    store.clock.pass(Duration::from_secs(60));
    let read = store.domain.get_blob_properties(&get("copy")).await.expect("found").blob;
    assert_eq!((read.tier, read.rehydration), (Some(AccessTier::Cool), None));
}

#[tokio::test]
async fn append_and_page_blobs_are_copied_as_what_they_are() {
    let store = Store::with_container("photos").await;
    let number = SequenceNumber::parse("7").expect("a number");
    let page = NewBlob::Page { length: 1024, sequence_number: number };
    store.domain.put_blob(put("page", page)).await.expect("a page blob");
    store.domain.put_blob(put("append", NewBlob::Append)).await.expect("an append blob");
    let page = copied(&store, copy(here("page"), "page copy")).await.expect("a copy");
    assert!(matches!(page.kind, Kind::Page { sequence_number, .. } if sequence_number == number));
    assert_eq!(page.length, 1024);
    for (sealed, expected) in [(None, false), (Some(true), true), (Some(false), false)] {
        let command = CopyBlob { sealed, ..copy(here("append"), "append copy") };
        let append = copied(&store, command).await.expect("a copy");
        assert_eq!(append.kind, Kind::Append { blocks: 0, sealed: expected });
    }
}

#[tokio::test]
async fn an_awaited_copy_keeps_its_destination_until_it_ends() {
    for kind in [SourceKind::Block, SourceKind::Append, SourceKind::Page(SequenceNumber::default())]
    {
        let store = Store::with_container("photos").await;
        let bytes = content(40 * KIB);
        let source = CopySource::Awaited(elsewhere(kind, bytes.len() as u64));
        copied(&store, copy(source, "copy")).await.expect("a pending copy");
        assert_eq!(refusal(store.put("copy", b"mine").await), {
            let same_kind = kind == SourceKind::Block;
            Some(if same_kind { BlobRefusal::CopyPending } else { BlobRefusal::WrongKind })
        });
        assert_eq!(refusal(store.delete("copy").await), Some(BlobRefusal::CopyPending));
        store.put("other", b"bytes").await.expect("put");
        let second = copied(&store, copy(here("copy"), "other")).await.err();
        assert_eq!(second, Some(CopyRefusal::Source(BlobRefusal::CopyPending)));

        let path = blob("copy");
        assert!(store.domain.note_copy_progress(&path, ID, 7).await.expect("noted"));
        assert!(!store.domain.note_copy_progress(&path, "another", 7).await.expect("asked"));
        let pending = current(&store, "copy").await;
        let state = pending.copy.expect("a copy");
        assert_eq!((state.status, state.bytes_copied), (CopyStatus::Pending, 7));

        let end = CopyEnd::Fetched(receive(&store, &bytes).await);
        store.domain.end_copy(&path, ID, end).await.expect("ended");
        let done = current(&store, "copy").await;
        assert_eq!(done.copy.map(|copy| copy.status), Some(CopyStatus::Success));
        assert_ne!(done.etag, pending.etag, "3.8 the ETag changes at the end");
        assert_eq!(store.get("copy", None).await.expect("its bytes"), bytes);
        let again = CopyEnd::Failed(CopyFailure::TimedOut);
        let ended = refusal(store.domain.end_copy(&path, ID, again).await);
        assert_eq!(ended, Some(BlobRefusal::NoCopyPending));
        store.delete("copy").await.expect("deleted");
    }
}

#[tokio::test]
async fn an_aborted_copy_leaves_an_empty_blob_and_frees_what_came() {
    let store = Store::with_container("photos").await;
    let source = CopySource::Awaited(elsewhere(SourceKind::Block, 9));
    copied(&store, copy(source, "copy")).await.expect("a pending copy");
    let abort = |copy_id: &str| {
        let (path, copy_id) = (blob("copy"), copy_id.to_owned());
        store.domain.abort_copy(AbortCopy { path, copy_id, lease_id: None })
    };
    assert_eq!(refusal(abort("another").await), Some(BlobRefusal::CopyIdMismatch));
    assert_eq!(refusal(abort(ID).await), None);
    assert_eq!(refusal(abort(ID).await), Some(BlobRefusal::NoCopyPending));
    let end = CopyEnd::Fetched(receive(&store, &content(200 * KIB)).await);
    let ended = refusal(store.domain.end_copy(&blob("copy"), ID, end).await);
    assert_eq!(ended, Some(BlobRefusal::NoCopyPending));
    assert_eq!(store.bytes_in_extents(), 0);
    let aborted = current(&store, "copy").await;
    assert_eq!(
        (aborted.length, aborted.copy.map(|copy| copy.status)),
        (0, Some(CopyStatus::Aborted))
    );
}

#[tokio::test]
async fn a_copy_that_a_restart_interrupts_has_failed() {
    let engine = Arc::new(MemoryEngine::default());
    let store = Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Features::default()).await;
    store.create("photos").await.expect("a new container");
    for name in ["one", "two", "gone"] {
        let source = CopySource::Awaited(elsewhere(SourceKind::Block, 9));
        copied(&store, copy(source, name)).await.expect("a pending copy");
    }
    let done = CopyEnd::Fetched(receive(&store, b"nine byte").await);
    store.domain.end_copy(&blob("gone"), ID, done).await.expect("ended");
    store.domain.keep_time().await.expect("recorded");
    drop(store);

    let store = Store::on(engine, Features::default()).await;
    store.domain.fail_interrupted_copies().await.expect("failed");
    for name in ["one", "two"] {
        let copy = current(&store, name).await.copy.expect("a copy");
        assert_eq!(copy.status, CopyStatus::Failed, "{name}");
        assert_eq!(copy.failure, Some(CopyFailure::Interrupted), "{name}");
        store.put(name, b"mine").await.expect("it can be written again");
    }
    let ended = current(&store, "gone").await.copy.map(|copy| copy.status);
    assert_eq!(ended, Some(CopyStatus::Success));
}

/// Nine bytes on another host, of which three arrive at once.
#[derive(Clone, Copy)]
enum NineBytes {
    Whole,
    Stuck,
    Refused,
}

struct NineBytesComing {
    source: NineBytes,
    given: usize,
}

#[async_trait]
impl RemoteSource for NineBytes {
    async fn open(&self) -> Result<RemoteBytes, CopyFailure> {
        let bytes = Box::new(NineBytesComing { source: *self, given: 0 });
        Ok(RemoteBytes { bytes, length: Some(9) })
    }
}

#[async_trait]
impl ByteSource for NineBytesComing {
    type Refusal = CopyFailure;

    async fn next(&mut self) -> Result<Option<Bytes>, CopyFailure> {
        self.given += 3;
        match (self.source, self.given) {
            (_, 3) => Ok(Some(Bytes::from_static(b"nin"))),
            (NineBytes::Stuck, _) => std::future::pending().await,
            (NineBytes::Refused, _) => Err(CopyFailure::NotStored),
            (NineBytes::Whole, 6) => Ok(Some(Bytes::from_static(b"e b"))),
            (NineBytes::Whole, 9) => Ok(Some(Bytes::from_static(b"yte"))),
            (NineBytes::Whole, _) => Ok(None),
        }
    }
}

/// A copy whose bytes are fetched.
async fn fetched(engine: Arc<MemoryEngine>, source: NineBytes) -> Arc<Domain> {
    let store = Store::on(engine, Features::default()).await;
    store.create("photos").await.expect("a new container");
    let awaited = CopySource::Awaited(elsewhere(SourceKind::Block, 9));
    copied(&store, copy(awaited, "copy")).await.expect("a pending copy");
    let domain = Arc::new(store.domain);
    domain.fetch_copy(CopyDestination::Blob(blob("copy")), ID.to_owned(), source);
    domain
}

#[tokio::test]
async fn a_copy_under_way_is_seen_and_ends_in_order_when_it_is_told_to() {
    let engine = Arc::new(MemoryEngine::default());
    let domain = fetched(Arc::clone(&engine), NineBytes::Stuck).await;
    let progress = Some(Progress { bytes_done: 3, bytes_total: Some(9) });
    while domain.workers().list()[0].progress != progress {
        tokio::task::yield_now().await;
    }
    let workers = domain.workers().list();
    let seen: Vec<_> =
        workers.iter().map(|it| (it.name, it.subject.as_deref(), it.state)).collect();
    assert_eq!(seen, [("copy", Some(ID), WorkerState::Working)]);
    domain.workers().stop();
    assert_eq!(domain.workers().list()[0].state, WorkerState::Stopping);
    let ended = tokio::time::timeout(Duration::from_secs(30), domain.workers().all_ended());
    ended.await.expect("nobody goes on with it");
    assert_eq!(domain.workers().list(), []);
    let Ok(_) = Arc::try_unwrap(domain) else { panic!("the copy has let go of the store") };

    let store = Store::on(engine, Features::default()).await;
    let state = current(&store, "copy").await.copy.expect("a copy");
    assert_eq!(state.status, CopyStatus::Pending, "what it becomes is for the next start");
    store.domain.fail_interrupted_copies().await.expect("failed");
    let state = current(&store, "copy").await.copy.expect("a copy");
    assert_eq!(state.failure, Some(CopyFailure::Interrupted));
}

#[tokio::test]
async fn a_fetched_copy_ends_with_its_bytes_or_the_reason_why_not() {
    for (source, status, failure, length) in [
        (NineBytes::Whole, CopyStatus::Success, None, 9),
        (NineBytes::Refused, CopyStatus::Failed, Some(CopyFailure::NotStored), 0),
    ] {
        let engine = Arc::new(MemoryEngine::default());
        let domain = fetched(Arc::clone(&engine), source).await;
        domain.workers().all_ended().await;
        let errors = u64::from(failure.is_some());
        let totals = WorkerTotals { at_work: 0, rounds: 1 - errors, errors };
        assert_eq!(domain.workers().totals()["copy"], totals);
        let shown: Vec<_> = domain.workers().list().into_iter().map(|it| it.last_error).collect();
        let texts: Vec<_> = shown.iter().flatten().map(|error| error.text.as_str()).collect();
        assert_eq!(
            texts,
            failure.as_ref().map(|why| format!("{why:?}")).as_slice(),
            "it stays to be seen"
        );
        let store = Store::on(engine, Features::default()).await;
        let copied = current(&store, "copy").await;
        let state = copied.copy.expect("a copy");
        assert_eq!((state.status, state.failure, copied.length), (status, failure, length));
    }
}
