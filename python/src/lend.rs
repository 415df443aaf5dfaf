//! Arrays of Python's as foreign memory: the one place of this crate with `unsafe` code.
//!
//! A launch needs addresses, and only the protocols of Python's arrays
//! (`__array_interface__`, `__cuda_array_interface__`, DLPack, buffers) say which are good. They
//! promise that the memory stays while the object lives; the package holds the objects during the
//! call.

#![allow(unsafe_code, reason = "the array protocols hand out addresses")]

use crate::bind::Array;
use purlin::runtime::{Foreign, Place, Stream};

/// The memory of an array for the time of a call, `bytes` bytes of it.
pub(crate) fn lend(array: &Array, bytes: u64) -> Foreign<'_> {
    let place = if array.is_cuda() { Place::Cuda } else { Place::Host };
    // SAFETY: the array's protocol promises the address, `Program.launch` holds the object, and
    // that nobody else writes to an array during a call is what the call's documentation demands,
    // as NumPy's does.
    let mut foreign = unsafe { Foreign::new(place, array.address(), bytes) };
    if array.is_writable() {
        // SAFETY: as above.
        foreign = unsafe { foreign.writable() };
    }
    match array.stream() {
        // SAFETY: the protocol says that it is a stream of the array's card.
        Some(stream) => unsafe { foreign.after(stream) },
        None => foreign,
    }
}

/// The stream that a user names.
pub(crate) fn stream(handle: u64) -> Stream {
    // SAFETY: the documentation of the call demands a stream of the device that outlives the call.
    unsafe { Stream::new(handle) }
}
