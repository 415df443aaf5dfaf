//! Powers of two that keep sums of squares within what numbers can be.
//!
//! The square of a number below 1e-154 is no longer a normal number, and that of one above 1e154 is
//! infinite. A linear system is therefore solved for a multiple of its right-hand side where the
//! norm of that is far from one. Powers of two round nothing.

/// Norms whose squares, and a tolerance's part of them, are normal numbers.
const NORMS: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

/// A power of two, possibly one that is no number itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOfTwo(i32);

impl PowerOfTwo {
    /// One.
    pub const ONE: Self = Self(0);

    /// What takes the largest of these numbers to one, up to a factor of two. None if all are zero, or
    /// one is infinite or no number.
    #[must_use]
    pub fn to_one(values: &[f64]) -> Option<Self> {
        let largest = Self::largest(values);
        (largest.is_finite() && largest > 0.0).then(|| Self(-exponent(largest)))
    }

    /// The largest of some numbers except for their signs, or not a number if one is infinite or none.
    pub(crate) fn largest(values: &[f64]) -> f64 {
        // a maximum leaves out what is no number
        if values.iter().all(|value| value.is_finite()) { largest(values) } else { f64::NAN }
    }

    /// The same unless sums of squares of these numbers need none.
    #[must_use]
    pub fn if_needed(values: &[f64]) -> Self {
        if NORMS.contains(&largest(values)) { Self::ONE } else { Self::to_one(values).unwrap_or(Self::ONE) }
    }

    /// Whether it is one.
    #[must_use]
    pub fn is_one(self) -> bool {
        self == Self::ONE
    }

    /// Its inverse.
    #[must_use]
    pub const fn inverse(self) -> Self {
        Self(-self.0)
    }

    /// Its product with a number; rounded only where that is too small, infinite only where it is too
    /// large.
    #[must_use]
    pub fn times(self, value: f64) -> f64 {
        // in parts, each of which is a number
        let third = self.0 / 3;
        [third, third, self.0 - 2 * third].into_iter().fold(value, |value, part| value * 2.0_f64.powi(part))
    }

    /// Its products with numbers.
    pub fn scale(self, values: &mut [f64]) {
        if !self.is_one() {
            values.iter_mut().for_each(|value| *value = self.times(*value));
        }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

/// Whether sums of squares of vectors of this norm are what they should be.
pub(crate) fn is_usual(norm: f64) -> bool {
    norm.is_nan() || NORMS.contains(&norm)
}

/// The exponent of a positive number: it lies between this power of two and the next.
fn exponent(value: f64) -> i32 {
    match ((value.to_bits() >> 52) & 0x7ff) as i32 {
        // below the normal numbers: those are 2^54 times it
        0 => exponent(value * 2.0_f64.powi(54)) - 54,
        biased => biased - 1023,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_size_goes_to_one_and_back() {
        for value in [1.0, 3.0, 1e-200, 1e200, 5e-324, 2.3e-308, f64::MAX, -7e-310] {
            let scale = PowerOfTwo::to_one(&[0.0, value]).unwrap();
            let scaled = scale.times(value);
            assert!((1.0..2.0).contains(&scaled.abs()), "{value:e}: {scaled}");
            assert_eq!(scale.inverse().times(scaled), value);
        }
        for none in [0.0, f64::INFINITY, f64::NAN] {
            assert_eq!(PowerOfTwo::to_one(&[none]), None);
        }
        assert_eq!(PowerOfTwo::to_one(&[f64::NAN, 1.0]), None);
        assert!(PowerOfTwo::if_needed(&[3.0, 1e-250]).is_one());
    }
}
