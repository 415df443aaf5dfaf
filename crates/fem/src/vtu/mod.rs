//! Writing meshes and fields as VTU files, which ParaView and VTK read.
//!
//! Our own writer, because `vtkio` brings a parser and compressors for the one file of XML that is
//! written here.
//!
//! # Source
//! VTK file formats, "XML file formats" and "unstructured grid"; nodes of Lagrange cells as VTK 9
//! orders them.

mod nodes;
mod xml;

use crate::element::{
    CellShape, ElementError, ElementFamily, ElementTable, FiniteElement, LagrangeVariant, Pullback,
};
use crate::mesh::{CellTags, Mesh, MeshError};
use crate::numbering::{Numbering, NumberingError};
use nodes::NODES;
use thiserror::Error;
use xml::{Array, Numbers};

pub use xml::VtuEncoding;

/// Why a mesh or field cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VtuError {
    /// The order of the cells is not supported.
    #[error(
        "vtu cells of order {order} and shape {shape}: supported are 1 to 4, of prisms 1 and 2, of pyramids 1; sample the fields at a lower order"
    )]
    Order {
        /// The order asked for.
        order: usize,
        /// The shape of the cells.
        shape: CellShape,
    },
    /// The values of a field are no whole number of its degrees of freedom or cells.
    #[error("field `{name}` has {found} values, needed a multiple of {needed}")]
    Length {
        /// The name of the field.
        name: String,
        /// The number of values.
        found: usize,
        /// The number of degrees of freedom, or of cells.
        needed: usize,
    },
    /// A vector element with several values a degree of freedom.
    #[error(
        "field `{name}` has vectors as values already, needed 1 value for each of its {dofs} degrees of freedom"
    )]
    Blocked {
        /// The name of the field.
        name: String,
        /// The number of degrees of freedom.
        dofs: usize,
    },
    /// A field that jumps, on nodes that cells share.
    #[error("field `{name}` is not continuous, and the cells share their nodes; write it with `Vtu::broken`")]
    Discontinuous {
        /// The name of the field.
        name: String,
    },
    /// The field is on another mesh.
    #[error("field `{name}` is on {found} cells, and the mesh has {needed}")]
    Cells {
        /// The name of the field.
        name: String,
        /// The number of cells that its numbering has.
        found: usize,
        /// The number of cells of the mesh.
        needed: usize,
    },
    /// The nodes cannot be numbered.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// An element or tabulation does not exist.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The mesh cannot be evaluated.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

/// A mesh with fields, sampled at the nodes of Lagrange cells of one order.
///
/// ```
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_fem::numbering::Numbering;
/// use kingpost_fem::vtu::{Vtu, VtuEncoding};
///
/// let mesh = Mesh::unit_square(2)?;
/// let numbering = Numbering::new(&mesh, 2)?;
/// let u: Vec<f64> = numbering.dof_points(&mesh).chunks(2).map(|x| x[0] * x[1]).collect();
/// let mut vtu = Vtu::new(&mesh, 2)?;
/// vtu.field("u", &numbering, &u)?;
/// let file = vtu.to_bytes(VtuEncoding::Base64); // `std::fs::write("u.vtu", file)`
/// assert!(file.starts_with(b"<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Vtu<'a> {
    mesh: &'a Mesh,
    /// The nodes that are written.
    numbering: Numbering,
    order: usize,
    /// VTK's number of the cells, and which of their nodes each of its points is.
    kind: (u8, &'static [usize]),
    point_data: Vec<Array>,
    cell_data: Vec<Array>,
}

impl<'a> Vtu<'a> {
    /// The mesh with cells of an order from 1 to 4, of prisms 1 or 2, of pyramids 1, which share their nodes. A curved mesh needs
    /// its own order, a field of degree `k` the order `k`, to be exact.
    ///
    /// The lowest tag of each cell is written as `tag`, 0 where there is none. If a cell has several,
    /// each tag is also written separately, tag 7 as `group_7` with 1 for its cells and 0 for others.
    /// A flat mesh is written where it lies in space, with vectors along it.
    ///
    /// # Errors
    /// [`VtuError::Order`], [`VtuError::Numbering`].
    pub fn new(mesh: &'a Mesh, order: usize) -> Result<Self, VtuError> {
        Self::with(mesh, order, FiniteElement::new)
    }

    /// The same with nodes of its own for each cell, for fields that jump.
    ///
    /// # Errors
    /// As [`Vtu::new`].
    pub fn broken(mesh: &'a Mesh, order: usize) -> Result<Self, VtuError> {
        Self::with(mesh, order, FiniteElement::discontinuous)
    }

