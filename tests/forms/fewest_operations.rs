//! The mapping with the fewest operations: how many there are by the statistics of the transformed
//! kernel, and what it computes, in the interpreter and in C.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{bent_mesh, compiled, of_run};
use kingpost::analysis::Analysis;
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::Combinator;
use kingpost::forms::element::CellShape;
use kingpost::forms::form::{
    Expr, Form, FunctionSpace, Inputs, coefficient, dx, grad, inner, test, transpose, trial,
};
use kingpost::forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
use kingpost::forms::program::CellProgram;
use kingpost::forms::reference::action as action_of;
use kingpost::forms::strategies::{
    FewestOperations, LoopLanes, Objective, PointTiles, Sequential, bipartitions, considered,
};
use kingpost::interp::interpret;
use kingpost::ir::{Kernel, TableData, VarKind};
use kingpost::runtime::open;
use kingpost::transforms::Primitive;
use kingpost::transforms::primitives::MirrorTriangle;
use kingpost::{Loaded, Mapping, Random, RelativeError};
use std::collections::BTreeMap;

/// Sums of at most some hundred products in f64, relative to the size of the result.
const TOLERANCE: f64 = 1e-13;

const TABLES: FewestOperations = FewestOperations { memory: 256 << 10, objective: Objective::Operations };

/// Operations of a kernel for one cell.
fn operations(kernel: &Kernel) -> u64 {
    let params = kernel.vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), 1)).collect();
    Analysis::of(kernel).statistics(&params).unwrap().flops()
}

fn lowered(form: &Form) -> MeshForm {
    MeshForm::new(form, &LoweringOptions::new("form").with_matrix(MatrixResult::Cells)).unwrap()
}

fn fewest(form: &MeshForm, args: FewestOperations) -> Kernel {
    args.before(Sequential {}).apply(&form.kernels()[0].kernel).unwrap().0
}

/// The forms of Luporini et al. 2017, §7.1, with `nf` functions of the degree of the elements.
fn helmholtz(q: usize, nf: usize) -> Form {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, q);
    helmholtz_of(trial(&space), &space, nf)
}

fn helmholtz_of(u: Expr, space: &FunctionSpace, nf: usize) -> Form {
    let v = test(space);
    let integrand = inner(grad(&u), grad(&v)) + u * v;
    (0..nf).fold(integrand, |all, k| coefficient(format!("f{k}"), space) * all) * dx()
}

fn mass(q: usize, nf: usize) -> Form {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, q);
    let integrand = trial(&space) * test(&space);
    (0..nf).fold(integrand, |all, k| coefficient(format!("f{k}"), &space) * all) * dx()
}

fn elasticity(q: usize, nf: usize) -> Form {
    let space = FunctionSpace::vector(CellShape::Tetrahedron, q);
    elasticity_of(trial(&space), &space, nf)
}

fn elasticity_of(u: Expr, space: &FunctionSpace, nf: usize) -> Form {
    let scalar = FunctionSpace::scalar(CellShape::Tetrahedron, space.degree());
    let strain = |w| grad(&w) + transpose(grad(&w));
    let integrand = 0.25 * inner(strain(u), strain(test(space)));
    (0..nf).fold(integrand, |all, k| coefficient(format!("f{k}"), &scalar) * all) * dx()
}

/// Functions of degree `q` on the mesh of one cube.
fn functions(q: usize, nf: usize, seed: u64) -> Inputs {
    let mut random = Random::new(seed);
    let nodes = (q + 1).pow(3);
    (0..nf).fold(Inputs::new(), |all, k| all.field(format!("f{k}"), random.numbers(nodes)))
}

/// The values of a kernel's result on a mesh of some cells.
fn values(form: &MeshForm, kernel: &Kernel, place: &str, inputs: &Inputs) -> Vec<f64> {
    let mesh = bent_mesh(3, 1);
    let mut memory = form.bind(0, &mesh, inputs).unwrap();
    if place == "interpreter" {
        interpret(kernel, &mut memory).unwrap();
        return memory.f64s(form.output(0)).unwrap().to_vec();
    }
    let device = open(place).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &memory).unwrap();
    loaded.launch().unwrap();
    loaded.f64s(form.output(0)).unwrap()
}

