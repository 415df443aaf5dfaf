//! The levels of a hierarchy, on the host.

use super::aggregates::{Aggregates, Strength, diagonal_norms};
use super::blocks::{Block, BlockMatrix, Nodes, Pattern, push};
use super::near_kernel::NearKernel;
use crate::conjugate_gradients::Sums;
use crate::{SolveError, Spectrum};
use kingpost_runtime::check_interrupt;
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::sync::Arc;

/// Unknowns from which on a level is coarsened.
const COARSEST: usize = 256;
/// Unknowns of a matrix that is inverted, at most: beyond it the inverse takes longer than a solve.
const INVERTED: usize = 2 * COARSEST;
/// Levels, at most.
const LEVELS: usize = 20;
/// Strength of connections on the finest level; half of it on each next one.
const STRENGTH: f64 = 0.08;
/// Iterations that find the largest eigenvalue of a level.
const ITERATIONS: usize = 12;
/// Columns of a basis that are this much shorter than the first are not independent.
const DEPENDENT: f64 = 1e-8;
/// Blocks this much smaller than those on the diagonal are roundings.
const ROUNDING: f64 = 1e-13;

/// What a level shares with those of other matrices whose connections are the same: all but numbers.
pub(super) struct Structure {
    aggregates: Aggregates,
    tentative: Arc<Pattern>,
    interpolation: Arc<Pattern>,
    restriction: Arc<Pattern>,
    /// The block of the interpolation that each block of the restriction is.
    transposes: Vec<usize>,
    /// Of the matrix times the interpolation.
    image: Arc<Pattern>,
    coarse: Arc<Pattern>,
}

/// A level with a coarser one.
pub(super) struct Level {
    /// The matrix; none on the finest level, where the device has it.
    pub matrix: Option<BlockMatrix>,
    /// The inverse of its diagonal.
    pub inverse: Vec<f64>,
    /// Of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
    /// From the coarser level.
    pub interpolation: BlockMatrix,
    /// To it: the transpose.
    pub restriction: BlockMatrix,
    /// What is kept for other matrices.
    pub structure: Arc<Structure>,
}

/// The levels of a matrix.
pub(super) struct Levels {
    /// From the finest on.
    pub levels: Vec<Level>,
    /// What solves on the coarsest level.
    pub coarsest: Coarsest,
}

/// What solves on the coarsest level, or nearly so.
pub(super) enum Coarsest {
    /// The inverse of its matrix.
    Inverse(DMatrix<f64>),
    /// Chebyshev's iteration, where nothing coarsens a large matrix: of one without couplings, its
    /// first step is exact up to a factor.
    Smoothed(SmoothedLevel),
}

/// A level without a coarser one.
pub(super) struct SmoothedLevel {
    /// The matrix; none on the finest level, where the device has it.
    pub matrix: Option<BlockMatrix>,
    /// The inverse of its diagonal.
    pub inverse: Vec<f64>,
    /// Of the matrix times the inverse of its diagonal.
    pub spectrum: Spectrum,
}

impl Coarsest {
    fn new(matrix: BlockMatrix, is_finest: bool, ratio: f64) -> Result<Self, SolveError> {
        if matrix.pattern().rows().unknowns() <= INVERTED {
            return Ok(Self::Inverse(inverted(&matrix)));
        }
        let inverse = inverse_diagonal(&matrix);
        let spectrum = Spectrum::of_upper(&eigenvalues(&matrix, &inverse), ratio)?;
        let matrix = (!is_finest).then_some(matrix);
        Ok(Self::Smoothed(SmoothedLevel { matrix, inverse, spectrum }))
    }
}

impl Levels {
    /// The levels of a symmetric positive definite matrix whose near kernel is given. Smoothers reduce the
    /// eigenvalues of a matrix times the inverse of its diagonal down to a `ratio`-th of the largest.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that is not positive.
    ///
    /// # Source
    /// Vaněk et al. 1996; Vaněk et al. 2001.
    pub fn new(matrix: BlockMatrix, near_kernel: NearKernel, ratio: f64) -> Result<Self, SolveError> {
        let (mut matrix, mut near_kernel) = (matrix, near_kernel);
        let (mut levels, mut threshold): (Vec<Level>, f64) = (Vec::new(), STRENGTH);
        while matrix.pattern().rows().unknowns() > COARSEST && levels.len() + 1 < LEVELS {
            check_interrupt()?;
            let norms = diagonal_norms(&matrix);
            let aggregates = Strength::new(&matrix, &norms, threshold).aggregates();
            let tentative = Tentative::new(matrix.pattern().rows(), &aggregates, &near_kernel);
            let coarse = tentative.matrix.pattern().columns().unknowns();
            if coarse == 0 || 5 * coarse > 4 * matrix.pattern().rows().unknowns() {
                break; // it no longer coarsens
            }
            let structure = Structure::new(&matrix, &norms, aggregates, &tentative.matrix);
            let (level, next) = Level::new(Arc::new(structure), matrix, &tentative.matrix, ratio)?;
            levels.push(level);
            (matrix, near_kernel) = (next, tentative.near_kernel);
            threshold /= 2.0;
        }
        Self::above(levels, matrix, ratio)
    }

