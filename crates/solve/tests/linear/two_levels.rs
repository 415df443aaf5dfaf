//! Chebyshev's iteration and a coarse level on parts, each with a device of its own, against one device.

#![allow(clippy::unwrap_used)] // how a test fails

use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Device, buffer_of, download_values, open, upload_values};
use kingpost_sample::{Random, is_long_run, of_run};
use kingpost_solve::{
    Chebyshev, ChebyshevPreconditioner, CoarseLevel, Communicator, ConjugateGradients, Diagonal, Eigenvalues,
    HostCommunicator, Interpolation, LinearOptions, LinearReport, Operator, PartLayout, PartRows,
    Preconditioning, Queue, Smoothing, SolveError, Spectrum, TwoLevels, Unknowns, in_parts,
};
use std::ops::Range;

/// Unknowns of the coarse level; the fine one has one more between each two of them.
const COARSE: usize = 600;
const FINE: usize = 2 * COARSE - 1;

/// Rows of a chain of springs in which neighbours are `h` apart, held by weak ones.
fn chain(n: usize, h: f64) -> (CsrPattern, Vec<f64>) {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(1)..n.min(i + 2) {
            // linear elements: stiffness, and a tenth of the mass
            let ends = if i == 0 || i + 1 == n { 1.0 } else { 2.0 };
            values.push(if i == j { ends / h + 0.1 * ends * h / 3.0 } else { -1.0 / h + 0.1 * h / 6.0 });
            columns.push(j as i32);
        }
        starts.push(columns.len() as i32);
    }
    (CsrPattern::of_block_rows(starts, columns, [1, 1]), values)
}

fn interpolation(rows: Range<usize>) -> Interpolation {
    let mut found = Interpolation { row_starts: vec![0], ..Interpolation::default() };
    for i in rows {
        let (columns, weights) = match i % 2 {
            0 => (vec![i as i32 / 2], vec![1.0]),
            _ => (vec![i as i32 / 2, i as i32 / 2 + 1], vec![0.5, 0.5]),
        };
        found.columns.extend(columns);
        found.weights.extend(weights);
        found.row_starts.push(found.columns.len() as i32);
    }
    found
}

/// The unknowns that a part owns.
fn owned(part: usize, parts: usize) -> Range<usize> {
    part * FINE / parts..(part + 1) * FINE / parts
}

/// The rows of a part on a device: what it owns, then the neighbours on both sides.
fn rows(device: &dyn Device, part: usize, parts: usize) -> Result<PartRows, SolveError> {
    let own = owned(part, parts);
    let (whole, values) = chain(FINE, 1.0);
    let n = own.len() as i32;
    let mut layout = PartLayout { owned: (0..n).collect(), ghosts: vec![], receives: vec![], sends: vec![] };
    let mut numbers: Vec<usize> = own.clone().collect();
    for (peer, ghost, place) in
        [(part.wrapping_sub(1), own.start.wrapping_sub(1), 0), (part + 1, own.end, n - 1)]
    {
        if peer < parts {
            let first = layout.ghosts.len();
            layout.receives.push((peer, first..first + 1));
            layout.sends.push((peer, vec![place]));
            layout.ghosts.push(numbers.len() as i32);
            numbers.push(ghost);
        }
    }
    let local = |unknown: i32| numbers.iter().position(|other| *other == unknown as usize);
    let (mut starts, mut columns, mut entries) = (vec![0], Vec::new(), Vec::new());
    for number in &numbers {
        let bounds = whole.row_starts[*number] as usize..whole.row_starts[number + 1] as usize;
        let mut row: Vec<(i32, f64)> =
            bounds.filter_map(|k| Some((local(whole.columns[k])? as i32, values[k]))).collect();
        row.sort_by_key(|(column, _)| *column);
        columns.extend(row.iter().map(|(column, _)| *column));
        entries.extend(row.iter().map(|(_, entry)| *entry));
        starts.push(columns.len() as i32);
    }
    let rows = PartRows::new(device, &CsrPattern::of_block_rows(starts, columns, [1, 1]), &layout)?;
    upload_values(device, rows.values(), &entries)?;
    let mut queue = Queue::new();
    queue.extend(rows.gather());
    queue.run(device)?;
    Ok(rows)
}

