//! The one thread that syncs. Short streams that end at the same time are placed side by side,
//! written with one call and made durable with one sync; long ones, already written, join that sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_sync::{Mutex, oneshot};

use super::block_allocation::Run;
use super::buffer::Buffer;
use super::file::SegmentFile;
use super::{BLOCK_BYTES, Durability, Shared, is_no_room};
use crate::engine::Fault;

/// The maximum for one sync: enough to keep the disk busy, not so much that the first in the batch
/// waits long for the last.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How much of a new segment is filled with zeros after a batch of short streams, in the same sync.
/// The first write to a preallocated block changes the file's metadata, and a sync then waits for
/// the file system's journal; later writes to it do not. So one batch in hundreds pays for the
/// journal.
const AHEAD_BLOCKS: u64 = 512;

/// A batch of this length (512 KiB) gets no zeros after it: a few such batches would overwrite them
/// all, so that the disk writes nearly everything twice, which takes longer than the journal.
const SHORT_BATCH_BLOCKS: u64 = 128;

/// Blocks reserved for one writer. When it is dropped others can claim them, so a writer keeps it
/// as long as it writes to them.
pub(super) struct Claim {
    shared: Arc<Shared>,
    pub(super) file: Arc<dyn SegmentFile>,
    run: Mutex<Run>,
}

impl Claim {
    pub(super) fn run(&self) -> Run {
        *self.run.lock()
    }

    /// Claims up to `more` blocks after these.
    pub(super) fn extend(&self, more: u64) {
        let mut run = self.run.lock();
        run.blocks += self.shared.space.lock().extend(*run, more);
    }

    /// Gives back all but the first `used` blocks.
    pub(super) fn shrink(&self, used: u64) {
        let mut run = self.run.lock();
        if used == run.blocks {
            return;
        }
        let rest = Run { start: run.start + used, blocks: run.blocks - used, ..*run };
        run.blocks = used;
        let mut space = self.shared.space.lock();
        space.give_back(rest);
        self.shared.look_for_chores(&space);
    }

