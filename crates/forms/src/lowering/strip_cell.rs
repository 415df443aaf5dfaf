//! What is known of the cells of a strip where they are computed.

use super::graph::{Graph, Op};
use crate::tabulated::{Integral, Role, TabulatedForm};
use kingpost_ir::{BinaryOp, Expr, VarId};

/// A cell of a strip, to which a vertex has come.
pub(super) struct StripCell {
    /// The place to which a vertex has come.
    pub(super) place: Expr,
    /// Whether that completes a cell.
    pub(super) completes: VarId,
    /// Whether what is added is zero where weights are: then these are, of what is no cell.
    pub(super) are_weighted: bool,
    /// Whether its own columns are what the others leave.
    pub(super) are_differences: bool,
    /// The places on whose vertices the nodes of the graph depend, as bits.
    pub(super) depends: Vec<u32>,
    /// The bits of all places.
    pub(super) all: u32,
}

impl StripCell {
    /// The condition under which a node changes with the vertex that comes; none of one that always
    /// does.
    pub(super) fn changes(&self, node: usize) -> Option<Expr> {
        let depends = self.depends[node] & self.all;
        let is_place = |k: u32| Expr::binary(BinaryOp::Eq, self.place.clone(), Expr::Int(k.into()));
        let places = (0..self.all.count_ones()).filter(|k| depends >> k & 1 == 1);
        let is_some = places.map(is_place).reduce(|a, b| Expr::binary(BinaryOp::Or, a, b));
        is_some.filter(|_| depends != self.all)
    }

    /// The condition under which the vertices are those of a cell.
    pub(super) fn is_cell(&self) -> Expr {
        Expr::binary(BinaryOp::Ne, Expr::scalar(self.completes), Expr::Int(0))
    }
}

/// Whether what terms multiply basis functions by is zero where products with weights are.
pub(super) fn are_weighted(graph: &Graph, integrals: &[&Integral]) -> bool {
    let terms = integrals
        .iter()
        .zip(&graph.places)
        .flat_map(|(integral, places)| integral.terms.iter().map(move |term| places[term.factor]));
    terms.into_iter().all(|factor| graph.vanishes(factor))
}

/// Whether what terms add to the columns of all vertices of a cell is zero together, as of
/// derivatives of the trial function.
pub(super) fn are_differences(integral: &Integral) -> bool {
    let is_zero = |row: &[f64]| row.iter().sum::<f64>() == 0.0;
    integral.terms.iter().all(|term| {
        let table = &integral.tables[term.arguments[1].table];
        table.values.entries().chunks_exact(table.dofs()).all(is_zero)
    })
}

/// The places on whose vertices the nodes of a graph depend, as bits: the owner stands at none.
pub(super) fn depends(form: &TabulatedForm, graph: &Graph) -> Vec<u32> {
    let mut depends: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let own = match &node.op {
            Op::CellValue(v) if form.functions[v.function].role == Role::Coordinates => {
                v.terms.iter().fold(0, |all, (column, _)| all | 1_u32 << column >> 1)
            }
            Op::CellValue(_) | Op::FacetValue(..) | Op::Evaluation(..) | Op::Weight(_) | Op::Table(..) => {
                u32::MAX
            }
            Op::Literal(_)
            | Op::Constant(..)
            | Op::Negate
            | Op::Arithmetic(_)
            | Op::Math(_)
            | Op::Bessel(..)
            | Op::Compare(_)
            | Op::And
            | Op::Or
            | Op::Not
            | Op::Select => 0,
        };
        depends.push(node.operands.iter().fold(own, |all, operand| all | depends[*operand]));
    }
    depends
}