    fn with(
        mesh: &'a Mesh,
        order: usize,
        make: fn(CellShape, ElementFamily, usize) -> Result<FiniteElement, ElementError>,
    ) -> Result<Self, VtuError> {
        let shape = mesh.shape();
        let mut kinds = NODES.iter().chain(&OTHERS);
        let Some((.., number, places)) = kinds.find(|(of, k, ..)| (*of, *k) == (shape, order)) else {
            return Err(VtuError::Order { order, shape });
        };
        let number = if order == 1 { first_order(shape) } else { *number };
        let element = make(mesh.shape(), ElementFamily::Lagrange(LagrangeVariant::Equispaced), order)?;
        let numbering = Numbering::of(mesh, &element)?;
        let cell_data = mesh.tags().map(tag_arrays).unwrap_or_default();
        Ok(Self { mesh, numbering, order, kind: (number, places), point_data: Vec::new(), cell_data })
    }

    /// Adds a field by its degrees of freedom.
    ///
    /// # Shapes and units
    /// `values` is `[dofs]` or, of an element with scalar values, `[dofs, components]` row-major.
    ///
    /// # Errors
    /// [`VtuError::Length`] if that does not fit, [`VtuError::Cells`] if the numbering is of
    /// another mesh, [`VtuError::Discontinuous`] if the field jumps and cells share nodes.
    pub fn field(&mut self, name: &str, numbering: &Numbering, values: &[f64]) -> Result<(), VtuError> {
        let (element, n_dofs) = (numbering.element(), numbering.n_dofs());
        let cells = numbering.dofs().len() / numbering.dofs_per_cell();
        let name = name.to_owned();
        if cells != self.mesh.n_cells() || element.shape() != self.mesh.shape() {
            return Err(VtuError::Cells { name, found: cells, needed: self.mesh.n_cells() });
        }
        if values.is_empty() || !values.len().is_multiple_of(n_dofs) {
            return Err(VtuError::Length { name, found: values.len(), needed: n_dofs });
        }
        let block = values.len() / n_dofs;
        if block > 1 && element.value_size() > 1 {
            return Err(VtuError::Blocked { name, dofs: n_dofs });
        }
        let jumps = element.is_discontinuous() || element.pullback() != Pullback::Identity;
        if jumps && !self.numbering.element().is_discontinuous() {
            return Err(VtuError::Discontinuous { name });
        }
        let nodes = self.numbering.element().points().unwrap_or_default();
        let table = element.tabulate(&nodes, 0)?;
        let geometry = self.mesh.geometry_element()?.tabulate(&nodes, 1)?;
        let size = block * element.value_size();
        let mut sampled = vec![0.0; self.numbering.n_dofs() * size];
        for cell in 0..cells {
            let mut parts = Vec::with_capacity(block);
            for component in 0..block {
                let dofs = numbering.cell(cell).iter();
                let mut local: Vec<f64> = dofs.map(|dof| values[*dof as usize * block + component]).collect();
                numbering.to_local(cell, &mut local);
                parts.push(local);
            }
            for (node, number) in self.numbering.cell(cell).iter().enumerate() {
                let at = *number as usize * size;
                let value = match element.value_size() {
                    1 => parts.iter().map(|local| combine(&table, node, 0, local)).collect(),
                    _ => self.mapped(cell, node, element, &table, &geometry, &parts[0]),
                };
                sampled[at..at + size].copy_from_slice(&value);
            }
        }
        if let Some(placement) = self.mesh.placement().filter(|placement| placement.axes().len() == size) {
            let vectors = sampled.chunks_exact(size).flat_map(|vector| placement.vector(vector));
            self.point_data.push(Array::new(&name, 3, Numbers::Float64(vectors.collect())));
        } else {
            self.point_data.push(Array::new(&name, size, Numbers::Float64(sampled)));
        }
        Ok(())
    }

    /// The positions in space of the nodes that are written.
    fn points(&self) -> Array {
        let (dim, points) = (self.mesh.shape().dim(), self.numbering.dof_points(self.mesh));
        let Some(placement) = self.mesh.placement() else {
            return Array::new("Points", dim, Numbers::Float64(points));
        };
        let positions = points.chunks_exact(dim).flat_map(|point| placement.position(point));
        Array::new("Points", 3, Numbers::Float64(positions.collect()))
    }

