//! Which blocks the matrices of a level have, found on the device.

use super::aggregates::{Aggregates, SetKernels};
use super::places::Pattern;
use super::sliced::{Counting, Layout, Slices};
use crate::sorting::{Scan, Sort};
use crate::texts::{compiled, text};
use crate::{BlockRows, Call, CycleNumbers, PatternKernels, SolveError, put};
use kingpost_runtime::{Backend, Buffer, Device, Executable};
use rayon::join;
use std::sync::Arc;

/// Slices of the rows of products on a card, which have one remainder each: a power of two.
pub(super) const FEW: usize = 8;
/// Rows from which on a card finds columns of products by rows instead of work-groups.
pub(super) const LARGE: usize = 1 << 17;

/// Who finds the columns of a row of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A work-item, slice by slice: what is read once, where there are many rows.
    ByRows,
    /// A work-item a slice, of lists of a slice each, as such a product has them.
    OfSlices,
    /// A work-group, which marks them in its memory, where there are few columns: a work-item a given
    /// number. They ascend.
    ByGroups(usize),
}

/// Columns that a work-item of 64 marks: one pass suffices for 128, 512, 4096 and 6144 of them.
const MARKS: [usize; 4] = [2, 8, 64, 96];

impl Way {
    /// Columns of a slice that a pass finds: a slice has fewer on average, and so has a row.
    const fn kept(self, slices: usize) -> usize {
        match self {
            Self::ByRows => 16,
            Self::OfSlices if slices == 1 => 16,
            Self::OfSlices => 8,
            Self::ByGroups(_) => 0,
        }
    }
}

/// The kernels that find where a product has blocks, in slices.
struct ProductKernels {
    slices: usize,
    way: Way,
    count: Executable,
    fill: Executable,
    first: Executable,
}

impl ProductKernels {
    fn new(device: &dyn Device, slices: usize, way: Way) -> Result<Self, SolveError> {
        let of = |text: &str| {
            let text =
                text.replace("KEPT", &way.kept(slices).to_string()).replace("SLICES", &slices.to_string());
            let text = text.replace("SHIFT", &slices.ilog2().to_string());
            let text = match way {
                Way::ByGroups(marks) => text.replace("MARKS", &marks.to_string()),
                Way::ByRows | Way::OfSlices => text,
            };
            compiled(device, &text.replace("GROUP", &(128 / slices).to_string()))
        };
        let [count, fill] = match way {
            Way::ByRows => [text!("aggregation/count_image"), text!("aggregation/fill_image")],
            Way::OfSlices => [text!("aggregation/count_products"), text!("aggregation/fill_products")],
            Way::ByGroups(_) => [text!("aggregation/count_marked"), text!("aggregation/fill_marked")],
        };
        let first = of(text!("aggregation/first_slices"))?;
        Ok(Self { slices, way, count: of(count)?, fill: of(fill)?, first })
    }
}

/// The kernels that find structures, of blocks of any extents.
pub(super) struct StructureKernels {
    lists: PatternKernels,
    sets: SetKernels,
    count_aggregates: Executable,
    fill_aggregates: Executable,
    /// Of the matrix with the interpolation, and of the restriction with that.
    products: [ProductKernels; 2],
    /// Of both on levels with few rows of a card, for more and more columns.
    by_groups: Vec<ProductKernels>,
    rows: Executable,
    take: Executable,
}

/// Where a product of two matrices has blocks: in slices of its rows, of which each has a number of
/// one remainder. Columns of a slice ascend.
pub(super) struct Product {
    pub pattern: Pattern,
    /// Slices of a row.
    pub count: usize,
    /// First block of each slice, and the end of the last.
    pub slices: Buffer,
}

impl Product {
    /// Bytes of its lists.
    pub const fn bytes(&self) -> u64 {
        self.pattern.bytes() + 4 * (self.count * self.pattern.rows + 1) as u64
    }
}

/// What a level shares with those of other matrices whose connections are the same: all but numbers.
pub(super) struct Structure {
    pub sets: Aggregates,
    /// Of the matrix.
    pub own: Pattern,
    pub interpolation: Pattern,
    pub restriction: Pattern,
    /// The block of the interpolation that each block of the restriction is.
    pub transposes: Buffer,
    /// Of the matrix times the interpolation.
    pub image: Product,
    pub coarse: Product,
    /// Of the matrix, the interpolation and the restriction, for cycles.
    pub slices: [Slices; 3],
}

