//! Degrees of freedom combined in orbits of symmetric vertices: what the kernels compute, how many
//! entries of tables are left, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, is_long_run, of_run};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::CellKernel;
use kingpost::forms::lowering::NoSymmetry;
use kingpost::forms::lowering::{Directions, LoweringOptions, lower};
use kingpost::forms::strategies::{InOrbits, StraightCells};
use kingpost::forms::{Combinator, relowered};
use kingpost::interp::interpret;
use kingpost::ir::Kernel;
use kingpost::kernels::Operator;
use kingpost::runtime::open;
use kingpost::transforms::Schedule;
use kingpost::transforms::primitives::Assume;
use kingpost::tuning::transform;
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError};

fn straight(cells: u64) -> Mapping {
    Mapping::from(StraightCells::new(cells)).with_orbits()
}

/// The same with cells that fill no group in loops of their own.
fn whole(cells: u64) -> Mapping {
    Mapping::from(StraightCells { cells, whole_groups: true, parts: Vec::new() }).with_orbits()
}

fn problem(operator: Operator, dim: usize, degree: usize, divisions: usize, seed: u64) -> Problem {
    Problem::operator(operator, degree, None, bent_mesh(dim, divisions), seed).unwrap()
}

/// The form with derivatives along symmetric directions, as it is lowered.
#[test]
fn directions_do_not_change_the_result() {
    let seed = Random::fresh_seed();
    for (operator, dim, degree) in [
        (Operator::Laplace, 2, 2),
        (Operator::Helmholtz, 3, 1),
        (Operator::Elasticity, 3, 2),
        (Operator::Hyperelasticity, 2, 2),
        (Operator::Hyperelasticity, 3, 1),
    ] {
        let problem = problem(operator, dim, degree, 2, seed);
        let expected = problem.reference().unwrap();
        let (symmetric, _) = problem.lowered.symmetric().unwrap();
        assert_ne!(*symmetric.kernel(), problem.lowered.kernel);
        let mut memory = problem.memory.clone();
        interpret(symmetric.kernel(), &mut memory).unwrap();
        let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
        assert!(error.is_within(1e-12), "{operator} {dim}-D P{degree}, seed {seed}: {error:?}");
    }
}

/// The same with points in orbits instead of modes.
fn with_points(cells: u64, whole_groups: bool) -> Mapping {
    let straight = StraightCells { whole_groups, ..StraightCells::new(cells) };
    InOrbits { points: true, ..InOrbits::default() }.before(straight)
}

/// In the interpreter, in C and a third in OpenCL, for cells that do not fill the last group; small
/// orbits are those of P2, P4 and of triangles.
#[test]
fn results_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let cases = [
        (Operator::Mass, 2, 1, straight(5)),
        (Operator::Mass, 3, 2, whole(5)),
        (Operator::Laplace, 2, 4, whole(5)),
        (Operator::Laplace, 3, 3, straight(5)),
        (Operator::Helmholtz, 2, 3, straight(5)),
        (Operator::Helmholtz, 3, 2, whole(5)),
        (Operator::Elasticity, 2, 2, whole(5)),
        (Operator::Elasticity, 3, 2, straight(5)),
        (Operator::Laplace, 2, 2, with_points(5, true)),
        (Operator::Hyperelasticity, 2, 1, with_points(5, false)),
    ];
    for (k, (operator, dim, degree, mapping)) in of_run(cases.into_iter().enumerate(), &[1, 2, 4, 6, 9]) {
        let problem = problem(operator, dim, degree, 2, seed);
        let expected = problem.reference().unwrap();
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let symmetric = relowered(&problem.lowered, &recipe.lowering).unwrap().unwrap();
        assert_eq!(recipe.apply(symmetric.kernel()).unwrap(), kernel);
        let check = |found: &[f64], place: &str| {
            let error = RelativeError::between(found, &expected);
            assert!(
                error.is_within(1e-12),
                "{operator} {dim}-D P{degree} in {place}, seed {seed}: {error:?}"
            );
        };
        let mut memory = problem.memory.clone();
        interpret(&kernel, &mut memory).unwrap();
        check(memory.f64s(problem.output()).unwrap(), "the interpreter");
        let in_opencl = is_long_run() || k % 3 == 1;
        for place in ["c", "opencl"].into_iter().take(if in_opencl { 2 } else { 1 }) {
            let device = open(place).unwrap();
            let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
            let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &problem.memory).unwrap();
            loaded.launch().unwrap();
            check(&loaded.f64s(problem.output()).unwrap(), place);
        }
    }
}

