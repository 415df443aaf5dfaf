//! Arrays of Python's as foreign memory: the one place of this crate with `unsafe` code.
//!
//! A launch needs addresses, and only the protocols of Python's arrays
//! (`__array_interface__`, `__cuda_array_interface__`, DLPack, buffers) say which are good. They
//! promise that the memory stays while the object lives; the package holds the objects during the
//! call.

#![allow(unsafe_code, reason = "the array protocols hand out addresses")]

use crate::bind::Array;
use purlin::interp::Value;
use purlin::ir::ScalarType;
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

/// A copy of the elements of an array of the host's, row by row. The type is that of its elements,
/// as [`bind`](crate::bind::bind) checks.
pub(crate) fn copied(array: &Array, ty: ScalarType) -> Value {
    match ty {
        ScalarType::F64 => Value::F64(elements(array)),
        ScalarType::F32 => Value::F32(elements(array)),
        ScalarType::I16 => Value::I16(elements(array)),
        ScalarType::I32 => Value::I32(elements(array)),
        ScalarType::I64 => Value::I64(elements(array)),
    }
}

fn elements<T: Copy>(array: &Array) -> Vec<T> {
    let start = array.address() as *const T;
    let read = |offset: i64| {
        // SAFETY: the array's protocol promises that its elements lie at these places,
        // `Program.check` holds the object, and nobody writes to it during a call.
        unsafe { start.byte_offset(offset as isize).read_unaligned() }
    };
    array.offsets(size_of::<T>() as i64).into_iter().map(read).collect()
}

/// The stream that a user names.
pub(crate) fn stream(handle: u64) -> Stream {
    // SAFETY: the documentation of the call demands a stream of the device that outlives the call.
    unsafe { Stream::new(handle) }
}