/// The solution on what a part owns, and the report, with two levels or with one.
fn solved(
    device: &dyn Device,
    communicator: &dyn Communicator,
    has_coarse: bool,
    b: &[f64],
) -> Result<(Vec<f64>, LinearReport), SolveError> {
    let (part, parts) = (communicator.rank(), communicator.size());
    let (own, rows) = (owned(part, parts), rows(device, part, parts)?);
    let n = own.len();
    let diagonal = Diagonal::identity(device, n)?;
    let mut queue = Queue::new();
    queue.push(diagonal.invert(rows.rows.own()));
    queue.run(device)?;
    let start: Vec<f64> = own.clone().map(|k| (0.7548 * k as f64).fract() - 0.5).collect();
    let eigenvalues = Eigenvalues::from_start(device, (n, n), 12, buffer_of(device, &start)?)?;
    let spectrum = Spectrum::of_upper(&eigenvalues.over(communicator, &rows, diagonal.values())?, 10.0)?;
    let chebyshev = Chebyshev::new(device, n)?;
    let smoothing = Smoothing { operator: &rows, inverse: diagonal.values(), spectrum, steps: 3 };
    let (pattern, values) = chain(COARSE, 2.0);
    let unknowns = Unknowns { components: 1, points: vec![], dim: 0 };
    let coarse =
        CoarseLevel::new(device, (part, parts), (&pattern, &values), &unknowns, &interpolation(own.clone()))?;
    let one = ChebyshevPreconditioner { chebyshev: &chebyshev, smoothing };
    let two = TwoLevels { chebyshev: &chebyshev, smoothing, coarse: &coarse };
    let by: &dyn Operator = if has_coarse { &two } else { &one };
    let (b, x) = (buffer_of(device, &b[own])?, device.allocate(8 * n as u64)?);
    let options = LinearOptions { relative: 1e-10, look_every: 2, ..LinearOptions::default() };
    let solver = ConjugateGradients::new(device, n, options)?;
    let report = solver.solve_over(communicator, &rows, Preconditioning::Operator(by), &b, &x)?;
    Ok((download_values(device, &x)?, report))
}

#[test]
fn parts_take_the_iterations_of_one_device() {
    let mut random = Random::new();
    let b = random.reals(FINE);
    let pool = ["c", "opencl", "c"].map(|name| open(name).unwrap());
    let devices = pool.each_ref().map(|device| &**device);
    let (whole, entries) = chain(FINE, 1.0);
    for has_coarse in of_run([false, true], &[1]) {
        let mut iterations = Vec::new();
        for parts in (1..=3).filter(|parts| is_long_run() || *parts != 2) {
            let all = HostCommunicator::of_devices(&devices[..parts]).into_iter().zip(devices);
            let of_part = |(communicator, device): (HostCommunicator<'_>, &dyn Device)| {
                solved(device, &communicator, has_coarse, &b)
            };
            let has_ended = |error: &_| matches!(error, SolveError::PartEnded { .. });
            let found = in_parts(all, of_part, of_part, has_ended).unwrap();
            let x: Vec<f64> = found.iter().flat_map(|(x, _)| x).copied().collect();
            assert!(found.iter().all(|(_, report)| report.converged()), "{:?}", found[0].1);
            iterations.push(found[0].1.iterations());
            for (row, right) in b.iter().enumerate() {
                let of_row = whole.row_starts[row] as usize..whole.row_starts[row + 1] as usize;
                let product: f64 = of_row.map(|k| entries[k] * x[whole.columns[k] as usize]).sum();
                // a residual of 1e-10 of the right-hand side, whose norm is below 40
                assert!((product - right).abs() <= 1e-8, "{parts} parts, row {row}: {product} for {right}");
            }
        }
        assert!(iterations.iter().all(|n| *n == iterations[0]), "{has_coarse}: {iterations:?}");
        assert!(!has_coarse || iterations[0] <= 16, "{iterations:?}");
    }
}

#[test]
fn coarse_levels_that_do_not_fit_are_refused() {
    let device = open("c").unwrap();
    let (pattern, values) = chain(COARSE, 2.0);
    let unknowns = Unknowns { components: 1, points: vec![], dim: 0 };
    let of = |interpolation: &Interpolation, values: &[f64]| {
        let made = CoarseLevel::new(&*device, (0, 1), (&pattern, values), &unknowns, interpolation);
        made.err().unwrap().to_string()
    };
    let rows = interpolation(0..FINE);
    assert!(of(&rows, &values[1..]).contains("entries of the matrix"));
    let mut other = rows.clone();
    other.columns[3] = COARSE as i32;
    assert!(of(&other, &values).contains("has column 600; needed those of 600 coarse unknowns"));
    let mut other = rows.clone();
    other.weights.pop();
    assert!(of(&other, &values).contains("weights of the interpolation"));
    let mut other = rows;
    other.row_starts.swap(4, 5);
    assert!(of(&other, &values).contains("rows of the interpolation"));
}
