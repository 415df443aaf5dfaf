//! Tables that are products of smaller ones.

/// How far an entry may be from the product, relative to the largest entry: the rounding errors of
/// values that were computed as products, of at most 16 factors.
pub(crate) const TOLERANCE: f64 = 1e-14;

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

    /// The factors, if every entry is their product up to [`TOLERANCE`]. Equal factors are equal
    /// bit by bit.
    ///
    /// Formula: with `m` the largest entry and `e` its index, let `g_k(i) = T(e with i as part
    /// k)/m`. If `T` is a product of factors, it is `m g_0 g_1 …`. The first factor has `m`, unless
    /// all are equal: then each has its root.
    ///
    /// # Errors
    /// The entry that is furthest from the product; `None` for a table of zeros.
    pub(crate) fn separate(&self) -> Result<Vec<Vec<f64>>, Option<Deviation>> {
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
        let mut first = factors[0].clone();
        for (at, value) in self.values.iter().enumerate() {
            let parts = self.parts(at);
            let mut elsewhere = (0..count).filter(|k| parts[*k] != home[*k]);
            let (moved, none) = (elsewhere.next(), elsewhere.next().is_none());
            for k in (0..count).filter(|k| none && moved.is_none_or(|m| m == *k)) {
                factors[k][parts[k]] = value / scale;
            }
            if none && moved.is_none_or(|m| m == 0) {
                first[parts[0]] = *value;
            }
        }
        self.share(&mut factors);
        if factors.iter().all(|f| *f == factors[0]) && (scale > 0.0 || count % 2 == 1) {
            let root = scale.abs().powf(1.0 / count as f64).copysign(scale);
            factors.iter_mut().flatten().for_each(|value| *value *= root);
        } else {
            factors[0] = first;
        }
        self.check(&factors, scale.abs())?;
        Ok(factors)
    }

    /// Makes factors equal that have the same sizes and differ by rounding only.
    fn share(&self, factors: &mut [Vec<f64>]) {
        for k in 1..factors.len() {
            let (before, after) = factors.split_at_mut(k);
            let same_sizes = |j: usize| self.shape(j) == self.shape(k);
            // quotients of entries that are rounded once for each factor
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 8.0 * f64::EPSILON;
            let alike = |f: &[f64]| f.iter().zip(&after[0]).all(near);
            let first = before.iter().enumerate().find(|(j, f)| same_sizes(*j) && alike(f));
            if let Some(same) = first.map(|(_, f)| f.clone()) {
                after[0] = same;
            }
        }
    }

    fn check(&self, factors: &[Vec<f64>], scale: f64) -> Result<(), Option<Deviation>> {
        let mut worst: Option<(f64, Deviation)> = None;
        for (at, value) in self.values.iter().enumerate() {
            let product: f64 = self.parts(at).into_iter().zip(factors).map(|(part, f)| f[part]).product();
            let apart = (value - product).abs();
            // a nan is apart from everything
            let fits = apart <= TOLERANCE * scale;
            if !fits && worst.as_ref().is_none_or(|(most, _)| apart > *most) {
                worst = Some((apart, Deviation { index: self.index(at), value: *value, product }));
            }
        }
        worst.map_or(Ok(()), |(_, deviation)| Err(Some(deviation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let factors =
            Digits { axes: &axes([&[3, 3], &[2, 2]]), values: &values }.separate().expect("a product");
        assert_eq!(factors[0], factors[1]);
        let close = factors[0].iter().zip(a).all(|(f, a)| (f - a).abs() < 1e-15);
        assert!(close, "{factors:?}");
    }

    #[test]
    fn digits_in_another_order() {
        let a = [0.9, 0.1, 0.4, 0.6, 0.2, 0.8];
        let at = |q: usize, j: usize| a[2 * (q / 3) + j % 2] * a[2 * (q % 3) + j / 2];
        let values: Vec<f64> = (0..36).map(|n| at(n / 4, n % 4)).collect();
        let mut axes = axes([&[3, 3], &[2, 2]]);
        assert!(Digits { axes: &axes, values: &values }.separate().is_err());
        axes[1].reverse();
        let factors = Digits { axes: &axes, values: &values }.separate().expect("a product");
        assert_eq!(factors[0], factors[1]);
    }

    #[test]
    fn factors_of_different_sizes_and_signs() {
        let (a, b) = ([-2.0, 1.0], [3.0, 0.5, -1.0]);
        let values: Vec<f64> = (0..6).map(|n| a[n / 3] * b[n % 3]).collect();
        let factors = Digits { axes: &axes([&[2, 3]]), values: &values }.separate().expect("a product");
        let product = |n: usize| factors[0][n / 3] * factors[1][n % 3];
        assert!((0..6).all(|n| (product(n) - values[n]).abs() < 1e-14), "{factors:?}");
    }

    #[test]
    fn an_entry_that_is_no_product_is_named() {
        let axes = axes([&[2, 2]]);
        let found = Digits { axes: &axes, values: &[4.0, 2.0, 2.0, 3.0] }.separate();
        let deviation = found.expect_err("no product").expect("an entry");
        assert_eq!((deviation.index, deviation.value), (vec![3], 3.0));
        assert!((deviation.product - 1.0).abs() < 1e-15);
        assert_eq!(Digits { axes: &axes, values: &[0.0; 4] }.separate(), Err(None));
    }
}
