//! Turns a stream of unknown length into extents.
//!
//! A stream of at most one chunk is placed when it ends, when its length is known. A longer one
//! claims twice what it has seen so far each time it runs out of room: in place if the next blocks
//! are unclaimed, otherwise as a new extent. It gives back what it does not use.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use holdfast_sync::oneshot;

use super::buffer::Buffer;
use super::commit::{Claim, Commit};
use super::{BLOCK_BYTES, Shared, id_of};
use crate::engine::Fault;
use crate::extents::{EXTENT_BYTES_MAX, Extent, ExtentWriter, PIECE_BYTES, checksums_of};

/// Chunks of one stream being written while the next is gathered: the disk stays busy, and a writer
/// holds at most one chunk more than this.
const CHUNKS_IN_FLIGHT_MAX: usize = 2;
const EXTENT_BLOCKS_MAX: u64 = EXTENT_BYTES_MAX / BLOCK_BYTES;

pub(super) struct SegmentWriter {
    shared: Arc<Shared>,
    buffer: Buffer,
    /// Only the last one grows.
    extents: Vec<GrowingExtent>,
    in_flight: VecDeque<ChunkWrite>,
    state: State,
}

struct GrowingExtent {
    claim: Arc<Claim>,
    length: u64,
    checksums: Vec<u32>,
}

struct ChunkWrite {
    /// Index of the extent the chunk belongs to.
    extent: usize,
    checksums: oneshot::Receiver<Result<Vec<u32>, Fault>>,
}

enum State {
    Ready,
    /// An append is running, or was cancelled half-way: then bytes are missing.
    Appending,
    Failed(Fault),
}

impl GrowingExtent {
    fn blocks(&self) -> u64 {
        self.length.div_ceil(BLOCK_BYTES)
    }

    fn room(&self) -> u64 {
        self.claim.run().blocks - self.blocks()
    }
}

