//! Sparse matrices of dense blocks on the host, and their products by all threads.

use nalgebra::DMatrix;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Nodes that a thread takes at a time.
const NODES: usize = 512;
/// A column without a place in a row.
const NOWHERE: u32 = u32::MAX;

/// Which unknowns each node has: those of node `i` are `starts[i]..starts[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    starts: Arc<[usize]>,
}

impl Nodes {
    /// Nodes with a given number of unknowns each.
    pub fn of_widths(widths: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        starts.extend(widths.scan(0, |end, width| {
            *end += width;
            Some(*end)
        }));
        Self { starts: starts.into() }
    }

    /// Nodes of `width` unknowns each, the last one of what is left.
    pub fn uniform(unknowns: usize, width: usize) -> Self {
        let width = width.max(1);
        Self::of_widths((0..unknowns.div_ceil(width)).map(|node| width.min(unknowns - node * width)))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Unknowns of all nodes.
    pub fn unknowns(&self) -> usize {
        self.starts[self.count()]
    }

    /// The unknowns of a node.
    pub fn of(&self, node: usize) -> Range<usize> {
        self.starts[node]..self.starts[node + 1]
    }
}

/// Where a matrix has blocks: a block for each pair of a node of the rows and one of the columns.
///
/// The numbers of a row of unknowns lie side by side, in ascending order of columns, so that they are
/// those of a matrix by rows of scalars, too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    rows: Nodes,
    columns: Nodes,
    /// Blocks of row `i`: `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    /// Column of each block, ascending in a row.
    at: Vec<u32>,
    /// First column of each block among the numbers of a row of unknowns.
    offsets: Vec<u32>,
    /// Numbers of a row of unknowns, by node.
    widths: Vec<usize>,
    /// First number of each node.
    firsts: Vec<usize>,
}

impl Pattern {
    /// Blocks at the columns `at`, ascending in each row.
    pub fn new(rows: Nodes, columns: Nodes, starts: Vec<usize>, at: Vec<u32>) -> Self {
        let mut offsets = Vec::with_capacity(at.len());
        let (mut widths, mut firsts) = (Vec::with_capacity(rows.count()), vec![0]);
        for row in 0..rows.count() {
            let mut width = 0;
            for column in &at[starts[row]..starts[row + 1]] {
                offsets.push(width as u32);
                width += columns.of(*column as usize).len();
            }
            widths.push(width);
            firsts.push(firsts[row] + width * rows.of(row).len());
        }
        Self { rows, columns, starts, at, offsets, widths, firsts }
    }

