//! Small systems, and what solves them without the crate.

#![allow(clippy::needless_range_loop, clippy::unwrap_used)] // rows and columns go by number

use kingpost_fem::sparse::{CsrPart, CsrPattern, EntryOrder};
use kingpost_runtime::{Backend, Device, open, upload_values};
use kingpost_sample::is_long_run;
use kingpost_solve::{CsrOperator, LinearOptions, ResidualNorm};

/// As close as rounding allows.
pub const TIGHT: LinearOptions = LinearOptions {
    norm: ResidualNorm::Plain,
    relative: 1e-12,
    absolute: 0.0,
    max_iterations: 1000,
    divergence: 1e5,
    look_every: 16,
};

/// Numbers of a linear congruential generator, in [-1, 1).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn list(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.next()).collect()
    }
}

/// C, and a card where there is one; OpenCL in long runs alone, as its compiler takes longer than
/// what a test is about.
pub fn devices() -> Vec<Box<dyn Device>> {
    let mut all = every_device();
    all.retain(|device| is_long_run() || device.info().backend != Backend::OpenCl);
    all
}

/// Devices that are always there, and a card where there is one.
pub fn every_device() -> Vec<Box<dyn Device>> {
    let mut all = vec![open("c").unwrap(), open("opencl").unwrap()];
    match open("cuda") {
        Ok(card) => all.push(card),
        Err(_) => println!("skipped: no CUDA device"),
    }
    all
}

/// The pattern of edges `(i, i + 1)` and `(i, i + 7)`, with the diagonal.
pub fn pattern(n: usize) -> CsrPattern {
    blocks(n, 1)
}

/// Blocks of `side` unknowns instead of each unknown of that pattern.
pub fn blocks(n: usize, side: usize) -> CsrPattern {
    let edges = (0..n).flat_map(|i| [i + 1, i + 7].into_iter().filter(move |j| *j < n).map(move |j| [i, j]));
    let mut map: Vec<i32> = edges.flatten().map(|i| i as i32).collect();
    map.extend([n as i32 - 1; 2]); // of one unknown, too
    let part = CsrPart { extents: [2, 2], rows: &map, columns: &map };
    CsrPattern::of_components([n, n], [side, side], &[part]).unwrap().remove(0)
}

/// The half of that pattern.
pub fn upper(n: usize) -> CsrPattern {
    let edges = (0..n).flat_map(|i| [i + 1, i + 7].into_iter().filter(move |j| *j < n).map(move |j| [i, j]));
    let map: Vec<i32> = edges.flatten().map(|i| i as i32).collect();
    CsrPattern::of_rows(n, n, 2, 2, &map, &map).unwrap().upper().unwrap()
}

/// Symmetric values with diagonals `shift` above the sum of the others' sizes.
pub fn symmetric(pattern: &CsrPattern, shift: f64, numbers: &mut Numbers) -> Vec<Vec<f64>> {
    let n = pattern.row_starts.len() - 1;
    let mut dense = vec![vec![0.0; n]; n];
    for i in 0..n {
        for k in pattern.row_starts[i]..pattern.row_starts[i + 1] {
            let j = pattern.columns[k as usize] as usize;
            if j > i {
                let value = numbers.next();
                dense[i][j] = value;
                dense[j][i] = value;
            }
        }
    }
    for i in 0..n {
        let others: f64 = dense[i].iter().map(|x| x.abs()).sum();
        dense[i][i] = others + shift;
    }
    dense
}

pub fn values(pattern: &CsrPattern, dense: &[Vec<f64>]) -> Vec<f64> {
    let (starts, columns) = match pattern.order() {
        EntryOrder::Rows | EntryOrder::Blocks => (pattern.row_starts.clone(), pattern.columns.clone()),
        EntryOrder::UpperRows => pattern.upper_rows(),
    };
    let columns = &columns;
    let row = |i: usize| starts[i] as usize..starts[i + 1] as usize;
    (0..dense.len()).flat_map(|i| row(i).map(move |k| dense[i][columns[k] as usize])).collect()
}

/// Gaussian elimination without pivots.
pub fn eliminated(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

/// Rows whose diagonals outweigh the others by `shift`, without symmetry.
pub fn nonsymmetric(pattern: &CsrPattern, shift: f64, numbers: &mut Numbers) -> Vec<Vec<f64>> {
    let mut dense = symmetric(pattern, shift, numbers);
    for i in 0..dense.len() {
        for j in 0..i {
            dense[i][j] *= 0.5 * numbers.next();
        }
    }
    dense
}

pub fn operator(device: &dyn Device, pattern: &CsrPattern, dense: &[Vec<f64>]) -> CsrOperator {
    let matrix = CsrOperator::new(device, pattern).unwrap();
    upload_values(device, matrix.values(), &values(pattern, dense)).unwrap();
    matrix
}

/// The inverses of the diagonal on the diagonal.
pub fn jacobi(dense: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = dense.len();
    let entry = |i: usize, j: usize| if i == j { 1.0 / dense[i][i] } else { 0.0 };
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}
