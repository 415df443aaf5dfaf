//! Facts about the language: shapes, errors, printing, differentiation, linearity, degrees.

#![allow(clippy::unwrap_used)]

use super::*;
use kingpost_fem::element::CellShape;

fn scalar(degree: usize) -> FunctionSpace {
    FunctionSpace::scalar(CellShape::Triangle, degree)
}

fn vector(degree: usize) -> FunctionSpace {
    FunctionSpace::vector(CellShape::Tetrahedron, degree)
}

fn message(expr: &Expr) -> String {
    expr.error().unwrap().to_string()
}

#[test]
fn shape_errors_name_operation_and_shapes() {
    let (u, a) = (coefficient("u", &vector(1)), identity(2));
    assert_eq!(message(&(&u + 1.0)), "`+`: found vector(3) and scalar, needed equal shapes");
    assert!(message(&(&u * &u)).starts_with("`*`: found vector(3) and vector(3), needed a scalar factor"));
    assert!(message(&(&a * &u)).starts_with("`*`: found matrix(2, 2) and vector(3)"));
    assert_eq!(message(&(2.0 / &u)), "`/`: found scalar and vector(3), needed a scalar divisor");
    assert_eq!(message(&tr(&u)), "`tr`: found vector(3), needed a square matrix");
    assert_eq!(message(&grad(grad(&u))), "`grad`: found matrix(3, 3), needed a scalar or a vector");
    assert_eq!(message(&exp(&u)), "`exp`: found vector(3), needed a scalar");
    assert!(message(&grad(constant("c"))).contains("cells are unknown"));
    assert_eq!(message(&identity(0)), "`identity`: found matrix(0, 0), needed 1 to 64 rows");
    assert!(vector_constant("c", usize::MAX).error().is_some());
    assert!(message(&conditional(lt(&u, 1.0), 1.0, 2.0)).starts_with("`<`: found vector(3) and scalar"));
}

#[test]
fn the_first_mistake_survives_to_the_form() {
    let (u, v) = (coefficient("u", &vector(1)), test(&vector(1)));
    let form = inner(sin(&u) * &u + 3.0, &v) * dx();
    assert_eq!(form.check().unwrap_err().to_string(), "`sin`: found vector(3), needed a scalar");
    assert_eq!(
        (&u * dx()).check().unwrap_err().to_string(),
        "`dx`: found vector(3), needed a scalar integrand"
    );
}

#[test]
fn indices_lend_components_and_report_the_outside() {
    let u = coefficient("u", &vector(2));
    assert_eq!(u[2].to_string(), "u[2]");
    assert_eq!(grad(&u)[(1, 2)].to_string(), "grad(u)[1, 2]");
    let expected =
        "index [3] of `u`: its shape is vector(3); count from 0 and give as many indices as it has";
    assert_eq!(message(&u[3]), expected);
    assert!(message(&grad(&u)[(3, 0)]).contains("index [3, 0]"));
    assert!(u[(0, 0)].error().is_some() && grad(&u)[0].error().is_some());
    assert!(u[usize::MAX].error().is_some());
}

#[test]
fn forms_refuse_what_does_not_fit_together() {
    let (u, v) = (coefficient("u", &scalar(1)), test(&scalar(1)));
    let other = coefficient("u", &scalar(2));
    assert_eq!((&u * &other * &v * dx()).check(), Err(FormError::Name { name: "u".into() }));
    let mixed = &u * test(&FunctionSpace::scalar(CellShape::Tetrahedron, 1)) * dx();
    assert!(matches!(mixed.check(), Err(FormError::MixedCells { .. })));
    assert_eq!(Form::default().check(), Err(FormError::Empty));
    assert_eq!((constant("c") * dx()).check(), Err(FormError::NoFunction));
    assert_eq!(action(&u * &v * dx(), &u).check(), Err(FormError::NoTrial));
    assert!(matches!(derivative(&u * &v * dx(), &v, &v).check(), Err(FormError::NotACoefficient { .. })));
    assert!(matches!(diff(&u * &u, &u).error(), Some(FormError::NotAVariable { .. })));
}

#[test]
fn forms_print_as_they_are_written() {
    let (u, v) = (coefficient("u", &scalar(1)), test(&scalar(1)));
    let form = (-(&u + 1.0).pow(2) * &v / (2.0 * &u) - exp(&u) * (&v - &u * &v)) * dx().with_degree(3);
    let text = "(-(u + 1).pow(2)*test/(2*u) - exp(u)*(test - u*test)) * dx(degree = 3)";
    assert_eq!(form.to_string(), text);
}

