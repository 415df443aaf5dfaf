//! The operator actions of Kulkarni & Klöckner 2025: interpreter, C and OpenCL against a reference
//! that shares no code with lowering or code generation.
//!
//! `make test` runs every operator, dimension and both ends of the degrees; `make test-all` runs
//! all 70.

#![allow(clippy::unwrap_used)]

use crate::support::{bent_mesh, compiled, is_long_run, last_degree};
use kingpost::codegen::{Options, generate};
use kingpost::interp::interpret;
use kingpost::ir::Kernel;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError, transform};

/// Sums of at most some hundred products in f64, relative to the size of the result.
const TOLERANCE: f64 = 1e-12;

fn interpreted(problem: &Problem, kernel: &Kernel) -> Vec<f64> {
    let mut memory = problem.memory.clone();
    interpret(kernel, &mut memory).unwrap();
    memory.f64s(problem.output()).unwrap().to_vec()
}

fn on_device(name: &str, problem: &Problem, kernel: &Kernel) -> Vec<f64> {
    let device = open(name).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
    loaded.launch().unwrap();
    loaded.f64s(problem.output()).unwrap()
}

fn check(operator: Operator, dim: usize, degree: usize) {
    let seed = Random::fresh_seed();
    // Low degrees fill more than one work-group of 32 cells and leave the last one in part empty.
    let n = match (dim, degree) {
        (2, 1..=3) => 5,
        (3, 1..=2) => 2,
        _ => 1,
    };
    let problem = Problem::operator(operator, degree, None, bent_mesh(dim, n), seed).unwrap();
    let expected = problem.reference().unwrap();
    assert!(expected.iter().any(|y| y.abs() > 1e-6), "a result of nothing but zeros checks nothing");
    let plain = &problem.lowered.kernel;
    let (mapped, _) = transform(plain, &Mapping::single_cell()).unwrap();
    let results = [
        ("interpreter, as lowered", interpreted(&problem, plain)),
        ("interpreter, single-cell", interpreted(&problem, &mapped)),
        ("c, as lowered", on_device("c", &problem, plain)),
        ("c, single-cell", on_device("c", &problem, &mapped)),
        ("opencl, single-cell", on_device("opencl", &problem, &mapped)),
    ];
    for (how, found) in results {
        assert_eq!(found.len(), expected.len());
        let error = RelativeError::between(&found, &expected);
        println!("{operator} {dim}-D P{degree}, {how}: {:.1e} {:.1e}", error.l2, error.max);
        assert!(error.is_within(TOLERANCE), "{operator} {dim}-D P{degree}, {how}, seed {seed}: {error:?}");
    }
}

/// The degrees of a dimension that run.
fn check_degrees(operator: Operator, dim: usize) {
    let last = last_degree(dim);
    // the loops of high degrees on tetrahedra take compilers and the reference most of the time
    let high = if dim == 2 { last } else { 3 };
    let degrees: Vec<usize> = if is_long_run() { (1..=last).collect() } else { vec![1, high] };
    for degree in degrees {
        check(operator, dim, degree);
    }
}

macro_rules! actions {
    ($($name:ident: $operator:ident, $dim:literal;)*) => { $(
        #[test]
        fn $name() {
            check_degrees(Operator::$operator, $dim);
        }
    )* };
}

actions! {
    mass_on_triangles: Mass, 2;
    mass_on_tetrahedra: Mass, 3;
    helmholtz_on_triangles: Helmholtz, 2;
    helmholtz_on_tetrahedra: Helmholtz, 3;
    laplace_on_triangles: Laplace, 2;
    laplace_on_tetrahedra: Laplace, 3;
    elasticity_on_triangles: Elasticity, 2;
    elasticity_on_tetrahedra: Elasticity, 3;
    hyperelasticity_on_triangles: Hyperelasticity, 2;
    hyperelasticity_on_tetrahedra: Hyperelasticity, 3;
}
