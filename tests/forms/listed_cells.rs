//! Degrees of freedom of a group listed once: what the kernels compute, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, is_long_run, of_run};
use kingpost::autotune::known_devices;
use kingpost::codegen::{Options, generate};
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::strategies::{ListedCells, Modes};
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::transforms::lists::Definition;
use kingpost::tuning::{CaseMesh, FormCase, candidates_on_mesh, listed, transform};
use kingpost::{
    Loaded, Mapping, Problem, Random, RelativeError, SetUpError, check_room, definitions, laid_out,
    list_room, set_up, transform_with_setup,
};

fn lists(cells: u64, items: u64) -> ListedCells {
    ListedCells { cells, items, ..ListedCells::default() }
}

fn mapping(cells: u64, items: u64) -> Mapping {
    Mapping::from(lists(cells, items))
}

fn compact(cells: u64, items: u64) -> Mapping {
    Mapping::from(ListedCells { compact: true, ..lists(cells, items) })
}

fn with_vertices(cells: u64, items: u64, places: bool) -> Mapping {
    let vertices = Some(items);
    Mapping::from(ListedCells { compact: true, places, vertices, ..lists(cells, items) })
}

fn summed(cells: u64, items: u64) -> Mapping {
    Mapping::from(ListedCells { compact: true, places: true, ..lists(cells, items) })
}

fn stored(cells: u64, items: u64, places: bool) -> Mapping {
    Mapping::from(ListedCells { compact: true, places, stored: true, ..lists(cells, items) })
}

fn short(cells: u64, items: u64) -> ListedCells {
    ListedCells { compact: true, short: true, ..lists(cells, items) }
}

fn exclusive(cells: u64, items: u64, room: u64) -> Mapping {
    Mapping::from(ListedCells { exclusive: Some(room), ..short(cells, items) })
}

fn problem(operator: Operator, dim: usize, degree: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, 2), seed).unwrap()
}

