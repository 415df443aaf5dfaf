//! Some cells of a mesh as a mesh of their own.

use super::{Curved, FacetSide, FacetTag, Mesh, MeshError};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Rows of numbers below `n`, renumbered in ascending order, and which numbers they were.
fn renumbered(rows: &[u32], n: usize) -> (Vec<u32>, Vec<u32>) {
    let mut new = vec![u32::MAX; n];
    for number in rows {
        new[*number as usize] = 0;
    }
    let kept: Vec<u32> = (0..n as u32).filter(|number| new[*number as usize] == 0).collect();
    for (place, number) in kept.iter().enumerate() {
        new[*number as usize] = place as u32;
    }
    (rows.par_iter().map(|number| new[*number as usize]).collect(), kept)
}

/// Rows of a list, by their numbers.
fn rows_of<T: Copy + Send + Sync>(
    list: &[T],
    width: usize,
    rows: impl IndexedParallelIterator<Item = usize>,
) -> Vec<T> {
    rows.flat_map_iter(|row| list[row * width..(row + 1) * width].iter().copied()).collect()
}

/// Numbers as places.
fn places(numbers: &[u32]) -> impl IndexedParallelIterator<Item = usize> {
    numbers.par_iter().map(|number| *number as usize)
}

impl Mesh {
    /// Some cells as a mesh of their own, which has their tags and those of their facets. Vertices
    /// and nodes that no cell has are left out; the others keep their order.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let part = Mesh::unit_square(2)?.part(&[7])?; // one of eight triangles
    /// assert_eq!((part.n_cells(), part.n_vertices(), part.boundary().len()), (1, 3, 3));
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    ///
    /// # Errors
    /// [`MeshError::Empty`] of no cells, [`MeshError::NoSuchCell`].
    pub fn part(&self, cells: &[usize]) -> Result<Self, MeshError> {
        if cells.is_empty() {
            return Err(MeshError::Empty);
        }
        let n_cells = self.n_cells();
        if let Some(cell) = cells.iter().find(|cell| **cell >= n_cells) {
            return Err(MeshError::NoSuchCell { cell: *cell, n_cells });
        }
        let dim = self.shape.dim();
        let listed = || cells.par_iter().copied();
        let corners = rows_of(&self.cells, self.shape.n_vertices(), listed());
        let (corners, kept) = renumbered(&corners, self.n_vertices());
        let points = rows_of(&self.coordinates, dim, places(&kept));
        let tags = self.tags.as_ref().map(|tags| tags.rows(cells.iter().copied()));
        // what holds for all cells holds for some
        let mut part = Self::unchecked(self.shape, points, corners, tags);
        part.placement.clone_from(&self.placement);
        part.facet_tags = self.facet_tags_of(cells);
        if let Some(curved) = &self.curved {
            let nodes = rows_of(&curved.cells, curved.element.n_dofs(), listed());
            let (nodes, kept) = renumbered(&nodes, curved.coordinates.len() / dim);
            let coordinates = rows_of(&curved.coordinates, dim, places(&kept));
            part.curved = Some(Curved { element: curved.element.clone(), coordinates, cells: nodes });
        }
        Ok(part)
    }

    /// The tags of the facets of some cells, by the lowest of these cells, as it is numbered there.
    fn facet_tags_of(&self, cells: &[usize]) -> Vec<FacetTag> {
        if self.facet_tags.is_empty() {
            return Vec::new();
        }
        let mut places = vec![None; self.n_cells()];
        for (place, cell) in cells.iter().enumerate() {
            places[*cell] = Some(place as u32);
        }
        let is_tagged = |side: FacetSide| self.tags_of_facet(side).next().is_some();
        let facets = self.facets().into_iter().filter(|facet| is_tagged(facet.side));
        let others: BTreeMap<_, _> = facets.filter_map(|f| f.other.map(|other| (f.side, other))).collect();
        let moved = |tag: &FacetTag| {
            let sides = std::iter::once(&tag.side).chain(others.get(&tag.side));
            let here = sides.filter_map(|s| places[s.cell as usize].map(|cell| FacetSide { cell, ..*s }));
            here.min().map(|side| FacetTag { side, ..*tag })
        };
        let mut tags: Vec<FacetTag> = self.facet_tags.iter().filter_map(moved).collect();
        tags.sort_unstable();
        tags
    }
}
