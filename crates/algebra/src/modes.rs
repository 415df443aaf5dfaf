//! Modes: fewer rows that give the same sums of products of table entries as the points of a rule.
//!
//! With the columns `a_i = sqrt(w)*T[:, i]` and an orthonormal basis `Q` of what they span, `C =
//! Q^T A` has a row a mode, and `C^T C = A^T A`. The basis is found by modified Gram–Schmidt with
//! pivots and reorthogonalisation (Björck 1967), for each connected
//! component of the Gram graph separately, so that blocks of a symmetry have modes of their own.
//! Nothing relies on it: [`Points::certify`] sums both sides again.

use kingpost_steps::accuracy::is_near;
use std::collections::BTreeSet;

/// A table, row by row.
pub(crate) struct Table {
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

/// Tables over the same points, and the weights of the points.
pub(crate) struct Points {
    pub(crate) weights: Vec<f64>,
    pub(crate) tables: Vec<Table>,
}

/// Tables over modes, in the order of those over points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Modes {
    pub(crate) count: usize,
    /// Row by row: a row a mode.
    pub(crate) tables: Vec<Vec<f64>>,
    /// Of each mode, the tables that have it.
    pub(crate) holders: Vec<BTreeSet<usize>>,
}

impl Modes {
    /// The same in single precision.
    pub(crate) fn rounded(mut self) -> Self {
        let entries = self.tables.iter_mut().flatten();
        entries.for_each(|entry| *entry = f64::from(*entry as f32));
        self
    }

    /// Modes that the same tables have one after the other, each such block filled by modes of zeros to
    /// a multiple of `multiple`.
    pub(crate) fn in_blocks(self, multiple: usize) -> Self {
        let mut blocks: Vec<(&BTreeSet<usize>, Vec<Option<usize>>)> = Vec::new();
        for (k, holders) in self.holders.iter().enumerate() {
            match blocks.iter_mut().find(|(known, _)| *known == holders) {
                Some((_, modes)) => modes.push(Some(k)),
                None => blocks.push((holders, vec![Some(k)])),
            }
        }
        for (_, modes) in &mut blocks {
            modes.resize(modes.len().next_multiple_of(multiple), None);
        }
        let order: Vec<Option<usize>> = blocks.iter().flat_map(|(_, modes)| modes.clone()).collect();
        let holders = blocks.iter().flat_map(|(h, modes)| modes.iter().map(|_| (*h).clone())).collect();
        let ordered = |table: &Vec<f64>| {
            let columns = table.len() / self.count.max(1);
            let row = |k: &Option<usize>| match k {
                Some(k) => table[k * columns..(k + 1) * columns].to_vec(),
                None => vec![0.0; columns],
            };
            order.iter().flat_map(row).collect()
        };
        Self { count: order.len(), tables: self.tables.iter().map(ordered).collect(), holders }
    }
}

/// Tables over points as products of a basis of their columns and tables over its elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Basis {
    pub(crate) count: usize,
    /// Row by row: a row a point.
    pub(crate) values: Vec<f64>,
    /// Of each table, row by row: a row an element of the basis.
    pub(crate) tables: Vec<Vec<f64>>,
}

/// The entry of a table that is furthest from that of the product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Off {
    pub(crate) table: usize,
    pub(crate) point: usize,
    pub(crate) column: usize,
    pub(crate) entry: f64,
    pub(crate) product: f64,
}

/// Two columns whose sums over points and modes are furthest apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deviation {
    /// The tables, and their columns.
    pub(crate) tables: [usize; 2],
    pub(crate) columns: [usize; 2],
    pub(crate) points: f64,
    pub(crate) modes: f64,
    /// What they are compared with: the product of the lengths of the columns.
    pub(crate) scale: f64,
}

/// A column of a table, scaled twice, so that squares of large and of small numbers are numbers: by the
/// longest column of its table, and by a power of two, so that its largest entry is about 1.
struct Column {
    table: usize,
    values: Vec<f64>,
    /// The square of its length.
    square: f64,
    /// What it was scaled by for being shorter than the longest one.
    power: i32,
    /// The length of the longest one, and the power of two that it is a multiple of.
    longest: (f64, i32),
}

impl Column {
    /// The entry of the table that is `along` a mode times the length of the column.
    fn entry(&self, along: f64) -> f64 {
        times_power(along * self.longest.0, self.power + self.longest.1)
    }