#[test]
fn shared_expressions_are_printed_once() {
    let space = vector(1);
    let f = identity(3) + grad(coefficient("u", &space));
    let e = variable((transpose(&f) * &f - identity(3)) / 2.0);
    let p = &f * diff(tr(&e).pow(2) + constant("t0") * tr(&e * &e), &e);
    let form = inner(p, grad(test(&space))) * dx();
    let text = "inner(t1*diff(tr(t2).pow(2) + t0*tr(t2*t2), t2), grad(test)) * dx \
                where t1 = identity(3) + grad(u), t2 = variable((transpose(t1)*t1 - identity(3))/2)";
    assert_eq!(form.to_string(), text);
    // 2^60 terms, were they printed out
    let long = (0..60).fold(coefficient("u", &scalar(1)), |sum, _| &sum + &sum);
    assert!(long.to_string().len() < 2000);
}

/// Value of a scalar graph where every jet, coordinate and constant has a value.
fn value(form: &ExpandedForm, terminal: &dyn Fn(&Scalar) -> f64) -> f64 {
    let mut values: Vec<f64> = Vec::new();
    for node in form.graph.nodes() {
        let of = |id: ScalarId| values[id.index()];
        let value = match *node {
            Scalar::Literal(bits) => bits.value(),
            Scalar::Constant(..)
            | Scalar::Coordinate(_)
            | Scalar::FacetNormal(..)
            | Scalar::Size(..)
            | Scalar::Jet(_)
            | Scalar::Symbol(_) => terminal(node),
            Scalar::Variable(_, _, a) => of(a),
            Scalar::Negate(a) => -of(a),
            Scalar::Add(a, b) => of(a) + of(b),
            Scalar::Subtract(a, b) => of(a) - of(b),
            Scalar::Multiply(a, b) => of(a) * of(b),
            Scalar::Divide(a, b) => of(a) / of(b),
            Scalar::Power(a, b) => of(a).powf(of(b)),
            Scalar::Math(MathFunction::Exp, a) => of(a).exp(),
            Scalar::Math(MathFunction::Ln, a) => of(a).ln(),
            Scalar::Math(MathFunction::Sqrt, a) => of(a).sqrt(),
            Scalar::Math(MathFunction::Sin, a) => of(a).sin(),
            Scalar::Math(MathFunction::Cos, a) => of(a).cos(),
            Scalar::Math(MathFunction::Tan, a) => of(a).tan(),
            Scalar::Math(MathFunction::Asin, a) => of(a).asin(),
            Scalar::Math(MathFunction::Acos, a) => of(a).acos(),
            Scalar::Math(MathFunction::Atan, a) => of(a).atan(),
            Scalar::Math(MathFunction::Sinh, a) => of(a).sinh(),
            Scalar::Math(MathFunction::Cosh, a) => of(a).cosh(),
            Scalar::Math(MathFunction::Tanh, a) => of(a).tanh(),
            Scalar::Math(MathFunction::Erf, a) => libm::erf(of(a)),
            Scalar::Math(MathFunction::BesselJ(n), a) => libm::jn(i32::from(n), of(a)),
            Scalar::Math(MathFunction::BesselY(n), a) => libm::yn(i32::from(n), of(a)),
            Scalar::Atan2(a, b) => of(a).atan2(of(b)),
            Scalar::Conditional(c, [l, r, a, b]) => {
                if c.holds(of(l), of(r)) {
                    of(a)
                } else {
                    of(b)
                }
            }
        };
        values.push(value);
    }
    values[form.integrals[0].1.index()]
}

/// The components of a tensor that is made of numbers.
fn numbers_of(tensor: &Expr) -> Vec<f64> {
    let u = coefficient("u", &scalar(1));
    let of = |component: Expr| value(&expand(&(component * &u * dx())).unwrap(), &|_| 1.0);
    match tensor.shape() {
        Shape::Scalar => vec![of(tensor.clone())],
        Shape::Vector(n) => (0..n).map(|i| of(tensor[i].clone())).collect(),
        Shape::Matrix(m, n) => (0..m * n).map(|k| of(tensor[(k / n, k % n)].clone())).collect(),
    }
}

