//! The row engine: opening and closing it, and reading. Reads run on the calling thread.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_sync::thread::{self, JoinHandle};
use holdfast_sync::{Condvar, Mutex, yield_now};

use super::commit::Committer;
use super::disk_space::{DiskSpace, Reserve, is_no_room};
use super::engine_state::{EngineState, Upkeep};
use super::folder::{DataFolder, OpenFolder};
use super::log::{ActiveSegment, Fill, SealedSegment, SegmentHeader, Spare};
use super::placing::Placing;
use super::recent_writes::RecentWrites;
use super::recovery::FoundLog;
use super::row_cache::RowCache;
use super::snapshots::{SHARDS, Seen, Snapshots, shard_of_this_thread};
use super::tree::{Scanned, hash_of};
use super::trees::Trees;
use super::upkeep::{Compactor, Flusher, SPARES_MAX};
use super::{Durability, OpenError};
use crate::engine::{
    Batch, CommitError, Engine, EngineStatistics, Fault, KEY_BYTES_MAX, KeyRange, Moment, Order,
    Placed, Row, Snapshot, VALUE_BYTES_MAX, Write,
};

pub(super) const LOG_FOLDER: &str = "log";

/// Opening waits until the first segment is written full of zeros; larger ones are prepared while
/// it is in use.
const FIRST_SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The log has 32 bits for the length of a batch; a batch over this size is a bug of the caller.
const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How many versions of rows a scan reads before it yields: about half a millisecond.
const SCAN_STEPS: usize = 1024;

#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub durability: Durability,
    /// A segment of the log, and with it the memtables and the tables that they are flushed to. Larger
    /// ones take more memory, and rows are merged less often.
    pub log_segment_bytes: u64,
    /// Blocks of tables kept in memory.
    pub cache_bytes: u64,
    /// Rows kept in memory that are read again and again.
    pub row_cache_bytes: usize,
    /// Tables are split at this size when they are merged.
    pub table_bytes: u64,
    /// Tables open at once; the others are opened when they are read.
    pub open_tables_max: usize,
    /// How many recent writes are kept to detect conflicts; a batch older than those is refused.
    pub recent_writes_max: usize,
    pub recent_key_bytes_max: usize,
    /// Rows whose keys begin with this have a tree of their own. Good for rows that are put once,
    /// in key order: merging hardly ever rewrites them. Read only when a folder is created; it
    /// never changes afterwards.
    pub apart: Option<&'static [u8]>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            log_segment_bytes: 16 * 1024 * 1024,
            cache_bytes: 16 * 1024 * 1024,
            row_cache_bytes: 16 * 1024 * 1024,
            table_bytes: 16 * 1024 * 1024,
            open_tables_max: 256,
            recent_writes_max: 65_536,
            recent_key_bytes_max: 16 * 1024 * 1024,
            apart: None,
        }
    }
}

pub struct EmbeddedEngine {
    shared: Arc<EngineState>,
    readers: [Arc<Reader>; SHARDS],
    placing: Arc<Placing>,
    committer: Option<JoinHandle<()>>,
    upkeep: Vec<JoinHandle<()>>,
}

impl EmbeddedEngine {
    pub fn open(folder: &DataFolder, options: &EngineOptions) -> Result<Self, OpenError> {
        let log_folder = OpenFolder::open(folder.subfolder(LOG_FOLDER)?)
            .map_err(|why| Fault::because("open the folder of the log", why))?;
        let found = FoundLog::look(log_folder.path())?;
        let shared = Arc::new(EngineState {
            trees: Trees::open(folder, options)?,
            snapshots: Snapshots::new(),
            upkeep: Mutex::new(Upkeep { compaction_is_due: true, ..Upkeep::default() }),
            upkeep_changed: Condvar::new(),
            reserve: Reserve::new(log_folder.path(), options.log_segment_bytes),
            log_folder,
            wants_flush: AtomicBool::new(false),
            poison: OnceLock::new(),
            commits: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            row_cache: RowCache::new(options.row_cache_bytes),
            _folder: folder.clone(),
        });
        Ok(Self::start(shared, found, options)?)
    }

