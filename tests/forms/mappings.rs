//! Every mapping that tuning tries computes the action: drawn parameters, cells that do not fill
//! the last work-group, in the interpreter, in C and in OpenCL, against a reference that shares no
//! code with lowering and code generation.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, is_long_run};
use kingpost::analysis::Analysis;
use kingpost::codegen::{Options, generate};
use kingpost::forms::element::CellShape;
use kingpost::forms::form::{
    FunctionSpace, coefficient, constant_with_default, coordinate, dot, dx, grad, inner, test,
};
use kingpost::forms::lowering::LoweredForm;
use kingpost::forms::program::CellProgram;
use kingpost::forms::strategies::{
    ConstantCells, MatrixCells, MatrixGroups, MatrixInstruction, MultiLevelTiling, PointTiles, SingleCell,
    StagedCells, StagedTiling, StraightCells, matrix_group_dofs, matrix_sizes,
};
use kingpost::forms::tiling::{TilingParameters, TilingSizes};
use kingpost::interp::interpret;
use kingpost::ir::Kernel;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::transforms::Schedule;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError, staged_tiling_sizes, tiling_sizes};
use kingpost_sample::seed;

/// Sums of at most some hundred products in f64, relative to the size of the result.
const TOLERANCE: f64 = 1e-12;

fn tiling(sizes: &TilingSizes, random: &mut Random) -> TilingParameters {
    let mut up_to = |n: u64| 1 + random.below(n);
    let quad_tile = up_to(sizes.quadrature_points);
    TilingParameters {
        cells: up_to(9),
        work_items_per_cell: up_to(4),
        quad_tile,
        eval_rows: up_to(quad_tile),
        eval_cols: sizes.trial.iter().map(|s| up_to(s.nodes)).collect(),
        quad_rows: up_to(sizes.test.nodes),
        quad_cols: up_to(quad_tile),
    }
}

fn found(problem: &Problem, kernel: &Kernel, place: &str) -> Vec<f64> {
    if place == "interpreter" {
        let mut memory = problem.memory.clone();
        interpret(kernel, &mut memory).unwrap();
        return memory.f64s(problem.output()).unwrap().to_vec();
    }
    let device = open(place).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
    loaded.launch().unwrap();
    loaded.f64s(problem.output()).unwrap()
}

fn check(operator: Operator, dim: usize, degree: usize) {
    let numbers = Random::fresh_seed();
    let problem = Problem::operator(operator, degree, None, bent_mesh(dim, 3), numbers).unwrap();
    check_problem(&problem, &format!("{operator} {dim}-D P{degree}, seed {numbers}"));
}

/// All degrees of freedom together, those of entities, or any two parts.
fn parts(form: &LoweredForm, random: &mut Random) -> Vec<u64> {
    let count = form.program.count().filter(|count| *count > 1).map(i64::unsigned_abs);
    match (random.below(3), form.entity_parts(), count) {
        (1, Some(parts), _) => parts,
        (2, _, Some(count)) => {
            let first = 1 + random.below(count - 1);
            vec![first, count - first]
        }
        _ => Vec::new(),
    }
}

