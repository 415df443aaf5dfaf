//! `v . A u` by compiled kernels, for polynomials `u` and `v` on the Gmsh mesh and on triangles,
//! against integrals in closed form that know no elements, no quadrature and no lowering.
//!
//! Lagrange interpolation of degree `p` keeps a polynomial of degree `p`, and the quadrature rules
//! are exact for the products that arise, so the two numbers differ by rounding alone.

#![allow(clippy::unwrap_used)]

use crate::polynomial::{Frame, Moments, Polynomial, Samples, Sum};
use crate::support::{bent_mesh, devices, of_run};
use kingpost::codegen::{Options, generate};
use kingpost::forms::form::Inputs;
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::kernels::Operator;
use kingpost::runtime::{Device, open};
use kingpost::{Loaded, Mapping, Random, RelativeError, transform};
use std::path::Path;

/// Relative to the sum of absolute contributions, each of which is right to some hundred roundings
/// of 1e-16.
const TOLERANCE: f64 = 1e-13;

type Field = Vec<Polynomial>;
type Matrix = Vec<Vec<Polynomial>>;

fn bracket() -> Mesh {
    Mesh::read_gmsh(&Path::new(env!("CARGO_MANIFEST_DIR")).join("meshes/bracket.msh")).unwrap()
}

/// Entry by entry.
fn matrix(dim: usize, entry: impl Fn(usize, usize) -> Polynomial) -> Matrix {
    (0..dim).map(|i| (0..dim).map(|j| entry(i, j)).collect()).collect()
}

fn total(terms: impl Iterator<Item = Polynomial>) -> Polynomial {
    terms.fold(Polynomial::default(), |sum, term| &sum + &term)
}

fn plus(a: &Matrix, b: &Matrix) -> Matrix {
    matrix(a.len(), |i, j| &a[i][j] + &b[i][j])
}

fn unit(dim: usize, factor: &Polynomial) -> Matrix {
    matrix(dim, |i, j| if i == j { factor.clone() } else { Polynomial::default() })
}

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    matrix(a.len(), |i, j| total((0..a.len()).map(|k| &a[i][k] * &b[k][j])))
}

fn transpose(a: &Matrix) -> Matrix {
    matrix(a.len(), |i, j| a[j][i].clone())
}

fn sym(a: &Matrix) -> Matrix {
    matrix(a.len(), |i, j| (&a[i][j] + &a[j][i]).scaled(0.5))
}

fn trace(a: &Matrix) -> Polynomial {
    total((0..a.len()).map(|i| a[i][i].clone()))
}

fn contract(a: &Matrix, b: &Matrix) -> Polynomial {
    total(a.iter().flatten().zip(b.iter().flatten()).map(|(x, y)| x * y))
}

/// Rows are the gradients of the components.
fn grad(field: &Field, frame: &Frame) -> Matrix {
    field.iter().map(|component| component.gradient(frame)).collect()
}

/// `lambda tr(e) I + 2 mu e`.
fn isotropic(e: &Matrix, (lambda, mu): (f64, f64)) -> Matrix {
    plus(&unit(e.len(), &trace(e).scaled(lambda)), &matrix(e.len(), |i, j| e[i][j].scaled(2.0 * mu)))
}

/// The derivative of `P = F S`, `S = lambda tr(E) I + 2 mu E`, `E = (F^T F - I) / 2`, `F = I + at`
/// in the direction `along` of displacement gradients (Kulkarni & Klöckner 2025, A.5–A.8).
fn stress(at: &Matrix, along: &Matrix, lame: (f64, f64)) -> Matrix {
    let dim = at.len();
    let f = plus(&unit(dim, &Polynomial::constant(1.0)), at);
    let c = times(&transpose(&f), &f);
    let e = plus(&c, &unit(dim, &Polynomial::constant(-1.0)));
    let e = matrix(dim, |i, j| e[i][j].scaled(0.5));
    let de = sym(&times(&transpose(&f), along));
    plus(&times(along, &isotropic(&e, lame)), &times(&f, &isotropic(&de, lame)))
}

