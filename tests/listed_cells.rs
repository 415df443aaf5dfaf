//! Degrees of freedom of a group listed once: what the kernels compute, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

mod support;

use purlin::codegen::{Options, generate};
use purlin::interp::interpret;
use purlin::kernels::Operator;
use purlin::runtime::open;
use purlin::tuning::transform;
use purlin::{Loaded, Mapping, Problem, Random, RelativeError, SetUpError, definitions, laid_out, set_up};
use support::{bent_mesh, compiled};

fn listed(cells: u64, items: u64) -> Mapping {
    Mapping::ListedCells { cells, items }
}

fn problem(operator: Operator, dim: usize, degree: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, 2), seed).unwrap()
}

/// In the interpreter, in C and in OpenCL, for cells that do not fill the last group: scalars,
/// vectors, two functions through one map, modes and orbits.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    for (operator, dim, degree, mapping) in [
        (Operator::Mass, 2, 1, listed(5, 15)),
        (Operator::Mass, 3, 2, listed(7, 70).with_modes()),
        (Operator::Laplace, 2, 3, listed(3, 30).with_orbits()),
        (Operator::Helmholtz, 3, 2, listed(5, 50).with_orbits()),
        (Operator::Elasticity, 3, 1, listed(6, 24)),
        (Operator::Elasticity, 2, 2, listed(5, 30).with_orbits()),
        (Operator::Hyperelasticity, 2, 2, listed(4, 24)),
    ] {
        let problem = problem(operator, dim, degree, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let definitions = definitions(&problem.lowered, &mapping, &recipe).unwrap();
        assert_eq!(definitions.len(), 1, "{definitions:?}");
        for place in ["c", "opencl"] {
            let check = |found: &[f64], place: &str| {
                let error = RelativeError::between(found, &expected);
                assert!(
                    error.is_within(1e-12),
                    "{operator} {dim}-D P{degree} in {place}, seed {seed}: {error:?}"
                );
            };
            let device = open(place).unwrap();
            let mut memory = problem.memory.clone();
            let setup = set_up(&*device, &definitions, &mut memory).unwrap();
            assert_eq!(setup.inputs, 3);
            let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
            let code = compiled(&*device, &program);
            let loaded = Loaded::compiled(&*device, code, &laid_out(&kernel, &memory)).unwrap();
            loaded.launch().unwrap();
            check(&loaded.f64s(problem.output()).unwrap(), place);
            interpret(&kernel, &mut memory).unwrap();
            check(memory.f64s(problem.output()).unwrap(), "the interpreter");
        }
    }
}

#[test]
fn lists_that_are_too_short_are_refused_with_the_block() {
    let problem = problem(Operator::Laplace, 2, 2, 1);
    let (_, recipe) = transform(&problem.lowered, &listed(4, 7)).unwrap();
    let definitions = definitions(&problem.lowered, &listed(4, 7), &recipe).unwrap();
    let error = set_up(&*open("c").unwrap(), &definitions, &mut problem.memory.clone()).unwrap_err();
    assert!(matches!(error, SetUpError::Overflow(_)));
    assert!(error.to_string().starts_with("block 0 of `dofs` has "), "{error}");
}

#[test]
fn groups_of_none_are_refused() {
    let problem = problem(Operator::Mass, 2, 1, 1);
    let refused = transform(&problem.lowered, &listed(0, 7)).unwrap_err().to_string();
    assert!(refused.contains("needed 1 to 1024"), "{refused}");
}
