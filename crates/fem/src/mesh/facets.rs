//! Facets of a mesh: which cells they lie between, and their tags.

use super::Mesh;
use super::incidence::{CellsOfVertices, Occurrence};
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

impl From<&Occurrence> for FacetSide {
    fn from(Occurrence { cell, number, .. }: &Occurrence) -> Self {
        Self { cell: *cell, facet: *number }
    }
}

impl Mesh {
    /// All facets with their cells, in the order of the lower cell and its facets.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let facets = Mesh::unit_square(1)?.facets(); // two triangles
    /// assert_eq!(facets.len(), 5);
    /// assert_eq!(facets.iter().filter(|facet| facet.other.is_some()).count(), 1);
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn facets(&self) -> Vec<Facet> {
        let facet = |sides: &[Occurrence]| {
            Some(Facet { side: (&sides[0]).into(), other: sides.get(1).map(FacetSide::from) })
        };
        let mut facets = self.of_facets(facet);
        facets.par_sort_unstable_by_key(|facet| facet.side);
        facets
    }

    /// The facets of one cell, in the order of cells and their facets.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// assert_eq!(Mesh::unit_square(2)?.boundary().len(), 8);
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn boundary(&self) -> Vec<FacetSide> {
        let mut found = self.of_facets(|sides| (sides.len() == 1).then(|| FacetSide::from(&sides[0])));
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

    /// What `of` makes of each facet, in the order of their vertices, from its sides by cell.
    pub(super) fn of_facets<T: Send>(&self, of: impl Fn(&[Occurrence]) -> Option<T> + Sync) -> Vec<T> {
        self.cells_of_vertices().entities(self.shape.facets(), of)
    }

    /// The cells around each vertex.
    #[must_use]
    pub fn cells_of_vertices(&self) -> CellsOfVertices<'_> {
        CellsOfVertices::new(self.shape, &self.cells, self.n_vertices())
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
