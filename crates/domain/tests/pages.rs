//! Page blobs on the memory store: what writes leave behind, what it costs, and what snapshots see.

mod support;

use std::ops::Range;

use holdfast_domain::Failure;
use holdfast_domain::blob::{
    Blob, BlobRefusal, CopyIncremental, CopyRefusal, DeleteBlob, DeleteSnapshots, Encryption,
    GetBlob, GetPageRanges, NewBlob, PageChange, PageRange, PutPages, SetBlobProperties,
    SnapshotBlob, SourceHere, Which,
};
use holdfast_domain::condition::{Conditions, DateConditions, SequenceConditions, SequenceNumber};
use holdfast_domain::content::Difference::{self, Cleared, Written};
use holdfast_domain::content::ReadRange;
use holdfast_domain::metadata::Metadata;
use holdfast_domain::time::Timestamp;

use support::{Body, Store, blob, content, get, put};

const PAGE: u64 = 512;
const TIB: u64 = 1 << 40;

type Answer<T> = Result<T, Failure<BlobRefusal>>;

async fn create(store: &Store, name: &str, length: u64) {
    let new = NewBlob::Page { length, sequence_number: SequenceNumber::default() };
    store.domain.put_blob(put(name, new)).await.expect("created");
}

async fn change(store: &Store, name: &str, pages: Range<u64>, change: PageChange) -> Answer<Blob> {
    let range = PageRange::new(pages.start * PAGE, pages.end * PAGE - 1).expect("whole pages");
    let command = PutPages {
        path: blob(name),
        range,
        change,
        conditions: Conditions::default(),
        sequence: SequenceConditions::default(),
        lease_id: None,
        encryption: Encryption::Account,
    };
    store.domain.put_pages(command).await
}

async fn write(store: &Store, name: &str, pages: Range<u64>, bytes: Vec<u8>) -> Answer<Blob> {
    let mut body = Body::of(&bytes);
    let Ok(received) = store.domain.receive(&mut body).await else {
        panic!("a body in memory arrives");
    };
    change(store, name, pages, PageChange::Update(received)).await
}

async fn clear(store: &Store, name: &str, pages: Range<u64>) -> Answer<Blob> {
    change(store, name, pages, PageChange::Clear).await
}

async fn resize(store: &Store, name: &str, length: u64) -> Answer<Blob> {
    let command = SetBlobProperties {
        path: blob(name),
        headers: None,
        length: Some(length),
        sequence: None,
        conditions: Conditions::default(),
        lease_id: None,
    };
    store.domain.set_blob_properties(command).await
}

async fn snapshot(store: &Store, name: &str) -> Timestamp {
    let command = SnapshotBlob {
        path: blob(name),
        metadata: Metadata::default(),
        conditions: Conditions::default(),
        lease_id: None,
        encryption: Encryption::Account,
    };
    store.domain.snapshot_blob(command).await.expect("a snapshot").moment
}

async fn delete(store: &Store, name: &str) {
    let command = DeleteBlob {
        path: blob(name),
        which: Which::Current,
        snapshots: Some(DeleteSnapshots::Include),
        permanent: false,
        conditions: Conditions::default(),
        tier_conditions: DateConditions::default(),
        lease_id: None,
    };
    store.domain.delete_blob(command).await.expect("deleted");
    while store.domain.collect_garbage().await.expect("collected") {}
}

async fn read(store: &Store, name: &str, which: Which, pages: Range<u64>) -> Vec<u8> {
    let range = ReadRange { first: pages.start * PAGE, last: Some(pages.end * PAGE - 1) };
    let command = GetBlob { which, ..get(name) };
    let download = store.domain.get_blob(&command, Some(range)).await.expect("readable");
    let (mut reader, mut bytes) = (download.reader, Vec::new());
    while let Some(more) = reader.next().await.expect("memory reads") {
        bytes.extend_from_slice(&more);
    }
    bytes
}

/// The ranges in pages.
async fn ranges(
    store: &Store,
    name: &str,
    which: Which,
    previous: Option<Timestamp>,
) -> Answer<Vec<(Difference, Range<u64>)>> {
    let blob = GetBlob { which, ..get(name) };
    let command = GetPageRanges { blob, previous, range: None, start_from: 0 };
    let (mut ranges, mut found) = (store.domain.get_page_ranges(&command).await?, Vec::new());
    while let Some((difference, range)) = ranges.next().await? {
        found.push((difference, range.start / PAGE..range.end / PAGE));
    }
    Ok(found)
}

fn refusal<T>(answer: Answer<T>) -> Option<BlobRefusal> {
    match answer {
        Err(Failure::Refused(refusal)) => Some(refusal),
        Ok(_) | Err(_) => None,
    }
}

fn page(byte: u8) -> Vec<u8> {
    vec![byte; PAGE as usize]
}

