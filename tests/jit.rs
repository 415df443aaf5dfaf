//! Forms compiled by one call, against the interpreter.
#![allow(clippy::unwrap_used)] // what a failed test does

use purlin::forms::element::{CellShape, ElementFamily};
use purlin::forms::form::{
    FunctionSpace, Inputs, coefficient, div, ds, dx, facet_normal, grad, inner, split, test,
};
use purlin::forms::lowering::{LoweringOptions, MeshForm};
use purlin::forms::mesh::Mesh;
use purlin::forms::numbering::ComposedNumbering;
use purlin::interp::interpret;
use purlin::tuning::known::Source;
use purlin::{Mapping, Random, RelativeError, jit, jit_with};

/// Mixed Poisson with Raviart–Thomas elements, with states of degrees of freedom.
#[test]
fn a_mixed_form_agrees_with_the_interpreter() {
    let cell = CellShape::Triangle;
    let flux = FunctionSpace::of(cell, ElementFamily::RaviartThomas, 2);
    let space = FunctionSpace::mixed(cell, [flux, FunctionSpace::discontinuous(cell, 1)]);
    let (w, z) = (split(&coefficient("w", &space)), split(&test(&space)));
    let form = (inner(&w[0], &z[0]) - &w[1] * div(&z[0]) + 2 * div(&w[0]) * &z[1]) * dx();
    agrees(&form, &Mesh::unit_square(5).unwrap(), &space);
}

#[test]
fn squares_agree_with_the_interpreter() {
    let space = FunctionSpace::scalar(CellShape::Quadrilateral, 3);
    let form = inner(grad(coefficient("w", &space)), grad(test(&space))) * dx();
    agrees(&form, &Mesh::unit(CellShape::Quadrilateral, 5).unwrap(), &space);
}

/// Cells, the boundary and a part of it, each with a kernel, add to one result.
#[test]
fn a_boundary_term_agrees_with_the_interpreter() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/forms/tests/data/plate_curved.msh");
    let mesh = Mesh::read_gmsh(file.as_ref()).unwrap();
    let cell = CellShape::Triangle;
    let space = FunctionSpace::scalar(cell, 2);
    let (w, v) = (coefficient("w", &space), test(&space));
    let form = inner(grad(&w), grad(&v)) * dx() - inner(grad(&w), facet_normal(cell)) * &v * ds()
        + 3 * (&w * &v * dx().with_tag(7));
    let options = LoweringOptions::new("form").with_geometry_degree(mesh.geometry_degree());
    agrees_with(&form, &mesh, &space, &options, 3);
}

fn agrees(form: &purlin::forms::form::Form, mesh: &Mesh, space: &FunctionSpace) {
    agrees_with(form, mesh, space, &LoweringOptions::new("form"), 1);
}

fn agrees_with(
    form: &purlin::forms::form::Form,
    mesh: &Mesh,
    space: &FunctionSpace,
    options: &LoweringOptions,
    kernels: usize,
) {
    let n = ComposedNumbering::of(mesh, &space.element().unwrap()).unwrap().n_dofs();
    let inputs = Inputs::new().field("w", Random::new(5).numbers(n));
    let lowered = MeshForm::new(form, options).unwrap();
    assert_eq!(lowered.kernels().len(), kernels);
    let mut expected = vec![0.0; n];
    for (place, kernel) in lowered.kernels().iter().enumerate() {
        let mut memory = lowered.bind(place, mesh, &inputs).unwrap();
        interpret(&kernel.kernel, &mut memory).unwrap();
        expected.iter_mut().zip(memory.f64s("y").unwrap()).for_each(|(sum, y)| *sum += y);
    }
    let device = purlin::runtime::open("c").unwrap();
    let found = jit_with(form, options, &*device).unwrap().apply(mesh, &inputs).unwrap();
    assert_eq!(found.len(), n);
    // 1e-13: the same sums, of fewer than 100 terms, in another order
    assert!(RelativeError::between(&found, &expected).is_within(1e-13));
}

#[test]
fn wrong_inputs_are_refused() {
    let space = FunctionSpace::of(CellShape::Triangle, ElementFamily::NedelecFirst, 1);
    let form = inner(coefficient("w", &space), test(&space)) * dx();
    let device = purlin::runtime::open("c").unwrap();
    let (form, mesh) = (jit(&form, &*device).unwrap(), Mesh::unit_square(1).unwrap());
    let chosen = &form.kernels()[0].mapping;
    assert_eq!(
        (&chosen.mapping, &chosen.source),
        (&Mapping::PointTiles { cells: 8, sums: 16 }, &Source::Lanes)
    );
    let message = |inputs: Inputs| form.apply(&mesh, &inputs).unwrap_err().to_string();
    assert_eq!(message(Inputs::new()), "no value for `w`, needed 5 degrees of freedom");
    let long = message(Inputs::new().field("w", vec![0.0; 6]));
    assert_eq!(long, "`w` has 6 values, needed 5 degrees of freedom");
    let unknown = message(Inputs::new().field("w", vec![0.0; 5]).constant("k", vec![1.0]));
    assert_eq!(
        unknown,
        "a value is given for `k`, a name that the form does not have; the form has coefficients `w` and constants none"
    );
}