    /// The value at a node of a field whose reference values are vectors.
    fn mapped(
        &self,
        cell: usize,
        node: usize,
        element: &FiniteElement,
        table: &ElementTable,
        geometry: &ElementTable,
        local: &[f64],
    ) -> Vec<f64> {
        let dim = self.mesh.shape().dim();
        let reference: Vec<f64> = (0..dim).map(|c| combine(table, node, c, local)).collect();
        let rows = self.mesh.jacobian_at(cell, geometry, node);
        let jacobian = nalgebra::DMatrix::from_fn(dim, dim, |i, j| rows[i][j]);
        let reference = nalgebra::DVector::from_vec(reference);
        let value = match element.pullback() {
            Pullback::Identity => reference,
            Pullback::ContravariantPiola => &jacobian * reference / jacobian.determinant(),
            // a checked mesh has no singular map
            Pullback::CovariantPiola => match jacobian.try_inverse() {
                Some(inverse) => inverse.transpose() * reference,
                None => reference,
            },
        };
        value.as_slice().to_vec()
    }

    /// Adds one or several numbers for each cell, [cells, components] row-major.
    ///
    /// # Errors
    /// [`VtuError::Length`] if they are not whole rows.
    pub fn cells(&mut self, name: &str, values: &[f64]) -> Result<(), VtuError> {
        let (found, needed) = (values.len(), self.mesh.n_cells());
        if values.is_empty() || !found.is_multiple_of(needed) {
            return Err(VtuError::Length { name: name.to_owned(), found, needed });
        }
        self.cell_data.push(Array::new(name, found / needed, Numbers::Float64(values.to_vec())));
        Ok(())
    }

    /// The content of the file.
    #[must_use]
    pub fn to_bytes(&self, encoding: VtuEncoding) -> Vec<u8> {
        let shape = self.mesh.shape();
        let (number, places) = self.kind;
        let n_cells = self.mesh.n_cells();
        let connectivity = (0..n_cells).flat_map(|cell| {
            let nodes = self.numbering.cell(cell);
            places.iter().map(|place| i64::from(nodes[*place]))
        });
        let offsets = (1..=n_cells).map(|i| (i * places.len()) as i64).collect();
        let topology = [
            Array::new("connectivity", 1, Numbers::Int64(connectivity.collect())),
            Array::new("offsets", 1, Numbers::Int64(offsets)),
            Array::new("types", 1, Numbers::UInt8(vec![number; n_cells])),
        ];
        // from 2.1 on VTK takes curved hexahedra in the order of version 9; others read 1.0 alone
        let version = if shape == CellShape::Hexahedron && self.order > 1 { "2.2" } else { "1.0" };
        let mut file = xml::Writer::new(encoding, version, self.numbering.n_dofs(), n_cells);
        file.section("Points", &[self.points()]);
        file.section("Cells", &topology);
        file.section("PointData", &self.point_data);
        file.section("CellData", &self.cell_data);
        file.finish()
    }
}

/// The tags of the cells: the lowest of each, and membership of each where a cell has several.
fn tag_arrays(tags: &CellTags) -> Vec<Array> {
    let lowest = tags.iter().map(|tags| tags.first().copied().unwrap_or(0));
    let mut arrays = vec![Array::new("tag", 1, Numbers::Int32(lowest.collect()))];
    if tags.iter().any(|tags| tags.len() > 1) {
        for tag in tags.all() {
            let is_in = tags.iter().map(|tags| i32::from(tags.contains(&tag)));
            arrays.push(Array::new(&format!("group_{tag}"), 1, Numbers::Int32(is_in.collect())));
        }
    }
    arrays
}

/// The value of one reference component at a point of the table.
fn combine(table: &ElementTable, point: usize, component: usize, local: &[f64]) -> f64 {
    local.iter().enumerate().map(|(dof, x)| x * table.value(0, point, dof, component)).sum()
}

/// The same as [`NODES`] of other cells: VTK's wedge, its biquadratic-quadratic wedge and its pyramid.
const OTHERS: [(CellShape, usize, u8, &[usize]); 3] = [
    (CellShape::Prism, 1, 13, &[0, 1, 2, 3, 4, 5]),
    (CellShape::Prism, 2, 32, &[0, 1, 2, 3, 4, 5, 6, 9, 7, 12, 14, 13, 8, 10, 11, 15, 17, 16]),
    (CellShape::Pyramid, 1, 14, &[0, 1, 3, 2, 4]),
];

/// VTK's number of the cell with straight sides.
const fn first_order(shape: CellShape) -> u8 {
    match shape {
        CellShape::Interval => 3,
        CellShape::Triangle => 5,
        CellShape::Quadrilateral => 9,
        CellShape::Tetrahedron => 10,
        CellShape::Hexahedron => 12,
        CellShape::Prism => 13,
        CellShape::Pyramid => 14,
    }
}
