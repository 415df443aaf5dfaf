//! A sub-group for each component by matrix instructions, on degrees of freedom combined in orbits:
//! what the kernels compute, how many instructions they have, what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::relowered;
use kingpost::forms::strategies::MatrixGroups;
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError};

fn elasticity(dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(Operator::Elasticity, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

fn mapping() -> Mapping {
    Mapping::from(MatrixGroups::default()).with_orbits()
}

/// A sub-group for each kind of modes.
fn of_kinds() -> Mapping {
    Mapping::from(MatrixGroups { kinds: true, ..MatrixGroups::default() }).with_orbits()
}

fn compare(dim: usize, degree: usize, divisions: usize, mapping: &Mapping, places: &[&str]) {
    let seed = Random::fresh_seed();
    let problem = elasticity(dim, degree, divisions, seed);
    let expected = problem.reference().unwrap();
    let (kernel, recipe) = transform(&problem.lowered, mapping).unwrap();
    let symmetric = relowered(&problem.lowered, &recipe.lowering).unwrap().unwrap();
    assert_eq!(recipe.apply(symmetric.kernel()).unwrap(), kernel);
    let check = |found: &[f64], place: &str| {
        let error = RelativeError::between(found, &expected);
        assert!(error.is_within(1e-12), "{dim}-D P{degree} in {place}, seed {seed}: {error:?}");
    };
    let mut memory = problem.memory.clone();
    interpret(&kernel, &mut memory).unwrap();
    check(memory.f64s(problem.output()).unwrap(), "the interpreter");
    for place in places {
        let device = open(place).unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
        loaded.launch().unwrap();
        check(&loaded.f64s(problem.output()).unwrap(), place);
    }
}

/// Fewer cells than a block.
#[test]
fn a_rest_is_that_of_the_reference() {
    compare(2, 1, 2, &mapping(), &["c"]);
}

/// Full blocks and a rest; two components and three; several tiles of modes at a time where a block
/// has as many.
#[test]
fn results_are_those_of_the_reference() {
    let several = Mapping::from(MatrixGroups {
        resident_groups: Some(6),
        point_tiles: Some(2),
        ..MatrixGroups::default()
    });
    compare(2, 4, 3, &several.with_orbits(), &["c", "opencl"]);
    compare(3, 2, 2, &mapping().with_parts(&[4, 6]).unwrap(), &["c", "opencl"]);
    let alone =
        Mapping::from(MatrixGroups { point_tiles: Some(2), one_sub_group: true, ..MatrixGroups::default() });
    // of vertices, edges and the interior separately
    let alone = alone.with_orbits().with_parts(&[3, 9, 3]).unwrap();
    compare(2, 4, 3, &alone, &["c", "opencl"]);
}

/// Two kinds and four; combinations of the reversed kind, and of the other one of a pair; transfers
/// in parts; a rest.
#[test]
fn kinds_of_modes_have_a_sub_group_each() {
    compare(2, 2, 3, &of_kinds().with_parts(&[3, 3]).unwrap(), &["c", "opencl"]);
    compare(3, 2, 2, &of_kinds(), &["c"]);
    let form = elasticity(3, 5, 1, 1).lowered;
    let (kernel, _) = transform(&form, &of_kinds()).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    // three components in three directions, two products, two tiles of orbits and of modes: one
    // kind has eleven, the others eight
    assert_eq!(cuda.source.matches("mma.sync.aligned.m16n8k8").count(), 3 * 3 * 2 * 2 * 2);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 4, 1]);
}

/// Each direction multiplies one combination a block of modes: a third of the instructions of what
/// is multiplied as a whole, if 20 degrees of freedom are 5 orbits. No lane asks another one.
#[test]
fn blocks_of_zeros_are_left_out() {
    let form = elasticity(3, 3, 1, 1).lowered;
    let cuda = |mapping: &Mapping| {
        let (kernel, _) = transform(&form, mapping).unwrap();
        generate(&kernel, Target::Cuda, &Options::default()).unwrap()
    };
    let instructions = |source: &str| source.matches("mma.sync.aligned.m16n8k8").count();
    // three directions, one tile of orbits and of modes in each of four blocks, two products
    let orbits = cuda(&mapping());
    assert_eq!(instructions(&orbits.source), 3 * 4 * 2);
    assert!(!orbits.source.contains("__shfl"), "{}", orbits.source);
    assert_eq!(orbits.plan.block, [32, 3, 1]);
}

#[test]
fn what_does_not_suit_is_refused() {
    let refused = |operator, mapping: &Mapping| {
        let problem = Problem::operator(operator, 2, None, bent_mesh(2, 1), 1).unwrap();
        transform(&problem.lowered, mapping).unwrap_err().to_string()
    };
    let message = refused(Operator::Hyperelasticity, &mapping());
    assert!(message.contains("several functions are evaluated, or none"), "{message}");
    let message = refused(Operator::Laplace, &mapping());
    assert!(message.contains("the function has not the components of the result"), "{message}");
    let refused = |mapping: &Mapping| {
        let problem = elasticity(2, 1, 1, 1);
        transform(&problem.lowered, mapping).unwrap_err().to_string()
    };
    let message = refused(&of_kinds());
    assert!(message.contains("there are 1 kinds of modes and 2 combinations"), "{message}");
    let message = refused(&Mapping::from(MatrixGroups { kinds: true, ..MatrixGroups::default() }));
    assert!(message.contains("kinds of modes are those of `orbits`"), "{message}");
    let alone = MatrixGroups { kinds: true, one_sub_group: true, ..MatrixGroups::default() };
    let message = refused(&Mapping::from(alone).with_orbits());
    assert!(message.contains("leave `one_sub_group` and `point_tiles` out"), "{message}");
}
