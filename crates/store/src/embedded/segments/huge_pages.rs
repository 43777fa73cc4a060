//! Memory in huge pages for chunks. A disk driver describes every physically contiguous range of
//! memory by one segment. A chunk of 256 scattered pages exceeds what one request of many disks may
//! have (254 segments with virtio): it is split, and one request fills the queue.

#![allow(unsafe_code, reason = "memory of the system, mapped and given back")]

use std::ptr::{self, NonNull};
use std::sync::Arc;

use holdfast_sync::Mutex;

use super::buffer::CHUNK_BYTES;

const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// They stay until the store is closed. Further chunks consist of ordinary pages, allocated when
/// touched: in a huge page a short stream would take as much memory as a long one.
const PAGES_MAX: usize = 16;

/// As much memory as a chunk takes, aligned to it, full of zeros when it is new.
pub(super) struct HugeChunk {
    pub(super) start: NonNull<u8>,
    home: Arc<HugeChunks>,
}

impl Drop for HugeChunk {
    fn drop(&mut self) {
        self.home.0.lock().free.push(Free(self.start));
    }
}

/// All huge pages, and the free chunks in them.
#[derive(Default)]
pub(super) struct HugeChunks(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    free: Vec<Free>,
    /// Outlive every chunk, since each chunk holds a reference to this.
    pages: Vec<HugePage>,
}

struct Free(NonNull<u8>);

// SAFETY: nobody else uses what is free.
unsafe impl Send for Free {}

impl HugeChunks {
    pub(super) fn take(self: &Arc<Self>) -> Option<HugeChunk> {
        let mut pages = self.0.lock();
        if pages.free.is_empty() && pages.pages.len() < PAGES_MAX {
            let page = HugePage::new()?;
            pages.free.extend(page.chunks().map(Free));
            pages.pages.push(page);
        }
        let Free(start) = pages.free.pop()?;
        Some(HugeChunk { start, home: Arc::clone(self) })
    }
}

struct HugePage(NonNull<u8>);

// SAFETY: the mapping is of the process, not of a thread.
unsafe impl Send for HugePage {}

impl HugePage {
    /// Ordinary pages if the system has no huge ones; `None` if it has no memory.
    fn new() -> Option<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place that the kernel chooses; twice as long, so that it
        // contains an aligned huge page, and cut to that page; the kernel is told to make it huge.
        unsafe {
            let mapped = libc::mmap(ptr::null_mut(), 2 * PAGE_BYTES, protection, flags, -1, 0);
            if mapped == libc::MAP_FAILED {
                return None;
            }
            let before = mapped.align_offset(PAGE_BYTES);
            let page = mapped.byte_add(before);
            if before > 0 {
                libc::munmap(mapped, before);
            }
            libc::munmap(page.byte_add(PAGE_BYTES), PAGE_BYTES - before);
            libc::madvise(page, PAGE_BYTES, libc::MADV_HUGEPAGE);
            NonNull::new(page.cast()).map(Self)
        }
    }

    fn chunks(&self) -> impl Iterator<Item = NonNull<u8>> {
        // SAFETY: these offsets lie in the mapping.
        (0..PAGE_BYTES / CHUNK_BYTES).map(|index| unsafe { self.0.byte_add(index * CHUNK_BYTES) })
    }
}

impl Drop for HugePage {
    fn drop(&mut self) {
        // SAFETY: the page is mapped, and no chunk of it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_huge_chunks_than_their_maximum_and_those_come_back() {
        let chunks = Arc::<HugeChunks>::default();
        let mut taken: Vec<HugeChunk> = std::iter::from_fn(|| chunks.take()).collect();
        let count = PAGES_MAX * PAGE_BYTES / CHUNK_BYTES;
        assert_eq!(taken.len(), count);
        let mut starts: Vec<usize> = taken.iter().map(|chunk| chunk.start.addr().get()).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[0] + CHUNK_BYTES <= pair[1]));
        assert!(starts.iter().all(|start| start.is_multiple_of(CHUNK_BYTES)));
        taken.truncate(3);
        taken.extend(std::iter::repeat_with(|| chunks.take()).take(count - 3).flatten());
        assert_eq!(taken.len(), count);
        assert!(chunks.take().is_none());
    }
}
