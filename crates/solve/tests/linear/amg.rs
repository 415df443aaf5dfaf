//! Algebraic multigrid around conjugate gradients on differences of a cube.

#![allow(clippy::unwrap_used)]

use purlin_forms::import::CsrPattern;
use purlin_runtime::{Device, buffer_of, download_values, open, upload_values};
use purlin_solve::{
    Amg, CsrOperator, HostMatrix, LinearChoice, LinearMethod, LinearOptions, LinearReport, LinearSolver,
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
    println!(
        "{} {} {complexity:?}; Jacobi {} {}",
        coarse.iterations(),
        fine.iterations(),
        jacobi(10),
        jacobi(30)
    );
    assert!(fine.iterations() <= coarse.iterations() + 4, "{} {}", coarse.iterations(), fine.iterations());
    assert!(fine.iterations() <= 16 && jacobi(30) > 3 * fine.iterations());
    assert!(complexity.unwrap() < 1.8, "{complexity:?}");
}

#[test]
fn other_methods_take_the_hierarchy() {
    let device = open("opencl").unwrap();
    for method in [LinearMethod::Gmres, LinearMethod::BiCgStab] {
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

#[test]
fn matrices_that_are_not_positive_are_refused() {
    let device = open("c").unwrap();
    let (pattern, values) = cube(9);
    let negative: Vec<f64> = values.iter().map(|value| -value).collect();
    let host = HostMatrix { row_starts: &pattern.row_starts, columns: &pattern.columns, values: &negative };
    let error = Amg::new(&*device, &host, &Unknowns::of_components(1), &[]).err().unwrap();
    assert!(error.to_string().contains("no positive eigenvalue"), "{error}");
}