/// What an operator acts on: polynomials, or values at the degrees of freedom.
struct Arguments<T> {
    /// The displacement at which hyperelasticity is linearised; empty for the others.
    at: T,
    u: T,
    lame: (f64, f64),
}

/// The integrand of `v . A u`.
fn integrand(operator: Operator, given: &Arguments<Field>, v: &Field, frame: &Frame) -> Polynomial {
    let (du, dv) = (grad(&given.u, frame), grad(v, frame));
    let values = || total(given.u.iter().zip(v).map(|(u, v)| u * v));
    match operator {
        Operator::Mass => values(),
        Operator::Laplace => contract(&du, &dv),
        Operator::Helmholtz => &contract(&du, &dv) + &values(),
        Operator::Elasticity => contract(&sym(&du), &sym(&dv)),
        Operator::Hyperelasticity => contract(&stress(&grad(&given.at, frame), &du, given.lame), &dv),
    }
}

/// Highest degree of the integrand.
fn integrand_degree(operator: Operator, degree: usize) -> usize {
    match operator {
        Operator::Mass | Operator::Helmholtz => 2 * degree,
        Operator::Laplace | Operator::Elasticity => 2 * degree - 2,
        Operator::Hyperelasticity => 4 * degree - 4,
    }
}

/// `A u` by a kernel under the single-cell strategy; `rule` is the degree of the quadrature if not
/// the default.
fn action(
    device: &dyn Device,
    operator: Operator,
    degree: usize,
    rule: Option<usize>,
    mesh: &Mesh,
    given: &Arguments<Vec<f64>>,
) -> Vec<f64> {
    let form = operator.form(mesh.shape().dim(), degree).unwrap();
    let options = LoweringOptions::new("action");
    let lowered = lower(&form, &rule.map_or(options.clone(), |d| options.with_degree(d))).unwrap();
    let (kernel, _) = transform(&lowered.kernel, &Mapping::single_cell()).unwrap();
    let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
    let inputs = Inputs::new().field(operator.acts_on(), given.u.clone());
    let inputs = match operator {
        Operator::Mass | Operator::Helmholtz | Operator::Laplace | Operator::Elasticity => inputs,
        Operator::Hyperelasticity => {
            let (lambda, mu) = given.lame;
            inputs.field("u", given.at.clone()).constant("lambda", [lambda]).constant("mu", [mu])
        }
    };
    let loaded = Loaded::new(device, &program, &lowered.bind(mesh, &inputs).unwrap()).unwrap();
    loaded.launch().unwrap();
    loaded.f64s("y").unwrap()
}

/// A scalar or a vector of polynomials.
fn random_field(operator: Operator, dim: usize, degree: usize, size: f64, random: &mut Random) -> Field {
    let components = if operator.is_vector() { dim } else { 1 };
    (0..components).map(|_| Polynomial::random(dim, degree, random).scaled(size)).collect()
}

/// Values at the degrees of freedom.
fn interpolate(field: &Field, points: &Samples) -> Vec<f64> {
    let components: Vec<Vec<f64>> = field.iter().map(|f| points.values(f)).collect();
    let n = components.first().map_or(0, Vec::len);
    (0..n).flat_map(|k| components.iter().map(move |c| c[k])).collect()
}

/// The points of the degrees of freedom of `mesh`, to evaluate polynomials of degree `top`.
fn dof_points(mesh: &Mesh, degree: usize, frame: &Frame, top: usize) -> Samples {
    Samples::new(frame, &Numbering::new(mesh, degree).unwrap().dof_points(mesh), top)
}

/// `a . b` and the sum of the absolute products.
fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let (mut sum, mut size) = (Sum::default(), 0.0);
    for (x, y) in a.iter().zip(b) {
        sum.add(x * y);
        size += (x * y).abs();
    }
    (sum.total(), size)
}

