//! Meshes of squares or cubes whose vertices lie elsewhere, with a coefficient.

use crate::{Dimension, Element, MultigridError};
use kingpost_capacity::check_memory;
use kingpost_fem::quadrature::gauss_lobatto;
use nalgebra::Matrix3;

/// The cells of a unit square or cube with their vertices moved, and a coefficient on them.
///
/// Cells are bilinear or trilinear in the coordinates of the vertices, and so is the coefficient in
/// its values at the corners of a cell; it may jump between cells. Coarser meshes take every second
/// vertex, and of the coefficient the values at the corners of their own cells.
#[derive(Clone, Debug, PartialEq)]
pub struct DeformedMesh {
    dimension: Dimension,
    cells: usize,
    vertices: Vec<f64>,
    coefficient: Vec<f64>,
}

impl DeformedMesh {
    /// A mesh with `cells` cells a side by its vertices, with a coefficient of 1.
    ///
    /// # Shapes and units
    /// `vertices`: [(cells + 1)^d, d], the last axis of the mesh slowest, x first.
    ///
    /// # Errors
    /// No cell, or more than 32-bit indices reach; another number of coordinates; a cell that is
    /// turned inside out somewhere, or that cannot be shown not to be.
    pub fn new(dimension: Dimension, cells: usize, vertices: Vec<f64>) -> Result<Self, MultigridError> {
        check_size(dimension, cells)?;
        let axes = dimension.axes();
        let needed = axes * (cells + 1).pow(axes as u32);
        if vertices.len() != needed {
            return Err(MultigridError::Vertices { found: vertices.len(), needed });
        }
        let coefficient = vec![1.0; (2 * cells).pow(axes as u32)];
        let mesh = Self { dimension, cells, vertices, coefficient };
        (0..mesh.n_cells()).try_for_each(|cell| mesh.check_cell(cell))?;
        Ok(mesh)
    }

    /// The mesh that a map makes of the unit square or cube with `cells` cells a side. In two
    /// dimensions the third coordinate is zero, and what the map makes of it is left out.
    ///
    /// # Errors
    /// As [`DeformedMesh::new`].
    pub fn of_map(
        dimension: Dimension,
        cells: usize,
        map: impl Fn([f64; 3]) -> [f64; 3],
    ) -> Result<Self, MultigridError> {
        check_size(dimension, cells)?;
        let side = cells + 1;
        let axes = dimension.axes();
        let at = |vertex: usize| {
            let along =
                |axis: usize| if axis < axes { (vertex / side.pow(axis as u32) % side) as f64 } else { 0.0 };
            map([0, 1, 2].map(|axis| along(axis) / cells as f64))
        };
        let vertices = (0..side.pow(axes as u32)).flat_map(|v| at(v).into_iter().take(axes)).collect();
        Self::new(dimension, cells, vertices)
    }

    /// The unit square or cube, points moved by `amplitude` times the product of the sines of π
    /// times their coordinates: along (1, -1), in three dimensions along (1, -1/2, 1/2).
    ///
    /// # Errors
    /// As [`DeformedMesh::new`]: an amplitude of 1/4 turns cells of the coarsest mesh inside out.
    pub fn of_sines(dimension: Dimension, cells: usize, amplitude: f64) -> Result<Self, MultigridError> {
        let sine = |x: f64| (std::f64::consts::PI * x).sin();
        let direction = match dimension {
            Dimension::Two => [1.0, -1.0, 0.0],
            Dimension::Three => [1.0, -0.5, 0.5],
        };
        Self::of_map(dimension, cells, |x| {
            let product: f64 = x.iter().take(dimension.axes()).map(|x| sine(*x)).product();
            [0, 1, 2].map(|axis| x[axis] + amplitude * direction[axis] * product)
        })
    }

    /// The same mesh with another coefficient, by its values at the corners of each cell.
    ///
    /// # Shapes and units
    /// [cells^d, 2^d], the last axis slowest in both.
    ///
    /// # Errors
    /// Another number of values; one that is not positive.
    pub fn with_coefficient(self, coefficient: Vec<f64>) -> Result<Self, MultigridError> {
        let needed = self.coefficient.len();
        if coefficient.len() != needed {
            return Err(MultigridError::Coefficients { found: coefficient.len(), needed });
        }
        let corners = 1 << self.dimension.axes();
        let bad = coefficient.iter().position(|value| !is_positive(*value));
        if let Some(at) = bad {
            return Err(MultigridError::Coefficient {
                cell: self.place(at / corners),
                corner: at % corners,
                value: coefficient[at],
            });
        }
        Ok(Self { coefficient, ..self })
    }