#[test]
fn tensor_functions_have_their_textbook_values() {
    let a = as_matrix(3, [2.0, 1.0, 0.0, 3.0, 5.0, -1.0, 4.0, 0.0, 7.0]);
    assert_eq!(numbers_of(&skew(&a)), [0.0, -1.0, -2.0, 1.0, 0.0, -0.5, 2.0, 0.5, 0.0]);
    // the trace is 14
    let third = 14.0 / 3.0;
    let expected = [2.0 - third, 1.0, 0.0, 3.0, 5.0 - third, -1.0, 4.0, 0.0, 7.0 - third];
    assert_eq!(numbers_of(&dev(&a)), expected);
    assert_eq!(numbers_of(&cofac(&a)), [35.0, -25.0, -20.0, -7.0, 14.0, 4.0, -1.0, 2.0, 7.0]);
    // det(A) of the rows of A and of its cofactors
    let identity_times_det = &a * transpose(cofac(&a));
    assert_eq!(numbers_of(&identity_times_det), [45.0, 0.0, 0.0, 0.0, 45.0, 0.0, 0.0, 0.0, 45.0]);
    let singular = as_matrix(2, [1.0, 2.0, 2.0, 4.0]);
    assert_eq!(numbers_of(&cofac(&singular)), [4.0, -2.0, -2.0, 1.0]);
    let (x, y) = (as_vector([1.0, 2.0, 3.0]), as_vector([-2.0, 5.0, 4.0]));
    assert_eq!(numbers_of(&cross(&x, &y)), [-7.0, -10.0, 9.0]);

    let message = |e: Expr| e.error().unwrap().to_string();
    let rows = as_matrix(2, [1.0; 6]);
    for (wrong, word) in [(skew(&rows), "skew"), (dev(&x), "dev"), (cofac(&rows), "cofac")] {
        let found = message(wrong);
        assert!(found.contains(word) && found.contains("needed a square matrix"), "{found}");
    }
    let four = message(cofac(identity(4)));
    assert!(four.contains("needed a square matrix with 2 or 3 rows"), "{four}");
    let planar = message(cross(&x, as_vector([1.0, 2.0])));
    assert!(planar.contains("needed two vectors of three components"), "{planar}");
    // a mistake inside is the one that is told
    assert_eq!(dev(skew(&rows)).error(), skew(&rows).error());
}

/// Every function of one variable that the language has, and its derivative at `u`, by hand.
#[test]
fn functions_have_their_textbook_derivatives() {
    let u = coefficient("u", &scalar(1));
    let t = 0.7_f64;
    let cases: [(Expr, f64); 15] = [
        (erf(&u), std::f64::consts::FRAC_2_SQRT_PI * (-t * t).exp()),
        (bessel_j(0, &u), -libm::j1(t)),
        (bessel_y(2, &u), libm::y1(t) - 2.0 / t * libm::yn(2, t)),
        (atan2(&u, 2.0), 2.0 / (4.0 + t * t)),
        (atan2(2.0 * &u, -&u - 1.0), -2.0 / ((t + 1.0).powi(2) + 4.0 * t * t)),
        (exp(&u), t.exp()),
        (ln(&u), 1.0 / t),
        (sqrt(&u), 0.5 / t.sqrt()),
        (sin(&u), t.cos()),
        (cos(&u), -t.sin()),
        (u.pow(3), 3.0 * t * t),
        (u.pow(-0.5), -0.5 * t.powf(-1.5)),
        (u.pow(&u), t.powf(t) * (t.ln() + 1.0)),
        (1.0 / (1.0 + &u * &u), -2.0 * t / (1.0 + t * t).powi(2)),
        (conditional(gt(&u, 1.0), &u, 2.0 * &u), 2.0),
    ];
    for (f, slope) in cases {
        let form = derivative(&f * dx(), &u, test(&scalar(1)));
        let found = value(&expand(&form).unwrap(), &|terminal| match terminal {
            Scalar::Jet(jet) if jet.field == Field::Test => 1.0,
            _ => t,
        });
        // A few roundings of numbers of size 1.
        assert!((found - slope).abs() < 1e-14, "{f}: {found} instead of {slope}");
    }
}

#[test]
fn derivatives_pass_through_gradients_and_variables() {
    let (u, v) = (coefficient("u", &scalar(2)), test(&scalar(2)));
    let g = variable(grad(&u));
    let flux = diff(dot(&g, &g) * &u, &g); // 2 u g
    let (mut ours, theirs) =
        (expand(&(inner(flux, grad(&v)) * dx())).unwrap(), &u * inner(grad(&u), grad(&v)) * dx());
    let root = ours.integrals[0].1;
    let terms = linear_terms(&mut ours.graph, root).unwrap();
    assert_eq!(terms.len(), 2);
    let at = |node: &Scalar| match node {
        Scalar::Jet(jet) => 0.3 + 0.9 * jet.order() as f64 + jet.axes().first().copied().unwrap_or(0) as f64,
        _ => 0.0,
    };
    let expected = 2.0 * value(&expand(&theirs).unwrap(), &at);
    // Products of numbers of size 1.
    assert!((value(&ours, &at) - expected).abs() < 1e-13);
}

