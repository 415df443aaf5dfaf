//! Meshes of cells of one shape, straight or curved.
//!
//! ```
//! use kingpost_fem::mesh::Mesh;
//!
//! let mesh = Mesh::unit_cube(2)?;
//! assert_eq!((mesh.n_vertices(), mesh.n_cells()), (27, 48));
//! assert!((mesh.volume() - 1.0).abs() < 1e-15);
//! # Ok::<(), kingpost_fem::mesh::MeshError>(())
//! ```

mod check;
mod counts;
mod error;
mod facets;
mod geometry;
mod gmsh;
mod incidence;
mod locality;
#[cfg(feature = "metis")]
mod metis;
mod part;
mod placement;
mod refined;
mod tags;
mod unit;

pub use counts::MeshCounts;
pub use error::MeshError;
pub use facets::{Facet, FacetSide, FacetTag};
pub use gmsh::{GmshBlock, GmshBlocks, GmshError, Place};
pub use incidence::{CellsOfVertices, EntityKey, Occurrence, entity_key};
#[cfg(feature = "metis")]
pub use metis::PartsError;
pub use placement::Placement;
pub use refined::children;
pub use tags::CellTags;

use crate::element::{CellShape, FiniteElement};
use std::sync::Arc;

/// A conforming mesh.
///
/// A cell lists its vertices in any order that a reference cell turned or mirrored has, so that the
/// determinant of its map may have either sign: integrals take its size, and numberings orient
/// edges and faces by the vertices' numbers.
///
/// Vertices are what makes cells neighbours. The map of a cell is the Lagrange function of its
/// nodes: its vertices alone if the mesh is straight, else also nodes on edges, faces and inside
/// (see [`Mesh::with_nodes`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    shape: CellShape,
    coordinates: Vec<f64>,
    /// Shared with numberings that are made of it.
    cells: Arc<Vec<u32>>,
    tags: Option<CellTags>,
    curved: Option<Curved>,
    facet_tags: Vec<FacetTag>,
    placement: Option<Placement>,
}

/// Nodes of curved cells.
#[derive(Clone, Debug, PartialEq)]
struct Curved {
    element: FiniteElement,
    /// [nodes, dim] row-major.
    coordinates: Vec<f64>,
    /// [cells, dofs of the element] row-major.
    cells: Vec<u32>,
}

impl Mesh {
    /// A mesh from its parts, checked.
    ///
    /// # Shapes and units
    /// `coordinates` is [vertices, dim] and `cells` is [cells, corners], both row-major; `tags` has
    /// one entry a cell; [`Mesh::with_tags`] gives several.
    ///
    /// # Errors
    /// [`MeshError`] if a list has an incomplete row, a vertex does not exist, a coordinate is not
    /// finite, a cell is degenerate or turns inside out, or two cells lie on one side of a facet; a
    /// cell is named by its number, counted from 0.
    pub fn new(
        shape: CellShape,
        coordinates: Vec<f64>,
        cells: Vec<u32>,
        tags: Option<Vec<i32>>,
    ) -> Result<Self, MeshError> {
        let tags = tags.map(|tags| CellTags::new(tags.chunks(1)));
        let mesh = Self::unchecked(shape, coordinates, cells, tags);
        mesh.check()?;
        Ok(mesh)
    }

    fn unchecked(shape: CellShape, coordinates: Vec<f64>, cells: Vec<u32>, tags: Option<CellTags>) -> Self {
        let cells = cells.into();
        Self { shape, coordinates, cells, tags, curved: None, facet_tags: Vec::new(), placement: None }
    }

    /// The same mesh with a set of tags for each cell.
    ///
    /// # Errors
    /// [`MeshError::Tags`] if there are more or fewer sets than cells.
    pub fn with_tags(mut self, tags: CellTags) -> Result<Self, MeshError> {
        if tags.len() != self.n_cells() {
            return Err(MeshError::Tags { tags: tags.len(), cells: self.n_cells() });
        }
        self.tags = Some(tags);
        Ok(self)
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

    /// The vertices of the cells, [cells, corners] row-major.
    #[must_use]
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    pub(crate) fn shared_cells(&self) -> Arc<Vec<u32>> {
        Arc::clone(&self.cells)
    }

    /// The tags of the cells, those of a file its physical groups; none if no cell has any.
    #[must_use]
    pub const fn tags(&self) -> Option<&CellTags> {
        self.tags.as_ref()
    }

    /// Where the mesh lies in space; none if it lies along the first axis, in the plane of the
    /// first two, or fills space.
    #[must_use]
    pub const fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
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
}