    /// The levels of another matrix with the structures of these: numbers are found again, sets of nodes and
    /// places of blocks are not. None if the near kernel has other ranks on these sets, or if the matrix
    /// connects nodes that were not connected.
    ///
    /// # Errors
    /// As [`Levels::new`].
    pub fn of_structures(
        structures: &[Arc<Structure>],
        matrix: BlockMatrix,
        near_kernel: NearKernel,
        ratio: f64,
    ) -> Result<Option<Self>, SolveError> {
        let (mut matrix, mut near_kernel) = (matrix, near_kernel);
        let mut levels: Vec<Level> = Vec::new();
        for structure in structures {
            let tentative = Tentative::new(matrix.pattern().rows(), &structure.aggregates, &near_kernel);
            let is_same = *tentative.matrix.pattern() == structure.tentative;
            if !(is_same && structure.connects(&matrix, &diagonal_norms(&matrix))) {
                return Ok(None);
            }
            let (level, next) = Level::new(structure.clone(), matrix, &tentative.matrix, ratio)?;
            levels.push(level);
            (matrix, near_kernel) = (next, tentative.near_kernel);
        }
        Self::above(levels, matrix, ratio).map(Some)
    }

    fn above(mut levels: Vec<Level>, coarsest: BlockMatrix, ratio: f64) -> Result<Self, SolveError> {
        if let Some(finest) = levels.first_mut() {
            finest.matrix = None;
        }
        let coarsest = Coarsest::new(coarsest, levels.is_empty(), ratio)?;
        Ok(Self { levels, coarsest })
    }
}

/// Whether a block is more than rounding compared with those on the diagonal, whose norms are given.
fn is_connected(norms: &[f64], node: usize, block: &Block<'_>) -> bool {
    block.square() > ROUNDING * ROUNDING * norms[node] * norms[block.column]
}

impl Structure {
    fn new(matrix: &BlockMatrix, norms: &[f64], aggregates: Aggregates, tentative: &BlockMatrix) -> Self {
        let own = tentative.pattern();
        let interpolation = Pattern::of_rows(own.rows(), own.columns(), |node, is_in, at| {
            // a node of no aggregate, such as a prescribed one, is not moved
            let Some(aggregate) = own.row(node).first() else { return };
            push(*aggregate, is_in, at);
            for block in matrix.row(node).filter(|block| is_connected(norms, node, block)) {
                own.row(block.column).iter().for_each(|column| push(*column, is_in, at));
            }
        });
        let (restriction, transposes) = interpolation.transposed();
        let image = Pattern::product(matrix.pattern(), &interpolation);
        let coarse = Pattern::product(&restriction, &image);
        Self {
            aggregates,
            tentative: own.clone(),
            interpolation: Arc::new(interpolation),
            restriction: Arc::new(restriction),
            transposes,
            image: Arc::new(image),
            coarse: Arc::new(coarse),
        }
    }

    /// Whether the interpolation has all blocks that a matrix asks for.
    fn connects(&self, matrix: &BlockMatrix, norms: &[f64]) -> bool {
        (0..norms.len()).into_par_iter().all(|node| {
            let (own, aggregates) = (self.interpolation.row(node), &self.aggregates.of);
            let has = |column: usize| own.binary_search(&(column as u32)).is_ok();
            own.is_empty()
                || matrix.row(node).all(|block| {
                    aggregates[block.column].is_none_or(has) || !is_connected(norms, node, &block)
                })
        })
    }
}

impl Level {
    /// A level with the matrix of the coarser one.
    fn new(
        structure: Arc<Structure>,
        matrix: BlockMatrix,
        tentative: &BlockMatrix,
        ratio: f64,
    ) -> Result<(Self, BlockMatrix), SolveError> {
        let inverse = inverse_diagonal(&matrix);
        let values = eigenvalues(&matrix, &inverse);
        check_interrupt()?;
        let largest = Spectrum::of_upper(&values, 1.0)?.largest;
        let pattern = structure.interpolation.clone();
        let interpolation = smoothed(pattern, &matrix, &inverse, 4.0 / (3.0 * largest), tentative);
        let restriction = interpolation.transposed(&structure.restriction, &structure.transposes);
        let image = BlockMatrix::product(structure.image.clone(), &matrix, &interpolation);
        let coarse = BlockMatrix::product(structure.coarse.clone(), &restriction, &image);
        let spectrum = Spectrum::of_upper(&values, ratio)?;
        Ok((Self { matrix: Some(matrix), inverse, spectrum, interpolation, restriction, structure }, coarse))
    }
}

/// An interpolation that is not smooth: an orthonormal basis of the near kernel on each aggregate.
struct Tentative {
    matrix: BlockMatrix,
    near_kernel: NearKernel,
}

