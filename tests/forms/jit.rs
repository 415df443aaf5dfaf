//! Forms compiled by one call, against the interpreter.
#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost::forms::element::{CellShape, ElementFamily};
use kingpost::forms::form::{
    FunctionSpace, Inputs, avg, coefficient, dS, div, ds, dx, facet_normal, grad, inner, jump, jump_along,
    split, test, trial,
};
use kingpost::forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::ComposedNumbering;
use kingpost::interp::interpret;
use kingpost::tuning::known::Source;
use kingpost::tuning::vectors::HostVectors;
use kingpost::{Random, RelativeError, jit, jit_with};

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
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/fem/tests/data/plate_curved.msh");
    let mesh = Mesh::read_gmsh(file.as_ref()).unwrap();
    let cell = CellShape::Triangle;
    let space = FunctionSpace::scalar(cell, 2);
    let (w, v) = (coefficient("w", &space), test(&space));
    let form = inner(grad(&w), grad(&v)) * dx() - inner(grad(&w), facet_normal(cell)) * &v * ds()
        + 3 * (&w * &v * dx().with_tag(7));
    let options = LoweringOptions::new("form").with_geometry_degree(mesh.geometry_degree());
    agrees_with(&form, &mesh, &space, &options, 3);
}

/// Cells and the facets between them, each with a kernel, add to one result.
#[test]
fn interior_facets_agree_with_the_interpreter() {
    let cell = CellShape::Tetrahedron;
    let space = FunctionSpace::discontinuous(cell, 1);
    let (w, v, n) = (coefficient("w", &space), test(&space), facet_normal(cell));
    let form = inner(grad(&w), grad(&v)) * dx()
        + (9 * jump(&w) * jump(&v) - inner(avg(grad(&w)), jump_along(&v, &n))) * dS();
    agrees_with(&form, &Mesh::unit_cube(2).unwrap(), &space, &LoweringOptions::new("form"), 2);
}

/// The assembled matrix, the matrices of cells and the diagonal against the action.
#[test]
fn matrices_agree_with_actions() {
    let cell = CellShape::Quadrilateral;
    let (mesh, space) = (Mesh::unit(cell, 4).unwrap(), FunctionSpace::vector(cell, 2));
    let form = |w| (inner(&w, test(&space)) + inner(grad(w), grad(test(&space)))) * dx();
    let device = kingpost::runtime::open("c").unwrap();
    let compile = |matrix| {
        let options = LoweringOptions::new("form").with_matrix(matrix);
        jit_with(&form(trial(&space)), &options, &*device).unwrap()
    };
    let matrix = compile(MatrixResult::Sparse).assemble(&mesh, &Inputs::new()).unwrap();
    let n = 2 * ComposedNumbering::of(&mesh, &space.base().0.element().unwrap()).unwrap().n_dofs();
    assert_eq!((matrix.n_rows(), matrix.n_columns), (n, n));
    let x = Random::new(7).numbers(n);
    let action = jit(&form(coefficient("w", &space)), &*device).unwrap();
    let expected = action.apply(&mesh, &Inputs::new().field("w", x.clone())).unwrap();
    // 1e-13: sums of fewer than 200 terms
    assert!(RelativeError::between(&matrix.multiply(&x), &expected).is_within(1e-13));

    let diagonal = compile(MatrixResult::Diagonal).apply(&mesh, &Inputs::new()).unwrap();
    let of_matrix: Vec<f64> =
        (0..n).map(|i| matrix.row(i).filter(|(j, _)| *j == i).map(|(_, a)| a).sum()).collect();
    assert!(RelativeError::between(&diagonal, &of_matrix).is_within(1e-13));

    let cells = compile(MatrixResult::Cells).apply(&mesh, &Inputs::new()).unwrap();
    assert_eq!(cells.len(), mesh.n_cells() * 18 * 18);
    let trace = |list: &[f64]| list.iter().step_by(19).sum::<f64>();
    let sum: f64 = cells.chunks(18 * 18).map(trace).sum();
    assert!((sum - diagonal.iter().sum::<f64>()).abs() < 1e-12 * sum); // 1e-12: a sum of 300 terms
}

/// Functionals are one number; results of another kind are refused with the call that gives them.
#[test]
fn results_have_the_rank_of_the_form() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let device = kingpost::runtime::open("c").unwrap();
    let mesh = Mesh::unit_square(3).unwrap();
    let w = coefficient("w", &space);
    let given = Inputs::new().field("w", vec![2.0; mesh.n_vertices()]);
    let norm = jit(&(&w * &w * dx()), &*device).unwrap();
    let found = norm.apply(&mesh, &given).unwrap();
    assert!(found.len() == 1 && (found[0] - 4.0).abs() < 1e-14, "{found:?}");
    assert_eq!(
        norm.assemble(&mesh, &given).unwrap_err().to_string(),
        "`assemble`: found a functional, needed a bilinear form whose result is `MatrixResult::Sparse`; call \
         `apply`"
    );
    let mass = trial(&space) * test(&space);
    assert_eq!(
        jit(&(&mass * dx()), &*device).unwrap().apply(&mesh, &Inputs::new()).unwrap_err().to_string(),
        "`apply`: found a bilinear form whose result is a sparse matrix, needed a result that is one array; \
         call `assemble`, or ask for `MatrixResult::Cells`"
    );
    let options = LoweringOptions::new("form").with_matrix(MatrixResult::Cells);
    let both = jit_with(&(&mass * dx() + &mass * ds()), &options, &*device).unwrap();
    assert_eq!(
        both.apply(&mesh, &Inputs::new()).unwrap_err().to_string(),
        "`apply`: found matrices of 2 kinds of entities, needed one kind; take the integrals over each as a \
         form of their own"
    );
}

fn agrees(form: &kingpost::forms::form::Form, mesh: &Mesh, space: &FunctionSpace) {
    agrees_with(form, mesh, space, &LoweringOptions::new("form"), 1);
}

fn agrees_with(
    form: &kingpost::forms::form::Form,
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
    let device = kingpost::runtime::open("c").unwrap();
    let found = jit_with(form, options, &*device).unwrap().apply(mesh, &inputs).unwrap();
    assert_eq!(found.len(), n);
    // 1e-13: the same sums, of fewer than 100 terms, in another order
    assert!(RelativeError::between(&found, &expected).is_within(1e-13));
}

#[test]
fn wrong_inputs_are_refused() {
    let space = FunctionSpace::of(CellShape::Triangle, ElementFamily::NedelecFirst, 1);
    let form = inner(coefficient("w", &space), test(&space)) * dx();
    let device = kingpost::runtime::open("c").unwrap();
    let (form, mesh) = (jit(&form, &*device).unwrap(), Mesh::unit_square(1).unwrap());
    let chosen = &form.kernels()[0].mapping;
    assert_eq!(
        (&chosen.mapping, &chosen.source),
        (&HostVectors::of(device.info()).tiles().with_modes(), &Source::Modes)
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
