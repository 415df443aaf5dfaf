//! Stokes' equations in Raviart–Thomas elements: operator, smoother and cycle against dense
//! matrices by quadrature, and solves.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::reference::{Random, devices, element, largest};
use crate::stokes_reference::{Mesh, Sparse};
use kingpost_multigrid::stokes::{
    SourceTerm, StokesCycle, StokesHierarchy, StokesLine, StokesOperation, StokesOperator, StokesSmoother,
    StokesSolver, program,
};
use kingpost_multigrid::{Dimension, MultigridError, Precision};
use kingpost_runtime::cuda::nvrtc;
use kingpost_runtime::{Backend, Cache, Device, buffer_of, download_values, open, upload_values};
use kingpost_sample::of_run;
use kingpost_solve::{GmresOptions, Operator, Queue};
use std::f64::consts::PI;

const TO_1E8: GmresOptions = GmresOptions {
    relative: 1e-8,
    absolute: 0.0,
    max_iterations: 30,
    restart: 30,
    side: kingpost_solve::PreconditionerSide::Right,
};

/// Numbers at the unknowns, zeros elsewhere.
fn random(mesh: Mesh, seed: u64) -> Vec<f64> {
    let numbers = Random(seed).numbers(mesh.numbers());
    numbers.into_iter().enumerate().map(|(at, x)| if mesh.is_unknown(at) { x } else { 0.0 }).collect()
}

fn applied(device: &dyn Device, operator: &dyn Operator, x: &[f64]) -> Vec<f64> {
    let from = buffer_of(device, x).unwrap();
    let to = buffer_of(device, &vec![0.0; x.len()]).unwrap();
    let mut queue = Queue::new();
    operator.apply(&from, &to, &mut queue);
    queue.run(device).unwrap();
    download_values(device, &to).unwrap()
}

#[test]
fn the_operator_is_that_of_quadrature() {
    let cases =
        [(Dimension::Two, 1, 3), (Dimension::Two, 2, 2), (Dimension::Two, 3, 3), (Dimension::Three, 1, 2)];
    for (dimension, degree, cells) in cases {
        let mesh = Mesh { axes: dimension.axes(), m: degree + 1, cells };
        let x = random(mesh, 7);
        let expected = mesh.matrix().times(&x);
        for device in devices() {
            let operator = StokesOperator::new(&*device, element(dimension, degree), cells).unwrap();
            let off = largest(&applied(&*device, &operator, &x), &expected);
            // 1e-12: sums of some hundred terms, and powers of monomials in the reference
            assert!(off < 1e-12, "{dimension:?} RT{degree} on {}: {off}", device.info().name);
        }
    }
}

fn prolongation(coarse: Mesh) -> Sparse {
    let line = StokesLine::new(coarse.m - 1).unwrap();
    coarse.prolongation(&line.continuous_prolongation, &line.prolongation)
}

/// Functions on a mesh are those on half as large cells, at any point.
#[test]
fn prolongated_functions_are_the_same() {
    for (axes, m) in [(2, 2), (2, 4), (3, 2)] {
        let (coarse, fine) = (Mesh { axes, m, cells: 2 }, Mesh { axes, m, cells: 4 });
        let x = random(coarse, 3);
        let y = prolongation(coarse).times(&x);
        for (cell, place) in [(1, 0.3), (0, 0.8)] {
            let (cell, point) =
                (vec![cell; axes], (0..axes).map(|a| place - 0.1 * a as f64).collect::<Vec<_>>());
            let half: Vec<usize> = point.iter().map(|x| usize::from(*x > 0.5)).collect();
            let in_half: Vec<usize> = cell.iter().zip(&half).map(|(c, h)| 2 * c + h).collect();
            let there: Vec<f64> = point.iter().zip(&half).map(|(x, h)| 2.0 * x - *h as f64).collect();
            let expected = coarse.values(&x, (&cell, &point));
            let found = fine.values(&y, (&in_half, &there));
            assert!(largest(&found, &expected) < 1e-12, "{found:?} {expected:?}");
        }
    }
}

