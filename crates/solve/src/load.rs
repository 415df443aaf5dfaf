//! Load steps: a nonlinear problem solved under part of its load, and from there under more of it.

use crate::iteration::{Load, NewtonEquations, iterate};
use crate::{LinearReason, NewtonOptions, NewtonReason, NewtonReport, NewtonStep, SolveError};
use std::time::Instant;

/// Where load steps stand.
struct Path {
    /// The longest step and the shortest one.
    longest: f64,
    shortest: f64,
    /// The next one.
    step: f64,
    /// The part of the load that was solved for.
    reached: f64,
}

impl Path {
    fn new(options: NewtonOptions) -> Self {
        let longest = 1.0 / options.load_steps.max(1) as f64;
        let shortest = longest * 0.5_f64.powi(options.max_cutbacks.min(52) as i32);
        Self { longest, shortest, step: longest, reached: 0.0 }
    }

    fn next(&self) -> Load {
        let target = self.reached + self.step;
        // sums of steps are rounded
        let target = if target > 1.0 - self.shortest / 2.0 { 1.0 } else { target };
        Load { target, moved: self.reached }
    }

    /// The next step after one that converged: as long as it was, or longer where it was not
    /// shortened.
    fn succeed(&mut self, asked: f64, reached: f64) {
        let done = reached - self.reached;
        let step = if reached < asked { done } else { 2.0 * self.step };
        self.step = step.clamp(self.shortest, self.longest);
        self.reached = reached;
    }

    /// Whether a step that failed may be tried again, half as long.
    fn cut_back(&mut self) -> bool {
        self.step /= 2.0;
        // halvings are exact
        self.step >= self.shortest
    }
}

/// Whether less of the load may help.
const fn depends_on_load(reason: NewtonReason) -> bool {
    match reason {
        NewtonReason::LineSearch
        | NewtonReason::Linear(LinearReason::Indefinite | LinearReason::NotFinite) => true,
        // the limit is the caller's
        NewtonReason::TooMany => false,
        NewtonReason::Converged | NewtonReason::NotFinite => false,
        NewtonReason::Linear(
            LinearReason::Converged
            | LinearReason::TooMany
            | LinearReason::Diverged
            | LinearReason::Stagnated
            | LinearReason::Breakdown,
        ) => false,
    }
}

