//! The allocator of the whole program, mimalloc. A request makes and drops tens of small values; the C
//! library's allocator takes several times as long for them.

#![allow(unsafe_code, reason = "an allocator hands out memory, and mimalloc is written in C")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys as mi;

/// mimalloc aligns every block of at least this size by it.
const NATURAL_ALIGNMENT: usize = 16;

/// Asks for an alignment only if mimalloc would not give it anyway. Explicitly aligned blocks of
/// more than 1 KiB take two to three times as long, and waste memory.
pub struct Allocator;

/// The number of mimalloc's option `purge_delay`, which has no name in the crate.
const PURGE_DELAY: mi::mi_option_t = 15;
const PURGE_DELAY_MILLISECONDS: i64 = 100;

/// To be called once, before there are other threads. By default mimalloc keeps freed memory for a second;
/// within a second a memtable of 16 MiB is filled and flushed several times, each time by other threads than
/// those that allocate the next one.
pub fn give_memory_back_soon() {
    // SAFETY: the option is one of mimalloc's and takes any number, and nobody else reads it now.
    unsafe { mi::mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) }
}

fn is_natural(layout: Layout) -> bool {
    layout.align() <= NATURAL_ALIGNMENT && layout.align() <= layout.size()
}

// SAFETY: mimalloc is an allocator. `mi_free` takes blocks from any of its functions, and so does each
// of the functions that change the size of one.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the functions take any size, and an alignment that is a power of two.
        let block = unsafe {
            match is_natural(layout) {
                true => mi::mi_malloc(layout.size()),
                false => mi::mi_malloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        let block = unsafe {
            match is_natural(layout) {
                true => mi::mi_zalloc(layout.size()),
                false => mi::mi_zalloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the block was allocated here.
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size is one that a layout of this alignment can have, and
        // that the block is from here.
        let block = unsafe {
            match is_natural(Layout::from_size_align_unchecked(size, layout.align())) {
                true => mi::mi_realloc(block.cast(), size),
                false => mi::mi_realloc_aligned(block.cast(), size, layout.align()),
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_a_second_by_default() {
        // SAFETY: the option is one of mimalloc's.
        assert_eq!(unsafe { mi::mi_option_get(PURGE_DELAY) }, 1000);
    }

    #[test]
    fn every_block_is_aligned_and_keeps_its_bytes() {
        let sizes = (1..200).chain([1000, 1024, 1500, 4096, 5000, 70_000, 3 << 20]);
        for (size, shift) in sizes.flat_map(|size| (0..8).map(move |shift| (size, shift))) {
            let layout = Layout::from_size_align(size, 1 << shift).expect("a layout");
            let grown = Layout::from_size_align(size * 3, 1 << shift).expect("a layout");
            let is_aligned =
                |block: *mut u8| !block.is_null() && block.addr().is_multiple_of(layout.align());
            // SAFETY: no size is zero, and each block is used within its size and given back once.
            unsafe {
                let zeroed = Allocator.alloc_zeroed(layout);
                assert!(is_aligned(zeroed), "{layout:?}");
                let bytes = std::slice::from_raw_parts_mut(zeroed, size);
                assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
                bytes.fill(7);
                let moved = Allocator.realloc(zeroed, layout, grown.size());
                assert!(is_aligned(moved), "{grown:?}");
                let kept = std::slice::from_raw_parts(moved, size);
                assert!(kept.iter().all(|byte| *byte == 7), "{grown:?}");
                let shrunk = Allocator.realloc(moved, grown, 1);
                assert!(is_aligned(shrunk) && *shrunk == 7, "{layout:?}");
                let other = Allocator.alloc(layout);
                assert!(is_aligned(other), "{layout:?}");
                Allocator.dealloc(other, layout);
                Allocator.dealloc(shrunk, Layout::from_size_align(1, 1 << shift).expect("one"));
            }
        }
    }
}