fn random_arguments(operator: Operator, dim: usize, degree: usize, random: &mut Random) -> Arguments<Field> {
    // A displacement of a tenth, so that no part of the stress drowns another.
    let at = match operator {
        Operator::Mass | Operator::Helmholtz | Operator::Laplace | Operator::Elasticity => Field::new(),
        Operator::Hyperelasticity => random_field(operator, dim, degree, 0.1, random),
    };
    let u = random_field(operator, dim, degree, 1.0, random);
    Arguments { at, u, lame: (1.0 + 0.5 * random.number(), 1.0 + 0.5 * random.number()) }
}

/// Two results per degree and device, each relative to the sum of absolute contributions.
fn check(operator: Operator, mesh: &Mesh, degrees: std::ops::RangeInclusive<usize>) {
    let (seed, dim) = (Random::fresh_seed(), mesh.shape().dim());
    let mut random = Random::new(seed);
    let moments = Moments::new(mesh, integrand_degree(operator, *degrees.end()));
    // each degree of a case on one of them
    let devices = devices();
    for (k, degree) in degrees.enumerate() {
        let points = dof_points(mesh, degree, &moments.frame, degree);
        let given = random_arguments(operator, dim, degree, &mut random);
        let (at, u) = (interpolate(&given.at, &points), interpolate(&given.u, &points));
        let values = Arguments { at, u, lame: given.lame };
        let tests = [(); 2].map(|()| {
            let v = random_field(operator, dim, degree, 1.0, &mut random);
            let exact = moments.integral(&integrand(operator, &given, &v, &moments.frame));
            (interpolate(&v, &points), exact)
        });
        for device in of_run(&devices, &[k % devices.len()]) {
            let y = action(&**device, operator, degree, None, mesh, &values);
            for (v, exact) in &tests {
                let (found, size) = dot(&y, v);
                let error = (found - exact).abs() / size;
                let what = format!("{operator} {dim}-D P{degree}, {:?}", device.info().backend);
                println!("{what}: {found:.6e}, of {size:.1e}, error {error:.1e}");
                assert!(error < TOLERANCE, "{what}, seed {seed}: {found} {exact}, of {size}");
                assert!(exact.abs() > 1e-9 * size, "{what}, seed {seed}: all cancels, which checks nothing");
            }
        }
    }
}

macro_rules! exact_for_polynomials {
    ($($name:ident: $operator:ident, $mesh:expr, $degrees:expr;)*) => { $(
        #[test]
        fn $name() {
            check(Operator::$operator, &$mesh, $degrees);
        }
    )* };
}

exact_for_polynomials! {
    mass_on_the_bracket: Mass, bracket(), 1..=4;
    helmholtz_on_the_bracket: Helmholtz, bracket(), 1..=4;
    laplace_on_the_bracket: Laplace, bracket(), 1..=4;
    elasticity_on_the_bracket: Elasticity, bracket(), 1..=4;
    hyperelasticity_on_the_bracket: Hyperelasticity, bracket(), 1..=2;
    mass_on_a_square: Mass, Mesh::unit_square(12).unwrap(), 1..=4;
    helmholtz_on_a_square: Helmholtz, Mesh::unit_square(12).unwrap(), 1..=4;
    laplace_on_a_square: Laplace, Mesh::unit_square(12).unwrap(), 1..=4;
    elasticity_on_a_square: Elasticity, Mesh::unit_square(12).unwrap(), 1..=4;
    hyperelasticity_on_a_square: Hyperelasticity, Mesh::unit_square(12).unwrap(), 1..=3;
    helmholtz_on_unlike_triangles: Helmholtz, bent_mesh(2, 9), 1..=3;
    hyperelasticity_on_unlike_triangles: Hyperelasticity, bent_mesh(2, 9), 1..=3;
}

