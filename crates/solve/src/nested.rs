//! Interpolation between two levels, and cycles over levels of meshes that were refined.

use crate::texts::{compiled, compiled_product, text};
use crate::{Call, Chebyshev, Operator, Queue, Smoothing, SolveError};
use kingpost_fem::element::{ElementFamily, FiniteElement, LagrangeVariant};
use kingpost_fem::mesh::children;
use kingpost_fem::numbering::Numbering;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// Interpolation from the unknowns of a coarse level to those of a finer one, or to those of it
/// that a part owns, by rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interpolation {
    /// Where rows start and the last one ends, `[finer unknowns + 1]`.
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
        // more weights than `i32` counts have no last row
        let last = i32::try_from(entries);
        let ends =
            self.row_starts.first() == Some(&0) && self.row_starts.last().is_some_and(|end| last == Ok(*end));
        if !ends || !self.row_starts.is_sorted() {
            let found = self.row_starts.last().map_or(0, |last| *last as usize);
            return Err(SolveError::Length { what: "rows of the interpolation", found, needed: entries });
        }
        match self.columns.iter().find(|column| !usize::try_from(**column).is_ok_and(|k| k < coarse)) {
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

/// Weights below this part of the largest are roundings of zeros.
const ZERO: f64 = 1e-12;

impl Interpolation {
    /// From a space of Lagrange elements to that of the same mesh [refined
    /// once](kingpost_fem::mesh::Mesh::refined), whose element may have another degree: the values
    /// of coarse functions at the nodes of the finer ones.
    ///
    /// # Errors
    /// [`SolveError::Element`] of elements whose degrees of freedom are no values at points, and of
    /// pyramids; [`SolveError::Length`] where the finer cells are not the parts of the coarse ones.
    pub fn of_refined(coarse: &Numbering, fine: &Numbering) -> Result<Self, SolveError> {
        let shape = coarse.element().shape();
        let refused = || SolveError::Element {
            shape,
            needed: "values at points, on cells that are divided into their kind",
        };
        let (nodes, parts) =
            (fine.element().points().ok_or_else(refused)?, children(shape).ok_or_else(refused)?);
        if coarse.element().points().is_none() || fine.element().shape() != shape {
            return Err(refused());
        }
        let straight = FiniteElement::new(shape, ElementFamily::Lagrange(LagrangeVariant::Equispaced), 1);
        let corners = straight.and_then(|element| element.tabulate(&nodes, 0)).map_err(|_| refused())?;
        let (dim, width) = (shape.dim(), coarse.dofs_per_cell());
        let of_part = |part: &Vec<f64>| {
            let along = |node: usize, axis: usize| {
                (0..corners.n_dofs).map(|k| corners.value(0, node, k, 0) * part[k * dim + axis]).sum::<f64>()
            };
            let places: Vec<f64> =
                (0..corners.n_points).flat_map(|node| (0..dim).map(move |axis| along(node, axis))).collect();
            Ok(coarse.element().tabulate(&places, 0).map_err(|_| refused())?.component(0, 0))
        };
        let tables: Vec<Vec<f64>> = parts.iter().map(of_part).collect::<Result<_, SolveError>>()?;
        let cells = |of: &Numbering| of.dofs().len() / of.dofs_per_cell();
        let (found, needed) = (cells(fine), cells(coarse) * parts.len());
        if found != needed {
            return Err(SolveError::Length { what: "cells of the finer mesh", found, needed });
        }
        // in all cells that have a degree of freedom its row is the same
        let mut rows = vec![None; fine.n_dofs()];
        for cell in 0..found {
            for (node, dof) in fine.cell(cell).iter().enumerate() {
                rows[*dof as usize] = Some((cell, node));
            }
        }
        let mut made = Self { row_starts: vec![0], ..Self::default() };
        for (cell, node) in rows.into_iter().flatten() {
            let weights = &tables[cell % parts.len()][node * width..(node + 1) * width];
            for (column, weight) in coarse.cell(cell / parts.len()).iter().zip(weights) {
                if weight.abs() > ZERO {
                    made.columns.push(*column);
                    made.weights.push(*weight);
                }
            }
            made.row_starts.push(made.columns.len() as i32);
        }
        Ok(made)
    }

    /// The same of vectors, whose components are innermost.
    #[must_use]
    pub fn of_components(&self, components: usize) -> Self {
        let mut made = Self { row_starts: vec![0], ..Self::default() };
        for bounds in self.row_starts.windows(2) {
            for component in 0..components {
                for k in bounds[0] as usize..bounds[1] as usize {
                    made.columns.push(self.columns[k] * components as i32 + component as i32);
                    made.weights.push(self.weights[k]);
                }
                made.row_starts.push(made.columns.len() as i32);
            }
        }
        made
    }

    /// Without the rows and columns of unknowns whose values are prescribed, finer ones and coarse
    /// ones, which no correction changes. Numbers that are no unknowns are passed over.
    #[must_use]
    pub fn without(&self, rows: &[i32], columns: &[i32]) -> Self {
        let marked = |list: &[i32]| list.iter().copied().collect::<std::collections::HashSet<i32>>();
        let (rows, columns) = (marked(rows), marked(columns));
        let mut made = Self { row_starts: vec![0], ..Self::default() };
        for (row, bounds) in (0..).zip(self.row_starts.windows(2)) {
            for k in bounds[0] as usize..bounds[1] as usize {
                if !rows.contains(&row) && !columns.contains(&self.columns[k]) {
                    made.columns.push(self.columns[k]);
                    made.weights.push(self.weights[k]);
                }
            }
            made.row_starts.push(made.columns.len() as i32);
        }
        made
    }
}

/// An interpolation and its transpose on a device, with vectors of the coarse level.
pub struct Transfer {
    n_fine: usize,
    n_coarse: usize,
    restrict: Rows,
    prolong: Rows,
    /// The numbers of all finer unknowns.
    all: Buffer,
    b: Buffer,
    x: Buffer,
}

impl Transfer {
    /// Of an interpolation from `n_coarse` unknowns.
    ///
    /// # Errors
    /// [`SolveError::Length`] of lists that do not fit each other, [`SolveError::NoCoarse`] of an
    /// interpolation from other unknowns; a device that refuses, no memory.
    pub fn new(
        device: &dyn Device,
        interpolation: &Interpolation,
        n_coarse: usize,
    ) -> Result<Self, SolveError> {
        let n_fine = interpolation.check(n_coarse)?;
        let per_row = interpolation.columns.len() / n_coarse.max(1);
        let transposed = interpolation.transposed(n_coarse);
        Ok(Self {
            n_fine,
            n_coarse,
            restrict: Rows::new(device, compiled_product(device, per_row)?, &transposed)?,
            prolong: Rows::new(device, compiled(device, text!("add_ghosts"))?, interpolation)?,
            all: buffer_of(device, &(0..n_fine as i32).collect::<Vec<_>>())?,
            b: device.allocate(8 * n_coarse as u64)?,
            x: device.allocate(8 * n_coarse as u64)?,
        })
    }

    /// Unknowns of the finer level.
    pub(crate) const fn fine_size(&self) -> usize {
        self.n_fine
    }

    /// A right-hand side and a solution of the coarse level.
    pub(crate) const fn coarse(&self) -> [&Buffer; 2] {
        [&self.b, &self.x]
    }

    /// Appends what makes a right-hand side of the coarse level from a residual.
    pub(crate) fn restrict<'a>(&'a self, residual: &'a Buffer, b: &'a Buffer, queue: &mut Queue<'a>) {
        queue.push(self.restrict.call(&[("n_columns", self.n_fine)], &[("x", residual), ("y", b)]));
    }

    /// Appends what adds the interpolation of a solution of the coarse level.
    pub(crate) fn add<'a>(&'a self, x: &'a Buffer, to: &'a Buffer, queue: &mut Queue<'a>) {
        let sizes = [("n_ghosts", self.n_coarse), ("n_rows", self.n_fine)];
        queue.push(self.prolong.call(&sizes, &[("rows", &self.all), ("ghosts", x), ("y", to)]));
    }
}