    /// Of rows that are found one by one: `find` pushes the columns of a row, each once, in any order. It
    /// is given what is in the row by column, all false, to mark what it pushes.
    pub fn of_rows(
        rows: &Nodes,
        columns: &Nodes,
        find: impl Fn(usize, &mut [bool], &mut Vec<u32>) + Sync,
    ) -> Self {
        let parts: Vec<(Vec<usize>, Vec<u32>)> = (0..rows.count().div_ceil(NODES))
            .into_par_iter()
            .map_init(
                || vec![false; columns.count()],
                |is_in, part| {
                    let (mut lengths, mut at) = (Vec::with_capacity(NODES), Vec::new());
                    for row in part * NODES..rows.count().min((part + 1) * NODES) {
                        let first = at.len();
                        find(row, is_in, &mut at);
                        at[first..].iter().for_each(|column| is_in[*column as usize] = false);
                        at[first..].sort_unstable();
                        lengths.push(at.len() - first);
                    }
                    (lengths, at)
                },
            )
            .collect();
        let lengths = parts.iter().flat_map(|part| &part.0).copied();
        let starts = std::iter::once(0).chain(lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let starts = starts.collect();
        let at = parts.iter().flat_map(|part| &part.1).copied().collect();
        Self::new(rows.clone(), columns.clone(), starts, at)
    }

    /// The blocks of a matrix by rows of scalars, whose rows and columns belong to `nodes`.
    pub fn of_scalars(nodes: &Nodes, row_starts: &[i32], columns: &[i32]) -> Self {
        let node_of = node_of(nodes);
        Self::of_rows(nodes, nodes, |node, is_in, at| {
            for row in nodes.of(node) {
                for column in &columns[row_starts[row] as usize..row_starts[row + 1] as usize] {
                    push(node_of[*column as usize], is_in, at);
                }
            }
        })
    }

    /// Where the product of two matrices has blocks.
    pub fn product(a: &Self, b: &Self) -> Self {
        Self::of_rows(&a.rows, &b.columns, |row, is_in, at| {
            for middle in a.row(row) {
                b.row(*middle as usize).iter().for_each(|column| push(*column, is_in, at));
            }
        })
    }

    /// The transpose, and the block that each of its blocks is.
    pub fn transposed(&self) -> (Self, Vec<usize>) {
        let mut starts = vec![0; self.columns.count() + 1];
        self.at.iter().for_each(|column| starts[*column as usize + 1] += 1);
        for column in 0..self.columns.count() {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let (mut at, mut from) = (vec![0; self.at.len()], vec![0; self.at.len()]);
        for row in 0..self.rows.count() {
            for block in self.starts[row]..self.starts[row + 1] {
                let place = &mut next[self.at[block] as usize];
                (at[*place], from[*place]) = (row as u32, block);
                *place += 1;
            }
        }
        (Self::new(self.columns.clone(), self.rows.clone(), starts, at), from)
    }

    /// Nodes of the rows.
    pub const fn rows(&self) -> &Nodes {
        &self.rows
    }

    /// Nodes of the columns.
    pub const fn columns(&self) -> &Nodes {
        &self.columns
    }

    /// The columns of the blocks of a row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.at[self.starts[row]..self.starts[row + 1]]
    }

    /// The numbers of all blocks.
    pub fn numbers(&self) -> usize {
        self.firsts[self.rows.count()]
    }

    /// The same matrix by rows of scalars: starts of the rows, and columns.
    pub fn scalars(&self) -> [Vec<i32>; 2] {
        let (mut starts, mut columns) = (vec![0], Vec::with_capacity(self.numbers()));
        for row in 0..self.rows.count() {
            for _ in self.rows.of(row) {
                for column in self.row(row) {
                    columns.extend(self.columns.of(*column as usize).map(|column| column as i32));
                }
                starts.push(columns.len() as i32);
            }
        }
        [starts, columns]
    }

    /// Writes the place of each block of a row into a list by column.
    fn mark(&self, row: usize, places: &mut [u32]) {
        let own = self.starts[row]..self.starts[row + 1];
        self.at[own.clone()].iter().zip(&self.offsets[own]).for_each(|(column, offset)| {
            places[*column as usize] = *offset;
        });
    }

    fn unmark(&self, row: usize, places: &mut [u32]) {
        self.row(row).iter().for_each(|column| places[*column as usize] = NOWHERE);
    }
}

/// Adds a column to a row unless it is in.
pub(super) fn push(column: u32, is_in: &mut [bool], at: &mut Vec<u32>) {
    if !std::mem::replace(&mut is_in[column as usize], true) {
        at.push(column);
    }
}

/// The node of each unknown.
fn node_of(nodes: &Nodes) -> Vec<u32> {
    let mut node_of = vec![0; nodes.unknowns()];
    (0..nodes.count()).for_each(|node| node_of[nodes.of(node)].fill(node as u32));
    node_of
}

/// A matrix of dense blocks.
#[derive(Clone, Debug)]
pub(super) struct BlockMatrix {
    pattern: Arc<Pattern>,
    values: Vec<f64>,
}

/// A block of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Block<'m> {
    /// Its column.
    pub column: usize,
    rows: usize,
    width: usize,
    /// The numbers of its row of blocks.
    values: &'m [f64],
    /// Where its first row starts.
    offset: usize,
    /// From the start of a row to that of the next one.
    stride: usize,
}

impl<'m> Block<'m> {
    /// The numbers of a row.
    pub fn row(&self, row: usize) -> &'m [f64] {
        &self.values[row * self.stride + self.offset..][..self.width]
    }

    /// The rows.
    pub fn rows(self) -> impl Iterator<Item = &'m [f64]> {
        (0..self.rows).map(move |row| self.row(row))
    }

    /// The square of the Frobenius norm.
    pub fn square(self) -> f64 {
        self.rows().flatten().map(|value| value * value).sum()
    }
}

