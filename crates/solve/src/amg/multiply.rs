//! Numbers of products of matrices whose places are known.

use super::places::Pattern;
use super::structure::{FEW, LARGE, Product};
use crate::texts::{compiled, text};
use crate::{Call, SolveError};
use kingpost_runtime::{Backend, Buffer, Device, Executable};

/// Blocks a row of the second matrix from which on terms go where they belong: of shorter rows most
/// work-items would wait. In products of fewer than [`LARGE`] rows, and of more, which are added up in
/// registers.
const LONG: [usize; 2] = [4, 8];
/// Slices of rows, work-items that go through a row of the second matrix, and how many of its rows a
/// work-group goes through at once: where rows of the second matrix are short, where they are long, where
/// the product has few rows, and with rows in slices. On an H200 the products of Poisson's equation take
/// 0.61, 0.49 and 0.60 of the time of those that halved rows in global memory, or looked for terms, by 16
/// work-items and four rows (2026-11-30).
const SHAPES: [[usize; 3]; 4] = [[1, 8, 8], [1, 16, 16], [1, 16, 32], [FEW, 8, 8]];
/// Blocks of a long row, and rows of a product that has few.
const LONG_ROW: usize = 16;
const FEW_ROWS: usize = 1 << 10;
/// Entries of a row of the product that a work-group has in its memory at once.
const ROOM: usize = 512;

/// Entries of a row of the product that a work-item has in registers at once, where rows are many
/// and those of the second matrix short.
const COUNT: usize = 16;

type Sizes = [(&'static str, usize); 5];
type Arrays<'a> = [(&'static str, &'a Buffer); 6];

/// The kernels of a product of matrices with blocks of given extents.
pub(super) struct MultiplyKernels {
    /// A work-item a block looks for its terms.
    gather: Executable,
    /// Of rows of numbers on a card.
    on_card: Option<OnCard>,
}

/// The kernels of a product of matrices of numbers on a card.
struct OnCard {
    /// Work-items go through the terms of a row and add each to its entry, in an order that differs from
    /// run to run: of all [shapes](SHAPES).
    scatter: [Executable; 4],
    /// A work-item goes through the terms of a row and compares them with all of its columns.
    of_rows: Executable,
}

impl MultiplyKernels {
    /// Of blocks of `height` by `middle`, and of `middle` by `width`.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device, extents: [usize; 3]) -> Result<Self, SolveError> {
        let [height, middle, width] = extents.map(|extent| extent.to_string());
        let gather = text!("aggregation/block_matrix_product").replace("HEIGHT", &height);
        let gather = gather.replace("MIDDLE", &middle).replace("WIDTH", &width);
        let on_card = match (device.info().backend, extents) {
            (Backend::Cuda, [1, 1, 1]) => {
                let [short, long, few, of_slices] = SHAPES.map(|shape| scatter(device, shape));
                let scatter = [short?, long?, few?, of_slices?];
                Some(OnCard { scatter, of_rows: of_rows(device)? })
            }
            (Backend::Cuda | Backend::C | Backend::OpenCl, _) => None,
        };
        Ok(Self { gather: compiled(device, &gather)?, on_card })
    }

    /// Multiplies matrices of some patterns.
    pub fn call<'a>(
        &'a self,
        [a, b]: [(&'a Pattern, &'a Buffer); 2],
        (product, values): (&'a Product, &'a Buffer),
    ) -> Call<'a> {
        let Product { pattern, .. } = product;
        let is_large = pattern.rows >= LARGE;
        let is_long = b.0.n_blocks >= LONG[usize::from(is_large)] * b.0.rows;
        match &self.on_card {
            Some(OnCard { scatter: [of_short, of_long, of_few, of_slices], .. }) if is_long => {
                let kernel = match product.count {
                    1 if pattern.rows < FEW_ROWS => of_few,
                    1 if b.0.n_blocks < LONG_ROW * b.0.rows => of_short,
                    1 => of_long,
                    _ => of_slices,
                };
                scattered(kernel, [a, b], (product, values))
            }
            Some(OnCard { of_rows, .. }) if is_large => by_rows(of_rows, [a, b], (pattern, values)),
            Some(_) | None => {
                let (sizes, arrays) = factors([a, b], pattern);
                let to = [&pattern.places()[..], &[("values", values)]].concat();
                Call::of(&self.gather, &sizes, &[&arrays[..], &to].concat())
            }
        }
    }
}

