//! The interpreter against plain Rust loops, and its refusals word by word.
#![allow(clippy::unwrap_used, clippy::panic)]

mod errors;
mod launch;
mod limits;
mod loops;
mod values;

use crate::{Affine, ScalarType};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Fresh pseudo-random numbers (SplitMix64); print `seed` when an assertion fails.
pub(crate) struct Random {
    pub(crate) seed: u64,
    state: u64,
}

impl Random {
    pub(crate) fn new() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        Self { seed, state: seed }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between -1 and 1.
    pub(crate) fn real(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn reals(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.real()).collect()
    }

    /// From `lo` to `hi - 1`.
    pub(crate) fn int(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.bits() % (hi - lo) as u64) as i64
    }
}

pub(crate) fn c(value: i64) -> Affine {
    Affine::constant(value)
}

pub(crate) const F64: ScalarType = ScalarType::F64;
pub(crate) const F32: ScalarType = ScalarType::F32;
pub(crate) const I32: ScalarType = ScalarType::I32;
pub(crate) const I64: ScalarType = ScalarType::I64;
