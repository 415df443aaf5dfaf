//! Global numbering of the degrees of freedom of an element on a mesh.
//!
//! ```
//! use kingpost_fem::{mesh::Mesh, numbering::Numbering};
//!
//! let mesh = Mesh::unit_square(1)?; // two triangles
//! let numbering = Numbering::new(&mesh, 2)?;
//! assert_eq!(numbering.n_dofs(), 9); // 4 vertices and 5 edges
//! assert_eq!(numbering.cell(0), [0, 1, 2, 3, 4, 5]);
//! // shares vertices 0 and 2 and the edge between them
//! assert_eq!(numbering.cell(1), [0, 2, 6, 7, 8, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod composed;
mod facets;
mod lists;
mod order;
mod touch;

pub use composed::ComposedNumbering;
pub use facets::PlacedDof;
pub use order::NumberingOrder;

use kingpost_capacity::{OutOfMemory, check_memory};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use thiserror::Error;

use crate::element::{CellShape, ElementError, FiniteElement, LagrangeElement, Reorientation};
use crate::mesh::{Mesh, MeshCounts};
use lists::{CellDofs, VertexNumbers};
use touch::{CellMap, Refused, numbered};

/// Why a numbering was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberingError {
    /// There is no element of the degree.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The element is on other cells than those of the mesh.
    #[error("the mesh has cells of shape {mesh}, and the element is on a {element}; needed one shape")]
    Shape {
        /// The shape of the mesh's cells.
        mesh: CellShape,
        /// The shape of the element.
        element: CellShape,
    },
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
    /// The numbers of vertices are no numbering.
    #[error("numbers of vertices: found {found}; needed {needed}")]
    Vertices {
        /// What was found.
        found: String,
        /// What was needed.
        needed: String,
    },
    /// There is no memory for the map.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// What the local degrees of freedom of one entity of a cell are multiplied by before they are
/// coefficients of the cell's basis functions.
///
/// Results of a test function are multiplied by the transpose before they are added to the global
/// ones.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityTransform {
    /// The dimension of the entity.
    pub dim: usize,
    /// Its number in the cell.
    pub entity: usize,
    /// The degrees of freedom that are transformed.
    pub dofs: std::ops::Range<usize>,
    /// By state, [dofs, dofs] row-major.
    pub matrices: Vec<Vec<f64>>,
}

impl EntityTransform {
    /// The transforms of an element, in the order of the [states](Numbering::states) of a cell.
    #[must_use]
    pub fn all(element: &FiniteElement) -> Vec<Self> {
        let mut transforms = Vec::new();
        for dim in 0..=element.shape().dim() {
            let Reorientation::Matrices(matrices) = element.reorientation(dim) else { continue };
            transforms.extend((0..element.shape().entities_of_shape(dim).len()).map(|entity| Self {
                dim,
                entity,
                dofs: element.entity_dofs(dim, entity),
                matrices: matrices.clone(),
            }));
        }
        transforms
    }
}

/// The map from the basis functions of each cell to the global degrees of freedom of a space.
///
/// Numbers are given in the order in which the cells first touch them, so a mesh in a local order
/// (see [`Mesh::reorder_for_locality`]) has a local numbering. A [`NumberingOrder`] says whether all
/// of them are counted as one, or by the dimension of their entities. The degrees of freedom of an
/// edge or face refer to its vertices by ascending number, so both sides agree however their cells
/// list them. Where that only permutes them, as of Lagrange elements, the map is permuted; else a
/// cell says by its [states](Numbering::states) which matrix of a
/// [transform](Numbering::transforms) turns the global degrees of freedom into its own.
///
/// A vector space numbers its nodes likewise, with components innermost: component `c` of `m` of
/// degree of freedom `i` is entry `m i + c`, that is `u[i, c]` of an array [dofs, m].
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement};
/// use kingpost_fem::{mesh::Mesh, numbering::Numbering};
///
/// let mesh = Mesh::unit_square(1)?;
/// let element = FiniteElement::new(CellShape::Triangle, ElementFamily::NedelecFirst, 1)?;
/// let numbering = Numbering::of(&mesh, &element)?;
/// assert_eq!(numbering.n_dofs(), 5); // one an edge
/// assert_eq!(numbering.transforms()[1].matrices, [[1.0], [-1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Numbering {
    element: FiniteElement,
    order: NumberingOrder,
    n_dofs: usize,
    /// Shared with the numbering of an element that has this one alone.
    dofs: Arc<CellDofs>,
    transforms: Vec<EntityTransform>,
    states: Arc<Vec<i32>>,
}

