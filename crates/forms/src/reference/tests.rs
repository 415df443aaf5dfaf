//! The reference against integrals known in closed form.

#![allow(clippy::unwrap_used)]

use super::action;
use crate::form::*;
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;

/// Degrees of freedom of the interpolant of a function with some components.
fn interpolate(mesh: &Mesh, degree: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let numbering = Numbering::new(mesh, degree).unwrap();
    numbering.dof_points(mesh).chunks(mesh.shape().dim()).flat_map(f).collect()
}

fn dot_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// A few hundred terms of size below 1 in f64.
const TOLERANCE: f64 = 1e-13;

#[test]
fn laplace_of_polynomials_is_exact() {
    let mesh = Mesh::unit_cube(2).unwrap();
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 3);
    let form = inner(grad(coefficient("u", &space)), grad(test(&space))) * dx();
    let u = interpolate(&mesh, 3, |x| vec![x[0] * x[0] * x[2]]);
    let v = interpolate(&mesh, 3, |x| vec![x[0] * x[1]]);
    let y = action(&form, &mesh, &Inputs::new().field("u", u)).unwrap();
    // integral of 2 x z * y
    assert!((dot_product(&v, &y) - 0.25).abs() < TOLERANCE);
}

#[test]
fn every_operation_on_vectors_and_matrices() {
    let mesh = Mesh::unit_cube(1).unwrap();
    let cell = CellShape::Tetrahedron;
    let (space, test_space) = (FunctionSpace::vector(cell, 2), FunctionSpace::scalar(cell, 1));
    let (u, v) = (coefficient("u", &space), test(&test_space));
    let x = coordinate(cell);
    let field = interpolate(&mesh, 2, |x| vec![x[1] * x[2], x[0] * x[0], x[0] + x[2] * x[2]]);
    let a = as_matrix(3, [2.0, 1.0, 0.0, 0.0, 3.0, 0.0, 1.0, 0.0, 4.0]);
    // grad u = [[0, z, y], [2x, 0, 0], [1, 0, 2z]]; mean of x, y, z on the cube is 1/2, of squares
    // 1/3, of products 1/4
    let cases = [
        (div(&u), 1.0),
        (inner(curl(&u), as_vector([1.0, 10.0, 100.0])), 10.0 * (0.5 - 1.0) + 100.0 * (1.0 - 0.5)),
        (tr(grad(&u) * &a), 0.5 + 1.0 + 4.0 * 2.0 * 0.5),
        (inner(sym(grad(&u)), &a), 0.5 * (0.5 + 1.0) + 0.5 * (0.5 + 1.0) + 1.0 * 4.0),
        (det(&a), 24.0),
        (tr(inv(&a) * &a) + inv(&a)[(0, 1)].clone(), 3.0 - 4.0 / 24.0),
        (dot(&u, &x), 0.125 + 0.5 / 3.0 + 0.25 + 0.25),
        (outer(&x, &u)[(1, 2)].clone(), 0.25 + 0.5 / 3.0),
        (inner(transpose(grad(&u)), grad(&u)), 2.0 * (0.5 * 1.0) + 2.0 * 0.5 + 4.0 / 3.0),
        // 1 + 2z - 2xz - 4xzz - y
        (det(identity(3) + grad(&u)), 1.0 + 1.0 - 0.5 - 4.0 / 6.0 - 0.5),
    ];
    for (integrand, expected) in cases {
        let form = &integrand * &v * dx();
        let y = action(&form, &mesh, &Inputs::new().field("u", field.clone()).of(&form)).unwrap();
        let found: f64 = y.iter().sum();
        assert!((found - expected).abs() < TOLERANCE, "{integrand}: {found} instead of {expected}");
    }
}

