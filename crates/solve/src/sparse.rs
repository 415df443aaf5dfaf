//! Rectangular matrices by rows on a device.

use crate::texts::{compiled, compiled_product, text};
use crate::{Call, SolveError};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of, upload_values};
use rayon::prelude::*;

/// Entries of a row, on average, from which on a sub-group takes a row: a work-item that takes one alone
/// reads a sector of memory for each entry.
const LONG: usize = 32;

/// A matrix by rows with its entries, of any number of rows and columns.
pub(crate) struct SparseMatrix {
    pub rows: usize,
    pub columns: usize,
    n_entries: usize,
    multiply: Executable,
    add: Executable,
    row_starts: Buffer,
    at: Buffer,
    values: Buffer,
}

impl SparseMatrix {
    pub fn new(
        device: &dyn Device,
        [rows, columns]: [usize; 2],
        row_starts: &[i32],
        at: &[i32],
        values: &[f64],
    ) -> Result<Self, SolveError> {
        let is_long = values.len() >= LONG * rows.max(1);
        Ok(Self {
            rows,
            columns,
            n_entries: values.len(),
            multiply: if is_long {
                compiled(device, text!("long_product"))?
            } else {
                compiled_product(device)?
            },
            add: compiled(device, text!("add_product"))?,
            row_starts: buffer_of(device, row_starts)?,
            at: buffer_of(device, at)?,
            values: buffer_of(device, values)?,
        })
    }

    /// Overwrites the entries.
    pub fn set_values(&self, device: &dyn Device, values: &[f64]) -> Result<(), SolveError> {
        Ok(upload_values(device, &self.values, values)?)
    }

    /// `y = A x`
    pub fn times<'a>(&'a self, x: &'a Buffer, y: &'a Buffer) -> Call<'a> {
        self.call(&self.multiply, x, y)
    }

    /// `y += A x`
    pub fn add_times<'a>(&'a self, x: &'a Buffer, y: &'a Buffer) -> Call<'a> {
        self.call(&self.add, x, y)
    }

    fn call<'a>(&'a self, executable: &'a Executable, x: &'a Buffer, y: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.rows), ("n_columns", self.columns), ("n_entries", self.n_entries)];
        let matrix = [("row_starts", &self.row_starts), ("columns", &self.at), ("values", &self.values)];
        Call::of(executable, &sizes, &[&matrix[..], &[("x", x), ("y", y)]].concat())
    }
}

/// Where the entry on the diagonal of each row stands.
///
/// # Errors
/// [`SolveError::NoDiagonal`].
pub(crate) fn diagonal_of(row_starts: &[i32], columns: &[i32]) -> Result<Vec<i32>, SolveError> {
    let of_row = |(row, bounds): (usize, &[i32])| {
        let own = &columns[bounds[0] as usize..bounds[1] as usize];
        own.binary_search(&(row as i32)).map_or(-1, |place| bounds[0] + place as i32)
    };
    let found: Vec<i32> = row_starts.par_windows(2).enumerate().map(of_row).collect();
    match found.iter().position(|place| *place < 0) {
        Some(row) => Err(SolveError::NoDiagonal { row }),
        None => Ok(found),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use kingpost_runtime::{download_values, open};
    use kingpost_sample::Random;

    #[test]
    fn rows_of_any_length_are_multiplied() {
        let mut random = Random::new();
        let (rows, columns) = (37, 90);
        for name in ["c", "opencl"] {
            let device = open(name).unwrap();
            // short rows, and long ones of which some are empty or no multiple of a sub-group
            for longest in [9, 180] {
                let (mut starts, mut at) = (vec![0_i32], Vec::new());
                for row in 0..rows {
                    let length = if row == 3 { 0 } else { random.int(longest / 2, longest + 1) };
                    at.extend((0..length).map(|_| random.int(0, columns as i64) as i32));
                    starts.push(at.len() as i32);
                }
                let (values, x) = (random.reals(at.len()), random.reals(columns));
                let matrix = SparseMatrix::new(&*device, [rows, columns], &starts, &at, &values).unwrap();
                let (from, to) =
                    (buffer_of(&*device, &x).unwrap(), device.allocate(8 * rows as u64).unwrap());
                device.fill(&to, 0xFF).unwrap();
                run(&*device, &[matrix.times(&from, &to)]).unwrap();
                let found: Vec<f64> = download_values(&*device, &to).unwrap();
                for (row, found) in found.iter().enumerate() {
                    let own = starts[row] as usize..starts[row + 1] as usize;
                    let expected: f64 = own.map(|k| values[k] * x[at[k] as usize]).sum();
                    // sums of at most 180 products of numbers below one
                    let close = (found - expected).abs() <= 1e-13;
                    assert!(close, "{name}, row {row} of {longest}, seed {}", random.seed);
                }
            }
        }
    }
}