    /// The blocks hold an extent from now on.
    pub(super) fn keep(&self) {
        self.run.lock().blocks = 0;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

impl Shared {
    /// Claims blocks in an active segment, at least `least` and at most `wanted`; `None` if a
    /// segment must be opened first.
    pub(super) fn claim(
        self: &Arc<Self>,
        wanted: u64,
        least: u64,
    ) -> Result<Option<Arc<Claim>>, Fault> {
        let Some(run) = self.space.lock().claim(wanted, least) else { return Ok(None) };
        match self.file(run.segment) {
            Ok(file) => {
                let shared = Arc::clone(self);
                Ok(Some(Arc::new(Claim { shared, file, run: Mutex::new(run) })))
            }
            Err(why) => {
                self.space.lock().give_back(run);
                Err(Fault::because("cannot open a segment to write to", why))
            }
        }
    }
}

pub(super) enum Commit {
    /// A stream of one chunk or less: to be placed, written and synced.
    Stream { buffer: Buffer, reply: oneshot::Sender<Result<Arc<Claim>, Fault>> },
    /// Files that hold a stream already written.
    Sync { files: Vec<(u64, Arc<dyn SegmentFile>)>, reply: oneshot::Sender<Result<(), Fault>> },
}

impl Commit {
    fn bytes(&self) -> usize {
        match self {
            Self::Stream { buffer, .. } => buffer.len(),
            Self::Sync { .. } => 0,
        }
    }
}

struct Stream {
    buffer: Buffer,
    reply: oneshot::Sender<Result<Arc<Claim>, Fault>>,
    claim: Arc<Claim>,
    run: Run,
}

#[derive(Default)]
struct Batch {
    streams: Vec<Stream>,
    syncs: Vec<oneshot::Sender<Result<(), Fault>>>,
    files: BTreeMap<u64, Arc<dyn SegmentFile>>,
}

pub(super) fn run(shared: &Arc<Shared>) {
    let mut ahead = WrittenAhead::default();
    while let Some(first) = shared.commits.pop() {
        let mut bytes = first.bytes();
        let mut batch = Batch::default();
        batch.add(shared, first);
        while let Some(next) = shared.commits.pop_more(|it| bytes + it.bytes() <= BATCH_BYTES_MAX) {
            bytes += next.bytes();
            batch.add(shared, next);
        }
        batch.commit(shared, &mut ahead);
    }
}

/// Up to which block each segment is known to have been written before.
#[derive(Default)]
struct WrittenAhead(BTreeMap<u64, u64>);

impl WrittenAhead {
    /// Writes zeros after a run of short streams, to blocks that were never written. The claim must
    /// be kept until they are synced, and then dropped.
    fn advance(&mut self, shared: &Arc<Shared>, run: Run) -> Option<Claim> {
        if run.end() <= *self.0.get(&run.segment).unwrap_or(&0) {
            return None;
        }
        let file = shared.files.get(run.segment)?;
        let blocks = {
            let mut space = shared.space.lock();
            self.0.retain(|segment, _| space.is_active(*segment));
            if !space.has_unwritten_blocks(run.segment) {
                return None;
            }
            space.borrow_behind(run, AHEAD_BLOCKS)
        };
        if blocks == 0 {
            return None;
        }
        let next = Run { segment: run.segment, start: run.end(), blocks };
        let claim = Claim { shared: Arc::clone(shared), file, run: Mutex::new(next) };
        self.0.insert(next.segment, next.end());
        let zeros = shared.chunks.zeros((blocks * BLOCK_BYTES) as usize);
        let slices: Vec<&[u8]> = zeros.iter().map(Buffer::content).collect();
        if let Err(why) = claim.file.write_at(&slices, next.start * BLOCK_BYTES) {
            shared.write_failed(why);
        }
        drop(slices);
        zeros.into_iter().for_each(|buffer| shared.chunks.give_back(buffer));
        Some(claim)
    }
}

impl Batch {
    fn add(&mut self, shared: &Arc<Shared>, commit: Commit) {
        match commit {
            Commit::Stream { buffer, reply } => {
                match claim_or_open(shared, (buffer.len() as u64).div_ceil(BLOCK_BYTES)) {
                    Ok(claim) => {
                        let run = claim.run();
                        self.files.insert(run.segment, Arc::clone(&claim.file));
                        self.streams.push(Stream { buffer, reply, claim, run });
                    }
                    // The caller may be gone: then nobody needs the answer.
                    Err(fault) => drop(reply.send(Err(fault))),
                }
            }
            Commit::Sync { files, reply } => {
                self.files.extend(files);
                self.syncs.push(reply);
            }
        }
    }

    fn commit(mut self, shared: &Arc<Shared>, ahead: &mut WrittenAhead) {
        self.streams.sort_unstable_by_key(|stream| (stream.run.segment, stream.run.start));
        self.write(shared);
        let zeros = match self.streams.last() {
            Some(last)
                if shared.options.durability == Durability::Fsync
                    && self.blocks() < SHORT_BATCH_BLOCKS =>
            {
                ahead.advance(shared, last.run)
            }
            Some(_) | None => None,
        };
        let synced = shared.check_poison().and_then(|()| self.sync(shared));
        // Before any answer: the next stream of a client may need the blocks right after its last
        // one.
        drop(zeros);
        for stream in self.streams {
            shared.chunks.give_back(stream.buffer);
            // If nobody takes the answer, the claim in it is dropped and its blocks are free again.
            drop(stream.reply.send(synced.clone().map(|()| stream.claim)));
        }
        for reply in self.syncs {
            drop(reply.send(synced.clone()));
        }
    }

    fn blocks(&self) -> u64 {
        self.streams.iter().map(|stream| stream.run.blocks).sum()
    }

    /// Writes neighbours with one call. Streams that did not fit on the disk leave the batch.
    fn write(&mut self, shared: &Shared) {
        let mut rest = std::mem::take(&mut self.streams);
        while !rest.is_empty() {
            let follows = |pair: &[Stream]| {
                pair[0].run.segment == pair[1].run.segment && pair[0].run.end() == pair[1].run.start
            };
            let neighbours = 1 + rest.windows(2).take_while(|pair| follows(pair)).count();
            let others = rest.split_off(neighbours);
            let mut group = std::mem::replace(&mut rest, others);
            let (file, start) = (Arc::clone(&group[0].claim.file), group[0].run.start);
            let slices: Vec<&[u8]> = group.iter_mut().map(|it| it.buffer.blocks()).collect();
            match file.write_at(&slices, start * BLOCK_BYTES) {
                Ok(()) => self.streams.append(&mut group),
                Err(why) => {
                    let fault = shared.write_failed(why);
                    for stream in group {
                        drop(stream.reply.send(Err(fault.clone())));
                    }
                }
            }
        }
    }

    fn sync(&self, shared: &Shared) -> Result<(), Fault> {
        if shared.options.durability == Durability::Relaxed {
            return Ok(());
        }
        for file in self.files.values() {
            shared.counters.syncs.fetch_add(1, Ordering::Relaxed);
            file.sync().map_err(|why| shared.poison("cannot sync a segment", why))?;
        }
        Ok(())
    }
}

fn claim_or_open(shared: &Arc<Shared>, blocks: u64) -> Result<Arc<Claim>, Fault> {
    loop {
        if let Some(claim) = shared.claim(blocks, blocks)? {
            return Ok(claim);
        }
        shared.open_segment(blocks)?;
    }
}

impl Shared {
    /// A full disk breaks nothing that was acknowledged: this write has failed, others may succeed.
    /// After any other error the disk cannot be trusted.
    pub(super) fn write_failed(&self, why: std::io::Error) -> Fault {
        if is_no_room(&why) {
            return Fault::because("no space left to write an extent", why);
        }
        self.poison("cannot write to a segment", why)
    }
}
