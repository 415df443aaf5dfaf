//! Compensated summation.

/// A sum whose rounding errors are summed too.
///
/// # Source
/// Knuth's two-sum; the error of the result is that of one rounding plus terms of second order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    total: f64,
    error: f64,
}

impl Sum {
    pub(super) fn add(&mut self, term: f64) {
        let total = self.total + term;
        let virtual_term = total - self.total;
        self.error += (self.total - (total - virtual_term)) + (term - virtual_term);
        self.total = total;
    }

    pub(super) fn value(&self) -> f64 {
        self.total + self.error
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|t| sum.add(t));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_survive_a_large_one() {
        let sum: Sum = [1e16, 1.0, 1.0, -1e16].into_iter().collect();
        assert_eq!(sum.value(), 2.0);
    }
}
