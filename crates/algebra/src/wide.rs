//! Sums of products in twice the precision (Dekker 1971).

/// An unevaluated sum of two numbers of `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wide {
    high: f64,
    low: f64,
}

impl Wide {
    /// A number as it is.
    pub(crate) fn new(value: f64) -> Self {
        Self { high: value, low: 0.0 }
    }

    /// The product with a number.
    pub(crate) fn times(self, by: f64) -> Self {
        let high = self.high * by;
        Self { high, low: self.high.mul_add(by, -high) + self.low * by }
    }

    /// The sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        let high = self.high + other.high;
        let part = high - self.high;
        let error = (self.high - (high - part)) + (other.high - part);
        Self { high, low: self.low + other.low + error }
    }

    /// The nearest number.
    pub(crate) fn value(self) -> f64 {
        self.high + self.low
    }
}

#[cfg(test)]
mod tests {
    use super::Wide;

    #[test]
    fn what_one_precision_loses_is_kept() {
        let sum = [1e16, 1.0, -1e16].into_iter().fold(Wide::default(), |s, v| s.plus(Wide::new(v)));
        assert_eq!(sum.value(), 1.0);
        // 0.1*0.1 is 0.01 + 2.0816681711721684e-19 in exact arithmetic of the rounded factors
        let rest = Wide::new(0.1).times(0.1).plus(Wide::new(-0.1 * 0.1));
        assert_eq!(rest.value(), 0.1_f64.mul_add(0.1, -(0.1 * 0.1)));
        assert_ne!(rest.value(), 0.0);
    }
}
