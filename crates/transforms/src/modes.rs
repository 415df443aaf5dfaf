//! Modes: fewer rows that give the same sums of products of table entries as the points of a rule.
//!
//! With the columns `a_i = sqrt(w)*T[:, i]` and an orthonormal basis `Q` of what they span, `C =
//! Q^T A` has a row a mode, and `C^T C = A^T A`. The basis is found by modified Gram–Schmidt with
//! pivots and reorthogonalisation (Björck 1967), for each connected
//! component of the Gram graph by itself, so that blocks of a symmetry have modes of their own.
//! Nothing relies on it: [`Points::certify`] sums both sides anew.

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
    holders: Vec<BTreeSet<usize>>,
}

impl Modes {
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
    /// What they are compared with: the largest sum of the absolute values for these tables.
    pub(crate) scale: f64,
}

/// A column of all tables, scaled so that the longest one of its table has length 1.
struct Column {
    table: usize,
    index: usize,
    values: Vec<f64>,
}

impl Points {
    /// Modes that give the same sums to `tolerance`, but for rounding.
    ///
    /// Columns that are `orthogonal` to all of another component are not of it. A column that is left
    /// with `r` after the projection on the modes changes a sum by at most
    /// `|r|^2`, since the residuals of both columns are orthogonal to all modes.
    pub(crate) fn modes(&self, tolerance: f64, orthogonal: Orthogonal) -> Modes {
        let (columns, scales) = self.columns(&self.weights);
        let (mut rows, mut holders): (Vec<Vec<f64>>, Vec<BTreeSet<usize>>) = (Vec::new(), Vec::new());
        for component in components(&columns, orthogonal) {
            let basis = orthonormal(&columns, &component, tolerance / 10.0);
            let tables: BTreeSet<usize> = component.iter().map(|c| columns[*c].table).collect();
            holders.extend(basis.iter().map(|_| tables.clone()));
            for mode in &basis {
                let mut row = vec![0.0; columns.len()];
                for c in &component {
                    let value = dot(mode, &columns[*c].values);
                    // what rounding leaves of an exact zero; the certificate includes it
                    row[*c] = if value.abs() <= tolerance / 100.0 { 0.0 } else { value };
                }
                rows.push(row);
            }
        }
        let mut tables: Vec<Vec<f64>> =
            self.tables.iter().map(|t| vec![0.0; rows.len() * t.columns]).collect();
        for (k, row) in rows.iter().enumerate() {
            for (column, value) in columns.iter().zip(row) {
                let width = self.tables[column.table].columns;
                tables[column.table][k * width + column.index] = value * scales[column.table];
            }
        }
        Modes { count: rows.len(), tables, holders }
    }

    /// An orthonormal basis of all columns, of which at most `tolerance` of the longest column of a
    /// table is left. The weights are not used.
    pub(crate) fn basis(&self, tolerance: f64) -> Basis {
        let (columns, scales) = self.columns(&vec![1.0; self.weights.len()]);
        let all: Vec<usize> = (0..columns.len()).collect();
        let modes = orthonormal(&columns, &all, tolerance * tolerance);
        let points = self.weights.len();
        let values = (0..points).flat_map(|q| modes.iter().map(move |mode| mode[q])).collect();
        let mut tables: Vec<Vec<f64>> =
            self.tables.iter().map(|t| vec![0.0; modes.len() * t.columns]).collect();
        for (k, mode) in modes.iter().enumerate() {
            for column in &columns {
                let along = dot(mode, &column.values);
                // what rounding leaves of an exact zero; the certificate includes it
                let along = if along.abs() <= tolerance { 0.0 } else { along };
                let width = self.tables[column.table].columns;
                tables[column.table][k * width + column.index] = along * scales[column.table];
            }
        }
        Basis { count: modes.len(), values, tables }
    }