impl Tentative {
    fn new(nodes: &Nodes, aggregates: &Aggregates, near_kernel: &NearKernel) -> Self {
        let of = |members: &Vec<usize>| {
            let rows: Vec<usize> = members.iter().flat_map(|node| nodes.of(*node)).collect();
            basis(&near_kernel.select_rows(&rows))
        };
        let bases: Vec<(DMatrix<f64>, DMatrix<f64>)> = aggregates.members.par_iter().map(of).collect();
        let coarse = Nodes::of_widths(bases.iter().map(|(basis, _)| basis.ncols()));
        // where a node is in its basis
        let mut first = vec![0; nodes.count()];
        for members in &aggregates.members {
            let mut next = 0;
            for node in members {
                first[*node] = next;
                next += nodes.of(*node).len();
            }
        }
        let (mut starts, mut at) = (vec![0], Vec::new());
        for aggregate in &aggregates.of {
            at.extend(aggregate.map(|aggregate| aggregate as u32));
            starts.push(at.len());
        }
        let pattern = Pattern::new(nodes.clone(), coarse.clone(), starts, at);
        let matrix = BlockMatrix::filled(Arc::new(pattern), |own| {
            if let Some(aggregate) = aggregates.of[own.node] {
                let (basis, first) = (&bases[aggregate].0, first[own.node]);
                own.set(aggregate, |row, column| basis[(first + row, column)]);
            }
        });
        let mut of_coarse = DMatrix::zeros(coarse.unknowns(), near_kernel.ncols());
        for (aggregate, (_, rest)) in bases.iter().enumerate() {
            of_coarse.rows_mut(coarse.of(aggregate).start, rest.nrows()).copy_from(rest);
        }
        Self { matrix, near_kernel: of_coarse }
    }
}

/// An orthonormal basis of columns, and the columns in it.
fn basis(columns: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    let factors = columns.clone().col_piv_qr();
    let (q, mut r) = (factors.q(), factors.r());
    let first = r.get((0, 0)).map_or(0.0, |entry| entry.abs());
    let independent = |k: &usize| r[(*k, *k)].abs() > DEPENDENT * first;
    let rank = (0..r.nrows().min(r.ncols())).take_while(independent).count();
    factors.p().inv_permute_columns(&mut r);
    (q.columns(0, rank).into_owned(), r.rows(0, rank).into_owned())
}

fn inverse_diagonal(matrix: &BlockMatrix) -> Vec<f64> {
    matrix.diagonal().into_iter().map(|entry| if entry == 0.0 { 1.0 } else { 1.0 / entry }).collect()
}

/// `T - ω D⁻¹ A T`, at the blocks of a pattern.
fn smoothed(
    pattern: Arc<Pattern>,
    matrix: &BlockMatrix,
    inverse: &[f64],
    omega: f64,
    tentative: &BlockMatrix,
) -> BlockMatrix {
    let rows = tentative.pattern().rows();
    BlockMatrix::filled(pattern, |own| {
        for block in matrix.row(own.node) {
            for basis in tentative.row(block.column) {
                // what has no place is rounding
                if own.has(basis.column) {
                    own.add_product(block, basis);
                }
            }
        }
        own.scale(inverse[rows.of(own.node)].iter().map(|inverse| -omega * inverse));
        tentative.row(own.node).for_each(|basis| own.add(basis));
    })
}

/// Values among the eigenvalues of a matrix times a diagonal, near the largest: by conjugate gradients,
/// as [`ConjugateGradients::ritz_values`](crate::ConjugateGradients::ritz_values).
fn eigenvalues(matrix: &BlockMatrix, inverse: &[f64]) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scaled = |r: &[f64]| -> Vec<f64> { r.iter().zip(inverse).map(|(r, d)| r * d).collect() };
    let mut r = crate::chebyshev::pseudo_random(inverse.len());
    let mut p = scaled(&r);
    let mut sums = Sums { rr: Vec::new(), rz: vec![dot(&r, &p)], pq: Vec::new() };
    for k in 0..ITERATIONS {
        let q = matrix.times(&p);
        let curvature = dot(&p, &q);
        sums.pq.push(curvature);
        if curvature <= 0.0 {
            sums.rz.push(0.0);
            break;
        }
        let length = sums.rz[k] / curvature;
        r.iter_mut().zip(&q).for_each(|(r, q)| *r -= length * q);
        let z = scaled(&r);
        sums.rz.push(dot(&r, &z));
        let turn = sums.rz[k + 1] / sums.rz[k];
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + turn * *p);
    }
    sums.eigenvalues()
}

/// The inverse of a small matrix; of one that is not positive definite, that of the sizes of its
/// eigenvalues, so that it preconditions at all.
fn inverted(matrix: &BlockMatrix) -> DMatrix<f64> {
    let dense = matrix.dense();
    let n = dense.nrows();
    let symmetric = (&dense + dense.transpose()) * 0.5;
    match symmetric.clone().cholesky() {
        Some(factors) => factors.inverse(),
        None if n == 0 => dense,
        None => {
            let eigen = symmetric.symmetric_eigen();
            let largest = eigen.eigenvalues.amax();
            let inverse =
                eigen.eigenvalues.map(|value| match value.abs() > f64::EPSILON * n as f64 * largest {
                    true => 1.0 / value.abs(),
                    false => 0.0,
                });
            &eigen.eigenvectors * DMatrix::from_diagonal(&inverse) * eigen.eigenvectors.transpose()
        }
    }
}
