//! Elements of every family against basix's tables and against what defines them.
#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost_fem::element::{
    CellShape, ComposedElement, ElementError, ElementFamily, FiniteElement, LagrangeVariant, Pullback,
    Reorientation, derivatives, vertex_order, vertex_orders,
};
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use kingpost_sample::of_run;
use serde_json::Value;

const VARIANTS: [LagrangeVariant; 4] = [
    LagrangeVariant::Equispaced,
    LagrangeVariant::GllWarped,
    LagrangeVariant::GllIsaac,
    LagrangeVariant::Legendre,
];
const VECTORS: [ElementFamily; 4] = [
    ElementFamily::RaviartThomas,
    ElementFamily::BrezziDouglasMarini,
    ElementFamily::NedelecFirst,
    ElementFamily::NedelecSecond,
];

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The largest difference relative to the largest entry of `expected`, or to 1 if that is less.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    found.iter().zip(expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs())) / scale
}

fn family(case: &Value) -> ElementFamily {
    let variant = case["variant"].as_str();
    match case["family"].as_str().unwrap() {
        "P" => ElementFamily::Lagrange(VARIANTS.into_iter().find(|v| Some(v.name()) == variant).unwrap()),
        "bubble" => ElementFamily::Bubble,
        "RT" => ElementFamily::RaviartThomas,
        "BDM" => ElementFamily::BrezziDouglasMarini,
        "N1E" => ElementFamily::NedelecFirst,
        "N2E" => ElementFamily::NedelecSecond,
        other => panic!("unknown family {other}"),
    }
}

fn element(case: &Value) -> FiniteElement {
    let shape = CellShape::by_name(case["shape"].as_str().unwrap()).unwrap();
    let make = match case["discontinuous"] == true {
        true => FiniteElement::discontinuous,
        false => FiniteElement::new,
    };
    make(shape, family(case), count(&case["degree"])).unwrap()
}

