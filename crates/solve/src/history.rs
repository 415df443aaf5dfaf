//! What the host makes of the sums that iterations leave on the device.

use crate::{LinearOptions, LinearReason};

/// The residuals so far, and whether they end the iterations.
pub(crate) struct History {
    options: LinearOptions,
    /// Norms of residuals.
    pub residuals: Vec<f64>,
    /// The first square of all, from which the device has its limit.
    first: Option<f64>,
    /// The least square of all.
    least: f64,
    /// What the last square is expected to be after as many iterations as between the last two looks, if it
    /// falls as it did; zero before the first.
    expected: f64,
}

impl History {
    pub const fn new(options: LinearOptions) -> Self {
        Self { options, residuals: Vec::new(), first: None, least: f64::INFINITY, expected: 0.0 }
    }

    /// Iterations until the host looks again: never more than are allowed.
    pub fn next(&self) -> usize {
        let done = self.residuals.len().saturating_sub(1);
        self.options.look_every.min(self.options.max_iterations.saturating_sub(done))
    }

    /// How many times as many as between two looks are allowed.
    pub fn whole_looks(&self) -> usize {
        let done = self.residuals.len().saturating_sub(1);
        self.options.max_iterations.saturating_sub(done) / self.options.look_every.max(1)
    }

    /// Whether iterations are likely to be needed after those up to the next look.
    pub fn goes_on(&self) -> bool {
        self.first.is_some_and(|first| self.expected > self.limit(first))
    }

    /// The square that is small enough, by the first one.
    fn limit(&self, first: f64) -> f64 {
        (self.options.relative.powi(2) * first).max(self.options.absolute.powi(2))
    }

    /// Adds the norms of the residuals whose squares are given, up to the one that ends the iterations,
    /// and says why it does. The first of later squares is the last of those before. `breaks` says
    /// whether iteration `k` of these was the last that could be computed; one that converges may be.
    /// Where a residual was nothing but rounding, it has stagnated, whatever a method says then.
    pub fn judge(
        &mut self,
        squares: &[f64],
        breaks: impl Fn(usize) -> Option<LinearReason>,
    ) -> Option<LinearReason> {
        let first = *self.first.get_or_insert(squares.first().copied().unwrap_or(f64::NAN));
        let options = self.options;
        // after a residual that is nothing but rounding there is nothing to be learnt of the matrix
        let why = |least: f64, reason| match least <= f64::EPSILON.powi(2) * first {
            true => LinearReason::Stagnated,
            false => reason,
        };
        let limit = self.limit(first);
        for (k, square) in squares.iter().enumerate() {
            if k > 0 || self.residuals.is_empty() {
                self.residuals.push(square.sqrt());
                self.least = self.least.min(*square);
                if !square.is_finite() {
                    return Some(why(self.least, LinearReason::NotFinite));
                }
                if *square > options.divergence.powi(2) * first {
                    return Some(why(self.least, LinearReason::Diverged));
                }
                if *square <= limit {
                    return Some(LinearReason::Converged);
                }
                if self.residuals.len() > options.max_iterations {
                    return Some(why(self.least, LinearReason::TooMany));
                }
            }
            let converges = squares.get(k + 1).is_none_or(|next| *next <= limit);
            if let (false, Some(reason)) = (converges, breaks(k.min(squares.len().saturating_sub(2)))) {
                return Some(why(self.least, reason));
            }
        }
        if let [first, .., last] = squares {
            self.expected = last * (last / first);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_iterations_are_expected_where_residuals_fall_slowly() {
        let options = LinearOptions { relative: 1e-3, ..LinearOptions::default() };
        let mut history = History::new(options);
        let judge = |history: &mut History, squares: &[f64]| {
            assert_eq!(history.judge(squares, |_| None), None);
            history.goes_on()
        };
        assert!(!history.goes_on()); // nothing is known
        assert!(judge(&mut history, &[1.0, 0.5, 0.1]));
        // 1e-5 is expected at the next look, 1e-7 after it
        assert!(judge(&mut history, &[0.1, 0.01, 1e-3]));
        assert!(!judge(&mut history, &[1e-3, 1e-4, 1e-5]));
    }

    /// What a method says of a matrix by a residual that is rounding is no finding.
    #[test]
    fn behind_roundings_a_residual_has_stagnated() {
        let options =
            LinearOptions { relative: 0.0, absolute: 0.0, max_iterations: 3, ..LinearOptions::default() };
        let judged = |squares: &[f64], at: usize, reason| {
            History::new(options).judge(squares, |k| (k == at).then_some(reason))
        };
        use LinearReason::{Breakdown, Indefinite, NotFinite, Stagnated, TooMany};
        for reason in [Indefinite, Breakdown] {
            assert_eq!(judged(&[1.0, 1e-20, 1e-21], 1, reason), Some(reason));
            assert_eq!(judged(&[1.0, 1e-33, 1e-34], 1, reason), Some(Stagnated));
            // it has grown again since
            assert_eq!(judged(&[1.0, 1e-33, 1e-20, 1e-19], 2, reason), Some(Stagnated));
        }
        assert_eq!(judged(&[1.0, f64::NAN], 9, Indefinite), Some(NotFinite));
        assert_eq!(judged(&[1.0, 1e-40, f64::INFINITY], 9, Indefinite), Some(Stagnated));
        assert_eq!(judged(&[1.0, 0.1, 0.01, 0.001], 9, Indefinite), Some(TooMany));
        assert_eq!(judged(&[1.0, 0.1, 0.01, 1e-40], 9, Indefinite), Some(Stagnated));
    }
}
