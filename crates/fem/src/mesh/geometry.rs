//! The maps of cells: affine, of first order, or through nodes of any order.

use super::{Curved, Mesh, MeshError};
use crate::element::{ElementFamily, ElementTable, FiniteElement, LagrangeVariant};
use crate::quadrature::{QuadratureScheme, rule};
use rayon::prelude::*;

/// Reference points whose places in every cell are asked for.
pub struct PointMap<'a> {
    mesh: &'a Mesh,
    points: &'a [f64],
    /// None if cells are affine.
    table: Option<ElementTable>,
}

impl PointMap<'_> {
    /// The place of point `point` in `cell`, into an array of length dim.
    pub fn place(&self, cell: usize, point: usize, place: &mut [f64]) {
        let dim = self.mesh.shape.dim();
        match &self.table {
            None => self.mesh.affine_point(cell, &self.points[point * dim..(point + 1) * dim], place),
            Some(table) => {
                place.fill(0.0);
                for (dof, node) in self.mesh.cell_nodes(cell).iter().enumerate() {
                    let value = table.value(0, point, dof, 0);
                    place.iter_mut().zip(self.mesh.node(*node)).for_each(|(x, y)| *x += value * y);
                }
            }
        }
    }
}

impl Mesh {
    /// The same mesh with curved cells: the map of a cell is the Lagrange function with values
    /// `coordinates` at its nodes.
    ///
    /// # Shapes and units
    /// `coordinates` is [nodes, dim] and `cells` is [cells, dofs of `element`], both row-major;
    /// nodes have numbers of their own. The nodes at the corners of a cell must be its vertices.
    ///
    /// # Errors
    /// [`MeshError`] if the element is not a Lagrange element of the cells' shape, a list has an
    /// incomplete row, a node does not exist or is not finite, a corner is not where the vertex is,
    /// or a cell turns inside out.
    pub fn with_nodes(
        mut self,
        element: FiniteElement,
        coordinates: Vec<f64>,
        cells: Vec<u32>,
    ) -> Result<Self, MeshError> {
        let (dim, n) = (self.shape.dim(), element.n_dofs());
        if element.shape() != self.shape || element.points().is_none() || element.is_discontinuous() {
            return Err(MeshError::Geometry { shape: self.shape, element: element.family() });
        }
        if cells.len() != self.n_cells() * n {
            return Err(MeshError::Rows { list: "nodes of cells", length: cells.len(), row: n });
        }
        if !coordinates.len().is_multiple_of(dim) {
            return Err(MeshError::Rows { list: "nodes", length: coordinates.len(), row: dim });
        }
        if let Some(at) = coordinates.iter().position(|x| !x.is_finite()) {
            return Err(MeshError::NotFinite { vertex: at / dim });
        }
        let n_nodes = coordinates.len() / dim;
        if let Some(at) = cells.iter().position(|node| *node as usize >= n_nodes) {
            return Err(MeshError::NoSuchVertex { cell: at / n, vertex: cells[at], n_vertices: n_nodes });
        }
        for (cell, nodes) in cells.chunks_exact(n).enumerate() {
            for (vertex, node) in self.cell(cell).iter().zip(nodes) {
                let at = *node as usize * dim;
                if self.vertex(*vertex) != &coordinates[at..at + dim] {
                    return Err(MeshError::Corner { cell, vertex: *vertex, node: *node });
                }
            }
        }
        self.curved = Some(Curved { element, coordinates, cells });
        self.check_maps()?;
        Ok(self)
    }

    /// The degree of the maps of the cells: 1 if they are straight.
    #[must_use]
    pub fn geometry_degree(&self) -> usize {
        self.curved.as_ref().map_or(1, |curved| curved.element.degree())
    }

    /// Whether the maps of the cells are affine: straight intervals, triangles or tetrahedra.
    #[must_use]
    pub const fn is_affine(&self) -> bool {
        self.shape.is_simplex() && self.curved.is_none()
    }

