//! The contract on a real file system, and what only files can show.

use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_store::contract::extents::{content, read_all, write, write_one};
use holdfast_store::embedded::{DataFolder, Durability, SegmentExtents, SegmentOptions};
use holdfast_store::extents::PIECE_BYTES;
use holdfast_store::{Extent, ExtentId, Extents};
use tempfile::TempDir;

const MIB: u64 = 1024 * 1024;
const BLOCK_BYTES: u64 = 4096;

struct Store {
    extents: SegmentExtents,
    options: SegmentOptions,
    folder: TempDir,
}

impl Deref for Store {
    type Target = SegmentExtents;

    fn deref(&self) -> &SegmentExtents {
        &self.extents
    }
}

fn small_segments() -> SegmentOptions {
    SegmentOptions {
        segment_bytes: 4 * MIB,
        empty_segments_kept: 2,
        slack_bytes: 0,
        ..SegmentOptions::default()
    }
}

fn store(options: SegmentOptions) -> Store {
    let folder = tempfile::tempdir().unwrap();
    let extents = open(&folder, &options);
    Store { extents, options, folder }
}

fn open(folder: &TempDir, options: &SegmentOptions) -> SegmentExtents {
    let folder = DataFolder::open(folder.path().join("data")).unwrap();
    SegmentExtents::open(&folder, options).unwrap()
}

impl Store {
    fn reopen(self) -> Self {
        let Self { extents, options, folder } = self;
        drop(extents);
        let extents = open(&folder, &options);
        Self { extents, options, folder }
    }

    fn path_of(&self, segment: u64) -> PathBuf {
        self.folder.path().join(format!("data/segments/{segment:08}.seg"))
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("data/segments")).unwrap().count()
    }
}

fn bytes_on_disk(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

/// Reclaiming happens on a thread of its own.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen within 10 s");
}

mod with_small_segments {
    use super::*;
    holdfast_store::extents_contract!(store(small_segments()));
}

mod with_ordinary_segments {
    use super::*;
    holdfast_store::extents_contract!(store(SegmentOptions::default()));
}

mod without_syncs {
    use super::*;
    holdfast_store::extents_contract!(store(SegmentOptions {
        durability: Durability::Relaxed,
        ..small_segments()
    }));
}

#[tokio::test]
async fn relaxed_durability_never_syncs_and_the_other_always_does() {
    for (durability, syncs) in [(Durability::Fsync, 2), (Durability::Relaxed, 0)] {
        let store = store(SegmentOptions { durability, ..small_segments() });
        write(&*store, content(1, 100)).await.unwrap();
        write(&*store, content(1, 2 * MIB as usize)).await.unwrap();
        assert_eq!(store.statistics().syncs, syncs, "{durability:?}");
    }
}

#[tokio::test]
async fn short_streams_lie_side_by_side() {
    let store = store(small_segments());
    let mut expected = 0;
    for size in [1, 4096, 4097, 100_000] {
        let extent = write_one(&*store, content(2, size)).await;
        assert_eq!(extent.id, ExtentId { segment: 1, offset: expected });
        expected += (size as u64).next_multiple_of(BLOCK_BYTES);
    }
}

#[tokio::test]
async fn a_long_stream_that_is_alone_is_one_extent_and_gives_back_its_tail() {
    let store = store(SegmentOptions { segment_bytes: 16 * MIB, ..small_segments() });
    let long = write_one(&*store, content(3, 5 * MIB as usize + 1)).await;
    let next = write_one(&*store, content(4, 1)).await;
    assert_eq!(long.id, ExtentId { segment: 1, offset: 0 });
    assert_eq!(next.id, ExtentId { segment: 1, offset: 5 * MIB + BLOCK_BYTES });
}

#[tokio::test]
async fn freed_space_goes_back_to_the_file_system() {
    let store = store(small_segments());
    let mut written = Vec::new();
    for seed in 0..64 {
        written.push(write_one(&*store, content(seed, 64 * 1024)).await);
    }
    assert!(written.iter().all(|it| it.id.segment == 1), "one segment is just filled");
    let path = store.path_of(1);
    let before = bytes_on_disk(&path);
    for extent in written.iter().step_by(2) {
        store.free(extent.id, extent.length);
    }
    // The file system needs some more blocks to describe the holes.
    let expected = before - 2 * MIB + 16 * BLOCK_BYTES;
    eventually("punching", || bytes_on_disk(&path) <= expected).await;
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * MIB);
    for (seed, extent) in written.iter().enumerate().skip(1).step_by(2) {
        let read = read_all(&*store, std::slice::from_ref(extent)).await.unwrap();
        assert!(read == content(seed as u64, 64 * 1024));
    }
}

