//! How close tables that replace others are to them.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Decimal digits to which numbers are equal, relative to what a step says; `N` unless asked
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digits<const N: u32>(pub u32);

impl<const N: u32> Digits<N> {
    /// The largest relative difference, `10^-digits`.
    #[must_use]
    pub fn tolerance(self) -> f64 {
        0.1_f64.powi(i32::try_from(self.0).unwrap_or(i32::MAX))
    }

    /// Whether nothing else was asked for.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl<const N: u32> Default for Digits<N> {
    fn default() -> Self {
        Self(N)
    }
}

/// What stands after a step that was asked for other digits; nothing otherwise.
impl<const N: u32> fmt::Display for Digits<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_default() { Ok(()) } else { write!(f, " to {} digits", self.0) }
    }
}

impl<const N: u32> JsonSchema for Digits<N> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        u32::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u32::json_schema(generator)
    }
}

/// What the error of each entry of a table is compared with, row by row: the largest entry of its
/// row and that of its column, whichever is smaller.
///
/// A result is a sum over the axes that are `summed`, of entries times values. An error that is
/// small against the largest entry of each line is the error of a table whose entries were rounded,
/// so that results are those of such a table: their backward error is small. Lines along the other
/// axes count as well, so that scaled rows and columns keep their digits, whatever they are
/// multiplied by. A result with one entry alone has the relative error of that entry.
pub fn scales(values: &[f64], shape: &[usize], summed: &BTreeSet<usize>) -> Vec<f64> {
    let long = |axis: &usize| shape[*axis] > 1;
    let mut blocks: Vec<Vec<usize>> = summed.iter().copied().filter(long).map(|axis| vec![axis]).collect();
    if blocks.is_empty() {
        return values.iter().map(|v| v.abs()).collect();
    }
    let others: Vec<usize> = (0..shape.len()).filter(|axis| !summed.contains(axis)).filter(long).collect();
    blocks.extend((!others.is_empty()).then_some(others));
    let mut scales = vec![f64::INFINITY; values.len()];
    for along in blocks {
        // the first entry of the block that an entry is in
        let first = |at: usize| {
            let start = |at: usize, axis: &usize| {
                let stride: usize = shape[axis + 1..].iter().product();
                at - at / stride % shape[*axis] * stride
            };
            along.iter().fold(at, start)
        };
        let mut largest = vec![0.0_f64; values.len()];
        for (at, value) in values.iter().enumerate() {
            let most = &mut largest[first(at)];
            *most = most.max(value.abs());
        }
        for (at, scale) in scales.iter_mut().enumerate() {
            *scale = scale.min(largest[first(at)]);
        }
    }
    scales
}

/// Whether an entry is another one up to rounding. No entry is near an infinity or a nan.
pub fn is_near(entry: f64, other: f64, tolerance: f64, scale: f64) -> bool {
    let apart = (entry - other).abs();
    apart.is_finite() && scale.is_finite() && apart <= tolerance * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_compared_with_those_of_their_row_and_column() {
        let values = [1e20, 2e20, 3.0, -5.0, 1.0, 0.5];
        let of = |summed: &[usize]| scales(&values, &[3, 2], &summed.iter().copied().collect());
        for summed in [&[0][..], &[1], &[0, 1]] {
            assert_eq!(of(summed), [1e20, 2e20, 5.0, 5.0, 1.0, 1.0]);
        }
        assert_eq!(of(&[]), values.map(f64::abs));
        // a line that is summed is one row; one that is not has results of one entry each
        let line = [1e-20, -4.0];
        assert_eq!(scales(&line, &[2], &BTreeSet::from([0])), [4.0; 2]);
        assert_eq!(scales(&line, &[1, 2], &BTreeSet::from([0])), [1e-20, 4.0]);
        // of three axes, those that are not summed are one
        let cube: Vec<f64> = (1..=8).map(f64::from).collect();
        let largest = [2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 7.0, 8.0];
        assert_eq!(scales(&cube, &[2, 2, 2], &BTreeSet::from([2])), largest);
    }

    #[test]
    fn nothing_is_near_an_infinity() {
        for x in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(!is_near(x, x, 1e-13, f64::INFINITY) && !is_near(1.0, x, 1e-13, f64::INFINITY));
            assert!(!is_near(1.0, 2.0, 1e-13, f64::INFINITY) && !is_near(x, 1.0, 1e-13, 1.0));
        }
        assert!(is_near(1.0, 1.0 + 1e-14, 1e-13, 1.0) && !is_near(1.0, 1.0 + 1e-14, 1e-13, 1e-20));
        assert!(is_near(0.0, -0.0, 0.0, 0.0));
    }
}
