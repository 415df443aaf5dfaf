//! How many entities a mesh has, and what it takes in memory, before there is one.

use super::{Mesh, MeshError};
use crate::element::CellShape;
use kingpost_capacity::{OutOfMemory, check_memory};

/// The vertices and cells of a mesh, as counts alone.
///
/// ```
/// use kingpost_fem::element::CellShape;
/// use kingpost_fem::mesh::MeshCounts;
///
/// let counts = MeshCounts::unit(CellShape::Tetrahedron, 100)?;
/// assert_eq!((counts.vertices, counts.cells), (1_030_301, 6_000_000));
/// assert_eq!(counts.bytes(), 24 * 1_030_301 + 16 * 6_000_000);
/// # Ok::<(), kingpost_fem::mesh::MeshError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshCounts {
    /// The shape of the cells.
    pub shape: CellShape,
    /// The number of vertices.
    pub vertices: u64,
    /// The number of cells.
    pub cells: u64,
}

impl MeshCounts {
    /// The counts of the unit interval, square or cube with a given number of divisions a side.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if there is none, or its vertices cannot be numbered with 32 bits.
    pub fn unit(shape: CellShape, divisions: usize) -> Result<Self, MeshError> {
        let dim = shape.dim();
        Mesh::check_divisions(dim, divisions)?;
        // at most 2^32 corners, and 6 cells for each
        let power = |n: usize| (n as u64).pow(dim as u32);
        let of_block = match shape {
            CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => 1,
            CellShape::Triangle | CellShape::Prism => 2,
            CellShape::Tetrahedron | CellShape::Pyramid => 6,
        };
        let middles = if shape == CellShape::Pyramid { power(divisions) } else { 0 };
        let (vertices, cells) = (power(divisions + 1) + middles, of_block * power(divisions));
        Ok(Self { shape, vertices, cells })
    }

    /// The counts of a mesh.
    #[must_use]
    pub fn of(mesh: &Mesh) -> Self {
        let (vertices, cells) = (mesh.n_vertices() as u64, mesh.n_cells() as u64);
        Self { shape: mesh.shape(), vertices, cells }
    }

    /// About how many entities of a dimension there are: exact for vertices and cells, and up to
    /// what the boundary and the holes of the mesh make of it for edges and faces, by Euler's
    /// formula for a ball and the boundary of a cube.
    #[must_use]
    pub fn entities(&self, dim: usize) -> u64 {
        let Self { shape, vertices, cells } = *self;
        let facets = || {
            let all = cells.saturating_mul(shape.facets().len() as u64);
            let (blocks, of_side) = match shape {
                CellShape::Tetrahedron => (cells as f64 / 6.0, 12.0),
                CellShape::Prism => (cells as f64 / 2.0, 8.0),
                CellShape::Pyramid => (cells as f64 / 6.0, 6.0),
                CellShape::Interval
                | CellShape::Triangle
                | CellShape::Quadrilateral
                | CellShape::Hexahedron => (cells as f64, 6.0),
            };
            all.saturating_add((of_side * blocks.powf(2.0 / 3.0)).round() as u64) / 2
        };
        match (dim, shape.dim()) {
            (0, _) => vertices,
            (1, 2) => vertices.saturating_add(cells).saturating_sub(1),
            (2, 3) => facets(),
            (1, 3) => vertices.saturating_add(facets()).saturating_sub(cells.saturating_add(1)),
            (dim, of) if dim == of => cells,
            _ => 0,
        }
    }

    /// Bytes of a mesh of straight cells: coordinates in 64 bits, vertices in 32.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let coordinates = self.vertices.saturating_mul(8 * self.shape.dim() as u64);
        coordinates.saturating_add(self.cells.saturating_mul(4 * self.shape.n_vertices() as u64))
    }

    /// Whether a mesh of straight cells fits in the memory of this machine.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn check(&self) -> Result<(), OutOfMemory> {
        check_memory("the mesh", self.bytes(), "use fewer cells")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // how a test fails
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn counts_are_those_of_the_mesh() {
        for shape in CellShape::ALL {
            for n in [1, 2, 5] {
                let (mesh, counts) = (Mesh::unit(shape, n).unwrap(), MeshCounts::unit(shape, n).unwrap());
                assert_eq!(counts, MeshCounts::of(&mesh));
                let bytes = size_of_val(mesh.coordinates()) + size_of_val(mesh.cells());
                assert_eq!(counts.bytes(), bytes as u64);
                for dim in 0..=shape.dim() {
                    let of_cell = |cell: usize| shape.entities(dim).iter().map(move |entity| (cell, entity));
                    let vertices = |(cell, entity): (usize, &&[usize])| -> BTreeSet<u32> {
                        entity.iter().map(|corner| mesh.cell(cell)[*corner]).collect()
                    };
                    let found: BTreeSet<_> = (0..mesh.n_cells()).flat_map(of_cell).map(vertices).collect();
                    // cubes have exactly the boundary that is assumed
                    assert_eq!(counts.entities(dim), found.len() as u64, "{shape} {n} {dim}");
                }
            }
        }
    }

    #[test]
    fn meshes_that_no_machine_has_are_refused_before_they_are_made() {
        for (shape, n) in [(CellShape::Quadrilateral, 65_534), (CellShape::Triangle, 65_534)] {
            let counts = MeshCounts::unit(shape, n).unwrap();
            if kingpost_capacity::available_memory().is_some_and(|free| free < counts.bytes()) {
                let MeshError::Memory(error) = Mesh::unit(shape, n).unwrap_err() else { unreachable!() };
                assert_eq!(error.needed, counts.bytes());
            }
        }
        for n in [0, 65_535, usize::MAX] {
            assert!(matches!(Mesh::unit(CellShape::Quadrilateral, n), Err(MeshError::Divisions { .. })));
        }
    }
}
