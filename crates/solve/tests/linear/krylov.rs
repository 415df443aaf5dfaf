//! Solvers and preconditioners by name on small matrices, against dense elimination.

#![allow(clippy::unwrap_used, clippy::needless_range_loop)] // rows and columns go by number

use crate::systems::{
    Numbers, TIGHT, blocks, devices, eliminated, every_device, nonsymmetric, operator, pattern, symmetric,
};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Backend, Device, buffer_of, download_values, open};
use kingpost_sample::seed;
use kingpost_solve::{
    BiCgStab, BlockJacobi, Diagonal, Eigenvalues, LinearChoice, LinearMethod, LinearOptions, LinearReason,
    LinearReport, LinearSolver, Operator, PreconditionerKind, Queue, ResidualNorm, SolveError, Spectrum,
    Unknowns,
};

fn solve(
    device: &dyn Device,
    pattern: &CsrPattern,
    dense: &[Vec<f64>],
    b: &[f64],
    (components, method, preconditioner): (usize, LinearMethod, PreconditionerKind),
    options: LinearOptions,
) -> Result<(LinearReport, Vec<f64>), SolveError> {
    let matrix = operator(device, pattern, dense);
    let choice = LinearChoice { method, preconditioner };
    let mut solver =
        LinearSolver::new(device, pattern, &Unknowns::of_components(components), choice, options)?;
    let (right, x) = (buffer_of(device, b)?, device.allocate(8 * b.len() as u64)?);
    let before = device.traffic();
    solver.prepare(&matrix, None)?;
    let report = solver.solve(&matrix, &right, &x)?;
    assert_eq!(device.traffic().since(before).to_device, 0, "{choice}");
    Ok((report, download_values(device, &x)?))
}

/// Each method and each preconditioner, and all pairs that share no code with another one.
const PAIRS: [(LinearMethod, PreconditionerKind); 8] = [
    (LinearMethod::ConjugateGradients, PreconditionerKind::BlockJacobi),
    (LinearMethod::Gmres, PreconditionerKind::Chebyshev),
    (LinearMethod::BiCgStab, PreconditionerKind::BlockJacobi),
    (LinearMethod::Chebyshev, PreconditionerKind::Jacobi),
    (LinearMethod::ConjugateGradients, PreconditionerKind::Chebyshev),
    (LinearMethod::ConjugateGradients, PreconditionerKind::None),
    (LinearMethod::Gmres, PreconditionerKind::None),
    (LinearMethod::Chebyshev, PreconditionerKind::None),
];

#[test]
fn methods_and_preconditioners_solve_as_elimination_does() {
    let seed = seed();
    for device in every_device() {
        let mut numbers = Numbers(seed);
        let on_host = device.info().backend == Backend::C;
        for (n, components) in [(1, 1), (90, 3)].into_iter().skip(usize::from(!on_host)) {
            let pattern = blocks(n, components);
            let dense = symmetric(&pattern, 0.5, &mut numbers);
            let b = numbers.list(n * components);
            let expected = eliminated(dense.clone(), b.clone());
            let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            for (method, preconditioner) in PAIRS.into_iter().take(if on_host { 8 } else { 4 }) {
                let name = (components, method, preconditioner);
                let (report, x) = solve(&*device, &pattern, &dense, &b, name, TIGHT).unwrap();
                let what = format!("{} n = {n}, seed {seed}: {name:?}", device.info().name);
                assert!(report.converged(), "{what}: {report:?}");
                // a residual of 1e-12 times the condition, below 1e2
                let far = x.iter().zip(&expected).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs()));
                assert!(far <= 1e-10 * largest, "{what}: {far:e}");
            }
        }
    }
}

