//! Stabilised biconjugate gradients, for operators without symmetry.

use crate::history::History;
use crate::texts::{compiled, text};
use crate::{
    Call, LinearMethod, LinearOptions, LinearReason, LinearReport, Operator, Queue, SolveError, Vectors, run,
};
use kingpost_runtime::{Buffer, Device, Executable, download_values};

/// Stabilised biconjugate gradients, preconditioned from the right.
///
/// An iteration takes two products and keeps six vectors, however many there were before. The lengths of
/// steps stay on the device; from a residual on that is small enough the kernels change nothing. The host
/// reads five numbers an iteration, [`LinearOptions::look_every`] iterations at once. The last residual
/// is computed from the solution: where the recurrence has drifted from it, the method starts again from
/// there.
///
/// # Source
/// van der Vorst 1992; Saad 2003, Algorithm 7.7.
pub struct BiCgStab<'d> {
    device: &'d dyn Device,
    n: usize,
    options: LinearOptions,
    vectors: Vectors<'d>,
    clear: Executable,
    limit: Executable,
    subtract: Executable,
    dot: Executable,
    half: Executable,
    dots: Executable,
    update: Executable,
    direction: Executable,
    turn: Executable,
    r: Buffer,
    shadow: Buffer,
    p: Buffer,
    v: Buffer,
    t: Buffer,
    /// Direction and residual, preconditioned.
    y: Buffer,
    z: Buffer,
    /// Products of the residual and its shadow, squares of the residual, products of the shadow and the
    /// image of the direction, and those of the image of the residual with the residual and itself.
    rho: Buffer,
    rr: Buffer,
    sv: Buffer,
    ts: Buffer,
    tt: Buffer,
    enough: Buffer,
}

