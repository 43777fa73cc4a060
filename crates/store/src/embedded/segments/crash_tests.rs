//! Crashes and faults of a simulated disk: what is written but not synced is lost block by block,
//! in any combination; names that were not synced go back in order. After every crash, whatever was
//! acknowledged and not freed must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::file::{SegmentFile, SegmentFolder};
use super::{BLOCK_BYTES, Durability, SEGMENT_BYTES_MIN, SegmentExtents, SegmentOptions};
use crate::contract::extents::{content, read_all, write};
use crate::contract::{Random, seed};
use crate::extents::{Extent, Extents};

const BLOCK: usize = BLOCK_BYTES as usize;
pub(super) const SEGMENT_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Default)]
pub(super) struct Disk(Arc<DiskState>);

#[derive(Default)]
pub(super) struct DiskState {
    names: Mutex<Names>,
    operations: AtomicU64,
    bytes_written: AtomicU64,
    /// The operation that fails, with the error to give; 0 for none.
    fails_at: AtomicU64,
    /// After that failure nothing works any more: the power is gone.
    power_fails: bool,
    errno: i32,
}

struct Names {
    now: BTreeMap<u64, Arc<File>>,
    /// The names at the last sync of the folder, and after each change since.
    history: Vec<BTreeMap<u64, Arc<File>>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { now: BTreeMap::new(), history: vec![BTreeMap::new()] }
    }
}

struct File {
    disk: Disk,
    content: Mutex<Content>,
}

#[derive(Clone, Default)]
struct Content {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Blocks written since the last sync.
    unsynced: BTreeSet<usize>,
}

impl Disk {
    pub(super) fn failing(fails_at: u64, power_fails: bool, errno: i32) -> Self {
        Self(Arc::new(DiskState {
            fails_at: fails_at.into(),
            power_fails,
            errno,
            ..DiskState::default()
        }))
    }

    fn operation(&self) -> io::Result<()> {
        let number = self.0.operations.fetch_add(1, Ordering::SeqCst) + 1;
        let fails_at = self.0.fails_at.load(Ordering::SeqCst);
        let fails = if self.0.power_fails { number >= fails_at } else { number == fails_at };
        if fails_at != 0 && fails {
            return Err(io::Error::from_raw_os_error(self.0.errno));
        }
        Ok(())
    }

    fn operations(&self) -> u64 {
        self.0.operations.load(Ordering::SeqCst)
    }

    fn change_names(&self, change: impl FnOnce(&mut BTreeMap<u64, Arc<File>>)) {
        let mut names = self.0.names.lock();
        change(&mut names.now);
        let now = names.now.clone();
        names.history.push(now);
    }

    fn file(&self, number: u64) -> io::Result<Arc<File>> {
        let names = self.0.names.lock();
        names.now.get(&number).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What a reader of the disk finds after the power came back.
    fn after_crash(&self, random: &mut Random) -> Self {
        let names = self.0.names.lock();
        let survived = random.within(0..names.history.len());
        let found = names.history[survived].clone();
        let after = Self::default();
        let survivors = found.into_iter().map(|(number, file)| {
            let content = file.content.lock().after_crash(random);
            (number, Arc::new(File { disk: after.clone(), content: Mutex::new(content) }))
        });
        let survivors: BTreeMap<_, _> = survivors.collect();
        *after.0.names.lock() = Names { now: survivors.clone(), history: vec![survivors] };
        after
    }
}

impl Content {
    fn after_crash(&self, random: &mut Random) -> Self {
        let mut found = self.synced.clone();
        if random.one_in(2) {
            found.resize(self.now.len(), 0);
        }
        let loss = random.within(0..4);
        for block in &self.unsynced {
            let start = block * BLOCK;
            if start + BLOCK <= found.len() && random.within(0..4) >= loss {
                // A block may reach the disk in part.
                let part = if random.one_in(8) { random.within(0..8) * 512 } else { BLOCK };
                found[start..start + part].copy_from_slice(&self.now[start..start + part]);
            }
        }
        Self { now: found.clone(), synced: found, unsynced: BTreeSet::new() }
    }
}

impl SegmentFolder for Disk {
    fn list(&self) -> io::Result<Vec<(u64, u64)>> {
        let names = self.0.names.lock();
        Ok(names
            .now
            .iter()
            .map(|(number, file)| (*number, file.content.lock().now.len() as u64))
            .collect())
    }

