//! The generalised minimal residual method over parts.

use super::Communicator;
use super::communicator::Guard;
use crate::gmres::LeastSquares;
use crate::texts::{compiled, text};
use crate::{Call, GmresOptions, LinearReason, LinearReport, SolveError, Vectors};
use purlin_runtime::{Buffer, Device, Executable, download_values};
use std::ops::Range;
use std::time::Instant;

/// What the parts make of their vectors together: each calls it with its own.
pub trait PartOperator {
    /// `y` of `x`, both of which hold what a part owns and what it has of others.
    ///
    /// # Errors
    /// A part that ended, a failing driver.
    fn apply(&self, communicator: &dyn Communicator, x: &Buffer, y: &Buffer) -> Result<(), SolveError>;
}

/// GMRES with a preconditioner on the right, for vectors that are divided among devices.
///
/// A vector of a part holds what it owns, which is a range of neighbours, among entries that other
/// parts own. Sums of entries are those of owned ones, over all parts; all else is done to every
/// entry, so that those of others stay as they are there, as far as operators bring them.
///
/// # Source
/// Saad 1993, Algorithm 2.2 (FGMRES).
pub struct PartGmres<'d> {
    device: &'d dyn Device,
    n: usize,
    owned: Range<usize>,
    options: GmresOptions,
    vectors: Vectors<'d>,
    clear: Executable,
    dot: Executable,
    square: Executable,
    remove: Executable,
    basis: Vec<Buffer>,
    directions: Vec<Buffer>,
    sums: Buffer,
}

