//! Lagrange elements against basix's tables and against what defines them.
#![allow(clippy::unwrap_used)]

use kingpost_fem::element::{CellShape, ElementError, LagrangeElement, orthonormal};
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use serde_json::Value;

const SHAPES: [CellShape; 2] = [CellShape::Triangle, CellShape::Tetrahedron];

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// The largest difference relative to the largest entry of `expected`.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    found.iter().zip(expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs())) / scale
}

#[test]
fn tables_are_those_of_basix() {
    let golden = include_str!("../data/lagrange_equispaced.jsonl");
    assert_eq!(golden.lines().count(), 14);
    for line in golden.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let shape = if case["shape"] == "triangle" { CellShape::Triangle } else { CellShape::Tetrahedron };
        let degree = usize::try_from(case["degree"].as_u64().unwrap()).unwrap();
        let element = LagrangeElement::new(shape, degree).unwrap();
        // 1e-15: both nodes are a quotient of small integers, rounded at most twice.
        assert!(distance(element.points(), &flat(&case["nodes"])) < 1e-15);
        let table = element.tabulate(&flat(&case["points"])).unwrap();
        // 5e-14: both sides solve with a Vandermonde matrix; ours is within 5e-15 of exact values.
        assert!(distance(&table.values, &flat(&case["tables"][0])) < 5e-14, "{shape} P{degree}");
        for (axis, gradient) in table.gradients.iter().enumerate() {
            let expected = flat(&case["tables"][axis + 1]);
            assert!(distance(gradient, &expected) < 5e-14, "{shape} P{degree} along {axis}");
        }
    }
}

/// The factor of one barycentric coordinate in an equispaced basis function: 1 at `count / degree`,
/// 0 at the smaller multiples; with its derivative.
fn factor(count: usize, degree: usize, x: f64) -> (f64, f64) {
    (0..count).fold((1.0, 0.0), |(value, slope), m| {
        let linear = (degree as f64 * x - m as f64) / (count - m) as f64;
        (value * linear, slope * linear + value * degree as f64 / (count - m) as f64)
    })
}

/// The closed form of equispaced basis functions, as the product of one factor for each vertex.
#[test]
fn tables_are_products_of_linear_factors() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut state = seed | 1;
    let mut random = || {
        // Knuth's linear congruential generator; its high bits are random enough for points.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.05 + (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    for shape in SHAPES {
        let corners = shape.n_vertices();
        for degree in 1..=LagrangeElement::max_degree(shape) {
            let element = LagrangeElement::new(shape, degree).unwrap();
            let parts: Vec<f64> = (0..corners).map(|_| random()).collect();
            let point: Vec<f64> = parts[1..].iter().map(|p| p / parts.iter().sum::<f64>()).collect();
            let barycentric = |p: &[f64]| {
                std::iter::once(1.0 - p.iter().sum::<f64>()).chain(p.iter().copied()).collect::<Vec<_>>()
            };
            let mut expected = vec![Vec::new(); corners];
            for node in element.points().chunks(shape.dim()) {
                let counts = barycentric(node).into_iter().map(|x| (x * degree as f64).round() as usize);
                let factors: Vec<_> =
                    counts.zip(barycentric(&point)).map(|(n, x)| factor(n, degree, x)).collect();
                let slope = |v: usize| {
                    let one = |(w, f): (usize, &(f64, f64))| if v == w { f.1 } else { f.0 };
                    factors.iter().enumerate().map(one).product::<f64>()
                };
                expected[0].push(factors.iter().map(|f| f.0).product());
                (1..corners).for_each(|v| expected[v].push(slope(v) - slope(0)));
            }
            let table = element.tabulate(&point).unwrap();
            // 5e-14: ten times the largest error seen at many points.
            assert!(distance(&table.values, &expected[0]) < 5e-14, "{shape} P{degree}");
            for (gradient, expected) in table.gradients.iter().zip(&expected[1..]) {
                assert!(distance(gradient, expected) < 5e-14, "{shape} P{degree}");
            }
        }
    }
}