    /// Its product with a mode; zero where that is what rounding leaves of an exact zero, against the
    /// longest column of the table, and at most ten times as much against the column.
    fn along(&self, mode: &[f64], rounding: f64) -> f64 {
        let along = dot(mode, &self.values);
        let of_longest = times_power(rounding, -self.power);
        if along.abs() <= of_longest.min(10.0 * rounding * self.square.sqrt()) { 0.0 } else { along }
    }
}

/// A number times a power of two, rounded once.
fn times_power(value: f64, power: i32) -> f64 {
    // one factor at a time is a normal number; all but the last products are exact
    let first = power.clamp(-1000, 1000);
    let second = (power - first).clamp(-1000, 1000);
    value * 2.0_f64.powi(first) * 2.0_f64.powi(second)
}

/// Numbers and a power of two that give some others; the largest is between 1 and 2. Zeros, and what
/// holds an infinity or a nan, stay as they are.
fn scaled(values: &[f64]) -> (Vec<f64>, i32) {
    let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    if largest == 0.0 || values.iter().any(|v| !v.is_finite()) {
        return (values.to_vec(), 0);
    }
    let power = largest.log2().floor() as i32;
    (values.iter().map(|v| times_power(*v, -power)).collect(), power)
}

impl Points {
    /// Modes that give the same sums, up to rounding.
    ///
    /// Columns that are orthogonal to all of another component are not of it. Columns of which `r` and
    /// `s` are left after the projection on the modes change a sum by at most `|r| |s|`, since both
    /// residuals are orthogonal to all modes.
    pub(crate) fn modes(&self, rounding: Rounding) -> Modes {
        let columns = self.columns(&self.weights);
        let (mut rows, mut holders): (Vec<Vec<f64>>, Vec<BTreeSet<usize>>) = (Vec::new(), Vec::new());
        for component in components(&columns, rounding.angle) {
            let basis = orthonormal(&columns, &component, rounding.rest);
            let tables: BTreeSet<usize> = component.iter().map(|c| columns[*c].table).collect();
            holders.extend(basis.iter().map(|_| tables.clone()));
            for mode in &basis {
                let mut row = vec![0.0; columns.len()];
                for c in &component {
                    row[*c] = columns[*c].along(mode, rounding.zero);
                }
                rows.push(row);
            }
        }
        let entries =
            rows.iter().map(|row| columns.iter().zip(row).map(|(c, value)| c.entry(*value)).collect());
        Modes { count: rows.len(), tables: self.tables_of(entries), holders }
    }