    /// The same mesh with a coefficient that alternates between 1 and `jump` in the quadrants or octants.
    ///
    /// # Errors
    /// A `jump` that is not positive.
    pub fn with_jump(self, jump: f64) -> Result<Self, MultigridError> {
        let corners = 1 << self.dimension.axes();
        let of = |cell: usize| {
            let halves: usize = self.place(cell).iter().map(|at| usize::from(2 * at >= self.cells)).sum();
            if halves.is_multiple_of(2) { 1.0 } else { jump }
        };
        let values = (0..self.n_cells()).flat_map(|cell| std::iter::repeat_n(of(cell), corners)).collect();
        self.with_coefficient(values)
    }

    /// The dimension.
    #[must_use]
    pub const fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Cells a side.
    #[must_use]
    pub const fn cells(&self) -> usize {
        self.cells
    }

    /// Coordinates of the vertices, [(cells + 1)^d, d].
    #[must_use]
    pub fn vertices(&self) -> &[f64] {
        &self.vertices
    }

    /// Values of the coefficient, [cells^d, 2^d].
    #[must_use]
    pub fn coefficient(&self) -> &[f64] {
        &self.coefficient
    }

    /// The mesh with half as many cells a side.
    ///
    /// # Errors
    /// A cell of it that is turned inside out.
    pub(crate) fn coarser(&self) -> Result<Self, MultigridError> {
        let axes = self.dimension.axes();
        let cells = self.cells / 2;
        let pick = |side: usize, of_side: usize, scale: usize, at: usize| -> usize {
            let along = |axis: usize| at / side.pow(axis as u32) % side * scale * of_side.pow(axis as u32);
            (0..axes).map(along).sum()
        };
        let vertices = (0..(cells + 1).pow(axes as u32)).flat_map(|vertex| {
            let from = pick(cells + 1, self.cells + 1, 2, vertex);
            self.vertices[axes * from..axes * (from + 1)].iter().copied()
        });
        let corners = 1_usize << axes;
        let coefficient = (0..cells.pow(axes as u32) * corners).map(|at| {
            let first = pick(cells, self.cells, 2, at / corners);
            let child = |axis: usize| ((at % corners) >> axis & 1) * self.cells.pow(axis as u32);
            let child = first + (0..axes).map(child).sum::<usize>();
            self.coefficient[child * corners + at % corners]
        });
        Self::new(self.dimension, cells, vertices.collect())?.with_coefficient(coefficient.collect())
    }

    /// A function at the nodes of elements on the mesh, of their coordinates.
    ///
    /// # Shapes and units
    /// [nodes]; in two dimensions the third coordinate is zero.
    #[must_use]
    pub fn at_nodes(&self, element: Element, function: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        let (k, axes) = (element.degree, self.dimension.axes());
        let nodes = gauss_lobatto(k + 1).0;
        let side = element.nodes_of_side(self.cells);
        let of = |node: usize| {
            let along = |axis: usize| node / side.pow(axis as u32) % side;
            let cell_of = |at: usize| (at / k).min(self.cells - 1);
            let cell = (0..axes).map(|a| cell_of(along(a)) * self.cells.pow(a as u32)).sum();
            let mut point = [0.0; 3];
            for (axis, point) in point.iter_mut().enumerate().take(axes) {
                *point = nodes[along(axis) - k * cell_of(along(axis))];
            }
            function(self.point(cell, point))
        };
        (0..side.pow(axes as u32)).map(of).collect()
    }

    /// Where a point of the unit cell lies.
    fn point(&self, cell: usize, reference: [f64; 3]) -> [f64; 3] {
        let axes = self.dimension.axes();
        let mut point = [0.0; 3];
        for corner in 0..1_usize << axes {
            let near = |a: usize| if corner >> a & 1 == 1 { reference[a] } else { 1.0 - reference[a] };
            let part: f64 = (0..axes).map(near).product();
            let vertex = self.corner(cell, corner);
            (0..3).for_each(|a| point[a] += part * vertex[a]);
        }
        point
    }

