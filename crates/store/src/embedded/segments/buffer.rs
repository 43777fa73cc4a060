//! Buffers that direct I/O accepts: aligned to a block, a whole number of blocks long.

#![allow(unsafe_code, reason = "direct I/O needs memory that is aligned to a block")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use holdfast_sync::Mutex;

use super::BLOCK_BYTES;
use super::huge_pages::{HugeChunk, HugeChunks};

/// The unit in which a long stream is written, and the most a writer gathers before it writes.
pub(super) const CHUNK_BYTES: usize = 1024 * 1024;
/// Chunk buffers kept for reuse besides those in huge pages: a fresh one costs 256 page faults.
const CHUNKS_KEPT_MAX: usize = 8;
const BLOCK: usize = BLOCK_BYTES as usize;

/// Appended bytes, padded with zeros to a whole block.
pub(super) struct Buffer {
    start: NonNull<u8>,
    capacity: usize,
    length: usize,
    /// The chunk whose memory this is, if it has none of its own.
    huge: Option<HugeChunk>,
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn with_capacity(capacity: usize) -> Self {
        let layout = layout_of(capacity);
        // SAFETY: the layout is never of size zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, capacity, length: 0, huge: None }
    }

    fn in_huge_page(huge: HugeChunk) -> Self {
        Self { start: huge.start, capacity: CHUNK_BYTES, length: 0, huge: Some(huge) }
    }

    /// A small buffer; [`Buffer::append`] grows it to a chunk when needed.
    pub(super) fn small() -> Self {
        Self::with_capacity(BLOCK)
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_full(&self) -> bool {
        self.length == CHUNK_BYTES
    }

    /// Takes as much of `bytes` as a chunk has room for and returns how much that was.
    pub(super) fn append(&mut self, bytes: &[u8], spare: &Chunks) -> usize {
        let taken = bytes.len().min(CHUNK_BYTES - self.length);
        if self.length + taken > self.capacity {
            self.grow(self.length + taken, spare);
        }
        let start = self.length;
        self.length += taken;
        let end = self.length;
        self.all_mut()[start..end].copy_from_slice(&bytes[..taken]);
        taken
    }

    fn grow(&mut self, needed: usize, spare: &Chunks) {
        let mut larger = if needed <= CHUNK_BYTES / 16 {
            Self::with_capacity(CHUNK_BYTES / 16)
        } else {
            spare.take()
        };
        larger.all_mut()[..self.length].copy_from_slice(self.content());
        larger.length = self.length;
        *self = larger;
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.all()[..self.length]
    }

    /// Fills the last block with zeros and returns all blocks that hold content.
    pub(super) fn blocks(&mut self) -> &[u8] {
        let padded = self.length.next_multiple_of(BLOCK);
        let length = self.length;
        self.all_mut()[length..padded].fill(0);
        &self.all()[..padded]
    }

    /// Room for so many bytes of content, in whole blocks; it may be dirty.
    ///
    /// # Panics
    /// If a chunk has less room.
    pub(super) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.length = bytes;
        &mut self.all_mut()[..bytes.next_multiple_of(BLOCK)]
    }

    fn all(&self) -> &[u8] {
        // SAFETY: `capacity` bytes were allocated and initialized with zeros, for as long as this lasts.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `all`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.huge.is_none() {
            // SAFETY: allocated with this very layout.
            unsafe { dealloc(self.start.as_ptr(), layout_of(self.capacity)) }
        }
    }
}

fn layout_of(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK).expect("a chunk is far below isize::MAX")
}

/// Chunk buffers waiting to be used again.
#[derive(Default)]
pub(super) struct Chunks {
    huge: Arc<HugeChunks>,
    /// Those that are not in huge pages.
    kept: Mutex<Vec<Buffer>>,
}

impl Chunks {
    pub(super) fn take(&self) -> Buffer {
        if let Some(huge) = self.huge.take() {
            return Buffer::in_huge_page(huge);
        }
        let kept = self.kept.lock().pop();
        kept.unwrap_or_else(|| Buffer::with_capacity(CHUNK_BYTES))
    }

    /// Buffers that together hold so many zeros.
    pub(super) fn zeros(&self, mut bytes: usize) -> Vec<Buffer> {
        let mut buffers = Vec::new();
        while bytes > 0 {
            let mut buffer = self.take();
            buffer.length = bytes.min(CHUNK_BYTES);
            let length = buffer.length;
            buffer.all_mut()[..length].fill(0);
            bytes -= length;
            buffers.push(buffer);
        }
        buffers
    }

    pub(super) fn give_back(&self, mut buffer: Buffer) {
        if buffer.capacity != CHUNK_BYTES || buffer.huge.is_some() {
            return;
        }
        buffer.length = 0;
        let mut kept = self.kept.lock();
        if kept.len() < CHUNKS_KEPT_MAX {
            kept.push(buffer);
        }
    }
}

/// A chunk buffer that goes back to where it came from.
pub(super) struct Lent {
    /// Until it is dropped.
    buffer: Option<Buffer>,
    chunks: Arc<Chunks>,
}

impl Lent {
    pub(super) fn from(chunks: &Arc<Chunks>) -> Self {
        Self { buffer: Some(chunks.take()), chunks: Arc::clone(chunks) }
    }

    pub(super) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.buffer.as_mut().map(|buffer| buffer.room(bytes)).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map(Buffer::content).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.chunks.give_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_to_a_chunk_and_takes_no_more() {
        let spare = Chunks::default();
        let mut buffer = Buffer::small();
        let bytes: Vec<u8> = (0..CHUNK_BYTES + 1).map(|n| (n % 251) as u8).collect();
        let mut taken = 0;
        for part in bytes.chunks(5000) {
            taken += buffer.append(part, &spare);
        }
        assert_eq!(taken, CHUNK_BYTES);
        assert!(buffer.is_full());
        assert_eq!(buffer.content(), &bytes[..CHUNK_BYTES]);
    }

    #[test]
    fn padding_is_zeros_even_in_a_buffer_used_before() {
        let spare = Chunks::default();
        let mut buffer = spare.take();
        buffer.append(&vec![7; CHUNK_BYTES], &spare);
        spare.give_back(buffer);
        let mut buffer = spare.take();
        buffer.append(&[1, 2, 3], &spare);
        let blocks = buffer.blocks();
        assert_eq!(blocks.len(), BLOCK);
        assert_eq!(&blocks[..3], &[1, 2, 3]);
        assert!(blocks[3..].iter().all(|byte| *byte == 0));
        assert_eq!(blocks.as_ptr() as usize % BLOCK, 0);
    }
}