    fn create(&self, number: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        self.operation()?;
        let content = Content { now: vec![0; bytes as usize], ..Content::default() };
        let file = Arc::new(File { disk: self.clone(), content: Mutex::new(content) });
        self.change_names(|names| drop(names.insert(number, Arc::clone(&file))));
        Ok(file)
    }

    fn recycle(&self, from: u64, to: u64, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        self.operation()?;
        let file = self.file(from)?;
        file.content.lock().now.resize(bytes as usize, 0);
        self.change_names(|names| {
            names.remove(&from);
            names.insert(to, Arc::clone(&file));
        });
        Ok(file)
    }

    fn open(&self, number: u64) -> io::Result<Arc<dyn SegmentFile>> {
        Ok(self.file(number)?)
    }

    fn delete(&self, number: u64) -> io::Result<()> {
        self.operation()?;
        self.change_names(|names| drop(names.remove(&number)));
        Ok(())
    }

    fn truncate(&self, number: u64) -> io::Result<()> {
        self.operation()?;
        self.file(number)?.content.lock().now.clear();
        Ok(())
    }

    fn available(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn sync(&self) -> io::Result<()> {
        self.operation()?;
        let mut names = self.0.names.lock();
        names.history = vec![names.now.clone()];
        Ok(())
    }
}

impl SegmentFile for File {
    fn write_at(&self, slices: &[&[u8]], offset: u64) -> io::Result<()> {
        let allowed = self.disk.operation();
        let mut content = self.content.lock();
        let mut offset = offset as usize;
        for slice in slices {
            // A write that fails may have done a part of its work.
            let done = if allowed.is_ok() { slice.len() } else { slice.len() / 2 };
            content.now[offset..offset + done].copy_from_slice(&slice[..done]);
            content.unsynced.extend(offset / BLOCK..(offset + done).div_ceil(BLOCK));
            self.disk.0.bytes_written.fetch_add(done as u64, Ordering::SeqCst);
            offset += slice.len();
        }
        allowed
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.operation()?;
        let mut content = self.content.lock();
        let Content { synced, now, unsynced } = &mut *content;
        synced.resize(now.len(), 0);
        for block in std::mem::take(unsynced) {
            let bytes = block * BLOCK..(block + 1) * BLOCK;
            synced[bytes.clone()].copy_from_slice(&now[bytes]);
        }
        Ok(())
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let rest = content.now.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(&rest[..read]);
        Ok(read)
    }

