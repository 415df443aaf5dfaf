//! GMRES in double precision around a V-cycle in double and in single.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::reference::devices;
use kingpost_multigrid::{
    Dimension, Element, HierarchyOptions, MultigridError, Precision, PreconditionedSolver, Start, sine_load,
};
use kingpost_runtime::{Backend, Device, open};
use kingpost_solve::{GmresOptions, PreconditionerSide};
use std::f64::consts::PI;

/// Iterations and error for the solution that is a product of sines, of Cui et al. 2024, §4.2.
fn solved(device: &dyn Device, element: Element, cells: usize, precision: Precision) -> (usize, f64) {
    let mut solver =
        PreconditionedSolver::new(device, element, cells, precision, GmresOptions::default()).unwrap();
    let (factor, line) = sine_load(solver.hierarchy().line(), element, cells);
    solver.set_product(factor, &line).unwrap();
    let report = solver.solve().unwrap();
    assert!(report.converged(), "{element:?} {precision:?}: {report:?}");
    (report.iterations(), solver.error(|x| (PI * x).sin()).unwrap())
}

/// Table 7: a cycle in single precision takes as many iterations, and the error is that of the
/// discretisation.
#[test]
fn mixed_precision_takes_as_many_iterations_to_the_same_error() {
    const CASES: [(Dimension, usize, usize); 4] =
        [(Dimension::Two, 2, 16), (Dimension::Three, 1, 8), (Dimension::Two, 5, 8), (Dimension::Three, 3, 4)];
    for device in devices() {
        let on_host = device.info().backend == Backend::C;
        for (dimension, degree, cells) in CASES.into_iter().take(if on_host { 4 } else { 2 }) {
            let element = Element::new(dimension, degree).unwrap();
            let double = solved(&*device, element, cells, Precision::Double);
            let single = solved(&*device, element, cells, Precision::Single);
            eprintln!("{dimension:?} Q{degree}, {cells} a side: {double:?}, {single:?}");
            assert_eq!(double.0, single.0, "{element:?}");
            // both residuals are 1e-9 of the start, the error is at least 1e-8
            assert!((double.1 / single.1 - 1.0).abs() < 1e-3, "{element:?}: {double:?} {single:?}");
        }
    }
}

/// A mesh whose hierarchy fits, but not with the vectors of the method, is refused with its bytes.
#[test]
fn vectors_that_do_not_fit_are_refused_before_they_are_allocated() {
    let device = open("c").unwrap();
    let available = device.info().global_mem_bytes;
    let element = Element::new(Dimension::Two, 1).unwrap();
    let cells = (1..40).map(|level| 1_usize << level);
    let nodes = |cells: usize| element.nodes(cells) as u64;
    let Some(cells) = cells.into_iter().find(|cells| 8 * 8 * nodes(*cells) > available) else {
        println!("skipped: the device does not say how much memory it has");
        return;
    };
    let refused =
        PreconditionedSolver::new(&*device, element, cells, Precision::Double, GmresOptions::default());
    match refused.err().unwrap() {
        MultigridError::Memory { needed, available: found, .. } => {
            // no more than the machine has, or than is free at the moment
            // three vectors of the hierarchy on the finest level, a third of that below, five of GMRES
            let [least, most] = [8, 10].map(|vectors| vectors * 8 * nodes(cells));
            assert!(
                needed > least && needed < most && (1..=available).contains(&found),
                "{needed} of {least}, {most}"
            );
        }
        other => panic!("{other}"),
    }
}

/// The error falls like h^(k + 1), and its value at one mesh is that of the interpolant's order.
#[test]
fn errors_fall_with_the_order_of_the_elements() {
    let device = open("c").unwrap();
    for (dimension, degree, cells) in
        [(Dimension::Two, 1, 16), (Dimension::Two, 3, 8), (Dimension::Three, 2, 4)]
    {
        let element = Element::new(dimension, degree).unwrap();
        let [coarse, fine] =
            [cells, 2 * cells].map(|cells| solved(&*device, element, cells, Precision::Double).1);
        let order = (coarse / fine).log2();
        assert!(
            (order - (degree as f64 + 1.0)).abs() < 0.1,
            "{element:?}: {coarse:e} {fine:e}, order {order}"
        );
    }
}

/// From the solution of the coarser mesh, fewer iterations reach the same residual, from either side.
#[test]
fn a_nested_start_saves_iterations() {
    for device in devices() {
        for (dimension, degree, cells, side) in [
            (Dimension::Two, 2, 16, PreconditionerSide::Right),
            (Dimension::Two, 4, 8, PreconditionerSide::Left),
            (Dimension::Three, 3, 4, PreconditionerSide::Right),
        ] {
            let element = Element::new(dimension, degree).unwrap();
            let options = GmresOptions { side, ..GmresOptions::default() };
            let mut found = Vec::new();
            for (start, precision) in [
                (Start::Zero, Precision::Double),
                (Start::Nested, Precision::Double),
                (Start::Nested, Precision::Single),
            ] {
                let cycle = HierarchyOptions { precision, ..HierarchyOptions::default() };
                let mut solver =
                    PreconditionedSolver::with(&*device, element, cells, cycle, start, options).unwrap();
                let (factor, line) = sine_load(solver.hierarchy().line(), element, cells);
                solver.set_product(factor, &line).unwrap();
                let report = solver.solve().unwrap();
                assert!(report.converged(), "{element:?} {start:?} {precision:?}: {report:?}");
                eprintln!("{element:?} {start:?} {precision:?}: {:?}", report.residuals);
                found.push((report.iterations(), solver.error(|x| (PI * x).sin()).unwrap()));
            }
            let [zero, nested, mixed] = found[..] else { panic!("{found:?}") };
            assert!(nested.0 < zero.0 && mixed.0 < zero.0, "{found:?}");
            for other in [nested, mixed] {
                assert!((other.1 / zero.1 - 1.0).abs() < 1e-3, "{found:?}");
            }
        }
    }
}