/// A level of a cycle that has a coarser one.
pub struct NestedLevel<'a> {
    /// The kernels and vectors of the smoother.
    pub chebyshev: &'a Chebyshev,
    /// What it smooths.
    pub smoothing: Smoothing<'a>,
    /// From the next level to this one.
    pub transfer: &'a Transfer,
}

/// A V-cycle from zero as an operator, over spaces of meshes each of which was refined from the
/// next: Chebyshev's iteration before and after the coarser level, and any operator on the
/// coarsest, such as [`AmgPreconditioner`](crate::AmgPreconditioner). Symmetric if the forms and
/// that operator are.
///
/// Levels are made as [`Interpolation::of_refined`] says; a form may be applied without a matrix on
/// each of them ([`FormOperator`](crate::FormOperator)).
///
/// # Source
/// Adams et al. 2003 for the smoother; Saad 2003, §13.4.2, for the cycle.
pub struct NestedLevels<'a> {
    levels: Vec<NestedLevel<'a>>,
    coarsest: &'a dyn Operator,
}

impl<'a> NestedLevels<'a> {
    /// Of levels, the finest first, and what solves nearly on the coarsest.
    ///
    /// # Errors
    /// [`SolveError::Length`] of levels whose sizes are not those of the transfers.
    pub fn new(levels: Vec<NestedLevel<'a>>, coarsest: &'a dyn Operator) -> Result<Self, SolveError> {
        let sizes = levels.iter().map(|level| level.smoothing.operator.size());
        let sizes: Vec<usize> = sizes.chain([coarsest.size()]).collect();
        for (NestedLevel { transfer, .. }, pair) in levels.iter().zip(sizes.windows(2)) {
            let ends =
                [("finer level", transfer.n_fine, pair[0]), ("coarser level", transfer.n_coarse, pair[1])];
            if let Some((what, needed, found)) = ends.into_iter().find(|(_, needed, found)| needed != found) {
                return Err(SolveError::Length { what, found, needed });
            }
        }
        Ok(Self { levels, coarsest })
    }

    fn cycle<'q>(&'q self, at: usize, b: &'q Buffer, x: &'q Buffer, queue: &mut Queue<'q>) {
        let Some(NestedLevel { chebyshev, smoothing, transfer }) = self.levels.get(at) else {
            return self.coarsest.apply(b, x, queue);
        };
        chebyshev.smooth(smoothing, true, b, x, queue);
        let [coarse_b, coarse_x] = transfer.coarse();
        transfer.restrict(chebyshev.residual(smoothing, queue), coarse_b, queue);
        self.cycle(at + 1, coarse_b, coarse_x, queue);
        transfer.add(coarse_x, x, queue);
        chebyshev.smooth(smoothing, false, b, x, queue);
    }
}

impl Operator for NestedLevels<'_> {
    fn size(&self) -> usize {
        self.levels.first().map_or(self.coarsest.size(), |level| level.smoothing.operator.size())
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        self.cycle(0, x, y, queue);
    }
}
