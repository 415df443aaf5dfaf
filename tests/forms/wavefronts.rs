//! Matrix instructions of AMD's wavefronts, with degrees of freedom in orbits and with components: what the
//! kernels compute, in C by the same schedule; that the code for HIP has the instructions and compiles.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, is_long_run};
use kingpost::codegen::{Options, Program, Target, generate};
use kingpost::forms::strategies::{MatrixCells, MatrixGroups, MatrixInstruction};
use kingpost::ir::Kernel;
use kingpost::kernels::Operator;
use kingpost::prelude::interpret;
use kingpost::runtime::{Cache, hip, open};
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError};

const MFMA: MatrixInstruction = MatrixInstruction::Mfma16x16x4;
const CALL: &str = "__builtin_amdgcn_mfma_f64_16x16x4f64";

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

fn cells(sub_groups: u64, groups: u64, kept_tables: u64) -> Mapping {
    let cells = MatrixCells { instruction: MFMA, ..MatrixCells::new(sub_groups, groups, kept_tables) };
    Mapping::from(cells).with_orbits()
}

fn groups() -> MatrixGroups {
    MatrixGroups { instruction: MFMA, ..MatrixGroups::default() }
}

/// Full blocks of cells and a rest; orbits that four and sixteen divide and do not; modes and points; a wavefront
/// for each component, for all and for some points; several tiles of points at a time.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        // 5 orbits of up to four, in two groups of 16 cells
        (Operator::Laplace, 3, 3, 2, cells(2, 1, 99)),
        (Operator::Elasticity, 3, 2, 2, groups().into()),
        (Operator::Elasticity, 3, 2, 2, Mapping::from(groups()).with_orbits()),
        (Operator::Hyperelasticity, 2, 3, 3, MatrixGroups { one_sub_group: true, ..groups() }.into()),
        (Operator::Hyperelasticity, 2, 2, 3, MatrixGroups { shared_points: Some(2), ..groups() }.into()),
        (Operator::Helmholtz, 2, 4, 3, cells(1, 2, 1)),
        (Operator::Mass, 3, 4, 1, cells(1, 2, 99)),
        (Operator::Hyperelasticity, 2, 2, 3, groups().into()),
        (Operator::Hyperelasticity, 2, 3, 3, MatrixGroups { point_tiles: Some(2), ..groups() }.into()),
        (
            Operator::Elasticity,
            2,
            3,
            3,
            Mapping::from(MatrixGroups { one_sub_group: true, ..groups() }).with_orbits(),
        ),
    ];
    for (k, (operator, dim, degree, divisions, mapping)) in cases.into_iter().enumerate() {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        let (kernel, _) = transform(&problem.lowered, &mapping).unwrap_or_else(|e| panic!("{mapping}: {e}"));
        let name = format!("{operator} {dim}-D P{degree}, {mapping}, seed {seed}");
        is_right(&problem, &expected, &kernel, &name);
        is_right_in_c(&problem, &expected, &kernel, &name);
        let hip = generate(&kernel, Target::Hip, &Options::default()).unwrap();
        let blocks = hip.source.split("_tail").next().unwrap();
        assert!(blocks.contains(CALL) && hip.plan.block[0] == 64, "{mapping}\n{}", hip.source);
        if k == 0 || k == 3 {
            compiles("gfx90a", &hip, &name); // a second of clang each
        }
    }
}

fn check(found: &[f64], expected: &[f64], name: &str) {
    let error = RelativeError::between(found, expected);
    println!("{name}: {error:?}");
    // 1e-12: sums of some hundred terms in f64
    assert!(error.is_within(1e-12), "{name}: {error:?}");
}

/// What a kernel computes, by the interpreter.
fn is_right(problem: &Problem, expected: &[f64], kernel: &Kernel, name: &str) {
    let mut memory = problem.memory.clone();
    interpret(kernel, &mut memory).unwrap();
    check(memory.f64s(problem.output()).unwrap(), expected, &format!("{name}, in the interpreter"));
}

/// What a kernel computes in C.
fn is_right_in_c(problem: &Problem, expected: &[f64], kernel: &Kernel, name: &str) {
    let device = open("c").unwrap();
    let program = generate(kernel, Target::C, &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
    loaded.launch().unwrap();
    check(&loaded.f64s(problem.output()).unwrap(), expected, &format!("{name}, in C"));
}

fn compiles(arch: &str, hip: &Program, name: &str) {
    match hip::compile_program(arch, hip, &Cache::from_environment()) {
        Ok(object) => {
            assert!(object.assembly.contains("v_mfma_f64_16x16x4"), "{}", object.assembly);
            println!("{name}: {}", object.resources[0]);
        }
        Err(error) => {
            assert!(hip::version().is_err(), "{error}\n{}", hip.source);
            println!("skipped: {error}");
        }
    }
}

/// The five operators at three degrees on tetrahedra, by the first mapping whose local memory a compute unit has; of
/// hyperelasticity beyond P4 none is.
#[test]
fn operators_of_high_degrees_are_right_and_compile() {
    let seed = Random::fresh_seed();
    let degrees = if is_long_run() { 4..=6 } else { 4..=4 };
    let operators = if is_long_run() { &Operator::ALL[..] } else { &[Operator::Laplace] };
    let alone = || MatrixGroups { one_sub_group: true, ..groups() };
    for degree in degrees {
        for operator in operators.iter().copied() {
            let problem = problem(operator, 3, degree, 2, seed);
            let tried: Vec<Mapping> = match operator {
                Operator::Elasticity => {
                    vec![Mapping::from(groups()).with_orbits(), Mapping::from(alone()).with_orbits()]
                }
                Operator::Hyperelasticity => vec![groups().into(), alone().into()],
                Operator::Mass | Operator::Helmholtz | Operator::Laplace => vec![cells(1, 2, 0)],
            };
            let found = tried.into_iter().find_map(|mapping| {
                let (kernel, _) = transform(&problem.lowered, &mapping).ok()?;
                let hip = generate(&kernel, Target::Hip, &Options::default()).ok()?;
                Some((mapping, kernel, hip))
            });
            let Some((mapping, kernel, hip)) = found else {
                assert!(operator == Operator::Hyperelasticity && degree > 4, "{operator} P{degree}");
                continue;
            };
            let name = format!("{operator} 3-D P{degree}, {mapping}, seed {seed}");
            let expected = problem.reference().unwrap();
            is_right_in_c(&problem, &expected, &kernel, &name);
            compiles("gfx942", &hip, &name);
        }
    }
}

#[test]
fn what_wavefronts_do_not_have_is_refused() {
    let form = problem(Operator::Elasticity, 2, 2, 1, 1).lowered;
    for mapping in [
        Mapping::from(MatrixGroups { short_terms: true, ..groups() }),
        Mapping::from(MatrixGroups { kinds: true, ..groups() }).with_orbits(),
    ] {
        let refused = transform(&form, &mapping).unwrap_err();
        assert!(refused.reason.contains("leave `short_terms` and `kinds` out"), "{}", refused.reason);
    }
}
