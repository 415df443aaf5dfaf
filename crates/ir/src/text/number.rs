//! Number literals: the shortest text that reads back as the same bits.

use crate::constant::Real;
use crate::types::ScalarType;
use std::fmt;

/// Writes the shortest decimal that reads back as the same `f64`.
pub(super) fn write_real(f: &mut dyn fmt::Write, value: Real) -> fmt::Result {
    let x = value.0;
    if x.is_nan() {
        return write_nan(f, x);
    }
    // `{:?}` of a finite number holds a `.` or an `e`, which tells it from an integer
    write!(f, "{x:?}")
}

/// Writes a table value: shortest for `f32` where the element type is that.
pub(super) fn write_table_real(f: &mut dyn fmt::Write, value: Real, ty: ScalarType) -> fmt::Result {
    let x = value.0;
    if ty == ScalarType::F32 && !x.is_nan() {
        return write!(f, "{:?}", x as f32);
    }
    write_real(f, value)
}

fn write_nan(f: &mut dyn fmt::Write, x: f64) -> fmt::Result {
    if x.to_bits() == f64::NAN.to_bits() {
        f.write_str("nan")
    } else {
        write!(f, "nan(0x{:016x})", x.to_bits())
    }
}

/// Reads the digits of an integer literal; `None` if 64 bits do not hold it.
pub(super) fn read_int(digits: &str, negative: bool) -> Option<i64> {
    let magnitude: u64 = digits.parse().ok()?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads a decimal; `None` if it is beyond the largest number of the type.
pub(super) fn read_real(digits: &str, negative: bool, ty: ScalarType) -> Option<Real> {
    // straight to f32: through f64 it would be rounded twice
    let magnitude = match ty.loaded() == ScalarType::F32 {
        true => ty.rounded(digits.parse::<f32>().ok()?.into()),
        false => digits.parse::<f64>().ok()?,
    };
    magnitude.is_finite().then_some(Real(if negative { -magnitude } else { magnitude }))
}

/// Reads the bits of a number that is not a number.
pub(super) fn read_nan(hex: &str) -> Option<Real> {
    let x = f64::from_bits(u64::from_str_radix(hex, 16).ok()?);
    x.is_nan().then_some(Real(x))
}
