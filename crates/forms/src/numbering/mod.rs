//! Global numbering of the degrees of freedom of continuous Lagrange spaces.
//!
//! ```
//! use purlin_forms::{mesh::Mesh, numbering::Numbering};
//!
//! let mesh = Mesh::unit_square(1)?; // two triangles
//! let numbering = Numbering::new(&mesh, 2)?;
//! assert_eq!(numbering.n_dofs(), 9); // 4 vertices and 5 edges
//! assert_eq!(numbering.cell(0), [0, 1, 2, 3, 4, 5]);
//! assert_eq!(numbering.cell(1), [0, 2, 6, 7, 8, 4]); // shares vertices 0 and 2 and the edge between them
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entities;

use thiserror::Error;

use crate::element::{ElementError, LagrangeElement};
use crate::mesh::Mesh;
use entities::{EntityTable, Orientations};

/// Why a numbering was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberingError {
    /// There is no element of the degree.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// There are more numbers than the 32-bit maps of the kernels hold.
    #[error(
        "P{degree} on {cells} cells has more than {max} degrees of freedom, which 32-bit maps cannot name; lower the degree or split the mesh",
        max = i32::MAX
    )]
    TooMany {
        /// The degree of the element.
        degree: usize,
        /// The number of cells.
        cells: usize,
    },
    /// There is no memory for the map.
    #[error("no memory for the map of P{degree} on {cells} cells; lower the degree or use a smaller mesh")]
    Memory {
        /// The degree of the element.
        degree: usize,
        /// The number of cells.
        cells: usize,
    },
}

/// The map from the basis functions of each cell to the global degrees of freedom of a continuous
/// Lagrange space.
///
/// Numbers are given in the order in which the cells first touch them, so a mesh in a local order
/// (see [`Mesh::reorder_for_locality`]) has a local numbering. The nodes of an edge or face are
/// numbered along its vertices' numbers, so both sides agree however their cells list them.
///
/// A vector space numbers its nodes likewise, with components innermost: component `c` of `m` of
/// degree of freedom `i` is entry `m i + c`, that is `u[i, c]` of an array [dofs, m].
#[derive(Clone, Debug, PartialEq)]
pub struct Numbering {
    element: LagrangeElement,
    n_dofs: usize,
    dofs: Vec<i32>,
}

impl Numbering {
    /// Numbers the Lagrange space of `degree` on `mesh`.
    ///
    /// # Errors
    /// [`NumberingError::Element`] if there is no such element, [`NumberingError::TooMany`] above
    /// `i32::MAX` numbers, [`NumberingError::Memory`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 2.1: the indirection map of a function space.
    pub fn new(mesh: &Mesh, degree: usize) -> Result<Self, NumberingError> {
        let element = LagrangeElement::new(mesh.shape(), degree)?;
        let no_memory = || NumberingError::Memory { degree, cells: mesh.n_cells() };
        let mut builder = Builder::new(mesh, &element).ok_or_else(no_memory)?;
        let mut dofs = Vec::new();
        let size = mesh.n_cells().checked_mul(element.dim()).ok_or_else(no_memory)?;
        dofs.try_reserve_exact(size).map_err(|_| no_memory())?;
        let too_many = || NumberingError::TooMany { degree, cells: mesh.n_cells() };
        for cell in 0..mesh.n_cells() {
            builder.number_cell(mesh.cell(cell), &mut dofs).ok_or_else(too_many)?;
        }
        let n_dofs = builder.next as usize;
        Ok(Self { element, n_dofs, dofs })
    }

    /// The element whose basis functions are numbered.
    #[must_use]
    pub const fn element(&self) -> &LagrangeElement {
        &self.element
    }

    /// The number of global (scalar) degrees of freedom.
    #[must_use]
    pub const fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// The number of basis functions of a cell.
    #[must_use]
    pub fn dofs_per_cell(&self) -> usize {
        self.element.dim()
    }

    /// The map, [cells, dofs per cell] row-major, in the order of the cells of the mesh.
    #[must_use]
    pub fn dofs(&self) -> &[i32] {
        &self.dofs
    }

    /// The degrees of freedom of one cell; empty if there is no such cell.
    #[must_use]
    pub fn cell(&self, cell: usize) -> &[i32] {
        let n = self.dofs_per_cell();
        self.dofs.get(cell * n..(cell + 1) * n).unwrap_or(&[])
    }

