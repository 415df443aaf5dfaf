//! Tables that are products of smaller ones.

use kingpost_ir::ScalarType;
use kingpost_steps::accuracy::is_near;

/// What the entries of a table are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    Double,
    Single,
}

impl Entries {
    /// The entries of tables of a type, where such tables are taken.
    pub(crate) fn of(ty: ScalarType) -> Option<Self> {
        [(ScalarType::F64, Self::Double), (ScalarType::F32, Self::Single)]
            .into_iter()
            .find_map(|(of, entries)| (of == ty).then_some(entries))
    }

    /// How far an entry may be from the product, relative to the largest entry of its row and column
    /// ([`scales`](kingpost_steps::accuracy::scales)): the rounding errors of values that were computed as
    /// products, of at most 16 factors.
    pub(crate) const fn tolerance(self) -> f64 {
        match self {
            Self::Double => 1e-14,
            // of three factors: quotients of two entries, rounded
            Self::Single => 1e-6,
        }
    }

    /// The distance of 1 from the next number.
    fn unit(self) -> f64 {
        match self {
            Self::Double => f64::EPSILON,
            Self::Single => f64::from(f32::EPSILON),
        }
    }

    fn rounded(self, factors: &mut [Vec<f64>]) {
        match self {
            Self::Double => {}
            Self::Single => {
                factors.iter_mut().flatten().for_each(|value| *value = f64::from(*value as f32));
            }
        }
    }
}

/// An entry that is not the product of the factors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deviation {
    /// Its index, one number an axis.
    pub(crate) index: Vec<usize>,
    pub(crate) value: f64,
    pub(crate) product: f64,
}

/// A digit of an index along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digit {
    /// How many values it has.
    pub(crate) size: usize,
    /// The factor that has it as an index.
    pub(crate) factor: usize,
}

/// A table of which every axis has digits, outermost first: one for each factor. A factor has one
/// digit of each axis as its indices.
pub(crate) struct Digits<'a> {
    pub(crate) axes: &'a [Vec<Digit>],
    pub(crate) values: &'a [f64],
    /// What the error of each entry is compared with.
    pub(crate) scales: &'a [f64],
    pub(crate) entries: Entries,
}

/// A table that factors may be.
pub(crate) struct Matrix<'a> {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: &'a [f64],
}

/// Whether factors differ by rounding only: their entries are quotients, each rounded a few times.
fn near(a: &[f64], b: &[f64], unit: f64) -> bool {
    let largest = a.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 16.0 * unit * largest)
}

/// The sum that all rows of a matrix have, or else all columns, unless it is nearly zero.
fn common_sum(values: &[f64], shape: &[usize], entries: Entries) -> Option<f64> {
    let [rows, columns] = *shape else { return None };
    let by_row = values.chunks(columns).map(|row| row.iter().sum::<f64>()).collect::<Vec<_>>();
    let column = |j: usize| (0..rows).map(|i| values[i * columns + j]).sum::<f64>();
    let by_column = (0..columns).map(column).collect::<Vec<_>>();
    [by_row, by_column].into_iter().find_map(|sums| {
        let first = *sums.first()?;
        let (apart, least) = match entries {
            Entries::Double => (1e-12, 1e-6),
            Entries::Single => (1e-5, 1e-3),
        };
        let same = sums.iter().all(|sum| (sum - first).abs() <= apart * first.abs());
        (same && first.abs() > least).then_some(first)
    })
}

