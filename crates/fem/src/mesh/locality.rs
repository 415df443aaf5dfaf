//! Reordering cells and vertices so that neighbours in space are neighbours in memory, and the vertices
//! of cells so that neighbours agree on the direction of what they share.

use super::Curved;
use super::{Facet, FacetSide, FacetTag, Mesh};
use crate::element::CellShape;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Bits of each coordinate on the space-filling curve: 3 · 20 fit a 64-bit key.
const BITS: u32 = 20;

impl Mesh {
    /// The same mesh with its cells along a Hilbert curve through their centroids, and its vertices
    /// in the order in which those cells first touch them; vertices of no cell are dropped.
    ///
    /// Numberings give numbers in the order of the cells, so gathers of nearby cells then share
    /// cache lines. The vertices of a cell keep their order within it.
    #[must_use]
    pub fn reorder_for_locality(&self) -> Self {
        let keys = self.hilbert_keys();
        let mut order: Vec<usize> = (0..self.n_cells()).collect();
        // The cell's number breaks ties, so the order is one and the same on every machine.
        order.sort_unstable_by_key(|cell| (keys[*cell], *cell));
        let (coordinates, cells) = self.as_touched(order.iter().copied());
        let tags = self.tags.as_ref().map(|tags| tags.rows(order.iter().copied()));
        let curved = self.curved.as_ref().map(|curved| {
            let rows = order.iter().flat_map(|cell| self.cell_nodes(*cell)).copied();
            Curved { cells: rows.collect(), ..curved.clone() }
        });
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| places[*old] = new as u32);
        let placement = self.placement.clone();
        let shape = self.shape;
        let cells = cells.into();
        let mut mesh = Self { shape, coordinates, cells, tags, curved, facet_tags: Vec::new(), placement };
        mesh.facet_tags = self.moved_facet_tags(&mesh, &places);
        mesh
    }

    /// The coordinates of vertices in the order in which some cells first touch them, and the vertices of
    /// these cells.
    fn as_touched(&self, order: impl Iterator<Item = usize>) -> (Vec<f64>, Vec<u32>) {
        let mut renumbered = vec![u32::MAX; self.n_vertices()];
        let mut coordinates = Vec::with_capacity(self.coordinates.len());
        let mut cells = Vec::with_capacity(self.cells.len());
        for cell in order {
            for vertex in self.cell(cell) {
                let number = &mut renumbered[*vertex as usize];
                if *number == u32::MAX {
                    *number = (coordinates.len() / self.shape.dim()) as u32;
                    coordinates.extend_from_slice(self.vertex(*vertex));
                }
                cells.push(*number);
            }
        }
        (coordinates, cells)
    }

    /// The same mesh with the vertices of each cell in ascending order: all cells of an edge or a face
    /// then have it in one direction, so that the map of a [numbering](crate::numbering::Numbering) has
    /// the degrees of freedom of an entity as consecutive numbers. Vertices are numbered in the order in
    /// which cells first touch them, so that a numbering by dimension has them in the same order; those of
    /// no cell are dropped. A mesh of other cells than straight triangles or tetrahedra stays as it is.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let mesh = Mesh::unit_square(1)?;
    /// assert_eq!([mesh.cell(0), mesh.cell(1)], [[0, 1, 3], [0, 3, 2]]);
    /// // touched in the order 0, 1, 3, 2
    /// assert_eq!(mesh.with_ascending_vertices().cell(1), [0, 2, 3]);
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn with_ascending_vertices(mut self) -> Self {
        if self.curved.is_some() || !matches!(self.shape, CellShape::Triangle | CellShape::Tetrahedron) {
            return self;
        }
        let (coordinates, cells) = self.as_touched(0..self.n_cells());
        self.coordinates = coordinates;
        self.cells = cells.into();
        self.sort_vertices();
        self
    }

    /// As [`Mesh::with_ascending_vertices`], but the vertices of a cell are in the order of the numbers that
    /// they have before they are numbered again: cells that were alike stay so, as those of all squares
    /// and cubes of [`Mesh::unit`].
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let mesh = Mesh::unit_square(1)?.with_vertices_as_numbered();
    /// // touched in the order 0, 1, 3, 2
    /// assert_eq!([mesh.cell(0), mesh.cell(1)], [[0, 1, 2], [0, 3, 2]]);
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    #[must_use]
    pub fn with_vertices_as_numbered(mut self) -> Self {
        if self.curved.is_some() || !matches!(self.shape, CellShape::Triangle | CellShape::Tetrahedron) {
            return self;
        }
        self.sort_vertices();
        let (coordinates, cells) = self.as_touched(0..self.n_cells());
        self.coordinates = coordinates;
        self.cells = cells.into();
        self
    }

    /// Brings the vertices of each cell into ascending order.
    fn sort_vertices(&mut self) {
        let vertices = self.shape.n_vertices();
        let mut cells = self.cells.to_vec();
        for FacetTag { side, .. } in &mut self.facet_tags {
            // a facet has the number of the vertex that it does not have
            let cell = &cells[side.cell as usize * vertices..][..vertices];
            let opposite = cell[usize::from(side.facet)];
            side.facet = cell.iter().filter(|vertex| **vertex < opposite).count() as u8;
        }
        self.facet_tags.sort_unstable();
        cells.par_chunks_mut(vertices).for_each(<[u32]>::sort_unstable);
        self.cells = cells.into();
    }

    /// The tags of facets by the lower of their cells in the mesh whose cells are `places` of
    /// these.
    fn moved_facet_tags(&self, moved: &Self, places: &[u32]) -> Vec<FacetTag> {
        if self.facet_tags.is_empty() {
            return Vec::new();
        }
        let lowest = |facet: &Facet| facet.other.map(|side| (side, facet.side));
        let lower: BTreeMap<_, _> = moved.facets().iter().filter_map(lowest).collect();
        let tag = |tag: &FacetTag| {
            let side = FacetSide { cell: places[tag.side.cell as usize], ..tag.side };
            FacetTag { side: *lower.get(&side).unwrap_or(&side), ..*tag }
        };
        let mut tags: Vec<FacetTag> = self.facet_tags.iter().map(tag).collect();
        tags.sort_unstable();
        tags
    }

    fn hilbert_keys(&self) -> Vec<u64> {
        let dim = self.shape.dim();
        let (mut low, mut high) = (vec![f64::INFINITY; dim], vec![f64::NEG_INFINITY; dim]);
        for (i, x) in self.coordinates.iter().enumerate() {
            low[i % dim] = low[i % dim].min(*x);
            high[i % dim] = high[i % dim].max(*x);
        }
        // One scale for all axes keeps the curve's cells cubes.
        let extent = low.iter().zip(&high).map(|(l, h)| h - l).fold(f64::MIN_POSITIVE, f64::max);
        let scale = f64::from((1_u32 << BITS) - 1) / extent;
        let centre = self.shape.centre();
        let map = self.point_map(&centre);
        let key = |cell| {
            let mut point = vec![0.0; dim];
            map.place(cell, 0, &mut point);
            // A float-to-integer cast saturates, so rounding at the rim cannot wrap.
            let grid = point.iter().zip(&low).map(|(x, l)| (((x - l) * scale) as u32).min((1 << BITS) - 1));
            hilbert_key(&mut grid.collect::<Vec<_>>())
        };
        (0..self.n_cells()).map(key).collect()
    }
}

