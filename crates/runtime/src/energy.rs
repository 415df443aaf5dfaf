//! The energy of a run, by the counter of its device.

use crate::device::{Device, Prepared};
use crate::error::RuntimeError;
use std::sync::Arc;
use std::time::Instant;

/// Runs between two readings of the counter take about this long, in seconds: less than the time between two of its
/// steps, of which a card has some ten a second.
const BETWEEN_READINGS_S: f64 = 5e-3;

/// Maximum number of runs between two readings.
const MAX_RUNS: usize = 256;

/// A counter that stands still for so long counts nothing, in seconds.
const PATIENCE_S: f64 = 2.0;

/// Joules that the whole device takes in one run of some launches, of runs without a gap between them: those between
/// two steps of its counter, at least `seconds` apart. None if the device has no counter, or if it stands still.
///
/// Updates accumulate from run to run, as in [`Device::time`].
///
/// # Errors
/// As [`Device::record`] and [`Device::rerun`].
pub fn joules_of_a_run(
    device: &dyn Device,
    launches: &[Arc<Prepared<'_>>],
    seconds: f64,
) -> Result<Option<f64>, RuntimeError> {
    if device.joules().is_none() {
        return Ok(None);
    }
    let once = device.rerun(&device.record(launches)?)?;
    let runs = ((BETWEEN_READINGS_S / once).ceil() as usize).clamp(1, MAX_RUNS);
    let batch: Vec<_> = std::iter::repeat_n(launches, runs).flatten().cloned().collect();
    let recorded = device.record(&batch)?;
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let joules = between_steps(seconds, clock, || device.joules(), || device.rerun(&recorded).map(drop))?;
    Ok(joules.map(|joules| joules / runs as f64))
}

/// Joules of one batch, from a step of the counter to another one at least `seconds` later.
fn between_steps<E>(
    seconds: f64,
    clock: impl Fn() -> f64,
    counter: impl Fn() -> Option<f64>,
    mut batch: impl FnMut() -> Result<(), E>,
) -> Result<Option<f64>, E> {
    // the first step only says when the counting begins
    let mut step = |at_least: f64, from: f64| {
        let started = clock();
        let (mut batches, mut last) = (0, from);
        loop {
            batch()?;
            batches += 1;
            let Some(now) = counter() else { return Ok(None) };
            let elapsed = clock() - started;
            if now != last && elapsed >= at_least {
                return Ok(Some((batches, now)));
            }
            if now == last && elapsed > at_least + PATIENCE_S {
                return Ok(None);
            }
            last = now;
        }
    };
    let Some(before) = counter() else { return Ok(None) };
    let Some((_, begin)) = step(0.0, before)? else { return Ok(None) };
    let Some((batches, end)) = step(seconds, begin)? else { return Ok(None) };
    Ok(Some((end - begin) / f64::from(batches)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Joules of a batch of a device of 700 W whose counter steps every so often, as they are found.
    fn found(batch_s: f64, step_s: f64) -> Option<f64> {
        let time = Cell::new(0.013);
        let counter = || Some((time.get() / step_s).floor() * step_s * 700.0);
        between_steps(
            0.5,
            || time.get(),
            counter,
            || {
                time.set(time.get() + batch_s);
                Ok::<_, ()>(())
            },
        )
        .unwrap()
    }

    #[test]
    fn steps_of_the_counter_bound_the_runs_that_count() {
        for (batch_s, step_s) in [(5e-3, 0.1), (5e-3, 0.02), (4.1e-3, 0.07), (0.03, 0.02), (0.2, 0.1)] {
            let joules = found(batch_s, step_s).unwrap();
            let error = (joules / (700.0 * batch_s) - 1.0).abs();
            // a reading is late by less than a batch, or a step of the counter
            assert!(error < 2.0 * f64::min(batch_s, step_s) / 0.5, "{batch_s} {step_s}: {error}");
        }
    }

    #[test]
    fn a_counter_that_stands_still_counts_nothing() {
        assert_eq!(found(5e-3, 1e9), None);
        let nothing = between_steps(0.5, || 0.0, || None, || Ok::<_, ()>(()));
        assert_eq!(nothing.unwrap(), None);
    }
}
