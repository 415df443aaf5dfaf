//! Arrays of numbers in and out of buffers.

use crate::device::{Buffer, Device};
use crate::error::RuntimeError;
use kingpost_ir::{Bf16, Complex, F16, Flag, ScalarType};

mod sealed {
    pub trait Sealed {}
}

/// A type of array elements: `f32`, `f64`, integers of 8 to 64 bits, [`Flag`],
/// [`F16`], [`Bf16`], [`Complex`].
pub trait Element: sealed::Sealed + Copy + Default + 'static {
    /// The type in kernels and plans.
    const TYPE: ScalarType;
}

macro_rules! element {
    ($($rust:ty => $scalar:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: ScalarType = ScalarType::$scalar;
        }
    )*};
}
element!(f32 => F32, f64 => F64, i32 => I32, i64 => I64, i16 => I16, i8 => I8, u8 => U8, u16 => U16);
element!(u32 => U32, u64 => U64, Flag => Bool, F16 => F16, Bf16 => Bf16);
element!(Complex<f32> => C64, Complex<f64> => C128);

/// Allocates a buffer of exactly `values` on `device` and uploads them.
///
/// # Errors
/// The device has no such memory, or its driver fails.
pub fn buffer_of<T: Element>(device: &dyn Device, values: &[T]) -> Result<Buffer, RuntimeError> {
    let buffer = device.allocate(size_of_val(values) as u64)?;
    upload_values(device, &buffer, values)?;
    Ok(buffer)
}

/// Copies `values` into `buffer`, whose size is that of all of them.
///
/// # Errors
/// As [`Device::upload`].
pub fn upload_values<T: Element>(
    device: &dyn Device,
    buffer: &Buffer,
    values: &[T],
) -> Result<(), RuntimeError> {
    // SAFETY: the sealed types are plain numbers, or transparent over one, without padding: all their bytes are initialised.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
    device.upload(buffer, bytes)
}

/// The elements of `buffer`, whose size is a multiple of theirs.
///
/// # Errors
/// As [`Device::download`].
pub fn download_values<T: Element>(device: &dyn Device, buffer: &Buffer) -> Result<Vec<T>, RuntimeError> {
    // A buffer that ends inside an element is refused by `download`, which compares sizes.
    let len = buffer.bytes() as usize / size_of::<T>();
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|e| RuntimeError::Allocation {
        bytes: buffer.bytes(),
        device: "the host".into(),
        reason: e.to_string(),
    })?;
    values.resize(len, T::default());
    let slice = values.as_mut_slice();
    // SAFETY: as in `upload_values`, and every pattern of bytes is a value of the sealed types.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast::<u8>(), size_of_val(slice)) };
    device.download(buffer, bytes)?;
    Ok(values)
}
