//! One cell a work-item (Kulkarni & Klöckner 2025, §4.1, Algorithm 3).

use super::{constant_tables, length};
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Question, Stopped, Strategy, Work};
use kingpost_forms::program::CellLoop;
use kingpost_ir::{AddressSpace, AxisTag, Kernel, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{MakeAtomic, SetAddressSpace};
use kingpost_primitives::schedule::Statement;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps every cell to one work-item: temporaries private, the scatter atomic, cells in groups on
/// g.0 × l.0.
///
/// # Errors
/// A step that is refused: no such loop, cells that depend on each other, a group of no work-item.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.1 and Algorithm 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleCell {
    /// Cells, and so work-items, of a group; 32 fills a sub-group of every NVIDIA device.
    pub cells: u64,
}

impl Default for SingleCell {
    fn default() -> Self {
        Self { cells: 32 }
    }
}

impl fmt::Display for SingleCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "single cell, {} a group", self.cells)
    }
}

impl Arguments for SingleCell {
    const NAME: &'static str = "single_cell";
    const SUMMARY: &'static str = "One cell a work-item.";
}

impl Strategy for SingleCell {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let args = GroupOfCells { cells: self.cells, constant_tables: false };
        Ok(map_cells(on.schedule(), form.kernel(), &*form.cell_loop()?, args)?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        // with larger tables the work-item spills anyway
        let more = question.tables_fit_constant_cache().then_some(128);
        [32].into_iter().chain(more).map(|cells| Self { cells }).collect()
    }
}

/// As [`SingleCell`], with tables in constant memory: all work-items of a sub-group read the same entry,
/// which constant memory serves as fast as a register while its cache holds them (4 KB: 15 TFLOP/s,
/// local memory 17, cached global memory 8; H200, 2026-11-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
}

impl fmt::Display for ConstantCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "single cell, {} a group, constant tables", self.cells)
    }
}

impl Arguments for ConstantCells {
    const NAME: &'static str = "constant_cells";
    const SUMMARY: &'static str = "One cell a work-item, tables in constant memory.";
}

impl Strategy for ConstantCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let args = GroupOfCells { cells: self.cells, constant_tables: true };
        Ok(map_cells(on.schedule(), form.kernel(), &*form.cell_loop()?, args)?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let cells: &[u64] = if question.tables_fit_constant_cache() { &[32, 128] } else { &[] };
        cells.iter().map(|cells| Self { cells: *cells }).collect()
    }
}

impl Mapping {
    /// One cell a work-item, 32 cells a work-group (Kulkarni & Klöckner 2025, §4.1).
    #[must_use]
    pub fn single_cell() -> Self {
        SingleCell::default().into()
    }
}

/// A group of cells, one a work-item.
#[derive(Clone, Copy)]
pub(super) struct GroupOfCells {
    pub(super) cells: u64,
    /// Whether the tables go to constant memory.
    pub(super) constant_tables: bool,
}

/// The steps of the strategy; `kernel` is the one before all steps of the schedule.
pub(super) fn map_cells(
    s: &mut Schedule,
    kernel: &Kernel,
    cells: &CellLoop,
    args: GroupOfCells,
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
    let [group, item] = s.split_as(&cells.cell, length(args.cells), [&names[0], &names[1]])?;
    s.tag(&group, AxisTag::Group(0))?;
    s.tag(&item, AxisTag::Local(0))
}

/// Makes what cells add to the result atomic.
pub(super) fn make_atomic(s: &mut Schedule, commits: &[Statement]) -> Result<(), TransformError> {
    commits.iter().try_for_each(|insn| s.apply(MakeAtomic::insn(insn)).map(drop))
}
