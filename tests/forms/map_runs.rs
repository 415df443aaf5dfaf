//! First numbers of runs instead of maps: what the kernels compute, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, of_run};
use kingpost::codegen::{Options, generate};
use kingpost::forms::Combinator;
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::{ConstantCells, MapRuns, MatrixCells, MatrixGroups, StraightCells};
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError, SetUpError, definitions, laid_out, set_up};

/// The runs of Lagrange elements of degree `p`, and the parts that they are in.
fn runs(dim: usize, p: u64) -> (MapRuns, Vec<u64>) {
    let interior =
        |dim: u64| (1..=dim).map(|k| p.saturating_sub(k)).product::<u64>() / (1..=dim).product::<u64>();
    let entities: &[u64] = if dim == 2 { &[3, 3, 1] } else { &[4, 6, 4, 1] };
    let runs = entities.iter().zip(0..).map(|(count, dim)| [interior(dim), *count]);
    let runs: Vec<[u64; 2]> = runs.filter(|[length, _]| *length > 0).collect();
    let parts = runs.iter().map(|[length, count]| length * count).collect();
    (MapRuns { runs, by_vertices: false, interior: false }, parts)
}

/// With numbers of the interior that are computed.
fn interior(how: MapRuns) -> MapRuns {
    MapRuns { interior: true, ..how }
}

fn by_vertices(dim: usize, p: u64) -> MapRuns {
    MapRuns { by_vertices: true, ..runs(dim, p).0 }
}

fn straight(dim: usize, p: u64, cells: u64, whole_groups: bool) -> Mapping {
    StraightCells { cells, whole_groups, parts: runs(dim, p).1 }.into()
}

fn problem(operator: Operator, dim: usize, degree: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, 2), seed).unwrap()
}

/// In the interpreter and in C, for cells that do not fill the last group: scalars, vectors, two
/// functions through one map, modes, orbits, matrix instructions.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let matrix = |p| MatrixCells { parts: runs(2, p).1, ..MatrixCells::new(1, 2, 9) };
    let groups = MatrixGroups { parts: runs(2, 4).1, ..MatrixGroups::default() };
    let cases = [
        (Operator::Laplace, 3, 1, ConstantCells { cells: 5 }.into()),
        (Operator::Mass, 2, 4, straight(2, 4, 5, true).with_modes()),
        (Operator::Mass, 3, 5, straight(3, 5, 7, false).with_modes()),
        (Operator::Laplace, 3, 4, straight(3, 4, 5, true).with_orbits()),
        (Operator::Helmholtz, 2, 2, straight(2, 2, 3, true).with_modes()),
        (Operator::Elasticity, 2, 3, straight(2, 3, 3, true).with_orbits()),
        (Operator::Hyperelasticity, 2, 2, straight(2, 2, 5, false)),
        (Operator::Laplace, 2, 7, Mapping::from(matrix(7)).with_orbits()),
        (Operator::Elasticity, 2, 4, Mapping::from(groups)),
    ];
    // the others are of high degrees, for which compilers take long
    for (k, (operator, dim, degree, then)) in of_run(cases.into_iter().enumerate(), &[0, 1, 4, 5, 6]) {
        let p = degree as u64;
        let how = if k % 2 == 0 { by_vertices(dim, p) } else { runs(dim, p).0 };
        // one of them with atomic updates of the interior, which has degrees of freedom from these degrees on
        let mapping = if degree > dim && k != 1 { interior(how).before(then) } else { how.before(then) };
        let problem = problem(operator, dim, degree, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let definitions = definitions(&problem.lowered, &recipe).unwrap();
        let (device, mut memory) = (open("c").unwrap(), problem.memory.clone());
        let setup = set_up(&*device, &definitions, &mut memory).unwrap();
        assert_eq!(setup.inputs, runs(dim, degree as u64).1.len());
        let check = |found: &[f64], place: &str| {
            let error = RelativeError::between(found, &expected);
            assert!(
                error.is_within(1e-12),
                "{operator} {dim}-D P{degree} in {place}, seed {seed}: {error:?}"
            );
        };
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let code = compiled(&*device, &program);
        let loaded = Loaded::compiled(&*device, code, &laid_out(&kernel, &memory)).unwrap();
        loaded.launch().unwrap();
        check(&loaded.f64s(problem.output()).unwrap(), "C");
        interpret(&kernel, &mut memory).unwrap();
        check(memory.f64s(problem.output()).unwrap(), "the interpreter");
    }
}