fn check_problem(problem: &Problem, name: &str) {
    let mut random = Random::new(seed());
    let expected = problem.reference().unwrap();
    let form = &problem.lowered;
    assert_eq!(CellProgram::read(&form.kernel).as_ref(), Ok(&form.program), "{name}");
    let (sizes, staged) = (tiling_sizes(form).unwrap(), staged_tiling_sizes(form).unwrap());
    let parts = parts(form, &mut random);
    let mut mappings = vec![
        Mapping::from(ConstantCells { cells: 1 + random.below(9) }),
        Mapping::from(PointTiles { cells: 1 + random.below(9), sums: 1 + random.below(40) }),
        Mapping::from(StagedCells { cells: 1 + random.below(9), constant_tables: random.below(2) == 0 }),
        Mapping::from(StraightCells {
            cells: 1 + random.below(9),
            whole_groups: random.below(2) == 1,
            parts: parts.clone(),
        }),
        // one quadrature tile: results share memory with degrees of freedom
        Mapping::from(StagedTiling(TilingParameters {
            cells: 3,
            work_items_per_cell: 2,
            quad_tile: staged.quadrature_points,
            eval_rows: staged.quadrature_points,
            eval_cols: staged.trial.iter().map(|s| s.nodes).collect(),
            quad_rows: staged.test.nodes,
            quad_cols: staged.quadrature_points,
        })),
    ];
    for _ in 0..if is_long_run() { 40 } else { 1 } {
        mappings.push(Mapping::from(MultiLevelTiling(tiling(&sizes, &mut random))));
        mappings.push(Mapping::from(StagedTiling(tiling(&staged, &mut random))));
    }
    if let Ok((modes, _)) = Mapping::sequential().with_modes().apply(form) {
        let (sizes, staged) = (tiling_sizes(&modes).unwrap(), staged_tiling_sizes(&modes).unwrap());
        let with_modes = [
            Mapping::from(SingleCell { cells: 1 + random.below(9) }),
            Mapping::from(PointTiles { cells: 1 + random.below(9), sums: 1 + random.below(40) }),
            Mapping::from(StagedCells { cells: 1 + random.below(9), constant_tables: true }),
            Mapping::from(StraightCells {
                cells: 1 + random.below(9),
                whole_groups: random.below(2) == 1,
                parts: parts.clone(),
            }),
            Mapping::from(MultiLevelTiling(tiling(&sizes, &mut random))),
            Mapping::from(StagedTiling(tiling(&staged, &mut random))),
        ];
        mappings.extend(with_modes.map(Mapping::with_modes));
    }
    if matrix_sizes(&form.kernel, &form.program).is_some() {
        let [sub_groups, groups, kept_tables] = [3, 4, 4].map(|n| random.below(n));
        let (sub_groups, groups) = (1 + sub_groups, 1 + groups);
        let overlapped = random.below(2) == 1;
        let of = MatrixCells::new(sub_groups, groups, kept_tables);
        let wavefronts = !overlapped && random.below(2) == 1;
        let instruction = if wavefronts { MatrixInstruction::Mfma16x16x4 } else { of.instruction };
        mappings.push(Mapping::from(MatrixCells { overlapped, parts: parts.clone(), instruction, ..of }));
    }
    if matrix_group_dofs(&form.kernel, &form.program).is_some() {
        let shared_points = (random.below(3) == 0).then(|| [2, 3, 4][random.below(3) as usize]);
        let wavefronts = random.below(2) == 1;
        let instruction =
            if wavefronts { MatrixInstruction::Mfma16x16x4 } else { MatrixInstruction::MmaM16n8k8 };
        mappings.push(Mapping::from(MatrixGroups {
            resident_groups: None,
            point_tiles: (shared_points.is_none() && random.below(2) == 1).then_some(2),
            short_terms: !wavefronts && random.below(2) == 1,
            one_sub_group: shared_points.is_none() && random.below(2) == 1,
            shared_points,
            kinds: false,
            parts: parts.clone(),
            instruction,
        }));
    }
    for (m, mapping) in mappings.iter().enumerate() {
        // half of them in C, and some in OpenCL, all in a long run
        let places = match m % 6 {
            _ if is_long_run() => &["interpreter", "c", "opencl"][..],
            3 => &["interpreter", "opencl"],
            0 | 2 | 5 => &["interpreter", "c"],
            _ => &["interpreter"],
        };
        let (mapped, _) = transform(form, mapping).unwrap_or_else(|e| panic!("{mapping}: {e}"));
        for place in places.iter().copied() {
            let error = RelativeError::between(&found(problem, &mapped, place), &expected);
            assert!(error.is_within(TOLERANCE), "{name}, {mapping}, {place}: {error:?}");
        }
    }
}

