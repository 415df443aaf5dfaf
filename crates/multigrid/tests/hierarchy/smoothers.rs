//! Smoothers other than fast diagonalisation colour by colour, against dense matrices.

#![allow(clippy::unwrap_used)]

use crate::reference::{
    CASES, Random, dense, devices, element, inner_numbers, is_inner, largest, patches, solved,
};
use kingpost_multigrid::kernels::Variant;
use kingpost_multigrid::schedules::Structure;
use kingpost_multigrid::{
    Dimension, Element, Hierarchy, HierarchyOptions, MultigridError, Order, Precision, Relaxation, Which,
};
use kingpost_runtime::{Backend, Device, open};
use nalgebra::{DMatrix, DVector};

fn with<'d>(
    device: &'d dyn Device,
    element: Element,
    cells: usize,
    variant: Variant,
    relaxation: Relaxation,
) -> Hierarchy<'d> {
    let options = HierarchyOptions { variant: Some(variant), relaxation, ..HierarchyOptions::default() };
    Hierarchy::with(device, element, cells, options).unwrap()
}

/// A step on the finest level from random vectors, besides those.
fn step(levels: &Hierarchy<'_>, order: Order, seed: u64) -> [DVector<f64>; 3] {
    let finest = levels.levels() - 1;
    let mut random = Random(seed);
    let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, levels.element(), levels.cells(finest)));
    levels.set(finest, Which::Solution, &x).unwrap();
    levels.set(finest, Which::RightHandSide, &b).unwrap();
    levels.smooth(finest, order).unwrap();
    [x, b, levels.solution(finest).unwrap()].map(DVector::from_vec)
}

/// The nodes in the order of point Gauss–Seidel: those of a patch lexicographically, unless a colour
/// before has had them.
fn order_of_points(element: Element, cells: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for colour in 0..1 << element.dimension.axes() {
        let all = patches(element, cells, colour);
        let length = all.first().map_or(0, Vec::len);
        for place in 0..length {
            let nodes: Vec<usize> = all.iter().map(|patch| patch[place]).collect();
            order.extend(nodes.into_iter().filter(|node| !order.contains(node)).collect::<Vec<_>>());
        }
    }
    order
}

#[test]
fn point_gauss_seidel_is_the_dense_one() {
    for device in devices() {
        for (dimension, degree, cells) in CASES {
            let element = element(dimension, degree);
            let levels = with(&*device, element, cells, Variant::Point, Relaxation::Multiplicative);
            let a = dense(element, cells);
            let order = order_of_points(element, cells);
            let inner =
                (0..a.nrows()).filter(|n| is_inner(*n, element.nodes_of_side(cells), dimension.axes()));
            assert_eq!(order.len(), inner.count());
            for backward in [false, true] {
                let turn = if backward { Order::Backward } else { Order::Forward };
                let [mut x, b, found] = step(&levels, turn, 21 + degree as u64);
                let nodes: Vec<usize> =
                    if backward { order.iter().rev().copied().collect() } else { order.clone() };
                for node in nodes {
                    x[node] += (b[node] - (a.row(node) * &x)[0]) / a[(node, node)];
                }
                let error = largest(found.as_slice(), x.as_slice());
                // 1e-12: sums of at most (2k + 1)^3 terms
                assert!(error < 1e-12, "{element:?} {turn:?}: {error}");
            }
        }
    }
}

/// The sum over all patches, on all nodes.
fn sum_of_patches(element: Element, cells: usize, a: &DMatrix<f64>) -> DMatrix<f64> {
    let mut sum = DMatrix::zeros(a.nrows(), a.ncols());
    for nodes in (0..1 << element.dimension.axes()).flat_map(|colour| patches(element, cells, colour)) {
        let local = DMatrix::from_fn(nodes.len(), nodes.len(), |i, j| a[(nodes[i], nodes[j])]);
        let inverse = local.try_inverse().unwrap();
        for (i, row) in nodes.iter().enumerate() {
            nodes.iter().enumerate().for_each(|(j, column)| sum[(*row, *column)] += inverse[(i, j)]);
        }
    }
    sum
}

/// The error after a step is a Chebyshev polynomial of the preconditioned operator times that before.
#[test]
fn additive_patches_are_a_polynomial_of_the_dense_operator() {
    for device in devices() {
        for (dimension, degree, cells) in CASES {
            let element = element(dimension, degree);
            let a = dense(element, cells);
            let p = sum_of_patches(element, cells, &a);
            let identity = DMatrix::identity(a.nrows(), a.nrows());
            let largest_eigenvalue = f64::from(1 << dimension.axes());
            let [centre, half] = [0.625, 0.375].map(|part| part * largest_eigenvalue);
            let t = (&identity * centre - &p * &a) / half;
            for (variant, steps) in [(Variant::Fused, 1), (Variant::Inverse, 2), (Variant::Fused, 3)] {
                let levels = with(&*device, element, cells, variant, Relaxation::Additive { degree: steps });
                let [x, b, found] = step(&levels, Order::Forward, 5);
                // T_0, T_1, then T_n+1 = 2 t T_n - T_n-1, each over its value at zero
                let (mut before, mut now) = (identity.clone(), t.clone());
                let (mut low, mut high) = (1.0, centre / half);
                for _ in 1..steps {
                    (before, now) = (now.clone(), &t * &now * 2.0 - before);
                    (low, high) = (high, 2.0 * centre / half * high - low);
                }
                // the error e solves A e = b - A x; p has the rows of inner nodes alone
                let inner: Vec<usize> = (0..a.nrows())
                    .filter(|n| is_inner(*n, element.nodes_of_side(cells), dimension.axes()))
                    .collect();
                let residual = &b - &a * &x;
                let residual = DVector::from_fn(inner.len(), |i, _| residual[inner[i]]);
                let error = solved(&a, &inner, &residual);
                let mut whole = DVector::zeros(a.nrows());
                inner.iter().zip(error.iter()).for_each(|(node, e)| whole[*node] = *e);
                let expected = &x + &whole - &now * &whole / high;
                let off = largest(found.as_slice(), expected.as_slice());
                // 1e-10: the dense operator's condition number reaches 1e4
                assert!(off < 1e-10, "{element:?} {variant:?}, degree {steps}: {off}");
            }
        }
    }
}

