//! Algebraic multigrid around conjugate gradients on differences of a cube.

#![allow(clippy::unwrap_used)]

use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Device, buffer_of, download_values, open, upload_values};
use kingpost_sample::{is_long_run, of_run};
use kingpost_solve::{
    Amg, CsrOperator, LinearChoice, LinearMethod, LinearOptions, LinearReport, LinearSolver,
    PreconditionerKind, Unknowns,
};

/// Seven points of a cube of `side` inner points a side: pattern and values.
fn cube(side: usize) -> (CsrPattern, Vec<f64>) {
    let at = |i: usize, j: usize, k: usize| ((i * side + j) * side + k) as i32;
    let mut edges = Vec::new();
    for (i, j, k) in (0..side.pow(3)).map(|n| (n / side / side, n / side % side, n % side)) {
        for (l, m, n) in [(i + 1, j, k), (i, j + 1, k), (i, j, k + 1)] {
            if l < side && m < side && n < side {
                edges.extend([at(i, j, k), at(l, m, n)]);
            }
        }
    }
    let n = side.pow(3);
    let pattern = CsrPattern::of_rows(n, n, 2, 2, &edges, &edges).unwrap();
    let rows = pattern.row_starts.windows(2).enumerate();
    let values = rows.flat_map(|(row, bounds)| {
        let own = &pattern.columns[bounds[0] as usize..bounds[1] as usize];
        own.iter().map(move |column| if *column as usize == row { 6.0 } else { -1.0 })
    });
    let values = values.collect();
    (pattern, values)
}

fn solve(
    device: &dyn Device,
    side: usize,
    method: LinearMethod,
    preconditioner: PreconditionerKind,
) -> (LinearReport, Option<f64>) {
    let (pattern, values) = cube(side);
    let n = values_per_row(&pattern);
    let matrix = CsrOperator::new(device, &pattern).unwrap();
    upload_values(device, matrix.values(), &values).unwrap();
    let options = LinearOptions { relative: 1e-8, look_every: 4, ..LinearOptions::default() };
    let choice = LinearChoice { method, preconditioner };
    let unknowns = Unknowns::of_components(1);
    let mut solver = LinearSolver::new(device, &pattern, &unknowns, choice, options).unwrap();
    let (b, x) = (buffer_of(device, &vec![1.0; n]).unwrap(), device.allocate(8 * n as u64).unwrap());
    solver.prepare(&matrix, None).unwrap();
    let report = solver.solve(&matrix, &b, &x).unwrap();
    assert!(report.converged(), "{report:?}");
    let x: Vec<f64> = download_values(device, &x).unwrap();
    let residual = pattern.row_starts.windows(2).map(|bounds| {
        let own = bounds[0] as usize..bounds[1] as usize;
        1.0 - own.map(|k| values[k] * x[pattern.columns[k] as usize]).sum::<f64>()
    });
    let norm = residual.map(|r| r * r).sum::<f64>().sqrt() / (n as f64).sqrt();
    assert!(norm <= 1.1e-8, "{norm:e}"); // the recurrence drifts little
    (report, solver.hierarchy().map(|size| size.operator_complexity))
}

fn values_per_row(pattern: &CsrPattern) -> usize {
    pattern.row_starts.len() - 1
}

#[test]
fn iterations_do_not_grow_with_the_mesh() {
    let device = open("c").unwrap();
    let amg = |side| solve(&*device, side, LinearMethod::ConjugateGradients, PreconditionerKind::Amg);
    let jacobi = |side| {
        solve(&*device, side, LinearMethod::ConjugateGradients, PreconditionerKind::Jacobi).0.iterations()
    };
    let ((coarse, _), (fine, complexity)) = (amg(10), amg(30));
    let of_jacobi = jacobi(30);
    println!("{} {} {complexity:?}; Jacobi {of_jacobi}", coarse.iterations(), fine.iterations());
    assert!(fine.iterations() <= coarse.iterations() + 4, "{} {}", coarse.iterations(), fine.iterations());
    assert!(fine.iterations() <= 16 && of_jacobi > 3 * fine.iterations());
    assert!(complexity.unwrap() < 1.8, "{complexity:?}");
    // to 1e-8, which matrices in single precision are near enough for
    let (single, _) = solve(&*device, 30, LinearMethod::ConjugateGradients, PreconditionerKind::AmgF32);
    assert!(single.iterations().abs_diff(fine.iterations()) <= 1, "{single:?}");
}