    pub(crate) fn n_cells(&self) -> usize {
        self.cells.pow(self.dimension.axes() as u32)
    }

    /// A cell by its place along each axis.
    fn place(&self, cell: usize) -> Vec<usize> {
        (0..self.dimension.axes()).map(|axis| cell / self.cells.pow(axis as u32) % self.cells).collect()
    }

    /// The vertex of a cell whose place along axis `a` is bit `a` of `corner`.
    fn corner(&self, cell: usize, corner: usize) -> [f64; 3] {
        let axes = self.dimension.axes();
        let side = self.cells + 1;
        let along = |a: usize| {
            (cell / self.cells.pow(a as u32) % self.cells + (corner >> a & 1)) * side.pow(a as u32)
        };
        let vertex = (0..axes).map(along).sum::<usize>() * axes;
        let mut point = [0.0; 3];
        point[..axes].copy_from_slice(&self.vertices[vertex..vertex + axes]);
        point
    }

    /// The Jacobian matrix at a point of the unit cell: columns are derivatives along its axes. In
    /// two dimensions the third axis is that of space.
    fn jacobian(&self, cell: usize, reference: [f64; 3]) -> Matrix3<f64> {
        let axes = self.dimension.axes();
        let mut jacobian = Matrix3::zeros();
        if self.dimension == Dimension::Two {
            jacobian[(2, 2)] = 1.0;
        }
        for corner in 0..1_usize << axes {
            let vertex = self.corner(cell, corner);
            for axis in 0..axes {
                let near = |a: usize| if corner >> a & 1 == 1 { reference[a] } else { 1.0 - reference[a] };
                let sign = if corner >> axis & 1 == 1 { 1.0 } else { -1.0 };
                let part: f64 = (0..axes).filter(|a| *a != axis).map(near).product();
                (0..axes).for_each(|row| jacobian[(row, axis)] += sign * part * vertex[row]);
            }
        }
        jacobian
    }

    /// Shows that the determinant of the Jacobian is positive on a cell.
    ///
    /// It is a polynomial of degree 2 along each axis (in two dimensions 1), so that it lies
    /// between the least and the largest of its Bernstein coefficients.
    fn check_cell(&self, cell: usize) -> Result<(), MultigridError> {
        let axes = self.dimension.axes();
        let points = 3_usize.pow(axes as u32);
        let along = |at: usize, axis: usize| at / 3_usize.pow(axis as u32) % 3;
        let at = |at: usize| -> [f64; 3] {
            [0, 1, 2].map(|axis| if axis < axes { 0.5 * along(at, axis) as f64 } else { 0.0 })
        };
        let mut values: Vec<f64> = (0..points).map(|p| self.jacobian(cell, at(p)).determinant()).collect();
        let refused = |determinant: f64| MultigridError::Inverted {
            cells: self.cells,
            cell: self.place(cell),
            determinant,
        };
        let bad = |values: &[f64]| values.iter().copied().find(|value| !is_positive(*value));
        if let Some(found) = bad(&values) {
            return Err(refused(found));
        }
        for axis in 0..axes {
            let step = 3_usize.pow(axis as u32);
            for middle in (0..points).filter(|p| along(*p, axis) == 1) {
                values[middle] = 2.0 * values[middle] - 0.5 * (values[middle - step] + values[middle + step]);
            }
        }
        bad(&values).map_or(Ok(()), |found| Err(refused(found)))
    }
}

/// Whether indices of vertices and corners fit 32 bits.
pub(crate) fn check_size(dimension: Dimension, cells: usize) -> Result<(), MultigridError> {
    let axes = dimension.axes() as u32;
    let vertices = cells.checked_add(1).and_then(|side| side.checked_pow(axes)?.checked_mul(axes as usize));
    let corners = cells.checked_mul(2).and_then(|side| side.checked_pow(axes));
    if cells == 0 {
        return Err(MultigridError::Cells { cells, nearest: 2 });
    }
    match (vertices, corners) {
        (Some(vertices), Some(corners)) if vertices.max(corners) <= i32::MAX as usize => {
            let bytes = 8 * (vertices as u64 + corners as u64);
            Ok(check_memory("the deformed mesh", bytes, "take fewer cells")?)
        }
        _ => Err(MultigridError::MeshSize { cells }),
    }
}