/// The iterations that are allowed are those that run, and the start is judged without any.
#[test]
fn no_iteration_is_more_than_are_allowed() {
    let mut numbers = Numbers(seed());
    let pattern = blocks(90, 3);
    let dense = symmetric(&pattern, 0.5, &mut numbers);
    let b = numbers.list(270);
    let device = open("c").unwrap();
    for (method, preconditioner) in PAIRS {
        let name = (3, method, preconditioner);
        for max_iterations in [0, 1, 3, 17] {
            let options = LinearOptions { relative: 1e-14, max_iterations, ..LinearOptions::default() };
            let (report, x) = solve(&*device, &pattern, &dense, &b, name, options).unwrap();
            let place = format!("{method} {preconditioner} {max_iterations}: {report:?}");
            assert!(report.iterations() <= max_iterations, "{place}");
            assert_eq!(report.reason == LinearReason::TooMany, !report.converged(), "{place}");
            let residual =
                dense.iter().zip(&b).map(|(row, b)| b - row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>());
            // the report is that of the solution that is returned
            let norm = residual.map(|r| r * r).sum::<f64>().sqrt();
            let last = *report.residuals.last().unwrap();
            assert!((norm - last).abs() <= 1e-6 * last + 1e-12, "{place}: {norm:e}");
            if max_iterations == 0 {
                assert!(x.iter().all(|x| *x == 0.0) && report.residuals.len() == 1, "{place}");
            }
        }
        let enough = LinearOptions { absolute: 1e3, max_iterations: 0, ..LinearOptions::default() };
        let (report, _) = solve(&*device, &pattern, &dense, &b, name, enough).unwrap();
        assert!(report.converged() && report.iterations() == 0, "{method}: {report:?}");
    }
}

#[test]
fn right_hand_sides_may_be_tiny_or_huge() {
    let mut numbers = Numbers(seed());
    let pattern = blocks(40, 1);
    let dense = symmetric(&pattern, 0.5, &mut numbers);
    let b = numbers.list(40);
    let expected = eliminated(dense.clone(), b.clone());
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let device = open("c").unwrap();
    for (method, preconditioner) in PAIRS {
        for factor in [2.0_f64.powi(-700), 2.0_f64.powi(-1000), 2.0_f64.powi(700), 2.0_f64.powi(1010)] {
            let name = (1, method, preconditioner);
            let scaled: Vec<f64> = b.iter().map(|b| factor * b).collect();
            let matrix = operator(&*device, &pattern, &dense);
            let options = LinearOptions { relative: 1e-12, ..LinearOptions::default() };
            let choice = LinearChoice { method, preconditioner };
            let unknowns = Unknowns::of_components(1);
            let mut solver = LinearSolver::new(&*device, &pattern, &unknowns, choice, options).unwrap();
            let (right, x) = (buffer_of(&*device, &scaled).unwrap(), device.allocate(8 * 40).unwrap());
            solver.prepare(&matrix, None).unwrap();
            let report = solver.solve(&matrix, &right, &x).unwrap();
            assert!(report.converged() && report.iterations() > 0, "{name:?} {factor:e}: {report:?}");
            let x: Vec<f64> = download_values(&*device, &x).unwrap();
            for (found, x) in x.iter().zip(&expected) {
                assert!((found / factor - x).abs() <= 1e-9 * largest, "{name:?} {factor:e}: {found:e} {x:e}");
            }
            // an absolute tolerance is one of the system as it is given
            let options =
                LinearOptions { relative: 0.0, absolute: 1e-3 * factor, ..LinearOptions::default() };
            solver.set_options(options).unwrap();
            solver.prepare(&matrix, None).unwrap();
            let absolute = solver.solve(&matrix, &right, &buffer_of(&*device, &x).unwrap()).unwrap();
            assert!(absolute.converged(), "{name:?} {factor:e}: {absolute:?}");
            assert!(*absolute.residuals.last().unwrap() <= 1e-3 * factor, "{name:?} {factor:e}");
            assert!(absolute.iterations() <= report.iterations(), "{name:?} {factor:e}");
        }
    }
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let device = open("c").unwrap();
    let pattern = blocks(4, 1);
    let of = |options| {
        let unknowns = Unknowns::of_components(1);
        let solver = LinearSolver::new(&*device, &pattern, &unknowns, LinearChoice::default(), options);
        solver.err().map(|error| error.to_string())
    };
    let default = LinearOptions::default();
    assert_eq!(of(default), None);
    let message = |name, found| Some(format!("`{name}` is {found}; needed a finite number from 0 on"));
    assert_eq!(of(LinearOptions { relative: -1.0, ..default }), message("relative", "-1"));
    assert_eq!(of(LinearOptions { absolute: f64::NAN, ..default }), message("absolute", "NaN"));
    assert_eq!(of(LinearOptions { divergence: f64::INFINITY, ..default }), message("divergence", "inf"));
}

#[test]
fn norms_that_a_method_does_not_have_are_refused() {
    let device = open("c").unwrap();
    let pattern = pattern(9);
    let unknowns = Unknowns { components: 1, points: Vec::new(), dim: 0 };
    let options = LinearOptions { norm: ResidualNorm::Preconditioned, ..TIGHT };
    for method in LinearMethod::ALL {
        let choice = LinearChoice { method, preconditioner: PreconditionerKind::Jacobi };
        let solver = LinearSolver::new(&*device, &pattern, &unknowns, choice, options);
        let refused = match solver {
            Ok(_) => None,
            Err(SolveError::Norm { method }) => Some(method),
            Err(error) => unreachable!("{error}"),
        };
        let judges = method == LinearMethod::ConjugateGradients;
        assert_eq!(refused, (!judges).then_some(method));
    }
}