fn golden() -> Vec<Value> {
    let text = include_str!("../data/elements.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn tables_are_those_of_basix() {
    let golden = golden();
    assert_eq!(golden.len(), 218);
    for case in golden {
        let element = element(&case);
        let name = format!("{} {} on a {}", element.family(), element.degree(), element.shape());
        let table = element.tabulate(&flat(&case["points"]), count(&case["order"])).unwrap();
        // 1e-12: both sides solve with a matrix of functionals
        for (d, expected) in case["table"].as_array().unwrap().iter().enumerate() {
            let size = table.n_points * table.n_dofs * table.value_size;
            let error = distance(&table.values[d * size..(d + 1) * size], &flat(expected));
            assert!(error < 1e-12, "{name}, derivative {:?}: {error:e}", table.derivatives[d]);
        }
        assert_eq!(table.derivatives.len(), case["table"].as_array().unwrap().len());
        match &case["nodes"] {
            // of a degree that has one node, a moment is a value as well
            Value::Null => assert_eq!(element.points(), None, "{name}"),
            nodes if element.degree() > 0 || element.points().is_some() => {
                // 1e-14: nodes are interpolated at degree 15 in two ways
                assert!(distance(&element.points().unwrap(), &flat(nodes)) < 1e-14, "{name}");
            }
            _ => {}
        }
        for dim in 0..=element.shape().dim() {
            let entities = case["entity_dofs"][dim].as_array().unwrap();
            for (entity, dofs) in entities.iter().enumerate() {
                let dofs: Vec<usize> = dofs.as_array().unwrap().iter().map(count).collect();
                assert_eq!(element.entity_dofs(dim, entity).collect::<Vec<_>>(), dofs, "{name}");
            }
        }
    }
}

#[test]
fn transformations_are_those_of_basix() {
    for case in golden().iter().filter(|case| !case["transformations"].is_null()) {
        let element = element(case);
        for dim in 1..element.shape().dim() {
            let found = element.entity_transformations(dim).concat();
            let expected = flat(&case["transformations"][dim]);
            let name = format!("{} {} on a {}", element.family(), element.degree(), element.shape());
            // 1e-11: moments of functions that reach some tens
            assert!(distance(&found, &expected) < 1e-11, "{name}, dimension {dim}");
        }
    }
}

/// The largest difference of a function, given at the points by component, from its nearest in the
/// span of the basis.
fn residual(
    table: &kingpost_fem::element::ElementTable,
    points: &[f64],
    dim: usize,
    target: impl Fn(&[f64], usize) -> f64,
) -> f64 {
    let rows = table.n_points * table.value_size;
    let entry = |row: usize, dof: usize| table.value(0, row / table.value_size, dof, row % table.value_size);
    let matrix = nalgebra::DMatrix::from_fn(rows, table.n_dofs, entry);
    let wanted = nalgebra::DVector::from_fn(rows, |row, _| {
        let point = row / table.value_size;
        target(&points[point * dim..(point + 1) * dim], row % table.value_size)
    });
    let qr = matrix.clone().qr();
    let solution = qr.r().solve_upper_triangular(&(qr.q().transpose() * &wanted)).unwrap();
    (matrix * solution - wanted).amax()
}

/// The families to degrees beyond the golden data: their spans hold all polynomials that they
/// should, and no more than they have functions for.
#[test]
fn spans_hold_their_polynomials_and_are_independent() {
    for shape in [CellShape::Triangle, CellShape::Tetrahedron] {
        for (family, full) in VECTORS.into_iter().zip([1, 0, 1, 0]) {
            for degree in of_run(5..=family.degrees(shape).unwrap().1, &[0]) {
                let element = FiniteElement::new(shape, family, degree).unwrap();
                let points = rule(shape, 2 * degree, QuadratureScheme::Default).unwrap().points;
                let table = element.tabulate(&points, 0).unwrap();
                let power = (degree - full) as i32;
                let target = |x: &[f64], c: usize| if c == 1 { (x[0] - 0.3 * x[1]).powi(power) } else { 0.0 };
                let rest = residual(&table, &points, shape.dim(), target);
                // 1e-11: some hundred terms with coefficients of some tens
                assert!(rest < 1e-11, "{family} {degree} on a {shape}: {rest:e}");
                let beyond = |x: &[f64], c: usize| if c == 1 { x[0].powi(power + 1) } else { 0.0 };
                assert!(residual(&table, &points, shape.dim(), beyond) > 1e-5, "{family} {degree}");
            }
        }
    }
}

#[test]
fn derivatives_are_those_of_the_polynomials() {
    // x^2 y^3 z by the nodes of Q3: third derivatives against the closed form
    let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
    for (shape, degree) in [(CellShape::Hexahedron, 3), (CellShape::Tetrahedron, 6)] {
        let element = FiniteElement::new(shape, family, degree).unwrap();
        let powers = [2_i32, 3, 1];
        let nodes = element.points().unwrap();
        let values: Vec<f64> =
            nodes.chunks(3).map(|x| x.iter().zip(powers).map(|(x, n)| x.powi(n)).product()).collect();
        let point = [0.3, 0.2, 0.4];
        let table = element.tabulate(&point, 3).unwrap();
        assert_eq!(table.derivatives, derivatives(3, 3));
        for (d, order) in table.derivatives.iter().enumerate() {
            let found: f64 = values.iter().enumerate().map(|(dof, v)| v * table.value(d, 0, dof, 0)).sum();
            let factor = |axis: usize| {
                let (n, k) = (powers[axis], order[axis] as i32);
                let falling: i32 = (0..k).map(|i| n - i).product();
                if k > n { 0.0 } else { f64::from(falling) * point[axis].powi(n - k) }
            };
            let expected: f64 = (0..3).map(factor).product();
            // 1e-10: third derivatives of degree-6 functions reach some thousands
            assert!((found - expected).abs() < 1e-10, "{shape} {order:?}: {found} {expected}");
        }
    }
}

#[test]
fn orders_of_vertices_have_their_numbers() {
    for shape in [CellShape::Interval, CellShape::Triangle, CellShape::Quadrilateral] {
        for (number, order) in vertex_orders(shape).iter().enumerate() {
            // the vertex at place i of the common order has the i-th lowest number
            let mut numbers = vec![0; order.len()];
            order.iter().enumerate().for_each(|(place, vertex)| numbers[*vertex] = 10 + place as u32);
            assert_eq!(vertex_order(&numbers), number, "{shape} {order:?}");
        }
    }
}

#[test]
fn reorientations_permute_lagrange_and_sign_the_lowest_vectors() {
    let p3 = FiniteElement::new(CellShape::Triangle, ElementFamily::Lagrange(LagrangeVariant::GllWarped), 3);
    let p3 = p3.unwrap();
    assert_eq!(p3.reorientation(0), Reorientation::None);
    assert_eq!(p3.reorientation(1), Reorientation::Permutations(vec![vec![0, 1], vec![1, 0]]));
    assert_eq!(p3.reorientation(2), Reorientation::None);
    let rt = FiniteElement::new(CellShape::Tetrahedron, ElementFamily::RaviartThomas, 1).unwrap();
    let signs = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0].map(|sign| vec![sign]).to_vec();
    assert_eq!(rt.reorientation(2), Reorientation::Matrices(signs));
    assert_eq!(rt.pullback(), Pullback::ContravariantPiola);
    let dg = FiniteElement::discontinuous(CellShape::Triangle, p3.family(), 3).unwrap();
    assert_eq!(dg.reorientation(1), Reorientation::None);
    assert_eq!(dg.entity_dofs(2, 0), 0..10);
}

