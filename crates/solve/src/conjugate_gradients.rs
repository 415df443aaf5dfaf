//! Conjugate gradients: with Jacobi's preconditioner in four kernels an iteration, or around any other.

use crate::history::History;
use crate::parts::Guard;
use crate::sums::Sums;
use crate::texts::{compiled, text};
use crate::{
    Alone, Call, Communicator, Dot, LinearOptions, LinearReason, LinearReport, Operator, Queue, Repeatable,
    ResidualNorm, SolveError, Turn,
};
use kingpost_runtime::{Backend, Begun, Buffer, Device, Executable};
use rayon::prelude::*;
use std::collections::VecDeque;

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
/// iterations are one graph: of two kernels each for a matrix by rows with few entries and a diagonal
/// preconditioner, of three for another one. Few unknowns have the next graph run meanwhile.
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
    /// The residual, preconditioned, where that is no part of the kernels; every other direction, where the
    /// product makes them.
    z: Buffer,
    /// Squares of the residual in the norm of the preconditioner.
    rz: Buffer,
    /// Squares of the residual, in the norm that it is judged by.
    rr: Buffer,
    /// Squares of the direction in the norm of the operator.
    pq: Buffer,
    /// The three sums of the last iterations, for the host.
    seen: Buffer,
    /// The half of these that the next ones go to.
    half: Buffer,
    enough: Buffer,
}

/// How kernels of sums are divided: unknowns of a work-group, and its work-items.
///
/// On a card, few large groups leave multiprocessors idle, and many groups that add to one number wait for
/// each other: an iteration of 10,000 unknowns takes 5.55, 5.41, 5.47 and 5.54 µs with groups of 32, 64, 128
/// and 256, one of 46,741 unknowns 9.66, 8.57, 7.95 and 7.92 (H200, 2026-11-29).
const DIVISIONS: [[&str; 2]; 3] = [["64", "64"], ["256", "256"], ["2048", "256"]];
/// The unknowns from which on a card takes the next one.
const LIMITS: [usize; 2] = [1 << 15, 1 << 18];

/// Unknowns from which on iterations take so long that a look is nothing compared with them.
const SHORT: usize = 1 << 16;

/// Where the sums of iteration `k` are: after those of the last iteration before, of which none is moved at
/// the start, as its sums are zero.
const fn place(k: usize) -> usize {
    k + 1
}

/// Bytes of the three sums of the iterations between two looks.
const fn bytes_of_sums(look_every: usize) -> u64 {
    3 * 8 * (place(look_every) as u64 + 1)
}

/// A kernel of sums.
fn summing(device: &dyn Device, text: &str, division: [&str; 2]) -> Result<Executable, SolveError> {
    let [unknowns, items] = division;
    compiled(device, &text.replace("GROUP", unknowns).replace("ITEMS", items))
}

impl<'d> ConjugateGradients<'d> {
    /// Compiles the kernels of sums of any number of unknowns, so that solvers have them sooner.
    ///
    /// # Errors
    /// A device that refuses them.
    pub(crate) fn prepare(device: &dyn Device) -> Result<(), SolveError> {
        let of = |division| {
            summing(device, text!("cg_update"), division)?;
            summing(device, text!("cg_residual"), division).map(drop)
        };
        DIVISIONS.into_par_iter().try_for_each(of)
    }