impl Numbering {
    /// Numbers the Lagrange space of `degree` on `mesh`, on equispaced nodes.
    ///
    /// # Errors
    /// [`NumberingError::Element`] if there is no such element, else those of [`Numbering::of`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 2.1: the indirection map of a function space.
    pub fn new(mesh: &Mesh, degree: usize) -> Result<Self, NumberingError> {
        Self::new_in_order(mesh, degree, NumberingOrder::FirstTouch)
    }

    /// As [`Numbering::new`], in the given order.
    ///
    /// # Errors
    /// As [`Numbering::new`].
    pub fn new_in_order(mesh: &Mesh, degree: usize, order: NumberingOrder) -> Result<Self, NumberingError> {
        Self::of_in_order(mesh, LagrangeElement::new(mesh.shape(), degree)?.as_element(), order)
    }

    /// Numbers the space of `element` on `mesh`, in the order of first touch.
    ///
    /// # Errors
    /// [`NumberingError::Shape`] if the mesh has other cells, [`NumberingError::TooMany`] above
    /// `i32::MAX` numbers, [`NumberingError::Memory`].
    pub fn of(mesh: &Mesh, element: &FiniteElement) -> Result<Self, NumberingError> {
        Self::of_in_order(mesh, element, NumberingOrder::FirstTouch)
    }

    /// As [`Numbering::of`], in the given order.
    ///
    /// # Errors
    /// As [`Numbering::of`].
    pub fn of_in_order(
        mesh: &Mesh,
        element: &FiniteElement,
        order: NumberingOrder,
    ) -> Result<Self, NumberingError> {
        if mesh.shape() != element.shape() {
            return Err(NumberingError::Shape { mesh: mesh.shape(), element: element.shape() });
        }
        let (degree, cells) = (element.degree(), mesh.n_cells());
        let what = format!("the map of P{degree} on {cells} cells");
        let (needed, help) =
            (bytes(&MeshCounts::of(mesh), element), "lower the degree or use a smaller mesh");
        check_memory(&what, needed, help)?;
        let CellMap { n_dofs, dofs, states } =
            numbered(mesh, element, order).map_err(|refused| match refused {
                Refused::Memory => OutOfMemory::new(what, needed, help).into(),
                Refused::TooMany => NumberingError::TooMany { degree, cells },
            })?;
        let transforms = EntityTransform::all(element);
        let (element, dofs, states) = (element.clone(), Arc::new(dofs.into()), states.into());
        Ok(Self { element, order, n_dofs, dofs, transforms, states })
    }

    /// Whether an element has one degree of freedom a vertex and no others, so that
    /// [numbers of vertices](Numbering::of_vertices) number it.
    #[must_use]
    pub fn is_of_vertices(element: &FiniteElement) -> bool {
        (0..=element.shape().dim()).all(|dim| element.dofs_per_entity(dim) == usize::from(dim == 0))
            && element.entity_dofs(0, 0) == (0..1)
            && EntityTransform::all(element).is_empty()
    }

    /// The numbering of an element [of vertices](Numbering::is_of_vertices) by the number of each vertex, -1 of
    /// those in no cell, as a device finds them. The numbers are those of an `order`, which is not checked.
    ///
    /// # Errors
    /// [`NumberingError::Shape`]; [`NumberingError::Vertices`] of another element, of fewer or more numbers than
    /// vertices, or of numbers that are not 0, 1, … in some order.
    pub fn of_vertices(
        mesh: &Mesh,
        element: &FiniteElement,
        order: NumberingOrder,
        numbers: Vec<i32>,
    ) -> Result<Self, NumberingError> {
        if mesh.shape() != element.shape() {
            return Err(NumberingError::Shape { mesh: mesh.shape(), element: element.shape() });
        }
        let refused = |found: String, needed: String| Err(NumberingError::Vertices { found, needed });
        if !Self::is_of_vertices(element) {
            return refused("another element".into(), "one degree of freedom a vertex".into());
        }
        if numbers.len() != mesh.n_vertices() {
            return refused(numbers.len().to_string(), mesh.n_vertices().to_string());
        }
        let n_dofs = numbers.par_iter().filter(|number| **number >= 0).count();
        let is_there: Vec<AtomicBool> = (0..n_dofs).into_par_iter().map(|_| false.into()).collect();
        let is_other = |number: &&i32| {
            let place = usize::try_from(**number).ok().map(|number| is_there.get(number));
            place.is_some_and(|place| place.is_none_or(|place| place.swap(true, Relaxed)))
        };
        if let Some(number) = numbers.par_iter().find_any(is_other) {
            return refused(format!("{number} twice or too large"), format!("{n_dofs} numbers from 0 on"));
        }
        let dofs = Arc::new(VertexNumbers { cells: mesh.shared_cells(), numbers }.into());
        Ok(Self {
            element: element.clone(),
            order,
            n_dofs,
            dofs,
            transforms: Vec::new(),
            states: Arc::default(),
        })
    }