    fn start(
        shared: Arc<EngineState>,
        found: FoundLog,
        options: &EngineOptions,
    ) -> Result<Self, Fault> {
        let (last_sequence, sealed) = found.replay(&shared)?;
        shared.snapshots.publish_placed(last_sequence);
        shared.snapshots.publish_durable(last_sequence);
        let next_file = Arc::new(AtomicU64::new(found.next_file));

        let header = SegmentHeader {
            incarnation: found.last_incarnation() + 1,
            base_sequence: last_sequence,
            durability: options.durability,
        };
        let segment = begin_log(&shared, found, sealed, header, options, &next_file)
            .map_err(|why| Fault::because("beginning the log failed", why))?;
        let recent = RecentWrites::new(
            last_sequence,
            options.recent_writes_max,
            options.recent_key_bytes_max,
        );
        let placing = Placing::new(Arc::clone(&shared), recent, last_sequence, &segment);
        let placing = Arc::new(placing);
        let committer = Committer {
            shared: Arc::clone(&shared),
            placing: Arc::clone(&placing),
            segment,
            durability: options.durability,
            segment_bytes: options.log_segment_bytes,
            next_file: Arc::clone(&next_file),
        };
        let flusher = Flusher {
            shared: Arc::clone(&shared),
            segment_bytes: options.log_segment_bytes,
            next_file,
        };
        let compactor = Compactor { shared: Arc::clone(&shared) };
        let readers =
            std::array::from_fn(|shard| Arc::new(Reader { shared: Arc::clone(&shared), shard }));
        let mut engine = Self { shared, readers, placing, committer: None, upkeep: Vec::new() };
        // If a thread does not start, dropping `engine` stops the others.
        engine.upkeep.push(spawn("row-flush", move || flusher.run())?);
        engine.upkeep.push(spawn("row-compact", move || compactor.run())?);
        engine.committer = Some(spawn("row-commit", move || committer.run())?);
        Ok(engine)
    }
}

/// Always in a new segment, never after a torn end: otherwise a later recovery could miss a lost record
/// there and still read the one after it.
fn begin_log(
    shared: &EngineState,
    found: FoundLog,
    sealed: Vec<SealedSegment>,
    header: SegmentHeader,
    options: &EngineOptions,
    next_file: &AtomicU64,
) -> io::Result<ActiveSegment> {
    let mut spares = found.into_spares(options.log_segment_bytes, SPARES_MAX)?;
    let create = || {
        Spare::create(
            &shared.log_folder,
            next_file.fetch_add(1, Ordering::Relaxed),
            options.log_segment_bytes.min(FIRST_SEGMENT_BYTES_MAX),
            Fill::Zeros,
        )
    };
    let spare = match spares.pop_front() {
        Some(spare) => spare,
        None => match create() {
            // A full disk does not prevent opening, so that something can be deleted.
            Err(why) if is_no_room(&why) => {
                shared.reserve.spend()?;
                create()?
            }
            created => created?,
        },
    };
    let mut upkeep = shared.upkeep.lock();
    upkeep.sealed = sealed;
    upkeep.spares = spares;
    upkeep.disk_space = match shared.reserve.take() {
        Ok(()) => DiskSpace::Enough,
        Err(why) if is_no_room(&why) => {
            tracing::error!("the disk is full: only writes that free space are accepted");
            DiskSpace::Reserve(Fault::because("the reserve cannot be taken", why))
        }
        Err(why) => return Err(why),
    };
    spare.begin(header)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Fault> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|why| Fault::because(format!("start the thread {name}"), why))
}

impl Drop for EmbeddedEngine {
    fn drop(&mut self) {
        // Placed batches are still committed; then upkeep stops: what is not flushed is in the log.
        self.placing.close();
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
        self.shared.upkeep.lock().stopping = true;
        self.shared.upkeep_changed.notify_all();
        for thread in self.upkeep.drain(..) {
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        Ok(self.hold(Seen::Durable))
    }

    async fn placed_snapshot(&self) -> Result<Box<dyn Snapshot>, Fault> {
        let snapshot = self.hold(Seen::Placed);
        // Checked last: batches placed after the store was poisoned must not be seen.
        self.poisoned().map_or(Ok(snapshot), Err)
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.place(batch).await?.durable().await
    }

    async fn place(&self, batch: Batch) -> Result<Placed, CommitError> {
        check_limits(&batch).map_err(CommitError::Fault)?;
        self.placing.place(batch).await
    }

    async fn settled(&self, moment: &Moment) -> Result<(), Fault> {
        self.placing.settled(moment.sequence).await
    }

    fn poisoned(&self) -> Option<Fault> {
        self.shared.poison.get().cloned()
    }

    fn short_of_room(&self) -> Option<Fault> {
        self.shared.upkeep.lock().disk_space.shortage().cloned()
    }

    fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            commits: self.shared.commits.load(Ordering::Relaxed),
            conflicts: self.shared.conflicts.load(Ordering::Relaxed),
            syncs: self.shared.syncs.load(Ordering::Relaxed),
            rows: self.shared.trees.approximate_len(),
        }
    }
}

