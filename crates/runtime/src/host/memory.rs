//! Memory of the host, aligned for vectors and reachable through a shared reference.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Bytes: one cache line, and the widest vector there is.
const ALIGNMENT: usize = 64;

/// A block of host memory that kernels write through a raw pointer.
pub(crate) struct HostMemory {
    pointer: NonNull<u8>,
    bytes: usize,
    /// How it was allocated; none if it is not ours.
    layout: Option<Layout>,
}

// SAFETY: the block is owned or lent for the time of a launch, and every access goes through
// `Checked`, which runs one at a time.
unsafe impl Send for HostMemory {}
// SAFETY: as above: shared references give no access outside the device's queue lock.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// `bytes` (at least 1) of uninitialised memory, or none if there is not so much.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has a non-zero size.
        let pointer = NonNull::new(unsafe { alloc(layout) })?;
        Some(Self { pointer, bytes: layout.size(), layout: Some(layout) })
    }

    /// Memory that the caller owns.
    pub(crate) fn lent(address: u64, bytes: u64) -> Option<Self> {
        let pointer = NonNull::new(address as *mut u8)?;
        Some(Self { pointer, bytes: usize::try_from(bytes).ok()?, layout: None })
    }

    /// Start of the block.
    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout and freed once.
            unsafe { dealloc(self.pointer.as_ptr(), layout) }
        }
    }
}