    fn read_cached_at(&self, _buffer: &mut Vec<u8>, _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read_direct_at(&self, _room: &mut [u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_cold(&self, _offset: u64, _bytes: u64) -> bool {
        false
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Holes are durable at once, the worst that can happen to somebody who still needs the bytes.
    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.disk.operation()?;
        let mut content = self.content.lock();
        let hole = offset as usize..(offset + bytes) as usize;
        content.now[hole.clone()].fill(0);
        if let Some(synced) = content.synced.get_mut(hole) {
            synced.fill(0);
        }
        Ok(())
    }
}

fn options(durability: Durability) -> SegmentOptions {
    SegmentOptions {
        durability,
        segment_bytes: SEGMENT_BYTES,
        empty_segments_kept: 1,
        slack_bytes: 0,
        ..SegmentOptions::default()
    }
}

pub(super) fn open(disk: &Disk, durability: Durability) -> SegmentExtents {
    SegmentExtents::on_disk(Box::new(disk.clone()), options(durability)).unwrap()
}

struct Stream {
    bytes: Bytes,
    extents: Vec<Extent>,
}

/// Streams of many lengths, some at once, some given up; now and then a row is deleted and its
/// extents freed. Ends early when the disk fails. Returns what a row still names.
async fn workload(extents: &SegmentExtents, random: &mut Random) -> Vec<Stream> {
    let mut named: Vec<Stream> = Vec::new();
    for round in 0..10 {
        let lengths: Vec<usize> = (0..4)
            .map(|_| match random.within(0..8) {
                0 => random.within(1..2_500_000),
                1 => 1024 * 1024,
                2 => random.within(1..600_000),
                _ => random.within(1..20_000),
            })
            .collect();
        let streams = lengths.into_iter().enumerate().map(|(index, length)| async move {
            let bytes = content(round * 100 + index as u64 + 1, length);
            let extents = write(extents, bytes.clone()).await.ok()?;
            Some(Stream { bytes, extents })
        });
        let written = futures_util::future::join_all(streams).await;
        let failed = written.iter().any(Option::is_none);
        named.extend(written.into_iter().flatten());
        if failed {
            return named;
        }
        let mut given_up = extents.writer();
        if given_up.append(content(round, 1_100_000)).await.is_err() {
            return named;
        }
        drop(given_up);
        for _ in 0..3 {
            let deleted = named.swap_remove(random.within(0..named.len()));
            for extent in deleted.extents {
                extents.free(extent.id, extent.length);
            }
        }
    }
    named
}

/// Checks that everything named is there, before and after garbage collection and while new extents
/// are written.
async fn check(disk: &Disk, named: &[Stream]) -> Result<(), String> {
    let extents = open(disk, Durability::Fsync);
    let read_named = || async {
        for stream in named {
            let read = read_all(&extents, &stream.extents).await.map_err(|it| format!("{it:?}"))?;
            if read != stream.bytes {
                return Err(format!("wrong bytes in {:?}", stream.extents));
            }
        }
        Ok(())
    };
    read_named().await?;
    for segment in extents.inherited_segments() {
        let all = named.iter().flat_map(|stream| &stream.extents);
        let mut live: Vec<_> =
            all.filter(|it| it.id.segment == segment).map(|it| (it.id, it.length)).collect();
        live.sort_unstable();
        extents.keep_only(segment, &live);
    }
    for seed in 0..4 {
        let new = write(&extents, content(seed, 300_000)).await.map_err(|it| format!("{it:?}"))?;
        let reused = named.iter().flat_map(|it| &it.extents).any(|it| it.id == new[0].id);
        if reused {
            return Err(format!("{:?} was given twice", new[0].id));
        }
    }
    read_named().await
}

async fn crash_at(operation: u64, seed: u64, durability: Durability) -> (bool, Result<(), String>) {
    let mut random = Random::new(seed);
    let disk = Disk::failing(operation, true, libc::EIO);
    let extents = open(&disk, durability);
    let named = workload(&extents, &mut random).await;
    let reached = disk.operations() >= operation;
    let after = disk.after_crash(&mut random);
    drop(extents);
    (reached, check(&after, &named).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_a_crash_at_any_operation() {
    let first = seed(1);
    for seed in [first, first + 1] {
        for operation in 1.. {
            let (reached, kept) = crash_at(operation, seed, Durability::Fsync).await;
            if let Err(lost) = kept {
                panic!("crash at operation {operation}, seed {seed}: {lost}");
            }
            if !reached {
                assert!(operation > 50, "the workload does {operation} operations only");
                break;
            }
        }
    }
}

/// Shows that the suite detects losses: without syncs there must be some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_syncs_a_crash_loses_what_was_acknowledged() {
    let mut losses = 0;
    for operation in [20, 30, 40] {
        let (_, kept) = crash_at(operation, 3, Durability::Relaxed).await;
        losses += usize::from(kept.is_err());
    }
    assert!(losses > 0);
}

/// After long ones they would be half of what the disk writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zeros_are_written_behind_short_streams_and_not_behind_long_ones() {
    let disk = Disk::default();
    let options =
        SegmentOptions { segment_bytes: 16 * SEGMENT_BYTES, ..options(Durability::Fsync) };
    let extents = SegmentExtents::on_disk(Box::new(disk.clone()), options).unwrap();
    let written = || disk.0.bytes_written.swap(0, Ordering::SeqCst);
    for length in [512 * 1024, 1024 * 1024, 1024 * 1024] {
        drop(write(&extents, content(1, length)).await.unwrap());
        assert_eq!(written(), length as u64);
    }
    drop(write(&extents, content(2, BLOCK)).await.unwrap());
    assert_eq!(written(), BLOCK_BYTES + 2 * 1024 * 1024);
    drop(write(&extents, content(3, BLOCK)).await.unwrap());
    assert_eq!(written(), BLOCK_BYTES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_or_sync_poisons_writing_and_not_reading() {
    // Create, sync the folder, write, write zeros, sync: then the write and the sync of the next.
    for operation in [6, 7] {
        let disk = Disk::failing(operation, false, libc::EIO);
        let extents = open(&disk, Durability::Fsync);
        let bytes = content(1, 5000);
        let before = write(&extents, bytes.clone()).await.unwrap();
        assert!(extents.poisoned().is_none());
        write(&extents, bytes.clone()).await.unwrap_err();
        assert!(extents.poisoned().is_some());
        let later = write(&extents, bytes.clone()).await.unwrap_err();
        assert!(later.to_string().contains("no more extents are written"), "{later}");
        assert!(read_all(&extents, &before).await.unwrap() == bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_of_a_long_stream_poisons_too() {
    let disk = Disk::failing(3, false, libc::EIO);
    // Both chunks fit in one segment. Otherwise the third operation, beside the first write, could
    // be that of making another segment, whose failure poisons nothing.
    let options = SegmentOptions { segment_bytes: 4 * SEGMENT_BYTES, ..options(Durability::Fsync) };
    let extents = SegmentExtents::on_disk(Box::new(disk.clone()), options).unwrap();
    write(&extents, content(1, 1_500_000)).await.unwrap_err();
    assert!(extents.poisoned().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_one_stream_and_poisons_nothing() {
    // No space to create the segment, and no space for the write.
    for (operation, length) in [(1, 5000), (1, 5_000_000), (3, 5000), (3, 5_000_000)] {
        let disk = Disk::failing(operation, false, libc::ENOSPC);
        let extents = open(&disk, Durability::Fsync);
        let fault = write(&extents, content(1, length)).await.unwrap_err();
        assert!(format!("{fault:?}").contains("No space left"), "{fault:?}");
        assert!(extents.poisoned().is_none());
        let bytes = content(2, length);
        let written = write(&extents, bytes.clone()).await.unwrap();
        assert!(read_all(&extents, &written).await.unwrap() == bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_segment_is_used_again_in_part_where_there_is_no_room_for_all_of_it() {
    let disk = Disk::failing(0, false, libc::ENOSPC);
    let long =
        SegmentOptions { segment_bytes: 4 * SEGMENT_BYTES_MIN, ..options(Durability::Fsync) };
    let open = || SegmentExtents::on_disk(Box::new(disk.clone()), long.clone()).unwrap();
    drop(write(&open(), content(1, 5000)).await.unwrap());
    let extents = open();
    for segment in extents.inherited_segments() {
        extents.keep_only(segment, &[]);
    }
    disk.0.fails_at.store(disk.operations() + 1, Ordering::SeqCst);
    let bytes = content(2, 300_000);
    let written = write(&extents, bytes.clone()).await.unwrap();
    assert!(read_all(&extents, &written).await.unwrap() == bytes);
    let lengths: Vec<u64> = disk.list().unwrap().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(lengths, [SEGMENT_BYTES_MIN]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_synced_poisons() {
    let disk = Disk::failing(2, false, libc::EIO);
    let extents = open(&disk, Durability::Fsync);
    write(&extents, content(1, 5000)).await.unwrap_err();
    assert!(extents.poisoned().is_some());
}