#[test]
fn maps_without_runs_are_refused_with_the_entry() {
    let given = problem(Operator::Laplace, 3, 3, 1);
    let mapping = runs(3, 3).0.before(straight(3, 3, 4, true));
    let (_, recipe) = transform(&given.lowered, &mapping).unwrap();
    let definitions = definitions(&given.lowered, &recipe).unwrap();
    // one of the two tetrahedra of an edge lists its vertices the other way round
    let mesh = Mesh::unit_cube(2).unwrap();
    let touched = Problem::in_order(given.lowered, mesh, NumberingOrder::FirstTouch, 1).unwrap();
    let error = set_up(&*open("c").unwrap(), &definitions, &mut touched.memory.clone()).unwrap_err();
    assert!(matches!(error, SetUpError::Broken(_)));
    assert!(error.to_string().contains("of `dofs` is "), "{error}");
}

/// The numbers of the interior of a cell are added to without atomic updates, of the others by them; that no
/// other cell has them is checked before a launch.
#[test]
fn interiors_are_stored_and_shared_ones_refused() {
    let given = problem(Operator::Laplace, 2, 4, 1);
    let mapping = interior(by_vertices(2, 4)).before(straight(2, 4, 4, true));
    let (kernel, recipe) = transform(&given.lowered, &mapping).unwrap();
    let result = kernel.var(given.output()).unwrap();
    let updates: Vec<_> = kernel.insns.values().filter(|insn| insn.lhs.var == result).collect();
    let plain = updates.iter().filter(|insn| !insn.is_atomic()).count();
    // three parts of full groups, of which the last one is the interior, and the cells that are left
    assert_eq!((plain, updates.len()), (1, 4));
    let definitions = definitions(&given.lowered, &recipe).unwrap();
    let refused = |entry: usize, numbers: &[i64]| {
        let mut memory = given.memory.clone();
        let mut dofs: Vec<i64> = memory.get("dofs").unwrap().to_i64().unwrap();
        dofs[entry..entry + numbers.len()].copy_from_slice(numbers);
        memory.set("dofs", dofs.into_iter().map(|number| number as i32).collect::<Vec<_>>());
        set_up(&*open("c").unwrap(), &definitions, &mut memory).unwrap_err().to_string()
    };
    let numbers = given.memory.get("dofs").unwrap().to_i64().unwrap();
    // the second cell has the interior of the first one
    let shared = refused(15 + 12, &numbers[12..15]);
    assert!(shared.starts_with("entry 12 of row 1 of `dofs` is "), "{shared}");
    assert!(shared.contains("each row has 3 numbers alone"), "{shared}");
    // a vertex of the second one is in the interior of the first one
    let vertex = refused(15, &numbers[13..14]);
    assert!(vertex.starts_with("entry 0 of row 1 of `dofs` is "), "{vertex}");
    assert!(vertex.contains("needed a number outside "), "{vertex}");
}

#[test]
fn an_interior_of_several_runs_is_refused() {
    let given = problem(Operator::Laplace, 2, 2, 1);
    let mapping = interior(runs(2, 2).0).before(straight(2, 2, 4, true));
    let refused = transform(&given.lowered, &mapping).unwrap_err().to_string();
    assert!(refused.contains("one, the last one, of an interior that no other cell has"), "{refused}");
}

#[test]
fn runs_of_other_degrees_and_transfers_together_are_refused() {
    let given = problem(Operator::Laplace, 2, 3, 1);
    let refused = |mapping: &Mapping| transform(&given.lowered, mapping).unwrap_err().to_string();
    let other = refused(&runs(2, 4).0.before(straight(2, 3, 4, true)));
    assert!(other.contains("10, those of a component in a cell"), "{other}");
    let together = refused(&runs(2, 3).0.before(StraightCells::new(4)));
    assert!(together.contains("no entry of `dofs` has a column from 0 to 2"), "{together}");
}
