//! Conjugate gradients: with Jacobi's preconditioner in four kernels an iteration, or around any other.

use crate::history::History;
use crate::parts::Guard;
use crate::texts::{compiled, text};
use crate::{
    Alone, Call, Communicator, Dot, LinearOptions, LinearReason, LinearReport, Operator, Queue, Repeatable,
    ResidualNorm, SolveError,
};
use kingpost_runtime::{Backend, Buffer, Device, Executable, download_values};
use nalgebra::DMatrix;

/// What is near the inverse of an operator, as conjugate gradients take it: symmetric, positive definite.
#[derive(Clone, Copy)]
pub enum Preconditioning<'a> {
    /// A diagonal matrix, f64 `[n]`, which the kernels of an iteration multiply by as they go.
    Diagonal(&'a Buffer),
    /// Any other.
    Operator(&'a dyn Operator),
}

/// Conjugate gradients for symmetric positive definite operators.
///
/// Lengths of steps are computed on the device from sums that stay there. From an iteration on whose
/// residual is small enough the kernels change nothing, so that the host may look at residuals
/// now and then only: at the sums of `look_every` iterations at once, 24 bytes each. On a card, these
/// iterations are one graph, with three kernels each for a matrix by rows and a diagonal preconditioner.
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
    clear: Executable,
    square: Executable,
    residual: Executable,
    next: Executable,
    r: Buffer,
    p: Buffer,
    q: Buffer,
    /// The residual, preconditioned, where that is no part of the kernels.
    z: Buffer,
    /// Squares of the residual in the norm of the preconditioner.
    rz: Buffer,
    /// Squares of the residual, in the norm that it is judged by.
    rr: Buffer,
    /// Squares of the direction in the norm of the operator.
    pq: Buffer,
    /// The three sums of the last iterations, for the host.
    seen: Buffer,
    enough: Buffer,
}

/// How kernels of sums are divided: unknowns of a work-group, its work-items, and whether these are one
/// sub-group, which joins its numbers by shuffles.
///
/// On a card, few large groups leave multiprocessors idle, and many groups that add to one number wait for
/// each other.
const DIVISIONS: [[&str; 3]; 3] = [["32", "32", "true"], ["256", "256", "false"], ["2048", "256", "false"]];
/// The unknowns from which on a card takes the next one.
const LIMITS: [usize; 2] = [1 << 15, 1 << 18];

/// A kernel of sums.
fn summing(device: &dyn Device, text: &str, division: [&str; 3]) -> Result<Executable, SolveError> {
    let [unknowns, items, shuffle] = division;
    compiled(device, &text.replace("GROUP", unknowns).replace("ITEMS", items).replace("SHUFFLE", shuffle))
}

