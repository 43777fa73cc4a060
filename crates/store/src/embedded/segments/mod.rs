//! Extents in append-only segment files: `docs/design/0002-extents.md` argues the choices.
//!
//! [`block_allocation`] knows which blocks are used, [`Pins`] which are still read, [`file`] is the
//! operating system; [`writer`] gathers a stream into blocks, [`commit`] writes and syncs for many writers
//! at once, [`read`] verifies, and [`reclaim`] gives space back. This module ties them together.

mod bitmap;
mod block_allocation;
mod buffer;
mod commit;
#[cfg(test)]
mod crash_tests;
mod file;
mod huge_pages;
mod read;
mod recent_reads;
mod reclaim;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle;
mod work_queue;
mod writer;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_sync::Mutex;
use holdfast_sync::thread::{Builder, JoinHandle};

use self::block_allocation::{BlockAllocation, Run};
use self::buffer::{CHUNK_BYTES, Chunks};
use self::commit::Commit;
use self::file::{OsFolder, SegmentFile, SegmentFolder};
use self::recent_reads::RecentReads;
use self::work_queue::WorkQueue;
use self::writer::SegmentWriter;
use super::disk_space::is_no_room;
use super::{DataFolder, Durability};
use crate::engine::Fault;
use crate::extents::{Extent, ExtentId, ExtentStatistics, ExtentWriter, Extents, Pin};
use crate::pins::{FreedRange, Pins};

/// Extents begin at a multiple of this: what direct I/O and punching holes work in.
const BLOCK_BYTES: u64 = 4096;
/// On a nearly full disk segments are shorter, but not below this.
const SEGMENT_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// When less than this is left on the disk, freed space is given back at once: the row store needs
/// it for its reserve, without which it commits nothing that could use the space.
const LEFT_TO_OTHERS_BYTES: u64 = 64 * 1024 * 1024;
/// Threads that write chunks of long streams. They mostly wait for the disk; a few keep it busy.
const WRITE_THREADS: usize = 4;

#[derive(Clone, Debug)]
pub struct SegmentOptions {
    pub durability: Durability,
    /// Length of a new segment file, all of it allocated at once.
    pub segment_bytes: u64,
    /// Empty segment files kept for reuse (at least one): writing to blocks that were written
    /// before changes no metadata, so a sync is cheap.
    pub empty_segments_kept: usize,
    /// Freed bytes that may still take up space on disk in segments that are not empty yet. Without
    /// any slack, segments that are about to become empty are punched first and cannot be reused
    /// cheaply.
    pub slack_bytes: u64,
    /// Open files of segments that are only read, with two descriptors each.
    pub read_files_max: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        let segment_bytes = 256 * 1024 * 1024;
        Self {
            durability: Durability::Fsync,
            segment_bytes,
            empty_segments_kept: 2,
            slack_bytes: 2 * segment_bytes,
            read_files_max: 256,
        }
    }
}

/// [`Extents`] in the folder `segments` of a data folder. Reads that must wait for the disk do so on
/// the blocking threads of the tokio runtime they are called from.
///
/// Dropping it ends its threads; writers and pins that are still around then do no harm.
pub struct SegmentExtents {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl SegmentExtents {
    /// # Panics
    /// If the options ask for segments shorter than 1 MiB or not a whole number of blocks long.
    pub fn open(folder: &DataFolder, options: &SegmentOptions) -> Result<Self, Fault> {
        let disk = OsFolder::new(folder)?;
        Self::on_disk(Box::new(disk), options.clone())
    }

