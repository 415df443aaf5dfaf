//! Rows of a sparse matrix that an iteration of the outermost loop owns.

use super::needed::Needed;
use super::parameters::Signature;
use super::turns::Turns;
use super::{LoweredRole, MatrixResult, SparseCount, SparseList};
use crate::form::FormError;
use crate::tabulated::{Role, TabulatedForm};
use kingpost_fem::sparse::SlotPacking;
use kingpost_ir::{Affine, Assumption, BinaryOp, Constraint, Expr, ScalarType, VarId};

/// The variables of rows that are owned.
#[derive(Clone)]
pub(super) struct OwnedRows {
    pub(super) output: usize,
    pub(super) firsts: VarId,
    pub(super) counts: VarId,
    pub(super) slots: VarId,
    pub(super) row_starts: VarId,
    /// The owners, by what is known of them.
    pub(super) owners: Vec<Owners>,
    /// Of cells that are turned.
    pub(super) turned: Option<Turned>,
    pub(super) packing: SlotPacking,
    /// Whether the entries are overwritten.
    pub(super) sets: bool,
    /// Rows of a degree of freedom.
    pub(super) block: usize,
    /// Degrees of freedom of a cell along columns, and components of each.
    pub(super) columns: [usize; 2],
}

/// Degrees of freedom that own rows, and follow each other.
#[derive(Clone, Copy)]
pub(super) struct Owners {
    /// The first of them, unless it is that of all.
    pub(super) first: Option<VarId>,
    pub(super) count: VarId,
    /// Entries of the longest row.
    pub(super) longest: usize,
    pub(super) own: OwnDof,
}

/// Which degree of freedom of its cell a pair is of.
#[derive(Clone, Copy)]
pub(super) enum OwnDof {
    /// What a list says.
    Listed(VarId),
    /// The same of all.
    At(usize),
}

/// What is read of cells that are turned.
#[derive(Clone, Copy)]
pub(super) struct Turned {
    /// The columns of all rows.
    pub(super) columns: VarId,
    /// The first degree of freedom of a vertex.
    pub(super) first_vertex: VarId,
}

/// What is known of the pair that is the entity.
#[derive(Clone)]
pub(super) struct Pair {
    /// The degree of freedom that owns the rows.
    pub(super) owner: Expr,
    /// The rows of the owner.
    pub(super) rows: VarId,
    /// Which degree of freedom of the cell the owner is.
    pub(super) own: Expr,
    pub(super) turned: Option<TurnedPair>,
}

/// Where a cell that is turned has its degrees of freedom.
#[derive(Clone, Copy)]
pub(super) struct TurnedPair {
    pub(super) of: Turned,
    /// Places of its columns in the row.
    pub(super) slots: VarId,
    /// Columns of the row, or of all rows.
    pub(super) columns: VarId,
    /// Where those of the row begin, among those of all.
    pub(super) first: Option<VarId>,
    /// Components of a degree of freedom.
    pub(super) block: usize,
    pub(super) own: Own,
}

/// The degree of freedom of a turned cell that owns the rows, the same of all pairs.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) dof: usize,
    pub(super) is_vertex: bool,
    /// What the pairs add to its own columns, and where these are in the row.
    pub(super) sums: VarId,
    pub(super) slot: VarId,
}

impl Pair {
    /// The number of a vertex of a cell that is turned, or of another degree of freedom; none of
    /// other cells.
    pub(super) fn number(&self, is_vertex: bool, at: Expr) -> Option<Expr> {
        let TurnedPair { of, slots, columns, first, block, own } = self.turned?;
        let slot = Expr::load(slots, [at.clone()]);
        let column = match first {
            Some(first) => Expr::load(columns, [Expr::scalar(first) + slot]),
            None => Expr::load(columns, [slot]),
        };
        let dof = match block {
            1 => column,
            n => Expr::binary(BinaryOp::FloorDiv, column, Expr::Int(n as i64)),
        };
        // the owner is known before its pairs are
        let is_own = Expr::binary(BinaryOp::Eq, at, Expr::Int(own.dof as i64));
        let dof = match own.is_vertex {
            true => Expr::Select(Box::new(is_own), Box::new(self.owner.clone()), Box::new(dof)),
            false => dof,
        };
        Some(match is_vertex {
            true => Expr::binary(BinaryOp::Sub, dof, Expr::scalar(of.first_vertex)),
            false => dof,
        })
    }
}

