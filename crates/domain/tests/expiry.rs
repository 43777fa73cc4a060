//! Blobs that expire, by a clock that the test moves: what readers see at each moment, and what the
//! background frees.

mod support;

use std::time::Duration;

use holdfast_domain::Failure;
use holdfast_domain::blob::{
    BlobRefusal, Expiry, NewBlob, PutBlob, SetBlobExpiry, SetLegalHold, Which,
};
use holdfast_domain::time::Clock as _;
use support::{Body, Store, blob, content, get, put};

const KIB: usize = 1024;
const HOUR: Duration = Duration::from_secs(60 * 60);
const SECOND: Duration = Duration::from_secs(1);

/// A blob long enough to be in an extent.
async fn put_expiring(store: &Store, name: &str, expiry: Option<Expiry>) {
    let Ok(received) = store.domain.receive(&mut Body::of(&content(64 * KIB))).await else {
        panic!("a body in memory arrives");
    };
    let command = PutBlob { expiry, ..put(name, NewBlob::Block(received)) };
    store.domain.put_blob(command).await.expect("put");
}

async fn set(store: &Store, name: &str, expiry: Expiry) -> Result<(), Failure<BlobRefusal>> {
    store.domain.set_blob_expiry(SetBlobExpiry { path: blob(name), expiry }).await.map(drop)
}

async fn is_there(store: &Store, name: &str) -> bool {
    match store.domain.get_blob_properties(&get(name)).await {
        Ok(_) => true,
        Err(Failure::Refused(BlobRefusal::NotFound)) => false,
        Err(failure) => panic!("{failure:?}"),
    }
}

#[tokio::test]
async fn a_blob_is_gone_for_readers_from_its_moment_on_and_not_before() {
    let store = Store::with_container("photos").await;
    put_expiring(&store, "new", Some(Expiry::AfterNow(HOUR))).await;
    put_expiring(&store, "set", None).await;
    set(&store, "set", Expiry::AfterNow(HOUR)).await.expect("set");
    put_expiring(&store, "stays", None).await;
    for name in ["new", "set"] {
        let read = store.domain.get_blob_properties(&get(name)).await.expect("there");
        assert_eq!(read.blob.expires, Some(store.clock.now().plus(HOUR)), "{name}");
    }
    store.clock.pass(HOUR - SECOND);
    assert_eq!(store.list("", None, 10).await.0, ["new", "set", "stays"]);
    store.clock.pass(SECOND);
    assert!(!is_there(&store, "new").await && !is_there(&store, "set").await);
    assert_eq!(store.list("", None, 10).await.0, ["stays"]);
}

#[tokio::test]
async fn the_background_gives_the_space_of_expired_blobs_back() {
    let store = Store::with_container("photos").await;
    let before = store.bytes_in_extents();
    put_expiring(&store, "new", Some(Expiry::AfterNow(HOUR))).await;
    put_expiring(&store, "set", None).await;
    set(&store, "set", Expiry::AfterCreation(2 * HOUR)).await.expect("set");
    let full = store.bytes_in_extents();
    store.do_what_is_due().await;
    assert_eq!(store.bytes_in_extents(), full, "nothing has expired");
    store.clock.pass(HOUR);
    store.do_what_is_due().await;
    assert_eq!(store.bytes_in_extents() - before, (full - before) / 2, "one of two has");
    store.clock.pass(HOUR);
    store.do_what_is_due().await;
    assert_eq!(store.bytes_in_extents(), before);
}

#[tokio::test]
async fn an_expiry_that_was_moved_or_taken_back_does_not_come_at_its_first_time() {
    let store = Store::with_container("photos").await;
    for name in ["moved", "taken back", "overwritten"] {
        put_expiring(&store, name, Some(Expiry::AfterNow(HOUR))).await;
    }
    set(&store, "moved", Expiry::AfterNow(3 * HOUR)).await.expect("moved");
    set(&store, "taken back", Expiry::Never).await.expect("taken back");
    put_expiring(&store, "overwritten", None).await;
    store.clock.pass(2 * HOUR);
    store.do_what_is_due().await;
    assert_eq!(store.list("", None, 10).await.0, ["moved", "overwritten", "taken back"]);
    store.clock.pass(HOUR);
    store.do_what_is_due().await;
    assert_eq!(store.list("", None, 10).await.0, ["overwritten", "taken back"]);
}

#[tokio::test]
async fn a_name_is_free_once_its_blob_has_expired() {
    let store = Store::with_container("photos").await;
    put_expiring(&store, "again", Some(Expiry::AfterNow(HOUR))).await;
    store.clock.pass(HOUR);
    store.put("again", b"new").await.expect("put");
    store.do_what_is_due().await;
    assert_eq!(store.get("again", None).await.expect("read"), b"new");
    assert_eq!(store.bytes_in_extents(), 0, "of the old one nothing is left");
}

#[tokio::test]
async fn what_is_held_outlives_its_expiry_until_the_hold_ends() {
    let store = Store::with_container("photos").await;
    put_expiring(&store, "held", Some(Expiry::AfterNow(HOUR))).await;
    let hold = |hold| SetLegalHold { path: blob("held"), which: Which::Current, hold };
    store.domain.set_legal_hold(hold(true)).await.expect("held");
    store.clock.pass(2 * HOUR);
    store.do_what_is_due().await;
    assert!(is_there(&store, "held").await);
    store.domain.set_legal_hold(hold(false)).await.expect("let go");
    assert!(!is_there(&store, "held").await, "its time has long come");
    store.clock.pass(HOUR);
    store.do_what_is_due().await;
    assert_eq!(store.bytes_in_extents(), 0);
}

#[tokio::test]
async fn a_time_that_is_not_to_come_is_refused_and_puts_nothing() {
    let store = Store::with_container("photos").await;
    for expiry in [Expiry::AfterNow(Duration::ZERO), Expiry::At(store.clock.now())] {
        let command = PutBlob { expiry: Some(expiry), ..put("new", NewBlob::Append) };
        let refused = store.domain.put_blob(command).await;
        assert!(matches!(refused, Err(Failure::Refused(BlobRefusal::DateNotInFuture))));
        assert!(!is_there(&store, "new").await);
    }
}
