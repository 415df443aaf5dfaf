//! Memory that the caller owns, lent for one launch.
//!
//! An array of another library is passed as it lies: the host backend takes host memory and the
//! CUDA backend memory of its card without a copy. OpenCL shares host memory where its device is
//! the host's processor. What a device cannot reach is copied to it and, if it is written, back.

use std::marker::PhantomData;
use std::ops::Range;

/// Where foreign memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The host's memory.
    Host,
    /// The memory of a CUDA card.
    Cuda,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Host => "host memory",
            Self::Cuda => "the memory of a CUDA card",
        })
    }
}

/// When the values of foreign memory are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// When a launch gets them.
    Now,
    /// When the work on this stream has ended.
    After(u64),
    /// When all work on the card has ended: nobody says which stream makes them.
    AfterAll,
}

/// A block of memory that the caller owns.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'a> {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) place: Place,
    pub(crate) writable: bool,
    pub(crate) ready: Ready,
    owner: PhantomData<&'a ()>,
}

impl<'a> Foreign<'a> {
    /// `bytes` bytes from `address` on, which only are read.
    ///
    /// # Safety
    /// During `'a` the block is allocated at that place, and nothing writes to it while a launch
    /// that got it runs.
    pub unsafe fn new(place: Place, address: u64, bytes: u64) -> Self {
        Self { address, bytes, place, writable: false, ready: Ready::Now, owner: PhantomData }
    }

    /// The same block, which may be written, too.
    ///
    /// # Safety
    /// Nothing else reads or writes the block while a launch that got it runs.
    #[must_use]
    pub unsafe fn writable(self) -> Self {
        Self { writable: true, ..self }
    }

    /// The values are there when the work on a CUDA stream has ended, which a launch on another
    /// stream waits for.
    ///
    /// # Safety
    /// The number is the handle of a stream of the same card.
    #[must_use]
    pub unsafe fn after(self, stream: u64) -> Self {
        Self { ready: Ready::After(stream), ..self }
    }

    /// The values are there when all work on the card has ended, which a launch without a stream
    /// waits for. With a stream it is the caller's to order them before it.
    #[must_use]
    pub fn after_all(self) -> Self {
        Self { ready: Ready::AfterAll, ..self }
    }

    /// A block elsewhere of which the same holds.
    ///
    /// # Safety
    /// What this block was promised to be, by [`Foreign::new`] and after it.
    #[must_use]
    pub unsafe fn moved(self, address: u64) -> Self {
        Self { address, ..self }
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The addresses, of which none may be written by one argument and used by another.
    pub(crate) fn region(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }

    /// The bytes, if they lie on the host.
    pub(crate) fn host(&self) -> Option<&'a [u8]> {
        let bytes = usize::try_from(self.bytes).ok()?;
        if bytes == 0 {
            return Some(&[]);
        }
        let pointer =
            (self.place == Place::Host && self.address != 0).then_some(self.address as *const u8)?;
        // SAFETY: `new` promises that the block is there during `'a` and not written in a launch.
        Some(unsafe { std::slice::from_raw_parts(pointer, bytes) })
    }

    /// The bytes to be written, if they lie on the host and may be.
    pub(crate) fn host_mut(&self) -> Option<&'a mut [u8]> {
        let bytes = usize::try_from(self.bytes).ok()?;
        if bytes == 0 {
            return Some(&mut []);
        }
        let usable = self.writable && self.place == Place::Host && self.address != 0;
        let pointer = usable.then_some(self.address as *mut u8)?;
        // SAFETY: `new` promises that the block is there during `'a`, `writable` that nothing else
        // uses it; a launch takes this reference once, when its kernel has ended.
        Some(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
    }
}
