//! The interpreter against plain Rust loops, and its refusals word by word.
#![allow(clippy::unwrap_used, clippy::panic)]

mod errors;
mod externals;
mod limits;
mod loops;
mod values;

use kingpost_ir::{Affine, ScalarType};
pub(crate) use kingpost_sample::Random;

pub(crate) fn c(value: i64) -> Affine {
    Affine::constant(value)
}

pub(crate) const F64: ScalarType = ScalarType::F64;
pub(crate) const F32: ScalarType = ScalarType::F32;
pub(crate) const I32: ScalarType = ScalarType::I32;
pub(crate) const I64: ScalarType = ScalarType::I64;
