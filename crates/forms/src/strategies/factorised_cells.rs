//! Contractions axis by axis, one cell a work-item.

use super::single_cell::{SingleCell, map_cells};
use super::sum_factorise::{check_factorable, factorise_all, tensor_contractions, with_split_sums};
use super::{StrategyError, applied};
use crate::program::CellLoop;
use purlin_ir::{Access, Insn, Kernel, UpdateOp, VarKind};
use purlin_primitives::Recipe;

/// Arguments of [`factorised_cells`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorisedCells {
    /// Cells, and so work-items, of a work-group.
    pub work_group: u64,
}

/// The number of axes of the tensor products that the tables of all contractions of a kernel are,
/// as those of squares and cubes; none if a table is no such product. Constant tables of simplices
/// may be products of fewer axes than the cell has.
#[must_use]
pub fn tensor_dimension(kernel: &Kernel) -> Option<u32> {
    let kernel = with_split_sums(kernel);
    let all = tensor_contractions(&kernel);
    let dim = all.first()?.dim;
    let is_matrix = |a: &&Access| {
        let var = &kernel.vars[a.var];
        matches!(var.kind, VarKind::Table(_)) && var.shape.len() >= 2
    };
    let contracts = |i: &&Insn| i.update_op() == Some(UpdateOp::Add) && i.reads().iter().any(is_matrix);
    let mut updates = kernel.insns.values().filter(contracts);
    let is_product = |i: &Insn| all.iter().any(|c| c.update == i.name && c.dim == dim);
    updates.all(is_product).then_some(dim)
}

/// Computes contractions with tensor products axis by axis ([`sum_factorise`](super::sum_factorise)),
/// and maps every cell to one work-item.
///
/// # Errors
/// A kernel without such a contraction, or a step that was refused.
///
/// # Source
/// Orszag 1980.
pub fn factorised_cells(
    kernel: &Kernel,
    cells: &CellLoop,
    args: &FactorisedCells,
) -> Result<(Kernel, Recipe), StrategyError> {
    check_factorable(kernel)?;
    applied(kernel, |s| {
        factorise_all(s, kernel)?;
        let factorised = s.kernel().clone();
        let mapping = SingleCell { work_group: args.work_group, constant_tables: true };
        map_cells(s, &factorised, cells, &mapping)
    })
}