/// Newton's method under more and more of the load.
pub(crate) fn follow(
    options: NewtonOptions,
    at: &mut dyn NewtonEquations,
    progress: &mut dyn FnMut(usize, &NewtonStep),
) -> Result<NewtonReport, SolveError> {
    let started = Instant::now();
    let residual = at.evaluate()?;
    let reason = NewtonReason::NotFinite;
    let mut report = NewtonReport { reason, steps: Vec::new(), residual, load: 0.0, seconds: 0.0 };
    if !residual.is_finite() {
        return Ok(report);
    }
    let options = match options.linear {
        true => NewtonOptions { load_steps: 1, max_cutbacks: 0, ..options },
        false => options,
    };
    at.keep_loads()?;
    let mut path = Path::new(options);
    // steps may be shortened again and again
    let most = options.load_steps.max(1).saturating_mul(2 << options.max_cutbacks.min(16));
    for _ in 0..most {
        at.keep()?;
        let load = path.next();
        let step = iterate(options, load, at, &mut report.steps, progress)?;
        (report.reason, report.residual) = (step.reason, step.residual);
        if step.reason == NewtonReason::Converged {
            path.succeed(load.target(), step.load);
            if path.reached >= 1.0 {
                break;
            }
            // unless the last of them converges
            report.reason = NewtonReason::TooMany;
        } else if depends_on_load(step.reason) && path.cut_back() {
            at.take_back()?;
        } else {
            break;
        }
    }
    report.load = path.reached;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::LinearReport;

    /// A bar whose end goes to one and takes its middle along; the system is indefinite where the
    /// end has gone too far in a load step.
    struct Bar {
        limit: f64,
        load: Load,
        end: f64,
        middle: f64,
        kept: [f64; 2],
        update: [f64; 2],
        returns: usize,
    }

    impl NewtonEquations for Bar {
        fn evaluate(&mut self) -> Result<f64, SolveError> {
            Ok((self.end - 2.0 * self.middle).abs())
        }

        fn energy(&mut self) -> Result<Option<f64>, SolveError> {
            Ok(None)
        }

        fn has_energy(&self) -> bool {
            false
        }

        fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError> {
            let went = (self.end - self.kept[0]).abs();
            let reason = if went > self.limit { LinearReason::Indefinite } else { LinearReason::Converged };
            let gap = self.load.gap() * (1.0 - self.end);
            self.update = [gap, (self.end + gap) / 2.0 - self.middle];
            Ok((0.0, 0.0, LinearReport { reason, residuals: vec![1.0, 0.0], seconds: 0.0 }))
        }

        fn update_norm(&mut self) -> Result<f64, SolveError> {
            Ok(self.update[0].hypot(self.update[1]))
        }

        fn slope(&mut self) -> Result<f64, SolveError> {
            Ok(0.0)
        }

        fn advance(&mut self, length: f64) -> Result<(), SolveError> {
            self.end += length * self.update[0];
            self.middle += length * self.update[1];
            Ok(())
        }

        fn set_load(&mut self, load: Load) {
            self.load = load;
        }

        fn keep_loads(&mut self) -> Result<(), SolveError> {
            Ok(())
        }

        fn keep(&mut self) -> Result<(), SolveError> {
            self.kept = [self.end, self.middle];
            Ok(())
        }

        fn take_back(&mut self) -> Result<(), SolveError> {
            [self.end, self.middle] = self.kept;
            self.returns += 1;
            Ok(())
        }
    }

    fn pulled(limit: f64, options: NewtonOptions) -> (Bar, NewtonReport, Vec<f64>) {
        let [end, middle] = [0.0; 2];
        let (load, kept, update, returns) = (Load::WHOLE, [0.0; 2], [0.0; 2], 0);
        let mut bar = Bar { limit, load, end, middle, kept, update, returns };
        let report = follow(options, &mut bar, &mut |_, _| ()).unwrap();
        let mut loads: Vec<f64> = report.steps.iter().map(|step| step.load).collect();
        loads.dedup();
        (bar, report, loads)
    }

    #[test]
    fn a_load_step_that_fails_starts_again_half_as_long() {
        let options = NewtonOptions::default();
        let (bar, report, loads) = pulled(0.3, options);
        assert!(report.converged() && report.load == 1.0, "{report:?}");
        assert_eq!((bar.end, bar.middle), (1.0, 0.5));
        // each step that went well is followed by one that is twice as long
        assert_eq!(loads, [1.0, 0.5, 0.25, 0.75, 0.5, 1.0, 0.75, 1.0]);
        assert_eq!(bar.returns, 4);
        assert_eq!(report.load_steps(), loads.len());

        let (bar, report, loads) = pulled(0.3, NewtonOptions { load_steps: 4, ..options });
        assert!(report.converged() && bar.returns == 0, "{report:?}");
        assert_eq!(loads, [0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn load_steps_that_fail_have_a_shortest_one() {
        let options = NewtonOptions { max_cutbacks: 2, ..NewtonOptions::default() };
        let (bar, report, loads) = pulled(0.1, options);
        assert_eq!(report.reason, NewtonReason::Linear(LinearReason::Indefinite));
        assert_eq!((loads, report.load, bar.returns), (vec![1.0, 0.5, 0.25], 0.0, 2));
        let (bar, report, loads) = pulled(0.1, NewtonOptions { max_cutbacks: 0, ..options });
        assert_eq!((loads, report.load, bar.returns), (vec![1.0], 0.0, 0));
    }

    #[test]
    fn steps_that_fail_are_halved_and_grow_again() {
        let mut path =
            Path::new(NewtonOptions { load_steps: 2, max_cutbacks: 2, ..NewtonOptions::default() });
        assert_eq!(path.next(), Load { target: 0.5, moved: 0.0 });
        assert!(path.cut_back());
        path.succeed(0.25, 0.25);
        // as long as at the start again
        assert_eq!(path.next(), Load { target: 0.75, moved: 0.25 });
        // shortened by a cell that would turn inside out
        path.succeed(0.75, 0.5);
        assert_eq!(path.next(), Load { target: 0.75, moved: 0.5 });
        assert!(path.cut_back() && !path.cut_back());
    }

    #[test]
    fn gaps_are_closed_in_parts() {
        let load = Load { target: 0.5, moved: 0.0 };
        assert_eq!((load.gap(), load.missing()), (0.5, 0.5));
        let half = load.moved(0.5);
        assert_eq!((half.target(), half.gap()), (0.25, 0.0));
        // three quarters of the way are left
        assert_eq!(Load { target: 0.5, ..half }.gap(), 0.25 / 0.75);
        assert_eq!(load.moved(1.0).target(), 0.5);
        assert_eq!(Load::WHOLE.moved(1.0).gap(), 1.0);
    }
}