    /// Tables of rows with an entry for each column, one table after the other.
    pub(crate) fn tables_of(&self, rows: impl Iterator<Item = Vec<f64>>) -> Vec<Vec<f64>> {
        let mut tables: Vec<Vec<f64>> = self.tables.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let mut rest = row.as_slice();
            for (table, of_points) in tables.iter_mut().zip(&self.tables) {
                let (own, others) = rest.split_at(of_points.columns);
                table.extend_from_slice(own);
                rest = others;
            }
        }
        tables
    }

    /// An orthonormal basis of all columns, of each of which at most `tolerance` of its length is left.
    /// The weights are not used.
    pub(crate) fn basis(&self, tolerance: f64) -> Basis {
        let columns = self.columns(&vec![1.0; self.weights.len()]);
        let all: Vec<usize> = (0..columns.len()).collect();
        let modes = orthonormal(&columns, &all, tolerance * tolerance);
        let points = self.weights.len();
        let values = (0..points).flat_map(|q| modes.iter().map(move |mode| mode[q])).collect();
        let entry = |mode: &Vec<f64>, c: &Column| c.entry(c.along(mode, tolerance));
        let tables =
            self.tables_of(modes.iter().map(|mode| columns.iter().map(|c| entry(mode, c)).collect()));
        Basis { count: modes.len(), values, tables }
    }

    /// Compares each entry of the tables with that of the product, by compensated sums.
    ///
    /// # Errors
    /// The entry that is furthest off, if that is more than `tolerance` times what `scales` has for it,
    /// table by table.
    pub(crate) fn certify_basis(
        &self,
        basis: &Basis,
        scales: &[Vec<f64>],
        tolerance: f64,
    ) -> Result<(), Off> {
        let mut worst: Option<(f64, Off)> = None;
        for (table, (of_points, of_basis)) in self.tables.iter().zip(&basis.tables).enumerate() {
            let columns = transposed(of_basis, of_points.columns);
            for (k, entry) in of_points.values.iter().enumerate() {
                let (point, column) = (k / of_points.columns, k % of_points.columns);
                let row = &basis.values[point * basis.count..(point + 1) * basis.count];
                let (product, _) = compensated(row, &columns[column]);
                let scale = scales[table][k];
                let apart = (entry - product).abs() / scale;
                let fits = is_near(*entry, product, tolerance, scale);
                if !fits && worst.as_ref().is_none_or(|(most, _)| apart.total_cmp(most).is_gt()) {
                    worst = Some((apart, Off { table, point, column, entry: *entry, product }));
                }
            }
        }
        worst.map_or(Ok(()), |(_, off)| Err(off))
    }

    /// Compares `sum_q w[q] A[q, i] B[q, j]` with `sum_k A'[k, i] B'[k, j]` for the pairs of tables
    /// and all their columns, by compensated sums (Neumaier 1974).
    ///
    /// # Errors
    /// The columns that are furthest apart, if that is more than `tolerance` times the product of their
    /// lengths, with the weights.
    pub(crate) fn certify(
        &self,
        modes: &Modes,
        pairs: &[[usize; 2]],
        tolerance: f64,
    ) -> Result<(), Deviation> {
        let both = self.tables.iter().zip(&modes.tables);
        let compared: Vec<Vec<Compared>> =
            both.map(|(table, over)| Compared::of(table, over, &self.weights)).collect();
        let mut worst: Option<(f64, Deviation)> = None;
        for &[a, b] in pairs {
            for (i, left) in compared[a].iter().enumerate() {
                for (j, right) in compared[b].iter().enumerate() {
                    let weighted: Vec<f64> =
                        left.points.iter().zip(&self.weights).map(|(v, w)| v * w).collect();
                    let (of_points, _) = compensated(&weighted, &right.points);
                    let (of_modes, _) = compensated(&left.modes, &right.modes);
                    let scale = left.length * right.length;
                    let apart = (of_points - of_modes).abs() / scale;
                    let fits = is_near(of_points, of_modes, tolerance, scale);
                    if !fits && worst.as_ref().is_none_or(|(most, _)| apart.total_cmp(most).is_gt()) {
                        let back = |value: f64| times_power(value, left.power + right.power);
                        let deviation = Deviation {
                            tables: [a, b],
                            columns: [i, j],
                            points: back(of_points),
                            modes: back(of_modes),
                            scale: back(scale),
                        };
                        worst = Some((apart, deviation));
                    }
                }
            }
        }
        worst.map_or(Ok(()), |(_, deviation)| Err(deviation))
    }

    /// All columns, times the roots of weights.
    fn columns(&self, weights: &[f64]) -> Vec<Column> {
        let mut columns = Vec::new();
        for (k, table) in self.tables.iter().enumerate() {
            let weighed = |values: &[f64]| -> Vec<Vec<f64>> {
                let weigh =
                    |column: Vec<f64>| column.iter().zip(weights).map(|(v, w)| v * w.sqrt()).collect();
                transposed(values, table.columns).into_iter().map(weigh).collect()
            };
            let (values, of_table) = scaled(&table.values);
            let squares = weighed(&values).into_iter().map(|v| dot(&v, &v));
            let longest = squares.fold(0.0_f64, f64::max).sqrt();
            let longest = if longest > 0.0 { longest } else { 1.0 };
            for column in weighed(&table.values) {
                // scaled before it is divided, so that no bit of a small one is lost
                let (values, of_column) = scaled(&column);
                let values: Vec<f64> = values.into_iter().map(|v| v / longest).collect();
                let (square, power) = (dot(&values, &values), of_column - of_table);
                let longest = (longest, of_table);
                columns.push(Column { table: k, values, square, power, longest });
            }
        }
        columns
    }
}

/// A column over points and over modes, both times the same power of two.
struct Compared {
    points: Vec<f64>,
    modes: Vec<f64>,
    /// The length over points, with the weights.
    length: f64,
    power: i32,
}

impl Compared {
    fn of(table: &Table, modes: &[f64], weights: &[f64]) -> Vec<Self> {
        let columns = transposed(&table.values, table.columns).into_iter();
        let both = columns.zip(transposed(modes, table.columns));
        both.map(|(points, modes)| {
            let (points, power) = scaled(&points);
            let weighted: Vec<f64> = points.iter().zip(weights).map(|(v, w)| v * w).collect();
            let modes = modes.into_iter().map(|v| times_power(v, -power)).collect();
            Self { length: compensated(&weighted, &points).0.sqrt(), points, modes, power }
        })
        .collect()
    }
}

