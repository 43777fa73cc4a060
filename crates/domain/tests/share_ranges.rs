//! Ranges of files: the effects of writing, clearing and resizing, and what is listed.

mod support;

use holdfast_domain::content::Difference::{Cleared, Written};
use holdfast_domain::content::ReadRange;
use holdfast_domain::share::{
    FileRefusal, GetFile, ListRanges, NodeAddress, PastEnd, PutRange, RangeChange, ShareState,
    TimeChange,
};
use support::share::{AtOnce, Files, list_ranges, put_range, refusal, share};

const NOW: ShareState = ShareState::Current;
const TIB: u64 = 1 << 40;

#[tokio::test]
async fn files_are_sparse_and_told_in_pieces_of_512_bytes() {
    let files = Files::new().await;
    files.create_file("f", 4 * TIB).await.expect("created");
    files.write("f", 600, &[1; 10]).await.expect("written");
    files.write("f", TIB - 1, &[2; 2]).await.expect("written");
    files.write("f", 4 * TIB - 5, &[3; 5]).await.expect("written");
    let ranges = files.ranges(list_ranges("f", None)).await.expect("listed");
    let written = |range| (Written, range);
    assert_eq!(
        ranges,
        [written(512..1024), written(TIB - 512..TIB + 512), written(4 * TIB - 512..4 * TIB)]
    );
    let range = Some(ReadRange { first: TIB - 2, last: Some(TIB + 1) });
    assert_eq!(files.read_range("f", NOW, range).await, Ok(vec![0, 2, 2, 0]));
    let part = ListRanges {
        range: Some(ReadRange { first: 700, last: Some(TIB - 1) }),
        ..list_ranges("f", None)
    };
    let ranges = files.ranges(part).await.expect("listed");
    assert_eq!(ranges, [written(512..1024), written(TIB - 512..TIB)]);
    let rest = ListRanges { start_from: 1024, ..list_ranges("f", None) };
    assert_eq!(files.ranges(rest.clone()).await.expect("listed")[0], written(TIB - 512..TIB + 512));
    let past = ListRanges { range: Some(ReadRange { first: 4 * TIB, last: None }), ..rest };
    let refused = files.ranges(past).await.err();
    assert_eq!(refused, Some(FileRefusal::InvalidRange { length: 4 * TIB }));
}

#[tokio::test]
async fn clearing_frees_whole_pieces_and_zeroes_the_rest() {
    let files = Files::new().await;
    files.create_file("f", 3000).await.expect("created");
    files.write("f", 0, &[1; 3000]).await.expect("written");
    files.clear("f", 100..1700).await.expect("cleared");
    let mut expected = vec![1; 3000];
    expected[100..1700].fill(0);
    assert_eq!(files.read("f", NOW).await, Ok(expected));
    let ranges = files.ranges(list_ranges("f", None)).await.expect("listed");
    assert_eq!(ranges, [(Written, 0..512), (Written, 1536..3000)], "6.3 the rest is zeroed");
    files.clear("f", 0..3000).await.expect("cleared");
    assert_eq!(files.ranges(list_ranges("f", None)).await, Ok(Vec::new()));
    files.store.collect_garbage().await;
    assert_eq!(files.store.bytes_in_extents(), 0);
    files.clear("f", 10..20).await.expect("cleared");
    let ranges = files.ranges(list_ranges("f", None)).await.expect("listed");
    assert_eq!(ranges, [(Written, 0..512)], "zeros were written");
}

#[tokio::test]
async fn a_file_grows_only_for_whoever_asks_for_it() {
    let files = Files::new().await;
    let file = files.create_file("f", 10).await.expect("created");
    assert_eq!(files.write("f", 5, &[1; 6]).await.err(), Some(FileRefusal::RangePastEnd));
    assert_eq!(files.clear("f", 5..11).await.err(), Some(FileRefusal::RangePastEnd));
    let received = files.receive(&[9; 100]).await;
    let command = PutRange {
        address: NodeAddress::place(share(), file.place, file.node.id),
        past_end: PastEnd::Grows,
        by_handle: true,
        written: Some(TimeChange::Preserve),
        ..put_range("f", 2000, RangeChange::Write(received))
    };
    let written = refusal(files.store.domain.at_once(command).await).expect("written");
    assert_eq!(written.node.length(), 2100);
    let mut expected = vec![0; 2100];
    expected[2000..].fill(9);
    assert_eq!(files.read("f", NOW).await, Ok(expected));
    let received = files.receive(&[9; 2]).await;
    let command = PutRange {
        past_end: PastEnd::Grows,
        ..put_range("f", (4 << 40) - 1, RangeChange::Write(received))
    };
    let refused = refusal(files.store.domain.at_once(command).await).err();
    assert_eq!(refused, Some(FileRefusal::TooLong));
}

#[tokio::test]
async fn what_a_shorter_file_has_lost_does_not_come_back() {
    let files = Files::new().await;
    files.create_file("f", 2000).await.expect("created");
    files.write("f", 0, &[1; 2000]).await.expect("written");
    files.resize("f", 700).await.expect("shorter");
    files.resize("f", 2000).await.expect("longer");
    let mut expected = vec![0; 2000];
    expected[..700].fill(1);
    assert_eq!(files.read("f", NOW).await, Ok(expected));
    let ranges = files.ranges(list_ranges("f", None)).await.expect("listed");
    assert_eq!(ranges, [(Written, 0..1024)]);
    files.resize("f", 0).await.expect("empty");
    files.store.collect_garbage().await;
    assert_eq!(files.store.bytes_in_extents(), 0);
}