/// The figures of Luporini et al. 2017, §7.5 and §7.6: about 2,000 operations for Helmholtz, q = 2, and
/// 230,000 for elasticity, q = 3, nf = 2; the others, which it gives no figures for, as they were
/// counted once.
#[test]
fn there_are_few_operations() {
    let cases = [
        ("mass, q = 1", mass(1, 0), 80),
        ("Helmholtz, q = 2", helmholtz(2, 0), 1_000),
        ("Helmholtz, q = 4", helmholtz(4, 0), 11_000),
        ("Helmholtz, q = 3, nf = 2", helmholtz(3, 2), 118_000),
        ("elasticity, q = 4", elasticity(4, 0), 115_000),
        ("elasticity, q = 2, nf = 1", elasticity(2, 1), 14_000),
        ("elasticity, q = 3, nf = 2", elasticity(3, 2), 91_000),
    ];
    for (name, form, most) in of_run(cases, &[0, 1, 5]) {
        let form = lowered(&form);
        let (before, after) = (operations(&form.kernels()[0].kernel), operations(&fewest(&form, TABLES)));
        assert!(after <= most && after < before, "{name}: {after} operations, {before} before");
    }
}

/// The matrices times a random vector are the action by the reference, which shares no code with
/// lowering.
#[test]
fn matrices_are_those_of_the_reference() {
    let seed = Random::fresh_seed();
    let scalar = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let vector = FunctionSpace::vector(CellShape::Tetrahedron, 2);
    type Of = fn(Expr, &FunctionSpace, usize) -> Form;
    let cases: [(&str, Of, &FunctionSpace, usize); 4] = [
        ("Helmholtz 1", helmholtz_of, &scalar, 1),
        ("Helmholtz 2", helmholtz_of, &scalar, 2),
        ("elasticity 1", elasticity_of, &vector, 1),
        ("elasticity 2", elasticity_of, &vector, 2),
    ];
    for (name, of, space, nf) in of_run(cases, &[0, 3]) {
        let form = lowered(&of(trial(space), space, nf));
        let kernel = fewest(&form, TABLES);
        assert!(kernel.to_string().contains("moment"), "{name}: {kernel}");
        let inputs = functions(2, nf, seed);
        let block = if space == &vector { 3 } else { 1 };
        let mesh = bent_mesh(3, 1);
        let memory = form.bind(0, &mesh, &inputs).unwrap();
        let dofs = memory.get("dofs").unwrap().to_f64();
        let u = Random::new(seed ^ 1).numbers(27 * block);
        let action = of(coefficient("u", space), space, nf);
        let expected = action_of(&action, &mesh, &inputs.clone().field("u", u.clone())).unwrap();
        let lanes =
            [2, 4, 8].map(|lanes| Mapping::from(LoopLanes { lanes }).apply(&form.kernels()[0]).unwrap().0);
        let [two, four, eight] = &lanes;
        let tiles = PointTiles { cells: 4, sums: 4 };
        let tiles = TABLES.before(tiles).apply(&form.kernels()[0].kernel).unwrap().0;
        assert!(tiles.to_string().contains("point_column"), "{name}: {tiles}");
        let places = [
            ("interpreter", &kernel),
            ("c", &kernel),
            ("interpreter", two),
            ("c", four),
            ("c", eight),
            ("interpreter", &tiles),
            ("c", &tiles),
        ];
        for (place, kernel) in places {
            let matrices = values(&form, kernel, place, &inputs);
            let rows = 10 * block;
            let global = |cell: usize, i: usize| block * dofs[10 * cell + i / block] as usize + i % block;
            let mut found = vec![0.0; expected.len()];
            for (place, entry) in matrices.iter().enumerate() {
                let (cell, i, j) = (place / (rows * rows), place / rows % rows, place % rows);
                found[global(cell, i)] += entry * u[global(cell, j)];
            }
            let error = RelativeError::between(&found, &expected);
            assert!(error.is_within(1e-12), "{name}, {place}, seed {seed}: {error:?}");
        }
        // rows are whole vectors: what the columns' loop adds has no other form
        let source = generate(eight, Target::C, &Options::default()).unwrap().source;
        assert!(source.contains("*(kingpost_f64x8 *)&y_cell["), "{name}: {source}");
    }
}