impl<'d> BiCgStab<'d> {
    /// Compiles the kernels and allocates seven vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: LinearOptions) -> Result<Self, SolveError> {
        let options = options.of_residuals(LinearMethod::BiCgStab)?;
        let vectors = Vectors::new(device, n)?;
        let sums = || device.allocate(8 * (options.look_every as u64 + 1));
        Ok(Self {
            device,
            n,
            options,
            clear: compiled(device, text!("clear"))?,
            limit: compiled(device, text!("cg_limit"))?,
            subtract: compiled(device, text!("subtract"))?,
            dot: compiled(device, text!("dot"))?,
            half: compiled(device, text!("bicgstab_half"))?,
            dots: compiled(device, text!("bicgstab_dots"))?,
            update: compiled(device, text!("bicgstab_update"))?,
            direction: compiled(device, text!("bicgstab_direction"))?,
            turn: compiled(device, text!("bicgstab_turn"))?,
            r: vectors.allocate()?,
            shadow: vectors.allocate()?,
            p: vectors.allocate()?,
            v: vectors.allocate()?,
            t: vectors.allocate()?,
            y: vectors.allocate()?,
            z: vectors.allocate()?,
            rho: sums()?,
            rr: sums()?,
            sv: sums()?,
            ts: sums()?,
            tt: sums()?,
            enough: device.allocate(8)?,
            vectors,
        })
    }

    /// Takes another norm of the residual that is small enough in any case.
    pub(crate) fn set_absolute(&mut self, absolute: f64) {
        self.options.absolute = absolute;
    }

    /// Solves `A x = b` from a start of zero, with something near the inverse of `A`, which is linear.
    ///
    /// # Errors
    /// An operator of another size, a failing driver. That it does not converge is in the report.
    pub fn solve(
        &self,
        operator: &dyn Operator,
        preconditioner: &dyn Operator,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        for (what, part) in [("operator", operator), ("preconditioner", preconditioner)] {
            if part.size() != self.n {
                return Err(SolveError::Length { what, found: part.size(), needed: self.n });
            }
        }
        self.device.copy(b, &self.r)?;
        let mut seconds = run(self.device, &[Call::of(&self.clear, &[("n", self.n)], &[("v", x)])])?;
        let mut history = History::new(self.options);
        self.start(true, &mut seconds)?;
        let reason = loop {
            let reason = self.iterate(operator, preconditioner, x, &mut history, &mut seconds)?;
            if reason != LinearReason::Converged {
                break reason;
            }
            let before = history.residuals.last().copied().unwrap_or(f64::NAN);
            let exact = self.residual(operator, b, x, &mut seconds)?;
            if let Some(last) = history.residuals.last_mut() {
                *last = exact;
            }
            let start = history.residuals.first().copied().unwrap_or(f64::NAN);
            let limit = (self.options.relative * start).max(self.options.absolute);
            // roundings of the sums aside
            if exact <= limit * (1.0 + 1e-6) {
                break reason;
            }
            let stagnates = history.residuals.iter().rev().skip(1).any(|other| *other <= exact);
            if !exact.is_finite() || (before > 0.0 && stagnates) {
                break LinearReason::Stagnated;
            }
            if history.next() == 0 {
                break LinearReason::TooMany;
            }
            self.start(false, &mut seconds)?;
        };
        Ok(LinearReport { reason, residuals: history.residuals, seconds })
    }

    fn n_sums(&self) -> usize {
        self.options.look_every + 1
    }

    /// Direction and shadow are the residual; its square is the first sum, and at the `first` start it
    /// makes the limit.
    fn start(&self, first: bool, seconds: &mut f64) -> Result<(), SolveError> {
        for sums in [&self.rho, &self.rr, &self.sv, &self.ts, &self.tt] {
            self.device.fill(sums, 0)?;
        }
        self.device.copy(&self.r, &self.p)?;
        self.device.copy(&self.r, &self.shadow)?;
        let sizes = [("n", self.n), ("n_sums", self.n_sums()), ("k", 0)];
        let dot = |sums| Call::of(&self.dot, &sizes, &[("v", &self.r), ("w", &self.p), ("sums", sums)]);
        let mut calls = vec![dot(&self.rho), dot(&self.rr)];
        if first {
            let arrays = [("rr", &self.rr), ("limit", &self.enough)];
            let limit = Call::of(&self.limit, &sizes[1..], &arrays);
            let limit = limit.with("relative", self.options.relative.powi(2));
            calls.push(limit.with("absolute", self.options.absolute.powi(2)));
        }
        *seconds += run(self.device, &calls)?;
        Ok(())
    }

    /// Iterations until one ends them.
    fn iterate(
        &self,
        operator: &dyn Operator,
        preconditioner: &dyn Operator,
        x: &Buffer,
        history: &mut History,
        seconds: &mut f64,
    ) -> Result<LinearReason, SolveError> {
        loop {
            let count = history.next();
            let mut queue = Queue::new();
            for k in 0..count {
                self.iteration(k, operator, preconditioner, x, &mut queue);
            }
            *seconds += queue.run(self.device)?;
            let read = |sums| download_values::<f64>(self.device, sums);
            let [squares, rho, sv, ts, tt] =
                [read(&self.rr)?, read(&self.rho)?, read(&self.sv)?, read(&self.ts)?, read(&self.tt)?];
            let breaks = |k: usize| {
                let broken = rho[k] == 0.0 || sv[k] == 0.0 || ts[k] == 0.0 || tt[k] == 0.0;
                broken.then_some(LinearReason::Breakdown)
            };
            if let Some(reason) = history.judge(&squares[..=count], breaks) {
                return Ok(reason);
            }
            *seconds += run(self.device, &[self.turned()])?;
        }
    }

    fn iteration<'a>(
        &'a self,
        k: usize,
        operator: &'a dyn Operator,
        preconditioner: &'a dyn Operator,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        let Self { r, shadow, p, v, t, y, z, rho, rr, sv, ts, tt, enough, .. } = self;
        let sizes = [("n", self.n), ("n_sums", self.n_sums()), ("k", k)];
        preconditioner.apply(p, y, queue);
        operator.apply(y, v, queue);
        queue.push(Call::of(&self.dot, &sizes, &[("v", shadow), ("w", v), ("sums", sv)]));
        let half = [("limit", enough), ("rr", rr), ("rho", rho), ("sv", sv), ("v", v), ("r", r)];
        queue.push(Call::of(&self.half, &sizes, &half));
        preconditioner.apply(r, z, queue);
        operator.apply(z, t, queue);
        queue.push(Call::of(&self.dots, &sizes, &[("t", t), ("s", r), ("ts", ts), ("tt", tt)]));
        let sums = [("limit", enough), ("sv", sv), ("ts", ts), ("tt", tt), ("rho", rho), ("rr", rr)];
        let update = [("shadow", shadow), ("y", y), ("z", z), ("t", t), ("x", x), ("r", r)];
        let arrays: Vec<_> = sums.into_iter().chain(update).collect();
        queue.push(Call::of(&self.update, &sizes, &arrays));
        let arrays: Vec<_> = sums.into_iter().chain([("r", r), ("v", v), ("p", p)]).collect();
        queue.push(Call::of(&self.direction, &sizes, &arrays));
    }

    fn turned(&self) -> Call<'_> {
        let Self { rho, rr, sv, ts, tt, .. } = self;
        let sums = [("rho", rho), ("rr", rr), ("sv", sv), ("ts", ts), ("tt", tt)];
        Call::of(&self.turn, &[("n_sums", self.n_sums())], &sums)
    }

    /// The residual of a solution, in its vector, and its norm.
    fn residual(
        &self,
        operator: &dyn Operator,
        b: &Buffer,
        x: &Buffer,
        seconds: &mut f64,
    ) -> Result<f64, SolveError> {
        let mut queue = Queue::new();
        operator.apply(x, &self.t, &mut queue);
        queue.push(Call::of(&self.subtract, &[("n", self.n)], &[("b", b), ("q", &self.t), ("r", &self.r)]));
        *seconds += queue.run(self.device)?;
        self.vectors.norm(&self.r)
    }
}