#[tokio::test]
async fn a_download_sees_one_state_to_its_end() {
    let files = Files::new().await;
    files.create_file("f", 200_000).await.expect("created");
    for offset in (0..200_000).step_by(10_000) {
        files.write("f", offset, &[1; 10_000]).await.expect("written");
    }
    let mut download = refusal(
        files.store.domain.at_once(GetFile { file: support::share::get("f"), range: None }).await,
    )
    .expect("read");
    files.write("f", 0, &[2; 100_000]).await.expect("written");
    files.delete("f").await.expect("deleted");
    files.store.collect_garbage().await;
    let mut read = Vec::new();
    while let Some(bytes) = download.reader.next().await.expect("still there") {
        read.extend_from_slice(&bytes);
    }
    assert_eq!(read, vec![1; 200_000]);
    drop(download);
    assert_eq!(files.store.bytes_in_extents(), 0);
}

/// As the tests of the Python SDK do (test_list_ranges_diff): nothing was there before.
#[tokio::test]
async fn ranges_written_and_cleared_since_a_snapshot_are_told_as_cleared() {
    let files = Files::new().await;
    files.create_file("f", 2048).await.expect("created");
    let first = files.snapshot().await;
    files.write("f", 0, &[1; 1536]).await.expect("written");
    let second = files.snapshot().await;
    files.clear("f", 512..1024).await.expect("cleared");
    let since_first = files.ranges(list_ranges("f", Some(first))).await;
    let cleared = (Cleared, 512..1024);
    let expected = vec![(Written, 0..512), cleared.clone(), (Written, 1024..1536)];
    assert_eq!(since_first, Ok(expected));
    assert_eq!(files.ranges(list_ranges("f", Some(second))).await, Ok(vec![cleared]));
    let written = vec![(Written, 0..512), (Written, 1024..1536)];
    assert_eq!(files.ranges(list_ranges("f", None)).await, Ok(written));
    files.clear("f", 0..2048).await.expect("cleared");
    let since_first = files.ranges(list_ranges("f", Some(first))).await;
    assert_eq!(since_first, Ok(vec![(Cleared, 0..2048)]));
    assert_eq!(files.ranges(list_ranges("f", None)).await, Ok(vec![]));
}

#[tokio::test]
async fn what_has_changed_since_a_snapshot() {
    let files = Files::new().await;
    files.create_file("f", 8192).await.expect("created");
    files.write("f", 0, &[1; 4096]).await.expect("written");
    let first = files.snapshot().await;
    files.write("f", 1000, &[2; 100]).await.expect("written");
    files.clear("f", 2048..3072).await.expect("cleared");
    let second = files.snapshot().await;
    files.write("f", 5000, &[3; 10]).await.expect("written");
    let changes = files.ranges(list_ranges("f", Some(first))).await.expect("compared");
    let (written, cleared) = ((Written, 512..1536), (Cleared, 2048..3072));
    assert_eq!(changes, [written.clone(), cleared.clone(), (Written, 4608..5120)]);
    let mut between = list_ranges("f", Some(first));
    between.file.state = second;
    assert_eq!(files.ranges(between).await, Ok(vec![written, cleared]));
    let mut backwards = list_ranges("f", Some(second));
    backwards.file.state = first;
    assert_eq!(files.ranges(backwards).await.err(), Some(FileRefusal::PreviousSnapshotNewer));
    files.delete_snapshot(first).await;
    let gone = files.ranges(list_ranges("f", Some(first))).await.err();
    assert_eq!(gone, Some(FileRefusal::PreviousSnapshotNotFound));
}

#[tokio::test]
async fn only_states_of_one_file_are_compared() {
    let files = Files::new().await;
    files.create_file("f", 512).await.expect("created");
    files.create_directory("d").await.expect("created");
    files.create_file("d/g", 512).await.expect("created");
    let state = files.snapshot().await;
    files.create_file("new", 512).await.expect("created");
    let command = list_ranges("new", Some(state));
    assert_eq!(files.ranges(command).await.err(), Some(FileRefusal::NotFound), "6.3 missing");
    files.rename("f", "h", false).await.expect("renamed");
    files.write("h", 0, &[1; 512]).await.expect("written");
    let command = list_ranges("h", Some(state));
    let renamed = files.ranges(command.clone()).await.err();
    assert_eq!(renamed, Some(FileRefusal::GenerationMismatch), "6.3 renamed");
    let command = ListRanges { follow_rename: true, ..command };
    assert_eq!(files.ranges(command).await, Ok(vec![(Written, 0..512)]), "6.3 support-rename");
    files.create_file("f", 512).await.expect("another");
    let replaced = files.ranges(list_ranges("f", Some(state))).await.err();
    assert_eq!(replaced, Some(FileRefusal::GenerationMismatch), "6.3 another file");
    files.rename("d", "e", false).await.expect("renamed");
    let command = ListRanges { follow_rename: true, ..list_ranges("e/g", Some(state)) };
    assert_eq!(
        files.ranges(command.clone()).await,
        Ok(Vec::new()),
        "a directory above was renamed"
    );
    files.create_file("e/g", 512).await.expect("created again");
    let replaced = files.ranges(command).await.err();
    assert_eq!(replaced, Some(FileRefusal::GenerationMismatch), "6.3 created again");
}