#[test]
fn a_cycle_is_that_of_dense_matrices() {
    let cases = [(Dimension::Two, 1), (Dimension::Two, 2), (Dimension::Three, 1)];
    for (dimension, degree) in of_run(cases, &[1, 2]) {
        let axes = dimension.axes();
        let [coarse, fine] = [2, 4].map(|cells| Mesh { axes, m: degree + 1, cells });
        let (a, inverse, p) = (fine.matrix(), fine.patch_inverse(), prolongation(coarse));
        // the pressure's right-hand side too: its mean on each patch is left out
        let b = random(fine, 11);
        let mut x = vec![0.0; fine.numbers()];
        fine.smooth(&a, &inverse, &mut x, &b);
        let smoothed = x.clone();
        let residual: Vec<f64> = b.iter().zip(a.times(&x)).map(|(b, y)| b - y).collect();
        let factor = 2.0_f64.powi(2 - axes as i32);
        let restricted = p.transposed_times(&residual, coarse.numbers());
        let at_unknowns = |(at, r): (usize, f64)| if coarse.is_unknown(at) { factor * r } else { 0.0 };
        let restricted: Vec<f64> = restricted.into_iter().enumerate().map(at_unknowns).collect();
        let mut below = vec![0.0; coarse.numbers()];
        coarse.smooth(&coarse.matrix(), &inverse, &mut below, &restricted);
        x.iter_mut().zip(p.times(&below)).for_each(|(x, correction)| *x += correction);
        fine.smooth(&a, &inverse, &mut x, &b);
        for device in devices() {
            let levels =
                StokesHierarchy::new(&*device, element(dimension, degree), 4, Precision::Double, [1, 1])
                    .unwrap();
            let [of_b, of_x] = levels.vectors();
            upload_values(&*device, of_b, &b).unwrap();
            levels.smooth().unwrap();
            let found: Vec<f64> = download_values(&*device, of_x).unwrap();
            let off = largest(&found, &smoothed);
            // 1e-11: condition of patches times 1e-16
            assert!(off < 1e-11, "{dimension:?} RT{degree} on {}, a step: {off}", device.info().name);
            let found = applied(&*device, &StokesCycle(&levels), &b);
            let off = largest(&found, &x);
            assert!(off < 1e-11, "{dimension:?} RT{degree} on {}, a cycle: {off}", device.info().name);
        }
    }
}

fn s(x: f64) -> f64 {
    (PI * x).sin().powi(2)
}
fn s1(x: f64) -> f64 {
    PI * (2.0 * PI * x).sin()
}
fn s2(x: f64) -> f64 {
    2.0 * PI * PI * (2.0 * PI * x).cos()
}
fn s3(x: f64) -> f64 {
    -4.0 * PI.powi(3) * (2.0 * PI * x).sin()
}
fn c(x: f64) -> f64 {
    (PI * x).cos()
}
fn c1(x: f64) -> f64 {
    -PI * (PI * x).sin()
}

/// The force of the velocity `(s(x) s'(y), -s'(x) s(y))`, in three dimensions times `s(z)` and 0,
/// and of a pressure of cosines.
fn force(axes: usize) -> Vec<SourceTerm> {
    let term =
        |component, factor, along: &[fn(f64) -> f64]| SourceTerm { component, factor, along: along.to_vec() };
    type Function = fn(f64) -> f64;
    let plane: [(usize, f64, [Function; 2]); 4] =
        [(0, -1.0, [s2, s1]), (0, -1.0, [s, s3]), (1, 1.0, [s3, s]), (1, 1.0, [s1, s2])];
    let pressures = (0..axes).map(|of| {
        let along: Vec<fn(f64) -> f64> =
            (0..axes).map(|axis| if axis == of { c1 as fn(f64) -> f64 } else { c }).collect();
        SourceTerm { component: of, factor: 1.0, along }
    });
    let mut terms: Vec<SourceTerm> = pressures.collect();
    if axes == 2 {
        terms.extend(plane.map(|(component, factor, along)| term(component, factor, &along)));
    } else {
        terms.extend(plane.map(|(component, factor, [a, b])| term(component, factor, &[a, b, s])));
        terms.push(term(0, -1.0, &[s, s1, s2]));
        terms.push(term(1, 1.0, &[s1, s, s2]));
    }
    terms
}

