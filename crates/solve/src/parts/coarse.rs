//! A coarse level that each part has as a whole, and a cycle of two levels with it.

use super::Wire;
use crate::texts::{compiled, compiled_product, text};
use crate::{
    Amg, BlocksOfRows, Call, Chebyshev, CsrOperator, Operator, Queue, Smoothing, SolveError, Unknowns, run,
};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of, upload_values};

/// Interpolation from the unknowns of a coarse level to those that a part owns, by rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interpolation {
    /// Where rows start and the last one ends, `[owned unknowns + 1]`.
    pub row_starts: Vec<i32>,
    /// The coarse unknown of each weight, by its number on the whole mesh.
    pub columns: Vec<i32>,
    /// The weights, as many.
    pub weights: Vec<f64>,
}

impl Interpolation {
    /// Refuses rows that are none, or columns that are not those of `coarse` unknowns.
    fn check(&self, coarse: usize) -> Result<usize, SolveError> {
        let (entries, rows) = (self.columns.len(), self.row_starts.len().saturating_sub(1));
        if self.weights.len() != entries {
            let found = self.weights.len();
            return Err(SolveError::Length { what: "weights of the interpolation", found, needed: entries });
        }
        let ends = self.row_starts.first() == Some(&0) && self.row_starts.last() == Some(&(entries as i32));
        if !ends || !self.row_starts.is_sorted() {
            let found = self.row_starts.last().map_or(0, |last| *last as usize);
            return Err(SolveError::Length { what: "rows of the interpolation", found, needed: entries });
        }
        match self.columns.iter().find(|column| !(0..coarse as i32).contains(*column)) {
            Some(column) => Err(SolveError::NoCoarse { column: *column, coarse }),
            None => Ok(rows),
        }
    }

    /// The transpose, with a row for each of `coarse` unknowns.
    fn transposed(&self, coarse: usize) -> Self {
        let mut row_starts = vec![0; coarse + 1];
        self.columns.iter().for_each(|column| row_starts[*column as usize + 1] += 1);
        (0..coarse).for_each(|row| row_starts[row + 1] += row_starts[row]);
        let mut next = row_starts.clone();
        let (mut columns, mut weights) = (vec![0; self.columns.len()], vec![0.0; self.columns.len()]);
        for (row, bounds) in (0..).zip(self.row_starts.windows(2)) {
            for k in bounds[0] as usize..bounds[1] as usize {
                let place = &mut next[self.columns[k] as usize];
                (columns[*place as usize], weights[*place as usize]) = (row, self.weights[k]);
                *place += 1;
            }
        }
        Self { row_starts, columns, weights }
    }
}

/// A rectangular matrix by rows on a device, with a kernel for it.
struct Rows {
    kernel: Executable,
    n: usize,
    n_entries: usize,
    row_starts: Buffer,
    columns: Buffer,
    values: Buffer,
}

impl Rows {
    fn new(device: &dyn Device, kernel: Executable, rows: &Interpolation) -> Result<Self, SolveError> {
        Ok(Self {
            kernel,
            n: rows.row_starts.len() - 1,
            n_entries: rows.columns.len(),
            row_starts: buffer_of(device, &rows.row_starts)?,
            columns: buffer_of(device, &rows.columns)?,
            values: buffer_of(device, &rows.weights)?,
        })
    }

    fn call<'a>(
        &'a self,
        sizes: &[(&'static str, usize)],
        arrays: &[(&'static str, &'a Buffer)],
    ) -> Call<'a> {
        let Self { kernel, n, n_entries, row_starts, columns, values } = self;
        let own = [("row_starts", row_starts), ("columns", columns), ("values", values)];
        Call::of(
            kernel,
            &[&[("n", *n), ("n_entries", *n_entries)], sizes].concat(),
            &[&own[..], arrays].concat(),
        )
    }
}

/// A space of few unknowns whose system each part solves as a whole, nearly, by a cycle of algebraic multigrid: what
/// parts have of a residual is added up, so that the correction is that of one device.
pub struct CoarseLevel {
    n: usize,
    n_owned: usize,
    matrix: CsrOperator,
    blocks: Option<BlocksOfRows>,
    hierarchy: Amg,
    restrict: Rows,
    prolong: Rows,
    add_shares: Executable,
    /// The numbers of the unknowns that the part owns.
    owned: Buffer,
    wire: Wire,
    n_before: usize,
    n_others: usize,
    b: Buffer,
    x: Buffer,
}

