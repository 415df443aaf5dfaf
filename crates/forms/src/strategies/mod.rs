//! Strategies of cell programs: functions that compose primitives on a [`Schedule`].
//!
//! Each takes a kernel and its [roles](crate::program::CellProgram), asks for one step after the
//! other, and names what the steps before it made by the handles that they returned. A step that is
//! refused ends the strategy where it was asked for. The result is the kernel and a recipe that
//! replays.

mod ahead;
mod blocks;
mod cell_groups;
mod common_basis;
mod component_products;
mod factorised_cells;
mod factorised_lines;
mod factorised_planes;
mod fewest_operations;
mod fragments;
mod instruction_lines;
mod listed_cells;
mod loop_lanes;
mod matrix_basis;
mod matrix_cells;
mod matrix_group_orbits;
mod matrix_groups;
mod matrix_orbits;
mod modes;
mod multi_level_tiling;
mod orbit_basis;
mod owned_rows;
mod point_orbits;
mod point_tiles;
mod sharing;
mod single_cell;
mod staged_cells;
mod staging;
mod stored_factors;
mod sum_factorise;
mod summed_cells;
mod zero_blocks;

pub use factorised_cells::{FactorisedCells, factorised_cells, tensor_dimension};
pub use factorised_lines::{FactorCopy, FactorisedLines, LineSizes, factorised_lines, line_sizes};
pub use factorised_planes::{FactorisedPlanes, factorised_planes, work_items_of_planes};
pub use fewest_operations::{
    Bipartition, Considered, FewestOperations, OPERATIONS_PER_BYTE, Objective, bipartitions, considered,
    fewest_operations,
};
pub use instruction_lines::{InstructionLines, pad_lines};
pub use listed_cells::{GroupLists, ListedCells, listed_cells};
pub use loop_lanes::{LoopLanes, loops_in_lanes};
pub use matrix_basis::{MatrixBasis, matrix_basis, matrix_basis_instructions};
pub use matrix_cells::{MatrixCells, MatrixSizes, matrix_cells, matrix_sizes};
pub use matrix_group_orbits::matrix_group_orbits;
pub use matrix_groups::{MatrixGroups, matrix_group_dofs, matrix_groups};
pub use matrix_orbits::{matrix_orbit_sizes, matrix_orbits};
pub use modes::{factored_quadrature, table_products};
pub use multi_level_tiling::{MAX_KEPT, multi_level_tiling, staged_multi_level_tiling};
pub use orbit_basis::Orbits;
pub use owned_rows::{OwnedRows, owned_rows};
pub use point_tiles::{PointTiles, point_tiles};
pub use sharing::{SharingDecision, eliminate_sharing};
pub use single_cell::{SingleCell, single_cell_per_work_item};
pub use staged_cells::{StagedCells, StraightCells, staged_cells, straight_cells};
pub use stored_factors::{stored_factor_count, stored_factors};
pub use sum_factorise::{TensorContraction, sum_factorise, tensor_contractions};
pub use summed_cells::{SummedCells, adds_to_numbers, summed_cells};

use crate::program::{NotAnAction, stage};
use crate::tiling::TilingError;
use purlin_ir::{AddressSpace, Insn, Kernel, VarId, VarKind, Variable};
use purlin_primitives::primitives::{SetAddressSpace, SetDynamicLocal};
use purlin_primitives::{Recipe, Schedule, TransformError};

/// A mapping that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// The kernel is not made of the stages of Algorithm 2.
    #[error(transparent)]
    Roles(#[from] NotAnAction),
    /// A parameter of a tiling that makes no sense.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// Another parameter that makes no sense.
    #[error("{symbol} is {found}, needed {needed}")]
    Parameter {
        /// What it is, and its symbol.
        symbol: String,
        /// Its value.
        found: u64,
        /// The bound it breaks.
        needed: String,
    },
    /// The kernel has nothing to factorise.
    #[error(
        "no update is a contraction with a table that is a tensor product; order its rows and columns by axes"
    )]
    NoTensorTable,
    /// Tables are products of different numbers of axes.
    #[error(
        "tables are tensor products of two axes and of three, whose work-items differ; map a cell to a work-item (`factorised_cells`)"
    )]
    MixedTensors,
    /// The integer program of sharing elimination has no solution that the solver finds.
    #[error("the integer program of sharing elimination: {0}")]
    IntegerProgram(String),
    /// A step that was refused.
    #[error(transparent)]
    Step(Box<RefusedStep>),
}

