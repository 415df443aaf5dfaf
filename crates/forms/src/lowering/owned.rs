//! Rows of a sparse matrix that an iteration of the outermost loop owns.

use super::needed::Needed;
use super::parameters::Signature;
use super::{LoweredRole, MatrixResult, SparseCount, SparseList};
use crate::form::FormError;
use crate::tabulated::TabulatedForm;
use kingpost_fem::sparse::SlotPacking;
use kingpost_ir::{Affine, Assumption, Expr, ScalarType, VarId};

/// The variables of rows that are owned.
#[derive(Clone)]
pub(super) struct OwnedRows {
    /// Number of degrees of freedom that own rows.
    pub(super) count: VarId,
    pub(super) output: usize,
    pub(super) firsts: VarId,
    pub(super) counts: VarId,
    /// Which degree of freedom of its cell a pair is of.
    pair_rows: VarId,
    pub(super) slots: VarId,
    pub(super) row_starts: VarId,
    pub(super) longest: usize,
    pub(super) packing: SlotPacking,
    /// Whether the entries are overwritten.
    pub(super) sets: bool,
    /// Rows of a degree of freedom.
    pub(super) block: usize,
    /// Degrees of freedom of a cell along columns, and components of each.
    pub(super) columns: [usize; 2],
}

impl OwnedRows {
    /// Declares them, if the rows of a matrix are to be owned.
    pub(super) fn declare(
        signature: &mut Signature<'_>,
        form: &TabulatedForm,
        needed: &Needed,
        pairs: VarId,
    ) -> Result<Option<Self>, FormError> {
        let MatrixResult::OwnedRows { longest } = needed.matrix else { return Ok(None) };
        if form.rank != 2 {
            return Ok(None);
        }
        let outputs: Vec<usize> = needed.outputs.iter().copied().collect();
        let [output] = outputs[..] else {
            let found = outputs.len();
            return Err(refused(&format!("{found} matrices, needed one")));
        };
        let [test, trial] = form.outputs[output].spaces[..] else {
            return Err(refused("a form that has no matrix"));
        };
        if !form.spaces[test].transforms.is_empty() || !form.spaces[trial].transforms.is_empty() {
            return Err(refused(
                "elements whose functions are oriented by their cells, needed Lagrange elements",
            ));
        }
        let name = &form.outputs[output].name;
        let role = |list| LoweredRole::SparseList { output, list };
        let count = LoweredRole::SparseCount { output, count: SparseCount::Owners };
        let owners = signature.param(&format!("n_{name}_owners"), count);
        let block = form.spaces[test].block;
        let starts = [Affine::var(owners).times(block as i64).plus_constant(1)];
        let (owned, paired) = (vec![Affine::var(owners)], vec![Affine::var(pairs)]);
        let mut list = |stem: &str, shape: &[Affine], which| {
            signature.array(&format!("{name}_{stem}"), ScalarType::I32, shape.to_vec(), role(which))
        };
        let columns = [form.spaces[trial].columns, form.spaces[trial].block];
        let longest = longest.max(1);
        let packing = SlotPacking::of(longest);
        let slots = [Affine::constant(packing.words(columns[0]) as i64), Affine::var(pairs)];
        let this = Self {
            count: owners,
            output,
            firsts: list("pair_firsts", &owned, SparseList::PairFirsts),
            counts: list("pair_counts", &owned, SparseList::PairCounts),
            pair_rows: list("pair_rows", &paired, SparseList::PairRows),
            slots: list("slots", &slots, SparseList::Slots),
            row_starts: list("row_starts", &starts, SparseList::RowStarts),
            longest,
            packing,
            sets: needed.first,
            block,
            columns,
        };
        signature.b.assume(Assumption::Ascending(this.row_starts));
        Ok(Some(this))
    }

    /// Rows that a cell adds to, and their columns.
    pub(super) fn extents(&self) -> Vec<usize> {
        vec![self.block, self.columns[0] * self.columns[1]]
    }

    /// Which degree of freedom of its cell a pair is of.
    pub(super) fn own_dof(&self, pair: Expr) -> Expr {
        Expr::load(self.pair_rows, [pair])
    }
}

fn refused(found: &str) -> FormError {
    FormError::Discretisation(format!("assembly by the owners of rows: found {found}; use a lookup table"))
}
