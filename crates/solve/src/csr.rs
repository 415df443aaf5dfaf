//! Matrices by rows on a device.

use crate::sparse::diagonal_of;
use crate::texts::{compiled, compiled_product, compiled_product_with_dot, text};
use crate::{BlockRows, Call, Dot, FoundPattern, Operator, PreconditionerKind, Queue, SolveError, Turn};
use kingpost_fem::sparse::{CsrPattern, EntryOrder};
use kingpost_runtime::{Backend, Buffer, Device, Executable, buffer_of};
use std::sync::Arc;

/// Entries from which on the launch of a kernel takes less than what it saves: of five in a row 5.4 instead of
/// 6.4 µs an iteration with 10,000 unknowns and 20.6 instead of 21.3 with 200,000, of 27 in a row 6.9 instead of
/// 7.2 with 10,648 and 11.3 in both cases with 46,656 (H200, 2026-11-29).
const FEW: usize = 1 << 20;

/// Entries of a row, on average, from which on several work-items share it: fewer are read at once anyway.
const LONG: usize = 8;

fn product_of_direction(device: &dyn Device, n: usize, n_entries: usize) -> Result<Executable, SolveError> {
    let lanes = if n_entries < LONG * n { "1" } else { "4" };
    compiled(device, &text!("product_of_direction").replace("LANES", lanes))
}

/// A square matrix by rows, with an entry on the diagonal of each row. Of a
/// [symmetric](CsrPattern::upper) one, the entries on and above the diagonal are stored.
pub struct CsrOperator {
    n: usize,
    n_entries: usize,
    product: Executable,
    /// The same with the product of both vectors, where a launch costs more than a sum.
    product_with_dot: Option<Executable>,
    /// The same of a direction that it makes, where there are few unknowns: a row makes the direction for each of
    /// its entries, which is less than a launch.
    product_of_direction: Option<Executable>,
    invert: Executable,
    row_starts: Arc<Buffer>,
    columns: Arc<Buffer>,
    diagonal: Arc<Buffer>,
    values: Buffer,
    half: Option<Half>,
}

/// What multiplies by a symmetric matrix of which half is stored.
struct Half {
    clear: Executable,
    add: Executable,
}

impl CsrOperator {
    /// A matrix of this pattern; its values are poison.
    ///
    /// # Errors
    /// A row without an entry on the diagonal, no memory, a device that refuses the kernels.
    pub fn new(device: &dyn Device, pattern: &CsrPattern) -> Result<Self, SolveError> {
        match pattern.order() {
            EntryOrder::Rows | EntryOrder::Blocks => {
                Self::of_rows(device, &pattern.row_starts, &pattern.columns)
            }
            EntryOrder::UpperRows => {
                let (row_starts, columns) = pattern.upper_rows();
                let of_half = Half {
                    clear: compiled(device, text!("clear"))?,
                    add: compiled(device, text!("add_symmetric_product"))?,
                };
                Ok(Self { half: Some(of_half), ..Self::of_rows(device, &row_starts, &columns)? })
            }
        }
    }

    /// A matrix whose rows start at `row_starts`, `[n + 1]`, with the columns of the entries, `[n_entries]`,
    /// ascending in a row; its values are poison.
    ///
    /// # Errors
    /// As [`CsrOperator::new`].
    pub fn of_rows(device: &dyn Device, row_starts: &[i32], columns: &[i32]) -> Result<Self, SolveError> {
        let diagonal = diagonal_of(row_starts, columns)?;
        let lists = [buffer_of(device, row_starts)?, buffer_of(device, columns)?].map(Arc::new);
        let sizes = [diagonal.len(), columns.len()];
        Self::of_lists(device, sizes, lists, Arc::new(buffer_of(device, &diagonal)?))
    }

    /// A matrix of a pattern that the device has found; its values are poison.
    ///
    /// # Errors
    /// As [`CsrOperator::new`].
    pub fn of_found(device: &dyn Device, found: &FoundPattern) -> Result<Self, SolveError> {
        match found.on_device() {
            Some(lists) => {
                let sizes = [found.rows().row_starts.len() - 1, found.rows().n_entries()];
                Self::of_lists(device, sizes, lists, found.diagonal(device)?)
            }
            None => Self::new(device, found.rows()),
        }
    }

    fn of_lists(
        device: &dyn Device,
        [n, n_entries]: [usize; 2],
        [row_starts, columns]: [Arc<Buffer>; 2],
        diagonal: Arc<Buffer>,
    ) -> Result<Self, SolveError> {
        let per_row = n_entries / n.max(1);
        Ok(Self {
            n,
            n_entries,
            product: compiled_product(device, per_row)?,
            product_with_dot: match device.info().backend {
                Backend::Cuda => Some(compiled_product_with_dot(device, per_row)?),
                Backend::C | Backend::OpenCl => None,
            },
            product_of_direction: match device.info().backend {
                Backend::Cuda if n_entries < FEW => Some(product_of_direction(device, n, n_entries)?),
                Backend::Cuda | Backend::C | Backend::OpenCl => None,
            },
            invert: compiled(device, text!("inverse_diagonal"))?,
            row_starts,
            columns,
            diagonal,
            values: device.allocate(8 * n_entries as u64)?,
            half: None,
        })
    }