    /// Compares each entry of the tables with that of the product, by compensated sums.
    ///
    /// # Errors
    /// The entry that is furthest off, if that is more than `tolerance` times the largest entry of its
    /// table.
    pub(crate) fn certify_basis(&self, basis: &Basis, tolerance: f64) -> Result<(), Off> {
        let mut worst: Option<(f64, Off)> = None;
        for (table, (of_points, of_basis)) in self.tables.iter().zip(&basis.tables).enumerate() {
            let largest = of_points.values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            let columns = transposed(of_basis, of_points.columns);
            for (k, entry) in of_points.values.iter().enumerate() {
                let (point, column) = (k / of_points.columns, k % of_points.columns);
                let row = &basis.values[point * basis.count..(point + 1) * basis.count];
                let (product, _) = compensated(row, &columns[column]);
                let apart = (entry - product).abs();
                // a nan is apart from everything
                let fits = apart <= tolerance * largest;
                if !fits && worst.as_ref().is_none_or(|(most, _)| (apart / largest).total_cmp(most).is_gt()) {
                    worst = Some((apart / largest, Off { table, point, column, entry: *entry, product }));
                }
            }
        }
        worst.map_or(Ok(()), |(_, off)| Err(off))
    }

    /// Compares `sum_q w[q] A[q, i] B[q, j]` with `sum_k A'[k, i] B'[k, j]` for the pairs of tables
    /// and all their columns, by compensated sums (Neumaier 1974).
    ///
    /// # Errors
    /// The columns that are furthest apart, if that is more than `tolerance` times the largest sum
    /// of absolute values of their tables.
    pub(crate) fn certify(
        &self,
        modes: &Modes,
        pairs: &[[usize; 2]],
        tolerance: f64,
    ) -> Result<(), Deviation> {
        let points: Vec<Vec<Vec<f64>>> =
            self.tables.iter().map(|t| transposed(&t.values, t.columns)).collect();
        let weigh = |column: &Vec<f64>| column.iter().zip(&self.weights).map(|(v, w)| v * w).collect();
        let weighted: Vec<Vec<Vec<f64>>> = points.iter().map(|t| t.iter().map(weigh).collect()).collect();
        let found: Vec<Vec<Vec<f64>>> =
            modes.tables.iter().zip(&self.tables).map(|(v, t)| transposed(v, t.columns)).collect();
        let mut worst: Option<(f64, Deviation)> = None;
        for &[a, b] in pairs {
            let mut scale = 0.0_f64;
            let mut furthest: Option<(f64, Deviation)> = None;
            for (i, left) in weighted[a].iter().enumerate() {
                for (j, right) in points[b].iter().enumerate() {
                    let (of_points, size) = compensated(left, right);
                    let (of_modes, _) = compensated(&found[a][i], &found[b][j]);
                    scale = scale.max(size);
                    let apart = (of_points - of_modes).abs();
                    if furthest.as_ref().is_none_or(|(most, _)| apart.total_cmp(most).is_gt()) {
                        let deviation = Deviation {
                            tables: [a, b],
                            columns: [i, j],
                            points: of_points,
                            modes: of_modes,
                            scale: 0.0,
                        };
                        furthest = Some((apart, deviation));
                    }
                }
            }
            let Some((apart, mut deviation)) = furthest else { continue };
            deviation.scale = scale;
            // a nan is apart from everything
            let fits = apart <= tolerance * scale;
            if !fits && worst.as_ref().is_none_or(|(most, _)| (apart / scale).total_cmp(most).is_gt()) {
                worst = Some((apart / scale, deviation));
            }
        }
        worst.map_or(Ok(()), |(_, deviation)| Err(deviation))
    }

    /// All columns, times the roots of weights, and the scale of each table.
    fn columns(&self, weights: &[f64]) -> (Vec<Column>, Vec<f64>) {
        let (mut columns, mut scales) = (Vec::new(), Vec::new());
        for (k, table) in self.tables.iter().enumerate() {
            let weigh = |column: Vec<f64>| -> Vec<f64> {
                column.iter().zip(weights).map(|(v, w)| v * w.sqrt()).collect()
            };
            let own: Vec<Vec<f64>> =
                transposed(&table.values, table.columns).into_iter().map(weigh).collect();
            let longest = own.iter().map(|v| dot(v, v)).fold(0.0_f64, f64::max).sqrt();
            let scale = if longest > 0.0 { longest } else { 1.0 };
            scales.push(scale);
            columns.extend(own.into_iter().enumerate().map(|(index, values)| Column {
                table: k,
                index,
                values: values.into_iter().map(|v| v / scale).collect(),
            }));
        }
        (columns, scales)
    }
}

