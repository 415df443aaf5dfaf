//! Rows of a sparse matrix that an iteration of the outermost loop owns.

use super::needed::Needed;
use super::parameters::Signature;
use super::turns::Turns;
use super::{LoweredRole, MatrixResult, OwnerCells, RowOwners, SparseCount, SparseList};
use crate::form::FormError;
use crate::tabulated::{Role, TabulatedForm};
use kingpost_fem::sparse::SlotPacking;
use kingpost_ir::{Affine, Assumption, BinaryOp, Constraint, Expr, KernelBuilder, ScalarType, VarId};
use std::collections::BTreeSet;

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
    /// Whether the cells of an owner are strips.
    pub(super) are_strips: bool,
    pub(super) packing: SlotPacking,
    /// Whether the rows of a group of owners lie together.
    pub(super) are_packed: bool,
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
    /// The first degree of freedom of a vertex, unless it is that of all.
    pub(super) first_vertex: Option<VarId>,
}

/// The rows of owners while cells add to them.
#[derive(Clone)]
pub(super) struct Rows {
    /// The sums, `[rows, entries]`; of rows that are packed, `[entries of a group]`.
    pub(super) sums: VarId,
    pub(super) packed: Option<PackedRow>,
}

/// Where a row lies among those of its group.
#[derive(Clone)]
pub(super) struct PackedRow {
    /// Where the entries of the group begin and end.
    pub(super) group: [VarId; 2],
    /// Where those of the row begin, and how many they are.
    pub(super) first: VarId,
    pub(super) length: VarId,
    /// The first row after those of the group.
    pub(super) after: Expr,
}

/// What is known of the pair that is the entity.
#[derive(Clone)]
pub(super) struct Pair {
    /// The degree of freedom that owns the rows.
    pub(super) owner: Expr,
    /// The rows of the owner.
    pub(super) rows: Rows,
    /// Which degree of freedom of the cell the owner is.
    pub(super) own: Expr,
    pub(super) cell: PairCell,
}

/// Where the cell of a pair has its degrees of freedom.
#[derive(Clone)]
pub(super) enum PairCell {
    /// Where its map says.
    Mapped,
    /// Where the columns of the row say.
    Turned(TurnedPair),
    /// One vertex after the other comes to the cell.
    Strip(Coming),
}

/// Where a cell that is turned has its degrees of freedom.
#[derive(Clone, Copy)]
pub(super) struct TurnedPair {
    /// Places of its columns in the row.
    pub(super) slots: VarId,
    pub(super) columns: RowColumns,
    pub(super) own: Own,
}

/// A vertex that comes to the cells of a strip.
#[derive(Clone)]
pub(super) struct Coming {
    /// Its degree of freedom.
    pub(super) dof: Expr,
    pub(super) first_vertex: Option<VarId>,
}

