//! Conjugate gradients and prescribed values on small matrices, against dense elimination.

#![allow(clippy::unwrap_used, clippy::needless_range_loop)] // rows and columns go by number

use crate::systems::{
    Numbers, TIGHT, devices, eliminated, every_device, jacobi, nonsymmetric, operator, pattern, symmetric,
    upper, values,
};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Backend, Device, buffer_of, download_values, open};
use kingpost_sample::seed;
use kingpost_solve::{
    ConjugateGradients, Constraints, CsrOperator, Diagonal, Gmres, GmresOptions, LinearOptions, LinearReason,
    LinearReport, Operator, PreconditionerSide, Preconditioning, PrescribedValues, Queue, ResidualNorm,
    SolveError, run,
};

fn solve(
    device: &dyn Device,
    pattern: &CsrPattern,
    dense: &[Vec<f64>],
    b: &[f64],
    options: LinearOptions,
) -> (LinearReport, Vec<f64>) {
    let n = b.len();
    let matrix = operator(device, pattern, dense);
    let [inverse, x] = [(); 2].map(|()| device.allocate(8 * n as u64).unwrap());
    run(device, &[matrix.invert_diagonal(&inverse)]).unwrap();
    let right = buffer_of(device, b).unwrap();
    let solver = ConjugateGradients::new(device, n, options).unwrap();
    let before = device.traffic();
    let report = solver.solve(&matrix, Preconditioning::Diagonal(&inverse), &right, &x).unwrap();
    let traffic = device.traffic().since(before);
    assert_eq!(traffic.to_device, 0);
    // a card has the next look on its way at the last one
    let ahead = usize::from(device.info().backend == Backend::Cuda);
    let looks = (report.iterations() / options.look_every + 1 + ahead) as u64;
    assert!(traffic.to_host <= looks * 24 * (options.look_every as u64 + 2), "{traffic:?}");
    (report, download_values(device, &x).unwrap())
}

#[test]
fn solutions_are_those_of_elimination() {
    let seed = seed();
    for device in every_device() {
        let mut numbers = Numbers(seed);
        // one group of work-items and several of them
        for n in [1, 5, 300] {
            let pattern = pattern(n);
            let dense = symmetric(&pattern, 0.5, &mut numbers);
            let b = numbers.list(n);
            let (report, x) = solve(&*device, &pattern, &dense, &b, TIGHT);
            assert!(report.converged(), "seed {seed}: {report:?}");
            let expected = eliminated(dense, b);
            let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            // a residual of 1e-12 times the condition, below 1e2
            let worst = x.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(worst <= 1e-10 * largest, "{} n = {n}, seed {seed}: {worst:e}", device.info().name);
        }
    }
}

#[test]
fn how_often_the_host_looks_changes_nothing() {
    let seed = seed();
    let mut numbers = Numbers(seed);
    let pattern = pattern(200);
    let dense = symmetric(&pattern, 0.01, &mut numbers);
    let b = numbers.list(200);
    let device = open("c").unwrap();
    let with = |look_every| {
        solve(&*device, &pattern, &dense, &b, LinearOptions { relative: 1e-8, look_every, ..TIGHT })
    };
    let (one, x) = with(1);
    assert!(one.converged() && one.iterations() > 8, "{one:?}");
    for look_every in [3, 16, 64] {
        let (other, y) = with(look_every);
        assert_eq!(other.iterations(), one.iterations(), "seed {seed}");
        // sums of groups are added in any order
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        assert!(one.residuals.iter().zip(&other.residuals).all(close), "seed {seed}");
        assert!(x.iter().zip(&y).all(close), "seed {seed}: look every {look_every}");
    }
}

