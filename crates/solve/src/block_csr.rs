//! Matrices by rows of dense blocks on a device.

use crate::texts::{compiled, compiled_block_product, text};
use crate::{BlockRows, Call, CsrOperator, Operator, Queue, SolveError, compile_text};
use kingpost_fem::sparse::{BlockPattern, CsrPattern};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of, download_values};
use rayon::prelude::*;
use std::sync::Arc;

/// A matrix by rows of dense blocks: block CSR. A block of three rows and columns takes 76 bytes, where rows of
/// scalars take 108.
///
/// The strategies that assemble [block by block](kingpost_forms::import::EntryOrder::Blocks) fill it.
pub struct BlockCsrOperator {
    extents: [usize; 2],
    rows: usize,
    columns: usize,
    n_blocks: usize,
    product: Executable,
    row_starts: Arc<Buffer>,
    at: Arc<Buffer>,
    values: Buffer,
}

impl BlockCsrOperator {
    /// A square matrix of this pattern; its values are poison.
    ///
    /// # Errors
    /// Blocks that are not square, no memory, a device that refuses the kernel.
    pub fn new(device: &dyn Device, pattern: &BlockPattern) -> Result<Self, SolveError> {
        let [side, width] = pattern.extents;
        if side != width {
            return Err(SolveError::Length { what: "row of a block", found: width, needed: side });
        }
        let rows = pattern.row_starts.len().saturating_sub(1);
        let lists = [buffer_of(device, &pattern.row_starts)?, buffer_of(device, &pattern.columns)?];
        Self::of_lists(device, ([rows, rows], pattern.columns.len()), [side; 2], lists.map(Arc::new))
    }

    /// A matrix of any number of rows and columns of blocks, whose rows start at `row_starts`, with the columns of
    /// the blocks, `at`; its values are poison.
    pub(crate) fn of_lists(
        device: &dyn Device,
        ([rows, columns], n_blocks): ([usize; 2], usize),
        extents: [usize; 2],
        [row_starts, at]: [Arc<Buffer>; 2],
    ) -> Result<Self, SolveError> {
        Ok(Self {
            extents,
            rows,
            columns,
            n_blocks,
            product: compiled_block_product(device, extents, n_blocks / rows.max(1))?,
            row_starts,
            at,
            values: device.allocate_unset(8 * (n_blocks * extents[0] * extents[1]) as u64)?,
        })
    }

    /// The entries, f64 `[blocks, side, side]`.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        &self.values
    }

    /// Where the blocks of rows start and the last ones end, and the column of each, on the host.
    ///
    /// # Errors
    /// A failing driver.
    pub fn download_lists(&self, device: &dyn Device) -> Result<[Vec<i32>; 2], SolveError> {
        Ok([download_values(device, &self.row_starts)?, download_values(device, &self.at)?])
    }

    /// What it consists of, of a square one.
    ///
    /// # Errors
    /// [`SolveError::Length`] of another one.
    pub fn block_rows(&self) -> Result<BlockRows<'_>, SolveError> {
        let [found, needed] = self.size_of_both();
        if found != needed || self.extents[0] != self.extents[1] {
            return Err(SolveError::Length { what: "row", found, needed });
        }
        Ok(BlockRows {
            side: self.extents[0],
            rows: self.rows,
            n_blocks: self.n_blocks,
            row_starts: &self.row_starts,
            columns: &self.at,
            values: &self.values,
            operator: self,
        })
    }

    /// Columns and rows of scalars.
    pub(crate) const fn size_of_both(&self) -> [usize; 2] {
        [self.extents[1] * self.columns, self.extents[0] * self.rows]
    }

    /// `y = A x`
    pub(crate) fn times<'a>(&'a self, x: &'a Buffer, y: &'a Buffer) -> Call<'a> {
        let matrix = [("row_starts", &*self.row_starts), ("columns", &*self.at), ("values", &self.values)];
        let arrays = [&matrix[..], &[("x", x), ("y", y)]].concat();
        let sizes = [("n", self.rows), ("n_columns", self.columns), ("n_blocks", self.n_blocks)];
        Call::of(&self.product, &sizes, &arrays)
    }
}

impl Operator for BlockCsrOperator {
    fn size(&self) -> usize {
        self.extents[0] * self.rows
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.push(self.times(x, y));
    }
}

