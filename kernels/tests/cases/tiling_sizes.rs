//! The sizes that the multi-level tiling (Kulkarni & Klöckner 2025) reads from kernels of forms.
#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost_fem::element::{CellShape, ElementFamily};
use kingpost_forms::form::{Form, FunctionSpace, coefficient, div, dx, grad, inner, split, test};
use kingpost_forms::lowering::{LoweringOptions, TabulatedOptions, lower, lower_tabulated, tabulate};
use kingpost_forms::program::NotAnAction;
use kingpost_kernels::Operator;
use kingpost_strategies::tiling::{SpaceSizes, TilingSizes, tiling_sizes};

fn sizes(operator: Operator, dim: usize, degree: usize) -> TilingSizes {
    let form = operator.form(dim, degree).unwrap();
    let lowered = lower(&form, &LoweringOptions::new("k")).unwrap();
    let sizes = tiling_sizes(&lowered).unwrap();
    assert_eq!(lowered.points, [sizes.quadrature_points as usize]);
    sizes
}

#[test]
fn operators_have_the_sizes_of_their_forms() {
    let degrees = [(2, 1), (2, 8), (3, 1), (3, 2), (3, 4)];
    for (operator, (dim, degree)) in Operator::ALL.into_iter().flat_map(|o| degrees.map(move |d| (o, d))) {
        let s = sizes(operator, dim, degree);
        let nodes = (1..=dim).fold(1, |n, k| n * (degree + k) / k) as u64;
        let (matrices, names) = match operator {
            Operator::Mass => (1, vec!["u"]),
            Operator::Helmholtz => (dim + 1, vec!["u"]),
            Operator::Laplace | Operator::Elasticity => (dim, vec!["u"]),
            Operator::Hyperelasticity => (dim, vec!["u", "du"]),
        };
        let components = if operator.is_vector() { dim } else { 1 };
        let space = |name: &str| SpaceSizes {
            name: name.into(),
            nodes,
            components: components as u64,
            derivatives: (components * matrices) as u64,
            matrices: matrices as u64,
        };
        let trial: Vec<SpaceSizes> = names.into_iter().map(space).collect();
        assert_eq!((s.trial, s.word_bytes), (trial, 8), "{operator} {dim}-D P{degree}");
        assert_eq!(s.test, space(&s.test.name), "{operator} {dim}-D P{degree}");
    }
}

/// The sizes of the kernels of a form on any spaces, one a sub-element of its test function.
fn kernels(form: &Form) -> Vec<TilingSizes> {
    let mut tabulated = tabulate(form, &LoweringOptions::new("k")).unwrap();
    // cells of one orientation have nothing to transform
    tabulated.spaces.iter_mut().for_each(|space| space.transforms.clear());
    let options = TabulatedOptions { split_results: true, ..TabulatedOptions::default() };
    let kernels = lower_tabulated(&tabulated, &options).unwrap();
    kernels.iter().map(|k| tiling_sizes(k).unwrap()).collect()
}

/// The nodes and derivatives of the trial functions, then those of the test function.
fn row(s: &TilingSizes) -> (Vec<(u64, u64)>, (u64, u64)) {
    let sizes = |s: &SpaceSizes| (s.nodes, s.derivatives);
    (s.trial.iter().map(sizes).collect(), sizes(&s.test))
}

/// Kulkarni & Klöckner 2025, Table 2, row by row.
#[test]
fn sizes_are_those_of_table_2() {
    let scalar = |cell| {
        let space = FunctionSpace::scalar(cell, 2);
        (coefficient("u", &space), test(&space))
    };
    let of = |form: Form| kernels(&form).iter().map(row).collect::<Vec<_>>();
    let (u, v) = scalar(CellShape::Interval);
    assert_eq!(of(u * v * dx()), [(vec![(3, 1)], (3, 1))]);
    let (u, v) = scalar(CellShape::Triangle);
    assert_eq!(of(&u * &v * dx()), [(vec![(6, 1)], (6, 1))]);
    assert_eq!(of(inner(grad(u), grad(v)) * dx()), [(vec![(6, 2)], (6, 2))]);

    let cell = CellShape::Triangle;
    let flux = FunctionSpace::of(cell, ElementFamily::BrezziDouglasMarini, 3);
    let space = FunctionSpace::mixed(cell, [flux, FunctionSpace::discontinuous(cell, 2)]);
    let (w, z) = (split(&coefficient("w", &space)), split(&test(&space)));
    let form = (inner(&w[0], &z[0]) + &w[1] * div(&z[0]) + &z[1] * div(&w[0])) * dx();
    let [flux, potential] = <[_; 2]>::try_from(of(form)).unwrap();
    assert_eq!(flux, (vec![(20, 2), (6, 1)], (20, 6)));
    // the table lists the potential, of which nothing is evaluated, with no derivative
    assert_eq!(potential, (vec![(20, 4)], (6, 1)));
}

#[test]
fn other_kernels_are_refused() {
    let text = "kernel copy\n\nparam n: i32\narg y: f64[n] out\narg x: f64[n] in\n\nfor i in 0..n\n  s: y[i] = x[i]\n";
    let error = tiling_sizes(&kingpost_ir::text::parse(text).unwrap()).unwrap_err();
    let found = "no instruction has the tag `scatter`".into();
    assert_eq!(error, NotAnAction { kernel: "copy".into(), found });
}