#[test]
fn bicgstab_solves_without_symmetry() {
    let seed = seed();
    for device in devices() {
        let mut numbers = Numbers(seed);
        let pattern = pattern(300);
        let dense = nonsymmetric(&pattern, 0.5, &mut numbers);
        let b = numbers.list(300);
        let expected = eliminated(dense.clone(), b.clone());
        let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        for preconditioner in [PreconditionerKind::None, PreconditionerKind::Jacobi] {
            for look_every in [1, 16] {
                let options = LinearOptions { look_every, ..TIGHT };
                let name = (1, LinearMethod::BiCgStab, preconditioner);
                let (report, x) = solve(&*device, &pattern, &dense, &b, name, options).unwrap();
                assert!(report.converged(), "seed {seed}: {report:?}");
                let far = x.iter().zip(&expected).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs()));
                assert!(far <= 1e-10 * largest, "seed {seed}: {far:e}");
            }
        }
    }
}

#[test]
fn what_bicgstab_cannot_solve_says_why() {
    let device = open("c").unwrap();
    let mut numbers = Numbers(seed());
    let pattern = pattern(60);
    let dense = nonsymmetric(&pattern, 0.01, &mut numbers);
    let b = numbers.list(60);
    let name = (1, LinearMethod::BiCgStab, PreconditionerKind::Jacobi);
    let few = LinearOptions { max_iterations: 2, ..TIGHT };
    let (report, x) = solve(&*device, &pattern, &dense, &b, name, few).unwrap();
    assert_eq!((report.reason, report.iterations()), (LinearReason::TooMany, 2));
    assert!(x.iter().all(|x| x.is_finite()));

    let (report, x) = solve(&*device, &pattern, &dense, &[0.0; 60], name, TIGHT).unwrap();
    assert_eq!((report.reason, report.iterations()), (LinearReason::Converged, 0));
    assert!(x.iter().all(|x| *x == 0.0));

    let mut holed = b.clone();
    holed[33] = f64::NAN;
    let (report, _) = solve(&*device, &pattern, &dense, &holed, name, TIGHT).unwrap();
    assert_eq!((report.reason, report.iterations()), (LinearReason::NotFinite, 0));

    // a rotation by a right angle: the image of a direction is orthogonal to its shadow
    let mut turned = vec![vec![0.0; 60]; 60];
    for i in (0..60).step_by(2) {
        (turned[i][i + 1], turned[i + 1][i]) = (1.0, -1.0);
    }
    let plain = (1, LinearMethod::BiCgStab, PreconditionerKind::None);
    // products of small integers are exact, in whatever order they are added
    let whole: Vec<f64> = (0..60).map(|i| f64::from(i % 5) - 1.0).collect();
    let (report, x) = solve(&*device, &pattern, &turned, &whole, plain, TIGHT).unwrap();
    assert_eq!(report.reason, LinearReason::Breakdown, "{report:?}");
    assert!(x.iter().all(|x| x.is_finite()));

    let solver = BiCgStab::new(&*device, 61, TIGHT).unwrap();
    let matrix = operator(&*device, &pattern, &dense);
    let other = Diagonal::identity(&*device, 61).unwrap();
    let error = solver.solve(&matrix, &other, other.values(), other.values()).unwrap_err();
    assert_eq!(error.to_string(), "`operator` has 60 entries, needed 61");
}

