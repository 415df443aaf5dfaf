//! Blocks of cells by one work-item: what the kernels compute, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, is_long_run};
use kingpost::autotune::known_devices;
use kingpost::codegen::{Options, generate};
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::CellBlocks;
use kingpost::interp::interpret;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::tuning::{CaseMesh, FormCase, candidates_on_mesh, transform};
use kingpost::{
    Loaded, Mapping, Problem, Random, RelativeError, SetUpError, check_room, definitions, laid_out, set_up,
};
use std::path::Path;

fn blocks(blocks: u64) -> CellBlocks {
    CellBlocks::new(blocks)
}

fn by_vertices(blocks: u64) -> CellBlocks {
    CellBlocks { by_vertices: true, ..CellBlocks::new(blocks) }
}

fn cells(blocks: u64, cells: u64) -> CellBlocks {
    CellBlocks { cells: Some(cells), ..CellBlocks::new(blocks) }
}

fn problem(operator: Operator, dim: usize, degree: usize, seed: u64) -> Problem {
    let form = operator.form(dim, degree).unwrap();
    let lowered = lower(&form, &LoweringOptions::new("k")).unwrap();
    Problem::in_order(lowered, bent_mesh(dim, 2), NumberingOrder::ByBlock, seed).unwrap()
}

/// In the interpreter, in C and some in OpenCL, for blocks that do not fill the last group: scalars, vectors,
/// two functions through one map, modes, orbits, numbers of vertices, parts of a cube.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        (Operator::Laplace, 2, 1, blocks(3).into()),
        (Operator::Mass, 3, 1, Mapping::from(blocks(5)).with_modes()),
        (Operator::Helmholtz, 2, 2, Mapping::from(by_vertices(3)).with_orbits()),
        (Operator::Laplace, 3, 2, Mapping::from(cells(5, 2)).with_modes()),
        (Operator::Elasticity, 2, 1, by_vertices(3).into()),
        (Operator::Hyperelasticity, 2, 1, blocks(3).into()),
        (Operator::Helmholtz, 3, 1, Mapping::from(by_vertices(5)).with_modes()),
        (Operator::Laplace, 2, 3, Mapping::from(by_vertices(3)).with_modes()),
        (Operator::Elasticity, 2, 2, Mapping::from(by_vertices(3)).with_orbits()),
    ];
    for (k, (operator, dim, degree, mapping)) in cases.into_iter().enumerate() {
        let problem = problem(operator, dim, degree, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let definitions = definitions(&problem.lowered, &recipe).unwrap();
        let in_opencl = is_long_run() || k % 4 == 2;
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
            set_up(&*device, &definitions, &mut memory).unwrap();
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

/// Each number of a square is updated once: four updates a block instead of six.
#[test]
fn a_number_is_updated_once() {
    let problem = problem(Operator::Mass, 2, 1, 1);
    let (kernel, recipe) = transform(&problem.lowered, &blocks(8).into()).unwrap();
    let definitions = definitions(&problem.lowered, &recipe).unwrap();
    let mut memory = problem.memory.clone();
    set_up(&*open("c").unwrap(), &definitions, &mut memory).unwrap();
    let run = interpret(&kernel, &mut memory).unwrap();
    let updates = kernel.insns.values().filter(|insn| insn.is_atomic());
    let instances: u64 = updates.map(|insn| run.instances[&insn.name]).sum();
    assert_eq!(instances, 4 * 4);
}

#[test]
fn meshes_without_blocks_are_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshes/bracket.msh");
    let bracket = Mesh::read_gmsh(&path).unwrap();
    let dim = bracket.shape().dim();
    let problem = Problem::operator(Operator::Mass, 1, None, bracket, 1).unwrap();
    let mapping = Mapping::from(blocks(32));
    let (_, recipe) = transform(&problem.lowered, &mapping).unwrap();
    let definitions = definitions(&problem.lowered, &recipe).unwrap();
    let error = set_up(&*open("c").unwrap(), &definitions, &mut problem.memory.clone()).unwrap_err();
    assert!(matches!(error, SetUpError::Unlike(_)), "{dim}: {error}");
    let error = check_room(&definitions, &problem.memory).unwrap_err();
    assert!(error.to_string().contains("or a mapping without blocks"), "{error}");
}

/// Blocks of the mesh by vertices whose degrees of freedom do not repeat the pattern.
#[test]
fn other_numbers_than_those_of_the_pattern_are_refused_with_the_block() {
    let given = problem(Operator::Mass, 2, 2, 1);
    let (_, recipe) = transform(&given.lowered, &blocks(4).into()).unwrap();
    let definitions = definitions(&given.lowered, &recipe).unwrap();
    let mut memory = given.memory.clone();
    let mut dofs = memory.get("dofs").unwrap().to_i64().unwrap();
    dofs.swap(6, 7);
    memory.set("dofs", dofs.into_iter().map(|number| number as i32).collect::<Vec<_>>());
    let error = set_up(&*open("c").unwrap(), &definitions, &mut memory).unwrap_err();
    assert!(matches!(error, SetUpError::Unlike(_)), "{error}");
    assert!(error.to_string().starts_with("block 1 of `dofs_rows` has "), "{error}");
}

#[test]
fn arguments_without_sense_are_refused() {
    let problem = problem(Operator::Mass, 3, 1, 1);
    let refused = |mapping: CellBlocks| transform(&problem.lowered, &mapping.into()).unwrap_err().to_string();
    assert!(refused(blocks(0)).contains("needed 1 to 1024"));
    assert!(refused(cells(4, 4)).contains("needed a divisor of 6"));
    let places = vec![vec![vec![0, 1, 2], vec![0, 2, 3]]];
    let other = refused(CellBlocks { places, ..blocks(4) });
    assert!(other.contains("needed one of 2 cells for a map of 4 columns"), "{other}");
    let apart = vec![vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]];
    let apart = refused(CellBlocks { places: apart, ..blocks(4) });
    assert!(apart.contains("each with a place of those before it"), "{apart}");
}

/// The tuner tries them on a card, where numbers are by block.
#[test]
fn blocks_are_tried_where_numbers_are_by_block() {
    let lowered = lower(&Operator::Mass.form(3, 1).unwrap(), &LoweringOptions::new("k")).unwrap();
    let case = FormCase::new("mass.3D.P1", lowered, CaseMesh::Unit(3)).unwrap();
    let models = known_devices().unwrap();
    let model = models.iter().find(|m| m.name == "H200").unwrap();
    let tried = |case: &FormCase| {
        let found = candidates_on_mesh(case, model, 48 << 10, 1).unwrap();
        found.iter().filter(|c| c.parameters.find::<CellBlocks>().is_some()).count()
    };
    assert_eq!(tried(&case), 0);
    // three sizes of groups, of whole cubes and of two cells
    assert_eq!(tried(&case.in_order(NumberingOrder::ByBlock)), 6);
}
