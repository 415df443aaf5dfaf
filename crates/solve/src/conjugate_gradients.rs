//! Conjugate gradients with Jacobi's preconditioner, in four kernels an iteration.

use crate::texts::{compiled, text};
use crate::{Call, LinearReason, LinearReport, Operator, SolveError, run};
use purlin_runtime::{Buffer, Device, Executable, download_values};

/// When a linear solver stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearOptions {
    /// Norm of the residual that is small enough, relative to that of the right-hand side.
    pub relative: f64,
    /// Norm of the residual that is small enough in any case.
    pub absolute: f64,
    /// Iterations that are allowed.
    pub max_iterations: usize,
    /// Growth of the residual, relative to the right-hand side, that is allowed.
    pub divergence: f64,
    /// Iterations between two looks of the host at the residuals; at least 1. Those behind
    /// convergence change nothing.
    pub look_every: usize,
}

impl Default for LinearOptions {
    /// The tolerance of Trotter et al. 2023, §4.5.
    fn default() -> Self {
        Self { relative: 1e-5, absolute: 0.0, max_iterations: 100_000, divergence: 1e5, look_every: 16 }
    }
}

/// Conjugate gradients for symmetric positive definite operators.
///
/// Lengths of steps are computed on the device from sums that stay there. From an iteration on whose
/// residual is small enough the kernels change nothing, so that the host may look at residuals
/// now and then only: `look_every` at once, and as many curvatures, 16 bytes an iteration.
///
/// # Source
/// Hestenes & Stiefel 1952; fused as in Świrydowicz et al. 2019 and Fischer et al. 2020.
pub struct ConjugateGradients<'d> {
    device: &'d dyn Device,
    n: usize,
    options: LinearOptions,
    start: Executable,
    limit: Executable,
    dot: Executable,
    update: Executable,
    direction: Executable,
    turn: Executable,
    r: Buffer,
    p: Buffer,
    q: Buffer,
    /// Squares of the residual in the norm of the preconditioner.
    rz: Buffer,
    /// Squares of the residual.
    rr: Buffer,
    /// Squares of the direction in the norm of the operator.
    pq: Buffer,
    enough: Buffer,
}