impl SegmentWriter {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            buffer: Buffer::small(),
            extents: Vec::new(),
            in_flight: VecDeque::new(),
            state: State::Ready,
        }
    }

    async fn gather(&mut self, mut bytes: Bytes) -> Result<(), Fault> {
        self.shared.check_poison()?;
        while !bytes.is_empty() {
            // A chunk is written only when more follows: a stream of exactly one is a short one.
            if self.buffer.is_full() {
                self.write_chunk().await?;
            }
            let taken = self.buffer.append(&bytes, &self.shared.chunks);
            bytes.advance(taken);
        }
        Ok(())
    }

    async fn write_chunk(&mut self) -> Result<(), Fault> {
        while self.in_flight.len() >= CHUNKS_IN_FLIGHT_MAX {
            self.await_chunk().await?;
        }
        self.make_room((self.buffer.len() as u64).div_ceil(BLOCK_BYTES)).await?;
        let extent = self.extents.len() - 1;
        let growing = &mut self.extents[extent];
        let claim = Arc::clone(&growing.claim);
        let offset = (claim.run().start + growing.blocks()) * BLOCK_BYTES;
        growing.length += self.buffer.len() as u64;

        let mut buffer = std::mem::replace(&mut self.buffer, self.shared.chunks.take());
        let shared = Arc::clone(&self.shared);
        let (reply, checksums) = oneshot::channel();
        self.shared.jobs.push(Box::new(move || {
            let checksums = checksums_of(buffer.content()).to_vec();
            let written = claim.file.write_at(&[buffer.blocks()], offset);
            shared.chunks.give_back(buffer);
            // A writer that is gone needs no answer; its claim lasts until here.
            drop(reply.send(written.map(|()| checksums).map_err(|why| shared.write_failed(why))));
        }));
        self.in_flight.push_back(ChunkWrite { extent, checksums });
        Ok(())
    }

    async fn await_chunk(&mut self) -> Result<(), Fault> {
        if let Some(ChunkWrite { extent, checksums }) = self.in_flight.pop_front() {
            let checksums = checksums.await.map_err(|_| closed())??;
            self.extents[extent].checksums.extend(checksums);
        }
        Ok(())
    }

    /// Gives the last extent room for this many more blocks.
    async fn make_room(&mut self, blocks: u64) -> Result<(), Fault> {
        if let Some(last) = self.extents.last() {
            if last.room() < blocks {
                let claimed = last.claim.run().blocks;
                last.claim.extend(claimed.max(blocks).min(EXTENT_BLOCKS_MAX - claimed));
            }
            if last.room() >= blocks {
                return Ok(());
            }
            last.claim.shrink(last.blocks());
        }
        let seen: u64 = self.extents.iter().map(GrowingExtent::blocks).sum();
        let wanted = seen.clamp(blocks, EXTENT_BLOCKS_MAX);
        let claim = loop {
            if let Some(claim) = self.shared.claim(wanted, blocks)? {
                break claim;
            }
            self.open_segment(blocks).await?;
        };
        self.extents.push(GrowingExtent { claim, length: 0, checksums: Vec::new() });
        Ok(())
    }

    async fn open_segment(&self, blocks: u64) -> Result<(), Fault> {
        let shared = Arc::clone(&self.shared);
        let (reply, opened) = oneshot::channel();
        self.shared.jobs.push(Box::new(move || drop(reply.send(shared.open_segment(blocks)))));
        opened.await.map_err(|_| closed())?
    }

    async fn finish_short(self) -> Result<Vec<Extent>, Fault> {
        if self.buffer.len() == 0 {
            return Ok(Vec::new());
        }
        let length = self.buffer.len() as u64;
        let checksums = checksums_of(self.buffer.content());
        let (reply, committed) = oneshot::channel();
        self.shared.commits.push(Commit::Stream { buffer: self.buffer, reply });
        let claim = committed.await.map_err(|_| closed())??;
        let extent = Extent { id: id_of(claim.run()), length, checksums };
        claim.keep();
        self.shared.counters.bytes_written.fetch_add(length, Ordering::Relaxed);
        Ok(vec![extent])
    }

    async fn finish_long(mut self) -> Result<Vec<Extent>, Fault> {
        self.write_chunk().await?;
        while !self.in_flight.is_empty() {
            self.await_chunk().await?;
        }
        let file = |it: &GrowingExtent| (it.claim.run().segment, Arc::clone(&it.claim.file));
        let files = self.extents.iter().map(file).collect();
        let (reply, synced) = oneshot::channel();
        self.shared.commits.push(Commit::Sync { files, reply });
        synced.await.map_err(|_| closed())??;
        Ok(self.extents.into_iter().map(|it| it.into_extent(&self.shared)).collect())
    }
}

impl GrowingExtent {
    fn into_extent(self, shared: &Shared) -> Extent {
        debug_assert_eq!(self.checksums.len() as u64, self.length.div_ceil(PIECE_BYTES));
        let id = id_of(self.claim.run());
        self.claim.shrink(self.blocks());
        self.claim.keep();
        shared.counters.bytes_written.fetch_add(self.length, Ordering::Relaxed);
        Extent { id, length: self.length, checksums: self.checksums.into() }
    }
}

fn closed() -> Fault {
    Fault::new("the extent store is closed")
}

#[async_trait]
impl ExtentWriter for SegmentWriter {
    async fn append(&mut self, bytes: Bytes) -> Result<(), Fault> {
        match std::mem::replace(&mut self.state, State::Appending) {
            State::Ready => {}
            State::Appending => return Err(Fault::new("an append was given up half-way")),
            State::Failed(fault) => {
                self.state = State::Failed(fault.clone());
                return Err(fault);
            }
        }
        let gathered = self.gather(bytes).await;
        self.state = match &gathered {
            Ok(()) => State::Ready,
            Err(fault) => State::Failed(fault.clone()),
        };
        gathered
    }

    async fn finish(mut self: Box<Self>) -> Result<Vec<Extent>, Fault> {
        self.append(Bytes::new()).await?;
        if self.extents.is_empty() { self.finish_short().await } else { self.finish_long().await }
    }
}
