//! Forms on meshes of all shapes, interpreted.
#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost_fem::element::CellShape::{self, Hexahedron, Quadrilateral, Tetrahedron, Triangle};
use kingpost_fem::mesh::Mesh;
use kingpost_forms::form::{Form, Inputs};
use kingpost_forms::lowering::{LoweringOptions, MeshForm};
use kingpost_interp::interpret;

/// The unit mesh with its inner vertices moved, all vertices renumbered, and the cells of simplices
/// turned, also to the other orientation.
pub fn mesh(shape: CellShape) -> Mesh {
    let unit = match shape {
        Triangle => Mesh::unit_square(2),
        Tetrahedron => Mesh::unit_cube(2),
        CellShape::Interval | Quadrilateral | Hexahedron | CellShape::Prism | CellShape::Pyramid => {
            Mesh::unit(shape, 2)
        }
    }
    .unwrap();
    let (dim, n) = (shape.dim(), unit.n_vertices());
    // pyramids are half as high as cubes
    let (step, size) = if shape == CellShape::Pyramid { (11, 0.3) } else { (7, 1.0) };
    let renumber = |v: usize| (v * step + 3) % n; // 7 divides neither 9 nor 27, 11 does not divide 35
    let mut coordinates = vec![0.0; n * dim];
    for v in 0..n {
        let x = unit.vertex(v as u32);
        let is_inner = x.iter().all(|x| 0.0 < *x && *x < 1.0);
        for (axis, x) in x.iter().enumerate() {
            let shift = if is_inner { size * (0.07 + 0.05 * axis as f64) } else { 0.0 };
            coordinates[renumber(v) * dim + axis] = x + shift;
        }
    }
    let mut cells = Vec::new();
    for cell in 0..unit.n_cells() {
        let mut corners: Vec<u32> = unit.cell(cell).iter().map(|v| renumber(*v as usize) as u32).collect();
        if shape.is_simplex() {
            corners.rotate_left(cell % (dim + 1));
            if cell % 3 == 1 {
                corners.swap(0, 1);
            }
        }
        cells.extend(corners);
    }
    Mesh::new(shape, coordinates, cells, None).unwrap()
}

/// Numbers in [-1, 1) that differ from each other.
pub fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| 2.0 * (0.37 + i as f64 * 0.618_033_988_75).fract() - 1.0).collect()
}

/// The result of a form by the interpreter.
pub fn interpreted(form: &Form, mesh: &Mesh, inputs: &Inputs) -> Vec<f64> {
    let options = LoweringOptions::new("spaces").with_geometry_degree(mesh.geometry_degree());
    let form = MeshForm::new(form, &options).unwrap();
    let mut sum = Vec::new();
    for (place, kernel) in form.kernels().iter().enumerate() {
        let mut memory = form.bind(place, mesh, inputs).unwrap();
        interpret(&kernel.kernel, &mut memory).unwrap();
        let part = memory.f64s("y").unwrap();
        sum.resize(part.len(), 0.0);
        sum.iter_mut().zip(part).for_each(|(sum, y)| *sum += y);
    }
    sum
}