    fn on_disk(folder: Box<dyn SegmentFolder>, options: SegmentOptions) -> Result<Self, Fault> {
        assert!(
            options.segment_bytes >= CHUNK_BYTES as u64
                && options.segment_bytes.is_multiple_of(BLOCK_BYTES),
            "a segment must hold a chunk and be made of whole blocks"
        );
        let mut space = BlockAllocation::default();
        let found =
            folder.list().map_err(|why| Fault::because("cannot list the segment files", why))?;
        for (number, bytes) in found {
            space.inherit(number, bytes / BLOCK_BYTES);
        }
        let shared = Arc::new(Shared {
            folder,
            space: Mutex::new(space),
            pins: Mutex::default(),
            files: Files::new(options.read_files_max),
            chunks: Arc::default(),
            recent_reads: RecentReads::default(),
            opening: Mutex::new(()),
            poison: OnceLock::new(),
            short_of_room: AtomicBool::new(false),
            commits: WorkQueue::default(),
            jobs: WorkQueue::default(),
            chores: WorkQueue::default(),
            counters: Counters::default(),
            options,
        });
        let mut extents = Self { shared, threads: Vec::new() };
        extents.start_thread("extent-commit", commit::run)?;
        extents.start_thread("extent-reclaim", reclaim::run)?;
        for _ in 0..WRITE_THREADS {
            extents.start_thread("extent-write", |shared| {
                while let Some(job) = shared.jobs.pop() {
                    job();
                }
            })?;
        }
        Ok(extents)
    }

    fn start_thread(
        &mut self,
        name: &str,
        run: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&shared))
            .map_err(|why| Fault::because("cannot start a thread of the extent store", why))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for SegmentExtents {
    fn drop(&mut self) {
        self.shared.jobs.close();
        self.shared.commits.close();
        self.shared.chores.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the extent store panicked");
            }
        }
    }
}

#[async_trait]
impl Extents for SegmentExtents {
    fn writer(&self) -> Box<dyn ExtentWriter> {
        Box::new(SegmentWriter::new(Arc::clone(&self.shared)))
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        self.shared.read(extent, range).await
    }

    fn pin_all(&self) -> Pin {
        let epoch = self.shared.pins.lock().pin_all();
        Pin::new(PinOfAll { shared: Arc::clone(&self.shared), epoch })
    }

    fn pin(&self, extents: &[ExtentId]) -> Pin {
        self.shared.pins.lock().pin(extents);
        Pin::new(PinOfSome { shared: Arc::clone(&self.shared), extents: extents.into() })
    }

    fn free(&self, id: ExtentId, length: u64) {
        if !id.offset.is_multiple_of(BLOCK_BYTES) {
            tracing::error!(?id, length, "asked to free an extent that cannot exist");
            return;
        }
        let reclaimable = self.shared.pins.lock().free(FreedRange { id, length });
        self.shared.reclaim(reclaimable);
    }

    fn inherited_segments(&self) -> Vec<u64> {
        self.shared.space.lock().inherited()
    }

    fn keep_only(&self, segment: u64, live: &[(ExtentId, u64)]) {
        let live: Vec<(u64, u64)> = live
            .iter()
            .filter(|(id, _)| id.segment == segment)
            .map(|(id, length)| (id.offset / BLOCK_BYTES, length.div_ceil(BLOCK_BYTES)))
            .collect();
        let garbage = self.shared.space.lock().settle_inheritance(segment, &live);
        // A reader may have found an extent in a row that was deleted before `live` was gathered,
        // so garbage is held back by pins as anything else that is freed.
        let reclaimable: Vec<FreedRange> = {
            let mut pins = self.shared.pins.lock();
            garbage.into_iter().filter_map(|run| pins.free(FreedRange::from(run))).collect()
        };
        self.shared.reclaim(reclaimable);
    }

    fn poisoned(&self) -> Option<Fault> {
        self.shared.poison.get().cloned()
    }

    fn statistics(&self) -> ExtentStatistics {
        let counters = &self.shared.counters;
        ExtentStatistics {
            segments: self.shared.space.lock().len(),
            bytes_written: counters.bytes_written.load(Ordering::Relaxed),
            bytes_freed: counters.bytes_freed.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
        }
    }
}

impl From<Run> for FreedRange {
    fn from(run: Run) -> Self {
        Self { id: id_of(run), length: run.blocks * BLOCK_BYTES }
    }
}

fn id_of(run: Run) -> ExtentId {
    ExtentId { segment: run.segment, offset: run.start * BLOCK_BYTES }
}

struct PinOfAll {
    shared: Arc<Shared>,
    epoch: u64,
}

impl Drop for PinOfAll {
    fn drop(&mut self) {
        let reclaimable = self.shared.pins.lock().unpin_all(self.epoch);
        self.shared.reclaim(reclaimable);
    }
}