/// The columns of the row of an owner.
#[derive(Clone, Copy)]
pub(super) struct RowColumns {
    /// Columns of the row, or of all rows.
    pub(super) columns: VarId,
    /// Where those of the row begin, among those of all.
    pub(super) first: Option<VarId>,
    /// Components of a degree of freedom.
    pub(super) block: usize,
    /// The first degree of freedom of a vertex, unless it is that of all.
    pub(super) first_vertex: Option<VarId>,
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

impl RowColumns {
    /// The degree of freedom whose columns begin at a place in the row.
    pub(super) fn dof(&self, slot: Expr) -> Expr {
        let column = match self.first {
            Some(first) => Expr::load(self.columns, [Expr::scalar(first) + slot]),
            None => Expr::load(self.columns, [slot]),
        };
        match self.block {
            1 => column,
            n => Expr::binary(BinaryOp::FloorDiv, column, Expr::Int(n as i64)),
        }
    }
}

impl Pair {
    /// The number of a vertex of a cell, or of another degree of freedom; none of a cell that has a
    /// map.
    pub(super) fn number(&self, is_vertex: bool, at: Expr) -> Option<Expr> {
        let (dof, first_vertex) = match &self.cell {
            PairCell::Mapped => return None,
            PairCell::Turned(TurnedPair { slots, columns, own }) => {
                let dof = columns.dof(Expr::load(*slots, [at.clone()]));
                // the owner is known before its pairs are
                let is_own = Expr::binary(BinaryOp::Eq, at, Expr::Int(own.dof as i64));
                let dof = match own.is_vertex {
                    true => Expr::Select(Box::new(is_own), Box::new(self.owner.clone()), Box::new(dof)),
                    false => dof,
                };
                (dof, columns.first_vertex)
            }
            PairCell::Strip(Coming { dof, first_vertex }) => (dof.clone(), *first_vertex),
        };
        Some(match first_vertex.filter(|_| is_vertex) {
            Some(first) => Expr::binary(BinaryOp::Sub, dof, Expr::scalar(first)),
            None => dof,
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
        let MatrixResult::OwnedRows(RowOwners { cells, longest, packed }) = needed.matrix else {
            return Ok(None);
        };
        if form.rank != 2 {
            return Ok(None);
        }
        let (output, [test, trial], entries) = matrix_of(form, needed, entries)?;
        let name = &form.outputs[output].name;
        let role = |list| LoweredRole::SparseList { output, list };
        let counted = |count| LoweredRole::SparseCount { output, count };
        let all = signature.param(&format!("n_{name}_owners"), counted(SparseCount::Owners));
        let mut owners = Vec::new();
        let mut first_vertex = None;
        let are_strips = cells == OwnerCells::Strips;
        if are_strips && turns(form, needed, [test, trial])?.dims.iter().any(|dim| *dim > 0) {
            return Err(refused(
                "strips of cells with degrees of freedom that are not at vertices, needed degree 1",
            ));
        }
        if cells == OwnerCells::Turned {
            let turns = turns(form, needed, [test, trial])?;
            owners = by_dimension_of(signature, (output, name), (&turns, longest), all);
            first_vertex = owners.first().and_then(|owners| owners.first);
        }
        let block = form.spaces[test].block;
        let components = block.max(form.spaces[trial].block);
        if packed && components > 1 {
            return Err(refused(&format!("packed rows of {components} components, needed one")));
        }
        let starts = [Affine::var(all).times(block as i64).plus_constant(1)];
        let (owned, paired) = (vec![Affine::var(all)], vec![Affine::var(pairs)]);
        let mut list = |stem: &str, shape: &[Affine], which| {
            signature.array(&format!("{name}_{stem}"), ScalarType::I32, shape.to_vec(), role(which))
        };
        let columns = [form.spaces[trial].columns, form.spaces[trial].block];
        let (packing, words) = match needed.matrix.packing() {
            Some(packing) => (packing, packing.words(columns[0])),
            None => (SlotPacking::One, 1), // the numbers of strips hold rounds
        };
        let slots = [Affine::constant(words as i64), Affine::var(pairs)];
        let firsts = list("pair_firsts", &owned, SparseList::PairFirsts);
        let counts = list("pair_counts", &owned, SparseList::PairCounts);
        let own = match cells {
            OwnerCells::Turned => None,
            OwnerCells::Strips => Some(OwnDof::At(0)),
            OwnerCells::Mapped => Some(OwnDof::Listed(list("pair_rows", &paired, SparseList::PairRows))),
        };
        owners.extend(own.map(|own| Owners { first: None, count: all, longest: longest[0].max(1), own }));
        let slots = list("slots", &slots, SparseList::Slots);
        let row_starts = list("row_starts", &starts, SparseList::RowStarts);
        let turned = (are_strips || first_vertex.is_some()).then(|| {
            let columns = list("columns", entries, SparseList::Columns);
            Turned { columns, first_vertex }
        });
        signature.b.assume(Assumption::Ascending(row_starts));
        Ok(Some(Self {
            output,
            firsts,
            counts,
            slots,
            row_starts,
            owners,
            turned,
            are_strips,
            packing,
            are_packed: packed,
            sets: needed.first,
            block,
            columns,
        }))
    }

    /// Assumes that arrays have an entry for each owner, of strips: these read it, whatever columns
    /// there are.
    pub(super) fn assume_vertices<'a>(&self, b: &mut KernelBuilder, arrays: impl Iterator<Item = &'a VarId>) {
        if !self.are_strips {
            return;
        }
        let sizes: BTreeSet<Affine> =
            arrays.filter_map(|array| b.so_far().vars[*array].shape.first().cloned()).collect();
        for (owners, size) in
            self.owners.iter().flat_map(|owners| sizes.iter().map(|size| (owners.count, size)))
        {
            b.assume(Assumption::Params(Constraint::le(&Affine::var(owners), size)));
        }
    }

    /// Rows that a cell adds to, and their columns.
    pub(super) fn extents(&self) -> Vec<usize> {
        vec![self.block, self.columns[0] * self.columns[1]]
    }
}

impl Owners {
    /// One of them, by its number among them.
    pub(super) fn at(&self, number: Expr) -> Expr {
        match self.first {
            None => number,
            Some(first) => number + Expr::scalar(first),
        }
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

/// The matrix to which a form adds: its output, its spaces and its entries.
fn matrix_of<'e>(
    form: &TabulatedForm,
    needed: &Needed,
    entries: Option<&'e [Affine]>,
) -> Result<(usize, [usize; 2], &'e [Affine]), FormError> {
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
    Ok((output, [test, trial], entries))
}

/// The owners at vertices, on edges, on faces and in cells, which follow each other.
fn by_dimension_of(
    signature: &mut Signature<'_>,
    (output, name): (usize, &str),
    (turns, longest): (&Turns, [usize; 4]),
    all: VarId,
) -> Vec<Owners> {
    let counted = |count| LoweredRole::SparseCount { output, count };
    let mut owners = Vec::new();
    for (dim, own) in turns.own.into_iter().enumerate() {
        let (Some(own), stem) = (own, ["vertex", "edge", "face", "cell"][dim]) else { continue };
        let first = format!("first_{name}_{stem}_owner");
        let first = signature.param(&first, counted(SparseCount::FirstOf { dim }));
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
    owners
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