#[tokio::test]
async fn eight_tebibytes_with_one_page_cost_one_page() {
    let store = Store::with_container("photos").await;
    create(&store, "disk", 8 * TIB).await;
    let rows = store.domain.engine().statistics().rows;
    let at = 5 * TIB / PAGE + 3;
    write(&store, "disk", at..at + 1, page(7)).await.expect("written");
    assert!(store.domain.engine().statistics().rows <= rows + 2, "a map and its entry");
    assert_eq!(store.bytes_in_extents(), 0, "a page fits its row");
    assert_eq!(
        read(&store, "disk", Which::Current, at - 1..at + 2).await,
        [page(0), page(7), page(0)].concat()
    );
    let found = ranges(&store, "disk", Which::Current, None).await.expect("ranges");
    assert_eq!(found, [(Written, at..at + 1)]);
    clear(&store, "disk", 0..8 * TIB / PAGE).await.expect("cleared");
    let found = ranges(&store, "disk", Which::Current, None).await.expect("ranges");
    assert_eq!(found, []);
}

#[tokio::test]
async fn a_write_is_refused_for_what_it_is_and_its_bytes_are_freed() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", 100 * PAGE).await;
    store.put("block", b"x").await.expect("written");
    let large = || content(64 * PAGE as usize);
    for (cell, name, pages, expected) in [
        ("3.3 missing blob", "none", 0..64, BlobRefusal::NotFound),
        ("3.3 wrong type", "block", 0..64, BlobRefusal::WrongKind),
        ("3.3 beyond the end", "pages", 37..101, BlobRefusal::InvalidPageRange),
        ("3.3 fewer bytes than pages", "pages", 0..65, BlobRefusal::PagesLengthMismatch),
        ("3.3 more bytes than pages", "pages", 0..63, BlobRefusal::PagesLengthMismatch),
    ] {
        let written = write(&store, name, pages, large()).await;
        assert_eq!(refusal(written), Some(expected), "{cell}");
        assert_eq!(store.bytes_in_extents(), 0, "{cell}");
    }
    for (cell, name, pages, expected) in [
        ("3.3 clear beyond the end", "pages", 0..101, BlobRefusal::InvalidPageRange),
        ("3.3 clear of a wrong type", "block", 0..1, BlobRefusal::WrongKind),
    ] {
        assert_eq!(refusal(clear(&store, name, pages).await), Some(expected), "{cell}");
    }
    let resized = resize(&store, "block", PAGE).await;
    assert_eq!(refusal(resized), Some(BlobRefusal::LengthNotChangeable), "3.6");
}

#[tokio::test]
async fn shrinking_gives_back_the_pages_above_and_growing_shows_zeros() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", 200 * PAGE).await;
    write(&store, "pages", 0..1, page(1)).await.expect("written");
    write(&store, "pages", 50..150, content(100 * PAGE as usize)).await.expect("written");
    assert_eq!(store.bytes_in_extents(), 100 * PAGE);
    resize(&store, "pages", 60 * PAGE).await.expect("shrunk");
    let found = ranges(&store, "pages", Which::Current, None).await.expect("ranges");
    assert_eq!(found, [(Written, 0..1), (Written, 50..60)]);
    resize(&store, "pages", 200 * PAGE).await.expect("grown");
    assert_eq!(read(&store, "pages", Which::Current, 60..61).await, page(0));
    resize(&store, "pages", 20 * PAGE).await.expect("shrunk");
    assert_eq!(store.bytes_in_extents(), 0, "nothing has the extent any more");
    delete(&store, "pages").await;
}

#[tokio::test]
async fn a_snapshot_keeps_its_pages_whatever_is_written_later() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", 300 * PAGE).await;
    let large = content(100 * PAGE as usize);
    write(&store, "pages", 100..200, large.clone()).await.expect("written");
    let first = snapshot(&store, "pages").await;
    assert_eq!(store.bytes_in_extents(), 100 * PAGE, "a snapshot shares the bytes");
    write(&store, "pages", 150..151, page(9)).await.expect("written");
    clear(&store, "pages", 190..300).await.expect("cleared");
    let second = snapshot(&store, "pages").await;
    clear(&store, "pages", 0..300).await.expect("cleared");
    write(&store, "pages", 0..2, [page(8), page(8)].concat()).await.expect("written");

    assert_eq!(read(&store, "pages", Which::Snapshot(first), 100..200).await, large);
    let expected = [&large[..50 * 512], &page(9), &large[51 * 512..90 * 512], &[0; 10 * 512]];
    assert_eq!(read(&store, "pages", Which::Snapshot(second), 100..200).await, expected.concat());
    let told = async |which, previous| ranges(&store, "pages", which, previous).await;
    let between = told(Which::Snapshot(second), Some(first)).await.expect("ranges");
    assert_eq!(between, [(Written, 150..151), (Cleared, 190..300)]);
    let since_first = told(Which::Current, Some(first)).await.expect("ranges");
    assert_eq!(since_first, [(Written, 0..2), (Cleared, 2..300)]);
    let since_second = told(Which::Current, Some(second)).await.expect("ranges");
    assert_eq!(since_second, [(Written, 0..2), (Cleared, 2..300)]);
    assert_eq!(told(Which::Current, None).await.expect("ranges"), [(Written, 0..2)]);

    delete(&store, "pages").await;
    assert_eq!(store.bytes_in_extents(), 0, "all space comes back");
}

