//! Contractions axis by axis, one cell a work-item.

use super::single_cell::{GroupOfCells, map_cells};
use super::sum_factorise::{check_factorable, factorise_all, tensor_contractions, with_split_sums};
use crate::strategy::{Arguments, Question, Stopped, Strategy, Work};
use kingpost_ir::{Access, Insn, Kernel, UpdateOp, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorisedCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
}

impl fmt::Display for FactorisedCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "factorised sums, {} cells a group", self.cells)
    }
}

impl Arguments for FactorisedCells {
    const NAME: &'static str = "factorised_cells";
    const SUMMARY: &'static str = "One cell a work-item, sums of tensor products axis by axis.";
}

impl Strategy for FactorisedCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        check_factorable(form.kernel())?;
        let (cells, s) = (form.cell_loop()?, on.schedule());
        factorise_all(s, form.kernel())?;
        let factorised = s.kernel().clone();
        let args = GroupOfCells { cells: self.cells, constant_tables: true };
        Ok(map_cells(s, &factorised, &cells, args)?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let cells: &[u64] =
            if tensor_dimension(question.form.kernel()).is_some() { &[1, 2, 4, 8, 16, 32] } else { &[] };
        cells.iter().map(|cells| Self { cells: *cells }).collect()
    }
}