/// Positive, and a number.
fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// What a cell is to the separable operators of the patches that it lies in: the diagonal of
/// κ det J J^-1 J^-T, the mean over the corners, and the bounds of this matrix relative to it.
#[derive(Clone, Copy)]
struct CellMetric {
    mean: [f64; 3],
    low: f64,
    high: f64,
}

impl CellMetric {
    fn of(mesh: &DeformedMesh, cell: usize) -> Self {
        let axes = mesh.dimension.axes();
        let corners = 1_usize << axes;
        let at = |corner: usize| {
            let reference = [0, 1, 2].map(|a| (corner >> a & 1) as f64);
            let jacobian = mesh.jacobian(cell, reference);
            let gram = jacobian.tr_mul(&jacobian);
            let inverse = gram.try_inverse().unwrap_or_else(Matrix3::zeros); // never: check_cell
            inverse * (jacobian.determinant() * mesh.coefficient[cell * corners + corner])
        };
        let metrics: Vec<Matrix3<f64>> = (0..corners).map(at).collect();
        let mean = [0, 1, 2].map(|a| metrics.iter().map(|m| m[(a, a)]).sum::<f64>() / corners as f64);
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for metric in &metrics {
            let scaled = Matrix3::from_fn(|i, j| match (i.max(j) < axes, i == j) {
                (true, _) => metric[(i, j)] / (mean[i] * mean[j]).sqrt(),
                // the mean of the others' diagonals
                (false, same) => f64::from(u8::from(same)),
            });
            for eigenvalue in scaled.symmetric_eigenvalues().iter() {
                low = low.min(*eigenvalue);
                high = high.max(*eigenvalue);
            }
        }
        Self { mean, low: low.max(0.0), high }
    }
}

/// Separable operators that stand for those of patches, and how far they are from them.
pub(crate) struct Surrogate {
    /// What the products with the stiffness matrix along each axis are multiplied with,
    /// [(cells - 1)^d, d].
    pub(crate) factors: Vec<f64>,
    /// Bounds of the eigenvalues of the operators of patches relative to them.
    pub(crate) bounds: [f64; 2],
}

/// The largest eigenvalue that the operator of a patch may have relative to its surrogate: twice as
/// much and the iteration on the patch diverges.
const LARGEST: f64 = 1.5;

impl Surrogate {
    /// Of all patches of a mesh. On axis `a` the factor is the mean of the metric's diagonal over
    /// the cells of the patch. A patch whose operator may be too large for it gets a larger one.
    ///
    /// The integrand of the operator lies between `low` and `high` times that of the surrogate at
    /// each point, and so does the operator. The bounds are those at the corners of cells: where
    /// cells are parallelepipeds and the coefficient is constant on each, they hold everywhere.
    pub(crate) fn of(mesh: &DeformedMesh) -> Self {
        let axes = mesh.dimension.axes();
        let cells: Vec<CellMetric> = (0..mesh.n_cells()).map(|cell| CellMetric::of(mesh, cell)).collect();
        let side = mesh.cells - 1;
        let mut bounds = [f64::INFINITY, 0.0_f64];
        let mut factors = Vec::with_capacity(axes * side.pow(axes as u32));
        for patch in 0..side.pow(axes as u32) {
            let around: Vec<&CellMetric> = (0..1_usize << axes)
                .map(|corner| {
                    let along = |a: usize| {
                        (patch / side.pow(a as u32) % side + (corner >> a & 1)) * mesh.cells.pow(a as u32)
                    };
                    &cells[(0..axes).map(along).sum::<usize>()]
                })
                .collect();
            let mean = |a: usize| around.iter().map(|cell| cell.mean[a]).sum::<f64>() / around.len() as f64;
            let mean: Vec<f64> = (0..axes).map(mean).collect();
            let ratios =
                |cell: &CellMetric| -> Vec<f64> { (0..axes).map(|a| cell.mean[a] / mean[a]).collect() };
            let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
            for cell in around {
                let ratios = ratios(cell);
                low = ratios.iter().fold(low, |low, ratio| low.min(ratio * cell.low));
                high = ratios.iter().fold(high, |high, ratio| high.max(ratio * cell.high));
            }
            let larger = (high / LARGEST).max(1.0);
            factors.extend(mean.iter().map(|mean| mean * larger));
            bounds = [bounds[0].min(low / larger), bounds[1].max(high / larger)];
        }
        Self { factors, bounds }
    }
}
