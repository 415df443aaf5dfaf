//! Reproducible pseudo-random numbers for inputs.

use std::time::{SystemTime, UNIX_EPOCH};

/// A stream of pseudo-random numbers; equal seeds give equal streams on every machine.
///
/// # Source
/// Steele et al. 2014 (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed from the clock, for inputs that differ from run to run; print it, so that a run can
    /// be repeated.
    #[must_use]
    pub fn fresh_seed() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64) % 1_000_000_007
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [-1, 1).
    pub fn number(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// An integer in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// `n` numbers in [-1, 1).
    pub fn numbers(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.number()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_stay_in_range() {
        let seed = Random::fresh_seed();
        let (mut a, mut b) = (Random::new(seed), Random::new(seed));
        for n in 1..200 {
            assert_eq!(a.clone().numbers(3), b.clone().numbers(3));
            let (x, k) = (a.number(), a.below(n));
            assert!((-1.0..1.0).contains(&x) && k < n, "seed {seed}");
            assert_eq!((x, k), (b.number(), b.below(n)));
        }
        assert_eq!(a.below(0), 0);
    }
}
