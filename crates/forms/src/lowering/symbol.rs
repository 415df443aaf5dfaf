//! Symbols of the graph that is pulled back: numbers of the cell that the kernel computes.

use super::entity::side_index;
use crate::tabulated::Side;

/// A number that the kernel computes per cell or point; over interior facets, of the cell on a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A coordinate of a vertex of the cell: vertex, axis.
    Vertex(usize, usize),
    /// `|det J|`.
    Measure,
    /// The quadrature weight.
    Weight,
    /// A derivative of the position, where the map of a cell is not affine: physical axis,
    /// reference axis.
    Jacobian(usize, usize),
    /// A component of the outward normal of the reference facet.
    ReferenceNormal(usize),
}

impl Symbol {
    /// How many there are of one cell of dimension `dim`.
    fn count(dim: usize) -> usize {
        (dim + 1) * dim + 2 + dim * dim + dim
    }

    /// The symbol's number in a graph, for the cell of dimension `dim` on a side.
    pub(super) fn place(self, dim: usize, side: Option<Side>) -> usize {
        let start = match side {
            None => 0,
            Some(_) => Self::count(dim) * (1 + side_index(side)),
        };
        let own = match self {
            Self::Vertex(vertex, axis) => vertex * dim + axis,
            Self::Measure => (dim + 1) * dim,
            Self::Weight => (dim + 1) * dim + 1,
            Self::Jacobian(physical, reference) => (dim + 1) * dim + 2 + physical * dim + reference,
            Self::ReferenceNormal(axis) => (dim + 1) * dim + 2 + dim * dim + axis,
        };
        start + own
    }

    /// The symbol of a number, and the side of its cell.
    pub(super) fn from_place(place: usize, dim: usize) -> (Self, Option<Side>) {
        let (block, place) = (place / Self::count(dim), place % Self::count(dim));
        let side = [None, Some(Side::Plus), Some(Side::Minus)].get(block).copied().flatten();
        let symbol = match place.checked_sub((dim + 1) * dim) {
            None => Self::Vertex(place / dim, place % dim),
            Some(0) => Self::Measure,
            Some(1) => Self::Weight,
            Some(entry) if entry - 2 < dim * dim => Self::Jacobian((entry - 2) / dim, (entry - 2) % dim),
            Some(entry) => Self::ReferenceNormal(entry - 2 - dim * dim),
        };
        (symbol, side)
    }
}
