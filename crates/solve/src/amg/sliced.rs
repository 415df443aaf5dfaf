//! Copies of matrices for cycles, in slices, whose products update vectors.

use super::places::Pattern;
use crate::sorting::Scan;
use crate::texts::{compiled, text, with_extents};
use crate::{Call, CycleNumbers, PatternKernels, SolveError};
use kingpost_runtime::{Backend, Buffer, Device, Executable};
use rayon::prelude::*;
use std::sync::Arc;

/// Blocks of a slice that are side by side on a card: neighbouring work-items read neighbouring
/// numbers.
const SLICE: usize = 32;
/// Entries of a slice that go by way of local memory.
const ROOM: usize = 512;

/// How rows are stored. Rows of one length are neighbours, so that few zeros fill slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    slice: usize,
    /// Work-items that share a row.
    lanes: usize,
    numbers: CycleNumbers,
}

impl Layout {
    /// Of rows that have `per_row` blocks on average: the fastest of 1 to 32 work-items a row on an
    /// H200 with 3, 12, 28, 38, 44, 102, 146 and 353 blocks of one number (2026-11-30). Elsewhere
    /// than on a card a slice is a row.
    pub fn of(device: &dyn Device, per_row: usize, numbers: CycleNumbers) -> Self {
        match device.info().backend {
            Backend::C | Backend::OpenCl => Self { slice: 1, lanes: 1, numbers },
            Backend::Cuda => Self {
                slice: SLICE,
                numbers,
                lanes: match per_row {
                    ..32 => 1,
                    32..64 => 4,
                    64..128 => 16,
                    _ => 32,
                },
            },
        }
    }

    /// Those that any matrices have.
    fn all(device: &dyn Device, numbers: CycleNumbers) -> Vec<Self> {
        match device.info().backend {
            Backend::C | Backend::OpenCl => vec![Self::of(device, 0, numbers)],
            Backend::Cuda => [0, 32, 64, 128].map(|per_row| Self::of(device, per_row, numbers)).into(),
        }
    }

    /// Compiles what cycles on levels need whose nodes have `side` unknowns, and those of the
    /// coarser ones `width`.
    ///
    /// # Errors
    /// A device that refuses a kernel.
    pub fn prepare(
        device: &dyn Device,
        [side, width]: [usize; 2],
        numbers: CycleNumbers,
    ) -> Result<(), SolveError> {
        Self::all(device, numbers).into_par_iter().try_for_each(|layout| {
            layout.count(device)?;
            for (extents, scaling) in [
                ([side; 2], Scaling::Columns),
                ([side, width], Scaling::Rows),
                ([width, side], Scaling::None),
            ] {
                layout.fill(device, extents, scaling)?;
            }
            CycleKernels::new(device, [layout; 3], [side, width]).map(drop)
        })
    }

    const fn rows(self) -> usize {
        self.slice / self.lanes
    }

    fn compiled(
        self,
        device: &dyn Device,
        text: &str,
        (extents, group): ([usize; 2], usize),
    ) -> Result<Executable, SolveError> {
        let text = text.replace("SLICE", &self.slice.to_string()).replace("LANES", &self.lanes.to_string());
        let text = text.replace("ROWS", &self.rows().to_string()).replace("GROUP", &group.to_string());
        let [kind, read, write] = match self.numbers {
            CycleNumbers::F64 => ["f64", "", ""],
            CycleNumbers::F32 => ["f32", "f64", "f32"],
        };
        let text = text.replace("NUMBER", kind).replace("READ", read).replace("WRITE", write);
        compiled(device, &with_extents(&text, extents))
    }

    /// What counts the blocks of slices.
    fn count(self, device: &dyn Device) -> Result<Executable, SolveError> {
        self.compiled(device, text!("sliced/lengths"), ([1, 1], 64))
    }

