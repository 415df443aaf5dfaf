//! Memory of a card that nobody uses, kept for whoever allocates next.

use cudarc::driver::sys::CUdeviceptr;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a block that is kept, at most: longer ones are allocated rarely, and go back to the
/// driver.
const LONGEST: u64 = 1 << 28;
/// What is kept of the memory of a card, at most, and of a large one in bytes.
const SHARE: u64 = 16;
const KEPT: u64 = 1 << 31;
/// The same of the host's memory.
const KEPT_OF_HOST: u64 = 1 << 20;
/// Extents between two powers of two: arrays of about one length share blocks, of which at most an
/// eighth is unused.
const STEPS: u64 = 8;

/// Blocks that were freed. The driver takes longer to map and to unmap memory than short kernels
/// run.
pub(super) struct Spare {
    /// Bytes that are kept, at most.
    most: u64,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    of_size: BTreeMap<u64, Vec<CUdeviceptr>>,
    /// With their sizes: what used them may not have ended.
    lately: Vec<(u64, CUdeviceptr)>,
    bytes: u64,
}

/// What memory that was freed has to be waited for. Work of the default stream comes after all
/// that was put there before, so that its memory can be lent while it is still used.
#[derive(Default)]
pub(super) struct Order {
    /// Whether work was put on another stream that nobody has waited for.
    elsewhere: AtomicBool,
    /// Whether memory was lent that work of the default stream may still use.
    early: AtomicBool,
}

impl Order {
    /// Whether memory that was freed is to be waited for before it is lent.
    pub(super) fn must_wait(&self) -> bool {
        let waits = self.elsewhere.swap(false, AcqRel);
        if !waits {
            self.early.store(true, Release);
        }
        waits
    }

    /// Whether work of another stream is to wait for the default stream first.
    pub(super) fn is_early(&self) -> bool {
        self.early.swap(false, AcqRel)
    }

    /// Work is on another stream.
    pub(super) fn put_elsewhere(&self) {
        self.elsewhere.store(true, Release);
    }
}

impl Spare {
    /// Of a card with so much memory.
    pub(super) fn of(total: u64) -> Self {
        Self { most: KEPT.min(total / SHARE), blocks: Mutex::default() }
    }

    /// Of the memory of the host that cards reach, of which a few numbers are seen.
    pub(super) fn of_host() -> Self {
        Self { most: KEPT_OF_HOST, blocks: Mutex::default() }
    }

    /// Bytes to allocate where some are asked for.
    pub(super) fn size(bytes: u64) -> u64 {
        if bytes == 0 || bytes > LONGEST {
            return bytes;
        }
        let step = (bytes.next_power_of_two() / 2 / STEPS).max(512);
        bytes.next_multiple_of(step)
    }

    /// A block of a size, if one is there. What may still use those that were freed lately ends
    /// with `wait`, which says whether it could.
    pub(super) fn take(&self, size: u64, wait: impl FnOnce() -> bool) -> Option<CUdeviceptr> {
        let mut blocks = self.blocks();
        let is_free = blocks.of_size.get(&size).is_some_and(|free| !free.is_empty());
        if !is_free {
            if !blocks.lately.iter().any(|(of, _)| *of == size) || !wait() {
                return None;
            }
            for (of, block) in take(&mut blocks.lately) {
                blocks.of_size.entry(of).or_default().push(block);
            }
        }
        let block = blocks.of_size.get_mut(&size)?.pop()?;
        blocks.bytes -= size;
        Some(block)
    }

    /// Keeps a block that its owner no longer uses; the blocks that are to be freed. Where there is
    /// no room, those before go, whose sizes nobody asked for.
    pub(super) fn keep(&self, size: u64, block: CUdeviceptr) -> Vec<CUdeviceptr> {
        if size == 0 || size > LONGEST.min(self.most) {
            return vec![block];
        }
        let is_full = self.blocks().bytes + size > self.most;
        let freed = if is_full { self.drain().collect() } else { Vec::new() };
        let mut blocks = self.blocks();
        blocks.bytes += size;
        blocks.lately.push((size, block));
        freed
    }

    /// All blocks, to be freed.
    pub(super) fn drain(&self) -> impl Iterator<Item = CUdeviceptr> + use<> {
        let Blocks { of_size, lately, .. } = take(&mut *self.blocks());
        of_size.into_values().flatten().chain(lately.into_iter().map(|(_, block)| block))
    }

    /// What a thread that panicked left is whole.
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_what_is_asked_for_and_little_more() {
        for bytes in (1..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789, LONGEST]) {
            let size = Spare::size(bytes);
            assert!(size >= bytes && size - bytes <= (bytes / STEPS).max(511), "{bytes}: {size}");
            assert_eq!(Spare::size(size), size);
        }
        assert_eq!([0, LONGEST + 1].map(Spare::size), [0, LONGEST + 1]);
    }

    #[test]
    fn streams_wait_for_memory_that_was_lent_early() {
        let order = Order::default();
        assert!(!order.is_early());
        // the default stream alone waits for nobody, and another one for it, once
        assert!(!order.must_wait());
        assert_eq!([order.is_early(), order.is_early()], [true, false]);
        order.put_elsewhere();
        assert!(order.must_wait());
        // all was waited for
        assert!(!order.is_early());
        assert!(!order.must_wait() && order.is_early());
    }

    #[test]
    fn blocks_are_lent_once_and_kept_up_to_a_share() {
        let spare = Spare::of(SHARE * 4096);
        assert!(spare.keep(1024, 1).is_empty() && spare.keep(1024, 2).is_empty());
        // nobody waits for blocks of another size, and none is lent before what used it has ended
        let waits = std::cell::Cell::new(0);
        let wait = || {
            waits.set(waits.get() + 1);
            true
        };
        let take = |size| spare.take(size, wait);
        assert_eq!((take(512), waits.get()), (None, 0));
        assert_eq!(spare.take(1024, || false), None);
        let mut lent = [take(1024), take(1024)];
        lent.sort_unstable();
        assert_eq!((lent, waits.get()), ([Some(1), Some(2)], 1));
        assert_eq!((take(1024), take(512)), (None, None));
        assert!(spare.keep(2048, 3).is_empty() && spare.keep(1024, 1).is_empty());
        // 4096 bytes are kept
        assert_eq!(spare.keep(2048, 4), [3, 1]);
        assert_eq!((take(1024), take(2048), take(2048)), (None, Some(4), None));
        assert_eq!((spare.keep(8192, 5), spare.keep(0, 6)), (vec![5], vec![6]));
        assert!(spare.keep(512, 7).is_empty());
        assert_eq!(spare.drain().collect::<Vec<_>>(), [7]);
    }
}