/// Norms of the residuals of conjugate gradients with Jacobi's preconditioner, plain and
/// preconditioned.
fn norms(dense: &[Vec<f64>], b: &[f64], iterations: usize) -> [Vec<f64>; 2] {
    let dot = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(v, w)| v * w).sum::<f64>();
    let scaled = |r: &[f64]| r.iter().enumerate().map(|(i, r)| r / dense[i][i]).collect::<Vec<f64>>();
    let mut r = b.to_vec();
    let mut p = scaled(&r);
    let mut found = [vec![], vec![]];
    for _ in 0..=iterations {
        let z = scaled(&r);
        found[0].push(dot(&r, &r).sqrt());
        found[1].push(dot(&z, &z).sqrt());
        let q: Vec<f64> = dense.iter().map(|row| dot(row, &p)).collect();
        let rz = dot(&r, &z);
        let alpha = rz / dot(&p, &q);
        r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
        let z = scaled(&r);
        let beta = dot(&r, &z) / rz;
        p = z.iter().zip(&p).map(|(z, p)| z + beta * p).collect();
    }
    found
}

#[test]
fn residuals_are_in_the_norm_that_is_asked_for() {
    let seed = seed();
    for device in devices() {
        let device = &*device;
        let mut numbers = Numbers(seed);
        let pattern = pattern(300);
        let dense = symmetric(&pattern, 0.5, &mut numbers);
        let b = numbers.list(300);
        let expected = norms(&dense, &b, 6);
        let matrix = operator(device, &pattern, &dense);
        let diagonal = Diagonal::identity(device, 300).unwrap();
        run(device, &[diagonal.invert(&matrix)]).unwrap();
        let [right, x] = [buffer_of(device, &b).unwrap(), device.allocate(8 * 300).unwrap()];
        for (norm, expected) in ResidualNorm::ALL.into_iter().zip(expected) {
            let options = LinearOptions { norm, max_iterations: 5, look_every: 4, ..TIGHT };
            let solver = ConjugateGradients::new(device, 300, options).unwrap();
            let ways = [Preconditioning::Diagonal(diagonal.values()), Preconditioning::Operator(&diagonal)];
            for way in ways {
                let report = solver.solve(&matrix, way, &right, &x).unwrap();
                assert_eq!(report.iterations(), 5, "{norm}");
                let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * expected[0];
                assert!(report.residuals.iter().zip(&expected).all(close), "{norm}, seed {seed}: {report:?}");
            }
        }
    }
}

#[test]
fn what_does_not_converge_says_why() {
    let mut numbers = Numbers(seed());
    let pattern = pattern(200);
    let dense = symmetric(&pattern, 0.01, &mut numbers);
    let b = numbers.list(200);
    let device = open("c").unwrap();
    let few = LinearOptions { max_iterations: 3, ..TIGHT };
    let (report, _) = solve(&*device, &pattern, &dense, &b, few);
    assert_eq!((report.reason, report.iterations()), (LinearReason::TooMany, 3));

    let (report, x) = solve(&*device, &pattern, &dense, &[0.0; 200], TIGHT);
    assert_eq!((report.reason, report.iterations()), (LinearReason::Converged, 0));
    assert!(x.iter().all(|x| *x == 0.0));

    let mut holed = b.clone();
    holed[77] = f64::NAN;
    let (report, _) = solve(&*device, &pattern, &dense, &holed, TIGHT);
    assert_eq!((report.reason, report.iterations()), (LinearReason::NotFinite, 0));

    // one eigenvalue of another sign, found before convergence
    let mut indefinite = dense.clone();
    indefinite[100][100] = -5.0;
    let (report, x) = solve(&*device, &pattern, &indefinite, &b, TIGHT);
    assert_eq!(report.reason, LinearReason::Indefinite);
    assert!(x.iter().all(|x| x.is_finite()));
    let slope: f64 = x.iter().zip(&b).map(|(x, b)| x * b).sum();
    assert!(slope > 0.0, "the solution before it descends: {slope}");

    // Jacobi's preconditioner of a negative matrix: the first direction has no curvature
    let negative: Vec<Vec<f64>> = dense.iter().map(|row| row.iter().map(|x| -x).collect()).collect();
    let (report, x) = solve(&*device, &pattern, &negative, &b, TIGHT);
    assert_eq!((report.reason, report.iterations()), (LinearReason::Indefinite, 0));
    assert!((x[3] - b[3] / negative[3][3]).abs() <= 1e-12 * x[3].abs());
}