/// What steps keep of the placement of the kernel before is what is found again.
#[test]
fn placements_are_kept_as_they_are_found() {
    let problem = Problem::operator(Operator::Laplace, 2, None, bent_mesh(3, 1), 0).unwrap();
    let form = &problem.lowered;
    let (sizes, staged) = (tiling_sizes(form).unwrap(), staged_tiling_sizes(form).unwrap());
    let mut random = Random::new(seed());
    let tilings = [
        Mapping::from(MultiLevelTiling(tiling(&sizes, &mut random))),
        Mapping::from(StagedTiling(tiling(&staged, &mut random))),
        Mapping::from(StagedCells { cells: 4, constant_tables: true }),
    ];
    for mapping in tilings {
        let (_, recipe) = transform(form, &mapping).unwrap_or_else(|e| panic!("{mapping}: {e}"));
        let mut schedule = Schedule::of(&form.kernel);
        let mut placed = 0;
        for step in recipe.steps {
            schedule.apply(step.clone()).unwrap();
            let anew = Analysis::of(schedule.kernel()).place().cloned();
            assert_eq!(schedule.analysis().place().cloned(), anew, "{mapping}, {step}");
            placed += usize::from(anew.is_ok_and(|p| !p.barriers.is_empty()));
        }
        assert!(placed > 2, "{mapping}: {placed}");
    }
}

#[test]
fn scalar_on_triangles() {
    check(Operator::Helmholtz, 2, 3);
}

#[test]
fn vector_on_tetrahedra() {
    check(Operator::Elasticity, 3, 2);
}

/// Two functions with the same matrices.
#[test]
fn functions_that_share_matrices() {
    check(Operator::Hyperelasticity, 2, 2);
}

/// A term of two functions of one space with one of another between them.
#[test]
fn functions_that_share_matrices_apart_from_each_other() {
    let space = |degree| FunctionSpace::scalar(CellShape::Triangle, degree);
    let (u, a, du) = (coefficient("u", &space(2)), coefficient("a", &space(1)), coefficient("du", &space(2)));
    let form = &u * &a * &du * test(&space(2)) * dx();
    let numbers = Random::fresh_seed();
    let problem = Problem::new("between", &form, None, bent_mesh(2, 3), numbers).unwrap();
    check_problem(&problem, &format!("u, a, du, seed {numbers}"));
}

/// Each term by a rule of its own: functions that are evaluated by one rule or by several, a rule
/// without any, terms of values and of derivatives.
#[test]
fn several_quadrature_rules() {
    let space = |degree| FunctionSpace::scalar(CellShape::Triangle, degree);
    let (u, a, v) = (coefficient("u", &space(2)), coefficient("a", &space(1)), test(&space(2)));
    let form = &u * &v * dx().with_degree(4)
        + &a * inner(grad(&u), grad(&v)) * dx().with_degree(2)
        + constant_with_default("c", 0.5) * &v * dx().with_degree(1);
    let numbers = Random::fresh_seed();
    let problem = Problem::new("three_rules", &form, None, bent_mesh(2, 3), numbers).unwrap();
    assert_eq!(problem.lowered.points, [6, 3, 1]);
    check_problem(&problem, &format!("three rules, seed {numbers}"));
}

/// Functions with components, and a position at quadrature points, by two rules.
#[test]
fn several_quadrature_rules_for_vectors() {
    let cell = CellShape::Triangle;
    let (vector, scalar) = (FunctionSpace::vector(cell, 2), FunctionSpace::scalar(cell, 1));
    let (u, a, v) = (coefficient("u", &vector), coefficient("a", &scalar), test(&vector));
    let x = coordinate(cell);
    let form = inner(grad(&u), grad(&v)) * dx().with_degree(2)
        + (&a * dot(&u, &v) + &x[0] * dot(&x, &v)) * dx().with_degree(5);
    let numbers = Random::fresh_seed();
    let problem = Problem::new("two_rules", &form, None, bent_mesh(2, 3), numbers).unwrap();
    check_problem(&problem, &format!("two rules, seed {numbers}"));
}

/// Names of loops, arrays and instructions that mappings make.
#[test]
fn functions_may_have_the_names_of_loops() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let v = test(&space);
    let names = ["quad_tile", "cell_group", "staged", "fetch_phi_p1_quad"];
    let functions = names.map(|name| coefficient(name, &space));
    let sum = functions.iter().skip(1).fold(functions[0].clone(), |sum, f| sum + f);
    let form = &sum * &v * dx().with_degree(2);
    let problem = Problem::new("named", &form, None, bent_mesh(2, 3), 1).unwrap();
    check_problem(&problem, "functions called like loops");
}