#[test]
fn gradients_of_compositions_follow_the_chain_rule() {
    let (u, v) = (coefficient("u", &scalar(2)), test(&scalar(2)));
    let x = coordinate(CellShape::Triangle);
    let form = inner(grad(&u * &x[0]), as_vector([1.0, 0.0])) * &v * dx();
    let by_hand = (&grad(&u)[0] * &x[0] + &u) * &v * dx();
    let at = |node: &Scalar| match node {
        Scalar::Jet(jet) => 0.4 + jet.order() as f64,
        Scalar::Coordinate(k) => 1.5 + *k as f64,
        _ => 0.0,
    };
    assert_eq!(value(&expand(&form).unwrap(), &at), value(&expand(&by_hand).unwrap(), &at));
}

#[test]
fn what_is_not_linear_in_the_test_function_is_refused() {
    let (u, v) = (coefficient("u", &scalar(1)), test(&scalar(1)));
    let cases = [
        (&v * &v, "both factors of a product"),
        (&u / &v, "a denominator"),
        (v.pow(2), "a power"),
        (sin(&v), "the argument of a function"),
        (conditional(lt(&v, 0.0), &v, 2.0 * &v), "a condition"),
    ];
    for (integrand, place) in cases {
        let mut form = expand(&(integrand * dx())).unwrap();
        let root = form.integrals[0].1;
        let error = linear_terms(&mut form.graph, root).unwrap_err();
        assert_eq!(error, FormError::NotLinear { function: Role::Test, place: place.into() });
    }
    let mut affine = expand(&((&u + &v) * dx())).unwrap();
    let root = affine.integrals[0].1;
    assert!(matches!(linear_terms(&mut affine.graph, root), Err(FormError::NoTest { .. })));
}

/// Degrees that UFL 2026.1 estimates after its differentiation (`scripts/ufl_degrees.py`).
#[test]
fn degrees_are_those_of_ufl() {
    let (u, v) = (coefficient("u", &scalar(3)), test(&scalar(2)));
    let x = coordinate(CellShape::Triangle);
    let cases = [
        (&u * &v, 5),
        (inner(grad(&u), grad(&v)), 3),
        (&u / (1.0 + &u) * &v, 8),
        (u.pow(3) * &v, 11),
        (u.pow(-1) * &v, 7),
        (exp(&u) * &v, 7),
        (sin(&x[0]) * &v, 5),
        (sqrt(constant("c")) * &v, 2),
        (conditional(lt(&u, 1.0), &v, &x[1] * &v), 3),
        (&x[0] * &x[1] * &v + &u * &v, 5),
        (div(grad(&u)) * &v, 3),
        (inner(grad(&u * &u), grad(&v)), 6),
    ];
    for (integrand, degree) in cases {
        assert_eq!((&integrand * dx()).quadrature_degrees().unwrap(), [degree], "{integrand}");
    }
    assert_eq!((&u * &v * dx().with_degree(2)).quadrature_degrees().unwrap(), [2]);
}

#[test]
fn deep_expressions_work_and_deeper_ones_are_refused() {
    let (u, v) = (coefficient("u", &scalar(1)), test(&scalar(1)));
    let chain = |n: usize| (0..n).fold(u.clone(), |sum, _| sin(sum * &u));
    let form = derivative(chain(490) * dx().with_degree(1), &u, &v);
    assert_eq!(expand(&form).unwrap().quadrature_degrees(), [1]);
    assert!(
        action(u.clone() * dx() + derivative(chain(490) * dx(), &u, trial(&scalar(1))), &u).check().is_ok()
    );
    assert!(form.to_string().len() > 490);
    assert_eq!(chain(501).error(), Some(&FormError::Depth { limit: 1000 }));
}

/// Each rotation of a rotation of a logarithm doubles it: 20 of them would be a million terms.
#[test]
fn derivatives_that_explode_are_an_error() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let mut e = ln(coefficient("u", &space));
    for _ in 0..20 {
        e = curl(e);
    }
    let e = if e.shape() == Shape::Scalar { e } else { e[0].clone() };
    let error = expand(&(e * test(&space) * dx())).map(|_| ()).unwrap_err();
    assert!(matches!(error, FormError::Size { .. }), "{error}");
}