#[test]
fn prescribed_values_are_those_of_elimination() {
    let seed = seed();
    for device in devices() {
        let device = &*device;
        let mut numbers = Numbers(seed);
        let (n, pattern) = (50, pattern(50));
        let dense = symmetric(&pattern, 0.5, &mut numbers);
        let (b, u) = (numbers.list(n), numbers.list(n));
        let unknowns = vec![3, 4, 17, 49];
        let prescribed = PrescribedValues { values: numbers.list(4), unknowns };
        // rows and columns of the dense matrix
        let mut expected = (dense.clone(), b.clone());
        for (unknown, value) in prescribed.unknowns.iter().zip(&prescribed.values) {
            let (f, gap) = (*unknown as usize, value - u[*unknown as usize]);
            for i in 0..n {
                expected.1[i] -= dense[i][f] * gap;
            }
        }
        for (unknown, value) in prescribed.unknowns.iter().zip(&prescribed.values) {
            let f = *unknown as usize;
            for i in 0..n {
                expected.0[i][f] = 0.0;
                expected.0[f][i] = 0.0;
            }
            expected.0[f][f] = 1.0;
            expected.1[f] = value - u[f];
        }
        for pattern in [pattern, upper(n)] {
            let constraints = Constraints::new(device, &pattern, &prescribed).unwrap();
            let [matrix, right, at] =
                [&values(&pattern, &dense), &b, &u].map(|v| buffer_of(device, v).unwrap());
            let mut calls = vec![constraints.measure_gap(&at, 1.0)];
            calls.extend(constraints.lift(&matrix, &right));
            calls.extend(constraints.eliminate(&matrix));
            run(device, &calls).unwrap();
            let found: Vec<f64> = download_values(device, &matrix).unwrap();
            assert_eq!(found, values(&pattern, &expected.0));
            let found: Vec<f64> = download_values(device, &right).unwrap();
            // at most four products are subtracted, in another order
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * (1.0 + b.abs());
            assert!(found.iter().zip(&expected.1).all(close), "seed {seed}: {found:?} {:?}", expected.1);
        }
    }
}

#[test]
fn the_half_of_a_matrix_multiplies_and_solves_as_all_of_it() {
    let seed = seed();
    for device in devices() {
        let (device, mut numbers) = (&*device, Numbers(seed));
        let (n, pattern) = (300, upper(300));
        let dense = symmetric(&pattern, 0.5, &mut numbers);
        let x = numbers.list(n);
        let matrix = operator(device, &pattern, &dense);
        assert_eq!(2 * matrix.n_entries(), pattern.columns.len() + n);
        let (from, to) = (buffer_of(device, &x).unwrap(), device.allocate(8 * n as u64).unwrap());
        device.fill(&to, 0xFF).unwrap();
        let mut queue = Queue::new();
        matrix.apply(&from, &to, &mut queue);
        queue.run(device).unwrap();
        let found: Vec<f64> = download_values(device, &to).unwrap();
        let row = |i: usize| dense[i].iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
        // five products of numbers up to five
        assert!((0..n).all(|i| (found[i] - row(i)).abs() <= 1e-13), "seed {seed}");
        let b = numbers.list(n);
        let (report, x) = solve(device, &pattern, &dense, &b, TIGHT);
        assert!(report.converged(), "seed {seed}: {report:?}");
        let expected = eliminated(dense, b);
        assert!(x.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-10), "seed {seed}");
    }
}

