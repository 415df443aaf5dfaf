//! Sixteen cells a group and a sub-group for each component, by matrix instructions: what the
//! kernels are, what they compute, what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, of_run};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::strategies::{MatrixGroups, matrix_group_dofs};
use kingpost::kernels::Operator;
use kingpost::prelude::interpret;
use kingpost::runtime::{Cache, cuda::nvrtc, open};
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError};

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

/// The mapping with instructions of half the length for the last degrees of freedom.
fn short() -> Mapping {
    MatrixGroups { short_terms: true, ..MatrixGroups::default() }.into()
}

/// The mapping with a sub-group a group.
fn one() -> Mapping {
    MatrixGroups { one_sub_group: true, ..MatrixGroups::default() }.into()
}

/// The mapping with as many sub-groups that share points and rows.
fn shared(sub_groups: u32) -> Mapping {
    MatrixGroups { shared_points: Some(sub_groups), short_terms: true, ..MatrixGroups::default() }.into()
}

/// No full block, full blocks and a rest; modes, and points that tiles do not divide; two
/// components and three, one function and two; instructions of half the length where they help,
/// with 10 degrees of freedom, and where they do not, with 15.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        (Operator::Elasticity, 2, 1, 2, Mapping::from(MatrixGroups::default())),
        (Operator::Elasticity, 3, 2, 2, short()),
        (Operator::Hyperelasticity, 2, 3, 3, short()),
        // 6 degrees of freedom, of which the third and fourth sub-groups have none, and 10 of each
        // component
        (Operator::Hyperelasticity, 2, 2, 3, shared(4)),
        (Operator::Elasticity, 3, 2, 2, shared(3)),
        (Operator::Hyperelasticity, 2, 3, 3, shared(2)),
        // of these one sub-group is tested below
        (Operator::Hyperelasticity, 2, 2, 3, one()),
        (Operator::Elasticity, 2, 4, 4, short()),
        (Operator::Hyperelasticity, 2, 2, 3, Mapping::from(MatrixGroups::default())),
    ];
    for (operator, dim, degree, divisions, mapping) in of_run(cases, &[0, 3]) {
        let problem = problem(operator, dim, degree, divisions, seed);
        let expected = problem.reference().unwrap();
        // of P2 those of vertices and edges separately
        let parts = problem.lowered.entity_parts().filter(|_| degree == 2);
        let mapping = parts.and_then(|parts| mapping.with_parts(&parts)).unwrap_or(mapping);
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let replayed = recipe.apply(&problem.lowered.kernel).unwrap();
        assert_eq!(replayed, kernel);
        let mut memory = problem.memory.clone();
        interpret(&kernel, &mut memory).unwrap();
        let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
        assert!(error.is_within(1e-12), "{operator} {dim}-D P{degree}, seed {seed}: {error:?}");
    }
}

/// Two products a table and component, a component a sub-group; no lane asks another one, and
/// points are computed without conditions.
#[test]
fn products_are_matrix_instructions() {
    let problem = problem(Operator::Hyperelasticity, 2, 3, 1, 1);
    let (kernel, _) = transform(&problem.lowered, &Mapping::from(MatrixGroups::default())).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    // two derivatives, 10 degrees of freedom in tiles of 8; two functions, and one result
    assert_eq!(cuda.source.matches("mma.sync.aligned.m16n8k8").count(), 2 * 2 * 3);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 2, 1]);
    let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
    assert!(!opencl.source.contains("mma"), "{}", opencl.source);
}