    /// The element whose functions the maps of the cells are.
    ///
    /// # Errors
    /// None that can occur: a shape has its first-order element.
    pub fn geometry_element(&self) -> Result<FiniteElement, crate::element::ElementError> {
        match &self.curved {
            Some(curved) => Ok(curved.element.clone()),
            None => FiniteElement::new(self.shape, ElementFamily::Lagrange(LagrangeVariant::Equispaced), 1),
        }
    }

    /// The coordinates of the nodes, [nodes, dim] row-major: of the vertices if cells are straight.
    #[must_use]
    pub fn nodes(&self) -> &[f64] {
        self.curved.as_ref().map_or(&self.coordinates, |curved| &curved.coordinates)
    }

    /// The nodes of all cells, `[cells, nodes of the geometry's element]` row-major.
    #[must_use]
    pub fn all_cell_nodes(&self) -> &[u32] {
        self.curved.as_ref().map_or(&*self.cells, |curved| &curved.cells)
    }

    /// The nodes of a cell in the order of the geometry's element: its vertices if cells are
    /// straight; empty if there is no such cell.
    #[must_use]
    pub fn cell_nodes(&self, cell: usize) -> &[u32] {
        let Some(curved) = &self.curved else { return self.cell(cell) };
        let n = curved.element.n_dofs();
        curved.cells.get(cell * n..(cell + 1) * n).unwrap_or(&[])
    }

    fn node(&self, node: u32) -> &[f64] {
        let dim = self.shape.dim();
        self.nodes().get(node as usize * dim..(node as usize + 1) * dim).unwrap_or(&[])
    }

    /// The least and the greatest coordinates of vertices along each axis.
    #[must_use]
    pub fn bounds(&self) -> [Vec<f64>; 2] {
        let dim = self.shape.dim();
        let none = || [vec![f64::INFINITY; dim], vec![f64::NEG_INFINITY; dim]];
        let with = |mut bounds: [Vec<f64>; 2], low: &[f64], high: &[f64]| {
            for axis in 0..dim {
                bounds[0][axis] = bounds[0][axis].min(low[axis]);
                bounds[1][axis] = bounds[1][axis].max(high[axis]);
            }
            bounds
        };
        let points = self.coordinates.par_chunks_exact(dim);
        let of_threads = points.fold(none, |bounds, point| with(bounds, point, point));
        of_threads.reduce(none, |a, b| with(a, &b[0], &b[1]))
    }

    /// Reference points, [points, dim] row-major, to be placed in many cells.
    pub fn point_map<'a>(&'a self, points: &'a [f64]) -> PointMap<'a> {
        PointMap { mesh: self, points, table: self.geometry_table(points, 0) }
    }

    /// None if cells are affine.
    pub(super) fn geometry_table(&self, points: &[f64], order: usize) -> Option<ElementTable> {
        if self.is_affine() {
            return None;
        }
        self.geometry_element().ok()?.tabulate(points, order).ok()
    }

    /// The point of `cell` with reference coordinates `reference`, one for each axis; empty if
    /// there is no such cell.
    #[must_use]
    pub fn point(&self, cell: usize, reference: &[f64]) -> Vec<f64> {
        if cell >= self.n_cells() || reference.len() != self.shape.dim() {
            return Vec::new();
        }
        let mut point = vec![0.0; self.shape.dim()];
        self.point_map(reference).place(cell, 0, &mut point);
        point
    }

    fn affine_point(&self, cell: usize, reference: &[f64], point: &mut [f64]) {
        let Some((origin, others)) = self.cell(cell).split_first() else { return };
        let origin = self.vertex(*origin);
        point.copy_from_slice(origin);
        for (corner, factor) in others.iter().zip(reference) {
            for ((x, start), end) in point.iter_mut().zip(origin).zip(self.vertex(*corner)) {
                *x += factor * (end - start);
            }
        }
    }