/// The place of a grid point along the Hilbert curve.
///
/// # Source
/// Skilling 2004.
fn hilbert_key(point: &mut [u32]) -> u64 {
    let mut bit = 1 << (BITS - 1);
    while bit > 1 {
        let lower = bit - 1;
        for axis in 0..point.len() {
            if point[axis] & bit != 0 {
                point[0] ^= lower;
            } else {
                let swap = (point[0] ^ point[axis]) & lower;
                point[0] ^= swap;
                point[axis] ^= swap;
            }
        }
        bit >>= 1;
    }
    for axis in 1..point.len() {
        point[axis] ^= point[axis - 1];
    }
    let last = point.last().copied().unwrap_or(0);
    let flip = (1..BITS).filter(|b| last >> b & 1 == 1).fold(0, |flip, b| flip ^ ((1 << b) - 1));
    let bits = (0..BITS).rev().flat_map(|b| point.iter().map(move |x| u64::from((x ^ flip) >> b & 1)));
    bits.fold(0, |key, bit| key << 1 | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All points of a coarse grid, sorted by key, must each be one step from the next.
    #[test]
    fn curve_steps_to_a_neighbour() {
        let side = 8_u32;
        let shift = BITS - 3;
        for dim in [2, 3] {
            let count = side.pow(dim);
            let mut points: Vec<(u64, Vec<u32>)> = (0..count)
                .map(|i| {
                    let point: Vec<u32> = (0..dim).map(|a| i / side.pow(a) % side).collect();
                    (hilbert_key(&mut point.iter().map(|x| x << shift).collect::<Vec<_>>()), point)
                })
                .collect();
            points.sort();
            for pair in points.windows(2) {
                let steps: u32 = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{pair:?}");
            }
        }
    }
}
