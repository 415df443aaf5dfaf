//! What a square matrix by rows of blocks consists of on a device.

use crate::{Operator, SolveError};
use kingpost_runtime::{Buffer, Device, download_values};
use nalgebra::DMatrix;
use std::sync::Arc;

/// A square matrix by rows of dense square blocks on a device, to make an [`Amg`](crate::Amg) of:
/// [`CsrOperator::block_rows`](crate::CsrOperator::block_rows) or
/// [`BlockCsrOperator::block_rows`](crate::BlockCsrOperator::block_rows).
#[derive(Clone, Copy)]
pub struct BlockRows<'m> {
    /// Rows and columns of a block.
    pub(crate) side: usize,
    /// Rows of blocks.
    pub(crate) rows: usize,
    pub(crate) n_blocks: usize,
    /// First block of each row, and the end of the last: i32 `[rows + 1]`.
    pub(crate) row_starts: &'m Arc<Buffer>,
    /// Column of each block, ascending in a row: i32 `[n_blocks]`.
    pub(crate) columns: &'m Arc<Buffer>,
    /// f64 `[n_blocks, side, side]`.
    pub(crate) values: &'m Buffer,
    /// What multiplies by it.
    pub(crate) operator: &'m dyn Operator,
}

impl<'m> BlockRows<'m> {
    /// Rows of scalars.
    pub(crate) const fn unknowns(&self) -> usize {
        self.side * self.rows
    }

    /// Scalars.
    pub(crate) const fn entries(&self) -> usize {
        self.side * self.side * self.n_blocks
    }

    pub(crate) const fn sizes(&self) -> [(&'static str, usize); 2] {
        [("n", self.rows), ("n_blocks", self.n_blocks)]
    }

    pub(crate) fn lists(&self) -> [(&'static str, &'m Buffer); 2] {
        [("row_starts", self.row_starts), ("columns", self.columns)]
    }

    /// All of it, on the host.
    ///
    /// # Errors
    /// A failing driver.
    pub(crate) fn dense(&self, device: &dyn Device) -> Result<DMatrix<f64>, SolveError> {
        let [starts, columns] =
            [self.row_starts, self.columns].map(|list| download_values::<i32>(device, list));
        let (starts, columns) = (starts?, columns?);
        let (values, side): (Vec<f64>, usize) = (download_values(device, self.values)?, self.side);
        let mut dense = DMatrix::zeros(self.unknowns(), self.unknowns());
        for (row, bounds) in starts.windows(2).enumerate() {
            for k in bounds[0] as usize..bounds[1] as usize {
                let (first, block) = (side * columns[k] as usize, &values[side * side * k..][..side * side]);
                for (place, value) in block.iter().enumerate() {
                    dense[(side * row + place / side, first + place % side)] = *value;
                }
            }
        }
        Ok(dense)
    }
}
