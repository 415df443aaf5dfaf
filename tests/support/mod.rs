//! What several integration tests share: cases, meshes, seeds.

#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::panic)]

use kingpost::codegen::Program;
use kingpost::forms::mesh::Mesh;
use kingpost::kernels::Operator;
use kingpost::runtime::{Backend, Device, Executable, Optimisation, open};

pub use kingpost_sample::{is_long_run, of_run};

/// The C device, and an OpenCL device and a card where there are.
pub fn devices() -> Vec<Box<dyn Device>> {
    let others = ["opencl", "cuda"].map(|name| open(name).map_err(|e| println!("skipped: {e}")).ok());
    std::iter::once(open("c").unwrap()).chain(others.into_iter().flatten()).collect()
}

/// `program` for a device. An OpenCL compiler on the CPU takes most of such a test's time, half of
/// it to optimise: it does so in `make test-all`, and everywhere in the random recipes.
pub fn compiled(device: &dyn Device, program: &Program) -> Executable {
    let is_fast = device.info().backend == Backend::OpenCl && !is_long_run();
    let optimisation = if is_fast { Optimisation::Off } else { Optimisation::Full };
    device.compile_as(program, optimisation).unwrap_or_else(|e| panic!("{e}\n{}", program.source))
}

/// The highest degree of the cases of Kulkarni & Klöckner 2025.
pub fn last_degree(dim: usize) -> usize {
    if dim == 2 { 8 } else { 6 }
}

/// The 70 operator actions of Kulkarni & Klöckner 2025: operator, dimension, degree.
pub fn cases() -> Vec<(Operator, usize, usize)> {
    let degrees = |dim| (1..=last_degree(dim)).map(move |p| (dim, p));
    let of = |operator| [2, 3].into_iter().flat_map(degrees).map(move |(dim, p)| (operator, dim, p));
    Operator::ALL.into_iter().flat_map(of).collect()
}

/// The unit square or cube with `n` divisions a side, bent so that no two cells are alike.
pub fn bent_mesh(dim: usize, n: usize) -> Mesh {
    let mesh = if dim == 2 { Mesh::unit_square(n) } else { Mesh::unit_cube(n) }.unwrap();
    let bend = |x: &[f64]| {
        let sum: f64 = x.iter().sum();
        x.iter().enumerate().map(|(i, v)| v + 0.1 * (sum + i as f64).sin()).collect::<Vec<_>>()
    };
    let coordinates = mesh.coordinates().chunks(dim).flat_map(bend).collect();
    Mesh::new(mesh.shape(), coordinates, mesh.cells().to_vec(), None).unwrap()
}
