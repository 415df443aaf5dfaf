//! Random forms: lowered kernels agree with the reference, as they are and under every strategy.

#![allow(clippy::unwrap_used)]

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::form::*;
use kingpost_forms::lowering::{LoweringOptions, lower};
use kingpost_forms::program::CellProgram;
use kingpost_forms::reference;
use kingpost_interp::interpret;
use kingpost_sample::config;
use kingpost_strategies::Mapping;
use kingpost_strategies::tiling::TilingParameters;
use kingpost_strategies::{MultiLevelTiling, SingleCell, StagedCells, StagedTiling, StraightCells};
use proptest::prelude::*;

const CELL: CellShape = CellShape::Triangle;

fn space() -> FunctionSpace {
    FunctionSpace::scalar(CELL, 2)
}

fn vector_space() -> FunctionSpace {
    FunctionSpace::vector(CELL, 1)
}

fn u() -> Expr {
    coefficient("u", &space())
}

fn w() -> Expr {
    coefficient("w", &vector_space())
}

/// Scalars without derivatives, of size about 1.
fn value() -> impl Strategy<Value = Expr> {
    prop_oneof![
        Just(u()),
        Just(w()[0].clone()),
        Just(w()[1].clone()),
        Just(coordinate(CELL)[1].clone()),
        Just(constant("c")),
        (-2.0..2.0_f64).prop_map(Expr::from),
    ]
}

/// Scalars with at most first derivatives.
fn leaf() -> impl Strategy<Value = Expr> {
    prop_oneof![
        3 => value(),
        1 => (0..2_usize).prop_map(|k| grad(u())[k].clone()),
        1 => (0..2_usize, 0..2_usize).prop_map(|place| grad(w())[place].clone()),
        1 => (value(), value(), 0..2_usize).prop_map(|(a, b, k)| grad(u() * sin(&a) + &a * b)[k].clone()),
        1 => Just(div(w()) + curl(w())),
    ]
}

/// Derivative by a variable of a function of it.
fn slope(a: Expr, b: &Expr) -> Expr {
    let a = variable(a);
    diff(sin(&a) * b + a.pow(2) / (2.0 + b * b) + exp(-(&a * &a)), &a)
}

/// A scalar from matrices.
fn matrix(a: &Expr, b: &Expr) -> Expr {
    let m = as_matrix(2, [3.0 + sin(a), b.clone(), sin(b), 4.0 + cos(a)]);
    let e = variable(sym(&m) * transpose(&m) - identity(2));
    let s = diff(tr(&e).pow(2) + tr(&e * &e) * b, &e);
    // Of size 1, or functions of functions of it would lose all their digits.
    (inner(s, inv(&m)) + det(&m) * dot(&m * w(), w())) / 100.0
}

fn scalar() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(3, 12, 2, |inner| {
        let pair = || (inner.clone(), inner.clone());
        prop_oneof![
            pair().prop_map(|(a, b)| a + b),
            pair().prop_map(|(a, b)| a - b),
            pair().prop_map(|(a, b)| sin(a) * b),
            pair().prop_map(|(a, b)| &a / (2.0 + &b * &b)),
            pair().prop_map(|(a, b)| conditional(lt(u(), 1.0), a, -b)),
            inner.clone().prop_map(|a| cos(&a) * exp(sin(&a))),
            inner.clone().prop_map(|a| sqrt(1.0 + &a * &a) + ln(2.0 + a.pow(2))),
            inner.clone().prop_map(|a| sin(&a).pow(3) - (2.0 + cos(&a)).pow(-2) + (2.0 + sin(a)).pow(0.7)),
            pair().prop_map(|(a, b)| slope(a, &b)),
            pair().prop_map(|(a, b)| matrix(&sin(a), &cos(b))),
            inner.clone().prop_map(|a| gateaux(&a, &u(), &(u() * 0.5 + 1.0))),
        ]
    })
}

fn inputs(mesh: &Mesh, seeds: &[f64]) -> Inputs {
    let field = |space: FunctionSpace, shift: usize| -> Vec<f64> {
        let n = Numbering::new(mesh, space.degree()).unwrap().n_dofs() * space.components();
        (0..n).map(|k| 1.0 + 0.5 * (seeds[(k + shift) % seeds.len()] * (1.0 + k as f64)).sin()).collect()
    };
    Inputs::new().field("u", field(space(), 0)).field("w", field(vector_space(), 1)).constant("c", [seeds[0]])
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 400, ..config(96) })]

    #[test]
    fn random_forms_agree_with_the_reference(
        a in scalar(),
        b in scalar(),
        seeds in prop::collection::vec(0.3..1.7_f64, 5),
        linearised: bool,
    ) {
        let v = test(&space());
        let written = if linearised {
            gateaux(&(&a * &b), &u(), &v)
        } else {
            &a * &v + inner(as_vector([b, a.clone()]), grad(&v))
        };
        // Any degree will do: both sides use the same points.
        let form = written * dx().with_degree(2);
        let mesh = Mesh::unit_square(1).unwrap();
        let inputs = inputs(&mesh, &seeds).of(&form);
        let expected = reference::action(&form, &mesh, &inputs).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("random")).unwrap();
        let mut memory = lowered.bind(&mesh, &inputs).unwrap();
        interpret(&lowered.kernel, &mut memory).unwrap();
        let size = expected.iter().fold(1.0_f64, |m, y| m.max(y.abs()));
        for (found, expected) in memory.f64s("y").unwrap().iter().zip(&expected) {
            // Nested functions multiply rounding errors by their slopes, some hundred in all; a
            // wrong rule is wrong in the first digits.
            prop_assert!((found - expected).abs() <= 1e-10 * size, "{found} instead of {expected}");
        }
    }
}

