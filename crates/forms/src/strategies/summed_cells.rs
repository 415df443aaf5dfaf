//! One cell a work-item, with the sum of a group's cells in a tree: functionals.

use super::single_cell::make_atomic;
use super::{StrategyError, applied, constant_tables, length};
use crate::program::{CellLoop, NotAnAction};
use purlin_ir::{AxisTag, Expr, Kernel};
use purlin_primitives::ScheduleSteps;
use purlin_primitives::primitives::ReduceInTree;
use purlin_primitives::schedule::Loop;
use purlin_primitives::{Recipe, Schedule, TransformError};

/// Arguments of [`summed_cells`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SummedCells {
    /// Cells, and so work-items, of a group.
    pub work_group: u64,
    /// Whether the tables go to constant memory.
    pub constant_tables: bool,
}

/// Maps every cell to one work-item, and adds what the cells of a group add to one number in a tree
/// in local memory, so that a group updates the result once.
///
/// By [`single_cell_per_work_item`](super::single_cell_per_work_item), all work-items of the launch
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
pub fn summed_cells(
    kernel: &Kernel,
    cells: &CellLoop,
    args: &SummedCells,
) -> Result<(Kernel, Recipe), StrategyError> {
    let sums = cells.commits.iter().map(|s| sum_of(kernel, s.name())).collect::<Result<Vec<_>, _>>()?;
    if sums.is_empty() {
        let found = "each cell stores a result of its own, which the strategy `single_cell` takes".into();
        return Err(NotAnAction { kernel: kernel.name.clone(), found }.into());
    }
    applied(kernel, |s| map(s, kernel, cells, &sums, args))
}

/// Whether all cells add to the same numbers.
#[must_use]
pub fn adds_to_numbers(kernel: &Kernel, cells: &CellLoop) -> bool {
    !cells.commits.is_empty() && cells.commits.iter().all(|s| sum_of(kernel, s.name()).is_ok())
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
    match &insn.rhs {
        Expr::Load(sum) if is_one && sum.index.is_empty() => Ok(kernel.vars[sum.var].name.clone()),
        Expr::Load(_)
        | Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => Err(refuse()),
    }
}

fn map(
    s: &mut Schedule,
    kernel: &Kernel,
    cells: &CellLoop,
    sums: &[String],
    args: &SummedCells,
) -> Result<(), TransformError> {
    if args.constant_tables {
        constant_tables(s, kernel)?;
    }
    let names = ["group", "item"].map(|end| format!("{}_{end}", cells.cell));
    let [group, item] = s.split_as(&cells.cell, length(args.work_group), [&names[0], &names[1]])?;
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
