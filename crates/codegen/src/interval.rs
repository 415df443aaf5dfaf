//! Intervals of integers: what decides widths, guards and constant trip counts without isl.

use kingpost_ir::ScalarType;

/// Everything beyond this is taken as infinite: sums and products of bounds below it fit `i128`.
const INFINITY: i128 = 1 << 62;

/// The integers from `lo` to `hi`, both included; empty if `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
}

impl Interval {
    /// Every integer.
    pub(crate) const ALL: Self = Self { lo: -INFINITY, hi: INFINITY };
    /// The values of `i32`.
    pub(crate) const I32: Self = Self { lo: i32::MIN as i128, hi: i32::MAX as i128 };

    /// The values of an integer type; every integer for another one.
    pub(crate) fn of(ty: ScalarType) -> Self {
        ty.ends().map_or(Self::ALL, |(lo, hi)| Self::new(lo, hi))
    }

    pub(crate) fn new(lo: i128, hi: i128) -> Self {
        Self { lo: lo.clamp(-INFINITY, INFINITY), hi: hi.clamp(-INFINITY, INFINITY) }
    }

    pub(crate) fn point(value: i64) -> Self {
        Self::new(value.into(), value.into())
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let lo = if self.lo <= -INFINITY { -INFINITY } else { self.lo + other.lo };
        let hi = if self.hi >= INFINITY { INFINITY } else { self.hi + other.hi };
        Self::new(
            if other.lo <= -INFINITY { -INFINITY } else { lo },
            if other.hi >= INFINITY { INFINITY } else { hi },
        )
    }

    pub(crate) fn times(self, factor: i64) -> Self {
        let (a, b) = (scaled(self.lo, factor), scaled(self.hi, factor));
        Self::new(a.min(b), a.max(b))
    }

    pub(crate) fn product(self, other: Self) -> Self {
        // Bounds are at most 2^62 in magnitude, so products fit 2^124.
        let all = [self.lo * other.lo, self.lo * other.hi, self.hi * other.lo, self.hi * other.hi];
        let (mut lo, mut hi) = (all[0], all[0]);
        for v in all {
            (lo, hi) = (lo.min(v), hi.max(v));
        }
        Self::new(lo, hi)
    }

    pub(crate) fn floor_div(self, divisor: i64) -> Self {
        let d = i128::from(divisor);
        let lo = if self.lo <= -INFINITY { -INFINITY } else { self.lo.div_euclid(d) };
        let hi = if self.hi >= INFINITY { INFINITY } else { self.hi.div_euclid(d) };
        Self::new(lo, hi)
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(crate) fn meet(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(crate) fn fits_i32(self) -> bool {
        self.lo >= Self::I32.lo && self.hi <= Self::I32.hi
    }

    /// Whether the ends are known to fit 64 bits.
    pub(crate) fn is_finite(self) -> bool {
        self.lo > -INFINITY && self.hi < INFINITY
    }

    /// The upper bound, if there is one.
    pub(crate) fn finite_hi(self) -> Option<i64> {
        if self.hi >= INFINITY { None } else { i64::try_from(self.hi).ok() }
    }

    /// The lower bound, if there is one.
    pub(crate) fn finite_lo(self) -> Option<i64> {
        if self.lo <= -INFINITY { None } else { i64::try_from(self.lo).ok() }
    }
}

fn scaled(bound: i128, factor: i64) -> i128 {
    if bound.abs() >= INFINITY {
        bound.signum() * i128::from(factor.signum()) * INFINITY
    } else {
        bound * i128::from(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_bounds_stay_infinite() {
        assert_eq!(Interval::ALL.times(-3).lo, -INFINITY);
        assert_eq!(Interval::ALL.plus(Interval::point(7)).finite_hi(), None);
        assert_eq!(Interval::new(0, INFINITY).floor_div(32), Interval::new(0, INFINITY));
    }

    #[test]
    fn product_covers_all_signs() {
        let (a, b) = (Interval::new(-3, 2), Interval::new(-5, 7));
        let p = a.product(b);
        for x in -3..=2 {
            for y in -5..=7 {
                assert!(p.lo <= x * y && x * y <= p.hi);
            }
        }
        assert_eq!(p, Interval::new(-21, 15));
    }
}
