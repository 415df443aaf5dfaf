//! The operator with prescribed values, and conjugate gradients, on one device or several.

use crate::error::BenchmarkError;
use crate::part::{How, OfPart, Part};
use crate::problem::Problem;
use kingpost::runtime::Device;
use kingpost::solve::{Communicator, Exchange, SharedPart, SolveError, in_parts};

/// What is computed again and again, and how long that takes by the wall clock.
pub struct Timed {
    /// The result.
    pub result: Vec<f64>,
    /// Seconds of all repetitions, of the part that takes longest.
    pub seconds: f64,
    /// Seconds of two repetitions before: cards connect in the first one, and record the second one.
    pub turns: [f64; 2],
}

/// A problem on its devices.
pub struct System<'d> {
    n: usize,
    free: usize,
    /// One for each device.
    pub parts: Vec<Part<'d>>,
    communicators: Vec<Box<dyn Communicator + 'd>>,
}

/// Does something for each part, the first in the caller's thread and each other in one of its own.
fn each<I: Send, T: Send>(
    parts: impl Iterator<Item = I>,
    what: impl Fn(I) -> Result<T, BenchmarkError> + Sync,
) -> Result<Vec<T>, BenchmarkError> {
    let has_ended = |error: &_| matches!(error, BenchmarkError::Solve(SolveError::PartEnded { .. }));
    in_parts(parts, &what, &what, has_ended)
}

impl<'d> System<'d> {
    /// Divides the cells among devices, compiles everything and uploads what is read of the mesh.
    ///
    /// # Errors
    /// As [`Part::new`]; more devices than cells, cards that cannot exchange.
    pub fn new(devices: &[&'d dyn Device], problem: &Problem, how: &How<'_>) -> Result<Self, BenchmarkError> {
        let parts = problem.parts(devices.len())?;
        let communicators = Exchange::between(devices).communicators(devices)?;
        let numbered = parts.into_iter().zip(devices).enumerate();
        let of_part = |(rank, (part, device)): (usize, (SharedPart, &&'d dyn Device))| {
            Part::new(*device, problem, (rank, part), how)
        };
        let parts = each(numbered, of_part)?;
        Ok(Self { n: problem.n_dofs(), free: problem.free, parts, communicators })
    }

    /// Does something in all parts at once: the results of all, and the seconds of the longest.
    fn timed(
        &mut self,
        what: impl Fn(&Part<'d>, &dyn Communicator) -> Result<OfPart, BenchmarkError> + Sync,
    ) -> Result<Timed, BenchmarkError> {
        type WithCommunicator<'p, 'd> = (&'p mut Part<'d>, &'p mut Box<dyn Communicator + 'd>);
        let of_part = |(part, communicator): WithCommunicator<'_, 'd>| {
            let done = what(part, &**communicator);
            if done.is_err() {
                communicator.abandon();
            }
            done
        };
        let done = each(self.parts.iter_mut().zip(&mut self.communicators), of_part)?;
        let mut all = Timed { result: vec![f64::NAN; self.n], seconds: 0.0, turns: [0.0; 2] };
        for (part, OfPart { values, seconds, turns }) in self.parts.iter().zip(done) {
            all.seconds = all.seconds.max(seconds);
            all.turns.iter_mut().zip(turns).for_each(|(all, turn)| *all = all.max(turn));
            part.dofs().iter().zip(values).for_each(|(dof, value)| all.result[*dof as usize] = value);
        }
        Ok(all)
    }

    /// The right-hand side, zero on the boundary.
    ///
    /// # Errors
    /// As [`Part::new`].
    pub fn load(&mut self, problem: &Problem) -> Result<Vec<f64>, BenchmarkError> {
        let f = problem.source();
        let of_part = |part: &Part<'d>, communicator: &dyn Communicator| {
            Ok(OfPart { values: part.load(problem, &f, communicator)?, seconds: 0.0, turns: [0.0; 2] })
        };
        let mut b = self.timed(of_part)?.result;
        b[self.free..].fill(0.0);
        Ok(b)
    }

    /// Applies the operator to `u` a number of times; rows and columns of prescribed unknowns are those of the
    /// identity.
    ///
    /// # Errors
    /// A failing driver.
    pub fn apply(&mut self, u: &[f64], repetitions: usize) -> Result<Timed, BenchmarkError> {
        self.timed(|part, communicator| part.apply(u, repetitions, communicator))
    }

    /// Solves for `b`, which is zero on the boundary, from zero, by a number of iterations.
    ///
    /// # Errors
    /// A failing driver, a residual that is zero too early.
    pub fn solve(&mut self, b: &[f64], iterations: usize) -> Result<Timed, BenchmarkError> {
        let timed = self.timed(|part, communicator| part.solve(b, iterations, communicator))?;
        if timed.result.iter().any(|x| !x.is_finite()) {
            return Err(BenchmarkError::Spent { iterations, free: self.free });
        }
        Ok(timed)
    }
}
