//! Cell programs: the loops, arrays and instructions of an operator action by their roles.
//!
//! [`lower`](crate::lowering::lower) hands one over with each kernel. That of a kernel in a text is
//! [read](CellProgram::read) from the tags of its instructions, which are those of [`stage`].
//!
//! ```
//! use purlin_forms::program::CellProgram;
//! use purlin_forms::{element::CellShape, form::*, lowering::{LoweringOptions, lower}};
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

pub(crate) use derive::{BlockRoles, EvaluationRoles, Roles};

use purlin_ir::{Kernel, ScalarType};
use purlin_transforms::schedule::{Array, Loop, Statement};
use std::borrow::Cow;

/// An operator action by the roles of its parts, as Kulkarni & Klöckner 2025's Algorithm 2 has
/// them: for each cell it gathers, computes the geometry, zeroes the element vector, runs a loop
/// over the points of each quadrature rule, and scatters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellProgram {
    /// The loop over cells and what it adds to the result.
    pub cells: CellLoop,
    /// What is gathered and then evaluated at quadrature points, in textual order.
    pub gathers: Vec<Gather>,
    /// Other temporaries of a cell that the loops over quadrature points read: Jacobian terms,
    /// coordinates.
    pub per_cell: Vec<Array>,
    /// The local integrals.
    pub element: ElementVector,
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
    /// The updates of the result, one a component.
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

/// The element vector: what the quadrature loops add to and the scatter reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementVector {
    /// Name of the test function, or of the array.
    pub function: String,
    /// The array: `[test functions]` or `[test functions, components]`.
    pub array: Array,
    /// Type of its elements.
    pub ty: ScalarType,
    /// Components: one for a scalar test function.
    pub components: i64,
    /// Number of test functions of a component.
    pub count: i64,
    /// The loop that zeroes it.
    pub zero: Loop,
    /// The loop of the scatter.
    pub scatter: Loop,
}

/// A loop over quadrature points: evaluations, a pointwise group, products with the basis of the
/// test function.
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
    /// What the products multiply the basis by (*e* in the document).
    pub factors: Vec<Array>,
    /// The loop over test functions around the products.
    pub rows: Loop,
    /// The products, each with its table and its factor.
    pub products: Vec<Statement>,
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
    /// The roles, if a tile of a table serves all cells of a group.
    ///
    /// # Errors
    /// Tables of which each cell or facet reads entries of its own.
    pub fn with_tiles_of_tables(&self, kernel: &Kernel) -> Result<&Self, NotAnAction> {
        if self.shares_tables {
            return Ok(self);
        }
        let found = "each facet reads entries of the tables of its own, which the strategies `single_cell`, \
                     `staged_cells` and `point_tiles` take";
        Err(NotAnAction { kernel: kernel.name.clone(), found: found.into() })
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

    /// Name of the function that a gather is first evaluated for.
    pub fn function(&self, gather: usize) -> &str {
        let mut evaluations = self.blocks.iter().flat_map(|b| &b.evaluations);
        evaluations.find(|e| e.inputs.contains(&gather)).map_or("", |e| &e.function)
    }
}

/// A kernel whose parts have roles: those that lowering handed over, or those that the tags of a
/// text say.
pub trait CellKernel {
    /// The kernel.
    fn kernel(&self) -> &Kernel;

    /// Its loop over cells.
    ///
    /// # Errors
    /// A kernel without a scatter inside a loop.
    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction>;

    /// All its roles.
    ///
    /// # Errors
    /// As [`CellProgram::read`].
    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction>;
}

impl CellKernel for Kernel {
    fn kernel(&self) -> &Kernel {
        self
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        CellLoop::read(self).map(Cow::Owned)
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        CellProgram::read(self).map(Cow::Owned)
    }
}