/// The numbers of a node in a matrix that is made, and where its blocks are.
pub(super) struct Row<'r> {
    /// The node.
    pub node: usize,
    values: &'r mut [f64],
    width: usize,
    columns: &'r Nodes,
    places: &'r [u32],
}

impl Row<'_> {
    /// Whether it has a block at a column.
    pub fn has(&self, column: usize) -> bool {
        self.places[column] != NOWHERE
    }

    /// The numbers of a row of the block at a column, and what follows.
    fn at(&mut self, row: usize, column: usize) -> &mut [f64] {
        &mut self.values[row * self.width + self.places[column] as usize..]
    }

    /// `self[row, l of column] = number(row, l)`, at the block of a column.
    pub fn set(&mut self, column: usize, number: impl Fn(usize, usize) -> f64) {
        if self.width == 0 {
            return;
        }
        let (place, width) = (self.places[column] as usize, self.columns.of(column).len());
        for (row, numbers) in self.values.chunks_exact_mut(self.width).enumerate() {
            let own = &mut numbers[place..place + width];
            own.iter_mut().enumerate().for_each(|(l, to)| *to = number(row, l));
        }
    }

    /// `self[:, column of block] += block`
    pub fn add(&mut self, block: Block<'_>) {
        for (row, from) in block.rows().enumerate() {
            self.at(row, block.column).iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    /// `self[row, :] *= factors[row]`
    pub fn scale(&mut self, factors: impl Iterator<Item = f64>) {
        let rows = self.values.chunks_exact_mut(self.width.max(1));
        rows.zip(factors).for_each(|(row, factor)| row.iter_mut().for_each(|number| *number *= factor));
    }

    /// `self[:, column of b] += a b`
    pub fn add_product(&mut self, a: Block<'_>, b: Block<'_>) {
        match (a.width, b.width) {
            (1, 1) => self.add_product_of::<1, 1>(a, b),
            (3, 3) => self.add_product_of::<3, 3>(a, b),
            (3, 6) => self.add_product_of::<3, 6>(a, b),
            (6, 6) => self.add_product_of::<6, 6>(a, b),
            _ => {
                for (row, factors) in a.rows().enumerate() {
                    let to = self.at(row, b.column);
                    for (factor, from) in factors.iter().zip(b.rows()) {
                        to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
                    }
                }
            }
        }
    }

    /// The same with blocks of known widths, whose loops the compiler unrolls.
    fn add_product_of<const M: usize, const N: usize>(&mut self, a: Block<'_>, b: Block<'_>) {
        let mut right = [[0.0; N]; M];
        right.iter_mut().zip(b.rows()).for_each(|(row, from)| row.copy_from_slice(from));
        for (row, factors) in a.rows().enumerate() {
            let mut sums = [0.0; N];
            for (factor, from) in factors.iter().zip(&right) {
                sums.iter_mut().zip(from).for_each(|(sum, from)| *sum += factor * from);
            }
            self.at(row, b.column)[..N].iter_mut().zip(sums).for_each(|(to, sum)| *to += sum);
        }
    }
}

impl BlockMatrix {
    /// A matrix of a pattern whose rows `fill` adds to zeros.
    pub fn filled(pattern: Arc<Pattern>, fill: impl Fn(&mut Row<'_>) + Sync) -> Self {
        let mut values = vec![0.0; pattern.numbers()];
        let mut parts = Vec::new();
        let mut rest = &mut values[..];
        for first in (0..pattern.rows.count()).step_by(NODES) {
            let nodes = first..pattern.rows.count().min(first + NODES);
            let (own, behind) = rest.split_at_mut(pattern.firsts[nodes.end] - pattern.firsts[first]);
            parts.push((nodes, own));
            rest = behind;
        }
        let init = || vec![NOWHERE; pattern.columns.count()];
        parts.into_par_iter().for_each_init(init, |places, (nodes, own)| {
            let first = pattern.firsts[nodes.start];
            for node in nodes {
                pattern.mark(node, places);
                let values = &mut own[pattern.firsts[node] - first..pattern.firsts[node + 1] - first];
                fill(&mut Row {
                    node,
                    values,
                    width: pattern.widths[node],
                    columns: &pattern.columns,
                    places,
                });
                pattern.unmark(node, places);
            }
        });
        Self { pattern, values }
    }

    /// A matrix by rows of scalars with the nodes of a pattern, which has all its blocks.
    pub fn of_scalars(pattern: Arc<Pattern>, row_starts: &[i32], columns: &[i32], values: &[f64]) -> Self {
        let nodes = pattern.rows.clone();
        let node_of = node_of(&nodes);
        Self::filled(pattern, |own| {
            for (k, row) in nodes.of(own.node).enumerate() {
                let entries = row_starts[row] as usize..row_starts[row + 1] as usize;
                for (column, value) in columns[entries.clone()].iter().zip(&values[entries]) {
                    let node = node_of[*column as usize] as usize;
                    own.at(k, node)[*column as usize - nodes.of(node).start] = *value;
                }
            }
        })
    }

    /// The product of two matrices, whose pattern is known.
    pub fn product(pattern: Arc<Pattern>, a: &Self, b: &Self) -> Self {
        Self::filled(pattern, |own| {
            for left in a.row(own.node) {
                b.row(left.column).for_each(|right| own.add_product(left, right));
            }
        })
    }

    /// The transpose, whose pattern is known, with the block that each of its blocks is.
    pub fn transposed(&self, pattern: &Arc<Pattern>, from: &[usize]) -> Self {
        Self::filled(pattern.clone(), |own| {
            let blocks = pattern.starts[own.node]..pattern.starts[own.node + 1];
            for (row, block) in pattern.at[blocks.clone()].iter().zip(&from[blocks]) {
                for (k, numbers) in self.block(*row as usize, *block).rows().enumerate() {
                    let column = *row as usize;
                    numbers.iter().enumerate().for_each(|(l, number)| own.at(l, column)[k] = *number);
                }
            }
        })
    }

    /// Where it has blocks.
    pub const fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Its numbers, in the order of [`Pattern::scalars`].
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn block(&self, row: usize, block: usize) -> Block<'_> {
        let Pattern { rows, columns, at, offsets, widths, firsts, .. } = &*self.pattern;
        let column = at[block] as usize;
        let (values, offset) = (&self.values[firsts[row]..firsts[row + 1]], offsets[block] as usize);
        let (height, width) = (rows.of(row).len(), columns.of(column).len());
        Block { column, rows: height, width, values, offset, stride: widths[row] }
    }

    /// The blocks of a row, by ascending columns.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Block<'_>> {
        (self.pattern.starts[row]..self.pattern.starts[row + 1]).map(move |block| self.block(row, block))
    }

    /// The block on the diagonal.
    pub fn diagonal_block(&self, row: usize) -> Option<Block<'_>> {
        let first = self.pattern.starts[row];
        let place = self.pattern.row(row).binary_search(&(row as u32)).ok()?;
        Some(self.block(row, first + place))
    }

    /// The entries on the diagonal, zero where there is none.
    pub fn diagonal(&self) -> Vec<f64> {
        let of = |node: usize| {
            let height = self.pattern.rows.of(node).len();
            let block = self.diagonal_block(node);
            (0..height).map(move |k| block.map_or(0.0, |block| block.row(k)[k]))
        };
        (0..self.pattern.rows.count()).flat_map(of).collect()
    }

    /// All entries.
    pub fn dense(&self) -> DMatrix<f64> {
        let Pattern { rows, columns, .. } = &*self.pattern;
        let mut dense = DMatrix::zeros(rows.unknowns(), columns.unknowns());
        for row in 0..rows.count() {
            for block in self.row(row) {
                let (first, column) = (rows.of(row).start, columns.of(block.column).start);
                for (k, numbers) in block.rows().enumerate() {
                    numbers
                        .iter()
                        .enumerate()
                        .for_each(|(l, number)| dense[(first + k, column + l)] = *number);
                }
            }
        }
        dense
    }

    /// The product with a vector.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let Pattern { rows, columns, .. } = &*self.pattern;
        let of = |node: usize| {
            let mut sums = vec![0.0; rows.of(node).len()];
            for block in self.row(node) {
                let x = &x[columns.of(block.column)];
                for (sum, numbers) in sums.iter_mut().zip(block.rows()) {
                    *sum += numbers.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
                }
            }
            sums
        };
        (0..rows.count()).into_par_iter().with_min_len(NODES).flat_map_iter(of).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_sample::Random;

    /// Blocks at random places, with numbers of single digits, whose products are exact.
    fn random(rows: &Nodes, columns: &Nodes, random: &mut Random) -> BlockMatrix {
        let (mut starts, mut at) = (vec![0], Vec::new());
        for _ in 0..rows.count() {
            at.extend((0..columns.count() as u32).filter(|_| random.int(0, 3) == 0));
            starts.push(at.len());
        }
        let mut matrix =
            BlockMatrix::filled(Arc::new(Pattern::new(rows.clone(), columns.clone(), starts, at)), |_| ());
        matrix.values.iter_mut().for_each(|value| *value = random.int(-9, 10) as f64);
        matrix
    }

    fn dense(matrix: &BlockMatrix) -> DMatrix<f64> {
        let pattern = &matrix.pattern;
        let mut dense = DMatrix::zeros(pattern.rows.unknowns(), pattern.columns.unknowns());
        let [starts, columns] = pattern.scalars();
        for row in 0..dense.nrows() {
            for k in starts[row] as usize..starts[row + 1] as usize {
                dense[(row, columns[k] as usize)] = matrix.values[k];
            }
        }
        dense
    }

    #[test]
    fn blocks_are_the_dense_matrices() {
        let mut numbers = Random::new();
        // 1, 3 and 6 have loops of their own; a node may have no unknown; more nodes than a thread takes
        for widths in [&[3, 6][..], &[1], &[6], &[2, 0, 3, 1]] {
            let nodes =
                |n: usize, shift: usize| Nodes::of_widths((0..n).map(|k| widths[(k + shift) % widths.len()]));
            let [left, middle, right] = [nodes(NODES + 9, 0), nodes(11, 1), nodes(7, 2)];
            let (a, b) = (random(&left, &middle, &mut numbers), random(&middle, &right, &mut numbers));
            let pattern = Arc::new(Pattern::product(&a.pattern, &b.pattern));
            let product = BlockMatrix::product(pattern, &a, &b);
            assert_eq!(dense(&product), dense(&a) * dense(&b), "{widths:?}, seed {}", numbers.seed);
            assert_eq!(product.dense(), dense(&product), "{widths:?}, seed {}", numbers.seed);
            let (pattern, from) = product.pattern.transposed();
            let transposed = product.transposed(&Arc::new(pattern), &from);
            assert_eq!(dense(&transposed), dense(&product).transpose(), "{widths:?}, seed {}", numbers.seed);
            let x: Vec<f64> = (0..middle.unknowns()).map(|_| numbers.int(-9, 10) as f64).collect();
            let y = dense(&a) * DMatrix::from_column_slice(x.len(), 1, &x);
            assert_eq!(a.times(&x), y.as_slice(), "{widths:?}, seed {}", numbers.seed);
        }
    }

    #[test]
    fn scalars_become_blocks_that_are_stored_whole() {
        // unknowns 0, 1 and 2, 3 are nodes, 4 is one of its own
        let (starts, columns) = ([0, 2, 3, 5, 6, 7], [0, 4, 1, 2, 1, 3, 4]);
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let nodes = Nodes::uniform(5, 2);
        let pattern = Arc::new(Pattern::of_scalars(&nodes, &starts, &columns));
        let matrix = BlockMatrix::of_scalars(pattern, &starts, &columns, &values);
        assert_eq!(matrix.pattern.row(1), [0, 1]);
        assert_eq!(matrix.diagonal(), [1.0, 3.0, 4.0, 6.0, 7.0]);
        assert_eq!(matrix.diagonal_block(1).unwrap().square(), 52.0);
        let found = dense(&matrix);
        assert_eq!((found[(0, 4)], found[(2, 1)], found[(1, 0)]), (2.0, 5.0, 0.0));
        assert_eq!(matrix.pattern.numbers(), 6 + 8 + 1);
    }
}
