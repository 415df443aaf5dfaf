//! Rectangular matrices by rows on a device.

use crate::texts::{compiled, compiled_product, text};
use crate::{Call, SolveError};
use purlin_runtime::{Buffer, Device, Executable, buffer_of, upload_values};

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
        Ok(Self {
            rows,
            columns,
            n_entries: values.len(),
            multiply: compiled_product(device)?,
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