impl Digits<'_> {
    /// Number of factors.
    fn factors(&self) -> usize {
        self.axes.first().map_or(0, Vec::len)
    }

    /// The shape of a factor.
    pub(crate) fn shape(&self, factor: usize) -> Vec<usize> {
        let of_factor = |axis: &Vec<Digit>| axis.iter().find(|d| d.factor == factor).map_or(1, |d| d.size);
        self.axes.iter().map(of_factor).collect()
    }

    /// The index of an entry, one number an axis.
    fn index(&self, mut at: usize) -> Vec<usize> {
        let mut index: Vec<usize> = Vec::with_capacity(self.axes.len());
        for digits in self.axes.iter().rev() {
            let extent: usize = digits.iter().map(|d| d.size).product();
            index.push(at % extent);
            at /= extent;
        }
        index.reverse();
        index
    }

    /// The entry of each factor that an entry is the product of.
    fn parts(&self, at: usize) -> Vec<usize> {
        let mut parts = vec![0; self.factors()];
        for (mut i, digits) in self.index(at).into_iter().zip(self.axes) {
            for digit in digits.iter().rev() {
                let part = &mut parts[digit.factor];
                *part = *part * digit.size + i % digit.size;
                i /= digit.size;
            }
        }
        parts
    }

    /// The factors, if every entry is their product up to [`Entries::tolerance`]. Equal factors are equal
    /// bit by bit, and those that are `known` tables up to rounding are these.
    ///
    /// Formula: with `m` the largest entry and `e` its index, let `g_k(i) = T(e with i as part
    /// k)/m`. If `T` is a product of factors, it is `m g_0 g_1 …`. A factor whose rows, or columns,
    /// have one sum gets the sum 1, as values of functions that add up to 1. What is left of `m` goes
    /// to the first factor that has none; to all alike if they are equal.
    ///
    /// # Errors
    /// The entry that is furthest from the product; `None` for a table of zeros.
    pub(crate) fn separate(&self, known: &[Matrix<'_>]) -> Result<Vec<Vec<f64>>, Option<Deviation>> {
        let larger = |a: &usize, b: &usize| self.values[*a].abs().total_cmp(&self.values[*b].abs());
        let largest = (0..self.values.len()).rev().max_by(larger).ok_or(None)?;
        let scale = self.values[largest];
        if scale == 0.0 || !scale.is_finite() {
            return Err(None);
        }
        let count = self.factors();
        let home = self.parts(largest);
        let mut factors: Vec<Vec<f64>> =
            (0..count).map(|k| vec![0.0; self.shape(k).iter().product()]).collect();
        for (at, value) in self.values.iter().enumerate() {
            let parts = self.parts(at);
            let mut elsewhere = (0..count).filter(|k| parts[*k] != home[*k]);
            let (moved, none) = (elsewhere.next(), elsewhere.next().is_none());
            for k in (0..count).filter(|k| none && moved.is_none_or(|m| m == *k)) {
                factors[k][parts[k]] = value / scale;
            }
        }
        self.scale(&mut factors, scale);
        let mut shared = factors.clone();
        self.share(&mut shared, known);
        self.entries.rounded(&mut shared);
        if self.check(&shared).is_ok() {
            return Ok(shared);
        }
        let mut alike = factors.clone();
        self.share(&mut alike, &[]);
        self.entries.rounded(&mut alike);
        if self.check(&alike).is_ok() {
            return Ok(alike);
        }
        self.entries.rounded(&mut factors);
        self.check(&factors)?;
        Ok(factors)
    }

    /// Gives factors, whose largest entries are 1, the scale of the table.
    fn scale(&self, factors: &mut [Vec<f64>], scale: f64) {
        let times = |factor: &mut Vec<f64>, by: f64| factor.iter_mut().for_each(|value| *value *= by);
        let mut rest = scale;
        let mut free = None;
        for (k, factor) in factors.iter_mut().enumerate() {
            match common_sum(factor, &self.shape(k), self.entries) {
                Some(sum) => {
                    factor.iter_mut().for_each(|value| *value /= sum);
                    rest *= sum;
                }
                None => free = free.or(Some(k)),
            }
        }
        let alike = factors.iter().all(|f| near(f, &factors[0], self.entries.unit()));
        if (rest - 1.0).abs() <= 16.0 * self.entries.unit() {
            return; // what rounding left over
        }
        if alike && (rest > 0.0 || factors.len() % 2 == 1) {
            let root = rest.abs().powf(1.0 / factors.len() as f64).copysign(rest);
            factors.iter_mut().for_each(|factor| times(factor, root));
        } else {
            times(&mut factors[free.unwrap_or(0)], rest); // default: any of them can take it
        }
    }

    /// Makes factors equal that have the same sizes and differ by rounding only, from each other or
    /// from a known table.
    fn share(&self, factors: &mut [Vec<f64>], known: &[Matrix<'_>]) {
        for k in 0..factors.len() {
            let (before, after) = factors.split_at_mut(k);
            let shape = self.shape(k);
            let of_known = known.iter().filter(|m| m.shape == shape).map(|m| m.values);
            let of_table = before.iter().enumerate().filter(|(j, _)| self.shape(*j) == shape);
            let mut candidates = of_known.chain(of_table.map(|(_, f)| f.as_slice()));
            if let Some(same) =
                candidates.find(|f| near(f, &after[0], self.entries.unit())).map(<[f64]>::to_vec)
            {
                after[0] = same;
            }
        }
    }

    fn check(&self, factors: &[Vec<f64>]) -> Result<(), Option<Deviation>> {
        let mut worst: Option<(f64, Deviation)> = None;
        for (at, (value, scale)) in self.values.iter().zip(self.scales).enumerate() {
            let product: f64 = self.parts(at).into_iter().zip(factors).map(|(part, f)| f[part]).product();
            let fits = is_near(*value, product, self.entries.tolerance(), *scale);
            let apart = (value - product).abs() / scale;
            if !fits && worst.as_ref().is_none_or(|(most, _)| apart.total_cmp(most).is_gt()) {
                worst = Some((apart, Deviation { index: self.index(at), value: *value, product }));
            }
        }
        worst.map_or(Ok(()), |(_, deviation)| Err(Some(deviation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost_steps::accuracy::scales;
    use std::collections::BTreeSet;

    fn separate(
        axes: &[Vec<Digit>],
        values: &[f64],
        known: &[Matrix<'_>],
    ) -> Result<Vec<Vec<f64>>, Option<Deviation>> {
        let shape: Vec<usize> = axes.iter().map(|digits| digits.iter().map(|d| d.size).product()).collect();
        let scales = scales(values, &shape, &BTreeSet::from([0]));
        Digits { axes, values, scales: &scales, entries: Entries::Double }.separate(known)
    }

    fn axes<const A: usize>(sizes: [&[usize]; A]) -> Vec<Vec<Digit>> {
        let digits = |axis: &[usize]| {
            axis.iter().enumerate().map(|(factor, size)| Digit { size: *size, factor }).collect()
        };
        sizes.into_iter().map(digits).collect()
    }

    #[test]
    fn a_product_of_one_matrix_with_itself_is_shared() {
        let a = [0.9, 0.1, 0.4, 0.6, 0.2, 0.8];
        let at = |q: usize, j: usize| a[2 * (q / 3) + j / 2] * a[2 * (q % 3) + j % 2];
        let values: Vec<f64> = (0..36).map(|n| at(n / 4, n % 4)).collect();
        let factors = separate(&axes([&[3, 3], &[2, 2]]), &values, &[]).expect("a product");
        assert_eq!(factors[0], factors[1]);
        let close = factors[0].iter().zip(a).all(|(f, a)| (f - a).abs() < 1e-15);
        assert!(close, "{factors:?}");
    }

    #[test]
    fn rounded_entries_are_those_of_rounded_factors() {
        let a = [0.9, 0.1, 0.4, 0.6, 0.2, 0.8];
        let at = |q: usize, j: usize| a[2 * (q / 3) + j / 2] * a[2 * (q % 3) + j % 2];
        let values: Vec<f64> = (0..36).map(|n| f64::from(at(n / 4, n % 4) as f32)).collect();
        let axes = axes([&[3, 3], &[2, 2]]);
        assert!(separate(&axes, &values, &[]).is_err());
        let scales = vec![1.0; 36];
        let digits = Digits { axes: &axes, values: &values, scales: &scales, entries: Entries::Single };
        let factors = digits.separate(&[]).expect("a product");
        assert_eq!(factors[0], factors[1]);
        // 2e-7: quotients of two rounded entries
        let close = factors[0].iter().zip(a).all(|(f, a)| (f - a).abs() < 2e-7);
        assert!(close && factors[0].iter().all(|f| f64::from(*f as f32) == *f), "{factors:?}");
    }

    #[test]
    fn digits_in_another_order() {
        let a = [0.9, 0.1, 0.4, 0.6, 0.2, 0.8];
        let at = |q: usize, j: usize| a[2 * (q / 3) + j % 2] * a[2 * (q % 3) + j / 2];
        let values: Vec<f64> = (0..36).map(|n| at(n / 4, n % 4)).collect();
        let mut axes = axes([&[3, 3], &[2, 2]]);
        assert!(separate(&axes, &values, &[]).is_err());
        axes[1].reverse();
        let factors = separate(&axes, &values, &[]).expect("a product");
        assert_eq!(factors[0], factors[1]);
    }

    /// Values of functions that add up to 1, and their slopes: every table has the same factors.
    #[test]
    fn values_and_slopes_have_the_matrices_of_an_axis() {
        let (a, d) = ([0.9, 0.1, 0.4, 0.6, 0.2, 0.8], [-3.0, 3.0, -1.0, 1.0, 0.7, -0.7]);
        let table = |first: [f64; 6], second: [f64; 6]| -> Vec<f64> {
            let at = |q: usize, j: usize| first[2 * (q / 3) + j / 2] * second[2 * (q % 3) + j % 2];
            (0..36).map(|n| at(n / 4, n % 4)).collect()
        };
        let axes = axes([&[3, 3], &[2, 2]]);
        let factors =
            |values: &[f64], known: &[Matrix<'_>]| separate(&axes, values, known).expect("a product");
        let close = |f: &[f64], g: [f64; 6]| f.iter().zip(g).all(|(f, g)| (f - g).abs() < 4e-15);
        let values = factors(&table(a, a), &[]);
        assert!(close(&values[0], a) && values[0] == values[1], "{values:?}");
        let known = [Matrix { shape: vec![3, 2], values: &values[0] }];
        for (first, second, of_values) in [(d, a, 1), (a, d, 0)] {
            let slopes = factors(&table(first, second), &known);
            assert_eq!(slopes[of_values], values[0]);
            assert!(close(&slopes[1 - of_values], d), "{slopes:?}");
        }
        // one that is apart by more than rounding is another table
        let other = [0.9 + 1e-13, 0.1 - 1e-13, 0.4, 0.6, 0.2, 0.8];
        let known = [Matrix { shape: vec![3, 2], values: &other }];
        assert_ne!(factors(&table(a, a), &known)[0], other);
    }

    #[test]
    fn factors_of_different_sizes_and_signs() {
        let (a, b) = ([-2.0, 1.0], [3.0, 0.5, -1.0]);
        let values: Vec<f64> = (0..6).map(|n| a[n / 3] * b[n % 3]).collect();
        let factors = separate(&axes([&[2, 3]]), &values, &[]).expect("a product");
        let product = |n: usize| factors[0][n / 3] * factors[1][n % 3];
        assert!((0..6).all(|n| (product(n) - values[n]).abs() < 1e-14), "{factors:?}");
    }

    /// Both have rows of one sum, and their product another one, with either sign.
    #[test]
    fn what_sums_leave_of_a_table_goes_to_a_factor() {
        let (a, b) = ([0.5, 0.5, 0.25, 0.75], [0.1, 0.9, 0.3, 0.7]);
        for scale in [3.0, -3.0] {
            let at = |q: usize, j: usize| scale * a[2 * (q / 2) + j / 2] * b[2 * (q % 2) + j % 2];
            let values: Vec<f64> = (0..16).map(|n| at(n / 4, n % 4)).collect();
            let axes = axes([&[2, 2], &[2, 2]]);
            let factors = separate(&axes, &values, &[]).expect("a product");
            assert!(factors[0].iter().zip(a).all(|(f, a)| (f - scale * a).abs() < 4e-15), "{factors:?}");
        }
    }

    #[test]
    fn an_entry_that_is_no_product_is_named() {
        let axes = axes([&[2, 2]]);
        let found = separate(&axes, &[4.0, 2.0, 2.0, 3.0], &[]);
        let deviation = found.expect_err("no product").expect("an entry");
        assert_eq!((deviation.index, deviation.value), (vec![3], 3.0));
        assert!((deviation.product - 1.0).abs() < 1e-15);
        assert_eq!(separate(&axes, &[0.0; 4], &[]), Err(None));
    }

    /// A row that is small against another one is compared with its own entries.
    #[test]
    fn small_rows_count() {
        let axes = axes([&[1, 2], &[2, 2]]);
        let large = [1.0, 2.0, 3.0, 6.0];
        let small = |last: f64| large.into_iter().chain([1e-16, 1e-16, 5e-17, last]).collect::<Vec<f64>>();
        let deviation = separate(&axes, &small(1e-16), &[]).expect_err("no product").expect("an entry");
        assert_eq!(deviation.index[0], 1);
        let product: Vec<f64> = large.into_iter().chain(large.map(|v| 1e-20 * v)).collect();
        assert!(separate(&axes, &product, &[]).is_ok());
    }
}
