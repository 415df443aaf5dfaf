//! Contractions axis by axis, one cell a work-item.

use super::single_cell::{SingleCell, map_cells};
use super::sum_factorise::{check_factorable, factorise_all};
use super::{StrategyError, applied};
use crate::program::CellLoop;
use purlin_ir::Kernel;
use purlin_transforms::Recipe;

/// Arguments of [`factorised_cells`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorisedCells {
    /// Cells, and so work-items, of a work-group.
    pub work_group: i64,
}

/// Whether a kernel has contractions with tables of tensor products, which [`factorised_cells`]
/// computes axis by axis.
#[must_use]
pub fn is_factorable(kernel: &Kernel) -> bool {
    check_factorable(kernel).is_ok()
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
