//! A variational form becomes a kernel, which is run on a mesh and checked against the reference.

use kingpost::forms::element::CellShape;
use kingpost::forms::form::{FunctionSpace, coefficient, dx, grad, inner, test};
use kingpost::forms::mesh::Mesh;
use kingpost::prelude::*;

/// Runs the example; a test does, too.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, k, v) = (coefficient("u", &space), coefficient("k", &space), test(&space));
    let diffusion = k * inner(grad(u), grad(v)) * dx();

    let mesh = Mesh::unit_square(16)?;
    let problem = Problem::new("diffusion", &diffusion, None, mesh, Random::fresh_seed())?;
    let (kernel, recipe) = transform(&problem.lowered.kernel, &Mapping::single_cell())?;
    println!("{}\n{recipe}\n{kernel}", problem.lowered.kernel);

    let device = open("c")?;
    let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
    let loaded = Loaded::new(&*device, &program, &problem.memory)?;
    loaded.launch()?;
    let error = problem.relative_error(&loaded.f64s(problem.output())?)?;
    println!("relative error {:.1e}", error.max);
    if error.is_within(1e-12) { Ok(()) } else { Err("the result is wrong".into()) }
}
