//! The kernels of this crate: texts with their schedules.

use crate::SolveError;
use kingpost_codegen::{Options, Program, Target, generate};
use kingpost_primitives::steps;
use kingpost_runtime::{Backend, Device, Executable};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// A kernel of this crate by the name of its file.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/", $name, ".kingpost"))
    };
}
pub(crate) use text;

/// Compiles a kernel with the schedule after it, if there is one.
///
/// # Errors
/// A text that is no kernel, a step that is refused, a device that refuses the code.
pub fn compiled(device: &dyn Device, text: &str) -> Result<Executable, SolveError> {
    let program = proved(text, device.info().backend.target())?;
    Ok(device.compile_known(&program)?)
}

/// A program, once it is known. Whoever asks meanwhile waits for whoever proves it.
type Known = Arc<Mutex<Option<Arc<Program>>>>;

/// The program of a kernel. Each solver of a process asks for the same dozens.
fn proved(text: &str, target: Target) -> Result<Arc<Program>, SolveError> {
    static ALL: LazyLock<Mutex<HashMap<(String, Target), Known>>> = LazyLock::new(Mutex::default);
    let known = Arc::clone(lock(&ALL).entry((text.to_owned(), target)).or_default());
    let mut known = lock(&known);
    if let Some(program) = &*known {
        return Ok(Arc::clone(program));
    }
    Ok(Arc::clone(known.insert(Arc::new(program(text, target)?))))
}

/// What a thread that panicked left is whole: programs are put there at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn program(text: &str, target: Target) -> Result<Program, SolveError> {
    let (kernel, script) = steps().file(text)?;
    let kernel = match script {
        Some(script) => script.apply(&kernel)?.kernel().clone(),
        None => kernel,
    };
    Ok(generate(&kernel, target, &Options::default())?)
}

/// Work-items that share a row, by its entries on average: the fastest of 1, 2, 4, 8, 16 and 32 on an H200 with
/// 7, 14, 27, 50, 81 and 125 entries (2026-11-29, `results/h200/memory.md`).
const fn lanes(per_row: usize) -> usize {
    match per_row {
        ..10 => 1,
        10..36 => 4,
        36..100 => 8,
        _ => 16,
    }
}

/// A text of rows that several work-items share, in groups of 128 of them.
fn with_lanes(text: &str, lanes: usize) -> String {
    text.replace("LANES", &lanes.to_string()).replace("GROUP", &(128 / lanes).to_string())
}

/// The product with a matrix by rows, which have `per_row` entries on average: on a card several work-items
/// share a long row, elsewhere each takes one.
///
/// # Errors
/// As [`compiled`].
pub fn compiled_product(device: &dyn Device, per_row: usize) -> Result<Executable, SolveError> {
    match (device.info().backend, lanes(per_row)) {
        (Backend::C | Backend::OpenCl, _) | (Backend::Cuda, 1) => compiled(device, text!("product")),
        (Backend::Cuda, lanes) => compiled(device, &with_lanes(text!("product_by_lanes"), lanes)),
    }
}

/// The product on a card with a square matrix by rows, and that of both vectors.
///
/// # Errors
/// As [`compiled`].
pub fn compiled_product_with_dot(device: &dyn Device, per_row: usize) -> Result<Executable, SolveError> {
    compiled(device, &with_lanes(text!("product_with_dot"), lanes(per_row)))
}

/// The product with a matrix by rows of dense blocks of given extents, of which a row has `per_row`: on a card
/// several work-items share a row.
///
/// # Errors
/// As [`compiled`].
pub fn compiled_block_product(
    device: &dyn Device,
    [height, width]: [usize; 2],
    per_row: usize,
) -> Result<Executable, SolveError> {
    let text = match device.info().backend {
        Backend::C | Backend::OpenCl => text!("block_product").to_owned(),
        Backend::Cuda => {
            let lanes = match (height, per_row) {
                (_, 24..) => 8,
                (1, _) => 4,
                (..) => 2,
            };
            // a power of two of rows, of at most 128 work-items
            let group = 1 << (128 / (height * lanes)).max(1).ilog2();
            let text = text!("block_product_by_lanes").replace("LANES", &lanes.to_string());
            text.replace("GROUP", &format!("{group}"))
        }
    };
    compiled(device, &with_extents(&text, [height, width]))
}