/// What adds the terms of rows in a number of slices, by a number of work-items for each of some rows of the
/// second matrix.
fn scatter(device: &dyn Device, [slices, lanes, teams]: [usize; 3]) -> Result<Executable, SolveError> {
    let text = text!("aggregation/scattered_product").replace("SLICES", &slices.to_string());
    let text = text.replace("SHIFT", &slices.ilog2().to_string()).replace("ROOM", &ROOM.to_string());
    let text = text.replace("LANES", &lanes.to_string()).replace("TEAMS", &teams.to_string());
    compiled(device, &text.replace("ITEMS", &(lanes * teams).to_string()))
}

/// What adds the terms of rows in registers.
fn of_rows(device: &dyn Device) -> Result<Executable, SolveError> {
    compiled(device, &text!("aggregation/product_of_rows").replace("COUNT", &COUNT.to_string()))
}

/// Sizes of a product, and its factors.
fn factors<'a>([a, b]: [(&'a Pattern, &'a Buffer); 2], product: &Pattern) -> (Sizes, Arrays<'a>) {
    let sizes = [
        ("n", product.rows),
        ("n_middle", b.0.rows),
        ("n_a", a.0.n_blocks),
        ("n_b", b.0.n_blocks),
        ("n_blocks", product.n_blocks),
    ];
    let arrays: Arrays<'_> = [
        ("a_starts", &a.0.starts),
        ("a_columns", &a.0.at),
        ("a", a.1),
        ("b_starts", &b.0.starts),
        ("b_columns", &b.0.at),
        ("b", b.1),
    ];
    (sizes, arrays)
}

fn scattered<'a>(
    kernel: &'a Executable,
    of: [(&'a Pattern, &'a Buffer); 2],
    (product, values): (&'a Product, &'a Buffer),
) -> Call<'a> {
    let (sizes, arrays) = factors(of, &product.pattern);
    let share = product.pattern.columns.div_ceil(product.count).max(1);
    let sizes = [&sizes[..], &[("share", share)]].concat();
    Call::of(kernel, &sizes, &[&product.pattern.lists()[..], &arrays, &[("values", values)]].concat())
}