/// Errors of velocity and pressure in the L2 norm.
fn errors(mesh: Mesh, solution: &[f64]) -> [f64; 2] {
    let rule = mesh.rule(mesh.axes, mesh.m + 1);
    let mut squares = [0.0; 2];
    for cell in mesh.all_cells() {
        for (point, weight) in &rule {
            let x: Vec<f64> =
                cell.iter().zip(point).map(|(c, x)| (*c as f64 + x) / mesh.cells as f64).collect();
            let depth = if mesh.axes == 3 { s(x[2]) } else { 1.0 };
            let mut exact = vec![s(x[0]) * s1(x[1]) * depth, -s1(x[0]) * s(x[1]) * depth];
            exact.resize(mesh.axes, 0.0);
            exact.push(x.iter().map(|x| c(*x)).product());
            let found = mesh.values(solution, (&cell, point));
            let weight = weight / (mesh.cells as f64).powi(mesh.axes as i32);
            for (at, (a, b)) in found.iter().zip(&exact).enumerate() {
                squares[usize::from(at == mesh.axes)] += weight * (a - b).powi(2);
            }
        }
    }
    squares.map(f64::sqrt)
}

fn solved(device: &dyn Device, mesh: Mesh, precision: Precision) -> (usize, [f64; 2]) {
    let dimension = if mesh.axes == 2 { Dimension::Two } else { Dimension::Three };
    let mut solver =
        StokesSolver::new(device, element(dimension, mesh.m - 1), mesh.cells, precision, TO_1E8).unwrap();
    solver.set_source(&force(mesh.axes)).unwrap();
    let report = solver.solve().unwrap();
    assert!(report.converged(), "{report:?}");
    let divergence = solver.divergence().unwrap();
    // of derivatives of some ten
    assert!(divergence < 1e-11, "{divergence}");
    assert_eq!(solver.unknowns(), mesh.unknowns().len());
    (report.iterations(), errors(mesh, &solver.solution().unwrap()))
}

/// Velocities and pressures converge with order k + 1, iterations do not grow.
#[test]
fn errors_fall_with_the_order_of_the_elements_in_as_many_iterations() {
    let device = open("c").unwrap();
    // from 4 to 8 cells a side the pressure of cubes does not fall like h^2 yet
    let cases =
        [(2, 1, vec![8, 16, 32], 10, 1.9), (2, 2, vec![4, 8, 16], 6, 2.9), (3, 1, vec![4, 8], 7, 1.3)];
    for (axes, degree, cells, most, least) in of_run(cases, &[1]) {
        let all: Vec<_> = cells
            .iter()
            .map(|cells| solved(&*device, Mesh { axes, m: degree + 1, cells: *cells }, Precision::Double))
            .collect();
        eprintln!("{axes}-D RT{degree}, {cells:?} a side: {all:?}");
        assert!(all.iter().all(|(iterations, _)| *iterations <= most), "{axes}-D RT{degree}: {all:?}");
        if let [.., (_, coarse), (_, fine)] = &all[..] {
            for (coarse, fine) in coarse.iter().zip(fine) {
                let order = (coarse / fine).log2();
                assert!(order > least, "{axes}-D RT{degree}: order {order}");
            }
        }
    }
}

#[test]
fn a_cycle_in_single_precision_takes_as_many_iterations() {
    let mesh = Mesh { axes: 2, m: 3, cells: 8 };
    for device in devices() {
        let [double, single] =
            [Precision::Double, Precision::Single].map(|precision| solved(&*device, mesh, precision));
        assert_eq!(double.0, single.0);
        // both residuals are 1e-8 of the start
        assert!((double.1[0] / single.1[0] - 1.0).abs() < 1e-3, "{double:?} {single:?}");
    }
}