    /// The nodes of the degrees of freedom, [dofs, dim] row-major, on the mesh that was numbered: a
    /// function is interpolated by its values there. A node on a shared entity is computed from the
    /// first cell that has it.
    #[must_use]
    pub fn dof_points(&self, mesh: &Mesh) -> Vec<f64> {
        let dim = mesh.shape().dim();
        let mut points = vec![0.0; self.n_dofs * dim];
        let mut next = 0;
        for cell in 0..mesh.n_cells() {
            let dofs = self.cell(cell);
            for (dof, node) in dofs.iter().zip(self.element.points().chunks_exact(dim)) {
                // A cell's new numbers all lie above those given before it.
                let at = *dof as usize;
                if at >= next {
                    mesh.map_point(cell, node, &mut points[at * dim..(at + 1) * dim]);
                }
            }
            next = dofs.iter().fold(next, |next, dof| next.max(*dof as usize + 1));
        }
        points
    }
}

/// Numbers given so far, by entity.
struct Builder {
    shape: crate::element::CellShape,
    /// Numbers per entity of each dimension.
    sizes: Vec<usize>,
    vertices: Vec<i32>,
    edges: EntityTable,
    faces: EntityTable,
    orientations: [Orientations; 2],
    next: i32,
}

/// A list of `len` equal values; none if there is no memory.
fn filled<T: Copy>(value: T, len: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).ok()?;
    list.resize(len, value);
    Some(list)
}

/// Marks a vertex that has no number yet.
const NONE: i32 = -1;

impl Builder {
    /// None if there is no memory.
    fn new(mesh: &Mesh, element: &LagrangeElement) -> Option<Self> {
        let shape = mesh.shape();
        let degree = element.degree();
        let faces = if shape.dim() == 3 { 2 * mesh.n_cells() } else { 1 };
        Some(Self {
            shape,
            sizes: (0..=shape.dim()).map(|dim| element.dofs_per_entity(dim)).collect(),
            vertices: filled(NONE, mesh.n_vertices())?,
            // About 1.2 edges and 2 faces a tetrahedron, 1.5 edges a triangle.
            edges: EntityTable::with_capacity(2 * mesh.n_cells())?,
            faces: EntityTable::with_capacity(faces)?,
            orientations: [Orientations::new(2, degree), Orientations::new(3, degree)],
            next: 0,
        })
    }

    /// Appends the numbers of one cell; none if they run out.
    fn number_cell(&mut self, cell: &[u32], dofs: &mut Vec<i32>) -> Option<()> {
        for dim in 0..self.sizes.len() {
            let size = self.sizes[dim];
            if size == 0 {
                continue;
            }
            for entity in self.shape.entities(dim) {
                let mut vertices = [0; 4];
                for (global, local) in vertices.iter_mut().zip(*entity) {
                    *global = cell[*local];
                }
                self.number_entity(dim, &vertices[..entity.len()], size, dofs)?;
            }
        }
        Some(())
    }

    fn number_entity(
        &mut self,
        dim: usize,
        vertices: &[u32],
        size: usize,
        dofs: &mut Vec<i32>,
    ) -> Option<()> {
        if dim == self.shape.dim() {
            let first = take(&mut self.next, size)?;
            dofs.extend(first..first + size as i32);
            return Some(());
        }
        let next = &mut self.next;
        let slot = match vertices {
            [vertex] => self.vertices.get_mut(*vertex as usize)?,
            [_, _] => self.edges.slot(vertices, NONE),
            _ => self.faces.slot(vertices, NONE),
        };
        if *slot == NONE {
            *slot = take(next, size)?;
        }
        let first = *slot;
        match dim {
            0 => dofs.push(first),
            _ => dofs.extend(self.orientations[dim - 1].of(vertices).iter().map(|i| first + i)),
        }
        Some(())
    }
}

/// The first of `size` fresh numbers; none if they would pass `i32::MAX`.
fn take(next: &mut i32, size: usize) -> Option<i32> {
    let first = *next;
    *next = first.checked_add(i32::try_from(size).ok()?)?;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mesh with 2³¹ degrees of freedom does not fit a test machine; the counter behind the error
    /// does.
    #[test]
    fn numbers_run_out_at_the_last_32_bit_one() {
        let mut next = i32::MAX - 3;
        assert_eq!(take(&mut next, 3), Some(i32::MAX - 3));
        assert_eq!(next, i32::MAX);
        assert_eq!(take(&mut next, 1), None);
        assert_eq!(take(&mut 0, usize::MAX), None);
        let error = NumberingError::TooMany { degree: 8, cells: 134_480_000 };
        assert_eq!(
            error.to_string(),
            "P8 on 134480000 cells has more than 2147483647 degrees of freedom, which 32-bit maps cannot name; lower the degree or split the mesh"
        );
    }
}
