//! Matrix instructions on degrees of freedom combined in orbits: what the kernels compute, how many
//! instructions they have, how much memory they take.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

mod support;

use purlin::codegen::{Options, Target, generate};
use purlin::forms::program::CellKernel;
use purlin::forms::strategies::matrix_orbit_sizes;
use purlin::interp::interpret;
use purlin::kernels::Operator;
use purlin::runtime::open;
use purlin::tuning::transform;
use purlin::{Loaded, Mapping, Problem, Random, RelativeError};
use support::{bent_mesh, compiled};

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

fn matrix(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    Mapping::MatrixCells { sub_groups, groups, kept_tables, overlapped: false }.with_orbits()
}

/// Fewer cells than a block, full blocks and a rest, several blocks a group; orbits that tiles divide
/// (3-D P6 has 24) and do not.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    for (operator, dim, degree, divisions, mapping) in [
        (Operator::Mass, 3, 4, 1, matrix(1, 2, 99)),
        (Operator::Laplace, 3, 3, 2, matrix(2, 1, 3)),
        (Operator::Helmholtz, 2, 4, 3, matrix(1, 2, 99)),
    ] {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let symmetric = mapping.ruled(&problem.lowered).unwrap().unwrap();
        assert_eq!(recipe.apply(&symmetric.kernel).unwrap(), kernel);
        let check = |found: &[f64], place: &str| {
            let error = RelativeError::between(found, &expected);
            let name = format!("{operator} {dim}-D P{degree}, {mapping}, in {place}, seed {seed}");
            assert!(error.is_within(1e-12), "{name}: {error:?}");
        };
        let mut memory = problem.memory.clone();
        interpret(&kernel, &mut memory).unwrap();
        check(memory.f64s(problem.output()).unwrap(), "the interpreter");
        for place in ["c", "opencl"] {
            let device = open(place).unwrap();
            let target = device.info().backend.target();
            let program = generate(&kernel, target, &Options::default()).unwrap();
            let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
            loaded.launch().unwrap();
            check(&loaded.f64s(problem.output()).unwrap(), place);
        }
    }
}

/// Each direction multiplies one combination a block of modes: a quarter of the instructions but for
/// the tiles. Nobody exchanges values, and only the tables are waited for by a whole group.
#[test]
fn blocks_of_zeros_are_left_out() {
    let problem = problem(Operator::Laplace, 3, 3, 1, 1);
    let (kernel, _) = transform(&problem.lowered, &matrix(4, 8, 99)).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    assert_eq!(cuda.source.matches("mma.sync.aligned.m16n8k8").count(), 4 * 3 * 2);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    let (blocks, _) = cuda.source.split_once("_tail").unwrap();
    assert_eq!(blocks.matches("__syncthreads").count(), 1, "{blocks}");
}

/// What the sizes say is what the kernel takes, with all tables and with fewer.
#[test]
fn sizes_are_those_of_the_kernel() {
    for (operator, dim, degree) in [(Operator::Laplace, 2, 4), (Operator::Mass, 3, 4)] {
        let form = problem(operator, dim, degree, 1, 1).lowered;
        let (symmetric, orbits) = form.symmetric().unwrap();
        let sizes = matrix_orbit_sizes(&symmetric.kernel, &symmetric.program, &orbits).unwrap();
        let bytes = |kept| {
            let (kernel, _) = transform(&form, &matrix(4, 8, kept)).unwrap();
            generate(&kernel, Target::Cuda, &Options::default()).unwrap().plan.local_bytes
        };
        for kept in [0, 2] {
            let needed = bytes(kept);
            // the last row of an array has no room behind it
            assert_eq!(
                sizes.tables_that_fit(4, false, needed + 200),
                Some(kept),
                "{operator}, {needed}, {sizes:?}"
            );
        }
        assert_eq!(sizes.tables_that_fit(4, false, 1000), None);
    }
}