    /// Compiles the kernels and allocates four vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: LinearOptions) -> Result<Self, SolveError> {
        Self::with_room(device, (n, n), options)
    }

    /// The same for operators that have [room](Operator::room) for more numbers.
    ///
    /// # Errors
    /// As [`ConjugateGradients::new`].
    pub fn with_room(
        device: &'d dyn Device,
        (n, room): (usize, usize),
        options: LinearOptions,
    ) -> Result<Self, SolveError> {
        let options = LinearOptions { look_every: options.look_every.max(1), ..options };
        let vector = || device.allocate_unset(8 * n as u64);
        let of_operator = || device.allocate_unset(8 * room.max(n) as u64);
        let sums = |kinds: u64| device.allocate_unset(8 * kinds * (options.look_every as u64 + 2));
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
            p: of_operator()?,
            q: of_operator()?,
            z: vector()?,
            rz: sums(1)?,
            rr: sums(1)?,
            pq: sums(1)?,
            seen: device.allocate_visible(2 * bytes_of_sums(options.look_every))?,
            half: device.allocate_unset(4)?,
            enough: device.allocate_unset(8)?,
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
        communicator.perform(&self.begin(operator, preconditioning, b, x)?)?;
        let mut history = History::new(self.options);
        let whole = self.queue(self.options.look_every, operator, preconditioning, x);
        let whole = match history.whole_looks() {
            0 => None,
            _ => Some(communicator.repeatable(&whole)?),
        };
        let (mut begun, mut looks) = (VecDeque::new(), 0);
        let reason = loop {
            let count = history.next();
            match &whole {
                Some(whole) if history.whole_looks() > 0 => {
                    self.run_whole(communicator, whole, &history, &mut begun)?;
                }
                Some(_) | None => {
                    communicator.perform(&self.queue(count, operator, preconditioning, x))?;
                }
            }
            let sums = self.look(communicator, looks)?;
            looks += 1;
            let reason = history.judge(&sums.rr[..=count], |k| {
                // the negation takes no number for an answer
                let definite = sums.pq[k] > 0.0 && sums.rz[k] > 0.0;
                (!definite).then_some(LinearReason::Indefinite)
            });
            if let Some(reason) = reason {
                break reason;
            }
        };
        // what ran ahead after the last residual has changed nothing
        begun.into_iter().try_for_each(|begun| communicator.finish(begun))?;
        guard.is_done = true;
        if reason == LinearReason::Indefinite && history.residuals.len() == 1 {
            self.take_direction(x)?;
        }
        let seconds = communicator.seconds() - before;
        Ok(LinearReport { reason, residuals: history.residuals, seconds })
    }

    /// Copies the direction, which may have room for more.
    fn take_direction(&self, x: &Buffer) -> Result<(), SolveError> {
        if self.p.bytes() == x.bytes() {
            return Ok(self.device.copy(&self.p, x)?);
        }
        let mut direction = vec![0; self.p.bytes() as usize];
        self.device.download(&self.p, &mut direction)?;
        Ok(self.device.upload(x, &direction[..x.bytes() as usize])?)
    }

    /// Runs the iterations up to the next look. Those up to the look after it are on their way, too, where they
    /// are short and likely to be needed, so that a card does not wait for the host.
    fn run_whole<'r>(
        &self,
        communicator: &dyn Communicator,
        whole: &'r Repeatable<'_>,
        history: &History,
        begun: &mut VecDeque<Begun<'r>>,
    ) -> Result<(), SolveError> {
        let ahead = if self.n < SHORT && history.goes_on() { 2 } else { 1 };
        while begun.len() < history.whole_looks().min(ahead) {
            match communicator.begin(whole)? {
                Some(new) => begun.push_back(new),
                None => return Ok(()), // they have run
            }
        }
        begun.pop_front().map_or(Ok(()), |first| communicator.finish(first))
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
        self.iterations(operator, preconditioning, b, x)?.run_soon(self.device)?;
        Ok(self.look(&Alone::new(self.device), 0)?.eigenvalues())
    }

    /// The same together with the threads of other parts.
    ///
    /// # Errors
    /// As [`ConjugateGradients::solve_over`].
    pub fn ritz_values_over(
        &self,
        communicator: &dyn Communicator,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'_>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<Vec<f64>, SolveError> {
        let mut guard = Guard::new(communicator);
        communicator.perform(&self.iterations(operator, preconditioning, b, x)?)?;
        let found = self.look(communicator, 0)?.eigenvalues();
        guard.is_done = true;
        Ok(found)
    }

    /// The iterations up to the first look, from the start on.
    fn iterations<'a>(
        &'a self,
        operator: &'a dyn Operator,
        preconditioning: Preconditioning<'a>,
        b: &Buffer,
        x: &'a Buffer,
    ) -> Result<Queue<'a>, SolveError> {
        let mut queue = self.begin(operator, preconditioning, b, x)?;
        queue.append(self.queue(self.options.look_every, operator, preconditioning, x));
        Ok(queue)
    }

    /// The first direction and its sums, and the square of the residual that is small enough.
    fn begin<'a>(
        &'a self,
        operator: &dyn Operator,
        preconditioning: Preconditioning<'a>,
        b: &Buffer,
        x: &'a Buffer,
    ) -> Result<Queue<'a>, SolveError> {
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
        for sums in [&self.rz, &self.rr, &self.pq, &self.half] {
            self.device.fill(sums, 0)?;
        }
        let mut queue = Queue::new();
        self.first(preconditioning, x, &mut queue);
        queue.sum(&self.rz, place(0));
        queue.sum(&self.rr, place(0));
        let limit = [("rr", &self.rr), ("limit", &self.enough)];
        let limit = Call::of(&self.limit, &self.sizes(0)[1..], &limit);
        let limit = limit.with("relative", self.options.relative.powi(2));
        queue.push(limit.with("absolute", self.options.absolute.powi(2)));
        Ok(queue)
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
        let sums = [("rz", &self.rz), ("rr", &self.rr), ("pq", &self.pq)];
        let sums = [&sums[..], &[("half", &self.half), ("seen", &self.seen)]].concat();
        queue.push(Call::of(&self.turn, &[("n_sums", self.n_sums())], &sums));
        queue
    }

    /// The sums of the iterations up to a look, which are in one half after the other.
    fn look(&self, communicator: &dyn Communicator, look: usize) -> Result<Sums, SolveError> {
        communicator.wait()?;
        let bytes = bytes_of_sums(self.options.look_every);
        let mut seen = vec![0; bytes as usize];
        self.device.see(&self.seen, (look % 2) as u64 * bytes, &mut seen)?;
        let seen: Vec<f64> =
            seen.as_chunks::<8>().0.iter().map(|number| f64::from_ne_bytes(*number)).collect();
        let of = |kind: usize| seen[kind * self.n_sums() + place(0)..(kind + 1) * self.n_sums()].to_vec();
        Ok(Sums { rr: of(0), rz: of(1), pq: of(2) })
    }

    fn n_sums(&self) -> usize {
        place(self.options.look_every) + 1
    }

    /// What starts from zero.
    fn first<'a>(&'a self, preconditioning: Preconditioning<'a>, x: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { r, p, rz, rr, .. } = self;
        match preconditioning {
            Preconditioning::Diagonal(inverse) => {
                let arrays = [("inverse", inverse), ("r", r), ("x", x), ("p", p), ("rz", rz), ("rr", rr)];
                queue.push(self.measured(Call::of(&self.start, &self.sizes(0)[..2], &arrays)));
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
        if let Preconditioning::Diagonal(inverse) = preconditioning
            && let Some([product, update]) = self.short_iteration(k, operator, inverse, x)
        {
            queue.push(product);
            queue.sum(&self.pq, place(k));
            queue.push(update);
            queue.sum(&self.rz, place(k + 1));
            queue.sum(&self.rr, place(k + 1));
            return;
        }
        let Self { r, p, q, z, rz, rr, pq, .. } = self;
        let dot = Dot { kernel: &self.dot, n: self.n, sums: pq, n_sums: self.n_sums(), place: place(k) };
        operator.apply_with_dot(p, q, dot, queue);
        queue.sum(pq, place(k));
        let vectors = [("p", p), ("q", q), ("x", x), ("r", r)];
        let direction = match preconditioning {
            Preconditioning::Diagonal(inverse) => {
                queue.push(self.step(k, inverse, p, x));
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
        queue.sum(rz, place(k + 1));
        queue.sum(rr, place(k + 1));
        queue.push(direction);
    }

    /// The same in two kernels, where the operator makes the direction: the directions of even iterations are
    /// in the one vector, those of odd ones in the other. None for a number of iterations that ends in between.
    fn short_iteration<'a>(
        &'a self,
        k: usize,
        operator: &'a dyn Operator,
        inverse: &'a Buffer,
        x: &'a Buffer,
    ) -> Option<[Call<'a>; 2]> {
        let Self { r, p, q, z, rz, rr, pq, enough, .. } = self;
        let [last, next] = if k.is_multiple_of(2) { [p, z] } else { [z, p] };
        let (vectors, sums) = ([inverse, r, last, next], [enough, rr, rz, pq]);
        let turn = Turn { vectors, sums, n_sums: self.n_sums(), place: place(k) };
        let is_whole = self.options.look_every.is_multiple_of(2);
        let product = operator.apply_to_next(turn, q).filter(|_| is_whole)?;
        Some([product, self.step(k, inverse, next, x)])
    }

    /// Solution and residual of iteration `k` along a direction.
    fn step<'a>(&'a self, k: usize, inverse: &'a Buffer, p: &'a Buffer, x: &'a Buffer) -> Call<'a> {
        let vectors = [("inverse", inverse), ("p", p), ("q", &self.q), ("x", x), ("r", &self.r)];
        self.measured(Call::of(&self.update, &self.sizes(k), &self.with(&vectors)))
    }

    /// Sizes of iteration `k`.
    fn sizes(&self, k: usize) -> [(&'static str, usize); 3] {
        [("n", self.n), ("n_sums", self.n_sums()), ("k", place(k))]
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{CsrOperator, Item, run};
    use kingpost_runtime::{buffer_of, download_values, open, upload_values};

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

    /// The iterations of cards on processors: as many as are allowed, up to a tolerance, in the first ones,
    /// and along a direction without curvature.
    #[test]
    fn iterations_of_two_kernels_are_those_of_three() {
        let n = 350_usize;
        // differences of what is `reach` apart or less, with weights; short rows and long ones
        let matrix = |reach: usize| {
            let weight = |i: usize, j: usize| 1.0 + ((i.min(j) * 7 + i.max(j)) % 5) as f64;
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for i in 0..n {
                let around = i.saturating_sub(reach)..n.min(i + reach + 1);
                let others: f64 = around.clone().filter(|j| *j != i).map(|j| weight(i, j)).sum();
                columns.extend(around.clone().map(|j| j as i32));
                values.extend(around.map(|j| if i == j { 0.5 + others } else { -weight(i, j) }));
                starts.push(columns.len() as i32);
            }
            (starts, columns, values)
        };
        let all = LinearOptions { relative: 0.0, ..LinearOptions::default() };
        let cases = [
            (1.0, LinearOptions { max_iterations: 37, ..all }),
            (1.0, LinearOptions { max_iterations: 1, ..all }),
            (1.0, LinearOptions { relative: 1e-9, look_every: 6, norm: ResidualNorm::Preconditioned, ..all }),
            // one that ends in the middle takes three kernels
            (1.0, LinearOptions { max_iterations: 37, look_every: 5, ..all }),
            (-1.0, LinearOptions { max_iterations: 37, ..all }),
        ];
        let devices = ["c", "opencl"].map(|name| open(name).unwrap());
        for (device, reach) in devices.iter().flat_map(|device| [1, 6].map(|reach| (device, reach))) {
            let (starts, columns, values) = matrix(reach);
            let operator = || CsrOperator::of_rows(&**device, &starts, &columns).unwrap();
            let operators = [operator(), operator().with_direction(&**device).unwrap()];
            for (sign, options) in &cases {
                let b: Vec<f64> = (0..n).map(|i| ((i * 11) % 13) as f64 - 6.0).collect();
                let entries: Vec<f64> = values.iter().map(|value| sign * value).collect();
                let inverse = buffer_of(&**device, &vec![0.125; n]).unwrap();
                let mut kernels = Vec::new();
                let solved = operators.each_ref().map(|operator| {
                    upload_values(&**device, operator.values(), &entries).unwrap();
                    let solver = ConjugateGradients::new(&**device, n, *options).unwrap();
                    let (b, x) = (buffer_of(&**device, &b).unwrap(), device.allocate(8 * n as u64).unwrap());
                    let by_jacobi = Preconditioning::Diagonal(&inverse);
                    let queue = solver.queue(options.look_every, operator, by_jacobi, &x);
                    kernels.push(queue.items().iter().filter(|item| matches!(item, Item::Call(_))).count());
                    let report = solver.solve(operator, by_jacobi, &b, &x).unwrap();
                    (report, download_values::<f64>(&**device, &x).unwrap())
                });
                let [(three, x), (two, y)] = &solved;
                let count = options.look_every;
                let short = if count.is_multiple_of(2) { 2 } else { 4 };
                assert_eq!(kernels, [4 * count + 1, short * count + 1]); // the dot product is one of four
                assert_eq!(three.reason, two.reason);
                assert_eq!(three.residuals.len(), two.residuals.len());
                let near = |a: &[f64], b: &[f64]| {
                    let largest = a.iter().fold(0.0, |most: f64, a| most.max(a.abs()));
                    // sums of 350 terms in another order, through some 50 iterations of a matrix whose
                    // condition is at most 150
                    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * largest)
                };
                assert!(near(&three.residuals, &two.residuals), "{three:?} {two:?}");
                assert!(near(x, y), "{options:?}");
            }
        }
    }
}