#[test]
fn blocks_on_the_diagonal_are_inverted() {
    let seed = seed();
    for device in devices() {
        let mut numbers = Numbers(seed);
        for side in [1, 2, 3, 4] {
            let n = 7 * side;
            let pattern = blocks(7, side);
            let dense = nonsymmetric(&pattern, 0.5, &mut numbers);
            let matrix = operator(&*device, &pattern, &dense);
            let jacobi = BlockJacobi::new(&*device, &pattern, side).unwrap();
            let x = numbers.list(n);
            // the blocks alone, dense
            let mut own = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in i - i % side..i - i % side + side {
                    own[i][j] = dense[i][j];
                }
            }
            let expected = eliminated(own, x.clone());
            let (from, to) = (buffer_of(&*device, &x).unwrap(), device.allocate(8 * n as u64).unwrap());
            let mut queue: Queue<'_> = [jacobi.invert(&matrix)].into_iter().collect();
            jacobi.apply(&from, &to, &mut queue);
            queue.run(&*device).unwrap();
            let found: Vec<f64> = download_values(&*device, &to).unwrap();
            // conditions below 1e2, some tens of operations
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
            assert!(found.iter().zip(&expected).all(close), "side {side}, seed {seed}");
        }
        let short = BlockJacobi::new(&*device, &pattern(20), 3).err().unwrap().to_string();
        assert_eq!(short, "`matrix of blocks` has 20 entries, needed 21");
        let holes = BlockJacobi::new(&*device, &pattern(21), 3).err().unwrap().to_string();
        assert!(holes.starts_with("entry (0, 2) of a block on the diagonal is not stored"), "{holes}");
    }
}

/// Of the second difference on a line: 2 - 2 cos(k π/(n + 1)).
#[test]
fn eigenvalues_are_bounded_from_both_sides() {
    for device in devices() {
        let n = 100;
        let edges: Vec<i32> = (0..n as i32 - 1).flat_map(|i| [i, i + 1]).collect();
        let pattern = CsrPattern::of_rows(n, n, 2, 2, &edges, &edges).unwrap();
        let mut dense = vec![vec![0.0; n]; n];
        for i in 0..n {
            dense[i][i] = 2.0;
            if i + 1 < n {
                (dense[i][i + 1], dense[i + 1][i]) = (-1.0, -1.0);
            }
        }
        let matrix = operator(&*device, &pattern, &dense);
        let ones = Diagonal::identity(&*device, n).unwrap();
        let of = |k: usize| 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (n as f64 + 1.0)).cos();
        let few = Eigenvalues::new(&*device, n, 12).unwrap().of(&matrix, ones.values()).unwrap();
        let last = few.last().unwrap();
        assert!(*last <= of(n) * (1.0 + 1e-12) && *last > 0.95 * of(n), "{few:?}");
        let upper = Spectrum::of_upper(&few, 10.0).unwrap();
        assert!(upper.largest >= of(n) && (upper.largest / upper.least - 10.0).abs() < 1e-12);
        // as many as unknowns: all of them
        let all = Eigenvalues::new(&*device, n, 100).unwrap().of(&matrix, ones.values()).unwrap();
        assert!((all[0] / of(1) - 1.0).abs() < 1e-6 && (all.last().unwrap() / of(n) - 1.0).abs() < 1e-9);
        let whole = Spectrum::of_all(&all).unwrap();
        assert!(whole.least <= of(1) && whole.largest >= of(n), "{whole:?}");
    }
    assert!(Spectrum::of_all(&[]).is_err() && Spectrum::of_all(&[-1.0]).is_err());
}

#[test]
fn chebyshev_refuses_what_is_not_positive() {
    let device = open("c").unwrap();
    let mut numbers = Numbers(seed());
    let pattern = pattern(40);
    let mut dense = symmetric(&pattern, 0.5, &mut numbers);
    dense.iter_mut().flatten().for_each(|x| *x = -*x);
    let b = numbers.list(40);
    let plain = (1, LinearMethod::Chebyshev, PreconditionerKind::None);
    let error = solve(&*device, &pattern, &dense, &b, plain, TIGHT).unwrap_err();
    assert!(matches!(error, SolveError::Spectrum { .. }), "{error}");
    let other = (1, LinearMethod::Chebyshev, PreconditionerKind::BlockJacobi);
    let error = solve(&*device, &pattern, &dense, &b, other, TIGHT).unwrap_err().to_string();
    assert!(error.ends_with("the method takes the preconditioners `none` and `jacobi`"), "{error}");

    // an eigenvalue of another sign: the iteration grows until that is seen
    let mut dense = symmetric(&pattern, 0.5, &mut numbers);
    dense[20][20] = -3.0;
    let (report, _) = solve(&*device, &pattern, &dense, &b, plain, TIGHT).unwrap();
    assert_eq!(report.reason, LinearReason::Diverged, "{report:?}");
}

#[test]
fn names_are_those_that_print() {
    for method in LinearMethod::ALL {
        assert_eq!(method.to_string().parse(), Ok(method));
    }
    for kind in PreconditionerKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let error = "lu".parse::<LinearMethod>().unwrap_err().to_string();
    assert_eq!(error, "unknown method `lu`; known: cg, gmres, bicgstab, chebyshev");
}
