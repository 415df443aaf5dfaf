//! A coarse level that each part has as a whole, and a cycle of two levels with it.

use super::Wire;
use crate::texts::{compiled, text};
use crate::{
    Amg, BlocksOfRows, Call, Chebyshev, CsrOperator, Interpolation, Operator, Queue, Smoothing, SolveError,
    Transfer, Unknowns, run,
};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Buffer, Device, Executable, upload_values};

/// A space of few unknowns whose system each part solves as a whole, nearly, by a cycle of algebraic multigrid: what
/// parts have of a residual is added up, so that the correction is that of one device.
pub struct CoarseLevel {
    n: usize,
    matrix: CsrOperator,
    blocks: Option<BlocksOfRows>,
    hierarchy: Amg,
    /// From the coarse unknowns to those that the part owns.
    transfer: Transfer,
    add_shares: Executable,
    wire: Wire,
    n_before: usize,
    n_others: usize,
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
        let transfer = Transfer::new(device, interpolation, n)?;
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
        let others = (0..size).filter(|peer| *peer != rank);
        let pieces = |(place, peer): (usize, usize)| (peer, place * n..(place + 1) * n);
        let sends = others.clone().map(|peer| (peer, 0..n)).collect();
        let wire = Wire::new(device, sends, others.enumerate().map(pieces).collect())?;
        // one part has a share, too
        let wire = Wire { packed: device.allocate(8 * n as u64)?, ..wire };
        Ok(Self {
            n,
            transfer,
            add_shares: compiled(device, text!("add_shares"))?,
            wire,
            n_before: rank,
            n_others: size.saturating_sub(1),
            matrix,
            blocks,
            hierarchy,
        })
    }
}

impl CoarseLevel {
    /// Appends what adds the correction for a residual of owned unknowns to a vector of them.
    fn correct<'a>(&'a self, residual: &'a Buffer, to: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { n, transfer, wire, .. } = self;
        let [b, x] = transfer.coarse();
        transfer.restrict(residual, wire.packed(), queue);
        queue.start(wire);
        queue.finish(wire);
        let sizes = [("n", *n), ("n_before", self.n_before), ("n_others", self.n_others)];
        let shares = [("own", wire.packed()), ("others", wire.ghosts()), ("b", b)];
        queue.push(Call::of(&self.add_shares, &sizes, &shares));
        self.hierarchy.cycle(0, self.operator(), b, x, queue);
        transfer.add(x, to, queue);
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
        self.coarse.transfer.fine_size()
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { chebyshev, smoothing, coarse } = self;
        chebyshev.smooth(smoothing, true, x, y, queue);
        coarse.correct(chebyshev.residual(smoothing, queue), y, queue);
        chebyshev.smooth(smoothing, false, x, y, queue);
    }
}
