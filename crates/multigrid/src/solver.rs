//! Full multigrid.

use crate::hierarchy::{Hierarchy, Which};
use crate::{Dimension, MultigridError, Order};
use kingpost_solve::{LinearReason, LinearReport};

impl Hierarchy<'_> {
    /// The right-hand side of a source of 1 on a level.
    ///
    /// # Shapes and units
    /// [nodes], zero at the boundary.
    #[must_use]
    pub fn load(&self, level: usize) -> Vec<f64> {
        let line = self.line().load(self.cells(level));
        let products = |rest: &[f64]| -> Vec<f64> {
            line.iter().flat_map(|a| rest.iter().map(move |b| a * b)).collect()
        };
        match self.element().dimension {
            Dimension::Two => products(&line),
            Dimension::Three => products(&products(&line)),
        }
    }

    /// Solves for right-hand sides of all levels, the coarsest first, by full multigrid: one V-cycle
    /// on each level from the coarsest on, then V-cycles on the finest until the residual is
    /// `tolerance` times the right-hand side, `most` of them at most. The seconds of the report are those of
    /// the cycles.
    ///
    /// # Errors
    /// Vectors of another length, a failing driver. A residual that grows or is not a number is no
    /// error but a reason to end.
    ///
    /// # Source
    /// Cui et al. 2024, Algorithm 2.2.
    pub fn full_multigrid(
        &self,
        loads: &[Vec<f64>],
        tolerance: f64,
        most: usize,
    ) -> Result<LinearReport, MultigridError> {
        let finest = self.levels() - 1;
        for (level, load) in loads.iter().enumerate() {
            self.set(level, Which::RightHandSide, load)?;
        }
        self.clear(0)?;
        let mut seconds = self.v_cycle(0, Order::Forward)?;
        for level in 1..=finest {
            self.clear(level)?;
            self.prolongate(level)?;
            seconds += self.v_cycle(level, Order::Forward)?;
        }
        let report = self.iterate(self.right_hand_side_norm(finest)?, tolerance, most)?;
        Ok(LinearReport { seconds: seconds + report.seconds, ..report })
    }

    /// V-cycles on the finest level until the residual is `tolerance` times `start`, at least one.
    fn iterate(&self, start: f64, tolerance: f64, most: usize) -> Result<LinearReport, MultigridError> {
        let finest = self.levels() - 1;
        let (mut residuals, mut seconds) = (vec![start], 0.0);
        while residuals.len() <= most {
            seconds += self.v_cycle(finest, Order::Forward)?;
            let last = self.residual_norm(finest)?;
            let before = if residuals.len() > 1 { residuals.last().copied() } else { None };
            residuals.push(last);
            if let Some(reason) = judge(start, before, last, tolerance) {
                return Ok(LinearReport { reason, residuals, seconds });
            }
        }
        Ok(LinearReport { reason: LinearReason::TooMany, residuals, seconds })
    }
}

fn judge(start: f64, before: Option<f64>, last: f64, tolerance: f64) -> Option<LinearReason> {
    if !last.is_finite() {
        return Some(LinearReason::NotFinite);
    }
    if last <= tolerance * start {
        return Some(LinearReason::Converged);
    }
    if last > start {
        return Some(LinearReason::Diverged);
    }
    before.is_some_and(|before| last >= before).then_some(LinearReason::Stagnated)
}