/// The increase factors of Luporini et al. 2017, §4.2: 3 for a mass matrix with a function on P1
/// triangles, 6 with two, which is not below the 6 points of the rule of degree 4; and the three
/// products of tables of Figure 3.
#[test]
fn monomials_are_weighed_as_published() {
    let of = |form: &Form| {
        let form = lowered(form);
        let kernel = &form.kernels()[0].kernel;
        considered(kernel, &CellProgram::read(kernel).unwrap()).unwrap()
    };
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let (u, v) = (trial(&space), test(&space));
    let f = |k: usize| coefficient(format!("f{k}"), &space);
    let [mass] = &of(&(u.clone() * v.clone() * dx()))[..] else { panic!("one monomial") };
    assert_eq!((mass.increase, mass.monomial.products, mass.is_possible), (1, mass.monomial.elements, true));
    // 9 elements, a product instead of one at each of 3 points
    assert_eq!((mass.monomial.points, mass.theta), (3, 2 * 9 * (1 - 3)));
    let [one] = &of(&(f(0) * u.clone() * v.clone() * dx()))[..] else { panic!("one monomial") };
    assert_eq!((one.increase, one.monomial.basis, one.monomial.points), (3, Some(3), 6));
    assert!(one.theta < 0 && !one.is_possible, "{one}");
    let [two] = &of(&(f(0) * f(1) * u.clone() * v.clone() * dx()))[..] else { panic!("one monomial") };
    assert_eq!((two.increase, two.monomial.points, two.theta), (6, 6, 0));
    let [poisson] = &of(&(inner(grad(&u), grad(&v)) * dx()))[..] else { panic!("one monomial") };
    assert_eq!(poisson.monomial.products, 3 * poisson.monomial.elements);
    let [quotient] = &of(&(u / (1.0 + f(0)) * v * dx()))[..] else { panic!("one monomial") };
    assert_eq!((quotient.monomial.basis, quotient.increase, quotient.is_possible), (None, u64::MAX, false));
}

/// A monomial without functions is evaluated in advance, while another one keeps its points.
#[test]
fn monomials_of_one_loop_may_differ() {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let (u, v) = (trial(&space), test(&space));
    let form = lowered(&((inner(grad(&u), grad(&v)) + coefficient("f0", &space) * u * v) * dx()));
    let kernel = &form.kernels()[0].kernel;
    let program = CellProgram::read(kernel).unwrap();
    assert_eq!(considered(kernel, &program).unwrap().len(), 2);
    let all = bipartitions(kernel, &program, TABLES).unwrap();
    let best = all.iter().min_by(|a, b| a.cost.total_cmp(&b.cost)).unwrap();
    assert_eq!(best.in_advance.len(), 1, "{best}");
    assert_eq!(best.in_advance[0].tables, ["phi_p2_d0", "phi_p2_d1", "phi_p2_d2"]);
    let (seed, fewest) = (Random::fresh_seed(), fewest(&form, TABLES));
    assert!(operations(&fewest) <= best.operations, "{best}");
    let inputs = functions(2, 1, seed);
    let expected = values(&form, kernel, "interpreter", &inputs);
    for place in ["interpreter", "c"] {
        let error = RelativeError::between(&values(&form, &fewest, place, &inputs), &expected);
        assert!(error.is_within(TOLERANCE), "{place}, seed {seed}: {error:?}");
    }
}

/// Columns of derivatives that are zero end loops, which read consecutive columns.
#[test]
fn zero_blocks_are_skipped() {
    let form = lowered(&helmholtz(2, 1));
    let text = fewest(&form, TABLES).to_string();
    assert!(text.contains("add_moment_sum") && text.contains(" in 5..10"), "{text}");
}