struct PinOfSome {
    shared: Arc<Shared>,
    extents: Box<[ExtentId]>,
}

impl Drop for PinOfSome {
    fn drop(&mut self) {
        let reclaimable = self.shared.pins.lock().unpin(&self.extents);
        self.shared.reclaim(reclaimable);
    }
}

type Job = Box<dyn FnOnce() + Send>;

struct Shared {
    folder: Box<dyn SegmentFolder>,
    options: SegmentOptions,
    space: Mutex<BlockAllocation>,
    pins: Mutex<Pins>,
    files: Files,
    chunks: Arc<Chunks>,
    /// By long reads that found nothing in the page cache.
    recent_reads: RecentReads,
    /// Held while a segment is opened, so that writers that need one at the same time open one
    /// together.
    opening: Mutex<()>,
    poison: OnceLock<Fault>,
    short_of_room: AtomicBool,
    commits: WorkQueue<Commit>,
    /// For the threads that write chunks.
    jobs: WorkQueue<Job>,
    /// A wake-up for the reclaiming thread.
    chores: WorkQueue<()>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    bytes_written: AtomicU64,
    bytes_freed: AtomicU64,
    syncs: AtomicU64,
}

impl Shared {
    /// The first failure counts; after it, it is unknown which unsynced bytes are on disk.
    fn poison(&self, what: &'static str, why: io::Error) -> Fault {
        tracing::error!(%why, "{what}; no more extents are written");
        self.poison.get_or_init(|| Fault::because(what, why)).clone()
    }

    fn check_poison(&self) -> Result<(), Fault> {
        match self.poison.get() {
            None => Ok(()),
            Some(why) => {
                Err(Fault::because("no more extents are written since a write failed", why.clone()))
            }
        }
    }

    fn reclaim(&self, freed: impl IntoIterator<Item = FreedRange>) {
        let mut freed = freed.into_iter().peekable();
        if freed.peek().is_none() {
            return;
        }
        let others_lack_room = self.others_lack_room();
        let mut space = self.space.lock();
        if others_lack_room {
            space.seal_all();
        }
        for FreedRange { id, length } in freed {
            let start = id.offset / BLOCK_BYTES;
            let blocks = length.div_ceil(BLOCK_BYTES).min(u64::MAX / BLOCK_BYTES - start);
            let in_use = space.free(Run { segment: id.segment, start, blocks });
            let bytes = length.min(in_use * BLOCK_BYTES);
            self.counters.bytes_freed.fetch_add(bytes, Ordering::Relaxed);
        }
        self.look_for_chores(&space);
    }

    fn look_for_chores(&self, space: &BlockAllocation) {
        let (kept, slack) = self.kept_and_slack();
        if space.has_chores(kept, slack) {
            self.chores.push_if_empty(());
        }
    }

    /// How many empty segments and freed blocks are kept: as few as possible while the disk is
    /// full.
    fn kept_and_slack(&self) -> (usize, u64) {
        if self.short_of_room.load(Ordering::Relaxed) || self.others_lack_room() {
            return (0, 0);
        }
        (self.options.empty_segments_kept, self.options.slack_bytes / BLOCK_BYTES)
    }

    fn others_lack_room(&self) -> bool {
        self.folder.available().is_ok_and(|available| available < LEFT_TO_OTHERS_BYTES)
    }

    /// Makes room for a claim of `blocks`, by reusing an empty segment or creating one. Blocks on
    /// the disk.
    fn open_segment(&self, blocks: u64) -> Result<(), Fault> {
        let _only_one = self.opening.lock();
        self.check_poison()?;
        let (number, empty) = {
            let mut space = self.space.lock();
            if space.has_gap(blocks) {
                return Ok(());
            }
            (space.next_number(), space.take_empty())
        };
        let from = empty.map(|(from, _)| from);
        if let Some(from) = from {
            self.files.forget(from);
        }
        let opened = self.make_segment(from, number, blocks);
        self.note_room(opened.as_ref().err());
        let (file, bytes) = opened.map_err(|why| {
            if let Some(from) = from {
                self.space.lock().put_back_empty(from);
            }
            Fault::because("cannot allocate a segment", why)
        })?;
        // No extent may be acknowledged in a file whose name a crash could take away.
        if self.options.durability == Durability::Fsync {
            self.folder
                .sync()
                .map_err(|why| self.poison("cannot sync the folder of segments", why))?;
        }
        self.files.add_active(number, file);
        let mut space = self.space.lock();
        let was_shortened = bytes < self.options.segment_bytes;
        let has_unwritten_blocks = was_shortened || empty.is_none_or(|(_, unwritten)| unwritten);
        space.activate(number, bytes / BLOCK_BYTES, has_unwritten_blocks);
        self.files.keep_active(|number| space.is_active(number));
        self.look_for_chores(&space);
        Ok(())
    }

