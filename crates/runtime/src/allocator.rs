//! The allocator of programs that generate code: mimalloc.

use libmimalloc_sys as sys;
use std::alloc::{GlobalAlloc, Layout};

/// mimalloc as `#[global_allocator]`.
///
/// The engine allocates a million small blocks for a tiling, so that what a call costs counts.
/// Blocks aligned to a word take the plain functions of mimalloc, which align to a word at least;
/// the functions with an alignment take half as many instructions again (crate `mimalloc` 0.1 calls
/// only these).
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

/// Whether a block of any size has this alignment.
fn is_word_aligned(layout: Layout) -> bool {
    layout.align() <= align_of::<usize>()
}

// SAFETY: the functions of mimalloc return null or a block of the size and alignment asked for, and
// take back what they gave whichever of them gave it.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: they may be called with any size, and with an alignment that is a power of two.
        let block = unsafe {
            match is_word_aligned(layout) {
                true => sys::mi_malloc(layout.size()),
                false => sys::mi_malloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let block = unsafe {
            match is_word_aligned(layout) {
                true => sys::mi_zalloc(layout.size()),
                false => sys::mi_zalloc_aligned(layout.size(), layout.align()),
            }
        };
        block.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller gives back a block of this allocator.
        unsafe { sys::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block is one of this allocator, with this alignment.
        let block = unsafe {
            match is_word_aligned(layout) {
                true => sys::mi_realloc(block.cast(), size),
                false => sys::mi_realloc_aligned(block.cast(), size, layout.align()),
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every function keeps size, alignment and contents, on both sides of the word.
    #[test]
    fn blocks_have_their_alignment_and_contents() {
        for align in [1, 8, 16, 64, 4096] {
            for size in [1, 7, 8, 12, 24, 100, 5000] {
                let layout = Layout::from_size_align(size, align).expect("a power of two");
                // SAFETY: blocks are used within their size and given back once, with their layout.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    assert!(!zeroed.is_null() && zeroed.align_offset(align) == 0, "{layout:?}");
                    assert!((0..size).all(|k| *zeroed.add(k) == 0));
                    let block = Allocator.alloc(layout);
                    assert!(!block.is_null() && block.align_offset(align) == 0, "{layout:?}");
                    (0..size).for_each(|k| *block.add(k) = k as u8);
                    let larger = Allocator.realloc(block, layout, 3 * size);
                    assert!(!larger.is_null() && larger.align_offset(align) == 0, "{layout:?}");
                    assert!((0..size).all(|k| *larger.add(k) == k as u8));
                    let after = Layout::from_size_align(3 * size, align).expect("a power of two");
                    Allocator.dealloc(larger, after);
                    Allocator.dealloc(zeroed, layout);
                }
            }
        }
    }
}