#[test]
fn hyperelasticity_at_rest_is_linear_elasticity() {
    let (mesh, degree, seed) = (bracket(), 2, Random::fresh_seed());
    let mut random = Random::new(seed);
    let moments = Moments::new(&mesh, 2);
    let points = dof_points(&mesh, degree, &moments.frame, degree);
    let u = random_field(Operator::Hyperelasticity, 3, degree, 1.0, &mut random);
    let v = random_field(Operator::Hyperelasticity, 3, degree, 1.0, &mut random);
    let (u_values, v_values) = (interpolate(&u, &points), interpolate(&v, &points));
    let lame = (1.0 + 0.5 * random.number(), 1.0 + 0.5 * random.number());
    let strain = |field| sym(&grad(field, &moments.frame));
    let exact = moments.integral(&contract(&isotropic(&strain(&u), lame), &strain(&v)));
    let device = open("c").unwrap();
    let act = |operator, lame| {
        let given = Arguments { at: vec![0.0; u_values.len()], u: u_values.clone(), lame };
        action(&*device, operator, degree, None, &mesh, &given)
    };
    let (found, size) = dot(&act(Operator::Hyperelasticity, lame), &v_values);
    assert!((found - exact).abs() < TOLERANCE * size, "seed {seed}: {found} {exact}, of {size}");
    // With lambda = 0 and mu = 1/2 the stress is the strain, so every entry is that of the other
    // operator.
    let (rest, linear) = (act(Operator::Hyperelasticity, (0.0, 0.5)), act(Operator::Elasticity, lame));
    let error = RelativeError::between(&rest, &linear);
    assert!(error.is_within(TOLERANCE) && linear.iter().any(|y| *y != 0.0), "seed {seed}: {error:?}");
}

#[test]
fn hyperelasticity_is_linear_and_symmetric_in_its_directions() {
    let (mesh, degree, seed) = (bracket(), 2, Random::fresh_seed());
    let mut random = Random::new(seed);
    let n = 3 * Numbering::new(&mesh, degree).unwrap().n_dofs();
    // Displacements that differ by 0.02 between neighbours a tenth apart strain by a fifth.
    let at: Vec<f64> = random.numbers(n).into_iter().map(|x| 0.02 * x).collect();
    let (u, v) = (random.numbers(n), random.numbers(n));
    let device = open("c").unwrap();
    let act = |u: &[f64]| {
        let given = Arguments { at: at.clone(), u: u.to_vec(), lame: (0.7, 0.4) };
        action(&*device, Operator::Hyperelasticity, degree, None, &mesh, &given)
    };
    let (au, av) = (act(&u), act(&v));
    let ((v_au, size), (u_av, _)) = (dot(&v, &au), dot(&u, &av));
    assert!((v_au - u_av).abs() < TOLERANCE * size, "seed {seed}: {v_au} {u_av}, of {size}");
    assert!(v_au.abs() > 1e-9 * size, "seed {seed}: all cancels, which checks nothing");
    let combine = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| 2.0 * a - 3.0 * b).collect::<Vec<_>>();
    let error = RelativeError::between(&act(&combine(&u, &v)), &combine(&au, &av));
    assert!(error.is_within(TOLERANCE), "seed {seed}: {error:?}");
}

#[test]
fn too_weak_a_rule_and_too_low_a_degree_are_seen() {
    let mesh = Mesh::unit_square(4).unwrap();
    let mut random = Random::new(Random::fresh_seed());
    let moments = Moments::new(&mesh, 6);
    let device = open("c").unwrap();
    let points = dof_points(&mesh, 2, &moments.frame, 3);
    // Degree of the polynomials, degree of the rule, whether the result is exact.
    for (degree, rule, is_exact) in [(2, 4, true), (2, 2, false), (3, 6, false)] {
        let given = random_arguments(Operator::Mass, 2, degree, &mut random);
        let values = Arguments { at: Vec::new(), u: interpolate(&given.u, &points), lame: given.lame };
        let y = action(&*device, Operator::Mass, 2, Some(rule), &mesh, &values);
        let exact = moments.integral(&integrand(Operator::Mass, &given, &given.u, &moments.frame));
        let (found, size) = dot(&y, &values.u);
        let error = (found - exact).abs() / size;
        assert_eq!(error < TOLERANCE, is_exact, "degree {degree}, rule {rule}: {found} {exact}");
    }
}
