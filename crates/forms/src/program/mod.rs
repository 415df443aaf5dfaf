//! Cell programs: the loops, arrays and instructions of an operator action by their roles.
//!
//! [`lower`](crate::lowering::lower) hands one over with each kernel. The cell program of a kernel in a text is
//! [read](CellProgram::read) from the tags of its instructions, which are those of [`stage`].
//!
//! ```
//! use kingpost_forms::program::CellProgram;
//! use kingpost_fem::element::CellShape;
//! use kingpost_forms::{form::*, lowering::{LoweringOptions, lower}};
//!
//! let space = FunctionSpace::scalar(CellShape::Triangle, 2);
//! let (u, v) = (coefficient("u", &space), test(&space));
//! let form = inner(grad(&u), grad(&v)) * dx() + u * v * dx().with_degree(4);
//! let lowered = lower(&form, &LoweringOptions::new("two_rules"))?;
//! let points: Vec<i64> = lowered.program.blocks.iter().map(|block| block.points).collect();
//! assert_eq!(points, [3, 6]);
//! assert_eq!(lowered.program.gathers[0].array.name(), "u_cell");
//! assert_eq!(CellProgram::read(&lowered.kernel).as_ref(), Ok(&lowered.program));
//! # Ok::<(), FormError>(())
//! ```

mod derive;
mod read;
pub mod stage;

pub(crate) use derive::{BlockRoles, EvaluationRoles, ProductRoles, ResultRoles, Roles, SumRoles};

use kingpost_ir::{Kernel, ScalarType};
use kingpost_primitives::schedule::{Array, Loop, Statement};

/// An operator action by the roles of its parts, as Kulkarni & Klöckner 2025's Algorithm 2 has
/// them: for each cell it gathers, computes the geometry, zeroes the element vectors, runs a loop
/// over the points of each quadrature rule, and scatters. There is an element vector for each
/// sub-element of each result and side of a facet, or a matrix for each bilinear form, or a number
/// for each functional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellProgram {
    /// The loop over cells and what it adds to the result.
    pub cells: CellLoop,
    /// What is gathered and then evaluated at quadrature points, in textual order.
    pub gathers: Vec<Gather>,
    /// Other temporaries of a cell that the loops over quadrature points read: Jacobian terms,
    /// coordinates.
    pub per_cell: Vec<Array>,
    /// What is done to gathered degrees of freedom by the orientation of the cell, before anything
    /// reads them.
    pub transforms: Vec<Statement>,
    /// The local integrals, in the order in which they are scattered; none of functionals.
    pub results: Vec<ElementResult>,
    /// The numbers that a cell adds to functionals, in the order in which it adds them.
    pub sums: Vec<CellSum>,
    /// What is done to them by the orientation of the cell, before they are scattered.
    pub result_transforms: Vec<Statement>,
    /// One for each quadrature rule, in textual order.
    pub blocks: Vec<Block>,
    /// Whether all cells read the same entries of the tables; facets read those of their number in
    /// the cell.
    pub shares_tables: bool,
}

/// A loop over cells that adds to a result: all that a mapping of one cell to a work-item must
/// know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellLoop {
    /// The loop.
    pub cell: Loop,
    /// The updates of results that cells share, one a component; not those of matrices of cells,
    /// each of which is a result of its own.
    pub commits: Vec<Statement>,
}

/// The degrees of freedom of a function in a cell, or the coordinates of its vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The array: `[dofs]` or `[dofs, components]`.
    pub array: Array,
    /// The loop over the degrees of freedom.
    pub dofs: Loop,
    /// Number of its iterations.
    pub count: i64,
    /// Components: none for a scalar function.
    pub components: Option<i64>,
    /// Its instructions, one a component.
    pub insns: Vec<Statement>,
}

/// An element vector or matrix: what quadrature loops add to and a scatter reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementResult {
    /// The array: `[test functions]` or `[test functions, components]` of a vector, `[rows,
    /// columns]` of a matrix.
    pub array: Array,
    /// Type of its elements.
    pub ty: ScalarType,
    /// Components: one for a scalar test function, and of a matrix.
    pub components: i64,
    /// Number of test functions of a component, or of rows of a matrix.
    pub count: i64,
    /// Number of columns of a matrix.
    pub columns: Option<i64>,
    /// The loop that zeroes it.
    pub zero: Loop,
    /// The loop of the scatter over test functions or rows.
    pub scatter: Loop,
    /// The loop inside it over the columns of a matrix.
    pub scatter_columns: Option<Loop>,
    /// The updates of the result, one a component.
    pub commits: Vec<Statement>,
}

/// What a cell adds to a functional: a number that quadrature loops add to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSum {
    /// The scalar.
    pub scalar: Array,
    /// The instruction that zeroes it.
    pub zero: Statement,
    /// The update of the functional.
    pub commit: Statement,
}

/// A loop over quadrature points: evaluations, a pointwise group, products with the bases of test
/// functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The loop.
    pub quad: Loop,
    /// Number of its iterations.
    pub points: i64,
    /// One for each function whose values or derivatives are evaluated, in textual order.
    pub evaluations: Vec<Evaluation>,
    /// Instructions of the pointwise group, in textual order.
    pub pointwise: Vec<Statement>,
    /// What the products multiply the bases by (*e* in the document).
    pub factors: Vec<Array>,
    /// Products with the basis functions of one sub-element of a test function, and of one of a
    /// trial function, in textual order.
    pub products: Vec<Products>,
    /// Additions to the numbers of functionals, in textual order.
    pub sums: Vec<Statement>,
}