#[test]
fn other_methods_take_the_hierarchy() {
    let device = open(if is_long_run() { "opencl" } else { "c" }).unwrap();
    for method in of_run([LinearMethod::Gmres, LinearMethod::BiCgStab], &[0]) {
        let (report, _) = solve(&*device, 10, method, PreconditionerKind::Amg);
        assert!(report.iterations() <= 16, "{method}: {report:?}");
    }
}

#[test]
fn a_small_matrix_is_inverted() {
    let device = open("c").unwrap();
    let (report, _) = solve(&*device, 5, LinearMethod::ConjugateGradients, PreconditionerKind::Amg);
    assert!(report.iterations() <= 2, "{report:?}");
}

/// A diagonal matrix in which every `every`-th pair of neighbours is coupled, or none.
fn barely_coupled(n: usize, every: Option<usize>) -> (CsrPattern, Vec<f64>) {
    let is_pair = |i: usize| every.is_some_and(|every| i.is_multiple_of(every) && i + 1 < n);
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let mut add = |column: usize, value: f64| {
            rows.push(i as i32);
            columns.push(column as i32);
            values.push(value);
        };
        add(i, 1.0 + (i % 7) as f64 * 1e3);
        if is_pair(i) {
            add(i + 1, -0.5);
        }
        if i > 0 && is_pair(i - 1) {
            add(i - 1, -0.5);
        }
    }
    let pattern = CsrPattern::of_rows(n, n, 1, 1, &rows, &columns).unwrap();
    let mut ordered = vec![0.0; values.len()];
    for (place, value) in pattern.positions().iter().zip(&values) {
        ordered[*place as usize] = *value;
    }
    (pattern, ordered)
}

/// What couples nothing does not coarsen: its inverse would take n² numbers and n³ operations.
#[test]
fn matrices_with_few_couplings_take_no_inverse() {
    let n = if is_long_run() { 20_000 } else { 4_000 }; // a dense inverse would have 3.2 GB or 128 MB
    for name in of_run(["c", "opencl"], &[0]) {
        let device = open(name).unwrap();
        for every in [None, Some(2), Some(1000), Some(n)] {
            let (pattern, values) = barely_coupled(n, every);
            let matrix = CsrOperator::new(&*device, &pattern).unwrap();
            upload_values(&*device, matrix.values(), &values).unwrap();
            let options = LinearOptions { relative: 1e-10, ..LinearOptions::default() };
            let choice = LinearChoice { preconditioner: PreconditionerKind::Amg, ..LinearChoice::default() };
            let unknowns = Unknowns::of_components(1);
            let mut solver = LinearSolver::new(&*device, &pattern, &unknowns, choice, options).unwrap();
            let (b, x) =
                (buffer_of(&*device, &vec![1.0; n]).unwrap(), device.allocate(8 * n as u64).unwrap());
            // of the same matrix twice: the second keeps what it can of the first
            for _ in 0..2 {
                solver.prepare(&matrix, None).unwrap();
                let report = solver.solve(&matrix, &b, &x).unwrap();
                assert!(report.converged() && report.iterations() <= 12, "{name} {every:?}: {report:?}");
            }
            assert!(solver.hierarchy().unwrap().bytes < 100 * n as u64, "{:?}", solver.hierarchy());
            let x: Vec<f64> = download_values(&*device, &x).unwrap();
            for (row, bounds) in pattern.row_starts.windows(2).enumerate() {
                let own = bounds[0] as usize..bounds[1] as usize;
                let product: f64 = own.map(|k| values[k] * x[pattern.columns[k] as usize]).sum();
                // the tolerance is relative to a right-hand side of norm √n
                assert!(
                    (product - 1.0).abs() <= 1e-10 * (n as f64).sqrt(),
                    "{name} {every:?} {row}: {product}"
                );
            }
        }
    }
}

#[test]
fn matrices_that_are_not_positive_are_refused() {
    let device = open("c").unwrap();
    let (pattern, values) = cube(9);
    let negative: Vec<f64> = values.iter().map(|value| -value).collect();
    let matrix = CsrOperator::new(&*device, &pattern).unwrap();
    upload_values(&*device, matrix.values(), &negative).unwrap();
    let error = Amg::new(&*device, &matrix.block_rows().unwrap(), &Unknowns::of_components(1), None);
    let error = error.err().unwrap();
    assert!(error.to_string().contains("no positive eigenvalue"), "{error}");
}
