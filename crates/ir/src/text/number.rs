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
    match ty {
        ScalarType::F32 if !x.is_nan() => write!(f, "{:?}", x as f32),
        _ => write_real(f, value),
    }
}

fn write_nan(f: &mut dyn fmt::Write, x: f64) -> fmt::Result {
    if x.to_bits() == f64::NAN.to_bits() {
        f.write_str("nan")
    } else {
        write!(f, "nan(0x{:016x})", x.to_bits())
    }
}