/// v·Pw = w·Pv with additive patches in any order, and with points backward after.
#[test]
fn cycles_of_other_smoothers_are_symmetric() {
    let device = open("c").unwrap();
    for (variant, relaxation, after, symmetric) in [
        (Variant::Fused, Relaxation::Additive { degree: 1 }, Order::Forward, true),
        (Variant::Fused, Relaxation::Additive { degree: 3 }, Order::Forward, true),
        (Variant::Point, Relaxation::Multiplicative, Order::Backward, true),
        (Variant::Point, Relaxation::Multiplicative, Order::Forward, false),
    ] {
        let element = element(Dimension::Two, 2);
        let levels = with(&*device, element, 8, variant, relaxation);
        let finest = levels.levels() - 1;
        let mut random = Random(9);
        let [v, w] = [(); 2].map(|()| inner_numbers(&mut random, element, 8));
        let cycle = |b: &[f64]| {
            levels.set(finest, Which::RightHandSide, b).unwrap();
            levels.clear(finest).unwrap();
            levels.v_cycle(finest, after).unwrap();
            levels.solution(finest).unwrap()
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (pv, pw) = (cycle(&v), cycle(&w));
        let apart = (dot(&v, &pw) - dot(&w, &pv)).abs() / dot(&v, &pv);
        assert!(if symmetric { apart < 1e-12 } else { apart > 1e-9 }, "{variant:?} {relaxation:?}: {apart}");
    }
}

/// Full multigrid converges with each; a polynomial of higher degree takes no more cycles, and points
/// take more at a higher degree of elements.
#[test]
fn full_multigrid_converges_with_every_smoother() {
    let device = open("c").unwrap();
    let cycles = |degree: usize, variant, relaxation| {
        let levels = with(&*device, element(Dimension::Two, degree), 8, variant, relaxation);
        let loads: Vec<_> = (0..levels.levels()).map(|level| levels.load(level)).collect();
        let report = levels.full_multigrid(&loads, 1e-9, 60).unwrap();
        assert!(report.converged(), "{variant:?} {relaxation:?}: {report:?}");
        report.iterations()
    };
    let of_polynomial = |degree| cycles(3, Variant::Fused, Relaxation::Additive { degree });
    let found = [1, 2, 3, 4].map(of_polynomial);
    eprintln!("additive: {found:?}");
    assert!(found.is_sorted_by(|a, b| a >= b) && found[3] < found[0], "{found:?}");
    let found = [1, 2, 4, 6].map(|degree| cycles(degree, Variant::Point, Relaxation::Multiplicative));
    eprintln!("points: {found:?}");
    assert!(found.is_sorted() && found[3] > found[0], "{found:?}");
    assert_eq!(
        cycles(3, Variant::Inverse, Relaxation::Multiplicative),
        cycles(3, Variant::Fused, Relaxation::Multiplicative)
    );
}

/// A work-item for each node does what a processor does.
#[test]
fn work_items_of_nodes_agree() {
    for device in devices() {
        if device.info().backend == Backend::C {
            continue;
        }
        for dimension in [Dimension::Two, Dimension::Three] {
            let element = element(dimension, 2);
            let [expected, found] = [None, Some(Structure::Nodes)].map(|smoother| {
                let options = HierarchyOptions { smoother, ..HierarchyOptions::default() };
                let levels = Hierarchy::with(&*device, element, 4, options).unwrap();
                step(&levels, Order::Forward, 7)[2].clone()
            });
            // 1e-12: condition numbers of patches reach 1e2
            assert!(largest(found.as_slice(), expected.as_slice()) < 1e-12, "{dimension:?}");
        }
    }
}

#[test]
fn smoothers_that_there_are_not_are_refused() {
    let device = open("c").unwrap();
    let refused = |variant, relaxation| {
        let options = HierarchyOptions {
            variant: Some(variant),
            relaxation,
            precision: Precision::Double,
            ..HierarchyOptions::default()
        };
        Hierarchy::with(&*device, element(Dimension::Three, 8), 2, options).err().unwrap()
    };
    let none = refused(Variant::Fused, Relaxation::Additive { degree: 0 });
    assert!(matches!(none, MultigridError::NoPolynomial), "{none}");
    let points = refused(Variant::Point, Relaxation::Additive { degree: 1 });
    assert!(matches!(points, MultigridError::AdditivePoints), "{points}");
}
