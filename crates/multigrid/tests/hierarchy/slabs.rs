//! The hierarchy in slabs, one a device: as on one device.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost_ir::VarKind;
use kingpost_multigrid::kernels::{Operation, plain};
use kingpost_multigrid::schedules::program_on_slab;
use kingpost_multigrid::{
    Dimension, Element, Exchanges, HierarchyOptions, MultigridError, Precision, PreconditionedSolver,
    SlabOptions, SlabSolver, Start, sine_load,
};
use kingpost_runtime::{Backend, Device, open};
use kingpost_solve::{Communicator, GmresOptions, HostCommunicator, LinearReport};
use std::f64::consts::PI;

type Solved = (LinearReport, Vec<f64>, f64);

fn boxed<'d>(devices: &[&'d dyn Device]) -> Vec<Box<dyn Communicator + 'd>> {
    HostCommunicator::of_devices(devices).into_iter().map(|one| Box::new(one) as _).collect()
}

fn on_one(device: &dyn Device, element: Element, cells: usize, precision: Precision) -> Solved {
    let cycle = HierarchyOptions { precision, ..HierarchyOptions::default() };
    let options = GmresOptions::default();
    let mut solver = PreconditionedSolver::with(device, element, cells, cycle, Start::Zero, options).unwrap();
    let (factor, line) = sine_load(solver.hierarchy().line(), element, cells);
    solver.set_product(factor, &line).unwrap();
    let report = solver.solve().unwrap();
    (report, solver.solution().unwrap(), solver.error(|x| (PI * x).sin()).unwrap())
}

fn in_slabs<'d>(
    devices: &[&'d dyn Device],
    element: Element,
    cells: usize,
    options: SlabOptions,
) -> SlabSolver<'d> {
    let solver = SlabSolver::new(devices, boxed(devices), element, cells, options).unwrap();
    let axes = element.dimension.axes() as f64;
    solver.set_product(axes * PI * PI, |x| (PI * x).sin()).unwrap();
    solver
}

fn solved(solver: &mut SlabSolver<'_>, exchanges: Exchanges) -> Solved {
    solver.set_exchanges(exchanges);
    let report = solver.solve().unwrap();
    (report, solver.solution().unwrap(), solver.error(|x| (PI * x).sin()).unwrap())
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}

/// Same iterations, residuals and solution, whatever is in slabs and whenever numbers are
/// exchanged.
fn compare(devices: &[&dyn Device], dimension: Dimension, degree: usize, cells: usize, least_layers: usize) {
    let element = Element::new(dimension, degree).unwrap();
    let one = on_one(devices[0], element, cells, Precision::Double);
    assert!(one.0.converged());
    let options = SlabOptions { least_layers, ..SlabOptions::default() };
    let mut solver = in_slabs(devices, element, cells, options);
    for exchanges in [Exchanges::Overlapped, Exchanges::InTurn] {
        let (report, solution, error) = solved(&mut solver, exchanges);
        eprintln!("{element:?} {cells} {} parts: {:?}", devices.len(), report.residuals);
        assert_eq!(report.iterations(), one.0.iterations());
        let difference = largest(one.1.iter().zip(&solution).map(|(a, b)| a - b));
        // sums of other orders in residuals alone
        assert!(difference < 1e-12, "{difference:e}");
        assert!((error / one.2 - 1.0).abs() < 1e-6, "{error:e} {:e}", one.2);
        for (a, b) in report.residuals.iter().zip(&one.0.residuals) {
            assert!((a - b).abs() <= 1e-10 * one.0.residuals[0], "{a:e} {b:e}");
        }
    }
}

#[test]
fn slabs_of_two_processors_are_as_one() {
    let devices = [open("c").unwrap(), open("c").unwrap()];
    let devices = [&*devices[0], &*devices[1]];
    compare(&devices, Dimension::Two, 2, 16, 2);
    compare(&devices, Dimension::Three, 1, 8, 4);
}

#[test]
fn slabs_of_four_parts_are_as_one() {
    let device = open("c").unwrap();
    let devices = [&*device; 4];
    compare(&devices, Dimension::Three, 2, 8, 2); // a part in the middle has two neighbours
    compare(&devices[..1], Dimension::Two, 1, 8, 2);
}

#[test]
fn slabs_of_other_devices_are_as_one() {
    let devices = [open("c").unwrap(), open("opencl").unwrap()];
    let devices = [&*devices[1], &*devices[0]];
    compare(&devices, Dimension::Two, 2, 8, 2);
}

