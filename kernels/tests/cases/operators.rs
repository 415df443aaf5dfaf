//! The 70 operator actions of Kulkarni & Klöckner 2025, lowered and interpreted, against the
//! reference.

#![allow(clippy::unwrap_used)]

use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::form::{Field, Inputs, Scalar, expand};
use kingpost_forms::lowering::{LoweringOptions, lower};
use kingpost_forms::reference;
use kingpost_interp::{Run, interpret};
use kingpost_kernels::Operator;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers in [-1, 1) from a linear congruential generator.
struct Random(u64);

impl Random {
    fn fresh() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
    }

    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Two cells that share an edge or face, moved so that no two lengths are equal.
fn two_cells(dim: usize, random: &mut Random) -> Mesh {
    let mesh = if dim == 2 { Mesh::unit_square(1) } else { Mesh::unit_cube(1) }.unwrap();
    let coordinates = mesh.coordinates().iter().map(|x| x + 0.1 * random.next()).collect();
    let cells = mesh.cells()[..2 * (dim + 1)].to_vec();
    Mesh::new(mesh.shape(), coordinates, cells, None).unwrap()
}

/// Largest error of an action relative to its largest value, and what the interpreter counted.
fn run(operator: Operator, dim: usize, degree: usize) -> (f64, Run) {
    let mut random = Random::fresh();
    println!("{operator} {dim}-D P{degree}, seed {}", random.0);
    let form = operator.form(dim, degree).unwrap();
    let options = LoweringOptions::new(operator.name()).with_scheme(QuadratureScheme::XiaoGimbutas);
    let lowered = lower(&form, &options).unwrap();
    let mesh = two_cells(dim, &mut random);
    let components = operator.space(dim, degree).unwrap().components();
    let n = Numbering::new(&mesh, degree).unwrap().n_dofs() * components;
    let mut inputs = Inputs::new();
    for name in ["u", "du"] {
        inputs = inputs.field(name, (0..n).map(|_| random.next()).collect());
    }
    let inputs = inputs.of(&lowered.form);
    let expected = reference::action(&lowered.form, &mesh, &inputs).unwrap();
    let mut memory = lowered.bind(&mesh, &inputs).unwrap();
    let run = interpret(&lowered.kernel, &mut memory).unwrap();
    let found = memory.f64s("y").unwrap();
    let size = expected.iter().fold(0.0_f64, |m, y| m.max(y.abs()));
    let error = found.iter().zip(&expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(size > 1e-6 && found.len() == expected.len(), "{size}");
    (error / size, run)
}

/// Degrees of an operator in a dimension.
fn check(operator: Operator, dim: usize) {
    for degree in 1..=if dim == 2 { 6 } else { 4 } {
        let (error, _) = run(operator, dim, degree);
        println!("  relative error {error:.1e}");
        // Sums of some hundred points times 35 nodes in f64; measured: below 1e-14.
        assert!(error <= 1e-12, "{operator} {dim}-D P{degree}: {error}");
    }
}

#[test]
fn mass_agrees_with_the_reference() {
    check(Operator::Mass, 2);
    check(Operator::Mass, 3);
}

#[test]
fn helmholtz_agrees_with_the_reference() {
    check(Operator::Helmholtz, 2);
    check(Operator::Helmholtz, 3);
}

#[test]
fn laplace_agrees_with_the_reference() {
    check(Operator::Laplace, 2);
    check(Operator::Laplace, 3);
}

#[test]
fn elasticity_agrees_with_the_reference() {
    check(Operator::Elasticity, 2);
    check(Operator::Elasticity, 3);
}

#[test]
fn hyperelasticity_agrees_with_the_reference_in_the_plane() {
    check(Operator::Hyperelasticity, 2);
}

#[test]
fn hyperelasticity_agrees_with_the_reference_in_space() {
    check(Operator::Hyperelasticity, 3);
}

/// Published operations per cell of the untransformed kernels (`flops_per_cell`).
const PUBLISHED_FLOPS: [(Operator, usize, usize, f64); 14] = [
    (Operator::Elasticity, 2, 2, 440.0),
    (Operator::Elasticity, 2, 5, 6113.0),
    (Operator::Elasticity, 3, 2, 2119.0),
    (Operator::Elasticity, 3, 4, 32585.0),
    (Operator::Helmholtz, 2, 2, 541.0),
    (Operator::Helmholtz, 3, 4, 26234.0),
    (Operator::Hyperelasticity, 2, 2, 1712.0),
    (Operator::Hyperelasticity, 2, 5, 35379.0),
    (Operator::Hyperelasticity, 3, 2, 10780.0),
    (Operator::Hyperelasticity, 3, 4, 283705.0),
    (Operator::Laplace, 2, 2, 202.0),
    (Operator::Laplace, 3, 4, 10496.0),
    (Operator::Mass, 2, 2, 164.0),
    (Operator::Mass, 3, 4, 6272.0),
];

/// From P2 on the operations are those of the published kernels, except for the pointwise stage and
/// the geometry: never 4 % more (one operation a point for the scaled weight), up to a tenth less.
#[test]
fn operations_are_near_those_published() {
    for (operator, dim, degree, published) in PUBLISHED_FLOPS {
        let (_, run) = run(operator, dim, degree);
        let ratio = run.flops() as f64 / 2.0 / published;
        println!("  {} operations per cell, {ratio:.3} of those published", run.flops() / 2);
        assert!((0.9..1.04).contains(&ratio), "{operator} {dim}-D P{degree}: {ratio}");
    }
}

#[test]
fn the_body_force_leaves_the_linearised_form() {
    let expanded = expand(&Operator::Hyperelasticity.form(2, 1).unwrap()).unwrap();
    let coefficient = |node: &Scalar| match node {
        Scalar::Jet(jet) => match jet.field {
            Field::Coefficient(k) => Some(expanded.graph.coefficients()[k].name.clone()),
            Field::Trial | Field::Test => None,
        },
        _ => None,
    };
    let used: std::collections::BTreeSet<String> =
        expanded.graph.nodes().iter().filter_map(coefficient).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["du", "u"]);
}