impl<'d> ConjugateGradients<'d> {
    /// Compiles the kernels and allocates four vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: LinearOptions) -> Result<Self, SolveError> {
        let options = LinearOptions { look_every: options.look_every.max(1), ..options };
        let vector = || device.allocate(8 * n as u64);
        let sums = |kinds: u64| device.allocate(8 * kinds * (options.look_every as u64 + 1));
        let division = match device.info().backend {
            Backend::Cuda => LIMITS.iter().filter(|limit| n >= **limit).count(),
            Backend::C | Backend::OpenCl => LIMITS.len(),
        };
        let summing = |text: &str| summing(device, text, DIVISIONS[division]);
        Ok(Self {
            device,
            n,
            options,
            start: compiled(device, text!("cg_start"))?,
            limit: compiled(device, text!("cg_limit"))?,
            dot: compiled(device, text!("dot"))?,
            update: summing(text!("cg_update"))?,
            direction: compiled(device, text!("cg_direction"))?,
            turn: compiled(device, text!("cg_turn"))?,
            clear: compiled(device, text!("clear"))?,
            square: compiled(device, text!("square"))?,
            residual: summing(text!("cg_residual"))?,
            next: compiled(device, text!("cg_next"))?,
            r: vector()?,
            p: vector()?,
            q: vector()?,
            z: vector()?,
            rz: sums(1)?,
            rr: sums(1)?,
            pq: sums(1)?,
            seen: sums(3)?,
            enough: device.allocate(8)?,
        })
    }

    /// Takes another norm of the residual that is small enough in any case.
    pub(crate) fn set_absolute(&mut self, absolute: f64) {
        self.options.absolute = absolute;
    }

    /// Solves `A x = b` from a start of zero.
    ///
    /// Where a direction has no positive curvature, `x` is the solution before it, or the direction if
    /// it is the first: of an energy, either descends (Steihaug 1983).
    ///
    /// # Errors
    /// An operator of another size, a failing driver. That it does not converge is in the report.
    pub fn solve(
        &self,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        self.solve_over(&Alone::new(self.device), operator, preconditioning, b, x)
    }

    /// The same together with the threads of other parts, each of which calls this with its own part:
    /// vectors have the unknowns that it owns. Iterations are those of one part up to the order in which
    /// numbers are added.
    ///
    /// # Errors
    /// As [`ConjugateGradients::solve`]; a part that ended. The other parts end likewise.
    pub fn solve_over(
        &self,
        communicator: &dyn Communicator,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let mut guard = Guard::new(communicator);
        let before = communicator.seconds();
        self.start(communicator, operator, preconditioning, b, x)?;
        let mut history = History::new(self.options);
        let whole = self.queue(self.options.look_every, operator, preconditioning, x);
        let mut repeatable: Option<Repeatable<'_>> = None;
        let reason = loop {
            let count = history.next();
            if count == self.options.look_every {
                let whole = match repeatable.take() {
                    Some(known) => repeatable.insert(known),
                    None => repeatable.insert(communicator.repeatable(&whole)?),
                };
                communicator.repeat(whole)?;
            } else {
                communicator.perform(&self.queue(count, operator, preconditioning, x))?;
            }
            let sums = self.look(communicator)?;
            let reason = history.judge(&sums.rr[..=count], |k| {
                // the negation takes no number for an answer
                let definite = sums.pq[k] > 0.0 && sums.rz[k] > 0.0;
                (!definite).then_some(LinearReason::Indefinite)
            });
            if let Some(reason) = reason {
                break reason;
            }
        };
        guard.is_done = true;
        if reason == LinearReason::Indefinite && history.residuals.len() == 1 {
            self.device.copy(&self.p, x)?;
        }
        let seconds = communicator.seconds() - before;
        Ok(LinearReport { reason, residuals: history.residuals, seconds })
    }

    /// Values between the least and the largest eigenvalue of the preconditioned operator, near both,
    /// ascending: the eigenvalues of the tridiagonal matrix of [`LinearOptions::look_every`] iterations
    /// for a right-hand side that has a part of each eigenvector. What `x` held is lost. None if the
    /// right-hand side is zero, or the operator is not positive definite along the first direction.
    ///
    /// # Errors
    /// As [`ConjugateGradients::solve`].
    ///
    /// # Source
    /// Lanczos 1950; from conjugate gradients Saad 2003, §6.7.3.
    pub fn ritz_values(
        &self,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<Vec<f64>, SolveError> {
        let alone = Alone::new(self.device);
        self.start(&alone, operator, preconditioning, b, x)?;
        alone.perform(&self.queue(self.options.look_every, operator, preconditioning, x))?;
        Ok(self.look(&alone)?.eigenvalues())
    }

    /// The first direction and its sums, and the square of the residual that is small enough.
    fn start(
        &self,
        communicator: &dyn Communicator,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<(), SolveError> {
        let of_preconditioner = match preconditioning {
            Preconditioning::Diagonal(_) => None,
            Preconditioning::Operator(operator) => Some(operator.size()),
        };
        for (what, found) in [("operator", Some(operator.size())), ("preconditioner", of_preconditioner)] {
            if let Some(found) = found.filter(|found| *found != self.n) {
                return Err(SolveError::Length { what, found, needed: self.n });
            }
        }
        self.device.copy(b, &self.r)?;
        for sums in [&self.rz, &self.rr, &self.pq] {
            self.device.fill(sums, 0)?;
        }
        let mut queue = Queue::new();
        self.first(preconditioning, x, &mut queue);
        queue.sum(&self.rz, 0);
        queue.sum(&self.rr, 0);
        let limit = [("rr", &self.rr), ("limit", &self.enough)];
        let limit = Call::of(&self.limit, &[("n_sums", self.n_sums())], &limit);
        let limit = limit.with("relative", self.options.relative.powi(2));
        queue.push(limit.with("absolute", self.options.absolute.powi(2)));
        communicator.perform(&queue)
    }

    /// A number of iterations, after which [`ConjugateGradients::look`] has their sums.
    fn queue<'a>(
        &'a self,
        count: usize,
        operator: &'a dyn Operator,
        preconditioning: Preconditioning<'a>,
        x: &'a Buffer,
    ) -> Queue<'a> {
        let mut queue = Queue::new();
        for k in 0..count {
            self.iteration(k, operator, preconditioning, x, &mut queue);
        }
        let sums = [("rz", &self.rz), ("rr", &self.rr), ("pq", &self.pq), ("seen", &self.seen)];
        queue.push(Call::of(&self.turn, &[("n_sums", self.n_sums())], &sums));
        queue
    }

    /// The sums of the last iterations.
    fn look(&self, communicator: &dyn Communicator) -> Result<Sums, SolveError> {
        communicator.wait()?;
        let seen: Vec<f64> = download_values(self.device, &self.seen)?;
        let of = |kind: usize| seen[kind * self.n_sums()..(kind + 1) * self.n_sums()].to_vec();
        Ok(Sums { rr: of(0), rz: of(1), pq: of(2) })
    }

    fn n_sums(&self) -> usize {
        self.options.look_every + 1
    }

    /// What starts from zero.
    fn first<'a>(&'a self, preconditioning: Preconditioning<'a>, x: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { r, p, rz, rr, .. } = self;
        match preconditioning {
            Preconditioning::Diagonal(inverse) => {
                let sizes = [("n", self.n), ("n_sums", self.n_sums())];
                let arrays = [("inverse", inverse), ("r", r), ("x", x), ("p", p), ("rz", rz), ("rr", rr)];
                queue.push(self.measured(Call::of(&self.start, &sizes, &arrays)));
            }
            Preconditioning::Operator(preconditioner) => {
                queue.push(Call::of(&self.clear, &[("n", self.n)], &[("v", x)]));
                preconditioner.apply(r, p, queue);
                let judged = if self.options.norm == ResidualNorm::Plain { r } else { p };
                queue.push(Call::of(&self.square, &self.sizes(0), &[("v", judged), ("sums", rr)]));
                queue.push(Call::of(&self.dot, &self.sizes(0), &[("v", r), ("w", p), ("sums", rz)]));
            }
        }
    }

    /// Iteration `k`: the curvature along its direction, solution and residual, the next direction.
    fn iteration<'a>(
        &'a self,
        k: usize,
        operator: &'a dyn Operator,
        preconditioning: Preconditioning<'a>,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        let Self { r, p, q, z, rz, rr, pq, .. } = self;
        let dot = Dot { kernel: &self.dot, n: self.n, sums: pq, n_sums: self.n_sums(), place: k };
        operator.apply_with_dot(p, q, dot, queue);
        queue.sum(pq, k);
        let vectors = [("p", p), ("q", q), ("x", x), ("r", r)];
        let direction = match preconditioning {
            Preconditioning::Diagonal(inverse) => {
                let vectors = [&[("inverse", inverse)], &vectors[..]].concat();
                queue.push(self.measured(Call::of(&self.update, &self.sizes(k), &self.with(&vectors))));
                let vectors = [("inverse", inverse), ("r", r), ("p", p)];
                Call::of(&self.direction, &self.sizes(k), &self.with(&vectors))
            }
            Preconditioning::Operator(preconditioner) => {
                let residual = Call::of(&self.residual, &self.sizes(k), &self.with(&vectors));
                queue.push(residual.with("plain", 1.0 - self.options.norm.scaled()));
                preconditioner.apply(r, z, queue);
                let at = self.sizes(k + 1);
                if self.options.norm == ResidualNorm::Preconditioned {
                    queue.push(Call::of(&self.square, &at, &[("v", z), ("sums", rr)]));
                }
                queue.push(Call::of(&self.dot, &at, &[("v", r), ("w", z), ("sums", rz)]));
                Call::of(&self.next, &self.sizes(k), &self.with(&[("z", z), ("p", p)]))
            }
        };
        queue.sum(rz, k + 1);
        queue.sum(rr, k + 1);
        queue.push(direction);
    }

    /// Sizes of iteration `k`.
    fn sizes(&self, k: usize) -> [(&'static str, usize); 3] {
        [("n", self.n), ("n_sums", self.n_sums()), ("k", k)]
    }

    /// The sums, as kernels take them, with vectors.
    fn with<'a>(&'a self, vectors: &[(&'a str, &'a Buffer)]) -> Vec<(&'a str, &'a Buffer)> {
        let Self { rz, rr, pq, enough, .. } = self;
        [&[("limit", enough), ("pq", pq), ("rr", rr), ("rz", rz)], vectors].concat()
    }

    /// A kernel with what the preconditioner is multiplied by in the norm of residuals.
    fn measured<'a>(&self, call: Call<'a>) -> Call<'a> {
        let scaled = self.options.norm.scaled();
        call.with("plain", 1.0 - scaled).with("scaled", scaled)
    }
}