/// A copy by blocks of a matrix by rows, for products: with blocks of three a product takes 0.6 of the time
/// of rows on an H200 (2026-11-26).
pub struct BlocksOfRows {
    blocks: BlockCsrOperator,
    take: Executable,
    source: Source,
}

/// Where the entries of blocks come from.
enum Source {
    /// Rows of scalars that are rows of blocks; the row of blocks of each block.
    Blocks { owners: Buffer },
    /// Any rows of scalars; the place of each of `n_entries` numbers; others stay zero.
    Entries { places: Buffer, n_entries: usize },
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
        let text =
            include_str!("kernels/blocks_of_rows.kingpost").replace("SIDE", &blocks.extents[0].to_string());
        let (take, owners) = (compile_text(device, &text)?, buffer_of(device, &owners)?);
        Ok(Self { blocks, take, source: Source::Blocks { owners } })
    }

    /// Of matrices of any pattern, in blocks of `side` rows and columns that have zeros where it has no entry. None
    /// where rows are no whole blocks, or where 32 bits do not count the numbers.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernels.
    pub fn of_entries(
        device: &dyn Device,
        pattern: &CsrPattern,
        side: usize,
    ) -> Result<Option<Self>, SolveError> {
        let (starts, columns) = (&pattern.row_starts, &pattern.columns);
        let n = starts.len().saturating_sub(1);
        if side == 0 || !n.is_multiple_of(side) {
            return Ok(None);
        }
        let entries = |row: usize| starts[row] as usize..starts[row + 1] as usize;
        let node = |column: &i32| column / side as i32;
        let of_node = |owner: usize| {
            let mut own: Vec<i32> = columns
                [entries(side * owner).start..entries(side * owner + side - 1).end]
                .iter()
                .map(node)
                .collect();
            own.sort_unstable();
            own.dedup();
            own
        };
        let rows: Vec<Vec<i32>> = (0..n / side).into_par_iter().map(of_node).collect();
        let n_blocks: usize = rows.iter().map(Vec::len).sum();
        if i32::try_from(n_blocks.saturating_mul(side * side)).is_err() {
            return Ok(None);
        }
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len() as i32;
            Some(*end)
        });
        let row_starts: Vec<i32> = std::iter::once(0).chain(ends).collect();
        let place = |row: usize, column: &i32| {
            let own = &rows[row / side];
            let block = row_starts[row / side] as usize + own.partition_point(|other| *other < node(column));
            ((block * side + row % side) * side + *column as usize % side) as i32
        };
        let of_row = |row: usize| columns[entries(row)].iter().map(move |column| place(row, column));
        let places: Vec<i32> = (0..n).into_par_iter().flat_map_iter(of_row).collect();
        let by_blocks = BlockPattern { extents: [side; 2], row_starts, columns: rows.concat() };
        let blocks = BlockCsrOperator::new(device, &by_blocks)?;
        device.fill(&blocks.values, 0)?;
        let source = Source::Entries { places: buffer_of(device, &places)?, n_entries: places.len() };
        Ok(Some(Self { blocks, take: compiled(device, text!("put"))?, source }))
    }

    /// Copies a matrix of the pattern.
    #[must_use]
    pub fn take<'a>(&'a self, matrix: &'a CsrOperator) -> Call<'a> {
        let [side, _] = self.blocks.extents;
        match &self.source {
            Source::Blocks { owners } => {
                let sizes = [
                    ("n", self.blocks.rows),
                    ("n_blocks", self.blocks.n_blocks),
                    ("n_entries", matrix.n_entries()),
                ];
                let arrays = [
                    ("starts", matrix.starts()),
                    ("block_starts", &*self.blocks.row_starts),
                    ("owners", owners),
                    ("entries", matrix.values()),
                    ("values", &self.blocks.values),
                ];
                Call::of(&self.take, &sizes, &arrays)
            }
            Source::Entries { places, n_entries } => {
                let sizes = [("n", *n_entries), ("n_to", self.blocks.n_blocks * side * side)];
                let arrays = [("at", places), ("from", matrix.values()), ("to", &self.blocks.values)];
                Call::of(&self.take, &sizes, &arrays)
            }
        }
    }

    /// The copy.
    #[must_use]
    pub const fn blocks(&self) -> &BlockCsrOperator {
        &self.blocks
    }
}