/// Some mappings, with sizes that `picks` chooses.
fn mappings(program: &CellProgram, picks: &[i64]) -> Vec<Mapping> {
    let mut picks = picks.iter().copied().cycle();
    let mut up_to = |n: i64| 1 + (picks.next().unwrap_or(0) % n.max(1)).unsigned_abs();
    let single = SingleCell { cells: up_to(4) };
    // all degrees of freedom together, or in two parts
    let count = program.count().filter(|count| *count > 1 && up_to(2) == 2);
    let parts = count.map_or_else(Vec::new, |count| {
        let first = up_to(count - 1);
        vec![first, count.unsigned_abs() - first]
    });
    let staged_cells = StagedCells { cells: up_to(4), constant_tables: true };
    let straight = StraightCells { cells: up_to(4), whole_groups: up_to(2) == 2, parts };
    let mut tiling = |program: &CellProgram| {
        let points = up_to(program.blocks.iter().map(|b| b.points).max().unwrap_or(1)).cast_signed();
        let evaluations = program.blocks.iter().flat_map(|b| &b.evaluations);
        TilingParameters {
            cells: up_to(3),
            work_items_per_cell: up_to(3),
            quad_tile: points.unsigned_abs(),
            eval_rows: up_to(points),
            eval_cols: evaluations.map(|e| up_to(e.count)).collect(),
            quad_rows: up_to(program.results[0].count),
            quad_cols: up_to(points),
        }
    };
    let (plain, staged) = (tiling(program), tiling(&program.with_shared_columns()));
    vec![
        single.into(),
        staged_cells.into(),
        straight.into(),
        MultiLevelTiling(plain).into(),
        StagedTiling(staged).into(),
    ]
}

proptest! {
    // a case maps a form five times, each of about a hundred proved steps
    #![proptest_config(ProptestConfig { max_shrink_iters: 40, ..config(6) })]

    #[test]
    fn every_strategy_maps_random_forms_of_several_rules(
        terms in prop::collection::vec(leaf(), 3),
        seeds in prop::collection::vec(0.3..1.7_f64, 5),
        rules in 1..4_usize,
        picks in prop::collection::vec(0..1000_i64, 16),
        derivative: bool,
    ) {
        let v = test(&space());
        let [a, b, c] = [&terms[0], &terms[1], &terms[2]];
        let parts = [a * &v, inner(as_vector([b.clone(), a.clone()]), grad(&v)), c * u() * &v];
        let measure = |k: usize| match k {
            2 => dx().with_degree(3).with_scheme(QuadratureScheme::CollapsedGaussJacobi),
            k => dx().with_degree(k + 1 + usize::from(derivative)),
        };
        let form = (1..rules).fold(&parts[0] * measure(0), |sum, k| sum + &parts[k] * measure(k));
        let mesh = Mesh::unit_square(1).unwrap();
        let inputs = inputs(&mesh, &seeds).of(&form);
        let expected = reference::action(&form, &mesh, &inputs).unwrap();
        let lowered = lower(&form, &LoweringOptions::new("random")).unwrap();
        prop_assert_eq!(&CellProgram::read(&lowered.kernel).unwrap(), &lowered.program);
        for mapping in mappings(&lowered.program, &picks) {
            let mapped = mapping.apply(&lowered);
            let (kernel, recipe) = mapped.map_err(|e| TestCaseError::fail(format!("{mapping}: {e}")))?;
            prop_assert_eq!(&recipe.apply(&lowered.kernel).unwrap(), &kernel);
            let mut memory = lowered.bind(&mesh, &inputs).unwrap();
            interpret(&kernel, &mut memory).unwrap();
            let size = expected.iter().fold(1.0_f64, |m, y| m.max(y.abs()));
            for (found, expected) in memory.f64s("y").unwrap().iter().zip(&expected) {
                // as above; sums in another order
                prop_assert!((found - expected).abs() <= 1e-10 * size, "{mapping}: {found} instead of {expected}");
            }
        }
    }
}