impl OwnedRows {
    /// Declares them, if the rows of a matrix are to be owned.
    pub(super) fn declare(
        signature: &mut Signature<'_>,
        form: &TabulatedForm,
        needed: &Needed,
        (entries, pairs): (Option<&[Affine]>, VarId),
    ) -> Result<Option<Self>, FormError> {
        let by_dimension = match needed.matrix {
            MatrixResult::OwnedRows { longest } => Err(longest.max(1)),
            MatrixResult::TurnedRows { longest } => Ok(longest),
            _ => return Ok(None),
        };
        if form.rank != 2 {
            return Ok(None);
        }
        let outputs: Vec<usize> = needed.outputs.iter().copied().collect();
        let [output] = outputs[..] else {
            let found = outputs.len();
            return Err(refused(&format!("{found} matrices, needed one")));
        };
        let (&[test, trial], Some(entries)) = (&form.outputs[output].spaces[..], entries) else {
            return Err(refused("a form that has no matrix"));
        };
        if !form.spaces[test].transforms.is_empty() || !form.spaces[trial].transforms.is_empty() {
            return Err(refused(
                "elements whose functions are oriented by their cells, needed Lagrange elements",
            ));
        }
        let name = &form.outputs[output].name;
        let role = |list| LoweredRole::SparseList { output, list };
        let counted = |count| LoweredRole::SparseCount { output, count };
        let all = signature.param(&format!("n_{name}_owners"), counted(SparseCount::Owners));
        let mut owners = Vec::new();
        let mut first_vertex = None;
        if let Ok(longest) = by_dimension {
            let turns = turns(form, needed, [test, trial])?;
            for (dim, own) in turns.own.into_iter().enumerate() {
                let (Some(own), stem) = (own, ["vertex", "edge", "face", "cell"][dim]) else { continue };
                let first = format!("first_{name}_{stem}_owner");
                let first = signature.param(&first, counted(SparseCount::FirstOf { dim }));
                first_vertex.get_or_insert(first);
                let count = format!("n_{name}_{stem}_owners");
                let count = signature.param(&count, counted(SparseCount::OwnersOf { dim }));
                let (begin, n) = (Affine::var(first), Affine::var(count));
                let bounds = [(Affine::constant(0), begin.clone()), (begin.plus(&n), Affine::var(all))];
                for (less, more) in bounds {
                    signature.b.assume(Assumption::Params(Constraint::le(&less, &more)));
                }
                let (longest, own) = (longest[dim].max(1), OwnDof::At(own));
                owners.push(Owners { first: Some(first), count, longest, own });
            }
        }
        let block = form.spaces[test].block;
        let starts = [Affine::var(all).times(block as i64).plus_constant(1)];
        let (owned, paired) = (vec![Affine::var(all)], vec![Affine::var(pairs)]);
        let mut list = |stem: &str, shape: &[Affine], which| {
            signature.array(&format!("{name}_{stem}"), ScalarType::I32, shape.to_vec(), role(which))
        };
        let columns = [form.spaces[trial].columns, form.spaces[trial].block];
        let Some(packing) = needed.matrix.packing() else {
            return Err(FormError::Internal("rows that are owned have places".into()));
        };
        let slots = [Affine::constant(packing.words(columns[0]) as i64), Affine::var(pairs)];
        let firsts = list("pair_firsts", &owned, SparseList::PairFirsts);
        let counts = list("pair_counts", &owned, SparseList::PairCounts);
        if let Err(longest) = by_dimension {
            let own = OwnDof::Listed(list("pair_rows", &paired, SparseList::PairRows));
            owners.push(Owners { first: None, count: all, longest, own });
        }
        let slots = list("slots", &slots, SparseList::Slots);
        let row_starts = list("row_starts", &starts, SparseList::RowStarts);
        let turned = first_vertex.map(|first_vertex| {
            let columns = list("columns", entries, SparseList::Columns);
            Turned { columns, first_vertex }
        });
        let sets = needed.first;
        let this =
            Self { output, firsts, counts, slots, row_starts, owners, turned, packing, sets, block, columns };
        signature.b.assume(Assumption::Ascending(row_starts));
        Ok(Some(this))
    }

    /// Rows that a cell adds to, and their columns.
    pub(super) fn extents(&self) -> Vec<usize> {
        vec![self.block, self.columns[0] * self.columns[1]]
    }
}

impl OwnDof {
    /// Of a pair.
    pub(super) fn of(self, pair: Expr) -> Expr {
        match self {
            Self::Listed(rows) => Expr::load(rows, [pair]),
            Self::At(dof) => Expr::Int(dof as i64),
        }
    }
}

/// How cells are turned, of a form whose arrays are all found by the columns of its matrix.
fn turns(form: &TabulatedForm, needed: &Needed, [test, trial]: [usize; 2]) -> Result<Turns, FormError> {
    if !needed.is_exact {
        return Err(refused("turned cells and rules that are not exact, needed exact ones"));
    }
    let turns = Turns::of(form.cell, &form.spaces[test])?;
    let same = |space: usize| form.spaces[space].map_name() == form.spaces[test].map_name();
    if !same(trial) {
        return Err(refused("turned cells and two spaces, needed one of test and trial functions"));
    }
    for function in needed.inputs.iter().map(|input| input.of) {
        let data = &form.functions[function];
        let columns = form.spaces[data.space].columns;
        if data.role == Role::Coordinates && columns != form.cell.n_vertices() {
            return Err(refused("turned cells that are curved, needed straight ones"));
        }
        let is_of_cells = needed.cell_values.contains(&function);
        if data.role == Role::Coefficient && (is_of_cells || !same(data.space)) {
            let name = &data.name;
            let found = format!("turned cells and `{name}`, which is not of the space of the matrix");
            return Err(refused(&found));
        }
    }
    Ok(turns)
}

fn refused(found: &str) -> FormError {
    FormError::Discretisation(format!("assembly by the owners of rows: found {found}; use a lookup table"))
}
