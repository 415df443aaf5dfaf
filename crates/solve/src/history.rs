//! What the host makes of the sums that iterations leave on the device.

use crate::{LinearOptions, LinearReason};

/// The residuals so far, and whether they end the iterations.
pub(crate) struct History {
    options: LinearOptions,
    /// Norms of residuals.
    pub residuals: Vec<f64>,
    /// The first square of all, from which the device has its limit.
    first: Option<f64>,
}

impl History {
    pub const fn new(options: LinearOptions) -> Self {
        Self { options, residuals: Vec::new(), first: None }
    }

    /// Iterations until the host looks again: never more than are allowed.
    pub fn next(&self) -> usize {
        let done = self.residuals.len().saturating_sub(1);
        self.options.look_every.min(self.options.max_iterations.saturating_sub(done))
    }

    /// Adds the norms of the residuals whose squares are given, up to the one that ends the iterations,
    /// and says why it does. The first of later squares is the last of those before. `breaks` says
    /// whether iteration `k` of these was the last that could be computed; one that converges may be.
    pub fn judge(
        &mut self,
        squares: &[f64],
        breaks: impl Fn(usize) -> Option<LinearReason>,
    ) -> Option<LinearReason> {
        let first = *self.first.get_or_insert(squares.first().copied().unwrap_or(f64::NAN));
        let options = self.options;
        let limit = (options.relative.powi(2) * first).max(options.absolute.powi(2));
        for (k, square) in squares.iter().enumerate() {
            if k > 0 || self.residuals.is_empty() {
                self.residuals.push(square.sqrt());
                if !square.is_finite() {
                    return Some(LinearReason::NotFinite);
                }
                if *square > options.divergence.powi(2) * first {
                    return Some(LinearReason::Diverged);
                }
                if *square <= limit {
                    return Some(LinearReason::Converged);
                }
                if self.residuals.len() > options.max_iterations {
                    return Some(LinearReason::TooMany);
                }
            }
            let converges = squares.get(k + 1).is_none_or(|next| *next <= limit);
            if let (false, Some(reason)) = (converges, breaks(k.min(squares.len().saturating_sub(2)))) {
                return Some(reason);
            }
        }
        None
    }
}