/// The sums of some iterations.
pub(crate) struct Sums {
    /// Squares of residuals, in the norm that they are judged by.
    pub rr: Vec<f64>,
    /// Those in the norm of the preconditioner.
    pub rz: Vec<f64>,
    /// Squares of directions in the norm of the operator.
    pub pq: Vec<f64>,
}

impl Sums {
    /// The eigenvalues of the tridiagonal matrix of these iterations, ascending.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = Default::default();
        let first = self.rz.first().copied().unwrap_or(0.0);
        let mut carried = 0.0;
        for ((rz, next), pq) in self.rz.iter().zip(self.rz.iter().skip(1)).zip(&self.pq) {
            // what is left of the right-hand side is rounding
            if !(*pq > 0.0 && *rz > f64::EPSILON.powi(2) * first) {
                break;
            }
            let (length, turn) = (rz / pq, next / rz);
            diagonal.push(1.0 / length + carried);
            beside.push(turn.max(0.0).sqrt() / length);
            carried = turn / length;
        }
        let n = diagonal.len();
        if n == 0 {
            return Vec::new();
        }
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => beside[i.min(j)],
            _ => 0.0,
        };
        let mut values = DMatrix::from_fn(n, n, entry).symmetric_eigenvalues().as_slice().to_vec();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        values
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run;
    use kingpost_runtime::{buffer_of, open};

    /// What cards run for few unknowns and for many, on processors.
    #[test]
    fn a_step_is_the_same_in_groups_of_any_size() {
        let n = 3000;
        let numbers = |a: usize| (0..n).map(|i| ((i * a) % 17) as f64 / 8.0 - 1.0).collect::<Vec<f64>>();
        let (inverse, p, q, x, r) = (numbers(3), numbers(5), numbers(7), numbers(11), numbers(13));
        let alpha = 3.0 / 2.0;
        let rest: Vec<f64> = r.iter().zip(&q).map(|(r, q)| r - alpha * q).collect();
        let weighted: f64 = inverse.iter().zip(&rest).map(|(w, r)| w * r * r).sum();
        let plain: f64 = rest.iter().map(|r| r * r).sum();
        for device in ["c", "opencl"].map(|name| open(name).unwrap()) {
            for division in DIVISIONS {
                let of = |list: &[f64]| buffer_of(&*device, list).unwrap();
                let arrays = [&inverse, &p, &q, &x, &r].map(|list| of(list));
                let [inverse, p, q, x, r] = &arrays;
                let (rz, rr, pq, limit) = (of(&[3.0, 0.0]), of(&[5.0, 0.0]), of(&[2.0, 0.0]), of(&[1.0]));
                let sizes = [("n", n), ("n_sums", 2), ("k", 0)];
                let sums = [("limit", &limit), ("pq", &pq), ("rr", &rr), ("rz", &rz)];
                let vectors = [("inverse", inverse), ("p", p), ("q", q), ("x", x), ("r", r)];
                let step = summing(&*device, text!("cg_update"), division).unwrap();
                let call = Call::of(&step, &sizes, &[&sums[..], &vectors].concat());
                run(&*device, &[call.with("plain", 1.0).with("scaled", 0.0)]).unwrap();
                let read = |buffer| download_values::<f64>(&*device, buffer).unwrap();
                assert_eq!(read(r), rest, "{division:?}");
                // sums of 3000 numbers below 10
                assert!((read(&rz)[1] - weighted).abs() <= 1e-10, "{division:?}: {:?}", read(&rz));
                assert!((read(&rr)[1] - plain).abs() <= 1e-10, "{division:?}: {:?}", read(&rr));
                run(
                    &*device,
                    &[Call::of(
                        &summing(&*device, text!("cg_residual"), division).unwrap(),
                        &sizes,
                        &[&sums[..], &vectors[1..]].concat(),
                    )
                    .with("plain", 1.0)],
                )
                .unwrap();
                let again: f64 = rest.iter().zip(read(q)).map(|(r, q)| (r - alpha * q).powi(2)).sum();
                assert!((read(&rr)[1] - plain - again).abs() <= 1e-10, "{division:?}: {:?}", read(&rr));
            }
        }
    }
}
