//! Quadrature rules against exact integrals and published sizes.
#![allow(clippy::unwrap_used)]

use kingpost_fem::element::CellShape;
use kingpost_fem::quadrature::{MAX_DEGREE, QuadratureError, QuadratureScheme, Rule, gauss_jacobi, rule};

const SHAPES: [CellShape; 2] = [CellShape::Triangle, CellShape::Tetrahedron];

/// The exact integral of the monomial over the unit simplex: a! b! c! / (a + b + c + dim)!.
fn exact(exponents: &[usize]) -> f64 {
    let mut value = 1.0;
    let mut denominator = 1;
    for exponent in exponents {
        for factor in 1..=*exponent {
            value *= factor as f64 / denominator as f64;
            denominator += 1;
        }
    }
    for _ in exponents {
        value /= denominator as f64;
        denominator += 1;
    }
    value
}

fn monomials(dim: usize, degree: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for a in 0..=degree {
        for b in 0..=degree - a {
            if dim == 2 {
                all.push(vec![a, b]);
            } else {
                all.extend((0..=degree - a - b).map(|c| vec![a, b, c]));
            }
        }
    }
    all
}

fn check(rule: &Rule, degree: usize) {
    let dim = rule.shape.dim();
    assert!(rule.degree >= degree);
    assert!(rule.weights.iter().all(|w| *w > 0.0), "{}", rule.name);
    for point in rule.points.chunks(dim) {
        assert!(
            point.iter().all(|x| *x > 0.0) && point.iter().sum::<f64>() < 1.0,
            "{}: {point:?}",
            rule.name
        );
    }
    // Powers of each coordinate first: 1331 points times 6545 monomials leave no time for `powi` in
    // a debug build.
    let powers: Vec<Vec<f64>> = (0..dim)
        .flat_map(|axis| (0..=degree).map(move |e| (axis, e as i32)))
        .map(|(axis, e)| rule.points.iter().skip(axis).step_by(dim).map(|x| x.powi(e)).collect())
        .collect();
    for exponents in monomials(dim, degree) {
        let mut terms = rule.weights.clone();
        for (axis, exponent) in exponents.iter().enumerate() {
            terms.iter_mut().zip(&powers[axis * (degree + 1) + exponent]).for_each(|(t, p)| *t *= p);
        }
        let found: f64 = terms.iter().sum();
        let expected = exact(&exponents);
        // 1e-15 absolute: the weights sum to at most 1/2 and the monomials are at most 1, so the
        // rounding of the table (1e-16 a point) and of a sum of a few thousand positive terms stay
        // below. The relative part is that of a point's error raised to the power `degree`.
        let tolerance = 1e-15 + 2e-14 * expected;
        assert!((found - expected).abs() < tolerance, "{} {exponents:?}: {found:e} {expected:e}", rule.name);
    }
}

#[test]
fn rules_integrate_every_monomial_of_their_degree() {
    for shape in SHAPES {
        // Above degree 30 the collapsed rules take the place of tables; a few degrees stand for
        // all.
        for degree in (0..=31).chain([45, MAX_DEGREE]) {
            if shape == CellShape::Tetrahedron && degree > 22 {
                continue; // thousands of points times thousands of monomials show nothing that degree 22 does not
            }
            for scheme in [QuadratureScheme::Default, QuadratureScheme::XiaoGimbutas] {
                let rule = rule(shape, degree, scheme).unwrap();
                check(&rule, degree);
            }
        }
    }
}

#[test]
fn collapsed_rules_integrate_every_monomial_of_their_degree() {
    for shape in SHAPES {
        for degree in [0, 1, 2, 3, 7, 12, 20] {
            let rule = rule(shape, degree, QuadratureScheme::CollapsedGaussJacobi).unwrap();
            assert_eq!(rule.n_points(), (degree / 2 + 1).pow(shape.dim() as u32));
            check(&rule, degree);
        }
    }
}

/// `n!`
fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