    /// What copies a matrix of blocks of some extents.
    fn fill(
        self,
        device: &dyn Device,
        extents: [usize; 2],
        scaling: Scaling,
    ) -> Result<Executable, SolveError> {
        let [argument, factor] = scaling.texts();
        let is_staged = self.slice == SLICE && self.lanes == 1 && extents == [1, 1];
        let text = match is_staged {
            true => text!("sliced/fill_staged").replace("ROOM", &ROOM.to_string()),
            false => text!("sliced/fill").to_owned(),
        };
        let text = match (is_staged, scaling) {
            // of the only unknown of a node
            (true, Scaling::Columns) => text.replace("FACTOR", "*inverse[column, 0]"),
            (true, Scaling::Rows) => text.replace("FACTOR", "/inverse[row, 0]"),
            (true, Scaling::None) | (false, _) => text.replace("FACTOR", factor),
        };
        let text = text.replace("INVERSE", argument);
        // 128 work-items
        self.compiled(device, &text, (extents, 128 / self.slice))
    }

    /// What multiplies by a matrix of blocks of some extents, and updates.
    pub fn update(
        self,
        device: &dyn Device,
        extents: [usize; 2],
        update: Update,
    ) -> Result<Executable, SolveError> {
        let [arguments, formula] = update.texts();
        let text = if self.lanes == 1 { text!("sliced/product") } else { text!("sliced/product_by_lanes") };
        let text = text.replace("ARGUMENTS", arguments).replace("UPDATE", formula);
        // some 128 work-items, in whole slices
        let slices = (128 / (self.slice * extents[0])).max(1);
        self.compiled(device, &text, (extents, slices * self.rows()))
    }
}

/// What a product updates.
#[derive(Clone, Copy)]
pub(super) enum Update {
    /// `y = A x`
    Times,
    /// `y += A x`
    Add,
    /// `y = b - A x`
    Residual,
    /// `y = α b - β A b`, two steps of Chebyshev's iteration from zero.
    Start,
    /// `y = D⁻¹ (y + α r - β A r)`, two more steps, and the way back from unknowns that the
    /// diagonal scales.
    Finish,
}

impl Update {
    /// Its arguments besides `x`, and how `y` follows from what the product of a row adds up to.
    const fn texts(self) -> [&'static str; 2] {
        match self {
            Self::Times => ["arg y: f64[n, HEIGHT] out", "y[i, r] = total"],
            Self::Add => ["arg y: f64[n, HEIGHT] inout", "y[i, r] += total"],
            Self::Residual => {
                ["arg b: f64[n, HEIGHT] in\narg y: f64[n, HEIGHT] out", "y[i, r] = b[i, r] - total"]
            }
            Self::Start => [
                "arg alpha: f64 in\narg beta: f64 in\narg b: f64[n, HEIGHT] in\narg y: f64[n, HEIGHT] out",
                "y[i, r] = alpha*b[i, r] - beta*total",
            ],
            Self::Finish => [
                "arg alpha: f64 in\narg beta: f64 in\narg b: f64[n, HEIGHT] in\narg inverse: f64[n, HEIGHT] in\n\
                 arg y: f64[n, HEIGHT] inout",
                "y[i, r] = inverse[i, r]*(y[i, r] + (alpha*b[i, r] - beta*total))",
            ],
        }
    }
}

/// What a cycle does on a level.
pub(super) struct CycleKernels {
    pub start: Executable,
    pub residual: Executable,
    pub restrict: Executable,
    pub add: Executable,
    pub finish: Executable,
}

impl CycleKernels {
    /// For a matrix, an interpolation and a restriction of some layouts, where nodes have `side`
    /// unknowns, and coarser ones `width`.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(
        device: &dyn Device,
        [own, up, down]: [Layout; 3],
        [side, width]: [usize; 2],
    ) -> Result<Self, SolveError> {
        let of_own = |update| own.update(device, [side; 2], update);
        Ok(Self {
            start: of_own(Update::Start)?,
            residual: of_own(Update::Residual)?,
            finish: of_own(Update::Finish)?,
            restrict: down.update(device, [width, side], Update::Times)?,
            add: up.update(device, [side, width], Update::Add)?,
        })
    }
}