impl StrategyError {
    /// The same of a kernel that some steps had made.
    pub(crate) fn behind(self, mut first: Recipe) -> Self {
        match self {
            Self::Step(mut step) => {
                step.number += first.steps.len();
                first.steps.append(&mut step.recipe.steps);
                step.recipe = first;
                Self::Step(step)
            }
            Self::Roles(_)
            | Self::Tiling(_)
            | Self::Parameter { .. }
            | Self::NoTensorTable
            | Self::IntegerProgram(_)
            | Self::MixedTensors => self,
        }
    }
}

/// A step of a strategy that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {number}: {source}")]
pub struct RefusedStep {
    /// Number of the step, from 1.
    pub number: usize,
    /// The steps before it.
    pub recipe: Recipe,
    /// The kernel it met.
    pub kernel: Kernel,
    /// Why it was refused.
    pub source: TransformError,
}

/// Why a strategy that decides between steps stopped.
enum Stopped {
    /// A step was refused.
    Refused(TransformError),
    /// Nothing was decided.
    Undecided(StrategyError),
}

impl From<TransformError> for Stopped {
    fn from(error: TransformError) -> Self {
        Self::Refused(error)
    }
}

impl From<StrategyError> for Stopped {
    fn from(error: StrategyError) -> Self {
        Self::Undecided(error)
    }
}

/// Runs the steps of a strategy on a kernel.
fn applied(
    kernel: &Kernel,
    steps: impl FnOnce(&mut Schedule) -> Result<(), TransformError>,
) -> Result<(Kernel, Recipe), StrategyError> {
    decided(kernel, |s| steps(s).map_err(Stopped::Refused))
}

/// All arrays of a mapped kernel in local memory as parts of one that the launch provides.
///
/// # Errors
/// A kernel without a temporary in local memory.
pub(crate) fn dynamic_local(kernel: &Kernel) -> Result<(Kernel, Recipe), StrategyError> {
    applied(kernel, |s| s.apply(SetDynamicLocal {}).map(drop))
}

/// Runs the steps of a strategy that may decide nothing.
fn decided(
    kernel: &Kernel,
    steps: impl FnOnce(&mut Schedule) -> Result<(), Stopped>,
) -> Result<(Kernel, Recipe), StrategyError> {
    let mut s = Schedule::of(kernel);
    let done = steps(&mut s);
    let (kernel, recipe) = s.finish();
    match done {
        Ok(()) => Ok((kernel, recipe)),
        Err(Stopped::Refused(source)) => {
            let number = recipe.steps.len() + 1;
            Err(StrategyError::Step(Box::new(RefusedStep { number, recipe, kernel, source })))
        }
        Err(Stopped::Undecided(error)) => Err(error),
    }
}

/// A length as schedules have it; one that no loop has stays one that no loop has.
fn length(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Moves every table to constant memory.
fn constant_tables(s: &mut Schedule, kernel: &Kernel) -> Result<(), TransformError> {
    tables_to(s, kernel, AddressSpace::Constant)
}

/// Moves every table to an address space for tables.
fn tables_to(s: &mut Schedule, kernel: &Kernel, space: AddressSpace) -> Result<(), TransformError> {
    let is_global = |v: &&Variable| matches!(v.kind, VarKind::Table(_)) && v.space == AddressSpace::Global;
    for table in kernel.vars.values().filter(is_global) {
        s.apply(SetAddressSpace::new(&table.name, space))?;
    }
    Ok(())
}

/// The temporaries that an update reads, besides its own.
fn operands(kernel: &Kernel, insn: &Insn) -> Vec<VarId> {
    let is_operand = |v: &VarId| kernel.vars[*v].kind == VarKind::Temporary && *v != insn.lhs.var;
    insn.reads().iter().map(|a| a.var).filter(is_operand).collect()
}

/// Whether an array is what is gathered for a cell.
fn is_gathered(kernel: &Kernel, var: VarId) -> bool {
    let mut writers = kernel.insns.values().filter(|i| i.lhs.var == var).peekable();
    writers.peek().is_some() && writers.all(|i| i.tags.contains(stage::GATHER))
}
