//! Double-single numbers in registers.

use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Stopped, Work};
use kingpost_primitives::primitives::UseDoubleSingle;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Another mapping, with pairs of `f32` for what is computed in `f64`: for cards whose operations
/// on `f64` are a 64th of those on `f32`.
///
/// Vectors stay `f64`. Matrix instructions of `f64` are computed by their meaning, so that mappings
/// without them are the ones to combine.
///
/// # Errors
/// A kernel without `f64` in registers or local memory.
///
/// # Source
/// Dekker 1971; Joldes et al. 2017.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleSingle {}

impl fmt::Display for DoubleSingle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("double-single numbers")
    }
}

impl Arguments for DoubleSingle {
    const NAME: &'static str = "double_single";
    const SUMMARY: &'static str = "Pairs of f32 for what is computed in f64, on cards of few units for that.";
}

impl Combinator for DoubleSingle {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        // last: steps before it compare tables, and know no pairs
        on.hand_on(then)?;
        Ok(on.schedule().apply(UseDoubleSingle {}).map(drop)?)
    }

    fn is_over_modes(&self, then: &Mapping) -> bool {
        then.is_over_modes()
    }

    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{then}, {self}")
    }
}