/// What entries are multiplied by in a copy, where `inverse` is the inverse of a diagonal `D`.
#[derive(Clone, Copy)]
pub(super) enum Scaling {
    None,
    /// `A D⁻¹`, of a square one.
    Columns,
    /// `D A`
    Rows,
}

impl Scaling {
    /// Its argument, and its factor.
    const fn texts(self) -> [&'static str; 2] {
        match self {
            Self::None => [""; 2],
            Self::Columns => ["arg inverse: f64[n_columns, WIDTH] in", "*inverse[column, c]"],
            Self::Rows => ["arg inverse: f64[n, HEIGHT] in", "/inverse[row, r]"],
        }
    }
}

/// Where the slices of matrices of a pattern are.
#[derive(Clone)]
pub(super) struct Slices {
    pub layout: Layout,
    rows: usize,
    columns: usize,
    n_blocks: usize,
    row_starts: Arc<Buffer>,
    at: Arc<Buffer>,
    count: usize,
    /// How often a slice has blocks side by side, over all slices.
    n_stored: usize,
    starts: Arc<Buffer>,
}

/// Slices that are being counted.
pub(super) struct Counting {
    slices: Slices,
    kernel: Executable,
    lengths: Buffer,
    scan: Scan,
}

impl Counting {
    /// Of matrices of a pattern.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernels.
    pub fn new(device: &dyn Device, pattern: &Pattern, layout: Layout) -> Result<Self, SolveError> {
        let count = pattern.rows.div_ceil(layout.rows());
        let integers = || device.allocate_unset(4 * (count + 1) as u64);
        let (lengths, starts) = (integers()?, Arc::new(integers()?));
        device.fill(&lengths, 0)?; // what stands after them
        Ok(Self {
            slices: Slices {
                layout,
                rows: pattern.rows,
                columns: pattern.columns,
                n_blocks: pattern.n_blocks,
                row_starts: Arc::clone(&pattern.starts),
                at: Arc::clone(&pattern.at),
                count,
                n_stored: 0,
                starts,
            },
            kernel: layout.count(device)?,
            lengths,
            scan: Scan::new(device, count + 1)?,
        })
    }

    /// Appends what counts.
    pub fn push<'a>(&'a self, lists: &'a PatternKernels, calls: &mut Vec<Call<'a>>) {
        let Slices { rows, count, row_starts, starts, .. } = &self.slices;
        let arrays = [("row_starts", &**row_starts), ("lengths", &self.lengths)];
        calls.push(Call::of(&self.kernel, &[("n", *rows), ("n_slices", *count)], &arrays));
        self.scan.push(lists, (&self.lengths, starts), calls);
    }

    /// What was counted, once the launches have ended.
    ///
    /// # Errors
    /// More than 32 bits count, a failing driver.
    pub fn slices(self, device: &dyn Device) -> Result<Slices, SolveError> {
        Ok(Slices { n_stored: self.scan.total(device)?, ..self.slices })
    }
}

impl Slices {
    /// Bytes of the lists and of the entries of a matrix with a number of entries a block.
    pub const fn bytes(&self, per_block: usize) -> u64 {
        4 * (self.count as u64 + 1)
            + ((4 + self.layout.numbers.bytes() * per_block) * self.n_stored * self.layout.slice) as u64
    }

    fn sizes(&self) -> [(&'static str, usize); 4] {
        let Self { rows, columns, count, n_stored, .. } = *self;
        [("n", rows), ("n_columns", columns), ("n_slices", count), ("n_stored", n_stored)]
    }
}

/// A copy of a matrix in slices.
pub(super) struct Sliced {
    slices: Slices,
    columns: Buffer,
    values: Buffer,
    fill: Executable,
}

impl Sliced {
    /// Of a matrix of blocks of some extents; its numbers are poison.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernels.
    pub fn new(
        device: &dyn Device,
        slices: Slices,
        extents: [usize; 2],
        scaling: Scaling,
    ) -> Result<Self, SolveError> {
        let n = slices.n_stored * slices.layout.slice;
        Ok(Self {
            columns: device.allocate_unset(4 * n as u64)?,
            values: device
                .allocate_unset((slices.layout.numbers.bytes() * n * extents[0] * extents[1]) as u64)?,
            fill: slices.layout.fill(device, extents, scaling)?,
            slices,
        })
    }