#[test]
fn rules_on_prisms_and_pyramids_integrate_every_monomial_of_their_degree() {
    for shape in [CellShape::Prism, CellShape::Pyramid] {
        for degree in 0..=9 {
            for scheme in [QuadratureScheme::Default, QuadratureScheme::CollapsedGaussJacobi] {
                let rule = rule(shape, degree, scheme).unwrap();
                assert!(rule.degree >= degree);
                for exponents in monomials(3, degree) {
                    let [a, b, c] = exponents[..] else { unreachable!() };
                    let monomial =
                        |p: &[f64]| p[0].powi(a as i32) * p[1].powi(b as i32) * p[2].powi(c as i32);
                    let found: f64 =
                        rule.points.chunks(3).zip(&rule.weights).map(|(p, w)| w * monomial(p)).sum();
                    let (a1, b1, c1) = ((a + 1) as f64, (b + 1) as f64, (c + 1) as f64);
                    let expected = match shape {
                        CellShape::Prism => factorial(a) * factorial(b) / factorial(a + b + 2) / c1,
                        _ => factorial(c) * factorial(a + b + 2) / factorial(a + b + c + 3) / (a1 * b1),
                    };
                    // 1e-15: sums of some hundred terms of at most 1/2
                    assert!(
                        (found - expected).abs() < 1e-15 + 1e-14 * expected,
                        "{} {exponents:?}",
                        rule.name
                    );
                }
            }
        }
        let refused = rule(shape, 3, QuadratureScheme::GaussLobatto).unwrap_err();
        assert!(matches!(refused, QuadratureError::Scheme { .. }), "{refused}");
    }
}

#[test]
fn a_rule_is_not_exact_one_degree_up() {
    for shape in SHAPES {
        for degree in [2, 4, 10] {
            let rule = rule(shape, degree, QuadratureScheme::XiaoGimbutas).unwrap();
            let worst = monomials(shape.dim(), degree + 1).into_iter().fold(0.0_f64, |worst, exponents| {
                let terms = rule.points.chunks(shape.dim()).zip(&rule.weights);
                let found: f64 = terms
                    .map(|(p, w)| {
                        w * p.iter().zip(&exponents).map(|(x, e)| x.powi(*e as i32)).product::<f64>()
                    })
                    .sum();
                worst.max((found / exact(&exponents) - 1.0).abs())
            });
            assert!(worst > 1e-8, "{}", rule.name);
        }
    }
}

#[test]
fn sizes_are_the_published_ones() {
    // Xiao & Gimbutas as tabulated by basix 0.11.
    let triangle = [
        1, 3, 6, 6, 7, 12, 15, 16, 19, 25, 28, 33, 37, 42, 49, 55, 60, 67, 73, 79, 87, 96, 103, 112, 120,
        130, 141, 150, 159, 171,
    ];
    let tetrahedron = [1, 4, 6, 11, 14, 23, 31, 44, 57, 74, 95, 122, 146, 177, 214];
    // Jaśkowiec & Sukumar 2020, table 1, which has fewer points from degree 11 on.
    let best = [1, 4, 6, 11, 14, 23, 31, 44, 57, 74, 94, 117, 144, 175, 207, 247, 288, 338, 392, 448];
    let size = |shape, degree, scheme| rule(shape, degree, scheme).unwrap().n_points();
    let (exact, default) = (QuadratureScheme::XiaoGimbutas, QuadratureScheme::Default);
    for (i, points) in triangle.iter().enumerate() {
        assert_eq!(size(CellShape::Triangle, i + 1, exact), *points);
        assert_eq!(size(CellShape::Triangle, i + 1, default), *points);
    }
    for (i, points) in tetrahedron.iter().enumerate() {
        assert_eq!(size(CellShape::Tetrahedron, i + 1, exact), *points);
    }
    for (i, points) in best.iter().enumerate() {
        assert_eq!(size(CellShape::Tetrahedron, i + 1, default), *points);
    }
    assert_eq!(size(CellShape::Tetrahedron, 16, exact), 729);
    assert_eq!(size(CellShape::Tetrahedron, 21, default), 1331);
    assert_eq!(size(CellShape::Triangle, 31, default), 256);
}