/// Cubes after each other take as many iterations as one, in any number of slabs, to the same
/// error in the mean.
#[test]
fn slabs_of_longer_boxes_are_as_one() {
    let device = open("c").unwrap();
    for (dimension, degree, cells) in [(Dimension::Two, 2, 8), (Dimension::Three, 1, 4)] {
        let element = Element::new(dimension, degree).unwrap();
        let cube = on_one(&*device, element, cells, Precision::Double);
        for height in [2, 3] {
            let options = SlabOptions { height, least_layers: 2, ..SlabOptions::default() };
            let solved = |parts| {
                solved(&mut in_slabs(&vec![&*device; parts], element, cells, options), Exchanges::InTurn)
            };
            let (one, all) = (solved(1), solved(height));
            let errors = [one.2, all.2].map(|error| error / (cube.2 * (height as f64).sqrt()));
            assert!(
                errors.iter().all(|error| (error - 1.0).abs() < 1e-6),
                "{element:?} {height}: {errors:?}"
            );
            let iterations = [&cube, &one, &all].map(|solved| solved.0.iterations());
            assert!(iterations[1] == iterations[2] && iterations[1] <= iterations[0] + 1, "{iterations:?}");
            let difference = largest(one.1.iter().zip(&all.1).map(|(a, b)| a - b));
            assert!(one.1.len() == all.1.len() && difference < 1e-11, "{difference:e}");
        }
    }
}

/// Cycles in single precision take as many iterations, to the same error.
#[test]
fn slabs_mix_precisions() {
    let device = open("c").unwrap();
    let element = Element::new(Dimension::Two, 3).unwrap();
    let options = SlabOptions { precision: Precision::Single, ..SlabOptions::default() };
    let one = on_one(&*device, element, 16, Precision::Single);
    let two = solved(&mut in_slabs(&[&*device; 2], element, 16, options), Exchanges::Overlapped);
    assert_eq!(one.0.iterations(), two.0.iterations());
    assert!((one.2 / two.2 - 1.0).abs() < 1e-3, "{} {}", one.2, two.2);
}

/// Without an exchange, cycles are others: the comparison above sees it.
#[test]
fn slabs_that_exchange_nothing_are_others() {
    let device = open("c").unwrap();
    let element = Element::new(Dimension::Two, 2).unwrap();
    let options = SlabOptions { least_layers: 2, ..SlabOptions::default() };
    let one = on_one(&*device, element, 16, Precision::Double);
    let cut = solved(&mut in_slabs(&[&*device; 2], element, 16, options), Exchanges::LeftOut);
    assert!(cut.0.iterations() > one.0.iterations(), "{:?} {:?}", cut.0, one.0);
}

#[test]
fn slabs_that_do_not_nest_are_refused() {
    let device = open("c").unwrap();
    let element = Element::new(Dimension::Two, 1).unwrap();
    let refused = |parts: usize, cells: usize| {
        let devices = vec![&*device; parts];
        SlabSolver::new(&devices, boxed(&devices), element, cells, SlabOptions::default()).err().unwrap()
    };
    assert!(matches!(refused(3, 16), MultigridError::Slabs { layers: 16, parts: 3, nearest: 2, .. }));
    assert!(matches!(refused(4, 4), MultigridError::Slabs { layers: 4, parts: 4, nearest: 2, .. }));
    assert!(matches!(refused(2, 12), MultigridError::Cells { cells: 12, nearest: 16 }));
    assert!(matches!(refused(2, 2), MultigridError::Cells { cells: 2, nearest: 4 }));
}

/// A mesh fixes the sizes and places of slabs, so that its kernels know its cells and the colours alone.
#[test]
fn nothing_of_slabs_is_left_on_a_mesh() {
    for dimension in [Dimension::Two, Dimension::Three] {
        let element = Element::new(dimension, 2).unwrap();
        for operation in Operation::ALL {
            let kernel = plain(operation, element, Precision::Single).unwrap();
            let params = kernel.vars.values().filter(|v| v.kind == VarKind::Param).map(|v| &*v.name);
            let others: Vec<&str> =
                params.filter(|name| !["n", "c0", "c1", "c2", "r0", "r1", "r2"].contains(name)).collect();
            assert_eq!(others, [""; 0], "{operation:?}");
            let of_colours = kernel.assumptions.len();
            assert!(of_colours <= 1 + 2 * 2 * dimension.axes(), "{operation:?}: {kernel}");
        }
    }
}

/// The steps of every operation are proved on a slab for a card, also those of matrix instructions.
#[test]
fn cards_have_kernels_of_slabs() {
    let all = kingpost_sample::is_long_run(); // a minute
    let on = (Backend::Cuda, "sm_90");
    for degree in if all { &[2, 7][..] } else { &[1] } {
        let element = Element::new(Dimension::Three, *degree).unwrap();
        let of = |operation| program_on_slab(operation, element, Precision::Double, on).unwrap().source;
        let smooth = of(Operation::Smooth);
        assert!(smooth.contains("nz") && (*degree == 7) == smooth.contains("mma.sync"), "{smooth}");
        for operation in [Operation::Residual, Operation::Restrict, Operation::Prolongate] {
            assert!(of(operation).contains("nz"), "{operation:?}");
        }
        let refused = program_on_slab(Operation::Copy, element, Precision::Double, on).unwrap_err();
        assert!(matches!(refused, MultigridError::NoSlab(Operation::Copy)), "{refused}");
    }
}
