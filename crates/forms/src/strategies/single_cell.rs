//! One cell a work-item (Kulkarni & Klöckner 2025, §4.1, Algorithm 3).

use super::{StrategyError, applied, constant_tables, length};
use crate::program::CellLoop;
use purlin_ir::{AddressSpace, AxisTag, Kernel, VarKind, Variable};
use purlin_primitives::ScheduleSteps;
use purlin_primitives::primitives::{MakeAtomic, SetAddressSpace};
use purlin_primitives::schedule::Statement;
use purlin_primitives::{Recipe, Schedule, TransformError};

/// Arguments of [`single_cell_per_work_item`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleCell {
    /// Work-items of a group; 32 fills a sub-group of every NVIDIA device.
    pub work_group: u64,
    /// Whether the tables go to constant memory: all work-items of a sub-group read the same entry,
    /// which constant memory serves as fast as a register while its cache holds them (4 KB: 15
    /// TFLOP/s, local memory 17, cached global memory 8; H200, 2026-11-21).
    pub constant_tables: bool,
}

impl Default for SingleCell {
    fn default() -> Self {
        Self { work_group: 32, constant_tables: false }
    }
}

/// Maps every cell to one work-item: temporaries private, the scatter atomic, cells in groups of 32
/// on g.0 × l.0.
///
/// Returns the kernel and the recipe that made it.
///
/// # Errors
/// A step that is refused: no such loop, cells that depend on each other, a group of no work-item.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.1 and Algorithm 3.
pub fn single_cell_per_work_item(
    kernel: &Kernel,
    cells: &CellLoop,
    args: &SingleCell,
) -> Result<(Kernel, Recipe), StrategyError> {
    applied(kernel, |s| map_cells(s, kernel, cells, args))
}

/// The steps of the strategy; `kernel` is the one before all steps of the schedule.
pub(super) fn map_cells(
    s: &mut Schedule,
    kernel: &Kernel,
    cells: &CellLoop,
    args: &SingleCell,
) -> Result<(), TransformError> {
    let is_shared = |v: &&Variable| v.kind == VarKind::Temporary && v.space != AddressSpace::Private;
    for var in kernel.vars.values().filter(is_shared) {
        s.apply(SetAddressSpace::new(&var.name, AddressSpace::Private))?;
    }
    if args.constant_tables {
        constant_tables(s, kernel)?;
    }
    make_atomic(s, &cells.commits)?;
    let names = ["group", "item"].map(|end| format!("{}_{end}", cells.cell));
    let [group, item] = s.split_as(&cells.cell, length(args.work_group), [&names[0], &names[1]])?;
    s.tag(&group, AxisTag::Group(0))?;
    s.tag(&item, AxisTag::Local(0))
}

/// Makes what cells add to the result atomic.
pub(super) fn make_atomic(s: &mut Schedule, commits: &[Statement]) -> Result<(), TransformError> {
    commits.iter().try_for_each(|insn| s.apply(MakeAtomic::insn(insn)).map(drop))
}
