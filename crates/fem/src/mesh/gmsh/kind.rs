//! What the numbers of Gmsh's element types stand for.

use super::nodes::NODES;
use crate::element::CellShape;

/// What an element type's number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) dim: usize,
    /// How many nodes an element has.
    pub(super) nodes: usize,
    pub(super) name: &'static str,
    /// The cell that it makes; none if that is not supported.
    pub(super) cell: Option<CellKind>,
}

/// A cell with all nodes of its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellKind {
    pub(super) shape: CellShape,
    pub(super) order: usize,
    /// Which of Gmsh's nodes each of basix's is.
    pub(super) places: &'static [usize],
}

impl CellKind {
    /// As a message says it.
    pub(super) fn described(self) -> String {
        format!("{} of order {}", name(self.shape), self.order)
    }
}

const fn name(shape: CellShape) -> &'static str {
    match shape {
        CellShape::Interval => "line",
        CellShape::Triangle => "triangle",
        CellShape::Tetrahedron => "tetrahedron",
        CellShape::Quadrilateral => "quadrangle",
        CellShape::Hexahedron => "hexahedron",
        CellShape::Prism => "prism",
        CellShape::Pyramid => "pyramid",
    }
}

impl Kind {
    /// # Source
    /// Gmsh reference manual, "MSH file format", element types.
    pub(super) fn of(number: i32) -> Option<Self> {
        if let Some((shape, order, _, places)) = NODES.iter().find(|(_, _, kind, _)| *kind == number) {
            let cell = Some(CellKind { shape: *shape, order: *order, places });
            return Some(Self { dim: shape.dim(), nodes: places.len(), name: name(*shape), cell });
        }
        let (dim, nodes, name) = match number {
            15 => (0, 1, "point"),
            28 => (1, 6, "line of order 5"),
            20 => (2, 9, "triangle without inner nodes"),
            22 => (2, 12, "triangle without inner nodes"),
            24 => (2, 15, "triangle without inner nodes"),
            25 => (2, 21, "triangle of order 5"),
            16 => (2, 8, "quadrangle without inner nodes"),
            17 => (3, 20, "hexahedron without inner nodes"),
            31 => (3, 56, "tetrahedron of order 5"),
            18 => (3, 15, "prism without inner nodes"),
            19 => (3, 13, "pyramid without inner nodes"),
            _ => return None,
        };
        Some(Self { dim, nodes, name, cell: None })
    }

    /// Whether it is the same; its nodes are long lists.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.name, self.nodes) == (other.name, other.nodes)
    }

    /// The number of corners of an element of at most two dimensions; they are its first nodes.
    pub(super) fn corners(self) -> usize {
        match self.dim {
            0 | 1 => self.dim + 1,
            _ if self.name.starts_with("triangle") => 3,
            _ => 4,
        }
    }
}
