//! Which nodes an element has, for arrays that come from elsewhere.

use crate::cell::orbits_of_points;

use super::{CellShape, ElementError, LagrangeElement, LagrangeVariant};
use std::fmt;
use thiserror::Error;

/// Nodes of two elements are one point if no reference coordinate differs by more: tables of other
/// codes have rounded coordinates, and variants of one degree differ by more than a hundredth.
const SAME: f64 = 1e-10;

/// The nodes of an element in the order of its basis functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// The reference cell.
    pub cell: CellShape,
    /// The polynomial degree.
    pub degree: usize,
    /// How they are laid out.
    pub variant: LagrangeVariant,
    /// Reference coordinates, [dofs, dim] row-major.
    pub points: Vec<f64>,
}

/// Nodes from elsewhere are not those of the element.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NodeMismatch {
    /// Another number of coordinates.
    #[error(
        "the nodes given for P{degree} on a {cell} are {found} coordinates, needed {needed}: [nodes, {}]",
        .cell.dim()
    )]
    Length {
        /// The reference cell.
        cell: CellShape,
        /// The polynomial degree.
        degree: usize,
        /// Coordinates given.
        found: usize,
        /// Coordinates of the element.
        needed: usize,
    },
    /// A node elsewhere, or the same nodes in another order.
    #[error(
        "node {node} of P{degree} on a {cell} is {}, needed {} ({variant}); {}",
        point(.found), point(.needed), advice(*.reordered)
    )]
    Point {
        /// The reference cell.
        cell: CellShape,
        /// The polynomial degree.
        degree: usize,
        /// The variant of the element.
        variant: LagrangeVariant,
        /// The first node that differs.
        node: usize,
        /// Its reference coordinates as given.
        found: Vec<f64>,
        /// The coordinates that the element has.
        needed: Vec<f64>,
        /// Whether the nodes are those of the element in another order.
        reordered: bool,
    },
    /// No function of the kernel has this degree.
    #[error("nodes are given for P{degree}, and the form has functions of degree {}; give those", list(.known))]
    Degree {
        /// The degree of the given nodes.
        degree: usize,
        /// The degrees of the form.
        known: Vec<usize>,
    },
}

fn advice(reordered: bool) -> &'static str {
    match reordered {
        true => {
            "they are the same nodes in another order: permute the columns of the map of degrees of freedom"
        }
        false => "make the element with this variant, or interpolate the function at these nodes",
    }
}

/// A point as text: `(0.25, 0.5)`.
pub fn point(coordinates: &[f64]) -> String {
    // 6 decimals tell variants apart
    let rounded = coordinates.iter().map(|x| (x * 1e6).round() / 1e6 + 0.0);
    format!("({})", rounded.map(|x| x.to_string()).collect::<Vec<_>>().join(", "))
}

fn list(degrees: &[usize]) -> String {
    degrees.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

impl Nodes {
    /// The nodes of the Lagrange element of a degree.
    ///
    /// # Errors
    /// As [`LagrangeElement::new`].
    pub fn new(cell: CellShape, degree: usize) -> Result<Self, ElementError> {
        let points = LagrangeElement::new(cell, degree)?.points().to_vec();
        Ok(Self { cell, degree, variant: LagrangeVariant::Equispaced, points })
    }

    /// Compares reference coordinates from elsewhere, [dofs, dim] row-major, with these.
    ///
    /// # Errors
    /// [`NodeMismatch`] with the first node that differs.
    pub fn check(&self, found: &[f64]) -> Result<(), NodeMismatch> {
        let (cell, degree, dim) = (self.cell, self.degree, self.cell.dim());
        if found.len() != self.points.len() {
            let (found, needed) = (found.len(), self.points.len());
            return Err(NodeMismatch::Length { cell, degree, found, needed });
        }
        // not a number is no point
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= SAME);
        let mut pairs = found.chunks_exact(dim).zip(self.points.chunks_exact(dim)).enumerate();
        let Some((node, (at, needed))) = pairs.find(|(_, (a, b))| !same(a, b)) else { return Ok(()) };
        let reordered = self.points.chunks_exact(dim).all(|p| found.chunks_exact(dim).any(|q| same(p, q)));
        let (found, needed, variant) = (at.to_vec(), needed.to_vec(), self.variant);
        Err(NodeMismatch::Point { cell, degree, variant, node, found, needed, reordered })
    }

    /// The orbits of the nodes under a group of permutations of the vertices that commute and are
    /// their own inverses: of triangles (01), of tetrahedra (01)(23), (02)(13) and their product.
    ///
    /// # Shapes and units
    /// Entry `g` of an orbit is the image of its first node by the permutations whose bits `g` has;
    /// small orbits hold each node several times. The largest orbits come first. None for other cells,
    /// and for nodes that are no images of others.
    #[must_use]
    pub fn orbits(&self) -> Option<Vec<Vec<u32>>> {
        orbits_of_points(self.cell, &self.points)
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{} on a {}, {}, in basix's order:", self.degree, self.cell, self.variant)?;
        self.points.chunks_exact(self.cell.dim()).try_for_each(|p| write!(f, " {}", point(p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orbits(cell: CellShape, degree: usize) -> Vec<Vec<u32>> {
        Nodes::new(cell, degree).ok().and_then(|nodes| nodes.orbits()).unwrap_or_default()
    }

    #[test]
    fn vertices_are_one_orbit() {
        assert_eq!(orbits(CellShape::Tetrahedron, 1), [[0, 1, 2, 3]]);
        // vertex 2 and the middle of the edge between the others stay
        assert_eq!(orbits(CellShape::Triangle, 2), [vec![0, 1], vec![3, 4], vec![2, 2], vec![5, 5]]);
    }

    /// By counting what a permutation leaves where it is (Burnside's lemma).
    #[test]
    fn there_are_as_many_as_fixed_nodes_say() {
        for (degree, fixed) in [(1, 0), (2, 2), (3, 0), (4, 3), (5, 0), (6, 4)] {
            let n = (degree + 1) * (degree + 2) * (degree + 3) / 6;
            assert_eq!(orbits(CellShape::Tetrahedron, degree).len(), (n + 3 * fixed) / 4, "P{degree}");
        }
        for degree in 1..=8 {
            let n = (degree + 1) * (degree + 2) / 2;
            assert_eq!(orbits(CellShape::Triangle, degree).len(), (n + degree / 2).div_ceil(2), "P{degree}");
        }
        assert_eq!(orbits(CellShape::Hexahedron, 1), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn other_nodes_have_none() {
        let points = vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.25, 0.0];
        let nodes = Nodes { points, ..Nodes::new(CellShape::Triangle, 1).expect("an element") };
        assert_eq!(nodes.orbits(), None);
    }
}