#[test]
fn refusals_name_what_exists() {
    let lagrange = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
    let legendre = ElementFamily::Lagrange(LagrangeVariant::Legendre);
    let message = |shape, family, degree| FiniteElement::new(shape, family, degree).unwrap_err().to_string();
    assert_eq!(
        message(CellShape::Triangle, lagrange, 9),
        "Lagrange (gll_warped) of degree 9 on a triangle: supported are 0 to 8"
    );
    assert_eq!(
        message(CellShape::Hexahedron, ElementFamily::RaviartThomas, 1),
        "Raviart–Thomas on a hexahedron: the family is defined on triangles and tetrahedra"
    );
    assert_eq!(
        message(CellShape::Triangle, lagrange, 0),
        "Lagrange (gll_warped) of degree 0 cannot be continuous; make it with `FiniteElement::discontinuous`"
    );
    assert_eq!(
        message(CellShape::Interval, legendre, 2),
        "Lagrange (legendre) of degree 2 cannot be continuous; make it with `FiniteElement::discontinuous`"
    );
    assert_eq!(
        message(CellShape::Tetrahedron, ElementFamily::Bubble, 3),
        "bubble of degree 3 on a tetrahedron: supported are 4 to 8"
    );
    let p1 = FiniteElement::new(CellShape::Triangle, lagrange, 1).unwrap();
    assert_eq!(p1.tabulate(&[0.5; 3], 0).unwrap_err(), ElementError::Points { length: 3, dim: 2 });
}

/// Taylor–Hood as basix's UFL interface numbers it.
#[test]
fn mixed_and_blocked_elements_have_the_order_of_basix() {
    let p = |shape, degree| {
        FiniteElement::new(shape, ElementFamily::Lagrange(LagrangeVariant::GllWarped), degree).unwrap()
    };
    let velocity = ComposedElement::blocked(p(CellShape::Triangle, 2).into(), 2).unwrap();
    let element = ComposedElement::mixed(vec![velocity, p(CellShape::Triangle, 1).into()]).unwrap();
    let on = |dim, n| (0..n).map(|entity| element.entity_dofs(dim, entity)).collect::<Vec<_>>();
    assert_eq!(on(0, 3), [[0, 1, 12], [2, 3, 13], [4, 5, 14]]);
    assert_eq!(on(1, 3), [[6, 7], [8, 9], [10, 11]]);
    assert_eq!(on(2, 1), [[0_usize; 0]]);
    let table = element.tabulate(&[0.2, 0.3], 1).unwrap();
    // basix.ufl: values at (0.2, 0.3) of the first component, then of the pressure
    let first = [0.0, 0.0, -0.12, 0.0, -0.12, 0.0, 0.24, 0.0, 0.6, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0];
    assert!(distance(&table.component(0, 0), &first) < 1e-14);
    let pressure = [vec![0.0; 12], vec![0.5, 0.2, 0.3]].concat();
    assert!(distance(&table.component(0, 2), &pressure) < 1e-14);
    // the derivatives along the second axis
    assert!(distance(&table.component(2, 2)[12..], &[-1.0, 0.0, 1.0]) < 1e-14);
    let wrong =
        ComposedElement::mixed(vec![p(CellShape::Triangle, 1).into(), p(CellShape::Hexahedron, 1).into()]);
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "a mixed element has parts on a triangle and on a hexahedron, needed one cell shape"
    );
    assert_eq!(ComposedElement::mixed(Vec::new()).unwrap_err(), ElementError::NoParts);
}
