//! Matrix instructions on degrees of freedom combined in orbits: what the kernels compute, how many
//! instructions they have, how much memory they take.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::relowered;
use kingpost::forms::strategies::{MatrixCells, matrix_orbit_sizes};
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError};

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

fn matrix(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    Mapping::from(MatrixCells::new(sub_groups, groups, kept_tables)).with_orbits()
}

/// The same with copies of the next block under way.
fn overlapped(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    Mapping::from(MatrixCells { overlapped: true, ..MatrixCells::new(sub_groups, groups, kept_tables) })
        .with_orbits()
}

/// Fewer cells than a block, full blocks and a rest, several blocks a group; orbits that tiles
/// divide (3-D P6 has 24) and do not.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    for (operator, dim, degree, divisions, mapping) in [
        (Operator::Mass, 3, 4, 1, matrix(1, 2, 99)),
        (Operator::Laplace, 3, 3, 2, matrix(2, 1, 3)),
        (Operator::Helmholtz, 2, 4, 3, matrix(1, 2, 99)),
        (Operator::Laplace, 3, 2, 2, overlapped(1, 1, 3)),
    ] {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        // half of them with degrees of freedom of entities separately
        let parts = problem.lowered.entity_parts().filter(|_| degree % 2 == 0 && divisions > 1);
        let mapping = parts.and_then(|parts| mapping.with_parts(&parts)).unwrap_or(mapping);
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let symmetric = relowered(&problem.lowered, &recipe.lowering).unwrap().unwrap();
        assert_eq!(recipe.apply(symmetric.kernel()).unwrap(), kernel);
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

/// Each direction multiplies one combination a block of modes: a quarter of the instructions but
/// for the tiles. Nobody exchanges values, and only the tables are waited for by a whole group.
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

/// Copies of the next block are under way from when combinations are in registers on, and are
/// waited for once a block.
#[test]
fn copies_go_on_while_products_are_computed() {
    let problem = problem(Operator::Laplace, 2, 4, 1, 1);
    let (kernel, _) = transform(&problem.lowered, &overlapped(2, 8, 99)).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
    let (blocks, _) = cuda.split_once("_tail").unwrap();
    let waits: Vec<usize> = blocks.match_indices("cp.async.wait_group").map(|(at, _)| at).collect();
    let copies: Vec<usize> = blocks.match_indices("cp.async.ca").map(|(at, _)| at).collect();
    let products: Vec<usize> = blocks.match_indices("mma.sync").map(|(at, _)| at).collect();
    let [first, last] = waits[..] else { panic!("{} waits in\n{blocks}", waits.len()) };
    // 16 cells of 15 degrees of freedom and three vertices, by 32 work-items, before the loop
    // and in it
    assert_eq!(copies.len(), 2 * (8 + 2 * 2));
    let (before, inside) = copies.split_at(copies.len() / 2);
    assert!(before.iter().all(|at| *at < first));
    assert!(inside.iter().all(|at| first < *at && *at < products[0]));
    assert!(products.iter().all(|at| *at < last));
}

/// What the sizes say is what the kernel takes, with all tables and with fewer.
#[test]
fn sizes_are_those_of_the_kernel() {
    for (operator, dim, degree) in [(Operator::Laplace, 2, 4), (Operator::Mass, 3, 4)] {
        let form = problem(operator, dim, degree, 1, 1).lowered;
        let (symmetric, orbits) = form.symmetric().unwrap();
        let sizes = matrix_orbit_sizes(symmetric.kernel(), &symmetric.program().unwrap(), &orbits).unwrap();
        let bytes = |mapping| {
            let (kernel, _) = transform(&form, &mapping).unwrap();
            generate(&kernel, Target::Cuda, &Options::default()).unwrap().plan.local_bytes
        };
        for (kept, ahead) in [(0, false), (2, false), (2, true)] {
            let needed = bytes(if ahead { overlapped(4, 8, kept) } else { matrix(4, 8, kept) });
            // the last row of an array has no room after it
            let found = sizes.tables_that_fit(4, ahead, needed + 200);
            assert_eq!(found, Some(kept), "{operator}, {needed}, {sizes:?}");
        }
        assert_eq!(sizes.tables_that_fit(4, false, 1000), None);
    }
}
