//! The degrees of freedom of an entity that a kernel gathers, and the results that it scatters.

use super::entity::side_suffix;
use super::graph::{Graph, Op, Uses};
use crate::tabulated::{Integral, Role, Side, Space, TabulatedForm};
use kingpost_ir::{Affine, Expr, VarId};

/// Some columns of a space: `offset + stride * i` for `i` below `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Columns {
    pub(super) offset: usize,
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl Columns {
    pub(super) fn new(offset: usize, stride: usize, count: usize) -> Self {
        // one column has no distance to another
        Self { offset, stride: if count == 1 { 1 } else { stride }, count }
    }

    pub(super) fn all(space: &Space) -> Self {
        Self { offset: 0, stride: 1, count: space.columns }
    }

    /// The column of a number.
    pub(super) fn column(self, i: Expr) -> Expr {
        let scaled = if self.stride == 1 { i } else { Expr::Int(self.stride as i64) * i };
        if self.offset == 0 { scaled } else { scaled + Expr::Int(self.offset as i64) }
    }
}

/// Degrees of freedom of a function (or results of an output) in a cell of the entity: all columns
/// of its space, or those of one sub-element, as an array of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Local {
    /// Place of the function or output.
    pub(super) of: usize,
    pub(super) side: Option<Side>,
    pub(super) space: usize,
    pub(super) columns: Columns,
    /// Whether these are all columns.
    pub(super) whole: bool,
    /// What its names are made of: `u`, `u_plus`, `w_0`.
    pub(super) stem: String,
}

/// A local with its array.
#[derive(Clone)]
pub(super) struct LocalVar {
    pub(super) local: Local,
    pub(super) var: VarId,
    /// Components, none for one.
    pub(super) block: Option<usize>,
}

impl LocalVar {
    /// The components, none for scalars (which have no index for it).
    pub(super) fn components(&self) -> Vec<Option<usize>> {
        self.block.map_or(vec![None], |n| (0..n).map(Some).collect())
    }

    /// Index of the component of an entry.
    pub(super) fn component(&self, component: usize) -> Option<usize> {
        self.block.map(|_| component)
    }

    /// Index of the `i`-th of some columns.
    pub(super) fn index(&self, columns: Columns, i: Expr) -> Expr {
        if columns == self.local.columns { i } else { columns.column(i) }
    }
}

/// A group of columns that is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) of: usize,
    pub(super) side: Option<Side>,
    pub(super) columns: Columns,
}

/// The functions' columns that needed nodes evaluate, in order of the functions, coordinates first.
pub(super) fn used_columns(
    form: &TabulatedForm,
    integrals: &[&Integral],
    graph: &Graph,
    uses: &Uses,
) -> Vec<Used> {
    let mut used: Vec<Used> = Vec::new();
    let mut push = |u: Used| {
        if !used.contains(&u) {
            used.push(u);
        }
    };
    let needed = graph.nodes.iter().enumerate().filter(|(k, _)| uses.is_needed(*k));
    for (_, node) in needed {
        match &node.op {
            Op::CellValue(v) => {
                let columns = match &v.terms[..] {
                    [(column, _)] => Columns::new(*column, 1, 1),
                    _ => Columns::all(&form.spaces[form.functions[v.function].space]),
                };
                push(Used { of: v.function, side: v.side, columns });
            }
            Op::FacetValue(integral, e) | Op::Evaluation(integral, e) => {
                let integral = integrals[*integral];
                let e = &integral.evaluations[*e];
                let count = integral.tables[e.table].dofs();
                push(Used { of: e.function, side: e.side, columns: Columns::new(e.offset, e.stride, count) });
            }
            _ => {}
        }
    }
    let is_position = |u: &Used| form.functions[u.of].role == Role::Coordinates;
    used.sort_by_key(|u| (!is_position(u), u.of, u.side));
    used
}

/// The locals of what is used: one a function and side where its degrees of freedom are needed as a
/// whole, else one a sub-element, so that what evaluates one sub-element touches no other.
pub(super) fn locals(
    form: &TabulatedForm,
    used: &[Used],
    name: impl Fn(usize) -> String,
    space: impl Fn(usize) -> usize,
    is_whole: impl Fn(usize) -> bool,
) -> Vec<Local> {
    let mut locals: Vec<Local> = Vec::new();
    for u in used {
        let place = space(u.of);
        let all = Columns::all(&form.spaces[place]);
        let whole = is_whole(u.of) || !form.spaces[place].transforms.is_empty();
        let columns = if whole { all } else { u.columns };
        if locals.iter().any(|l| (l.of, l.side, l.columns) == (u.of, u.side, columns)) {
            continue;
        }
        let stem = format!("{}{}", name(u.of), side_suffix(u.side));
        let stem = match columns == all {
            true => stem,
            false => {
                let others = locals.iter().filter(|l| (l.of, l.side) == (u.of, u.side) && l.columns != all);
                format!("{stem}_{}", others.count())
            }
        };
        locals.push(Local { of: u.of, side: u.side, space: place, columns, whole: columns == all, stem });
    }
    locals
}

/// The local that holds some columns.
pub(super) fn holding(
    locals: &[LocalVar],
    of: usize,
    side: Option<Side>,
    columns: Columns,
) -> Option<&LocalVar> {
    let own = || locals.iter().filter(move |l| (l.local.of, l.local.side) == (of, side));
    let exact = own().find(|l| l.local.columns == columns);
    exact.or_else(|| own().find(|l| l.local.whole))
}

/// Shape of a local.
pub(super) fn local_shape(columns: Columns, block: usize) -> Vec<Affine> {
    let width = (block > 1).then_some(block);
    std::iter::once(columns.count).chain(width).map(|n| Affine::constant(n as i64)).collect()
}

/// The index of a degree of freedom and, for vectors, its component.
pub(super) fn with_component(node: Expr, component: Option<usize>) -> Vec<Expr> {
    std::iter::once(node).chain(component.map(|c| Expr::Int(c as i64))).collect()
}

/// `prefix`, `name` and, for vectors, the component.
pub(super) fn numbered(prefix: &str, name: &str, component: Option<usize>) -> String {
    component.map_or(format!("{prefix}{name}"), |c| format!("{prefix}{name}{c}"))
}
