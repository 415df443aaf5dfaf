//! One cell a work-item, with the sum of a group's cells in a tree: functionals.

use super::single_cell::make_atomic;
use super::{constant_tables, length};
use crate::strategy::{Arguments, Question, Stopped, Strategy, Work};
use kingpost_forms::CellKernel;
use kingpost_forms::program::{CellLoop, NotAnAction};
use kingpost_ir::{AxisTag, Expr, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::ReduceInTree;
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps every cell to one work-item, and adds what the cells of a group add to one number in a tree
/// in local memory, so that a group updates the result once.
///
/// By [`SingleCell`](super::SingleCell), all work-items of the launch
/// update one address, one after the other.
///
/// # Rewrite
/// ```text
/// for cell                   =>   for cell_group {g.0}
///   e = ...                         for cell_item {l.0}
///   s: y[0] += e                      e[cell_item] = ...
///                                   for cell_sum {l.0}: tree[cell_sum] = e[cell_sum]
///                                   tree[0] = the sum of tree, halved by halved
///                                   s: y[0] += tree[0]   {atomic}
/// ```
///
/// # Errors
/// A result of more than one number for all cells; a step that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummedCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
    /// Whether the tables are in constant memory.
    pub constant_tables: bool,
}

impl fmt::Display for SummedCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = if self.constant_tables { ", constant tables" } else { "" };
        write!(f, "summed cells, {} a group{tables}", self.cells)
    }
}

impl Arguments for SummedCells {
    const NAME: &'static str = "summed_cells";
    const SUMMARY: &'static str = "One cell a work-item, the sum of a group in a tree: functionals.";
}

impl Strategy for SummedCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let (kernel, cells) = (form.kernel(), form.cell_loop()?);
        let sums = cells.commits.iter().map(|s| sum_of(kernel, s.name())).collect::<Result<Vec<_>, _>>()?;
        if sums.is_empty() {
            let found = "each cell stores a result of its own, which the strategy `single_cell` takes".into();
            return Err(NotAnAction { kernel: kernel.name.clone(), found }.into());
        }
        Ok(map(on.schedule(), kernel, &cells, &sums, *self)?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let constant_tables = question.tables_fit_constant_cache();
        let cells: &[u64] = if is_functional(question.form) { &[32, 128, 256] } else { &[] };
        cells.iter().map(|cells| Self { cells: *cells, constant_tables }).collect()
    }
}

/// Whether all cells add to the same numbers.
#[must_use]
pub fn is_functional(form: &dyn CellKernel) -> bool {
    let is_sum = |cells: &CellLoop| cells.commits.iter().all(|s| sum_of(form.kernel(), s.name()).is_ok());
    form.cell_loop().is_ok_and(|cells| !cells.commits.is_empty() && is_sum(&cells))
}

/// The temporary that an instruction adds to a number that is the same for all cells.
fn sum_of(kernel: &Kernel, commit: &str) -> Result<String, NotAnAction> {
    let refuse = || NotAnAction {
        kernel: kernel.name.clone(),
        found: format!(
            "`{commit}` adds to an element of each cell, needed one number for all cells; take another strategy"
        ),
    };
    let insn = kernel.insn(commit).map(|id| &kernel.insns[id]).ok_or_else(refuse)?;
    let is_one = insn.lhs.index.iter().all(|index| matches!(index, Expr::Int(_)));
    let sum = insn.rhs.as_load().filter(|sum| is_one && sum.index.is_empty());
    sum.map(|sum| kernel.vars[sum.var].name.clone()).ok_or_else(refuse)
}

fn map(
    s: &mut Schedule,
    kernel: &Kernel,
    cells: &CellLoop,
    sums: &[String],
    args: SummedCells,
) -> Result<(), TransformError> {
    if args.constant_tables {
        constant_tables(s, kernel)?;
    }
    let names = ["group", "item"].map(|end| format!("{}_{end}", cells.cell));
    let [group, item] = s.split_as(&cells.cell, length(args.cells), [&names[0], &names[1]])?;
    for sum in sums {
        s.expand(sum, [&item])?;
    }
    let stems: Vec<String> = sums.iter().map(|sum| format!("{sum}_sum")).collect();
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let loops: Vec<Loop> = s.distribute_as(&item, cells.commits.iter().map(String::from), &stems)?;
    for terms in &loops {
        s.make(ReduceInTree::new(terms.name()).by_work_items(AxisTag::Local(0)))?;
    }
    make_atomic(s, &cells.commits)?;
    s.tag(&group, AxisTag::Group(0))?;
    s.tag(&item, AxisTag::Local(0))
}
