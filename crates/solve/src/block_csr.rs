//! Matrices by rows of dense blocks on a device.

use crate::{Call, Operator, SolveError, compile_text};
use purlin_forms::import::BlockPattern;
use purlin_runtime::{Buffer, Device, Executable, buffer_of};

/// A square matrix by rows of dense square blocks: block CSR. A block of three rows and columns takes 76
/// bytes, where rows of scalars take 108.
///
/// The strategies that assemble [block by block](purlin_forms::import::EntryOrder::Blocks) fill it.
pub struct BlockCsrOperator {
    side: usize,
    rows: usize,
    n_blocks: usize,
    product: Executable,
    row_starts: Buffer,
    columns: Buffer,
    values: Buffer,
}

impl BlockCsrOperator {
    /// A matrix of this pattern; its values are poison.
    ///
    /// # Errors
    /// Blocks that are not square, no memory, a device that refuses the kernel.
    pub fn new(device: &dyn Device, pattern: &BlockPattern) -> Result<Self, SolveError> {
        let [side, width] = pattern.extents;
        if side != width {
            return Err(SolveError::Length { what: "row of a block", found: width, needed: side });
        }
        let text = include_str!("kernels/block_product.purlin").replace("SIDE", &side.to_string());
        let n_blocks = pattern.columns.len();
        Ok(Self {
            side,
            rows: pattern.row_starts.len().saturating_sub(1),
            n_blocks,
            product: compile_text(device, &text)?,
            row_starts: buffer_of(device, &pattern.row_starts)?,
            columns: buffer_of(device, &pattern.columns)?,
            values: device.allocate(8 * (n_blocks * side * side) as u64)?,
        })
    }

    /// The entries, f64 `[blocks, side, side]`.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        &self.values
    }
}

impl Operator for BlockCsrOperator {
    fn size(&self) -> usize {
        self.side * self.rows
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, calls: &mut Vec<Call<'a>>) {
        let matrix = [("row_starts", &self.row_starts), ("columns", &self.columns), ("values", &self.values)];
        let arrays = [&matrix[..], &[("x", x), ("y", y)]].concat();
        calls.push(Call::of(&self.product, &[("n", self.rows), ("n_blocks", self.n_blocks)], &arrays));
    }
}