    /// With the product that makes the direction, on any device.
    #[cfg(test)]
    pub(crate) fn with_direction(mut self, device: &dyn Device) -> Result<Self, SolveError> {
        self.product_of_direction = Some(product_of_direction(device, self.n, self.n_entries)?);
        Ok(self)
    }

    /// The entries, f64 `[n_entries]`.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        &self.values
    }

    /// Stored entries.
    #[must_use]
    pub const fn n_entries(&self) -> usize {
        self.n_entries
    }

    fn sizes(&self) -> [(&'static str, usize); 3] {
        [("n", self.n), ("n_entries", self.n_entries), ("n_columns", self.n)]
    }

    fn arrays<'a>(&'a self, x: &'a Buffer, y: &'a Buffer) -> [(&'static str, &'a Buffer); 5] {
        let Self { row_starts, columns, values, .. } = self;
        [("row_starts", row_starts), ("columns", columns), ("values", values), ("x", x), ("y", y)]
    }

    /// Where the rows start, i32 `[n + 1]`.
    pub(crate) fn starts(&self) -> &Buffer {
        &self.row_starts
    }

    /// Where the rows start, i32 `[n + 1]`, for whom else needs them on the device.
    #[must_use]
    pub fn row_starts(&self) -> Arc<Buffer> {
        Arc::clone(&self.row_starts)
    }

    /// The columns of the entries, i32 `[n_entries]`, likewise.
    #[must_use]
    pub fn columns(&self) -> Arc<Buffer> {
        Arc::clone(&self.columns)
    }

    /// What it consists of, as blocks of one entry.
    ///
    /// # Errors
    /// [`SolveError::HalfOfRows`] of a symmetric one of which half is stored.
    pub fn block_rows(&self) -> Result<BlockRows<'_>, SolveError> {
        if self.half.is_some() {
            return Err(SolveError::HalfOfRows { preconditioner: PreconditionerKind::Amg });
        }
        Ok(BlockRows {
            side: 1,
            rows: self.n,
            n_blocks: self.n_entries,
            row_starts: &self.row_starts,
            columns: &self.columns,
            values: &self.values,
            operator: self,
        })
    }

    /// Inverts the diagonal: Jacobi's preconditioner, f64 `[n]`.
    #[must_use]
    pub fn invert_diagonal<'a>(&'a self, inverse: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n), ("n_entries", self.n_entries)];
        let arrays = [("diagonal", &*self.diagonal), ("values", &self.values), ("inverse", inverse)];
        Call::of(&self.invert, &sizes, &arrays)
    }
}

impl Operator for CsrOperator {
    fn size(&self) -> usize {
        self.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let (sizes, arrays) = (self.sizes(), self.arrays(x, y));
        match &self.half {
            None => queue.push(Call::of(&self.product, &sizes, &arrays)),
            Some(Half { clear, add }) => {
                queue.push(Call::of(clear, &sizes[..1], &[("v", y)]));
                queue.push(Call::of(add, &sizes[..2], &arrays));
            }
        }
    }

    fn apply_with_dot<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, dot: Dot<'a>, queue: &mut Queue<'a>) {
        match (&self.product_with_dot, &self.half) {
            (Some(product), None) => {
                let sizes = [&self.sizes()[..2], &[("n_sums", dot.n_sums), ("at", dot.place)]].concat();
                let arrays = [&self.arrays(x, y)[..], &[("sums", dot.sums)]].concat();
                queue.push(Call::of(product, &sizes, &arrays));
            }
            (_, Some(_)) | (None, None) => {
                self.apply(x, y, queue);
                queue.push(dot.of(x, y));
            }
        }
    }

    fn apply_to_next<'a>(&'a self, turn: Turn<'a>, y: &'a Buffer) -> Option<Call<'a>> {
        let product = self.product_of_direction.as_ref().filter(|_| self.half.is_none())?;
        let sizes = [&self.sizes()[..2], &[("n_sums", turn.n_sums), ("k", turn.place)]].concat();
        let matrix =
            [("row_starts", &*self.row_starts), ("columns", &self.columns), ("values", &self.values)];
        let vectors = ["inverse", "r", "p", "next"].into_iter().zip(turn.vectors);
        let sums = ["limit", "rr", "rz", "pq"].into_iter().zip(turn.sums);
        let arrays: Vec<_> = matrix.into_iter().chain(vectors).chain(sums).chain([("y", y)]).collect();
        Some(Call::of(product, &sizes, &arrays))
    }
}
