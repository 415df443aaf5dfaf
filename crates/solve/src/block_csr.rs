//! Matrices by rows of dense blocks on a device.

use crate::texts::text;
use crate::{Call, CsrOperator, Operator, Queue, SolveError, compile_text};
use kingpost_fem::sparse::{BlockPattern, CsrPattern};
use kingpost_runtime::{Backend, Buffer, Device, Executable, buffer_of};

/// A square matrix by rows of dense square blocks: block CSR. A block of three rows and columns takes 76
/// bytes, where rows of scalars take 108.
///
/// The strategies that assemble [block by block](kingpost_forms::import::EntryOrder::Blocks) fill it.
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
        // on a card two work-items share a row
        let text = match device.info().backend {
            Backend::Cuda => text!("block_product_by_lanes"),
            Backend::C | Backend::OpenCl => text!("block_product"),
        };
        let n_blocks = pattern.columns.len();
        Ok(Self {
            side,
            rows: pattern.row_starts.len().saturating_sub(1),
            n_blocks,
            product: compile_text(device, &text.replace("SIDE", &side.to_string()))?,
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

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let matrix = [("row_starts", &self.row_starts), ("columns", &self.columns), ("values", &self.values)];
        let arrays = [&matrix[..], &[("x", x), ("y", y)]].concat();
        queue.push(Call::of(&self.product, &[("n", self.rows), ("n_blocks", self.n_blocks)], &arrays));
    }
}

/// A copy by blocks of a matrix by rows, for products: with blocks of three a product takes 0.6 of the time
/// of rows on an H200 (2026-11-26).
pub struct BlocksOfRows {
    blocks: BlockCsrOperator,
    take: Executable,
    owners: Buffer,
}

impl BlocksOfRows {
    /// Of matrices of a pattern, which is that of square blocks; its values are poison.
    ///
    /// # Errors
    /// As [`BlockCsrOperator::new`].
    pub fn new(device: &dyn Device, pattern: &CsrPattern) -> Result<Self, SolveError> {
        let by_blocks = pattern.by_blocks();
        let blocks = BlockCsrOperator::new(device, &by_blocks)?;
        let rows = by_blocks.row_starts.windows(2).zip(0..);
        let owners: Vec<i32> =
            rows.flat_map(|(bounds, row)| (bounds[0]..bounds[1]).map(move |_| row)).collect();
        let text = include_str!("kernels/blocks_of_rows.kingpost").replace("SIDE", &blocks.side.to_string());
        let (take, owners) = (compile_text(device, &text)?, buffer_of(device, &owners)?);
        Ok(Self { blocks, take, owners })
    }

    /// Copies a matrix of the pattern.
    #[must_use]
    pub fn take<'a>(&'a self, matrix: &'a CsrOperator) -> Call<'a> {
        let sizes =
            [("n", self.blocks.rows), ("n_blocks", self.blocks.n_blocks), ("n_entries", matrix.n_entries())];
        let arrays = [
            ("starts", matrix.starts()),
            ("block_starts", &self.blocks.row_starts),
            ("owners", &self.owners),
            ("entries", matrix.values()),
            ("values", &self.blocks.values),
        ];
        Call::of(&self.take, &sizes, &arrays)
    }

    /// The copy.
    #[must_use]
    pub const fn blocks(&self) -> &BlockCsrOperator {
        &self.blocks
    }
}
