//! The operator with prescribed values, and conjugate gradients.

use crate::error::BenchmarkError;
use crate::operator::Operator;
use crate::problem::Problem;
use crate::vectors::{Vectors, download, upload};
use kingpost::Mapping;
use kingpost::forms::tabulated::Precision;
use kingpost::runtime::{Buffer, Device};
use kingpost::solve::{Call, run};
use std::time::Instant;

/// Iterations that are one list of launches.
const AT_ONCE: usize = 1000;

/// What is computed again and again, and how long that takes by the wall clock.
pub struct Timed {
    /// The result.
    pub result: Vec<f64>,
    /// Seconds of all repetitions.
    pub seconds: f64,
}

/// A problem on a device.
pub struct System<'d> {
    device: &'d dyn Device,
    precision: Precision,
    n: usize,
    free: usize,
    /// The operator without prescribed values.
    pub operator: Operator,
    vectors: Vectors,
    /// Values that are prescribed, while they are not in their places.
    kept: Buffer,
}

impl<'d> System<'d> {
    /// Compiles everything and uploads what is read of the mesh.
    ///
    /// # Errors
    /// As [`Operator::new`].
    pub fn new(
        device: &'d dyn Device,
        problem: &Problem,
        mapping: Option<Mapping>,
    ) -> Result<Self, BenchmarkError> {
        let discretisation = &problem.discretisation;
        let precision = discretisation.precision;
        let (n, free) = (problem.n_dofs(), problem.free);
        let form = (&discretisation.stiffness_action(), "stiffness");
        // a buffer has a byte at least
        let bytes = (precision.ty().bytes() * (n - free) as u64).max(1);
        Ok(Self {
            device,
            precision,
            n,
            free,
            operator: Operator::new(device, form, mapping, precision, problem.memory())?,
            vectors: Vectors::new(device, precision)?,
            kept: device.allocate(bytes)?,
        })
    }

    /// The right-hand side, zero on the boundary.
    ///
    /// # Errors
    /// As [`Operator::new`].
    pub fn load(&self, problem: &Problem) -> Result<Vec<f64>, BenchmarkError> {
        let form = (&problem.discretisation.load(), "load");
        let load = Operator::new(self.device, form, None, self.precision, problem.memory())?;
        let (f, b) = (self.vector(&problem.source())?, self.vector(&vec![0.0; self.n])?);
        let mut calls = Vec::new();
        load.add_to(&f, &b, &mut calls);
        run(self.device, &calls)?;
        let mut b = self.values(&b)?;
        b[self.free..].fill(0.0);
        Ok(b)
    }

    fn vector(&self, values: &[f64]) -> Result<Buffer, BenchmarkError> {
        Ok(upload(self.device, self.precision, values)?)
    }

    fn values(&self, buffer: &Buffer) -> Result<Vec<f64>, BenchmarkError> {
        Ok(download(self.device, self.precision, buffer)?)
    }

    fn sizes(&self) -> [(&'static str, usize); 2] {
        [("n_free", self.free), ("n_dofs", self.n)]
    }

    /// Applies the operator to `u` a number of times; rows and columns of prescribed unknowns are those of the
    /// identity.
    ///
    /// # Errors
    /// A failing driver.
    pub fn apply(&self, u: &[f64], repetitions: usize) -> Result<Timed, BenchmarkError> {
        let (u, y) = (self.vector(u)?, self.vector(&vec![f64::NAN; self.n])?);
        let Vectors { clear, hold, put_back, .. } = &self.vectors;
        let (sizes, kept) = (self.sizes(), &self.kept);
        let mut calls = vec![
            Call::of(clear, &[("n", self.n)], &[("v", &y)]),
            Call::of(hold, &sizes, &[("u", &u), ("kept", kept)]),
        ];
        self.operator.add_to(&u, &y, &mut calls);
        calls.push(Call::of(put_back, &sizes, &[("kept", kept), ("u", &u), ("y", &y)]));
        let start = Instant::now();
        for _ in 0..repetitions {
            run(self.device, &calls)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Timed { result: self.values(&y)?, seconds })
    }

    /// Solves for `b`, which is zero on the boundary, from zero, by a number of iterations.
    ///
    /// # Errors
    /// A failing driver, a residual that is zero too early.
    pub fn solve(&self, b: &[f64], iterations: usize) -> Result<Timed, BenchmarkError> {
        let zeros = vec![0.0; self.n];
        let [r, p, x, q] = [self.vector(b)?, self.vector(b)?, self.vector(&zeros)?, self.vector(&zeros)?];
        let sums = || self.device.allocate(8 * (iterations as u64 + 1));
        let [rr, pq] = [sums()?, sums()?];
        [&rr, &pq].into_iter().try_for_each(|sums| self.device.fill(sums, 0))?;
        let Vectors { dot, residual, direction, .. } = &self.vectors;
        let sizes = |k: usize| [&self.sizes()[..], &[("n_sums", iterations + 1), ("k", k)]].concat();
        let start = Instant::now();
        run(self.device, &[Call::of(dot, &sizes(0), &[("v", &r), ("w", &r), ("sums", &rr)])])?;
        for first in (0..iterations).step_by(AT_ONCE) {
            let mut calls = Vec::new();
            for k in first..iterations.min(first + AT_ONCE) {
                let sizes = sizes(k);
                self.operator.add_to(&p, &q, &mut calls);
                calls.push(Call::of(dot, &sizes, &[("v", &p), ("w", &q), ("sums", &pq)]));
                calls.push(Call::of(residual, &sizes, &[("pq", &pq), ("q", &q), ("r", &r), ("rr", &rr)]));
                let arrays = [("rr", &rr), ("pq", &pq), ("r", &r), ("x", &x), ("p", &p), ("q", &q)];
                calls.push(Call::of(direction, &sizes, &arrays));
            }
            run(self.device, &calls)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let result = self.values(&x)?;
        if result.iter().any(|x| !x.is_finite()) {
            return Err(BenchmarkError::Spent { iterations, free: self.free });
        }
        Ok(Timed { result, seconds })
    }
}