impl<'d> PartGmres<'d> {
    /// Compiles the kernels for vectors of `n` numbers, of which a part owns some. The side of the
    /// options is not looked at: it is the right one.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(
        device: &'d dyn Device,
        n: usize,
        owned: Range<usize>,
        options: GmresOptions,
    ) -> Result<Self, SolveError> {
        let options = GmresOptions { restart: options.restart.max(1), ..options };
        Ok(Self {
            device,
            n,
            owned,
            options,
            vectors: Vectors::new(device, n)?,
            clear: compiled(device, text!("clear"))?,
            dot: compiled(device, text!("own_dot"))?,
            square: compiled(device, text!("own_square"))?,
            remove: compiled(device, text!("remove"))?,
            basis: Vec::new(),
            directions: Vec::new(),
            sums: device.allocate(8 * (options.restart as u64 + 1))?,
        })
    }

    /// Solves `A x = b` from a start of zero together with the threads of the other parts, each of
    /// which calls this with its own part. As [`Gmres::solve`](crate::Gmres::solve), with the same
    /// iterations up to the order in which numbers are added. Seconds of the report are by the wall
    /// clock.
    ///
    /// # Errors
    /// A failing driver, a part that ended. The other parts end likewise.
    pub fn solve(
        &mut self,
        communicator: &dyn Communicator,
        operator: &dyn PartOperator,
        preconditioner: &dyn PartOperator,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let mut guard = Guard::new(communicator);
        let start = Instant::now();
        self.need(1, 0)?;
        self.device.copy(b, &self.basis[0])?;
        communicator.run(&[Call::of(&self.clear, &[("n", self.n)], &[("v", x)])])?;
        let whole = self.norm(communicator)?;
        let limit = (self.options.relative * whole).max(self.options.absolute);
        let mut residuals = vec![whole];
        let reason = loop {
            let start = residuals.last().copied().unwrap_or(f64::NAN);
            if let Some(reason) = self.options.ended(&residuals, limit) {
                break reason;
            }
            let small = self.cycle(communicator, operator, preconditioner, limit, &mut residuals)?;
            let parts = small.solution().into_iter().zip(&self.directions);
            let calls: Vec<_> = parts.map(|(y, z)| self.vectors.axpy(y, z, x)).collect();
            communicator.run(&calls)?;
            let r = &self.basis[0];
            operator.apply(communicator, x, r)?;
            communicator.run(&[self.vectors.scale(-1.0, r), self.vectors.axpy(1.0, b, r)])?;
            let exact = self.norm(communicator)?;
            if let Some(last) = residuals.last_mut() {
                *last = exact;
            }
            if exact > limit && exact >= start {
                break LinearReason::Stagnated;
            }
        };
        guard.is_done = true;
        Ok(LinearReport { reason, residuals, seconds: start.elapsed().as_secs_f64() })
    }

    /// The norm of the first vector of the basis.
    fn norm(&self, communicator: &dyn Communicator) -> Result<f64, SolveError> {
        communicator.run(&[self.cleared_sums(), self.square(0, &self.basis[0])])?;
        communicator.sum(&[&self.sums], 0)?;
        let sums = self.read_sums(communicator)?;
        Ok(sums.first().copied().unwrap_or(f64::NAN).sqrt())
    }

    fn read_sums(&self, communicator: &dyn Communicator) -> Result<Vec<f64>, SolveError> {
        communicator.wait()?;
        Ok(download_values(self.device, &self.sums)?)
    }

    fn cleared_sums(&self) -> Call<'_> {
        Call::of(&self.clear, &[("n", self.options.restart + 1)], &[("v", &self.sums)])
    }

    fn sizes(&self, k: usize) -> [(&'static str, usize); 5] {
        let Self { owned, n, options, .. } = self;
        [("n", owned.len()), ("n_all", *n), ("first", owned.start), ("n_sums", options.restart + 1), ("k", k)]
    }

    fn square<'a>(&'a self, k: usize, v: &'a Buffer) -> Call<'a> {
        Call::of(&self.square, &self.sizes(k), &[("v", v), ("sums", &self.sums)])
    }

    fn need(&mut self, basis: usize, directions: usize) -> Result<(), SolveError> {
        while self.basis.len() < basis {
            self.basis.push(self.vectors.allocate()?);
        }
        while self.directions.len() < directions {
            self.directions.push(self.vectors.allocate()?);
        }
        Ok(())
    }

    /// Iterations up to a restart, from the residual in the first vector of the basis.
    fn cycle(
        &mut self,
        communicator: &dyn Communicator,
        operator: &dyn PartOperator,
        preconditioner: &dyn PartOperator,
        limit: f64,
        residuals: &mut Vec<f64>,
    ) -> Result<LeastSquares, SolveError> {
        let mut length = residuals.last().copied().unwrap_or(f64::NAN);
        let mut small = LeastSquares::new(length);
        for j in 0..self.options.restart {
            self.need(j + 2, j + 1)?;
            let v = &self.basis[j];
            communicator.run(&[self.vectors.scale(1.0 / length, v), self.cleared_sums()])?;
            preconditioner.apply(communicator, v, &self.directions[j])?;
            operator.apply(communicator, &self.directions[j], &self.basis[j + 1])?;
            self.orthogonalise(communicator, j)?;
            let sums = self.read_sums(communicator)?;
            let (rest, residual, is_whole) = small.take(&sums, j);
            length = rest;
            residuals.push(residual);
            if is_whole || self.options.ended(residuals, limit).is_some() {
                break;
            }
        }
        Ok(small)
    }

    /// Makes vector `j + 1` of the basis orthogonal to those before it; its products with them are
    /// the first sums, and the square of what is left is the last one.
    fn orthogonalise(&self, communicator: &dyn Communicator, j: usize) -> Result<(), SolveError> {
        let w = &self.basis[j + 1];
        for k in 0..=j {
            let v = &self.basis[k];
            let arrays = [("v", v), ("w", w), ("sums", &self.sums)];
            communicator.run(&[Call::of(&self.dot, &self.sizes(k), &arrays)])?;
            communicator.sum(&[&self.sums], k)?;
            let sizes = [("n", self.n), ("n_sums", self.options.restart + 1), ("k", k)];
            communicator.run(&[Call::of(&self.remove, &sizes, &arrays)])?;
        }
        communicator.run(&[self.square(j + 1, w)])?;
        communicator.sum(&[&self.sums], j + 1)
    }
}