impl EmbeddedEngine {
    fn hold(&self, seen: Seen) -> Box<dyn Snapshot> {
        let reader = Arc::clone(&self.readers[shard_of_this_thread()]);
        let before = reader.shared.snapshots.hold(reader.shard, seen);
        Box::new(EmbeddedSnapshot { reader, seen, before })
    }
}

fn check_limits(batch: &Batch) -> Result<(), Fault> {
    let mut bytes = 0;
    for write in &batch.writes {
        let key = write.key();
        let value_bytes = match write {
            Write::Put { value, .. } => value.len(),
            Write::Delete { .. } => 0,
        };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Fault::new(format!("a key of {} bytes cannot be stored", key.len())));
        }
        if value_bytes > VALUE_BYTES_MAX {
            return Err(Fault::new(format!("a value of {value_bytes} bytes cannot be stored")));
        }
        bytes += key.len() + value_bytes;
    }
    if bytes > BATCH_BYTES_MAX {
        return Err(Fault::new(format!("a batch of {bytes} bytes cannot be stored")));
    }
    Ok(())
}

/// What the snapshots of a shard share. One reference count for all shards would make their processors
/// contend for one cache line.
#[repr(align(128))]
struct Reader {
    shared: Arc<EngineState>,
    shard: usize,
}

struct EmbeddedSnapshot {
    reader: Arc<Reader>,
    seen: Seen,
    /// It sees the batches with a lower sequence.
    before: u64,
}

#[async_trait]
impl Snapshot for EmbeddedSnapshot {
    fn moment(&self) -> Moment {
        Moment { sequence: self.before - 1, text: None }
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        if key.is_empty() {
            return Ok(None);
        }
        self.check_readable()?;
        let EngineState { row_cache: cache, trees, .. } = &*self.reader.shared;
        let hash = hash_of(key);
        if let Some(value) = cache.get(hash, key, self.before) {
            return Ok(Some(value));
        }
        let value = trees.of(key).get(hash, key, self.before).map_err(reading_failed)?;
        let value = value.map(Bytes::from);
        if let Some(value) = &value {
            cache.offer(hash, key, value, self.before);
        }
        Ok(value)
    }

    async fn scan(&self, range: &KeyRange, order: Order, limit: usize) -> Result<Vec<Row>, Fault> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        self.check_readable()?;
        let mut parts = self.reader.shared.trees.parts_of(range);
        if order == Order::Descending {
            parts.reverse();
        }
        let mut rows = Vec::new();
        for (tree, part) in parts {
            let mut rest = Some(part);
            while let Some(part) = rest.take().filter(|_| rows.len() < limit) {
                let left = limit - rows.len();
                let scanned = tree.scan(&part, order, self.before, left, SCAN_STEPS);
                let Scanned { rows: more, rest: behind } = scanned.map_err(reading_failed)?;
                rows.extend(more);
                rest = behind;
                if rest.is_some() {
                    yield_now().await;
                }
            }
        }
        Ok(rows)
    }
}

impl EmbeddedSnapshot {
    /// Batches that were placed when the store was poisoned are not read any more: they may be
    /// lost.
    fn check_readable(&self) -> Result<(), Fault> {
        match (self.seen, self.reader.shared.poison.get()) {
            (Seen::Placed, Some(fault)) => Err(fault.clone()),
            (Seen::Placed, None) | (Seen::Durable, _) => Ok(()),
        }
    }
}

fn reading_failed(why: lsm_tree::Error) -> Fault {
    Fault::because("reading rows failed", why)
}

impl Drop for EmbeddedSnapshot {
    fn drop(&mut self) {
        let Self { reader, seen, before } = self;
        reader.shared.snapshots.release(reader.shard, *seen, *before);
    }
}
