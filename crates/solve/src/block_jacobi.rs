//! Block Jacobi: the inverses of the blocks on the diagonal.

use crate::{Call, CsrOperator, Operator, Queue, SolveError, compile_text};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// The inverses of the square blocks on the diagonal of a matrix by rows, which each degree of freedom of
/// several components has.
///
/// # Source
/// Saad 2003, §4.1 and §10.2.
pub struct BlockJacobi {
    n: usize,
    n_entries: usize,
    side: usize,
    invert: Executable,
    multiply: Executable,
    places: Buffer,
    blocks: Buffer,
}

/// Where the entries of the blocks stand, `[n/side, side, side]`.
fn places(pattern: &CsrPattern, side: usize) -> Result<Vec<i32>, SolveError> {
    let n = pattern.row_starts.len().saturating_sub(1);
    let place = |row: usize, column: usize| {
        let [first, last] = [row, row + 1].map(|row| pattern.row_starts[row] as usize);
        let own = pattern.columns[first..last].binary_search(&(column as i32));
        own.map(|k| (first + k) as i32).map_err(|_| SolveError::NoBlock { row, column })
    };
    let entries = (0..n).flat_map(|row| {
        let first = row - row % side;
        (first..first + side).map(move |column| place(row, column))
    });
    entries.collect()
}

impl BlockJacobi {
    /// Blocks of `side` rows and columns; their inverses are poison.
    ///
    /// # Errors
    /// [`SolveError::Length`] of a matrix whose rows are no multiple of `side`; [`SolveError::NoBlock`]
    /// where a block is not stored whole; no memory, a device that refuses the kernels.
    pub fn new(device: &dyn Device, pattern: &CsrPattern, side: usize) -> Result<Self, SolveError> {
        let n = pattern.row_starts.len().saturating_sub(1);
        if side == 0 || !n.is_multiple_of(side) {
            let needed = n.next_multiple_of(side.max(1));
            return Err(SolveError::Length { what: "matrix of blocks", found: n, needed });
        }
        let with_side = |text: &str| compile_text(device, &text.replace("SIDE", &side.to_string()));
        Ok(Self {
            n,
            n_entries: pattern.columns.len(),
            side,
            invert: with_side(include_str!("kernels/invert_blocks.kingpost"))?,
            multiply: with_side(include_str!("kernels/multiply_blocks.kingpost"))?,
            places: buffer_of(device, &places(pattern, side)?)?,
            blocks: device.allocate(8 * (n * side) as u64)?,
        })
    }

    /// Inverts the blocks of a matrix of the pattern. One without an inverse makes a number that is
    /// infinite or none, which solvers report.
    #[must_use]
    pub fn invert<'a>(&'a self, matrix: &'a CsrOperator) -> Call<'a> {
        let sizes = [("n", self.n / self.side), ("n_entries", self.n_entries)];
        let arrays = [("places", &self.places), ("values", matrix.values()), ("inverse", &self.blocks)];
        Call::of(&self.invert, &sizes, &arrays)
    }

    /// The inverses, f64 `[n/side, side, side]`.
    #[must_use]
    pub const fn blocks(&self) -> &Buffer {
        &self.blocks
    }
}

impl Operator for BlockJacobi {
    fn size(&self) -> usize {
        self.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let sizes = [("n", self.n / self.side)];
        queue.push(Call::of(&self.multiply, &sizes, &[("blocks", &self.blocks), ("x", x), ("y", y)]));
    }
}
