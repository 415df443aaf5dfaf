//! Arrays of Python's as foreign memory. With [`crate::reading`] and [`crate::exchange`], the places with `unsafe` code.
//!
//! A launch needs addresses, and only the protocols of Python's arrays
//! (`__array_interface__`, `__cuda_array_interface__`, DLPack, buffers) say which are good. They
//! promise that the memory stays while the object lives; the package holds the objects during the
//! call.

#![allow(unsafe_code, reason = "the array protocols hand out addresses")]

use crate::bind::Array;
use kingpost::interp::Value;
use kingpost::ir::{Bf16, Complex, F16, Flag, ScalarType};
use kingpost::runtime::{Foreign, Place, Stream};

/// The memory of an array, `bytes` bytes of it, for as long as the package holds its object.
pub(crate) fn lend(array: &Array, bytes: u64) -> Foreign<'static> {
    let place = if array.is_cuda() { Place::Cuda } else { Place::Host };
    // SAFETY: the array's protocol promises the address, the methods of `Program` hold the object
    // during a call and `BoundCall` for its life, and that nobody else writes to an array during a
    // call is what the call's documentation demands, as NumPy's does.
    let mut foreign = unsafe { Foreign::new(place, array.address(), bytes) };
    if array.is_writable() {
        // SAFETY: as above.
        foreign = unsafe { foreign.writable() };
    }
    match array.stream() {
        None => foreign,
        // no stream of the protocols: the package's word for one that nobody tells
        Some(0) => foreign.after_all(),
        // SAFETY: the protocol says that it is a stream of the array's card.
        Some(stream) => unsafe { foreign.after(stream) },
    }
}

/// The memory of another array of the same layout, with the same promises.
pub(crate) fn moved(foreign: Foreign<'static>, address: u64) -> Foreign<'static> {
    // SAFETY: `Reading` found the type, the extents and the strides of the first, so that the new address
    // is as good; the caller's arguments hold the object during the call.
    unsafe { foreign.moved(address) }
}

/// The elements of an array whose bytes were fetched, from the first to the last, row by row. None if
/// one of them lies elsewhere, as [`bind`](crate::bind::bind) excludes.
pub(crate) fn elements(array: &Array, bytes: &[u8], ty: ScalarType) -> Option<Value> {
    macro_rules! read {
        ($($variant:ident: $ty:ty),*) => {
            match ty {
                $(ScalarType::$variant => read(array, bytes, <$ty>::from_ne_bytes).map(Value::$variant),)*
                ScalarType::F16 => read(array, bytes, |b: [u8; 2]| F16(u16::from_ne_bytes(b))).map(Value::F16),
                ScalarType::Bf16 => read(array, bytes, |b: [u8; 2]| Bf16(u16::from_ne_bytes(b))).map(Value::Bf16),
                ScalarType::C64 => read(array, bytes, single).map(Value::C64),
                ScalarType::C128 => read(array, bytes, double).map(Value::C128),
                ScalarType::Bool => read(array, bytes, |[byte]: [u8; 1]| Flag(byte)).map(Value::Bool),
                ScalarType::Record(_) => None, // arrays hold a field each
            }
        };
    }
    read!(F64: f64, F32: f32, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64)
}

fn single([a, b, c, d, e, f, g, h]: [u8; 8]) -> Complex<f32> {
    Complex { re: f32::from_ne_bytes([a, b, c, d]), im: f32::from_ne_bytes([e, f, g, h]) }
}

fn double(bytes: [u8; 16]) -> Complex<f64> {
    let part = |start: usize| f64::from_ne_bytes(std::array::from_fn(|k| bytes[start + k]));
    Complex { re: part(0), im: part(8) }
}

fn read<T, const SIZE: usize>(array: &Array, bytes: &[u8], of: fn([u8; SIZE]) -> T) -> Option<Vec<T>> {
    let at = |offset: i64| {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(SIZE)?)?.try_into().ok().map(of)
    };
    array.offsets(SIZE as i64).into_iter().map(at).collect()
}

/// The stream that a user names.
pub(crate) fn stream(handle: u64) -> Stream {
    // SAFETY: the documentation of the call demands a stream of the device that outlives the call.
    unsafe { Stream::new(handle) }
}