/// As the tests of the Python SDK do (test_get_page_ranges_diff): nothing was there before.
#[tokio::test]
async fn pages_written_and_cleared_since_a_snapshot_are_told_as_cleared() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", 4 * PAGE).await;
    let first = snapshot(&store, "pages").await;
    write(&store, "pages", 0..3, content(3 * PAGE as usize)).await.expect("written");
    let second = snapshot(&store, "pages").await;
    clear(&store, "pages", 1..2).await.expect("cleared");
    let since_first = ranges(&store, "pages", Which::Current, Some(first)).await;
    let expected = [(Written, 0..1), (Cleared, 1..2), (Written, 2..3)];
    assert_eq!(since_first.expect("ranges"), expected);
    let since_second = ranges(&store, "pages", Which::Current, Some(second)).await;
    assert_eq!(since_second.expect("ranges"), [(Cleared, 1..2)]);
    clear(&store, "pages", 0..4).await.expect("cleared");
    let since_first = ranges(&store, "pages", Which::Current, Some(first)).await;
    assert_eq!(since_first.expect("ranges"), [(Cleared, 0..4)]);
    assert_eq!(ranges(&store, "pages", Which::Current, None).await.expect("ranges"), []);
    resize(&store, "pages", PAGE).await.expect("shrunk");
    resize(&store, "pages", 4 * PAGE).await.expect("grown");
    let since_first = ranges(&store, "pages", Which::Current, Some(first)).await;
    assert_eq!(since_first.expect("ranges"), [(Cleared, 0..1)], "the end is as if never there");
}

#[tokio::test]
async fn only_an_older_snapshot_of_the_same_blob_is_compared_with() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", PAGE).await;
    let first = snapshot(&store, "pages").await;
    let second = snapshot(&store, "pages").await;
    let missing = Timestamp::from_ticks(first.ticks() - 1);
    for (cell, which, previous, expected) in [
        ("3.3 newer", first, second, BlobRefusal::PreviousSnapshotNewer),
        ("3.3 missing", first, missing, BlobRefusal::PreviousSnapshotNotFound),
    ] {
        let told = ranges(&store, "pages", Which::Snapshot(which), Some(previous)).await;
        assert_eq!(refusal(told), Some(expected), "{cell}");
    }
    create(&store, "pages", PAGE).await;
    let told = ranges(&store, "pages", Which::Current, Some(first)).await;
    assert_eq!(refusal(told), Some(BlobRefusal::Overwritten), "3.3 re-created in between");
}

#[tokio::test]
async fn incremental_copies_share_the_pages_of_their_source() {
    let store = Store::with_container("photos").await;
    create(&store, "pages", 200 * PAGE).await;
    let large = content(100 * PAGE as usize);
    write(&store, "pages", 0..100, large.clone()).await.expect("written");
    let first = snapshot(&store, "pages").await;
    write(&store, "pages", 1..2, page(5)).await.expect("written");
    let second = snapshot(&store, "pages").await;
    let copy = async |which| {
        let source = SourceHere {
            path: blob("pages"),
            which,
            conditions: Conditions::default(),
            etag: None,
        };
        let command = CopyIncremental {
            path: blob("copy"),
            source,
            source_url: String::from("http://127.0.0.1/account1/photos/pages"),
            copy_id: String::from("1"),
            conditions: Conditions::default(),
            create_only: false,
        };
        match store.domain.copy_incremental(command).await {
            Ok(blob) => Ok(blob.copy.and_then(|copy| copy.incremental)),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(failure) => panic!("{failure:?}"),
        }
    };
    let destination =
        |copied: Option<holdfast_domain::copy::Incremental>| copied?.destination_snapshot;

    let not_a_snapshot = CopyRefusal::Destination(BlobRefusal::IncrementalSourceNotSnapshot);
    assert_eq!(copy(Which::Current).await, Err(not_a_snapshot));
    let copied = copy(Which::Snapshot(first)).await.expect("copied");
    let own_first = destination(copied).expect("a snapshot");
    let copied = copy(Which::Snapshot(second)).await.expect("copied");
    let own_second = destination(copied).expect("a snapshot");
    assert_eq!(store.bytes_in_extents(), 100 * PAGE, "no byte is copied");
    let earlier = CopyRefusal::Destination(BlobRefusal::IncrementalSnapshotEarlier);
    assert_eq!(copy(Which::Snapshot(first)).await, Err(earlier));

    delete(&store, "pages").await;
    assert_eq!(read(&store, "copy", Which::Snapshot(own_first), 0..100).await, large);
    assert_eq!(read(&store, "copy", Which::Snapshot(own_second), 1..2).await, page(5));
    let told = ranges(&store, "copy", Which::Snapshot(own_second), Some(own_first)).await;
    assert_eq!(told.expect("ranges"), [(Written, 1..2)]);
    assert_eq!(store.get("copy", None).await, Err(BlobRefusal::IncrementalCopyOnly));
    let written = write(&store, "copy", 0..1, page(1)).await;
    assert_eq!(refusal(written), Some(BlobRefusal::IncrementalCopyOnly));
    delete(&store, "copy").await;
    assert_eq!(store.bytes_in_extents(), 0, "all space comes back");
}