#[tokio::test]
async fn slack_keeps_freed_blocks_for_reuse() {
    let store = store(SegmentOptions { slack_bytes: 4 * MIB, ..small_segments() });
    let mut written = Vec::new();
    for seed in 0..64 {
        written.push(write_one(&*store, content(seed, 64 * 1024)).await);
    }
    let before = bytes_on_disk(&store.path_of(1));
    for extent in &written[1..] {
        store.free(extent.id, extent.length);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(bytes_on_disk(&store.path_of(1)), before);
}

#[tokio::test]
async fn writing_and_freeing_without_end_keeps_the_folder_bounded() {
    let store = store(small_segments());
    let kept = write_one(&*store, content(0, 10_000)).await;
    let mut highest = 0;
    for round in 0..400 {
        let written = write(&*store, content(round, 512 * 1024)).await.unwrap();
        for extent in written {
            highest = highest.max(extent.id.segment);
            store.free(extent.id, extent.length);
        }
        assert!(store.files() <= 8, "{} files in round {round}", store.files());
    }
    assert!(highest > 40, "files are used again under new numbers, up to {highest}");
    assert!(read_all(&*store, &[kept]).await.unwrap() == content(0, 10_000));
}

#[tokio::test]
async fn a_reopened_store_reads_what_was_written_and_appends_elsewhere() {
    let store = store(small_segments());
    let bytes = content(5, 6 * MIB as usize + 5);
    let written = write(&*store, bytes.clone()).await.unwrap();
    let last = written.last().unwrap().id.segment;
    let store = store.reopen();
    assert_eq!(store.inherited_segments().last(), Some(&last));
    assert!(read_all(&*store, &written).await.unwrap() == bytes);
    let new = write_one(&*store, content(6, 100)).await;
    assert_eq!(new.id, ExtentId { segment: last + 1, offset: 0 });
}

#[tokio::test]
async fn what_no_row_names_in_an_inherited_segment_is_freed() {
    let store = store(small_segments());
    let live = write_one(&*store, content(7, 100_000)).await;
    let dead = write_one(&*store, content(8, 3 * MIB as usize)).await;
    let before = bytes_on_disk(&store.path_of(1));
    let store = store.reopen();
    store.keep_only(1, &[(live.id, live.length)]);
    assert_eq!(store.inherited_segments(), [] as [u64; 0]);
    let path = store.path_of(1);
    let expected = before - dead.length;
    eventually("punching", || bytes_on_disk(&path) <= expected).await;
    assert!(read_all(&*store, &[live]).await.unwrap() == content(7, 100_000));
}

#[tokio::test]
async fn frees_before_keep_only_are_neither_counted_twice_nor_undone() {
    // So much slack that no holes are punched: meanwhile an empty segment would not be used again.
    let store = store(SegmentOptions { slack_bytes: 4 * MIB, ..small_segments() });
    let first = write_one(&*store, content(9, 100_000)).await;
    let second = write_one(&*store, content(10, 100_000)).await;
    let third = write_one(&*store, content(11, 100_000)).await;
    let store = store.reopen();
    let segment_bytes = 4 * MIB;
    let live = 3 * 100_000u64.next_multiple_of(BLOCK_BYTES);

    // The rows were gathered before the first was freed and after the second was.
    store.free(first.id, first.length);
    store.free(second.id, second.length);
    assert_eq!(store.statistics().bytes_freed, 200_000);
    store.keep_only(1, &[(first.id, first.length), (third.id, third.length)]);
    assert_eq!(store.statistics().bytes_freed, 200_000 + segment_bytes - live);
    store.free(second.id, second.length);
    assert_eq!(store.statistics().bytes_freed, 200_000 + segment_bytes - live);

    // Empty, the segment is written again under a new number.
    store.free(third.id, third.length);
    let new = write_one(&*store, content(12, 100)).await;
    assert_eq!(new.id.segment, 2);
    assert_eq!(store.files(), 1);
}

#[tokio::test]
async fn keep_only_waits_for_readers_of_what_it_frees() {
    let store = store(small_segments());
    let bytes = content(13, 100_000);
    let read = write_one(&*store, bytes.clone()).await;
    let store = store.reopen();
    // The reader found the row; then the row was deleted, and the rows gathered no longer name it.
    let all = store.pin_all();
    store.keep_only(1, &[]);
    let pin = store.pin(&[read.id]);
    drop(all);
    assert_eq!(store.statistics().bytes_freed, 0);
    assert!(read_all(&*store, std::slice::from_ref(&read)).await.unwrap() == bytes);
    store.free(read.id, read.length);
    drop(pin);
    assert_eq!(store.statistics().bytes_freed, 4 * MIB);
}

#[tokio::test]
async fn a_flipped_bit_is_a_fault_that_names_the_extent() {
    let store = store(small_segments());
    let _before = write_one(&*store, content(14, 5000)).await;
    let piece = PIECE_BYTES as usize;
    let bytes = content(15, 3 * piece + 100);
    let extent = write_one(&*store, bytes.clone()).await;
    let path = store.path_of(extent.id.segment);
    let last = bytes.len() - 1;
    for position in [0, 1, 4095, 4096, piece - 1, piece, 2 * piece + 7, 3 * piece, last] {
        flip_bit(&path, extent.id.offset + position as u64);
        let damaged = position as u64 / PIECE_BYTES;
        for touched in 0..4 {
            let start = touched * PIECE_BYTES;
            // A range without the damaged byte, in its piece and in the others.
            let range =
                if start == position as u64 { start + 1..start + 2 } else { start..start + 1 };
            let expected = bytes.slice(range.start as usize..range.end as usize);
            match store.read(&extent, range).await {
                Ok(read) => {
                    assert_ne!(touched, damaged, "byte {position} was flipped");
                    assert_eq!(read, expected);
                }
                Err(fault) => {
                    assert_eq!(touched, damaged);
                    let offset = extent.id.offset;
                    let name = format!("extent (segment 1, offset {offset})");
                    assert!(fault.to_string().contains(&name), "{fault}");
                }
            }
        }
        flip_bit(&path, extent.id.offset + position as u64);
    }
    assert!(read_all(&*store, &[extent]).await.unwrap() == bytes);
}

#[tokio::test]
async fn long_reads_are_the_same_and_verified_the_first_time_and_after() {
    let store = store(small_segments());
    let bytes = content(19, 3 * MIB as usize + 777);
    let extent = write_one(&*store, bytes.clone()).await;
    let whole = std::slice::from_ref(&extent);
    for time in ["from the disk", "into the page cache", "from the page cache"] {
        assert!(read_all(&*store, whole).await.unwrap() == bytes, "{time}");
    }

    let damaged = write_one(&*store, bytes.clone()).await;
    flip_bit(&store.path_of(damaged.id.segment), damaged.id.offset + 2 * MIB + 5);
    for time in ["from the disk", "into the page cache", "from the page cache"] {
        let fault = store.read(&damaged, 2 * MIB..damaged.length).await;
        assert!(fault.is_err(), "{time}");
        let before = store.read(&damaged, MIB..damaged.length).await.unwrap();
        assert_eq!(before, bytes.slice(MIB as usize..2 * MIB as usize), "{time}");
    }
}

fn flip_bit(path: &Path, offset: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    byte[0] ^= 0x10;
    file.write_all_at(&byte, offset).unwrap();
}

#[tokio::test]
async fn a_segment_that_is_cut_short_or_gone_is_a_fault_that_names_the_extent() {
    let store = store(small_segments());
    let extent = write_one(&*store, content(16, 200_000)).await;
    let file = std::fs::OpenOptions::new().write(true).open(store.path_of(1)).unwrap();
    file.set_len(100_000).unwrap();
    let store = store.reopen();
    let name = "extent (segment 1, offset 0)";
    let fault = store.read(&extent, 0..extent.length).await.unwrap_err();
    assert!(fault.to_string().contains(name), "{fault}");
    std::fs::remove_file(store.path_of(1)).unwrap();
    let store = store.reopen();
    let fault = store.read(&extent, 0..extent.length).await.unwrap_err();
    assert!(fault.to_string().contains(name), "{fault}");
}

#[tokio::test]
async fn a_descriptor_with_missing_checksums_is_a_fault() {
    let store = store(small_segments());
    let extent = write_one(&*store, content(17, 200_000)).await;
    let broken = Extent { checksums: extent.checksums[1..].into(), ..extent };
    assert!(store.read(&broken, 0..1).await.is_err());
}

#[tokio::test]
async fn a_closed_store_refuses_writers_that_are_still_around() {
    let store = store(small_segments());
    let mut writer = store.writer();
    writer.append(content(18, 100)).await.unwrap();
    let pin = store.pin_all();
    drop(store);
    assert!(writer.finish().await.is_err());
    drop(pin);
}