    /// The order of the numbers.
    #[must_use]
    pub const fn order(&self) -> NumberingOrder {
        self.order
    }

    /// The element whose basis functions are numbered.
    #[must_use]
    pub const fn element(&self) -> &FiniteElement {
        &self.element
    }

    /// What a cell does to its degrees of freedom, by entity; empty if the map says it all.
    #[must_use]
    pub fn transforms(&self) -> &[EntityTransform] {
        &self.transforms
    }

    /// Which matrix of each transform a cell takes: [cells, transforms] row-major.
    #[must_use]
    pub fn states(&self) -> &[i32] {
        &self.states
    }

    /// Turns the global values of a cell's degrees of freedom, in the order of [`Numbering::cell`],
    /// into coefficients of its basis functions. Values are left as they are if there is no such
    /// cell or they are fewer than its degrees of freedom.
    pub fn to_local(&self, cell: usize, values: &mut [f64]) {
        let n = self.transforms.len();
        let states = self.states.get(cell * n..(cell + 1) * n).unwrap_or(&[]);
        for (transform, state) in self.transforms.iter().zip(states) {
            let size = transform.dofs.len();
            let (Some(part), Some(matrix)) =
                (values.get_mut(transform.dofs.clone()), transform.matrices.get(*state as usize))
            else {
                continue;
            };
            let rows = matrix.chunks_exact(size);
            let turned: Vec<f64> =
                rows.map(|row| row.iter().zip(part.iter()).map(|(a, x)| a * x).sum()).collect();
            part.copy_from_slice(&turned);
        }
    }

    /// The number of global (scalar) degrees of freedom.
    #[must_use]
    pub const fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// The number of basis functions of a cell.
    #[must_use]
    pub fn dofs_per_cell(&self) -> usize {
        self.element.n_dofs()
    }

    /// The map, [cells, dofs per cell] row-major, in the order of the cells of the mesh.
    #[must_use]
    pub fn dofs(&self) -> &[i32] {
        self.dofs.all()
    }

    /// The degrees of freedom of one cell; empty if there is no such cell.
    #[must_use]
    pub fn cell(&self, cell: usize) -> &[i32] {
        let n = self.dofs_per_cell();
        self.dofs().get(cell * n..(cell + 1) * n).unwrap_or(&[])
    }

    /// A degree of freedom of a cell, by its place in the cell; none if there is no such cell or place.
    #[must_use]
    pub fn dof(&self, cell: usize, place: usize) -> Option<i32> {
        let n = self.dofs_per_cell();
        if place < n { self.dofs.at(cell * n + place) } else { None }
    }

    /// The nodes of the degrees of freedom, [dofs, dim] row-major, on the mesh that was numbered: a
    /// function is interpolated by its values there. A node on a shared entity is computed from the
    /// first cell that has it. Empty if degrees of freedom are not values at points.
    #[must_use]
    pub fn dof_points(&self, mesh: &Mesh) -> Vec<f64> {
        let Some(nodes) = self.element.points() else { return Vec::new() };
        let dim = mesh.shape().dim();
        let map = mesh.point_map(&nodes);
        let first: Vec<AtomicU32> = (0..self.n_dofs).into_par_iter().map(|_| u32::MAX.into()).collect();
        self.dofs().par_chunks_exact(self.dofs_per_cell()).enumerate().for_each(|(cell, dofs)| {
            for dof in dofs {
                first[*dof as usize].fetch_min(cell as u32, Relaxed);
            }
        });
        let mut points = vec![0.0; self.n_dofs * dim];
        points.par_chunks_exact_mut(dim).enumerate().for_each(|(dof, point)| {
            let cell = first[dof].load(Relaxed) as usize;
            let node = self.cell(cell).iter().position(|own| *own as usize == dof);
            node.into_iter().for_each(|node| map.place(cell, node, point));
        });
        points
    }
}

/// Bytes of a map, with what is known of edges and faces while it is made.
fn bytes(counts: &MeshCounts, element: &FiniteElement) -> u64 {
    let shape = counts.shape;
    let states = EntityTransform::all(element).len();
    let map = counts.cells.saturating_mul(4 * (element.n_dofs() + states) as u64);
    // of each entity of a cell its owner and a number, and the cells around each vertex
    let shared = (1..shape.dim()).filter(|dim| element.dofs_per_entity(*dim) > 0);
    let entities: usize = shared.map(|dim| shape.entities(dim).len()).sum();
    let around = if entities > 0 { 4 * shape.n_vertices() } else { 0 };
    let tables = counts.cells.saturating_mul((9 * entities + around) as u64);
    map.saturating_add(tables).saturating_add(20 * counts.vertices)
}