    /// Copies a matrix of the pattern of the slices, with the inverse of the diagonal that scales
    /// it, if one does.
    pub fn fill<'a>(&'a self, entries: &'a Buffer, inverse: Option<&'a Buffer>) -> Call<'a> {
        let Slices { row_starts, at, n_blocks, starts, .. } = &self.slices;
        let sizes = [&self.slices.sizes()[..], &[("n_blocks", *n_blocks)]].concat();
        let from: [(_, &Buffer); 3] = [("row_starts", row_starts), ("at", at), ("entries", entries)];
        let inverse = inverse.map(|buffer| ("inverse", buffer));
        let to: [(_, &Buffer); 3] =
            [("starts", starts), ("columns", &self.columns), ("values", &self.values)];
        Call::of(&self.fill, &sizes, &[&from[..], &to, inverse.as_slice()].concat())
    }

    /// Multiplies and updates, by a kernel of its [layout](Layout::update).
    pub fn update<'a>(&'a self, kernel: &'a Executable, vectors: &[(&'a str, &'a Buffer)]) -> Call<'a> {
        let lists: [(_, &Buffer); 3] =
            [("starts", &self.slices.starts), ("columns", &self.columns), ("values", &self.values)];
        Call::of(kernel, &self.slices.sizes(), &[&lists[..], vectors].concat())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use kingpost_runtime::{buffer_of, download_values, open};
    use kingpost_sample::{Random, of_run};

    /// Rows of a number of blocks each, and of none.
    fn pattern(
        device: &dyn Device,
        [rows, columns]: [usize; 2],
        random: &mut Random,
    ) -> (Pattern, Vec<Vec<i32>>) {
        let mut row = |i: usize| {
            let own = (0..columns as i32).filter(|_| random.int(0, 40) <= 2 * (i % 7) as i64);
            if i % 5 == 3 { Vec::new() } else { own.collect::<Vec<i32>>() }
        };
        let lists: Vec<Vec<i32>> = (0..rows).map(&mut row).collect();
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as i32;
            Some(*end)
        });
        let starts: Vec<i32> = std::iter::once(0).chain(ends).collect();
        let at = lists.concat();
        let owners = vec![0; at.len()];
        let on = [starts, at, owners].map(|list| buffer_of(device, &list).unwrap());
        (Pattern::new([rows, columns], lists.concat().len(), on), lists)
    }

    /// What a product, `y`, `b` and the inverse of the diagonal make of `y`.
    type Expected = fn([f64; 4]) -> f64;

    /// A product by rows of scalars.
    fn product(
        (places, numbers, inverse): (&[Vec<i32>], &[f64], &[f64]),
        [height, width]: [usize; 2],
        scaling: Scaling,
        x: &[f64],
    ) -> Vec<f64> {
        let mut sums = vec![0.0; places.len() * height];
        let blocks = places.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |j| (i, *j as usize)));
        for ((i, j), block) in blocks.zip(numbers.chunks(height * width)) {
            for (place, entry) in block.iter().enumerate() {
                let (r, c) = (i * height + place / width, j * width + place % width);
                sums[r] += x[c]
                    * match scaling {
                        Scaling::None => *entry,
                        Scaling::Columns => entry * inverse[c],
                        Scaling::Rows => entry / inverse[r],
                    };
            }
        }
        sums
    }

    fn check(
        (device, layout): (&dyn Device, Layout),
        (rows, columns): (usize, usize),
        (extents, scaling): ([usize; 2], Scaling),
        random: &mut Random,
    ) {
        let what = format!("{}, {layout:?}, {extents:?}, seed {}", device.info().name, random.seed);
        let (pattern, places) = pattern(device, [rows, columns], random);
        let lists = PatternKernels::new(device).unwrap();
        let counting = Counting::new(device, &pattern, layout).unwrap();
        let mut calls = Vec::new();
        counting.push(&lists, &mut calls);
        run(device, &calls).unwrap();
        drop(calls);
        let slices = counting.slices(device).unwrap();
        let ([height, width], n) = (extents, rows * extents[0]);
        let numbers = random.reals(pattern.n_blocks * height * width);
        let inverse: Vec<f64> = (0..n).map(|k| 1.0 + (k % 3) as f64).collect();
        let (x, y, b) = (random.reals(columns * width), random.reals(n), random.reals(n));
        let sums = product((&places, &numbers, &inverse), extents, scaling, &x);
        let copy = Sliced::new(device, slices, extents, scaling).unwrap();
        let [entries, diagonal] = [&numbers, &inverse].map(|list| buffer_of(device, list).unwrap());
        let scale = (!matches!(scaling, Scaling::None)).then_some(&diagonal);
        run(device, &[copy.fill(&entries, scale)]).unwrap();
        let updates: [(Update, usize, Expected); 5] = [
            (Update::Times, 2, |[sum, ..]| sum),
            (Update::Add, 2, |[sum, y, ..]| y + sum),
            (Update::Residual, 3, |[sum, _, b, _]| b - sum),
            (Update::Start, 3, |[sum, _, b, _]| 0.7 * b - 0.3 * sum),
            (Update::Finish, 4, |[sum, y, b, d]| d * (y + 0.7 * b - 0.3 * sum)),
        ];
        for (update, count, expected) in updates {
            let kernel = layout.update(device, extents, update).unwrap();
            let [x_on, b_on, y_on] = [&x, &b, &y].map(|v| buffer_of(device, v).unwrap());
            let all = [("x", &x_on), ("y", &y_on), ("b", &b_on), ("inverse", &diagonal)];
            let call = copy.update(&kernel, &all[..count]);
            let call = match update {
                Update::Start | Update::Finish => call.with("alpha", 0.7).with("beta", 0.3),
                Update::Times | Update::Add | Update::Residual => call,
            };
            run(device, &[call]).unwrap();
            let found: Vec<f64> = download_values(device, &y_on).unwrap();
            for (i, found) in found.iter().enumerate() {
                let expected = expected([sums[i], y[i], b[i], inverse[i]]);
                // sums of some hundred terms, each of which is rounded once more in single
                // precision
                let rounding = match layout.numbers {
                    CycleNumbers::F64 => 1e-12,
                    CycleNumbers::F32 => 1e-5,
                };
                assert!((found - expected).abs() < rounding, "{what}, {i}: {found} {expected}");
            }
        }
    }

    /// What cards run and what processors run, on processors.
    #[test]
    fn products_in_slices_update_vectors() {
        let mut random = Random::new();
        let (double, single) = (CycleNumbers::F64, CycleNumbers::F32);
        let cases = [
            ("c", (1, 1), double, (101, 101), ([1, 1], Scaling::Columns)),
            ("c", (32, 1), single, (101, 70), ([1, 1], Scaling::None)),
            ("opencl", (32, 1), double, (101, 101), ([1, 1], Scaling::Columns)),
            // more entries a slice than go by way of local memory
            ("c", (32, 1), double, (61, 300), ([1, 1], Scaling::Rows)),
            ("c", (32, 4), double, (61, 20), ([3, 6], Scaling::Rows)),
            ("opencl", (32, 32), double, (101, 101), ([1, 1], Scaling::Columns)),
            ("opencl", (1, 1), single, (61, 61), ([2, 2], Scaling::Columns)),
        ];
        for (name, (slice, lanes), numbers, size, blocks) in of_run(cases, &[1, 3, 4, 5]) {
            let device = &*open(name).unwrap();
            check((device, Layout { slice, lanes, numbers }), size, blocks, &mut random);
        }
    }
}