/// What counts as rounding; what is left out is in the certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    /// The part of the square of a column that may be left after projection on the modes.
    pub(crate) rest: f64,
    /// The part of the longest column that is zero along a mode.
    pub(crate) zero: f64,
    /// The part of their lengths that the product of orthogonal columns may be.
    pub(crate) angle: f64,
}

impl Rounding {
    /// Of tables in double precision whose sums are wanted to `tolerance`. Where blocks are asked for,
    /// columns are sums and differences of others.
    pub(crate) fn double(tolerance: f64, blocks: bool) -> Self {
        let angle = if blocks { 1e-11 } else { 1e-13 };
        Self { rest: tolerance / 10.0, zero: tolerance / 100.0, angle }
    }

    /// Of tables whose entries are rounded to `f32`, to 6e-8 of each.
    pub(crate) const SINGLE: Self = Self { rest: 1e-12, zero: 3e-7, angle: 1e-6 };
}

/// Places of the columns that depend on each other, in the order of their first ones.
fn components(columns: &[Column], angle: f64) -> Vec<Vec<usize>> {
    let lengths: Vec<f64> = columns.iter().map(|c| c.square.sqrt()).collect();
    let product = |a: usize, b: usize| dot(&columns[a].values, &columns[b].values).abs();
    connected(columns.len(), |a, b| product(a, b) > angle * lengths[a] * lengths[b])
}

/// The connected components of a graph, each in ascending order.
pub(crate) fn connected(n: usize, are: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut seen = vec![false; n];
    for first in 0..n {
        if seen[first] {
            continue;
        }
        seen[first] = true;
        let (mut component, mut next) = (vec![first], 0);
        while next < component.len() {
            let a = component[next];
            let new: Vec<usize> = (0..n).filter(|b| !seen[*b] && are(a, *b)).collect();
            for b in new {
                seen[b] = true;
                component.push(b);
            }
            next += 1;
        }
        component.sort_unstable();
        found.push(component);
    }
    found
}

/// An orthonormal basis of the columns at these places: what is left of any of them has a square of
/// at most `rest` times its own. The column of which most is left against the longest one of its table is
/// next.
fn orthonormal(columns: &[Column], places: &[usize], rest: f64) -> Vec<Vec<f64>> {
    let mut left: Vec<Vec<f64>> = places.iter().map(|c| columns[*c].values.clone()).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    loop {
        let mut pivot: Option<(usize, f64)> = None;
        for (k, (left, place)) in left.iter().zip(places).enumerate() {
            let (column, square) = (&columns[*place], dot(left, left));
            let size = times_power(square, 2 * column.power);
            if square > rest * column.square && pivot.is_none_or(|(_, most)| size > most) {
                pivot = Some((k, size));
            }
        }
        let Some((k, _)) = pivot else { return basis };
        let mut mode = left[k].clone();
        for _ in 0..2 {
            for earlier in &basis {
                subtract(&mut mode, earlier);
            }
        }
        let length = dot(&mode, &mode).sqrt();
        mode.iter_mut().for_each(|v| *v /= length);
        for column in &mut left {
            subtract(column, &mode);
        }
        // exactly, so that it is no pivot again
        left[k].fill(0.0);
        basis.push(mode);
    }
}