/// What a group of cells does stands in the code once and without conditions, except for the one that
/// there is such a group: full groups alone have that code. Where the kernel assumes that groups
/// divide the cells, there is nothing else.
#[test]
fn whole_groups_have_no_conditions() {
    let problem = problem(Operator::Laplace, 2, 2, 2, 1);
    let divided = |factor: i64| {
        let mut s = Schedule::of(&problem.lowered.kernel);
        s.apply(Assume::multiple_of("n_cells", factor)).unwrap();
        s.finish().0
    };
    let conditions = |kernel: &Kernel| {
        let mapping = Mapping::from(StraightCells { cells: 32, whole_groups: true, parts: Vec::new() });
        let kernel = mapping.apply(kernel).unwrap().0;
        let source = generate(&kernel, Target::Cuda, &Options::default()).unwrap().source;
        let of_group = source.find("if (g0 < kingpost_floor_div_i32(n_cells, 32)) {").unwrap_or(0);
        let end = source.find("if (g0 < kingpost_mod_i32(n_cells, 32)) {").unwrap_or(source.len());
        (source.matches("if (").count(), source[of_group..end].matches("if (").count(), source)
    };
    // the rounds of gather and scatter fill no group: 192 = 6*32
    let (all, in_group, source) = conditions(&problem.lowered.kernel);
    assert!(all > in_group && in_group == 1, "{source}");
    let (all, _, source) = conditions(&divided(64));
    assert_eq!(all, 0, "{source}");
    assert_eq!(source.matches("atomicAdd").count(), 6, "{source}");
}

/// Products with entries of tables in the code of a cell, plain sums of them not counted.
fn products(operator: Operator, dim: usize, degree: usize, mapping: &Mapping) -> usize {
    use kingpost::ir::{Expr, TableData, VarKind};
    let problem = problem(operator, dim, degree, 1, 1);
    let (kernel, _) = transform(&problem.lowered, mapping).unwrap();
    let mut entries = 0;
    for insn in kernel.insns.values().filter(|i| i.update_op().is_some()) {
        insn.rhs.for_each(&mut |e| {
            if let Expr::Load(a) = e
                && let VarKind::Table(TableData::Real(values)) = &kernel.vars[a.var].kind
                && a.index.len() >= 2
            {
                entries += values.iter().filter(|v| v.0 != 0.0).count();
            }
        });
    }
    entries
}

/// A quarter of the entries is left on tetrahedra, and half on triangles, of which modes alone
/// leave three quarters.
#[test]
fn tables_have_blocks() {
    let modes = Mapping::from(StraightCells::new(32)).with_modes();
    for (operator, dim, degree, least) in
        [(Operator::Laplace, 3, 4, 3.0), (Operator::Helmholtz, 3, 3, 2.5), (Operator::Laplace, 2, 5, 1.5)]
    {
        let (before, after) =
            (products(operator, dim, degree, &modes), products(operator, dim, degree, &straight(32)));
        assert!(before as f64 / after as f64 >= least, "{operator} {dim}-D P{degree}: {before} to {after}");
    }
}

/// Half of the products with entries of tables are left of an operator that is not linear, whose
/// points stay; points that a permutation leaves where they are count twice.
#[test]
fn points_in_orbits_halve_the_products() {
    let plain = products(Operator::Hyperelasticity, 2, 3, &Mapping::from(StraightCells::new(32)));
    let halved = products(Operator::Hyperelasticity, 2, 3, &with_points(32, false));
    let ratio = plain as f64 / halved as f64;
    assert!((1.7..=2.0).contains(&ratio), "{plain} to {halved}");
}

/// Rules on tetrahedra have no orbits except for few degrees, and what combines no points says so.
#[test]
fn what_has_no_orbits_of_points_is_refused() {
    let solid = problem(Operator::Hyperelasticity, 3, 2, 1, 1);
    let message = transform(&solid.lowered, &with_points(32, false)).unwrap_err().to_string();
    assert!(message.contains("needed orbits of points; take another scheme"), "{message}");
    let plane = problem(Operator::Laplace, 2, 2, 1, 1);
    let mapping = InOrbits { points: true, ..InOrbits::default() }.before(Mapping::single_cell());
    let message = transform(&plane.lowered, &mapping).unwrap_err().to_string();
    assert!(message.contains("combines no points in orbits, needed `straight_cells`"), "{message}");
}

#[test]
fn what_has_no_symmetry_is_refused() {
    let problem = problem(Operator::Laplace, 2, 2, 1, 1);
    let refused = |mapping: Mapping| transform(&problem.lowered, &mapping).unwrap_err().to_string();
    assert_eq!(
        refused(Mapping::single_cell().with_orbits()),
        "transform: `single cell, 32 a group` combines no degrees of freedom in orbits, needed `straight_cells`, `listed_cells`, `matrix_cells` or `matrix_groups`"
    );
    let kernel = &problem.lowered.kernel;
    assert_eq!(
        kernel.symmetric().err().unwrap(),
        NoSymmetry::NoForm { kernel: problem.lowered.kernel.name.clone() }
    );
}

/// What is differentiated along the axes only says so.
#[test]
fn directions_are_refused() {
    use kingpost::forms::element::CellShape;
    use kingpost::forms::form::*;
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, v) = (coefficient("u", &space), test(&space));
    let options = LoweringOptions::new("k").with_directions(Directions::Symmetric);
    let refused = |form: &Form| lower(form, &options).unwrap_err().to_string();
    let needed = "needed integrals over straight triangles or tetrahedra with first derivatives of Lagrange \
                  elements; differentiate along the axes";
    let laplacian = div(grad(&u)) * &v * dx();
    assert_eq!(refused(&laplacian), format!("found symmetric directions and a second derivative, {needed}"));
    // nothing is differentiated
    assert!(lower(&(&u * &v * dx()), &options).is_ok());
}