#[test]
fn nothing_prescribed_changes_nothing() {
    let device = open("c").unwrap();
    let pattern = pattern(20);
    let dense = symmetric(&pattern, 0.5, &mut Numbers(seed()));
    let constraints = Constraints::new(&*device, &pattern, &PrescribedValues::default()).unwrap();
    let matrix = buffer_of(&*device, &values(&pattern, &dense)).unwrap();
    run(&*device, &constraints.eliminate(&matrix)).unwrap();
    let found: Vec<f64> = download_values(&*device, &matrix).unwrap();
    assert_eq!(found, values(&pattern, &dense));
}

#[test]
fn wrong_sizes_and_places_are_refused() {
    let device = open("c").unwrap();
    let pattern = pattern(20);
    let refused = |unknowns: &[i32], values: &[f64]| {
        let values = PrescribedValues { unknowns: unknowns.to_vec(), values: values.to_vec() };
        Constraints::new(&*device, &pattern, &values).err().unwrap().to_string()
    };
    assert_eq!(
        refused(&[3, 20], &[0.0; 2]),
        "unknown 20 is prescribed and is not there, needed each of 0 to 19 at most once"
    );
    assert!(refused(&[-1], &[0.0]).contains("unknown -1"));
    assert!(refused(&[3, 3], &[0.0; 2]).contains("twice"));
    assert!(refused(&[3], &[0.0; 2]).contains("2 entries, needed 1"));

    let matrix = CsrOperator::new(&*device, &pattern).unwrap();
    assert_eq!(matrix.size(), 20);
    let solver = ConjugateGradients::new(&*device, 21, TIGHT).unwrap();
    let vectors = [(); 3].map(|()| device.allocate(8 * 21).unwrap());
    let error =
        solver.solve(&matrix, Preconditioning::Diagonal(&vectors[0]), &vectors[1], &vectors[2]).unwrap_err();
    assert!(matches!(error, SolveError::Length { found: 20, needed: 21, .. }), "{error}");

    // two cells whose rows and columns are never the same
    let pattern = CsrPattern::of_rows(3, 3, 1, 1, &[0, 1], &[1, 0]).unwrap();
    let error = CsrOperator::new(&*device, &pattern).err().unwrap();
    assert!(matches!(error, SolveError::NoDiagonal { row: 0 }), "{error}");
}

fn solve_by_gmres(
    device: &dyn Device,
    operator: &CsrOperator,
    preconditioner: Option<&CsrOperator>,
    b: &[f64],
    options: GmresOptions,
) -> (LinearReport, Vec<f64>) {
    let n = b.len();
    let x = device.allocate(8 * n as u64).unwrap();
    let right = buffer_of(device, b).unwrap();
    let mut solver = Gmres::new(device, n, options).unwrap();
    let before = device.traffic();
    let preconditioner = preconditioner.map(|p| p as &dyn Operator);
    let report = solver.solve(operator, preconditioner, &right, &x).unwrap();
    let traffic = device.traffic().since(before);
    assert_eq!(traffic.to_device, 0);
    // a column an iteration, and a norm each restart and before all
    let columns = report.iterations() as u64 * 8 * (options.restart as u64 + 1);
    let norms = 8 * (2 + report.iterations().div_ceil(options.restart) as u64);
    assert!(traffic.to_host <= columns + norms, "{traffic:?}");
    (report, download_values(device, &x).unwrap())
}

const TIGHT_GMRES: GmresOptions = GmresOptions {
    relative: 1e-12,
    absolute: 0.0,
    max_iterations: 2000,
    restart: 40,
    side: PreconditionerSide::Right,
};

