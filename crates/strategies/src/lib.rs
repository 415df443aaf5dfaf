//! The strategies of Kingpost: each composes primitives on a [`Schedule`].
//!
//! Each asks for one step after the other, and names what the steps before it made by the handles that
//! they returned. A step that is refused ends the strategy where it was asked for. A file has all of a
//! strategy: its arguments, its text, its steps, and what the tuner tries of it.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod ahead;
mod blocks;
mod cell_blocks;
mod cell_groups;
mod component_products;
mod double_single;
mod dynamic_local;
mod factorised_cells;
mod factorised_lines;
mod factorised_planes;
mod fewest_operations;
mod fragments;
mod hole_values;
mod in_orbits;
mod instruction;
mod instruction_loops;
mod line_tables;
mod listed_cells;
mod loop_lanes;
mod map_runs;
mod matrix_cells;
mod matrix_group_choices;
mod matrix_group_kinds;
mod matrix_group_orbits;
mod matrix_groups;
mod matrix_orbits;
mod mixed_precision;
mod modes;
mod multi_level_tiling;
mod orbit_basis;
mod owned_rows;
mod point_loops;
mod point_orbits;
mod point_tiles;
mod rules;
mod sequential;
mod sharing;
mod single_cell;
mod staged_cells;
mod staging;
mod stored_factors;
mod sub_groups;
mod sum_factorise;
mod summed_cells;
mod zero_blocks;

pub mod strategy;
pub mod tiling;

pub use cell_blocks::CellBlocks;
pub use double_single::DoubleSingle;
pub use dynamic_local::DynamicLocal;
pub use factorised_cells::{FactorisedCells, tensor_dimension};
pub use factorised_lines::{FactorCopy, FactorisedLines, LineSizes, line_sizes};
pub use factorised_planes::{FactorisedPlanes, work_items_of_planes};
pub use fewest_operations::{
    Bipartition, Considered, FewestOperations, OPERATIONS_PER_BYTE, Objective, bipartitions, considered,
};
pub use hole_values::HoleValues;
pub use in_orbits::InOrbits;
pub use instruction::MatrixInstruction;
pub use listed_cells::ListedCells;
pub use loop_lanes::LoopLanes;
pub use map_runs::MapRuns;
pub use matrix_cells::{MatrixCells, MatrixSizes, matrix_sizes};
pub use matrix_groups::{MatrixGroups, matrix_group_dofs};
pub use matrix_orbits::matrix_orbit_sizes;
pub use mixed_precision::MixedPrecision;
pub use modes::{Modes, table_products, with_modes};
pub use multi_level_tiling::{MAX_KEPT, MultiLevelTiling, StagedTiling};
pub use owned_rows::OwnedRows;
pub use point_tiles::PointTiles;
pub use rules::Rules;
pub use sequential::Sequential;
pub use sharing::{SharingDecision, SharingElimination, SharingGraph, eliminate_sharing};
pub use single_cell::{ConstantCells, SingleCell};
pub use staged_cells::{StagedCells, StraightCells, values_of_cell, words_in_registers};
pub use stored_factors::{STAGED_WORDS, StoredFactors};
pub use sum_factorise::{TensorContraction, sum_factorise, tensor_contractions};
pub use summed_cells::{SummedCells, is_functional};

pub use strategy::mapping::Mapping;
pub use strategy::relowering::{Relowering, relowered};
pub use strategy::set::{StrategyInfo, StrategySet, TakenName};
pub use strategy::{Combinator, MappingError, RefusedStep, Strategy, StrategyError, table_bytes};

use crate::strategy::Stopped;
use kingpost_forms::program::stage;
use kingpost_ir::{AddressSpace, Insn, Kernel, VarId, VarKind, Variable};
use kingpost_primitives::primitives::SetAddressSpace;
use kingpost_primitives::{Recipe, Schedule, TransformError};
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::sync::OnceLock;

/// The strategies of Kingpost, in the order in which the tuner tries them.
#[must_use]
pub fn strategies() -> &'static StrategySet {
    static ALL: OnceLock<StrategySet> = OnceLock::new();
    ALL.get_or_init(|| {
        StrategySet::default()
            .and_own::<Sequential>()
            .and_own::<SingleCell>()
            .and_own::<ConstantCells>()
            .and_own::<StagedCells>()
            .and_own::<StraightCells>()
            .and_own::<PointTiles>()
            .and_own::<FactorisedCells>()
            .and_own::<FactorisedPlanes>()
            .and_own::<FactorisedLines>()
            .and_own_combinator::<StoredFactors>()
            .and_own::<SummedCells>()
            .and_own::<ListedCells>()
            .and_own::<CellBlocks>()
            .and_own::<LoopLanes>()
            .and_own::<OwnedRows>()
            .and_own::<MultiLevelTiling>()
            .and_own::<StagedTiling>()
            .and_own::<MatrixCells>()
            .and_own::<MatrixGroups>()
            .and_own_combinator::<InOrbits>()
            .and_own_combinator::<Modes>()
            .and_own_combinator::<FewestOperations>()
            .and_own_combinator::<SharingElimination>()
            .and_own_combinator::<Rules>()
            .and_own_combinator::<MapRuns>()
            .and_own_combinator::<DynamicLocal>()
            .and_own_combinator::<MixedPrecision>()
            .and_own_combinator::<DoubleSingle>()
            .and_own::<HoleValues>()
    })
}

/// Reads a mapping of Kingpost's [`strategies`]; one with others is read by
/// [their set](StrategySet::mapping).
impl<'de> Deserialize<'de> for Mapping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DeserializeSeed::deserialize(strategies(), deserializer)
    }
}

/// The kernel after some steps; none where one is refused.
fn trial(kernel: &Kernel, steps: impl FnOnce(&mut Schedule) -> Result<(), TransformError>) -> Option<Kernel> {
    let mut s = Schedule::of(kernel);
    steps(&mut s).ok()?;
    Some(s.finish().0)
}

/// What steps decide, and the kernel and the recipe that they make.
fn decided<T>(
    kernel: &Kernel,
    steps: impl FnOnce(&mut Schedule) -> Result<T, Stopped>,
) -> Result<(T, Kernel, Recipe), MappingError> {
    let mut s = Schedule::of(kernel);
    let done = steps(&mut s);
    let (kernel, recipe) = s.finish();
    match done {
        Ok(found) => Ok((found, kernel, recipe)),
        Err(stopped) => Err(stopped.after(kernel, recipe)),
    }
}

/// Degrees of freedom that are transferred separately, in words.
fn show_parts(f: &mut fmt::Formatter<'_>, parts: &[u64]) -> fmt::Result {
    if parts.is_empty() {
        return Ok(());
    }
    let parts: Vec<String> = parts.iter().map(u64::to_string).collect();
    write!(f, ", transfers of {}", parts.join(" + "))
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