#[test]
fn basis_is_nodal_to_the_last_bit() {
    for shape in SHAPES {
        for degree in 1..=LagrangeElement::max_degree(shape) {
            let element = LagrangeElement::new(shape, degree).unwrap();
            let table = element.tabulate(element.points()).unwrap();
            for (i, row) in table.values.chunks(element.dim()).enumerate() {
                assert!(
                    row.iter().enumerate().all(|(j, v)| *v == f64::from(u8::from(i == j))),
                    "{shape} {degree}"
                );
            }
        }
    }
}

#[test]
fn values_sum_to_one_and_gradients_to_zero() {
    for shape in SHAPES {
        for degree in 1..=LagrangeElement::max_degree(shape) {
            let element = LagrangeElement::new(shape, degree).unwrap();
            let points = rule(shape, 9, QuadratureScheme::Default).unwrap().points;
            let table = element.tabulate(&points).unwrap();
            for row in table.values.chunks(element.dim()) {
                // 1e-13: a sum of at most 84 terms of size up to 10 in f64.
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-13);
            }
            for row in table.gradients.iter().flat_map(|g| g.chunks(element.dim())) {
                let size: f64 = row.iter().map(|v| v.abs()).sum();
                assert!(row.iter().sum::<f64>().abs() < 1e-13 * size.max(1.0));
            }
        }
    }
}

#[test]
fn recurrences_are_orthonormal() {
    for shape in SHAPES {
        let degree = LagrangeElement::max_degree(shape);
        let rule = rule(shape, 2 * degree, QuadratureScheme::CollapsedGaussJacobi).unwrap();
        let table = orthonormal(shape, degree, &rule.points);
        let n = table.n_functions;
        for i in 0..n {
            for j in 0..n {
                let rows = table.values.chunks(n).zip(&rule.weights);
                let product: f64 = rows.map(|(row, w)| w * row[i] * row[j]).sum();
                // 1e-12: functions reach sqrt(2 volume^-1) (degree + 1)^2, about 300, at the
                // corners.
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{shape} {i} {j}: {product}");
            }
        }
    }
}

#[test]
fn entity_dofs_lie_on_their_entity() {
    for shape in SHAPES {
        for degree in 1..=LagrangeElement::max_degree(shape) {
            let element = LagrangeElement::new(shape, degree).unwrap();
            let mut next = 0;
            for dim in 0..=shape.dim() {
                for (entity, vertices) in shape.entities(dim).iter().enumerate() {
                    let dofs = element.entity_dofs(dim, entity);
                    assert_eq!(dofs.start, next);
                    next = dofs.end;
                    for dof in dofs {
                        let point = &element.points()[dof * shape.dim()..][..shape.dim()];
                        let first = 1.0 - point.iter().sum::<f64>();
                        for (v, count) in std::iter::once(first).chain(point.iter().copied()).enumerate() {
                            assert_eq!(count.abs() > 1e-12, vertices.contains(&v));
                        }
                    }
                }
            }
            assert_eq!(next, element.dim());
        }
    }
    let element = LagrangeElement::new(CellShape::Triangle, 3).unwrap();
    assert_eq!(element.entity_dofs(1, 3), 0..0);
    assert_eq!(element.entity_dofs(3, 0), 0..0);
}

#[test]
fn refuses_degrees_out_of_range() {
    for (shape, degree, max) in
        [(CellShape::Triangle, 0, 8), (CellShape::Triangle, 9, 8), (CellShape::Tetrahedron, 7, 6)]
    {
        let error = LagrangeElement::new(shape, degree).unwrap_err();
        assert_eq!(error, ElementError::Degree { shape, degree, max });
        assert_eq!(
            error.to_string(),
            format!("Lagrange degree {degree} on a {shape}: supported are 1 to {max}")
        );
    }
}

#[test]
fn refuses_half_a_point() {
    let element = LagrangeElement::new(CellShape::Triangle, 1).unwrap();
    assert_eq!(element.tabulate(&[0.1, 0.2, 0.3]).unwrap_err(), ElementError::Points { length: 3, dim: 2 });
}
