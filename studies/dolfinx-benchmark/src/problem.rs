//! The mesh, its numbering, and the forms.

use crate::error::BenchmarkError;
use kingpost::Random;
use kingpost::forms::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use kingpost::forms::form::{
    Form, FunctionSpace, Measure, action, coefficient, dx, grad, inner, test, trial,
};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::tabulated::Precision;
use kingpost::interp::{Memory, Value};
use kingpost::solve::{Partition, SharedPart, SolveError, facet_dofs};
use rayon::prelude::*;
use std::ops::Range;

/// The coefficient of the benchmark.
const KAPPA: f64 = 2.0;
/// The seed of the benchmark's perturbation.
const SEED: u64 = 42;
/// Sizes along an axis that are tried on either side of the nearest one.
const NEAR: usize = 5;

/// What is discretised, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discretisation {
    /// Cells along each axis.
    pub cells: [usize; 3],
    /// Polynomial degree of the elements.
    pub degree: usize,
    /// Points along an axis beyond those of the nodes.
    pub qmode: usize,
    /// Whether points are Gauss's instead of Gauss–Lobatto's.
    pub use_gauss: bool,
    /// By how much points of the mesh move along the first axis, in units of a cell.
    pub perturbation: f64,
    /// Type of all numbers.
    pub precision: Precision,
}

/// Cells along each axis for about `n_dofs` degrees of freedom, as the benchmark chooses them.
#[must_use]
pub fn cells_for(n_dofs: usize, degree: usize) -> [usize; 3] {
    let misfit = |cells: [usize; 3]| {
        let dofs: u128 = cells.iter().map(|n| (n * degree + 1) as u128).product();
        dofs.abs_diff(n_dofs as u128)
    };
    let nearest = ((n_dofs as f64).powf(1.0 / 3.0) - 1.0) / degree as f64 + 0.5;
    let nearest = (nearest as usize).max(1);
    let along = nearest.saturating_sub(NEAR).max(1)..=nearest + NEAR;
    let mut best = [nearest; 3];
    let pairs = along.clone().flat_map(|x| along.clone().map(move |y| [x, y]));
    for cells in pairs.flat_map(|[x, y]| along.clone().map(move |z| [x, y, z])) {
        // of several that fit alike, the first
        if misfit(cells) < misfit(best) {
            best = cells;
        }
    }
    best
}

impl Discretisation {
    fn space(&self) -> FunctionSpace {
        let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
        FunctionSpace::of(CellShape::Hexahedron, family, self.degree)
    }

    /// `degree + 1 + qmode` points along an axis.
    fn measure(&self) -> Measure {
        let points = self.degree + 1 + self.qmode;
        match self.use_gauss {
            true => dx().with_degree(2 * points - 1),
            false => dx().with_degree(2 * points - 3).with_scheme(QuadratureScheme::GaussLobatto),
        }
    }

    /// The bilinear form.
    #[must_use]
    pub fn stiffness(&self) -> Form {
        let (u, v) = (trial(&self.space()), test(&self.space()));
        KAPPA * inner(grad(u), grad(v)) * self.measure()
    }

    /// Its action on the coefficient `u`.
    #[must_use]
    pub fn stiffness_action(&self) -> Form {
        action(self.stiffness(), coefficient("u", &self.space()))
    }

    /// The right-hand side of the coefficient `u`.
    #[must_use]
    pub fn load(&self) -> Form {
        inner(coefficient("u", &self.space()), test(&self.space())) * self.measure()
    }

    /// The mesh with its numbering.
    ///
    /// # Errors
    /// Too many cells, cells that the perturbation turns inside out.
    pub fn problem(self) -> Result<Problem, BenchmarkError> {
        let mesh = self.mesh()?;
        let element = FiniteElement::new(
            CellShape::Hexahedron,
            ElementFamily::Lagrange(LagrangeVariant::GllWarped),
            self.degree,
        )?;
        let numbering = Numbering::of(&mesh, &element)?;
        let boundary = facet_dofs(&mesh, &numbering, &mesh.boundary(), &|_| true);
        let n = numbering.n_dofs();
        let mut places = vec![0; n];
        boundary.iter().for_each(|dof| places[*dof as usize] = -1);
        let (mut free, mut fixed) = (0, (n - boundary.len()) as i32);
        for place in &mut places {
            let next = if *place < 0 { &mut fixed } else { &mut free };
            *place = *next;
            *next += 1;
        }
        Ok(Problem { discretisation: self, mesh, numbering, places, free: free as usize })
    }