#[test]
fn what_is_no_problem_is_refused() {
    let device = open("c").unwrap();
    let square = element(Dimension::Two, 1);
    let levels = |cells, steps| StokesHierarchy::new(&*device, square, cells, Precision::Double, steps).err();
    assert!(matches!(levels(6, [1, 1]), Some(MultigridError::Cells { cells: 6, nearest: 8 })));
    assert!(matches!(levels(4, [0, 0]), Some(MultigridError::NoSteps)));
    assert!(matches!(levels(1 << 24, [1, 1]), Some(MultigridError::Memory { .. })));
    let eighth = element(Dimension::Two, 8);
    assert!(matches!(
        StokesOperator::new(&*device, eighth, 4).err(),
        Some(MultigridError::Degree { degree: 8, highest: 7 })
    ));
    assert!(matches!(
        StokesOperator::new(&*device, square, 1).err(),
        Some(MultigridError::Cells { cells: 1, nearest: 2 })
    ));
    let solver = StokesSolver::new(&*device, square, 2, Precision::Double, TO_1E8).unwrap();
    for (component, along) in [(2, vec![s as fn(f64) -> f64; 2]), (0, vec![s; 3])] {
        let refused = solver.set_source(&[SourceTerm { component, factor: 1.0, along }]).err();
        assert!(matches!(refused, Some(MultigridError::Source { .. })), "{refused:?}");
    }
}

/// A step and a cycle from vectors that are no zeros, of all colours, also where each patch of a
/// colour is at both ends of the mesh, or at none.
#[test]
fn a_fused_step_is_that_of_residuals_before_solutions() {
    let cases = [
        (Dimension::Two, 1, 4, Precision::Double),
        (Dimension::Two, 2, 8, Precision::Double),
        (Dimension::Two, 3, 4, Precision::Single),
        (Dimension::Three, 1, 4, Precision::Double),
        (Dimension::Three, 1, 8, Precision::Single),
        (Dimension::Three, 2, 4, Precision::Double),
    ];
    for (dimension, degree, cells, precision) in of_run(cases, &[0, 2, 3]) {
        let mesh = Mesh { axes: dimension.axes(), m: degree + 1, cells };
        let [b, start] = [random(mesh, 5), random(mesh, 9)];
        for device in devices() {
            let step = |smoother| {
                let element = element(dimension, degree);
                let levels =
                    StokesHierarchy::with_smoother(&*device, element, cells, precision, [1, 1], smoother)
                        .unwrap();
                assert_eq!(levels.smoother(), smoother);
                let [of_b, of_x] = levels.vectors();
                match precision {
                    Precision::Double => {
                        upload_values(&*device, of_b, &b).unwrap();
                        upload_values(&*device, of_x, &start).unwrap();
                        levels.smooth().unwrap();
                        levels.v_cycle().unwrap();
                        download_values::<f64>(&*device, of_x).unwrap()
                    }
                    Precision::Single => {
                        let single = |values: &[f64]| values.iter().map(|x| *x as f32).collect::<Vec<_>>();
                        upload_values(&*device, of_b, &single(&b)).unwrap();
                        upload_values(&*device, of_x, &single(&start)).unwrap();
                        levels.smooth().unwrap();
                        levels.v_cycle().unwrap();
                        let found: Vec<f32> = download_values(&*device, of_x).unwrap();
                        found.into_iter().map(f64::from).collect()
                    }
                }
            };
            let [global, fused] = [StokesSmoother::Global, StokesSmoother::Fused].map(step);
            let off = largest(&fused, &global);
            // condition of patches times what is rounded
            let most = if precision == Precision::Double { 1e-11 } else { 1e-3 };
            let what = format!("{dimension:?} RT{degree} {precision:?} on {}", device.info().name);
            println!("{what}: {off}");
            assert!(off < most, "{what}: {off}");
        }
    }
}

#[test]
fn stokes_kernels_compile_for_a_card() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let elements = [(Dimension::Two, 2), (Dimension::Three, 1), (Dimension::Three, 2)];
    for (k, operation) in StokesOperation::ALL.into_iter().enumerate() {
        let cases = elements.into_iter().flat_map(|e| [Precision::Double, Precision::Single].map(|p| (e, p)));
        for ((dimension, degree), precision) in of_run(cases, &[k % 4]) {
            let program = program(operation, element(dimension, degree), precision, Backend::Cuda).unwrap();
            let compiled =
                nvrtc::compile_for("sm_90", &program.entry, &program.source, &Cache::from_environment());
            match compiled.map(|object| object.resources) {
                Ok(resources) => println!("{operation:?} {dimension:?} RT{degree}: {resources:?}"),
                Err(error) => panic!("{operation:?} {dimension:?} RT{degree}: {error}"),
            }
        }
    }
}
