//! How the degrees of freedom of an entity change with the order of its vertices.

use super::{CellShape, FiniteElement};
use nalgebra::DMatrix;

/// The orders in which neighbours may list the vertices of an entity; none of a vertex, and of the
/// cell itself one.
///
/// Each order says which of the entity's own vertices stands at each place of the common order.
/// The first is the identity.
///
/// ```
/// use kingpost_fem::element::{CellShape, vertex_orders};
///
/// assert_eq!(vertex_orders(CellShape::Interval), [[0, 1], [1, 0]]);
/// assert_eq!(vertex_orders(CellShape::Quadrilateral).len(), 8);
/// ```
#[must_use]
pub const fn vertex_orders(shape: CellShape) -> &'static [&'static [usize]] {
    match shape {
        CellShape::Interval => &[&[0, 1], &[1, 0]],
        CellShape::Triangle => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
        CellShape::Quadrilateral => &[
            &[0, 1, 2, 3],
            &[0, 2, 1, 3],
            &[1, 0, 3, 2],
            &[1, 3, 0, 2],
            &[2, 3, 0, 1],
            &[2, 0, 3, 1],
            &[3, 2, 1, 0],
            &[3, 1, 2, 0],
        ],
        CellShape::Tetrahedron | CellShape::Hexahedron | CellShape::Prism | CellShape::Pyramid => &[],
    }
}

/// The number of the order in which ascending numbers list an entity's vertices: an index of
/// [`vertex_orders`].
///
/// A square starts at its lowest vertex and goes to the lower of that one's neighbours first.
#[must_use]
pub fn vertex_order(numbers: &[u32]) -> usize {
    match numbers {
        [a, b] => usize::from(a > b),
        [a, b, c] => match (a < b, a < c, b < c) {
            (true, true, true) => 0,
            (true, true, false) => 1,
            (false, true, _) => 2,
            (false, false, true) => 3,
            (true, false, _) => 4,
            (false, false, false) => 5,
        },
        [_, _, _, _] => {
            let lowest = (0..4).min_by_key(|i| numbers[*i]).unwrap_or(0);
            // the neighbours of a corner of the unit square differ from it in one bit
            2 * lowest + usize::from(numbers[lowest ^ 1] > numbers[lowest ^ 2])
        }
        _ => 0,
    }
}

/// What a cell does to the degrees of freedom of one of its entities that lists its vertices in
/// another than the common order.
#[derive(Clone, Debug, PartialEq)]
pub enum Reorientation {
    /// Nothing in any order.
    None,
    /// Local degree of freedom `i` of the entity is number `permutations[order][i]` of the common
    /// ones.
    Permutations(Vec<Vec<usize>>),
    /// The local degrees of freedom are `matrices[order]` times the common ones: each
    /// [dofs, dofs] row-major.
    Matrices(Vec<Vec<f64>>),
}

impl FiniteElement {
    /// How the degrees of freedom of an entity of dimension `dim` follow from those that its
    /// vertices in common order define: for each of [`vertex_orders`].
    ///
    /// # Source
    /// Scroggs et al. 2022 (degree-of-freedom maps), section 3; here for any order at once, by the
    /// functionals themselves.
    #[must_use]
    pub fn reorientation(&self, dim: usize) -> Reorientation {
        if dim == 0 || dim >= self.shape().dim() || self.dofs_per_entity(dim) == 0 {
            return Reorientation::None;
        }
        let orders = self.shape().entity_shape(dim).map_or(&[][..], vertex_orders);
        let matrices: Vec<_> = orders.iter().filter_map(|order| self.reoriented(dim, 0, order)).collect();
        if matrices.iter().all(|m| m.is_identity(0.0)) {
            return Reorientation::None;
        }
        if let Some(permutations) = matrices.iter().map(permutation).collect() {
            return Reorientation::Permutations(permutations);
        }
        // the orders are a group, so that the inverse of each is among them; it is the more
        // accurate
        let inverse = |order: &&[usize]| {
            let back: Vec<usize> =
                (0..order.len()).map(|i| order.iter().position(|j| *j == i).unwrap_or(0)).collect();
            let place = orders.iter().position(|other| **other == back[..]).unwrap_or(0);
            matrices[place].transpose().as_slice().to_vec()
        };
        Reorientation::Matrices(orders.iter().map(inverse).collect())
    }

    /// The matrices by which basix turns the basis functions of an entity: of an edge its
    /// reflection; of a face its rotation and its reflection. `[matrices]`, each `[dofs, dofs]`
    /// row-major; none of other entities.
    ///
    /// # Source
    /// basix's `entity_transformations`.
    #[must_use]
    pub fn entity_transformations(&self, dim: usize) -> Vec<Vec<f64>> {
        if dim >= self.shape().dim() || self.is_discontinuous() {
            return Vec::new();
        }
        let orders: &[&[usize]] = match self.shape().entity_shape(dim) {
            Some(CellShape::Interval) => &[&[1, 0]],
            Some(CellShape::Triangle) => &[&[1, 2, 0], &[0, 2, 1]],
            Some(CellShape::Quadrilateral) => &[&[1, 3, 0, 2], &[0, 2, 1, 3]],
            Some(CellShape::Tetrahedron | CellShape::Hexahedron | CellShape::Prism | CellShape::Pyramid)
            | None => &[],
        };
        // rows are functions: nalgebra's storage by column is that of the transpose by row
        orders.iter().filter_map(|order| Some(self.reoriented(dim, 0, order)?.as_slice().to_vec())).collect()
    }
}

/// The common functional that each local one is, if each is one.
fn permutation(matrix: &DMatrix<f64>) -> Option<Vec<usize>> {
    let single = |column: usize| {
        let entries = || matrix.column(column).into_iter().copied().enumerate();
        let ones: Vec<usize> = entries().filter(|(_, x)| *x == 1.0).map(|(i, _)| i).collect();
        let rest = entries().filter(|(_, x)| *x != 1.0).all(|(_, x)| x == 0.0);
        match ones[..] {
            [place] if rest => Some(place),
            _ => None,
        }
    };
    (0..matrix.ncols()).map(single).collect()
}
