//! Full multigrid.

use crate::hierarchy::{Hierarchy, Which};
use crate::{Dimension, MultigridError, Order};

/// Why an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The residual is as small as was asked for.
    Converged,
    /// The residual is larger than at the start.
    Diverged,
    /// The residual is not a number.
    NotANumber,
    /// The residual no longer decreases: it is as small as roundings allow.
    Stagnated,
    /// As many iterations as were allowed.
    TooManyIterations,
}

/// How an iteration went.
#[derive(Clone, Debug, PartialEq)]
pub struct Convergence {
    /// Euclidean norms of the residual: before the first iteration, and after each.
    pub residuals: Vec<f64>,
    /// Why it ended.
    pub ended: Ended,
}

impl Convergence {
    /// The number of iterations.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.residuals.len() - 1
    }
}

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
    /// `tolerance` times the right-hand side, `most` of them at most.
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
    ) -> Result<Convergence, MultigridError> {
        let finest = self.levels() - 1;
        for (level, load) in loads.iter().enumerate() {
            self.set(level, Which::RightHandSide, load)?;
        }
        self.clear(0)?;
        self.v_cycle(0, Order::Forward)?;
        for level in 1..=finest {
            self.clear(level)?;
            self.prolongate(level)?;
            self.v_cycle(level, Order::Forward)?;
        }
        self.iterate(self.right_hand_side_norm(finest)?, tolerance, most)
    }

    /// V-cycles on the finest level until the residual is `tolerance` times `start`, at least one.
    fn iterate(&self, start: f64, tolerance: f64, most: usize) -> Result<Convergence, MultigridError> {
        let finest = self.levels() - 1;
        let mut residuals = vec![start];
        while residuals.len() <= most {
            self.v_cycle(finest, Order::Forward)?;
            let last = self.residual_norm(finest)?;
            let before = if residuals.len() > 1 { residuals.last().copied() } else { None };
            residuals.push(last);
            if let Some(ended) = judge(start, before, last, tolerance) {
                return Ok(Convergence { residuals, ended });
            }
        }
        Ok(Convergence { residuals, ended: Ended::TooManyIterations })
    }
}

fn judge(start: f64, before: Option<f64>, last: f64, tolerance: f64) -> Option<Ended> {
    if last.is_nan() {
        return Some(Ended::NotANumber);
    }
    if last <= tolerance * start {
        return Some(Ended::Converged);
    }
    if last > start {
        return Some(Ended::Diverged);
    }
    before.is_some_and(|before| last >= before).then_some(Ended::Stagnated)
}