/// A sub-group with all components keeps values at points and factors in its registers, and waits
/// for nobody: tables are read once for all components.
#[test]
fn one_sub_group_has_all_components() {
    let problem = problem(Operator::Hyperelasticity, 2, 3, 3, Random::fresh_seed());
    let (kernel, _) = transform(&problem.lowered, &one()).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    // two derivatives of two components, 10 degrees of freedom in tiles of 8; two functions, one
    // result
    assert_eq!(cuda.source.matches("mma.sync.aligned.m16n8k8").count(), 2 * 2 * 2 * 3);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert!(!cuda.source.contains("__syncthreads"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 1, 1]);
    let expected = problem.reference().unwrap();
    for place in ["c", "opencl"] {
        let device = open(place).unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
        loaded.launch().unwrap();
        let error = RelativeError::between(&loaded.f64s(problem.output()).unwrap(), &expected);
        assert!(error.is_within(1e-12), "{place}: {error:?}");
    }
}

/// Sub-groups that share points keep the values of all components in registers, exchange factors
/// once, and have rows of their own: each table is read once for all components.
#[test]
fn sub_groups_share_points_and_rows() {
    let problem = problem(Operator::Hyperelasticity, 2, 3, 3, Random::fresh_seed());
    let (kernel, _) = transform(&problem.lowered, &shared(2)).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    let count = |what: &str| cuda.source.matches(what).count();
    // two derivatives of two components: of two functions at a tile of points, by 10 degrees of
    // freedom that are eight and two; of the result the factors of two tiles, by one tile of rows
    assert_eq!(count("mma.sync.aligned.m16n8k8"), 2 * 2 * (2 + 2));
    assert_eq!(count("mma.sync.aligned.m16n8k4"), 2 * 2 * 2);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 2, 1]);
    let expected = problem.reference().unwrap();
    for place in of_run(["c", "opencl"], &[1]) {
        let device = open(place).unwrap();
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
        loaded.launch().unwrap();
        let error = RelativeError::between(&loaded.f64s(problem.output()).unwrap(), &expected);
        assert!(error.is_within(1e-12), "{place}: {error:?}");
    }
    let refused = MatrixGroups { shared_points: Some(4), one_sub_group: true, ..MatrixGroups::default() };
    let error = transform(&problem.lowered, &Mapping::from(refused)).unwrap_err().to_string();
    assert!(error.contains("leave `one_sub_group` and `point_tiles` out"), "{error}");
    let refused = MatrixGroups { shared_points: Some(1), ..MatrixGroups::default() };
    let error = transform(&problem.lowered, &Mapping::from(refused)).unwrap_err().to_string();
    assert!(error.contains("2 to 32"), "{error}");
}

/// Ten degrees of freedom are eight and two: the last instruction of an evaluation has four terms,
/// and what it leaves out is zero. The rows of the results stay eight an instruction.
#[test]
fn the_last_terms_take_half_an_instruction() {
    let problem = problem(Operator::Hyperelasticity, 2, 3, 1, 1);
    let source = |mapping: &Mapping| {
        let (kernel, _) = transform(&problem.lowered, mapping).unwrap();
        generate(&kernel, Target::Cuda, &Options::default()).unwrap().source
    };
    let halved = source(&short());
    let count = |what: &str| halved.matches(what).count();
    assert_eq!(count("mma.sync.aligned.m16n8k8"), 2 * 2 * (1 + 1));
    assert_eq!(count("mma.sync.aligned.m16n8k4"), 2 * 2);
    assert!(!halved.contains("__shfl"), "{halved}");
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let object = nvrtc::compile_for("sm_90", "short", &halved, &Cache::from_environment()).unwrap();
    assert!(object.resources.iter().all(|r| r.registers > 0), "{}", object.log);
}

#[test]
fn what_has_no_components_is_refused() {
    let vector = problem(Operator::Elasticity, 3, 2, 1, 1).lowered;
    assert_eq!(matrix_group_dofs(&vector.kernel, &vector.program), Some(10));
    let scalar = problem(Operator::Laplace, 2, 2, 1, 1).lowered;
    assert_eq!(matrix_group_dofs(&scalar.kernel, &scalar.program), None);
    let message = transform(&scalar, &Mapping::from(MatrixGroups::default())).unwrap_err().to_string();
    assert!(message.contains("the result has no components, which `matrix_cells` is for"), "{message}");
}