/// A loop over test functions that adds to an element vector or matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Products {
    /// Place of what it adds to in [`CellProgram::results`].
    pub result: usize,
    /// The loop.
    pub rows: Loop,
    /// Number of its iterations.
    pub count: i64,
    /// Of a matrix: the loop over trial functions inside it.
    pub columns: Option<Loop>,
    /// Of a matrix: what is the same in a row, scalars.
    pub partials: Vec<Array>,
    /// The products, each with its table and its factor.
    pub insns: Vec<Statement>,
    /// The tables of the products (Ψ).
    pub tables: Vec<Array>,
}

/// Products of tables with gathered degrees of freedom in one loop: the values and derivatives of a
/// function at a point, or those of several functions with the same tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Name of the first function in the form.
    pub function: String,
    /// The loop over the local degrees of freedom.
    pub dofs: Loop,
    /// Number of its iterations.
    pub count: i64,
    /// What it reads: places in [`CellProgram::gathers`].
    pub inputs: Vec<usize>,
    /// The tables (Φ).
    pub tables: Vec<Array>,
    /// The values and derivatives.
    pub outputs: Vec<Array>,
    /// Instructions that zero them.
    pub inits: Vec<Statement>,
}

impl Evaluation {
    /// Whether another one of the same quadrature loop multiplies the same tables.
    pub fn shares_columns_with(&self, other: &Self) -> bool {
        (self.count, &self.tables) == (other.count, &other.tables)
    }
}

/// What a cell program has one of, if its products can be tiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiled<'p> {
    /// The element vector.
    pub element: &'p ElementResult,
    /// The products of each block.
    pub products: Vec<&'p Products>,
}

/// A kernel that is no cell program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kernel `{kernel}` is no operator action of known stages: {found}; kernels of forms have them, with the tags of lowering"
)]
pub struct NotAnAction {
    /// Name of the kernel.
    pub kernel: String,
    /// What is missing or unexpected.
    pub found: String,
}

impl CellProgram {
    /// The element vector and the products of each block, if the products can be tiled.
    ///
    /// # Errors
    /// Tables of which each facet reads entries of its own, matrices, several results, degrees of
    /// freedom that are transformed.
    pub fn tiled(&self, kernel: &Kernel) -> Result<Tiled<'_>, NotAnAction> {
        let refuse = |found: &str| {
            let found =
                format!("{found}, which the strategies `single_cell`, `staged_cells` and `point_tiles` take");
            Err(NotAnAction { kernel: kernel.name.clone(), found })
        };
        if !self.shares_tables {
            return refuse("each facet reads entries of the tables of its own");
        }
        if !self.transforms.is_empty() || !self.result_transforms.is_empty() {
            return refuse("degrees of freedom are transformed by the orientation of cells");
        }
        if self.results.is_empty() {
            return refuse("the result of a cell is a number");
        }
        let [element] = &self.results[..] else { return refuse("a cell has several results") };
        if element.columns.is_some() {
            return refuse("the result of a cell is a matrix");
        }
        let one = |block: &Block| matches!(&block.products[..], [p] if p.count == element.count);
        if !self.blocks.iter().all(one) {
            return refuse("a quadrature loop adds to several parts of the result");
        }
        let products = self.blocks.iter().flat_map(|block| &block.products).collect();
        Ok(Tiled { element, products })
    }

    /// What an evaluation reads.
    pub fn inputs<'p>(&'p self, evaluation: &'p Evaluation) -> impl Iterator<Item = &'p Gather> {
        evaluation.inputs.iter().filter_map(|k| self.gathers.get(*k))
    }

    /// Places of the gathers in the order in which they are first evaluated.
    pub fn evaluated(&self) -> Vec<usize> {
        let mut places = Vec::new();
        for place in self.blocks.iter().flat_map(|b| &b.evaluations).flat_map(|e| &e.inputs) {
            if !places.contains(place) {
                places.push(*place);
            }
        }
        places
    }

    /// The roles once functions with the same tables are evaluated in one loop, that of the first.
    #[must_use]
    pub fn with_shared_columns(&self) -> Self {
        let mut shared = self.clone();
        for block in &mut shared.blocks {
            let mut joined: Vec<Evaluation> = Vec::new();
            for e in std::mem::take(&mut block.evaluations) {
                match joined.iter_mut().find(|first| first.shares_columns_with(&e)) {
                    None => joined.push(e),
                    Some(first) => {
                        first.inputs.extend(e.inputs);
                        first.outputs.extend(e.outputs);
                        first.inits.extend(e.inits);
                    }
                }
            }
            block.evaluations = joined;
        }
        shared
    }

    /// The degrees of freedom of a component, if all that is evaluated and added to has as many.
    #[must_use]
    pub fn count(&self) -> Option<i64> {
        let gathered = self.evaluated().into_iter().map(|k| self.gathers[k].count);
        let mut counts = gathered.chain(self.results.iter().map(|result| result.count));
        let first = counts.next()?;
        counts.all(|count| count == first).then_some(first)
    }

    /// Name of the function that a gather is first evaluated for.
    pub fn function(&self, gather: usize) -> &str {
        let mut evaluations = self.blocks.iter().flat_map(|b| &b.evaluations);
        evaluations.find(|e| e.inputs.contains(&gather)).map_or("", |e| &e.function)
    }
}
