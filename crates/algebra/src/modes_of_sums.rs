//! Modes where weights may be negative, from the sums of products of all columns alone: the rows of their
//! Cholesky factor. Sums are compensated, so that what is left of a column is its own rounding.

use crate::modes::{Modes, Points, Rounding, compensated, connected, transposed};
use std::collections::BTreeSet;

impl Points {
    /// Modes as [`Points::modes`] finds them, where weights may be negative.
    ///
    /// # Errors
    /// The column whose sum of squares, or what modes leave of it, is negative or no number.
    pub(crate) fn modes_of_sums(&self, rounding: Rounding) -> Result<Modes, [usize; 2]> {
        let columns: Vec<([usize; 2], Vec<f64>)> = self
            .tables
            .iter()
            .enumerate()
            .flat_map(|(k, table)| {
                let all = transposed(&table.values, table.columns).into_iter().enumerate();
                all.map(move |(index, values)| ([k, index], values))
            })
            .collect();
        let weighted =
            |values: &[f64]| -> Vec<f64> { values.iter().zip(&self.weights).map(|(v, w)| v * w).collect() };
        let mut lengths = Vec::new();
        for (place, values) in &columns {
            let (square, size) = compensated(&weighted(values), values);
            // a column of zeros has no length
            let is_sum = square > 1e-12 * size || size == 0.0;
            lengths.push(Some(square.max(0.0).sqrt()).filter(|_| is_sum).ok_or(*place)?);
        }
        let product = |a: usize, b: usize| match lengths[a] * lengths[b] {
            0.0 => 0.0,
            scale => compensated(&weighted(&columns[a].1), &columns[b].1).0 / scale,
        };
        let n = columns.len();
        let products: Vec<Vec<f64>> = (0..n).map(|a| (0..n).map(|b| product(a, b)).collect()).collect();
        let (mut rows, mut holders): (Vec<Vec<f64>>, Vec<BTreeSet<usize>>) = (Vec::new(), Vec::new());
        for component in connected(n, |a, b| products[a][b].abs() > rounding.angle) {
            let component: Vec<usize> = component.into_iter().filter(|c| lengths[*c] > 0.0).collect();
            let tables: BTreeSet<usize> = component.iter().map(|c| columns[*c].0[0]).collect();
            let first = rows.len();
            loop {
                // what the modes so far leave of a product
                let left = |a: usize, b: usize| {
                    let column = |c: usize| rows[first..].iter().map(move |row| row[c]);
                    let own: Vec<f64> = std::iter::once(products[a][b]).chain(column(a)).collect();
                    let other: Vec<f64> = std::iter::once(1.0).chain(column(b).map(|v| -v)).collect();
                    compensated(&own, &other).0
                };
                let squares: Vec<f64> = component.iter().map(|c| left(*c, *c)).collect();
                if let Some(k) = squares.iter().position(|square| *square < -rounding.rest) {
                    return Err(columns[component[k]].0);
                }
                let all = component.iter().zip(&squares).filter(|(_, square)| **square > rounding.rest);
                let size = |(c, square): &(&usize, &f64)| *square * lengths[**c] * lengths[**c];
                let Some((pivot, square)) = all.max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
                let mut row = vec![0.0; n];
                for c in &component {
                    let along = left(*pivot, *c) / square.sqrt();
                    row[*c] = if along.abs() <= rounding.zero { 0.0 } else { along };
                }
                rows.push(row);
                holders.push(tables.clone());
            }
        }
        let entries =
            rows.iter().map(|row| row.iter().zip(&lengths).map(|(value, length)| value * length).collect());
        Ok(Modes { count: rows.len(), tables: self.tables_of(entries), holders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::Table;

    /// A rule with a negative weight that is exact for these products has their modes; where it is not, a
    /// sum of squares is negative.
    #[test]
    fn weights_may_be_negative() {
        // of 1, x on [0, 1]; the integrals of 1, x and x*x are 1, 1/2 and 1/3
        let (points, weights) = ([0.25, 0.5, 0.75], [2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0]);
        let of = |columns: usize, values: Vec<f64>| Points {
            weights: weights.to_vec(),
            tables: vec![Table { columns, values }],
        };
        let linear = of(2, points.iter().flat_map(|x| [1.0, *x]).collect());
        let modes = linear.modes_of_sums(Rounding::double(1e-13, false)).expect("modes");
        assert_eq!(modes.count, 2);
        assert_eq!(linear.certify(&modes, &[[0, 0]], 1e-14), Ok(()));
        let of_column = |k: usize| modes.tables[0].iter().skip(k).step_by(2).map(|v| v * v).sum::<f64>();
        assert!((of_column(0) - 1.0).abs() < 1e-15 && (of_column(1) - 1.0 / 3.0).abs() < 1e-15);
        let bump = of(2, vec![1.0, 0.1, 1.0, 1.0, 1.0, 0.1]);
        assert_eq!(bump.modes_of_sums(Rounding::double(1e-13, false)), Err([0, 1]));
    }
}