impl StructureKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device) -> Result<Self, SolveError> {
        let is_card = device.info().backend == Backend::Cuda;
        let slices = if is_card { FEW } else { 1 };
        let of = |way| ProductKernels::new(device, slices, way);
        let by_groups = || {
            let marks: &[usize] = if is_card { &MARKS } else { &[] };
            let of = |marks: &usize| ProductKernels::new(device, 1, Way::ByGroups(*marks));
            marks.iter().map(of).collect::<Result<Vec<_>, SolveError>>()
        };
        let products = || join(by_groups, || join(|| of(Way::ByRows), || of(Way::OfSlices)));
        let others = || join(|| SetKernels::new(device), products);
        let (lists, (sets, (by_groups, (image, coarse)))) = join(|| PatternKernels::new(device), others);
        Ok(Self {
            lists: lists?,
            sets: sets?,
            count_aggregates: compiled(device, text!("aggregation/count_aggregates"))?,
            fill_aggregates: compiled(device, text!("aggregation/fill_aggregates"))?,
            products: [image?, coarse?],
            by_groups: by_groups?,
            rows: compiled(device, text!("aggregation/rows_of_blocks"))?,
            take: compiled(device, text!("aggregation/take_integers"))?,
        })
    }

    /// Sets of strongly connected nodes.
    ///
    /// # Errors
    /// As [`SetKernels::find`].
    pub fn aggregates(
        &self,
        device: &dyn Device,
        matrix: &BlockRows<'_>,
        kinds: &Buffer,
    ) -> Result<Aggregates, SolveError> {
        self.sets.find(device, &self.lists, matrix, kinds)
    }

    /// The structure of a level with given sets of nodes.
    ///
    /// # Errors
    /// More than 32 bits count, no memory, a failing driver.
    pub fn of_sets(
        &self,
        device: &dyn Device,
        (matrix, kinds): (&BlockRows<'_>, &Buffer),
        sets: Aggregates,
        of_cycles: CycleNumbers,
    ) -> Result<Structure, SolveError> {
        let own = self.with_owners(device, matrix)?;
        let interpolation = self.interpolation(device, (&own, kinds), &sets)?;
        let (restriction, transposes) = self.transposed(device, &interpolation)?;
        let has_room = |of: &&ProductKernels| matches!(of.way, Way::ByGroups(m) if 64 * m >= sets.count);
        let by_groups = self.by_groups.iter().find(has_room).or_else(|| self.by_groups.last());
        let [with_matrix, with_restriction] = match by_groups {
            Some(by_groups) if own.rows < LARGE => [by_groups; 2],
            Some(_) | None => self.products.each_ref(),
        };
        let lists = &interpolation.starts;
        let image = self.product(device, with_matrix, [&own, &interpolation], lists)?;
        let of_both = [&restriction, &image.pattern];
        let coarse = self.product(device, with_restriction, of_both, &image.slices)?;
        let slices = self.slices(device, [&own, &interpolation, &restriction], of_cycles)?;
        Ok(Structure { sets, own, interpolation, restriction, transposes, image, coarse, slices })
    }

    fn slices(
        &self,
        device: &dyn Device,
        of: [&Pattern; 3],
        numbers: CycleNumbers,
    ) -> Result<[Slices; 3], SolveError> {
        let counting = |pattern: &Pattern| {
            let per_row = pattern.n_blocks / pattern.rows.max(1);
            Counting::new(device, pattern, Layout::of(device, per_row, numbers))
        };
        let [own, up, down] = of.map(counting);
        let all = [own?, up?, down?];
        let mut calls = Vec::new();
        all.iter().for_each(|counting| counting.push(&self.lists, &mut calls));
        put(device, &calls)?;
        drop(calls);
        let [own, up, down] = all.map(|counting| counting.slices(device));
        Ok([own?, up?, down?])
    }

    fn with_owners(&self, device: &dyn Device, matrix: &BlockRows<'_>) -> Result<Pattern, SolveError> {
        let owners = device.allocate_unset(4 * matrix.n_blocks as u64)?;
        let arrays = [("row_starts", matrix.row_starts as &Buffer), ("owners", &owners)];
        put(device, &[Call::of(&self.rows, &matrix.sizes(), &arrays)])?;
        Ok(Pattern {
            rows: matrix.rows,
            columns: matrix.rows,
            n_blocks: matrix.n_blocks,
            starts: Arc::clone(matrix.row_starts),
            at: Arc::clone(matrix.columns),
            owners,
        })
    }

    /// Starts of rows from what counts their blocks, and the blocks of all.
    fn starts<'a>(
        &self,
        device: &dyn Device,
        n: usize,
        count: impl FnOnce(&'a Buffer) -> Call<'a>,
        lengths: &'a Buffer,
    ) -> Result<(Buffer, usize), SolveError> {
        let starts = device.allocate_unset(4 * (n as u64 + 1))?;
        device.fill(lengths, 0)?;
        let scan = Scan::new(device, n + 1)?;
        let mut calls = vec![count(lengths)];
        scan.push(&self.lists, (lengths, &starts), &mut calls);
        put(device, &calls)?;
        drop(calls);
        Ok((starts, scan.total(device)?))
    }

    /// A node of an aggregate is interpolated from those that it is connected to, and its own.
    fn interpolation(
        &self,
        device: &dyn Device,
        (own, kinds): (&Pattern, &Buffer),
        sets: &Aggregates,
    ) -> Result<Pattern, SolveError> {
        let lengths = device.allocate_unset(4 * (own.rows as u64 + 1))?;
        let sizes = [("n", own.rows), ("n_blocks", own.n_blocks), ("n_aggregates", sets.count)];
        // those of the first pass, which nobody looks for a second time
        let firsts = device.allocate_unset(4 * (8 * own.rows) as u64)?;
        let of_nodes = [("kinds", kinds), ("aggregates", &sets.of), ("firsts", &firsts)];
        let shared = [&own.lists()[..], &of_nodes].concat();
        let count = |lengths| {
            Call::of(&self.count_aggregates, &sizes, &[&shared[..], &[("lengths", lengths)]].concat())
        };
        let (starts, n_found) = self.starts(device, own.rows, count, &lengths)?;
        let [found, owners] =
            [device.allocate_unset(4 * n_found as u64)?, device.allocate_unset(4 * n_found as u64)?];
        let sizes = [&sizes[..], &[("n_found", n_found)]].concat();
        let arrays = [("starts", &starts), ("found", &found), ("owners", &owners)];
        put(device, &[Call::of(&self.fill_aggregates, &sizes, &[&shared[..], &arrays].concat())])?;
        Ok(Pattern::new([own.rows, sets.count], n_found, [starts, found, owners]))
    }

    /// The transpose, and the block that each of its blocks is.
    fn transposed(&self, device: &dyn Device, of: &Pattern) -> Result<(Pattern, Buffer), SolveError> {
        let n = of.n_blocks;
        let sort = Sort::new(device, of.columns, n)?;
        let mut calls = Vec::new();
        sort.push(&self.lists, &of.at, &mut calls);
        let [owners, from] = sort.sorted();
        let starts = device.allocate_unset(4 * (of.columns as u64 + 1))?;
        let at = device.allocate_unset(4 * n as u64)?;
        calls.push(self.lists.first_places((of.columns + 1, &starts), (n, owners)));
        let arrays = [("at", from), ("from", &of.owners), ("to", &at)];
        calls.push(Call::of(&self.take, &[("n", n), ("n_from", n)], &arrays));
        put(device, &calls)?;
        drop(calls);
        let [owners, from] = sort.into_sorted();
        Ok((Pattern::new([of.columns, of.rows], n, [starts, at, owners]), from))
    }

    /// Where the product of two matrices has blocks, of which the second has `lists` of columns
    /// that start there.
    fn product(
        &self,
        device: &dyn Device,
        kernels: &ProductKernels,
        [a, b]: [&Pattern; 2],
        lists: &Buffer,
    ) -> Result<Product, SolveError> {
        let integers = |n: usize| device.allocate_unset(4 * n as u64);
        let n_slices = kernels.slices * a.rows;
        let lengths = integers(n_slices + 1)?;
        let sizes = [("n", a.rows), ("n_middle", b.rows), ("n_columns", b.columns)];
        let mut sizes = [&sizes[..], &[("n_a", a.n_blocks), ("n_b", b.n_blocks)]].concat();
        if kernels.way == Way::ByRows {
            sizes.push(("share", b.columns.div_ceil(kernels.slices).max(1)));
        }
        let shared = [("a_starts", &*a.starts), ("a_columns", &a.at)];
        let shared = [shared, [("b_starts", lists), ("b_columns", &b.at)]].concat();
        // those of the first pass, which nobody looks for a second time
        let lists = if kernels.way == Way::ByRows { a.rows } else { n_slices };
        let firsts = integers(lists * kernels.way.kept(kernels.slices))?;
        let firsts = (!matches!(kernels.way, Way::ByGroups(_))).then_some(("firsts", &firsts));
        let shared = [&shared[..], firsts.as_slice()].concat();
        let count =
            |lengths| Call::of(&kernels.count, &sizes, &[&shared[..], &[("lengths", lengths)]].concat());
        let (slices, n_found) = self.starts(device, n_slices, count, &lengths)?;
        let [starts, found, owners] = [integers(a.rows + 1)?, integers(n_found)?, integers(n_found)?];
        let first = Call::of(&kernels.first, &sizes[..1], &[("slices", &slices), ("starts", &starts)]);
        let sizes = [&sizes[..], &[("n_found", n_found)]].concat();
        let starts_of = if kernels.way == Way::ByRows { &starts } else { &slices };
        let arrays = [("starts", starts_of), ("found", &found), ("owners", &owners)];
        let fill = Call::of(&kernels.fill, &sizes, &[&shared[..], &arrays].concat());
        put(device, &[first, fill])?;
        let pattern = Pattern::new([a.rows, b.columns], n_found, [starts, found, owners]);
        Ok(Product { pattern, count: kernels.slices, slices })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_runtime::{buffer_of, download_values, open};
    use kingpost_sample::{Random, of_run};

    /// Columns of rows, some without any.
    fn random(rows: usize, columns: usize, random: &mut Random) -> Vec<Vec<i32>> {
        let mut row = |_| (0..columns as i32).filter(|_| random.int(0, 6) == 0).collect();
        let mut all: Vec<Vec<i32>> = (0..rows).map(&mut row).collect();
        all[rows / 2].clear();
        all
    }

    fn upload(device: &dyn Device, rows: &[Vec<i32>], columns: usize) -> Pattern {
        let starts = rows.iter().scan(0, |end, row| {
            *end += row.len() as i32;
            Some(*end)
        });
        let starts: Vec<i32> = std::iter::once(0).chain(starts).collect();
        let at = rows.concat();
        let owners = vec![0; at.len()];
        let lists = [starts, at, owners].map(|list| buffer_of(device, &list).unwrap());
        Pattern::new([rows.len(), columns], rows.concat().len(), lists)
    }

    /// The columns of a product.
    fn product(a: &[Vec<i32>], b: &[Vec<i32>]) -> Vec<Vec<i32>> {
        let of_row = |row: &Vec<i32>| {
            let mut columns: Vec<i32> = row.iter().flat_map(|k| b[*k as usize].clone()).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        a.iter().map(of_row).collect()
    }

    fn check(device: &dyn Device, found: &Pattern, expected: &[Vec<i32>], what: &str) {
        let list = |buffer: &Buffer| download_values::<i32>(device, buffer).unwrap();
        let (starts, at, owners) = (list(&found.starts), list(&found.at), list(&found.owners));
        assert_eq!(starts[expected.len()] as usize, found.n_blocks);
        for (row, expected) in expected.iter().enumerate() {
            let own = starts[row] as usize..starts[row + 1] as usize;
            let mut columns = at[own.clone()].to_vec();
            columns.sort_unstable();
            assert_eq!(columns, *expected, "{what}, row {row}");
            assert!(owners[own].iter().all(|owner| *owner as usize == row), "{what}, row {row}");
        }
    }

    #[test]
    fn products_have_the_blocks_that_have_terms() {
        let mut numbers = Random::new();
        let (a, c) = (random(150, 60, &mut numbers), random(40, 150, &mut numbers));
        let cases = [
            ("c", 90, 1, [Way::ByRows, Way::OfSlices]),
            ("c", 90, FEW, [Way::ByRows, Way::OfSlices]),
            ("opencl", 90, FEW, [Way::ByRows, Way::OfSlices]),
            // more columns than a work-group marks at once
            ("c", 4200, 1, [Way::ByGroups(64); 2]),
            ("c", 130, 1, [Way::ByGroups(2); 2]),
            ("opencl", 90, 1, [Way::ByGroups(2); 2]),
        ];
        for (name, columns, slices, [first, second]) in of_run(cases, &[1, 3, 5]) {
            let device = &*open(name).unwrap();
            let structures = StructureKernels::new(device).unwrap();
            let b = random(60, columns, &mut numbers);
            let image = product(&a, &b);
            let (left, right) = (upload(device, &a, 60), upload(device, &b, columns));
            let of = |way| ProductKernels::new(device, slices, way).unwrap();
            let what = format!("{name}, {slices}, seed {}", numbers.seed);
            let found = structures.product(device, &of(first), [&left, &right], &right.starts).unwrap();
            check(device, &found.pattern, &image, &what);
            let both = [&upload(device, &c, 150), &found.pattern];
            let found = structures.product(device, &of(second), both, &found.slices).unwrap();
            check(device, &found.pattern, &product(&c, &image), &what);
        }
    }
}
