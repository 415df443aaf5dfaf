//! Meshes of triangles or tetrahedra with straight sides.
//!
//! ```
//! use purlin_forms::mesh::Mesh;
//!
//! let mesh = Mesh::unit_cube(2)?;
//! assert_eq!((mesh.n_vertices(), mesh.n_cells()), (27, 48));
//! assert!((mesh.volume() - 1.0).abs() < 1e-15);
//! # Ok::<(), purlin_forms::mesh::MeshError>(())
//! ```

mod check;
mod cursor;
mod error;
mod gmsh;
mod locality;
mod unit;

pub use cursor::Place;
pub use error::MeshError;
pub use gmsh::GmshError;

use crate::element::CellShape;

/// A conforming mesh of affine cells.
///
/// A cell lists its vertices in any order, so that the determinant of the edges from its first
/// vertex may have either sign: integrals take its size, and numberings orient edges and faces by
/// the vertices' numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    shape: CellShape,
    coordinates: Vec<f64>,
    cells: Vec<u32>,
    tags: Option<Vec<i32>>,
}

impl Mesh {
    /// A mesh from its parts, checked.
    ///
    /// # Shapes and units
    /// `coordinates` is [vertices, dim] and `cells` is [cells, dim + 1], both row-major; `tags` has
    /// one entry a cell.
    ///
    /// # Errors
    /// [`MeshError`] if a list has an incomplete row, a vertex does not exist, a coordinate is not
    /// finite, a cell is degenerate, or two cells lie on one side of a facet; a cell is named by
    /// its number, counted from 0.
    pub fn new(
        shape: CellShape,
        coordinates: Vec<f64>,
        cells: Vec<u32>,
        tags: Option<Vec<i32>>,
    ) -> Result<Self, MeshError> {
        let mesh = Self { shape, coordinates, cells, tags };
        mesh.check()?;
        Ok(mesh)
    }

    /// The shape of the cells.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        self.shape
    }

    /// The number of cells.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        self.cells.len() / self.shape.n_vertices()
    }

    /// The number of vertices.
    #[must_use]
    pub fn n_vertices(&self) -> usize {
        self.coordinates.len() / self.shape.dim()
    }

    /// The coordinates of the vertices, [vertices, dim] row-major.
    #[must_use]
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates
    }

    /// The vertices of the cells, [cells, dim + 1] row-major.
    #[must_use]
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// One number a cell, from the file the mesh was read from: the physical group, or else the
    /// geometric entity.
    #[must_use]
    pub fn tags(&self) -> Option<&[i32]> {
        self.tags.as_deref()
    }

    /// The coordinates of a vertex; empty if there is no such vertex.
    #[must_use]
    pub fn vertex(&self, vertex: u32) -> &[f64] {
        let dim = self.shape.dim();
        self.coordinates.get(vertex as usize * dim..(vertex as usize + 1) * dim).unwrap_or(&[])
    }

    /// The vertices of a cell; empty if there is no such cell.
    #[must_use]
    pub fn cell(&self, cell: usize) -> &[u32] {
        let corners = self.shape.n_vertices();
        self.cells.get(cell * corners..(cell + 1) * corners).unwrap_or(&[])
    }

    /// The point of `cell` with reference coordinates `reference`, one for each axis; empty if
    /// there is no such cell.
    #[must_use]
    pub fn point(&self, cell: usize, reference: &[f64]) -> Vec<f64> {
        let mut point = if cell < self.n_cells() { vec![0.0; self.shape.dim()] } else { Vec::new() };
        self.map_point(cell, reference, &mut point);
        point
    }

    /// [`Mesh::point`] into an array of length dim, without an allocation.
    pub(crate) fn map_point(&self, cell: usize, reference: &[f64], point: &mut [f64]) {
        let Some((origin, others)) = self.cell(cell).split_first() else { return };
        let origin = self.vertex(*origin);
        point.copy_from_slice(origin);
        for (corner, factor) in others.iter().zip(reference) {
            for ((x, start), end) in point.iter_mut().zip(origin).zip(self.vertex(*corner)) {
                *x += factor * (end - start);
            }
        }
    }

    /// The determinant of the edge vectors from the first vertex of a cell: its volume times 2 or
    /// 6, with the sign of the order of its vertices and not 0 in a checked mesh; 0 if there is no
    /// such cell.
    #[must_use]
    pub fn determinant(&self, cell: usize) -> f64 {
        let Some((origin, others)) = self.cell(cell).split_first() else { return 0.0 };
        let origin = self.vertex(*origin);
        let edge = |i: usize, axis: usize| self.vertex(others[i])[axis] - origin[axis];
        let minor = |a: usize, b: usize| edge(1, a) * edge(2, b) - edge(1, b) * edge(2, a);
        match self.shape {
            CellShape::Triangle => edge(0, 0) * edge(1, 1) - edge(0, 1) * edge(1, 0),
            CellShape::Tetrahedron => {
                edge(0, 0) * minor(1, 2) + edge(0, 1) * minor(2, 0) + edge(0, 2) * minor(0, 1)
            }
        }
    }

    /// The area or volume of the mesh.
    #[must_use]
    pub fn volume(&self) -> f64 {
        (0..self.n_cells()).map(|cell| self.determinant(cell).abs()).sum::<f64>() * self.shape.volume()
    }
}
