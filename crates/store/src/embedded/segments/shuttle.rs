//! Readers, writers and deleters of the same extents, under the schedules of shuttle, on the disk
//! of the crash tests: holes are punched at once, so a reader that is not protected finds its bytes
//! gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_sync::{explore, future};
use parking_lot::Mutex;

use super::crash_tests::{Disk, SEGMENT_BYTES, open};
use super::file::SegmentFolder;
use super::{BLOCK_BYTES, Durability, SegmentExtents};
use crate::contract::extents::{content, read_all, write};
use crate::extents::{Extent, ExtentId, Extents};

/// What a row names: the extents, and which content they have.
type Row = Arc<Mutex<Option<(u64, Vec<Extent>)>>>;

const BYTES: usize = 5000;
/// A content that stays: an empty segment would be kept for reuse as it is.
const KEPT: u64 = 99;

fn not_zero(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte != 0).count()
}

fn bytes_in(disk: &Disk, segment: u64) -> usize {
    let mut all = Vec::with_capacity(SEGMENT_BYTES as usize);
    disk.open(segment).and_then(|file| file.read_at(&mut all, 0)).expect("it can be read");
    not_zero(&all)
}

/// Seals the segments of the extents so far, so that what is freed in them is given back.
fn seal(extents: &SegmentExtents) {
    let mut space = extents.shared.space.lock();
    space.seal_all();
    extents.shared.look_for_chores(&space);
}

async fn put(extents: &SegmentExtents, row: &Row, number: u64) {
    let written = write(extents, content(number, BYTES)).await.expect("a disk that works");
    let before = row.lock().replace((number, written));
    free(extents, before);
}

fn free(extents: &SegmentExtents, row: Option<(u64, Vec<Extent>)>) {
    for extent in row.into_iter().flat_map(|(_, extents)| extents) {
        extents.free(extent.id, extent.length);
    }
}

/// As a download does it: everything is pinned until it is known what is read.
async fn get(extents: &SegmentExtents, row: &Row) {
    let all = extents.pin_all();
    let Some((number, named)) = row.lock().clone() else { return };
    let ids: Vec<ExtentId> = named.iter().map(|extent| extent.id).collect();
    let _some = extents.pin(&ids);
    drop(all);
    future::yield_now().await;
    let read = read_all(extents, &named).await.expect("what is pinned is there");
    assert_eq!(read, content(number, BYTES));
}

#[test]
fn what_is_pinned_is_never_reclaimed_and_what_is_freed_always_is() {
    explore(|| {
        let disk = Disk::default();
        let extents = Arc::new(open(&disk, Durability::Fsync));
        let (kept, rows) = (Row::default(), <[Row; 2]>::default());
        future::block_on(async {
            put(&extents, &kept, KEPT).await;
            put(&extents, &rows[0], 1).await;
            put(&extents, &rows[1], 2).await;
            seal(&extents);
            let mut tasks = Vec::new();
            for (number, row) in rows.iter().cloned().enumerate() {
                let extents = Arc::clone(&extents);
                tasks.push(future::spawn(async move {
                    put(&extents, &row, 10 + number as u64).await;
                    let gone = row.lock().take();
                    free(&extents, gone);
                }));
            }
            for row in rows.iter().chain(&rows) {
                let (extents, row) = (Arc::clone(&extents), Arc::clone(row));
                tasks.push(future::spawn(async move { get(&extents, &row).await }));
            }
            let sealing = Arc::clone(&extents);
            tasks.push(future::spawn(async move { seal(&sealing) }));
            for task in tasks {
                task.await.expect("done");
            }
        });
        assert_eq!(extents.statistics().bytes_freed, 4 * BYTES as u64);
        // When the reclaiming thread has ended, its work is done.
        drop(extents);
        let segment = kept.lock().as_ref().map(|(_, named)| named[0].id.segment).expect("a row");
        assert_eq!(
            bytes_in(&disk, segment),
            not_zero(&content(KEPT, BYTES)),
            "freed and still there"
        );
    });
}

#[test]
fn no_block_is_given_to_two_and_whoever_gives_up_leaves_none_behind() {
    explore(|| {
        let disk = Disk::default();
        let extents = Arc::new(open(&disk, Durability::Fsync));
        future::block_on(async {
            let writers = [1, 2, 3].map(|number| {
                let extents = Arc::clone(&extents);
                future::spawn(async move {
                    let mut written = Vec::new();
                    for number in [number, number + 10] {
                        let named = write(&*extents, content(number, BYTES)).await;
                        written.push((number, named.expect("a disk that works")));
                    }
                    written
                })
            });
            let [first, others @ ..] = writers;
            first.abort();
            let (mut blocks, mut written) = (BTreeSet::new(), Vec::new());
            for writer in others {
                written.extend(writer.await.expect("done"));
            }
            for (number, named) in &written {
                for Extent { id, length, .. } in named {
                    let start = id.offset / BLOCK_BYTES;
                    for block in start..start + length.div_ceil(BLOCK_BYTES) {
                        assert!(blocks.insert((id.segment, block)), "{id:?} is given twice");
                    }
                }
                let read = read_all(&*extents, named).await.expect("it is there");
                assert_eq!(read, content(*number, BYTES));
            }
        });
    });
}

/// If the sync fails that would make bytes durable, no writer is told that they are.
#[test]
fn nothing_is_acknowledged_by_or_after_a_failed_sync() {
    explore(|| {
        // Creating a segment and its name are the first two; then come writes, zeros and syncs.
        let disk = Disk::failing(5, false, libc::EIO);
        let extents = Arc::new(open(&disk, Durability::Fsync));
        future::block_on(async {
            let writers = [1, 2, 3].map(|number| {
                let extents = Arc::clone(&extents);
                future::spawn(async move {
                    let written = write(&*extents, content(number, BYTES)).await;
                    let is_poisoned = extents.poisoned().is_some();
                    (number, written, is_poisoned)
                })
            });
            let mut acknowledged = Vec::new();
            for writer in writers {
                let (number, written, is_poisoned) = writer.await.expect("done");
                match written {
                    Ok(named) => acknowledged.push((number, named)),
                    Err(_) => assert!(is_poisoned, "refused for no reason"),
                }
            }
            assert!(acknowledged.is_empty(), "the first sync has failed");
            assert!(write(&*extents, content(4, BYTES)).await.is_err(), "the store is poisoned");
        });
    });
}
