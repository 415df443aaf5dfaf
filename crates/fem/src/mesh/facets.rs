//! Facets of a mesh: which cells they lie between, and their tags.

use super::Mesh;
use crate::element::vertex_order;
use rayon::prelude::*;

/// A facet as one of its cells has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FacetSide {
    /// The cell.
    pub cell: u32,
    /// Which of the reference cell's facets it is.
    pub facet: u8,
}

/// A tag of a facet, from the file the mesh was read from; a facet may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FacetTag {
    /// The facet, by the lowest of its cells.
    pub side: FacetSide,
    /// The physical group.
    pub tag: i32,
}

/// A facet with the cells it lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facet {
    /// The side in the cell of the lower number.
    pub side: FacetSide,
    /// The other side; none on the boundary.
    pub other: Option<FacetSide>,
}

/// The ascending vertices of a facet; those that it lacks are `u32::MAX`.
pub type FacetKey = [u32; 4];

/// The same vertices in ascending order, by which the cells of a facet find each other.
pub fn facet_key(vertices: impl IntoIterator<Item = u32>) -> FacetKey {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(vertices).for_each(|(place, vertex)| *place = vertex);
    key.sort_unstable();
    key
}

impl Mesh {
    /// All facets with their cells, in the order of the lower cell and its facets.
    ///
    /// ```
    /// use purlin_fem::mesh::Mesh;
    ///
    /// let facets = Mesh::unit_square(1)?.facets(); // two triangles
    /// assert_eq!(facets.len(), 5);
    /// assert_eq!(facets.iter().filter(|facet| facet.other.is_some()).count(), 1);
    /// # Ok::<(), purlin_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn facets(&self) -> Vec<Facet> {
        let sides = self.sorted_sides();
        let facet = |pair: &[(FacetKey, FacetSide)]| Facet {
            side: pair[0].1,
            other: pair.get(1).map(|(_, side)| *side),
        };
        let mut facets: Vec<Facet> = sides.par_chunk_by(|a, b| a.0 == b.0).map(facet).collect();
        facets.par_sort_unstable_by_key(|facet| facet.side);
        facets
    }

    /// The facets of one cell, in the order of cells and their facets.
    ///
    /// ```
    /// use purlin_fem::mesh::Mesh;
    ///
    /// assert_eq!(Mesh::unit_square(2)?.boundary().len(), 8);
    /// # Ok::<(), purlin_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn boundary(&self) -> Vec<FacetSide> {
        let sides = self.sorted_sides();
        let alone = |pair: &[(FacetKey, FacetSide)]| (pair.len() == 1).then(|| pair[0].1);
        let mut found: Vec<FacetSide> = sides.par_chunk_by(|a, b| a.0 == b.0).filter_map(alone).collect();
        found.par_sort_unstable();
        found
    }

    /// The tags of facets, by cell, facet and tag.
    #[must_use]
    pub fn facet_tags(&self) -> &[FacetTag] {
        &self.facet_tags
    }

    /// The tags of a facet, ascending; `side` is that of the lowest of its cells.
    pub fn tags_of_facet(&self, side: FacetSide) -> impl Iterator<Item = i32> {
        let first = self.facet_tags.partition_point(|tag| tag.side < side);
        self.facet_tags[first..].iter().take_while(move |tag| tag.side == side).map(|tag| tag.tag)
    }

    /// Every facet of every cell, those of the same vertices side by side.
    pub(super) fn sorted_sides(&self) -> Vec<(FacetKey, FacetSide)> {
        let mut sides = self.keyed_sides();
        sides.par_sort_unstable();
        sides
    }

    /// Every facet of every cell by its vertices.
    pub(super) fn keyed_sides(&self) -> Vec<(FacetKey, FacetSide)> {
        let of = |cell: usize| {
            let facets = self.shape.facets().iter().enumerate();
            facets.map(move |(i, facet)| {
                let vertices = self.cell(cell);
                (
                    facet_key(facet.iter().map(|v| vertices[*v])),
                    FacetSide { cell: cell as u32, facet: i as u8 },
                )
            })
        };
        (0..self.n_cells()).into_par_iter().flat_map_iter(of).collect()
    }
}

/// Whether a facet lists these vertices in an order that mirrors the common one.
pub(super) fn is_mirrored(vertices: &[u32]) -> bool {
    match vertices.len() {
        3 => TRIANGLE_REFLECTIONS.contains(&vertex_order(vertices)),
        4 => SQUARE_REFLECTIONS.contains(&vertex_order(vertices)),
        // the orders of an edge are the identity and a reflection, a vertex has one
        _ => vertex_order(vertices) == 1,
    }
}

/// The orders of a triangle that turn it over.
const TRIANGLE_REFLECTIONS: [usize; 3] = [1, 2, 5];
/// The orders of a square that turn it over.
const SQUARE_REFLECTIONS: [usize; 4] = [1, 2, 4, 7];

#[cfg(test)]
mod tests {
    use super::{SQUARE_REFLECTIONS, TRIANGLE_REFLECTIONS};
    use crate::element::{CellShape, vertex_orders};

    #[test]
    fn reflections_are_the_orders_with_a_negative_determinant() {
        for (shape, expected) in [
            (CellShape::Triangle, &TRIANGLE_REFLECTIONS[..]),
            (CellShape::Quadrilateral, &SQUARE_REFLECTIONS[..]),
        ] {
            let corner = |v: usize| &shape.vertices()[2 * v..2 * v + 2];
            let negative = |order: &&[usize]| {
                let [o, x, y] = [0, 1, 2].map(|i| corner(order[i]));
                (x[0] - o[0]) * (y[1] - o[1]) - (x[1] - o[1]) * (y[0] - o[0]) < 0.0
            };
            let orders = vertex_orders(shape);
            let found: Vec<usize> = (0..orders.len()).filter(|i| negative(&orders[*i])).collect();
            assert_eq!(found, expected, "{shape}");
        }
    }
}
