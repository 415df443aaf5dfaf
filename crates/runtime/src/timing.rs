//! Repeated runs and their statistics.

use serde::{Deserialize, Serialize};

/// How often to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimingOptions {
    /// Runs that are not counted.
    pub warm_up: usize,
    /// Minimum number of counted runs.
    pub min_runs: usize,
    /// Minimum total time of the counted runs, in seconds.
    pub min_seconds: f64,
    /// Maximum number of counted runs, whatever their total time.
    pub max_runs: usize,
}

impl Default for TimingOptions {
    fn default() -> Self {
        Self { warm_up: 5, min_runs: 15, min_seconds: 0.2, max_runs: 10_000 }
    }
}

/// The times of repeated runs of one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Number of counted runs.
    pub runs: usize,
    /// Median, in seconds.
    pub median_s: f64,
    /// Shortest, in seconds.
    pub min_s: f64,
    /// Longest, in seconds.
    pub max_s: f64,
    /// Every counted run in the order they ran, in seconds.
    pub seconds: Vec<f64>,
}

impl Timing {
    /// Statistics of `seconds`, at least one run.
    fn of(seconds: Vec<f64>) -> Self {
        let mut sorted = seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let mid = sorted.len() / 2;
        let median_s = match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[mid],
            _ => 0.5 * (sorted[mid - 1] + sorted[mid]),
        };
        let (min_s, max_s) = (sorted.first().copied(), sorted.last().copied());
        Self {
            runs: seconds.len(),
            median_s,
            min_s: min_s.unwrap_or(f64::NAN),
            max_s: max_s.unwrap_or(f64::NAN),
            seconds,
        }
    }

    /// Runs `once`, which returns its seconds, as `options` say.
    ///
    /// # Errors
    /// The first failure of a run.
    pub fn sample<E>(options: &TimingOptions, mut once: impl FnMut() -> Result<f64, E>) -> Result<Self, E> {
        for _ in 0..options.warm_up {
            once()?;
        }
        let (mut seconds, mut total) = (Vec::new(), 0.0);
        let most = options.max_runs.max(1);
        while seconds.is_empty()
            || (seconds.len() < most && (seconds.len() < options.min_runs || total < options.min_seconds))
        {
            let s = once()?;
            total += s;
            seconds.push(s);
        }
        Ok(Self::of(seconds))
    }

    /// Spread of the runs: (longest - shortest) / median, dimensionless.
    pub fn spread(&self) -> f64 {
        (self.max_s - self.min_s) / self.median_s
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd_counts() {
        assert_eq!(Timing::of(vec![3.0, 1.0, 2.0]).median_s, 2.0);
        assert_eq!(Timing::of(vec![4.0, 1.0, 2.0, 3.0]).median_s, 2.5);
        assert_eq!(Timing::of(vec![4.0, 1.0, 2.0, 3.0]).spread(), 3.0 / 2.5);
    }

    #[test]
    fn runs_until_the_time_is_reached_or_the_limit() {
        let mut calls = 0;
        let options = TimingOptions { warm_up: 2, min_runs: 3, min_seconds: 1.0, max_runs: 100 };
        let timing = Timing::sample(&options, || {
            calls += 1;
            Ok::<_, ()>(0.125)
        })
        .unwrap();
        assert_eq!((timing.runs, calls), (8, 10));
        let capped = Timing::sample(&TimingOptions { max_runs: 5, ..options }, || Ok::<_, ()>(1e-9)).unwrap();
        assert_eq!(capped.runs, 5);
    }
}