impl CoarseLevel {
    /// The level of part `rank` of `size`, from its matrix, which is the same in all parts: symmetric, positive
    /// definite, with the identity for coarse unknowns that no correction has.
    ///
    /// # Errors
    /// [`SolveError::Length`] of lists that do not fit each other, [`SolveError::NoCoarse`] of an interpolation from
    /// other unknowns; as [`Amg::new`].
    pub fn new(
        device: &dyn Device,
        (rank, size): (usize, usize),
        (pattern, values): (&CsrPattern, &[f64]),
        unknowns: &Unknowns,
        interpolation: &Interpolation,
    ) -> Result<Self, SolveError> {
        let (n, found) = (pattern.row_starts.len().saturating_sub(1), values.len());
        let n_owned = interpolation.check(n)?;
        if found != pattern.columns.len() {
            return Err(SolveError::Length {
                what: "entries of the matrix",
                found,
                needed: pattern.columns.len(),
            });
        }
        let matrix = CsrOperator::new(device, pattern)?;
        upload_values(device, matrix.values(), values)?;
        let blocks = match unknowns.components {
            0 | 1 => None,
            side => BlocksOfRows::of_entries(device, pattern, side)?,
        };
        let rows = match &blocks {
            None => matrix.block_rows()?,
            Some(blocks) => {
                run(device, &[blocks.take(&matrix)])?;
                blocks.blocks().block_rows()?
            }
        };
        let hierarchy = Amg::new(device, &rows, unknowns, None)?;
        let per_row = interpolation.columns.len() / n.max(1);
        let others = (0..size).filter(|peer| *peer != rank);
        let pieces = |(place, peer): (usize, usize)| (peer, place * n..(place + 1) * n);
        let sends = others.clone().map(|peer| (peer, 0..n)).collect();
        let wire = Wire::new(device, sends, others.enumerate().map(pieces).collect())?;
        // one part has a share, too
        let wire = Wire { packed: device.allocate(8 * n as u64)?, ..wire };
        Ok(Self {
            n,
            n_owned,
            restrict: Rows::new(device, compiled_product(device, per_row)?, &interpolation.transposed(n))?,
            prolong: Rows::new(device, compiled(device, text!("add_ghosts"))?, interpolation)?,
            add_shares: compiled(device, text!("add_shares"))?,
            owned: buffer_of(device, &(0..n_owned as i32).collect::<Vec<_>>())?,
            wire,
            n_before: rank,
            n_others: size.saturating_sub(1),
            b: device.allocate(8 * n as u64)?,
            x: device.allocate(8 * n as u64)?,
            matrix,
            blocks,
            hierarchy,
        })
    }
}

impl CoarseLevel {
    /// Appends what adds the correction for a residual of owned unknowns to a vector of them.
    fn correct<'a>(&'a self, residual: &'a Buffer, to: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { n, n_owned, restrict, prolong, wire, b, x, .. } = self;
        let packed = [("x", residual), ("y", wire.packed())];
        queue.push(restrict.call(&[("n_columns", *n_owned)], &packed));
        queue.start(wire);
        queue.finish(wire);
        let sizes = [("n", *n), ("n_before", self.n_before), ("n_others", self.n_others)];
        let shares = [("own", wire.packed()), ("others", wire.ghosts()), ("b", b)];
        queue.push(Call::of(&self.add_shares, &sizes, &shares));
        self.hierarchy.cycle(0, self.operator(), b, x, queue);
        let arrays = [("rows", &self.owned), ("ghosts", x), ("y", to)];
        queue.push(prolong.call(&[("n_ghosts", *n), ("n_rows", *n_owned)], &arrays));
    }

    /// What the finest level of the hierarchy multiplies by where nothing coarsens it.
    fn operator(&self) -> &dyn Operator {
        match &self.blocks {
            None => &self.matrix,
            Some(blocks) => blocks.blocks(),
        }
    }
}

/// Two levels as an operator: Chebyshev's iteration from zero, the correction of a [`CoarseLevel`], and the iteration
/// once more. Symmetric, and positive definite if the form is and has no eigenvalue above the interval.
///
/// # Source
/// Adams et al. 2003 for the smoother; Saad 2003, §13.4.2, for the cycle.
pub struct TwoLevels<'a> {
    /// The kernels and vectors of the smoother.
    pub chebyshev: &'a Chebyshev,
    /// What it smooths.
    pub smoothing: Smoothing<'a>,
    /// The coarse level.
    pub coarse: &'a CoarseLevel,
}

impl Operator for TwoLevels<'_> {
    fn size(&self) -> usize {
        self.coarse.n_owned
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { chebyshev, smoothing, coarse } = self;
        chebyshev.smooth(smoothing, true, x, y, queue);
        coarse.correct(chebyshev.residual(smoothing, queue), y, queue);
        chebyshev.smooth(smoothing, false, x, y, queue);
    }
}