impl<'d> ConjugateGradients<'d> {
    /// Compiles the kernels and allocates three vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: LinearOptions) -> Result<Self, SolveError> {
        let options = LinearOptions { look_every: options.look_every.max(1), ..options };
        let vector = || device.allocate(8 * n as u64);
        let sums = || device.allocate(8 * (options.look_every as u64 + 1));
        Ok(Self {
            device,
            n,
            options,
            start: compiled(device, text!("cg_start"))?,
            limit: compiled(device, text!("cg_limit"))?,
            dot: compiled(device, text!("dot"))?,
            update: compiled(device, text!("cg_update"))?,
            direction: compiled(device, text!("cg_direction"))?,
            turn: compiled(device, text!("cg_turn"))?,
            r: vector()?,
            p: vector()?,
            q: vector()?,
            rz: sums()?,
            rr: sums()?,
            pq: sums()?,
            enough: device.allocate(8)?,
        })
    }

    /// Solves `A x = b` from a start of zero, with the inverse of A's diagonal (or ones) as the
    /// preconditioner.
    ///
    /// Where a direction has no positive curvature, `x` is the solution before it, or the direction if
    /// it is the first: of an energy, either descends (Steihaug 1983).
    ///
    /// # Errors
    /// An operator of another size, a failing driver. That it does not converge is in the report.
    pub fn solve(
        &self,
        operator: &dyn Operator,
        inverse: &Buffer,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        if operator.size() != self.n {
            let (found, needed) = (operator.size(), self.n);
            return Err(SolveError::Length { what: "operator", found, needed });
        }
        let mut report = LinearReport { reason: LinearReason::TooMany, residuals: Vec::new(), seconds: 0.0 };
        self.device.copy(b, &self.r)?;
        for sums in [&self.rz, &self.rr, &self.pq] {
            self.device.fill(sums, 0)?;
        }
        report.seconds += run(self.device, &self.started(inverse, x))?;
        let mut first = None;
        loop {
            let mut calls = Vec::with_capacity(4 * self.options.look_every);
            for k in 0..self.options.look_every {
                self.iteration(k, operator, inverse, x, &mut calls);
            }
            report.seconds += run(self.device, &calls)?;
            let squares: Vec<f64> = download_values(self.device, &self.rr)?;
            let curvatures: Vec<f64> = download_values(self.device, &self.pq)?;
            let first = *first.get_or_insert(squares.first().copied().unwrap_or(f64::NAN));
            if let Some(reason) = self.judge(first, &squares, &curvatures, &mut report.residuals) {
                if reason == LinearReason::Indefinite && report.iterations() == 0 {
                    self.device.copy(&self.p, x)?;
                }
                report.reason = reason;
                return Ok(report);
            }
            report.seconds += run(self.device, &[self.turned()])?;
        }
    }

    fn n_sums(&self) -> usize {
        self.options.look_every + 1
    }

    fn started<'a>(&'a self, inverse: &'a Buffer, x: &'a Buffer) -> [Call<'a>; 2] {
        let Self { r, p, rz, rr, enough, .. } = self;
        let arrays = [("inverse", inverse), ("r", r), ("x", x), ("p", p), ("rz", rz), ("rr", rr)];
        let start = Call::of(&self.start, &[("n", self.n), ("n_sums", self.n_sums())], &arrays);
        let limit = Call::of(&self.limit, &[("n_sums", self.n_sums())], &[("rr", rr), ("limit", enough)])
            .with("relative", self.options.relative.powi(2))
            .with("absolute", self.options.absolute.powi(2));
        [start, limit]
    }

    fn iteration<'a>(
        &'a self,
        k: usize,
        operator: &'a dyn Operator,
        inverse: &'a Buffer,
        x: &'a Buffer,
        calls: &mut Vec<Call<'a>>,
    ) {
        let Self { r, p, q, rz, rr, pq, enough, .. } = self;
        let sizes = [("n", self.n), ("n_sums", self.n_sums()), ("k", k)];
        operator.apply(p, q, calls);
        calls.push(Call::of(&self.dot, &sizes, &[("v", p), ("w", q), ("sums", pq)]));
        let [limit, inverse] = [("limit", enough), ("inverse", inverse)];
        let update =
            [limit, ("pq", pq), inverse, ("p", p), ("q", q), ("x", x), ("r", r), ("rz", rz), ("rr", rr)];
        calls.push(Call::of(&self.update, &sizes, &update));
        let direction = [limit, ("pq", pq), ("rr", rr), ("rz", rz), inverse, ("r", r), ("p", p)];
        calls.push(Call::of(&self.direction, &sizes, &direction));
    }

    fn turned(&self) -> Call<'_> {
        let sums = [("rz", &self.rz), ("rr", &self.rr), ("pq", &self.pq)];
        Call::of(&self.turn, &[("n_sums", self.n_sums())], &sums)
    }

    /// Adds the norms of residuals up to the one that ends the iterations, and says why it does.
    /// `first` is the first square of all, from which the device has its limit.
    fn judge(
        &self,
        first: f64,
        squares: &[f64],
        curvatures: &[f64],
        residuals: &mut Vec<f64>,
    ) -> Option<LinearReason> {
        let Self { options, .. } = self;
        let limit = (options.relative.powi(2) * first).max(options.absolute.powi(2));
        for (k, square) in squares.iter().enumerate() {
            // the first of later sums is the last of those before
            if k > 0 || residuals.is_empty() {
                residuals.push(square.sqrt());
                if !square.is_finite() {
                    return Some(LinearReason::NotFinite);
                }
                if *square > options.divergence.powi(2) * first {
                    return Some(LinearReason::Diverged);
                }
                if *square <= limit {
                    return Some(LinearReason::Converged);
                }
                if residuals.len() > options.max_iterations {
                    return Some(LinearReason::TooMany);
                }
            }
            if k + 1 < squares.len() && curvatures.get(k).is_some_and(|pq| *pq <= 0.0) {
                return Some(LinearReason::Indefinite);
            }
        }
        None
    }
}