fn by_rows<'a>(
    kernel: &'a Executable,
    of: [(&'a Pattern, &'a Buffer); 2],
    (product, values): (&'a Pattern, &'a Buffer),
) -> Call<'a> {
    let (sizes, arrays) = factors(of, product);
    Call::of(kernel, &sizes, &[&product.lists()[..], &arrays, &[("values", values)]].concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use kingpost_runtime::{buffer_of, download_values, open};
    use kingpost_sample::Random;

    /// Columns of rows, slice by slice and ascending in each; a row of all, and one of none.
    fn random(rows: usize, columns: usize, slices: i32, random: &mut Random) -> Vec<Vec<i32>> {
        let mut row = |i: usize| {
            let is_there = |random: &mut Random| i == 1 || (i != 2 && random.int(0, 9) == 0);
            let mut own: Vec<i32> = (0..columns as i32).filter(|_| is_there(random)).collect();
            own.sort_unstable_by_key(|column| (column % slices, *column));
            own
        };
        (0..rows).map(&mut row).collect()
    }

    fn ends(lengths: impl Iterator<Item = usize>) -> Vec<i32> {
        let sums = lengths.scan(0, |end, length| {
            *end += length as i32;
            Some(*end)
        });
        std::iter::once(0).chain(sums).collect()
    }

    fn pattern(device: &dyn Device, rows: &[Vec<i32>], columns: usize) -> Pattern {
        let owners: Vec<i32> =
            rows.iter().enumerate().flat_map(|(i, row)| vec![i as i32; row.len()]).collect();
        let lists = [ends(rows.iter().map(Vec::len)), rows.concat(), owners];
        let lists = lists.map(|list| buffer_of(device, &list).unwrap());
        Pattern::new([rows.len(), columns], rows.concat().len(), lists)
    }

    /// Rows of numbers.
    fn dense(rows: &[Vec<i32>], numbers: &[f64], columns: usize) -> Vec<Vec<f64>> {
        let mut numbers = numbers.iter();
        let mut row = |own: &Vec<i32>| {
            let mut all = vec![0.0; columns];
            own.iter().for_each(|column| all[*column as usize] = *numbers.next().unwrap());
            all
        };
        rows.iter().map(&mut row).collect()
    }

    /// What cards run, on processors: rows of one slice and of several, of more entries than there
    /// is room for.
    #[test]
    fn terms_are_added_where_they_belong() {
        let mut numbers = Random::new();
        for (name, slices, columns) in
            [("c", 1, 700), ("c", FEW, 700), ("opencl", 1, 90), ("opencl", FEW, 90)]
        {
            let device = &*open(name).unwrap();
            let what = format!("{name}, {slices} slices, seed {}", numbers.seed);
            let (a, b) = (random(40, 60, 1, &mut numbers), random(60, columns, 1, &mut numbers));
            let of_row = |row: &Vec<i32>| {
                let mut all: Vec<i32> = row.iter().flat_map(|k| b[*k as usize].clone()).collect();
                all.sort_unstable_by_key(|column| (*column % slices as i32, *column));
                all.dedup();
                all
            };
            let places: Vec<Vec<i32>> = a.iter().map(of_row).collect();
            let of_slice = |row: &Vec<i32>| {
                let count = |p: i32| row.iter().filter(|column| **column % slices as i32 == p).count();
                (0..slices as i32).map(count).collect::<Vec<_>>()
            };
            let starts = ends(places.iter().flat_map(of_slice));
            let product = Product {
                pattern: pattern(device, &places, columns),
                count: slices,
                slices: buffer_of(device, &starts).unwrap(),
            };
            let [of_a, of_b] = [&a, &b].map(|rows| numbers.reals(rows.concat().len()));
            let on = [&of_a, &of_b].map(|list| buffer_of(device, list).unwrap());
            let [values, others] =
                [0, 1].map(|_| device.allocate(8 * product.pattern.n_blocks as u64).unwrap());
            let factors = [pattern(device, &a, 60), pattern(device, &b, columns)];
            let shape = SHAPES.into_iter().rfind(|[of, ..]| *of == slices).unwrap();
            let kernels = [scatter(device, shape).unwrap(), of_rows(device).unwrap()];
            let of = [(&factors[0], &on[0]), (&factors[1], &on[1])];
            let first = scattered(&kernels[0], of, (&product, &values));
            run(device, &[first, by_rows(&kernels[1], of, (&product.pattern, &others))]).unwrap();
            let found: Vec<f64> = download_values(device, &values).unwrap();
            let others: Vec<f64> = download_values(device, &others).unwrap();
            let (left, right) = (dense(&a, &of_a, 60), dense(&b, &of_b, columns));
            let at = places.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |j| (i, *j as usize)));
            for (((i, j), found), other) in at.zip(found).zip(others) {
                let expected: f64 = (0..60).map(|k| left[i][k] * right[k][j]).sum();
                // sums of 60 terms, in any order
                for found in [found, other] {
                    assert!((found - expected).abs() <= 1e-13, "{what}, {i}, {j}: {found} {expected}");
                }
            }
        }
    }
}