/// A threshold below the tables keeps the points, unless misses are weighed against operations
/// (Luporini et al. 2017, §7.6).
#[test]
fn tables_stay_below_the_threshold() {
    let form = lowered(&elasticity(4, 0));
    let kernel = &form.kernels()[0].kernel;
    let small = FewestOperations { memory: 15 << 10, objective: Objective::Operations };
    let kept = fewest(&form, small);
    assert_eq!(kept, MirrorTriangle::new("y_cell").apply(kernel).unwrap());
    let weighed = FewestOperations { objective: Objective::OperationsAndMisses, ..small };
    assert_eq!(operations(&fewest(&form, weighed)), operations(&fewest(&form, TABLES)));
}

/// A form gives the same matrices, vectors or numbers; also where its points are kept.
#[test]
fn forms_of_every_rank_stay_what_they_are() {
    let seed = Random::fresh_seed();
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let field = || coefficient("f0", &space);
    let cases = [
        ("mass 1", mass(1, 0), 0, 1),
        ("mass 1, a function", mass(1, 1), 1, 1),
        ("Helmholtz 2", helmholtz(2, 0), 0, 1),
        ("Helmholtz 1, two functions", helmholtz(1, 2), 2, 1),
        ("elasticity 2", elasticity(2, 0), 0, 1),
        ("action of Helmholtz 2", helmholtz_of(field(), &space, 0), 1, 2),
        ("energy of Helmholtz 2", (inner(grad(field()), grad(field())) + field() * field()) * dx(), 1, 2),
    ];
    for (name, form, nf, q) in of_run(cases, &[1, 4, 5, 6]) {
        let form = lowered(&form);
        let inputs = functions(q, nf, seed);
        let expected = values(&form, &form.kernels()[0].kernel, "interpreter", &inputs);
        let mapping = TABLES.before(Mapping::single_cell());
        let mapped = mapping.apply(&form.kernels()[0].kernel).unwrap().0;
        for (kernel, place) in
            [(&fewest(&form, TABLES), "interpreter"), (&mapped, "interpreter"), (&mapped, "c")]
        {
            let found = values(&form, kernel, place, &inputs);
            let error = RelativeError::between(&found, &expected);
            assert!(error.is_within(TOLERANCE), "{name}, {place}, seed {seed}: {error:?}");
        }
    }
}

/// Evaluation in advance is the collapse to a reference matrix: the matrix of the mass operator on a
/// simplex is one table of n by n, integrals of products of basis functions, and a factor of the cell.
/// No loop over points is left. An entry takes a multiplication and an addition.
#[test]
fn mass_is_one_reference_matrix() {
    for q in 1..=4 {
        let form = lowered(&mass(q, 0));
        let kernel = fewest(&form, TABLES);
        let n = (q + 1) * (q + 2) * (q + 3) / 6;
        let tables: Vec<_> = kernel
            .vars
            .values()
            .filter_map(|v| match &v.kind {
                VarKind::Table(TableData::Real(values)) => Some((v.name.as_str(), values)),
                _ => None,
            })
            .collect();
        let [(name, values)] = tables[..] else { panic!("q = {q}: {kernel}") };
        assert_eq!(values.len(), n * n, "{name}");
        // basis functions sum to 1: a row of the matrix sums to the integral of one, all to the volume
        let volume: f64 = values.iter().map(|v| v.0).sum();
        assert!((volume - 1.0 / 6.0).abs() < 1e-14, "q = {q}: {volume}");
        if q == 1 {
            for (k, value) in values.iter().enumerate() {
                let exact = if k / n == k % n { 1.0 / 60.0 } else { 1.0 / 120.0 };
                assert!((value.0 - exact).abs() < 1e-16, "entry {k}: {}", value.0);
            }
        }
        assert!(kernel.inames.values().all(|iname| iname.name != "q"), "{kernel}");
        let (all, before) = (operations(&kernel), operations(&form.kernels()[0].kernel));
        // two for each entry, one for each row, and the geometry of a tetrahedron
        let most = (2 * n * n + n) as u64 + 24;
        assert!(all <= most && 3 * all <= before, "q = {q}: {all} operations, {before} before");
    }
}
