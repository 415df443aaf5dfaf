//! Conjugate gradients over parts.

use super::communicator::Guard;
use super::{Communicator, Halo, PartMatrix};
use crate::history::History;
use crate::{ConjugateGradients, LinearReason, LinearReport, Operator, Preconditioning, SolveError};
use purlin_runtime::Buffer;
use std::time::Instant;

/// A part of a linear system, as its thread has it.
#[derive(Clone, Copy)]
pub struct PartSystem<'a> {
    /// Its rows.
    pub matrix: &'a PartMatrix,
    /// What it exchanges.
    pub halo: &'a Halo,
    /// With whom.
    pub communicator: &'a dyn Communicator,
    /// What is near the inverse of its own rows and columns.
    pub preconditioning: Preconditioning<'a>,
    /// Whether products with owned columns run while ghosts are under way.
    pub overlaps: bool,
}

impl ConjugateGradients<'_> {
    /// Solves `A x = b` from a start of zero together with the threads of the other parts, each of which
    /// calls this with its own part: `b` and `x` have the owned unknowns. As
    /// [`ConjugateGradients::solve`], with the same iterations up to the order in which numbers are added.
    /// Seconds of the report are by the wall clock.
    ///
    /// # Errors
    /// A matrix of another size, a failing driver, a part that ended. The other parts end likewise.
    pub fn solve_part(
        &self,
        system: &PartSystem<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let communicator = system.communicator;
        let mut guard = Guard::new(communicator);
        let found = system.matrix.own().size();
        if found != self.n {
            return Err(SolveError::Length { what: "operator", found, needed: self.n });
        }
        let start = Instant::now();
        self.reset(b)?;
        communicator.run(&self.first(system.preconditioning, x))?;
        communicator.sum(&[&self.rz, &self.rr], 0)?;
        communicator.run(&[self.limit()])?;
        let mut history = History::new(self.options);
        let reason = loop {
            let count = history.next();
            for k in 0..count {
                self.part_iteration(k, system, x)?;
            }
            communicator.wait()?;
            let sums = self.sums()?;
            let reason = history.judge(&sums.rr[..=count], |k| {
                // the negation takes no number for an answer
                let definite = sums.pq[k] > 0.0 && sums.rz[k] > 0.0;
                (!definite).then_some(LinearReason::Indefinite)
            });
            if let Some(reason) = reason {
                break reason;
            }
            communicator.run(&[self.turned()])?;
        };
        guard.is_done = true;
        if reason == LinearReason::Indefinite && history.residuals.len() == 1 {
            self.device.copy(&self.p, x)?;
        }
        Ok(LinearReport { reason, residuals: history.residuals, seconds: start.elapsed().as_secs_f64() })
    }

    fn part_iteration(&self, k: usize, system: &PartSystem<'_>, x: &Buffer) -> Result<(), SolveError> {
        let PartSystem { matrix, halo, communicator, preconditioning, overlaps } = *system;
        communicator.run(&[halo.pack(&self.p)])?;
        communicator.start_exchange(halo.wire())?;
        if !overlaps {
            communicator.finish_exchange(halo.wire())?;
        }
        let mut calls = Vec::new();
        matrix.own().apply(&self.p, &self.q, &mut calls);
        communicator.run(&calls)?;
        if overlaps {
            communicator.finish_exchange(halo.wire())?;
        }
        communicator.run(&[matrix.add_ghosts(halo, &self.q), self.curvature(k)])?;
        communicator.sum(&[&self.pq], k)?;
        let mut calls = Vec::new();
        self.improve(k, preconditioning, x, &mut calls);
        communicator.run(&calls)?;
        communicator.sum(&[&self.rz, &self.rr], k + 1)?;
        communicator.run(&[self.turn_direction(k, preconditioning)])
    }
}
