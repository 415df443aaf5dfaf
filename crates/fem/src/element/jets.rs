//! Truncated Taylor series at many points: what a recurrence needs to give derivatives of any
//! order along with values.

/// The exponents of all derivatives of at most `order` along `dim` axes, in basix's order: by total
/// order, then by those of the later axes ascending.
///
/// ```
/// use kingpost_fem::element::derivatives;
///
/// assert_eq!(derivatives(2, 2), [[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0], [1, 1, 0], [0, 2, 0]]);
/// ```
#[must_use]
pub fn derivatives(dim: usize, order: usize) -> Vec<[usize; 3]> {
    let mut list = Vec::new();
    for total in 0..=order {
        match dim {
            0 | 1 => list.push([total, 0, 0]),
            2 => list.extend((0..=total).map(|q| [total - q, q, 0])),
            _ => list.extend((0..=total).flat_map(|s| (0..=s).map(move |r| [total - s, s - r, r]))),
        }
        if dim == 0 {
            break;
        }
    }
    list
}

/// Taylor coefficients [coefficients][points] of one function, in the order of [`derivatives`].
#[derive(Clone, Debug)]
pub(super) struct Jets(Vec<Vec<f64>>);

/// What series at some points have in common.
pub(super) struct Ring<'a> {
    dim: usize,
    points: &'a [f64],
    exponents: Vec<[usize; 3]>,
    /// Coefficient `target` of a product sums `left * right` over these.
    products: Vec<(usize, usize, usize)>,
}

impl<'a> Ring<'a> {
    /// `points` is [points, dim] row-major.
    pub(super) fn new(dim: usize, order: usize, points: &'a [f64]) -> Self {
        let exponents = derivatives(dim, order);
        let mut products = Vec::new();
        for (target, sum) in exponents.iter().enumerate() {
            for (left, a) in exponents.iter().enumerate() {
                let rest: [Option<usize>; 3] = std::array::from_fn(|i| sum[i].checked_sub(a[i]));
                let right = exponents.iter().position(|b| b.map(Some) == rest);
                products.extend(right.map(|right| (target, left, right)));
            }
        }
        Self { dim, points, exponents, products }
    }

    pub(super) fn n_points(&self) -> usize {
        self.points.len() / self.dim
    }

    pub(super) fn constant(&self, value: f64) -> Jets {
        let mut jets = self.zero();
        jets.0[0].fill(value);
        jets
    }

    fn zero(&self) -> Jets {
        Jets(vec![vec![0.0; self.n_points()]; self.exponents.len()])
    }

    /// The coordinate of (-1, 1) that belongs to that of (0, 1) on `axis`.
    pub(super) fn coordinate(&self, axis: usize) -> Jets {
        let mut jets = self.zero();
        let points = self.points.chunks_exact(self.dim);
        jets.0[0] = points.map(|point| 2.0 * point[axis] - 1.0).collect();
        // the first derivatives follow the value
        if let Some(slope) = jets.0.get_mut(1 + axis) {
            slope.fill(2.0);
        }
        jets
    }

    /// `2 / (1 - c)` for the coordinate `c` of `axis` in (-1, 1): one over the distance from its end in
    /// (0, 1). Zero at that end.
    pub(super) fn inverse_of_height(&self, axis: usize) -> Jets {
        let mut jets = self.zero();
        for (row, exponents) in jets.0.iter_mut().zip(&self.exponents) {
            let of_axis = exponents[axis];
            if exponents.iter().sum::<usize>() == of_axis {
                for (value, point) in row.iter_mut().zip(self.points.chunks_exact(self.dim)) {
                    let height = 1.0 - point[axis];
                    *value = if height == 0.0 { 0.0 } else { height.powi(-1 - of_axis as i32) };
                }
            }
        }
        jets
    }

    pub(super) fn product(&self, left: &Jets, right: &Jets) -> Jets {
        // a factor is linear or quadratic: what is 0 everywhere need not be multiplied
        let zero =
            |jets: &Jets| -> Vec<bool> { jets.0.iter().map(|c| c.iter().all(|x| *x == 0.0)).collect() };
        let (left_zero, right_zero) = (zero(left), zero(right));
        let mut result = self.zero();
        for (target, a, b) in &self.products {
            if !left_zero[*a] && !right_zero[*b] {
                let factors = left.0[*a].iter().zip(&right.0[*b]);
                result.0[*target].iter_mut().zip(factors).for_each(|(sum, (x, y))| *sum += x * y);
            }
        }
        result
    }

    /// The derivatives, [derivatives][points].
    pub(super) fn derivatives_of(&self, jets: Jets) -> Vec<Vec<f64>> {
        let factorial = |n: usize| (2..=n).fold(1.0, |product, i| product * i as f64);
        let mut coefficients = jets.0;
        for (row, exponents) in coefficients.iter_mut().zip(&self.exponents) {
            let scale: f64 = exponents.iter().map(|n| factorial(*n)).product();
            row.iter_mut().for_each(|x| *x *= scale);
        }
        coefficients
    }
}

impl Jets {
    pub(super) fn plus(&self, other: &Self) -> Self {
        let rows = self.0.iter().zip(&other.0);
        Self(rows.map(|(a, b)| a.iter().zip(b).map(|(x, y)| x + y).collect()).collect())
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let rows = self.0.iter().zip(&other.0);
        Self(rows.map(|(a, b)| a.iter().zip(b).map(|(x, y)| x - y).collect()).collect())
    }

    pub(super) fn plus_constant(mut self, value: f64) -> Self {
        self.0[0].iter_mut().for_each(|x| *x += value);
        self
    }

    pub(super) fn times(mut self, factor: f64) -> Self {
        self.0.iter_mut().flatten().for_each(|x| *x *= factor);
        self
    }
}