/// The number of quadrature points that each published figure of local memory traffic implies.
///
/// The figures are those of the data archived with Kulkarni & Klöckner 2025: local bytes per cell =
/// 2 · 8 · points · tables · n, with n basis functions and 1 (mass), dim (Laplace, elasticity,
/// hyperelasticity) or dim + 1 (Helmholtz) tables.
#[test]
fn the_published_scheme_has_the_published_points() {
    let rows = include_str!("../data/published_points.csv").lines().skip(1);
    let mut checked = 0;
    for row in rows {
        let words: Vec<&str> = row.split(',').collect();
        let [dim, k, points] = [1, 2, 3].map(|i| words[i].parse::<usize>().unwrap());
        let shape = if dim == 2 { CellShape::Triangle } else { CellShape::Tetrahedron };
        let degree = match words[0] {
            "Mass" | "Helmholtz" => 2 * k,
            "Laplace" | "Elasticity" => 2 * (k - 1),
            _ => 4 * (k - 1),
        };
        assert_eq!(rule(shape, degree, QuadratureScheme::XiaoGimbutas).unwrap().n_points(), points, "{row}");
        checked += 1;
    }
    assert_eq!(checked, 61);
}

#[test]
fn gauss_legendre_of_two_points() {
    let (points, weights) = gauss_jacobi(2, 0);
    let offset = 0.5 / 3.0_f64.sqrt();
    // 1e-15: two roundings.
    assert!((points[0] - (0.5 - offset)).abs() < 1e-15 && (points[1] - (0.5 + offset)).abs() < 1e-15);
    assert!(weights.iter().all(|w| (w - 0.5).abs() < 1e-15));
}

#[test]
fn refuses_degrees_above_the_highest() {
    let error = rule(CellShape::Triangle, 61, QuadratureScheme::Default).unwrap_err();
    assert_eq!(error, QuadratureError::Degree { shape: CellShape::Triangle, degree: 61 });
    assert_eq!(
        error.to_string(),
        "quadrature degree 61 on a triangle: the highest is 60; lower the degree of the measure"
    );
}

/// As many points along an axis as the degree needs, the ends among them: with the degree `2p - 1`
/// the nodes of Lagrange elements of degree `p`.
#[test]
fn lobatto_rules_are_on_squares_and_cubes() {
    for shape in [CellShape::Interval, CellShape::Quadrilateral, CellShape::Hexahedron] {
        for degree in [0, 1, 2, 3, 6, 13] {
            let rule = rule(shape, degree, QuadratureScheme::GaussLobatto).unwrap();
            assert_eq!(rule.n_points(), (degree + 3).div_ceil(2).pow(shape.dim() as u32));
            assert!(rule.points.iter().take(shape.dim()).all(|x| *x == 0.0), "{shape} {degree}");
            // of the highest power along each axis
            let powers =
                rule.points.chunks(shape.dim()).map(|p| p.iter().product::<f64>().powi(degree as i32));
            let found: f64 = powers.zip(&rule.weights).map(|(power, w)| power * w).sum();
            let expected = (1.0 / (degree as f64 + 1.0)).powi(shape.dim() as i32);
            assert!((found - expected).abs() < 1e-14, "{shape} {degree}: {found}, not {expected}");
        }
    }
    let error = rule(CellShape::Tetrahedron, 3, QuadratureScheme::GaussLobatto).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no gauss_lobatto rule on a tetrahedron: those are on intervals, squares and cubes; take another scheme"
    );
}

/// All rules of Xiao & Gimbutas 2010 on triangles have orbits under the swap of two vertices, and those of
/// few degrees on tetrahedra under the double transpositions. Integrals stay what they are.
#[test]
fn rules_in_orbits_integrate_the_same() {
    for degree in 1..=30 {
        let plain = rule(CellShape::Triangle, degree, QuadratureScheme::XiaoGimbutas).unwrap();
        let paired = plain.in_orbits().unwrap();
        assert!(
            paired.n_points() >= plain.n_points() && paired.n_points().is_multiple_of(2),
            "degree {degree}"
        );
        if degree <= 12 {
            check(&paired, degree);
        }
    }
    let with_orbits = |scheme: QuadratureScheme, most: usize| -> Vec<usize> {
        let has =
            |degree: &usize| rule(CellShape::Tetrahedron, *degree, scheme).unwrap().in_orbits().is_some();
        (1..=most).filter(has).collect()
    };
    assert_eq!(with_orbits(QuadratureScheme::XiaoGimbutas, 15), [1, 5]);
    assert_eq!(with_orbits(QuadratureScheme::Default, 20), [1, 5]);
}