    /// The unit cube in boxes, the first axis fastest. The benchmark draws its perturbation in the order in which
    /// DOLFINx stores points, which is no part of the problem: with one, norms are those of another mesh.
    fn mesh(&self) -> Result<Mesh, BenchmarkError> {
        let points = self.cells.map(|n| n + 1);
        let place = |number: usize, along: [usize; 3]| {
            [number % along[0], number / along[0] % along[1], number / (along[0] * along[1])]
        };
        let mut random = Random::new(SEED);
        let width = self.perturbation / self.cells[0] as f64;
        let mut coordinates = Vec::with_capacity(3 * points.iter().product::<usize>());
        for number in 0..points.iter().product() {
            let at = place(number, points);
            let mut x = [0, 1, 2].map(|axis| at[axis] as f64 / self.cells[axis] as f64);
            x[0] += width * random.number();
            coordinates.extend(x.map(|x| self.rounded(x)));
        }
        let corner = |cell: [usize; 3], corner: usize| {
            let at = [0, 1, 2].map(|axis| cell[axis] + (corner >> axis & 1));
            (at[0] + points[0] * (at[1] + points[1] * at[2])) as u32
        };
        let cells = (0..self.cells.iter().product()).map(|cell| place(cell, self.cells));
        let cells = cells.flat_map(|cell| (0..8).map(move |k| corner(cell, k))).collect();
        Ok(Mesh::new(CellShape::Hexahedron, coordinates, cells, None)?)
    }

    /// A number in the precision of the problem.
    fn rounded(&self, x: f64) -> f64 {
        if self.is_single() { f64::from(x as f32) } else { x }
    }

    /// Whether numbers are in single precision.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.precision == Precision::F32
    }
}

/// A mesh with its numbering, those on the boundary behind the others.
pub struct Problem {
    /// What it is of.
    pub discretisation: Discretisation,
    /// The mesh.
    pub mesh: Mesh,
    numbering: Numbering,
    /// Where each number of the numbering stands in vectors.
    places: Vec<i32>,
    /// Degrees of freedom that are not on the boundary.
    pub free: usize,
}

impl Problem {
    /// Number of degrees of freedom.
    #[must_use]
    pub fn n_dofs(&self) -> usize {
        self.places.len()
    }

    /// Where each number of the mesh's own numbering stands in vectors.
    #[must_use]
    pub fn places(&self) -> &[i32] {
        &self.places
    }

    /// The cells in parts, across the longest sides.
    ///
    /// # Errors
    /// More parts than cells.
    pub fn parts(&self, parts: usize) -> Result<Vec<SharedPart>, SolveError> {
        let Self { mesh, numbering, places, free, .. } = self;
        let map: Vec<i32> = numbering.dofs().par_iter().map(|dof| places[*dof as usize]).collect();
        let part_of = match parts {
            1 => vec![0; mesh.n_cells()],
            _ => {
                let centre = |vertices: &[u32]| {
                    let sum = |axis: usize| {
                        vertices.iter().map(|v| mesh.coordinates()[3 * *v as usize + axis]).sum::<f64>()
                    };
                    [0, 1, 2].map(sum)
                };
                let centres: Vec<[f64; 3]> = mesh.cells().par_chunks_exact(8).map(centre).collect();
                let division = Partition::bisect(centres.as_flattened(), 3, parts)?;
                (0..mesh.n_cells()).map(|cell| division.owner(cell as i32) as u32).collect()
            }
        };
        SharedPart::all((&map, numbering.dofs_per_cell()), (self.n_dofs(), *free), &part_of, parts)
    }

    /// The arguments of the action of a form on some cells of a part in double precision, but for what it is
    /// applied to and its result.
    #[must_use]
    pub fn memory(&self, part: &SharedPart, cells: Range<usize>) -> Memory {
        let Self { mesh, numbering, .. } = self;
        let width = numbering.dofs_per_cell();
        let of_cell = |cell: &u32| &mesh.cells()[8 * *cell as usize..][..8];
        let vertices = part.cells[cells.clone()].par_iter().flat_map_iter(of_cell);
        Memory::new()
            .param("n_cells", cells.len() as i64)
            .param("n_vertices", mesh.n_vertices() as i64)
            .param("n_dofs", part.dofs.len() as i64)
            .value("coords", mesh.coordinates().to_vec())
            .value("cell_vertices", Value::I32(vertices.map(|vertex| *vertex as i32).collect()))
            .value("dofs", Value::I32(part.map[width * cells.start..width * cells.end].to_vec()))
    }

    /// The source of the benchmark at the degrees of freedom.
    #[must_use]
    pub fn source(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.n_dofs()];
        let points = self.numbering.dof_points(&self.mesh);
        for (place, point) in self.places.iter().zip(points.chunks_exact(3)) {
            let squares: f64 = point[..2].iter().map(|x| (x - 0.5) * (x - 0.5)).sum();
            values[*place as usize] = 1000.0 * (-squares / 0.02).exp();
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::cells_for;

    /// Of the benchmark's own examples: 3468, 710505627 and 148022664 cells.
    #[test]
    fn sizes_are_those_of_the_benchmark() {
        let sizes = |n_dofs: usize, degree: usize| {
            let cells = cells_for(n_dofs, degree);
            let dofs: usize = cells.iter().map(|n| n * degree + 1).product();
            (cells.iter().product::<usize>(), dofs)
        };
        assert_eq!(sizes(1000, 3), (27, 1000));
        assert_eq!(sizes(100_000, 3), (3468, 100_048));
        assert_eq!(sizes(64 * 300_000_000, 3), (710_505_627, 19_205_158_720));
        assert_eq!(sizes(64 * 500_000_000, 6), (148_022_664, 32_003_126_875));
        assert_eq!(cells_for(1, 3), [1; 3]);
    }
}