    /// The derivative of position by reference coordinates at a point of `cell`, [physical axis,
    /// reference axis] row-major; empty if there is no such cell.
    #[must_use]
    pub fn jacobian(&self, cell: usize, reference: &[f64]) -> Vec<f64> {
        let dim = self.shape.dim();
        let table = self.geometry_element().and_then(|element| element.tabulate(reference, 1));
        match table {
            Ok(table) if cell < self.n_cells() && table.n_points == 1 => {
                let rows = self.jacobian_at(cell, &table, 0);
                rows.iter().take(dim).flat_map(|row| row[..dim].to_vec()).collect()
            }
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// The same at one of the tabulated points.
    pub(crate) fn jacobian_at(&self, cell: usize, table: &ElementTable, point: usize) -> [[f64; 3]; 3] {
        let mut jacobian = [[0.0; 3]; 3];
        for (dof, node) in self.cell_nodes(cell).iter().enumerate() {
            for (row, x) in jacobian.iter_mut().zip(self.node(*node)) {
                for (axis, entry) in row.iter_mut().enumerate().take(self.shape.dim()) {
                    *entry += x * table.value(1 + axis, point, dof, 0);
                }
            }
        }
        jacobian
    }

    /// The determinants of the derivative of a cell's map at the tabulated points.
    pub(super) fn determinants(&self, cell: usize, table: &ElementTable) -> Vec<f64> {
        let at = |point| determinant(self.shape.dim(), &self.jacobian_at(cell, table, point));
        (0..table.n_points).map(at).collect()
    }

    /// The determinant of the derivative of a cell's map, at the centroid of the reference cell if
    /// the map is not affine: its sign is that of the order of the vertices, and it is not 0 in a
    /// checked mesh. Of a simplex with straight sides it is the volume divided by that of the
    /// reference cell. 0 if there is no such cell.
    #[must_use]
    pub fn determinant(&self, cell: usize) -> f64 {
        if !self.is_affine() {
            let table = self.geometry_table(&self.shape.centre(), 1);
            return table.map_or(0.0, |table| self.determinants(cell, &table)[0]);
        }
        let Some((origin, others)) = self.cell(cell).split_first() else { return 0.0 };
        let origin = self.vertex(*origin);
        let mut edges = [[0.0; 3]; 3];
        for (edge, vertex) in edges.iter_mut().zip(others) {
            for ((x, end), start) in edge.iter_mut().zip(self.vertex(*vertex)).zip(origin) {
                *x = end - start;
            }
        }
        determinant(self.shape.dim(), &edges)
    }

    /// The length, area or volume of the mesh.
    #[must_use]
    pub fn volume(&self) -> f64 {
        if self.is_affine() {
            return (0..self.n_cells()).map(|cell| self.determinant(cell).abs()).sum::<f64>()
                * self.shape.volume();
        }
        // the determinant has at most this degree, in each coordinate of a square or cube
        let degree = self.shape.dim() * self.geometry_degree();
        let Ok(rule) = rule(self.shape, degree, QuadratureScheme::Default) else { return f64::NAN };
        let Some(table) = self.geometry_table(&rule.points, 1) else { return f64::NAN };
        let measure = |cell| {
            let determinants = self.determinants(cell, &table);
            determinants.iter().zip(&rule.weights).map(|(d, w)| d.abs() * w).sum::<f64>()
        };
        (0..self.n_cells()).map(measure).sum()
    }
}

/// The determinant of the leading `dim` rows and columns.
fn determinant(dim: usize, m: &[[f64; 3]; 3]) -> f64 {
    let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
    match dim {
        1 => m[0][0],
        2 => m[0][0] * m[1][1] - m[0][1] * m[1][0],
        _ => m[0][0] * minor(1, 2) + m[0][1] * minor(2, 0) + m[0][2] * minor(0, 1),
    }
}