/// In the interpreter, in C and a quarter in OpenCL, for cells that do not fill the last group:
/// scalars, vectors, two functions through one map, modes and orbits.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        (Operator::Mass, 2, 1, mapping(5, 15)),
        (Operator::Mass, 3, 2, mapping(7, 70).with_modes()),
        (Operator::Laplace, 2, 3, mapping(3, 30).with_orbits()),
        (Operator::Helmholtz, 3, 2, mapping(5, 50).with_orbits()),
        (Operator::Elasticity, 3, 1, mapping(6, 24)),
        (Operator::Laplace, 3, 2, compact(6, 60).with_modes()),
        (Operator::Helmholtz, 2, 2, compact(4, 24).with_orbits()),
        (Operator::Hyperelasticity, 3, 1, compact(7, 28)),
        (Operator::Mass, 3, 2, summed(6, 60).with_modes()),
        (Operator::Mass, 2, 3, Mapping::from(ListedCells { places: true, ..lists(3, 30) })),
        (Operator::Laplace, 3, 3, summed(4, 80).with_orbits()),
        (Operator::Laplace, 3, 2, with_vertices(6, 60, false).with_modes()),
        (Operator::Hyperelasticity, 2, 2, with_vertices(5, 30, true)),
        (Operator::Elasticity, 2, 1, summed(5, 15)),
        (Operator::Hyperelasticity, 3, 1, summed(7, 28)),
        (Operator::Elasticity, 2, 2, mapping(5, 30).with_orbits()),
        (Operator::Hyperelasticity, 2, 2, mapping(4, 24)),
        (Operator::Mass, 2, 1, stored(5, 15, true).with_modes()),
        (Operator::Laplace, 3, 2, stored(6, 60, true).with_modes()),
        (Operator::Helmholtz, 3, 2, stored(6, 60, false).with_modes()),
        (Operator::Laplace, 2, 3, stored(3, 30, false).with_orbits()),
        (Operator::Hyperelasticity, 2, 1, stored(5, 15, true)),
        (Operator::Mass, 2, 2, Mapping::from(ListedCells { stored: true, ..short(5, 30) }).with_modes()),
        (Operator::Laplace, 3, 2, Mapping::from(ListedCells { places: true, ..short(6, 60) })),
        (
            Operator::Hyperelasticity,
            2,
            1,
            Mapping::from(ListedCells { places: true, vertices: Some(15), ..short(5, 15) }),
        ),
        (Operator::Mass, 2, 3, exclusive(5, 60, 8).with_modes()),
        (Operator::Laplace, 3, 2, exclusive(6, 70, 1).with_orbits()),
        (Operator::Elasticity, 2, 2, exclusive(5, 40, 6)),
        (Operator::Hyperelasticity, 2, 1, exclusive(6, 20, 3)),
    ];
    // each kind of list, with modes and orbits, scalars and vectors
    let few = [1, 2, 7, 12, 13, 19, 23, 26, 28];
    for (k, (operator, dim, degree, mapping)) in of_run(cases.into_iter().enumerate(), &few) {
        let problem = problem(operator, dim, degree, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let definitions = definitions(&problem.lowered, &recipe).unwrap();
        let orders = definitions.iter().filter(|d| matches!(d, Definition::Rows(_))).count();
        assert_eq!(orders == 1, mapping.to_string().contains("compact groups"), "{definitions:?}");
        let is_stored = mapping.to_string().contains("stored geometry");
        let vertices = mapping.find::<ListedCells>().and_then(|lists| lists.vertices);
        let lists = 1 + usize::from(vertices.is_some());
        assert_eq!(definitions.len(), orders + lists + usize::from(is_stored), "{definitions:?}");
        let reads_vertices = kernel.insns.values().any(|i| i.name.starts_with("gather_x"));
        assert_eq!(reads_vertices, !is_stored, "{kernel}");
        let in_opencl = is_long_run() || k % 4 == 1;
        for place in ["c", "opencl"].into_iter().take(if in_opencl { 2 } else { 1 }) {
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
            let results = definitions.iter().map(|d| d.results().len());
            assert_eq!(setup.inputs, results.sum::<usize>());
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
    let (_, recipe) = transform(&problem.lowered, &mapping(4, 7)).unwrap();
    let definitions = definitions(&problem.lowered, &recipe).unwrap();
    let error = set_up(&*open("c").unwrap(), &definitions, &mut problem.memory.clone()).unwrap_err();
    assert!(matches!(error, SetUpError::Overflow(_)));
    assert!(error.to_string().starts_with("block 0 of `dofs` has "), "{error}");
}

/// The tuner tries them on a card, with room for the longest list of the meshes, and not on others.
#[test]
fn lists_are_tried_with_room_for_the_longest() {
    let options = LoweringOptions::new("k");
    let lowered = lower(&Operator::Mass.form(3, 2).unwrap(), &options).unwrap();
    let case = FormCase::new("mass.3D.P2", lowered, CaseMesh::Unit(4)).unwrap();
    let models = known_devices().unwrap();
    let model = models.iter().find(|m| m.name == "H200").unwrap();
    let found = listed(&case, model, 48 << 10);
    let told_apart = found.iter().filter(|c| c.parameters.to_string().contains("exclusive")).count();
    assert_eq!([found.len() - told_apart, told_apart], [15, 9], "{found:?}");
    let all = candidates_on_mesh(&case, model, 48 << 10, 1).unwrap();
    for candidate in &found {
        assert!(all.iter().any(|c| c.parameters == candidate.parameters));
        assert!(candidate.parameters.get::<Modes>().is_some(), "{candidate:?}");
        let Some(&found) = candidate.parameters.find::<ListedCells>() else { panic!("{candidate:?}") };
        for divisions in [3, 4] {
            let mesh = Mesh::unit_cube(divisions).unwrap();
            let problem = Problem::operator(Operator::Mass, 2, None, mesh, 1).unwrap();
            let needed = |items| {
                let mapping = Mapping::from(ListedCells { items, ..found }).with_modes();
                let (_, _, definitions) = transform_with_setup(&problem.lowered, &mapping).ok()?;
                Some((check_room(&definitions, &problem.memory), list_room(&definitions, &problem.memory)))
            };
            let Some((fits, Ok(rooms))) = needed(found.items) else { panic!("no lists") };
            let longest = *rooms.last().unwrap();
            fits.unwrap();
            // refused before lists are made where no more are left than a group has alone
            assert!(needed(longest - 1).is_none_or(|(fits, _)| fits.is_err()), "{found:?}");
        }
    }
    assert!(listed(&case, model, 1 << 10).is_empty(), "no group fits");
    let host = models.iter().find(|m| m.occupancy.is_none());
    assert!(host.is_none_or(|host| listed(&case, host, 48 << 10).is_empty()));
}

#[test]
fn groups_of_none_are_refused() {
    let problem = problem(Operator::Mass, 2, 1, 1);
    let refused = transform(&problem.lowered, &mapping(0, 7)).unwrap_err().to_string();
    assert!(refused.contains("needed 1 to 1024"), "{refused}");
}