#[test]
fn derivatives_by_coefficients_variables_and_position() {
    let mesh = Mesh::unit_square(2).unwrap();
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, v) = (coefficient("u", &space), test(&space));
    let field = interpolate(&mesh, 2, |x| vec![1.0 + x[0] * x[1] + x[0]]);
    let inputs = Inputs::new().field("u", field).constant("c", [1.5]);
    let w = variable(&u);
    let g = variable(grad(&u));
    let c = constant("c");
    // left: by the reference's own differentiation; right: by hand
    let cases = [
        (gateaux(&exp(&u), &u, &v), exp(&u) * &v),
        (gateaux(&ln(&u), &u, &v), &v / &u),
        (gateaux(&sqrt(&u), &u, &v), &v / (2.0 * sqrt(&u))),
        (gateaux(&(sin(&u) * cos(&u)), &u, &v), (cos(&u).pow(2) - sin(&u).pow(2)) * &v),
        (gateaux(&tan(&u / 4.0), &u, &v), 0.25 * &v / cos(&u / 4.0).pow(2)),
        (
            gateaux(&gateaux(&tan(&u / 4.0), &u, &v), &u, &u),
            0.125 * &u * tan(&u / 4.0) / cos(&u / 4.0).pow(2) * &v,
        ),
        (gateaux(&asin(&u / 4.0), &u, &v), &v / sqrt(16.0 - u.pow(2))),
        (gateaux(&gateaux(&acos(&u / 4.0), &u, &v), &u, &u), -u.pow(2) * &v / (16.0 - u.pow(2)).pow(1.5)),
        (gateaux(&atan(&u), &u, &v), &v / (1.0 + u.pow(2))),
        (gateaux(&gateaux(&atan(&u), &u, &v), &u, &u), -2.0 * u.pow(2) * &v / (1.0 + u.pow(2)).pow(2)),
        (gateaux(&sinh(&u), &u, &v), (exp(&u) + exp(-&u)) / 2.0 * &v),
        (gateaux(&cosh(&u), &u, &v), (exp(&u) - exp(-&u)) / 2.0 * &v),
        (gateaux(&tanh(&u), &u, &v), &v / cosh(&u).pow(2)),
        (gateaux(&gateaux(&tanh(&u), &u, &v), &u, &u), -2.0 * &u * tanh(&u) / cosh(&u).pow(2) * &v),
        (abs(1.7 - &u) * &v, sign(&u - 1.7) * (&u - 1.7) * &v),
        (minimum(&u, 1.7) * &v + maximum(&u, 1.7) * &v, (&u + 1.7) * &v),
        (gateaux(&maximum(&u, 1.7), &u, &v), conditional(ge(&u, 1.7), &v, 0.0 * &v)),
        (gateaux(&u.pow(-2), &u, &v), -2.0 * &v / u.pow(3)),
        (gateaux(&u.pow(&u), &u, &v), u.pow(&u) * (ln(&u) + 1.0) * &v),
        (gateaux(&dot(grad(&u), grad(&u)), &u, &v), 2.0 * dot(grad(&u), grad(&v))),
        (diff(w.pow(3), &w) * &v, 3.0 * u.pow(2) * &v),
        (diff(diff(w.pow(3) * &c, &w) * &w, &w) * &v, 9.0 * &c * u.pow(2) * &v),
        (
            inner(diff(dot(&g, &g).pow(2), &g), grad(&v)),
            4.0 * dot(grad(&u), grad(&u)) * dot(grad(&u), grad(&v)),
        ),
        (gateaux(&gateaux(&u.pow(3), &u, &v), &u, &u), 6.0 * u.pow(2) * &v),
        (inner(grad(u.pow(2)), grad(&v)), 2.0 * &u * inner(grad(&u), grad(&v))),
        (gateaux(&grad(&u * &u)[0], &u, &v), 2.0 * &grad(&u)[0] * &v + 2.0 * &u * &grad(&v)[0]),
        (conditional(lt(&u, 1.7), &u * &v, &v / &u), conditional(ge(&u, 1.7), &v / &u, &u * &v)),
    ];
    for (found, expected) in cases {
        let measure = dx().with_degree(9);
        let sum = |form: Form| action(&form, &mesh, &inputs.of(&form)).unwrap();
        let (a, b) = (sum(&found * measure), sum(&expected * measure));
        let worst = a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        let size = b.iter().map(|y| y.abs()).fold(0.0, f64::max);
        assert!(size > 1e-3 && worst < TOLERANCE * size.max(1.0), "{found}: {worst} of {size}");
    }
}

#[test]
fn mistakes_are_reported() {
    let mesh = Mesh::unit_square(1).unwrap();
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let (u, v) = (coefficient("u", &space), test(&space));
    let given = || Inputs::new().field("u", vec![1.0; 4]);
    let error = |integrand: Expr, inputs: Inputs| action(&(integrand * dx()), &mesh, &inputs).unwrap_err();
    assert!(matches!(error(&u * &v, Inputs::new()), FormError::Missing { .. }));
    assert!(matches!(
        error(&u * &v, Inputs::new().field("u", vec![1.0])),
        FormError::Length { found: 1, .. }
    ));
    assert!(matches!(error(&u * &v * &v, given()), FormError::NotLinear { .. }));
    assert!(matches!(error(&u * (1.0 + &v), given()), FormError::NotLinear { .. }));
    assert!(matches!(error(&u * trial(&space) * &v, given()), FormError::TrialLeft));
    assert!(matches!(error(u.clone(), given()), FormError::NoTest { .. }));
    assert!(matches!(error(div(grad(&u)) * &v, given()), FormError::Order { order: 2, .. }));
    assert!(matches!(error(constant("c") * &v, Inputs::new()), FormError::Missing { .. }));
}
