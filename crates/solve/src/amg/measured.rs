//! What is measured of the rows of a matrix, in a pass over its numbers.

use crate::sorting::BLOCK;
use crate::texts::{compiled, text};
use crate::{BlockRows, Call, SolveError, put};
use kingpost_runtime::{Buffer, Device, Executable};
use std::iter::successors;

/// What stands for no bound.
pub(super) const NO_BOUND: f64 = 1e300;

/// The kernels.
pub(super) struct MeasureKernels {
    rows: Executable,
    largest: Executable,
}

/// What is measured.
pub(super) struct Measured {
    /// The inverse of the diagonal, f64 `[unknowns]`.
    pub inverse: Buffer,
    /// The norms of the blocks on the diagonal, f64 `[rows]`.
    pub norms: Buffer,
    /// What no eigenvalue of the matrix times `inverse` is beyond, f64 `[1]`; [`NO_BOUND`] if an
    /// entry on the diagonal is negative.
    pub bound: Buffer,
}

impl MeasureKernels {
    /// Of matrices of blocks of `side` rows.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device, side: usize) -> Result<Self, SolveError> {
        let rows = text!("aggregation/measured_rows").replace("SIDE", &side.to_string());
        Ok(Self { rows: compiled(device, &rows)?, largest: compiled(device, text!("largest_of_blocks"))? })
    }

    /// Measures the rows of a matrix. On coarse levels entries of zero on its diagonal become one first,
    /// which are those of basis vectors of zeros.
    ///
    /// # Errors
    /// No memory, a failing driver.
    ///
    /// # Source
    /// Gershgorin 1931.
    pub fn rows(
        &self,
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        is_finest: bool,
    ) -> Result<Measured, SolveError> {
        let numbers = |n: usize| device.allocate_unset(8 * n as u64);
        let (inverse, norms) = (numbers(matrix.unknowns())?, numbers(matrix.rows)?);
        // of rows, of their blocks, and so on
        let sizes = successors(Some(matrix.rows.max(1)), |n| (*n > 1).then(|| n.div_ceil(BLOCK)));
        let sizes: Vec<usize> = sizes.collect();
        let mut bounds = sizes.iter().map(|n| numbers(*n)).collect::<Result<Vec<_>, _>>()?;
        let of_matrix = [&matrix.sizes()[..], &[("is_completed", usize::from(!is_finest))]].concat();
        let arrays = [("values", matrix.values), ("inverse", &inverse), ("norms", &norms)];
        let arrays = [&matrix.lists()[..], &arrays, &[("bounds", &bounds[0])]].concat();
        let mut calls = vec![Call::of(&self.rows, &of_matrix, &arrays)];
        calls.extend(bounds.windows(2).zip(&sizes).map(|(pair, n)| {
            Call::of(&self.largest, &[("n", *n)], &[("a", &pair[0]), ("largest", &pair[1])])
        }));
        put(device, &calls)?;
        drop(calls);
        let bound = bounds.swap_remove(sizes.len() - 1);
        Ok(Measured { inverse, norms, bound })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::CsrOperator;
    use kingpost_runtime::{download_values, open, upload_values};
    use kingpost_sample::Random;

    /// More rows than a block has.
    #[test]
    fn rows_bound_the_eigenvalues_of_all() {
        let mut random = Random::new();
        let n = BLOCK + 37;
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for (i, more) in random.reals(n).into_iter().enumerate() {
            // zero on the diagonal of one row, nothing else in another one
            let own = [i.wrapping_sub(1), i, i + 1].into_iter().filter(|j| *j < n);
            for j in own.filter(|j| i != 11 || *j == i) {
                columns.push(j as i32);
                let size = 2.5 + more;
                values.push(if (i, j) == (7, 7) {
                    0.0
                } else if i == j {
                    size
                } else {
                    -0.5 * size
                });
            }
            starts.push(columns.len() as i32);
        }
        for (name, is_finest) in [("c", true), ("c", false), ("opencl", false)] {
            let device = &*open(name).unwrap();
            let matrix = CsrOperator::of_rows(device, &starts, &columns).unwrap();
            upload_values(device, matrix.values(), &values).unwrap();
            let rows = matrix.block_rows().unwrap();
            let found = MeasureKernels::new(device, 1).unwrap().rows(device, &rows, is_finest).unwrap();
            let of = |buffer: &Buffer| download_values::<f64>(device, buffer).unwrap();
            let (mut most, inverse, norms) = (1.0_f64, of(&found.inverse), of(&found.norms));
            for i in 0..n {
                let own = starts[i] as usize..starts[i + 1] as usize;
                let entry = values[own.clone().find(|k| columns[*k] as usize == i).unwrap()];
                let scale = if entry == 0.0 { 1.0 } else { 1.0 / entry };
                assert_eq!([inverse[i], norms[i]], [scale, entry.abs()], "{name}, {i}");
                most = most.max(scale * own.map(|k| values[k].abs()).sum::<f64>());
            }
            assert!((of(&found.bound)[0] - most).abs() <= 1e-15 * most, "{name}, seed {}", random.seed);
            let completed = values.iter().filter(|value| **value != 0.0).count();
            let kept = of(matrix.values()).iter().filter(|value| **value != 0.0).count();
            assert_eq!(kept, completed + usize::from(!is_finest));
            values[0] = -values[0];
            upload_values(device, matrix.values(), &values).unwrap();
            let found = MeasureKernels::new(device, 1).unwrap().rows(device, &rows, is_finest).unwrap();
            assert_eq!(of(&found.bound), [NO_BOUND]);
            values[0] = -values[0];
        }
    }
}