/// Takes away the projection on a vector of length 1.
fn subtract(from: &mut [f64], mode: &[f64]) {
    let along = dot(from, mode);
    from.iter_mut().zip(mode).for_each(|(v, m)| *v -= along * m);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of the products of two vectors, compensated, and that of their absolute values.
pub(crate) fn compensated(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut sum, mut lost, mut size) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (a, b) in a.iter().zip(b) {
        let term = a * b;
        size += term.abs();
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    (sum + lost, size)
}

pub(crate) fn transposed(values: &[f64], columns: usize) -> Vec<Vec<f64>> {
    (0..columns).map(|c| values.iter().skip(c).step_by(columns).copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `1, x, y, x` at the corners of a square with equal weights, and of `x*y`.
    fn square() -> Points {
        let corners = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
        let linear = corners.iter().flat_map(|[x, y]| [1.0, *x, *y, *x]).collect();
        let product = corners.iter().map(|[x, y]| x * y).collect();
        let tables = vec![Table { columns: 4, values: linear }, Table { columns: 1, values: product }];
        Points { weights: vec![0.25; 4], tables }
    }

    #[test]
    fn orthogonal_columns_have_modes_of_their_own() {
        let modes = square().modes(Rounding::double(1e-13, false));
        assert_eq!(modes.count, 4);
        let one_a_mode = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(modes.tables, vec![one_a_mode.to_vec(), vec![0.0, 0.0, 0.0, 1.0]]);
        assert_eq!(square().certify(&modes, &[[0, 0], [0, 1], [1, 1]], 1e-15), Ok(()));
    }

    #[test]
    fn a_basis_with_one_entry_off_is_found() {
        let points = square();
        let mut basis = points.basis(1e-14);
        assert_eq!(basis.count, 4);
        let scales = [vec![1.0; 16], vec![1.0; 4]];
        assert_eq!(points.certify_basis(&basis, &scales, 1e-15), Ok(()));
        basis.values[5] += 1e-12;
        let off = points.certify_basis(&basis, &scales, 1e-13).expect_err("an entry is off");
        assert_eq!(off.point, 1);
        assert_eq!(points.certify_basis(&basis, &scales, 1e-11), Ok(()));
    }

    #[test]
    fn blocks_are_filled_by_zeros() {
        let modes = square().modes(Rounding::double(1e-13, false)).in_blocks(2);
        assert_eq!(modes.count, 6);
        let first = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let first = first.into_iter().chain([0.0; 8]).collect();
        assert_eq!(modes.tables, vec![first, vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]);
        assert_eq!(square().certify(&modes, &[[0, 0], [0, 1], [1, 1]], 1e-15), Ok(()));
    }

    #[test]
    fn a_certificate_with_one_entry_off_names_it() {
        let points = square();
        let mut modes = points.modes(Rounding::double(1e-13, false));
        modes.tables[0][10] += 1e-12;
        let found = points.certify(&modes, &[[0, 0]], 1e-13).expect_err("an entry is off");
        assert_eq!((found.tables, found.columns, found.points, found.scale), ([0, 0], [2, 2], 1.0, 1.0));
        assert!((found.modes - 1.0 - 2e-12).abs() < 1e-15, "{found:?}");
        assert_eq!(points.certify(&modes, &[[0, 0]], 1e-11), Ok(()));
        assert_eq!(points.certify(&modes, &[[1, 1]], 1e-13), Ok(()));
    }

    #[test]
    fn weights_count() {
        let table = Table { columns: 2, values: vec![1.0, 2.0, 1.0, 4.0, 1.0, 8.0] };
        let points = Points { weights: vec![0.5, 0.0, 2.0], tables: vec![table] };
        let modes = points.modes(Rounding::double(1e-13, false));
        assert_eq!(modes.count, 2);
        assert_eq!(points.certify(&modes, &[[0, 0]], 1e-15), Ok(()));
    }

    #[test]
    fn no_number_fits() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let table = Table { columns: 1, values: vec![value] };
            let points = Points { weights: vec![1.0], tables: vec![table] };
            for mode in [1.0, value] {
                let modes = Modes { count: 1, tables: vec![vec![mode]], holders: vec![BTreeSet::from([0])] };
                assert!(points.certify(&modes, &[[0, 0]], 1e-13).is_err());
            }
        }
    }

    /// Columns of any length have modes, and the sums with each are compared with its own length.
    #[test]
    fn short_and_long_columns_count() {
        for [one, size] in
            [[1.0, 1e-20], [1.0, 1e-200], [1.0, 1e200], [1e200, 1e-200], [1.0, f64::MAX / 16.0]]
        {
            let values = vec![one, size, 2.0 * one, size, one, 3.0 * size];
            let points = Points { weights: vec![0.5, 1.0, 2.0], tables: vec![Table { columns: 2, values }] };
            let modes = points.modes(Rounding::double(1e-13, false));
            assert_eq!(modes.count, 2, "{size:e}");
            assert_eq!(points.certify(&modes, &[[0, 0]], 1e-14), Ok(()), "{size:e}");
            let mut without = modes.clone();
            without.tables[0].iter_mut().skip(1).step_by(2).for_each(|v| *v = 0.0);
            assert!(points.certify(&without, &[[0, 0]], 1e-13).is_err(), "{size:e}");
            let basis = points.basis(1e-14);
            assert_eq!(basis.count, 2, "{size:e}");
        }
    }
}