/// How far from orthogonal, relative to their lengths, columns of different components may be: what
/// rounding leaves of an exact zero.
pub(crate) const ORTHOGONAL: Orthogonal = Orthogonal { angle: 1e-13, shortest: 0.0 };

/// The same where blocks are asked for, and columns are sums and differences of others, of which
/// rounding alone may be left: what is left out is in the certificate.
pub(crate) const ORTHOGONAL_BLOCKS: Orthogonal = Orthogonal { angle: 1e-11, shortest: 1e-3 };

/// When columns are orthogonal: if their product is at most `angle` of those of their lengths, where
/// shorter columns than `shortest` count as that long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orthogonal {
    angle: f64,
    shortest: f64,
}

/// Places of the columns that depend on each other, in the order of their first ones.
fn components(columns: &[Column], orthogonal: Orthogonal) -> Vec<Vec<usize>> {
    let length = |c: &Column| dot(&c.values, &c.values).sqrt().max(orthogonal.shortest);
    let lengths: Vec<f64> = columns.iter().map(length).collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut seen = vec![false; columns.len()];
    for first in 0..columns.len() {
        if seen[first] {
            continue;
        }
        seen[first] = true;
        let (mut component, mut next) = (vec![first], 0);
        while next < component.len() {
            let a = component[next];
            for b in 0..columns.len() {
                let product = || dot(&columns[a].values, &columns[b].values).abs();
                if !seen[b] && product() > orthogonal.angle * lengths[a] * lengths[b] {
                    seen[b] = true;
                    component.push(b);
                }
            }
            next += 1;
        }
        component.sort_unstable();
        found.push(component);
    }
    found
}

/// An orthonormal basis of the columns at these places: what is left of any of them has a square of
/// at most `rest`.
fn orthonormal(columns: &[Column], places: &[usize], rest: f64) -> Vec<Vec<f64>> {
    let mut left: Vec<Vec<f64>> = places.iter().map(|c| columns[*c].values.clone()).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    loop {
        let mut pivot: Option<(usize, f64)> = None;
        for (k, column) in left.iter().enumerate() {
            let square = dot(column, column);
            if square > rest && pivot.is_none_or(|(_, most)| square > most) {
                pivot = Some((k, square));
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
fn compensated(a: &[f64], b: &[f64]) -> (f64, f64) {
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

fn transposed(values: &[f64], columns: usize) -> Vec<Vec<f64>> {
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
        let modes = square().modes(1e-13, ORTHOGONAL);
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
        assert_eq!(points.certify_basis(&basis, 1e-15), Ok(()));
        basis.values[5] += 1e-12;
        let off = points.certify_basis(&basis, 1e-13).expect_err("an entry is off");
        assert_eq!(off.point, 1);
        assert_eq!(points.certify_basis(&basis, 1e-11), Ok(()));
    }

    #[test]
    fn blocks_are_filled_by_zeros() {
        let modes = square().modes(1e-13, ORTHOGONAL).in_blocks(2);
        assert_eq!(modes.count, 6);
        let first = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let first = first.into_iter().chain([0.0; 8]).collect();
        assert_eq!(modes.tables, vec![first, vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]);
        assert_eq!(square().certify(&modes, &[[0, 0], [0, 1], [1, 1]], 1e-15), Ok(()));
    }

    #[test]
    fn a_certificate_with_one_entry_off_names_it() {
        let points = square();
        let mut modes = points.modes(1e-13, ORTHOGONAL);
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
        let modes = points.modes(1e-13, ORTHOGONAL);
        assert_eq!(modes.count, 2);
        assert_eq!(points.certify(&modes, &[[0, 0]], 1e-15), Ok(()));
    }

    #[test]
    fn no_number_fits() {
        let table = Table { columns: 1, values: vec![f64::NAN] };
        let points = Points { weights: vec![1.0], tables: vec![table] };
        let modes = Modes { count: 1, tables: vec![vec![1.0]], holders: vec![BTreeSet::from([0])] };
        assert!(points.certify(&modes, &[[0, 0]], 1e-13).is_err());
    }
}