/// A text of blocks of given extents.
pub fn with_extents(text: &str, [height, width]: [usize; 2]) -> String {
    text.replace("HEIGHT", &height.to_string()).replace("WIDTH", &width.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Call, run};
    use kingpost_runtime::{buffer_of, download_values, open};
    use kingpost_sample::seed;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..n).map(|_| next()).collect()
    }

    /// Entries of a block along each axis, whether vectors are multiplied, and work-items that share a row.
    const CASES: [(usize, bool, usize); 9] = [
        (1, false, 4),
        (1, false, 8),
        (1, false, 16),
        (1, true, 1),
        (1, true, 4),
        (1, true, 8),
        (1, true, 16),
        (2, false, 2),
        (3, false, 8),
    ];

    /// What cards run, on processors: rows of no entries, of fewer than there are lanes, and of many.
    #[test]
    fn work_items_that_share_a_row_make_its_product() {
        let seed = seed();
        let n = 101;
        let widths = (0..n as i32).map(|row| [0, 1, 3, 4, 7, 40][row as usize % 6]);
        let starts: Vec<i32> = std::iter::once(0)
            .chain(widths.scan(0, |sum, width| {
                *sum += width;
                Some(*sum)
            }))
            .collect();
        let entries = starts[n] as usize;
        let columns: Vec<i32> = (0..entries).map(|k| (k * 37 % n) as i32).collect();
        for device in ["c", "opencl"].map(|name| open(name).unwrap()) {
            for (side, has_dot, lanes) in CASES {
                let (x, values) = (numbers(side * n, seed), numbers(side * side * entries, seed + 1));
                let text = match (side, has_dot) {
                    (1, false) => with_lanes(text!("product_by_lanes"), lanes),
                    (1, true) => with_lanes(text!("product_with_dot"), lanes),
                    _ => with_extents(text!("block_product_by_lanes"), [side; 2])
                        .replace("LANES", &lanes.to_string())
                        .replace("GROUP", "4"),
                };
                let product = compiled(&*device, &text).unwrap();
                let of = |list: &[i32]| buffer_of(&*device, list).unwrap();
                let reals = |list: &[f64]| buffer_of(&*device, list).unwrap();
                let (starts_on, columns_on) = (of(&starts), of(&columns));
                let (values_on, x_on) = (reals(&values), reals(&x));
                let y = device.allocate(8 * (side * n) as u64).unwrap();
                let sums = reals(&[7.0, 7.0, 7.0]);
                let sizes = match (side, has_dot) {
                    (1, false) => vec![("n", n), ("n_columns", n), ("n_entries", entries)],
                    (1, true) => vec![("n", n), ("n_entries", entries), ("n_sums", 3), ("at", 1)],
                    _ => vec![("n", n), ("n_columns", n), ("n_blocks", entries)],
                };
                let matrix = [("row_starts", &starts_on), ("columns", &columns_on), ("values", &values_on)];
                let dot = [("sums", &sums)];
                let dot = if has_dot { &dot[..] } else { &[] };
                let arrays = [&matrix[..], &[("x", &x_on), ("y", &y)], dot].concat();
                run(&*device, &[Call::of(&product, &sizes, &arrays)]).unwrap();
                let found: Vec<f64> = download_values(&*device, &y).unwrap();
                let product: f64 = x.iter().zip(&found).map(|(x, y)| x * y).sum();
                let added: Vec<f64> = download_values(&*device, &sums).unwrap();
                let expected = [7.0, if has_dot { 7.0 + product } else { 7.0 }, 7.0];
                // 101 products of at most 40 each, in another order
                assert!(
                    added.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-12),
                    "{added:?} {expected:?}"
                );
                for (at, found) in found.iter().enumerate() {
                    let (row, r) = (at / side, at % side);
                    let own = starts[row] as usize..starts[row + 1] as usize;
                    let term = |k: usize, c: usize| {
                        values[(k * side + r) * side + c] * x[columns[k] as usize * side + c]
                    };
                    let expected: f64 =
                        own.flat_map(|k| (0..side).map(move |c| (k, c))).map(|(k, c)| term(k, c)).sum();
                    assert!(
                        (found - expected).abs() <= 1e-13,
                        "{at} of {side}: {found} {expected}, seed {seed}"
                    );
                }
            }
        }
    }

    /// Threads that ask for the same programs at once get those of one that asks alone.
    #[test]
    fn programs_are_the_same_in_any_thread() {
        let texts = [
            text!("aggregation/connections").replace("SIDE", "1"),
            text!("aggregation/count_products")
                .replace("SLICES", "4")
                .replace("KEPT", "8")
                .replace("GROUP", "32"),
            text!("aggregation/measured_rows").replace("SIDE", "3"),
            text!("aggregation/rigid_motions").replace("SIDE", "3").replace("TURNS", "3"),
            text!("scan_blocks").to_owned(),
        ];
        let asked: Vec<(&String, Target)> = [Target::C, Target::OpenCl, Target::Cuda]
            .into_iter()
            .flat_map(|target| texts.iter().map(move |text| (text, target)))
            .collect();
        let alone: Vec<Program> =
            asked.iter().map(|(text, target)| program(text, *target).unwrap()).collect();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let (asked, alone) = (&asked, &alone);
                // each begins with another one, so that some wait for others and some do not
                scope.spawn(move || {
                    for k in (0..asked.len()).map(|k| (k + first * (first % 2)) % asked.len()) {
                        assert_eq!(*proved(asked[k].0, asked[k].1).unwrap(), alone[k]);
                    }
                });
            }
        });
    }

    #[test]
    fn a_refused_text_is_refused_again() {
        for _ in 0..2 {
            assert!(proved("no kernel", Target::C).is_err());
        }
    }
}