    /// From the file of an empty segment or a new one; of the usual length or, if the disk has no
    /// space for that, of a fraction that is enough for `blocks`.
    fn make_segment(
        &self,
        from: Option<u64>,
        number: u64,
        blocks: u64,
    ) -> io::Result<(Arc<dyn SegmentFile>, u64)> {
        let mut bytes = self.options.segment_bytes;
        loop {
            let made = match from {
                None => self.folder.create(number, bytes),
                Some(from) => self.folder.recycle(from, number, bytes),
            };
            match made {
                Err(why) if is_no_room(&why) && bytes / 4 >= SEGMENT_BYTES_MIN => {
                    bytes = (bytes / 4).next_multiple_of(BLOCK_BYTES);
                    if bytes < blocks * BLOCK_BYTES {
                        return Err(why);
                    }
                }
                other => return other.map(|file| (file, bytes)),
            }
        }
    }

    /// As long as the disk is full, space kept for reuse is given back.
    fn note_room(&self, failed: Option<&io::Error>) {
        let is_short = failed.is_some_and(is_no_room);
        if self.short_of_room.swap(is_short, Ordering::Relaxed) != is_short {
            tracing::warn!(is_short, "room for extents on the disk");
        }
        if is_short {
            let mut space = self.space.lock();
            space.seal_all();
            self.look_for_chores(&space);
        }
    }

    fn file(&self, number: u64) -> io::Result<Arc<dyn SegmentFile>> {
        if let Some(file) = self.files.get(number) {
            return Ok(file);
        }
        let file = self.folder.open(number)?;
        self.files.add_read(number, Arc::clone(&file));
        Ok(file)
    }
}

/// Open segment files: those being filled, and some of the others.
struct Files(Mutex<OpenFiles>);

#[derive(Default)]
struct OpenFiles {
    active: HashMap<u64, Arc<dyn SegmentFile>>,
    read: HashMap<u64, Arc<dyn SegmentFile>>,
    /// The order in which files came into `read`; the oldest leave first when there are too many.
    read_order: VecDeque<u64>,
    read_max: usize,
}

impl Files {
    fn new(read_max: usize) -> Self {
        Self(Mutex::new(OpenFiles { read_max, ..OpenFiles::default() }))
    }

    fn get(&self, number: u64) -> Option<Arc<dyn SegmentFile>> {
        let files = self.0.lock();
        files.active.get(&number).or_else(|| files.read.get(&number)).cloned()
    }

    fn add_active(&self, number: u64, file: Arc<dyn SegmentFile>) {
        self.0.lock().active.insert(number, file);
    }

    fn add_read(&self, number: u64, file: Arc<dyn SegmentFile>) {
        self.0.lock().add_read(number, file);
    }

    fn keep_active(&self, is_active: impl Fn(u64) -> bool) {
        let mut files = self.0.lock();
        let sealed: Vec<_> = files.active.extract_if(|number, _| !is_active(*number)).collect();
        for (number, file) in sealed {
            files.add_read(number, file);
        }
    }

    fn forget(&self, number: u64) {
        let mut files = self.0.lock();
        files.active.remove(&number);
        if files.read.remove(&number).is_some() {
            files.read_order.retain(|other| *other != number);
        }
    }
}

impl OpenFiles {
    fn add_read(&mut self, number: u64, file: Arc<dyn SegmentFile>) {
        if self.read.insert(number, file).is_none() {
            self.read_order.push_back(number);
        }
        while self.read.len() > self.read_max {
            let Some(oldest) = self.read_order.pop_front() else { break };
            self.read.remove(&oldest);
        }
    }
}