#[test]
fn solutions_by_gmres_are_those_of_elimination() {
    let seed = seed();
    for device in devices() {
        let mut numbers = Numbers(seed);
        for n in [1, 5, 300] {
            let pattern = pattern(n);
            let dense = nonsymmetric(&pattern, 0.5, &mut numbers);
            let b = numbers.list(n);
            let matrix = operator(&*device, &pattern, &dense);
            let inverse = operator(&*device, &pattern, &jacobi(&dense));
            let expected = eliminated(dense, b.clone());
            let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            let [right, left] = [PreconditionerSide::Right, PreconditionerSide::Left];
            for (preconditioner, restart, side) in [
                (None, 40, left),
                (Some(&inverse), 40, right),
                (Some(&inverse), 7, right),
                (Some(&inverse), 40, left),
                (Some(&inverse), 7, left),
            ] {
                let options = GmresOptions { restart, side, ..TIGHT_GMRES };
                let (report, x) = solve_by_gmres(&*device, &matrix, preconditioner, &b, options);
                assert!(report.converged(), "n = {n}, seed {seed}: {report:?}");
                let falls = |pair: &[f64]| pair[1] <= pair[0] * (1.0 + 1e-9);
                assert!(report.residuals.windows(2).all(falls), "seed {seed}: {report:?}");
                // a residual of 1e-12 times the condition, below 1e2
                let worst = x.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
                assert!(worst <= 1e-10 * largest, "n = {n}, seed {seed}: {worst:e}");
            }
        }
    }
}

#[test]
fn gmres_ends_after_as_many_iterations_as_there_are_unknowns() {
    let seed = seed();
    let mut numbers = Numbers(seed);
    let pattern = pattern(20);
    let dense = nonsymmetric(&pattern, 0.5, &mut numbers);
    let device = open("c").unwrap();
    let matrix = operator(&*device, &pattern, &dense);
    let (report, _) = solve_by_gmres(&*device, &matrix, None, &numbers.list(20), TIGHT_GMRES);
    assert!(report.converged() && report.iterations() <= 20, "seed {seed}: {report:?}");
}

#[test]
fn what_gmres_cannot_solve_says_why() {
    let mut numbers = Numbers(seed());
    let pattern = pattern(60);
    let dense = nonsymmetric(&pattern, 0.01, &mut numbers);
    let b = numbers.list(60);
    let device = open("c").unwrap();
    let matrix = operator(&*device, &pattern, &dense);
    for (max_iterations, restart) in [(0, 5), (3, 5), (12, 5)] {
        let few = GmresOptions { max_iterations, restart, relative: 1e-14, ..TIGHT_GMRES };
        let (report, x) = solve_by_gmres(&*device, &matrix, None, &b, few);
        assert_eq!((report.reason, report.iterations()), (LinearReason::TooMany, max_iterations));
        assert!(x.iter().all(|x| x.is_finite()));
    }
    let (report, x) = solve_by_gmres(&*device, &matrix, None, &[0.0; 60], TIGHT_GMRES);
    assert_eq!((report.reason, report.iterations()), (LinearReason::Converged, 0));
    assert!(x.iter().all(|x| *x == 0.0));

    let mut holed = b.clone();
    holed[17] = f64::NAN;
    let (report, _) = solve_by_gmres(&*device, &matrix, None, &holed, TIGHT_GMRES);
    assert_eq!((report.reason, report.iterations()), (LinearReason::NotFinite, 0));

    // a row of zeros: what it asks for cannot be had
    let mut singular = dense;
    singular[30].fill(0.0);
    let matrix = operator(&*device, &pattern, &singular);
    let (report, x) =
        solve_by_gmres(&*device, &matrix, None, &b, GmresOptions { restart: 60, ..TIGHT_GMRES });
    assert_eq!(report.reason, LinearReason::Stagnated, "{report:?}");
    assert!(x.iter().all(|x| x.is_finite()));
    assert!(report.residuals.last().unwrap() >= &(0.999 * b[30].abs()), "{report:?}");

    let other = operator(&*device, &self::pattern(5), &symmetric(&self::pattern(5), 0.5, &mut numbers));
    let (right, x) = (buffer_of(&*device, &b).unwrap(), buffer_of(&*device, &b).unwrap());
    let mut solver = Gmres::new(&*device, 60, TIGHT_GMRES).unwrap();
    let refused = solver.solve(&other, None, &right, &x).err().unwrap();
    assert_eq!(refused.to_string(), "`operator` has 5 entries, needed 60");
}
