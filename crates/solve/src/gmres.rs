//! The generalised minimal residual method, with a preconditioner that may change.

use crate::parts::{Guard, number};
use crate::texts::{compiled, text};
use crate::{Alone, Call, Communicator, LinearReason, LinearReport, Operator, Queue, SolveError, Vectors};
use kingpost_runtime::{Buffer, Device, Executable, download_values};
use std::ops::Range;

/// Where a preconditioner stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreconditionerSide {
    /// After the operator. Residuals are those of the system; the preconditioner may change.
    #[default]
    Right,
    /// Before the operator. Residuals are preconditioned, and directions are not stored.
    Left,
}

/// When the generalised minimal residual method stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresOptions {
    /// Norm of the residual that is small enough, relative to that of the right-hand side.
    pub relative: f64,
    /// Norm of the residual that is small enough in any case.
    pub absolute: f64,
    /// Iterations that are allowed.
    pub max_iterations: usize,
    /// Iterations after which it starts again from the solution so far; at least 1.
    pub restart: usize,
    /// Where the preconditioner stands, if there is one.
    pub side: PreconditionerSide,
}

impl Default for GmresOptions {
    fn default() -> Self {
        Self {
            relative: 1e-9,
            absolute: 0.0,
            max_iterations: 1000,
            restart: 30,
            side: PreconditionerSide::Right,
        }
    }
}

impl GmresOptions {
    /// Why a solve ends after the last of these residuals, if it does.
    pub(crate) fn ended(&self, residuals: &[f64], limit: f64) -> Option<LinearReason> {
        let last = residuals.last().copied().unwrap_or(f64::NAN);
        if !last.is_finite() {
            Some(LinearReason::NotFinite)
        } else if last <= limit {
            Some(LinearReason::Converged)
        } else {
            (residuals.len() > self.max_iterations).then_some(LinearReason::TooMany)
        }
    }
}

/// The generalised minimal residual method for any operator.
///
/// After a preconditioner on the right, its directions are stored, so that it need be neither
/// linear nor the same in each iteration: it may compute in another precision. Vectors are
/// allocated when an iteration needs them, two each (else one). An iteration is one queue; after it
/// the host reads its column of the Hessenberg matrix.
///
/// # Source
/// Saad & Schultz 1986; from the right Saad 1993, Algorithm 2.2 (FGMRES).
pub struct Gmres<'d> {
    device: &'d dyn Device,
    n: usize,
    options: GmresOptions,
    vectors: Vectors<'d>,
    clear: Executable,
    products: Products,
    basis: Vec<Buffer>,
    directions: Vec<Buffer>,
    sums: Buffer,
    sum: Buffer,
}

/// What makes vectors orthogonal to those before them, by the modified Gram–Schmidt process.
enum Products {
    /// Of all entries: a step is fused with the product of the next one.
    Whole { dot: Executable, remove_dot: Executable, remove_square: Executable },
    /// Of neighbouring entries, which a part owns.
    Owned { owned: Range<usize>, dot: Executable, square: Executable, remove: Executable },
}

/// A system, as it is solved.
#[derive(Clone, Copy)]
struct System<'a> {
    communicator: &'a dyn Communicator,
    operator: &'a dyn Operator,
    preconditioner: Option<&'a dyn Operator>,
    side: Side,
    b: &'a Buffer,
    x: &'a Buffer,
}

impl<'d> Gmres<'d> {
    /// Compiles the kernels for vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: GmresOptions) -> Result<Self, SolveError> {
        Self::of_part(device, n, 0..n, options)
    }

    /// The same for vectors of a part, which hold what it owns among entries that other parts own.
    /// Products are those of owned entries, summed over all parts. All else is done to every entry, so
    /// that those of others stay as they are there, as far as operators bring them.
    ///
    /// # Errors
    /// As [`Gmres::new`].
    pub fn of_part(
        device: &'d dyn Device,
        n: usize,
        owned: Range<usize>,
        options: GmresOptions,
    ) -> Result<Self, SolveError> {
        let options = GmresOptions { restart: options.restart.max(1), ..options };
        let products = match owned == (0..n) {
            true => Products::Whole {
                dot: compiled(device, text!("dot"))?,
                remove_dot: compiled(device, text!("remove_dot"))?,
                remove_square: compiled(device, text!("remove_square"))?,
            },
            false => Products::Owned {
                owned,
                dot: compiled(device, text!("own_dot"))?,
                square: compiled(device, text!("own_square"))?,
                remove: compiled(device, text!("remove"))?,
            },
        };
        Ok(Self {
            device,
            n,
            options,
            vectors: Vectors::new(device, n)?,
            clear: compiled(device, text!("clear"))?,
            products,
            basis: Vec::new(),
            directions: Vec::new(),
            sums: device.allocate(8 * (options.restart as u64 + 1))?,
            sum: device.allocate(8)?,
        })
    }

    /// Takes another norm of the residual that is small enough in any case.
    pub(crate) fn set_absolute(&mut self, absolute: f64) {
        self.options.absolute = absolute;
    }

    /// Solves `A x = b` from a start of zero, with something near the inverse of `A`.
    ///
    /// Residuals are those of the recurrence; the one after the last iteration before a restart or
    /// the end is computed from the solution.
    ///
    /// # Errors
    /// An operator of another size, no memory, a failing driver. That it does not converge is in
    /// the report.
    pub fn solve(
        &mut self,
        operator: &dyn Operator,
        preconditioner: Option<&dyn Operator>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        self.solve_over(&Alone::new(self.device), operator, preconditioner, b, x)
    }

    /// The same together with the threads of other parts, each of which calls this with its own part.
    /// Iterations are those of one part up to the order in which numbers are added.
    ///
    /// # Errors
    /// As [`Gmres::solve`]; a part that ended. The other parts end likewise.
    pub fn solve_over(
        &mut self,
        communicator: &dyn Communicator,
        operator: &dyn Operator,
        preconditioner: Option<&dyn Operator>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let side = self.side(preconditioner);
        self.solve_from(System { communicator, operator, preconditioner, side, b, x }, false)
    }

    /// [`Gmres::solve`] from what `x` holds. Residuals are small enough relative to the right-hand side,
    /// as from a start of zero; the first one is that of the start.
    ///
    /// # Errors
    /// As [`Gmres::solve`].
    pub fn improve(
        &mut self,
        operator: &dyn Operator,
        preconditioner: Option<&dyn Operator>,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let (communicator, side) = (&Alone::new(self.device), self.side(preconditioner));
        self.solve_from(System { communicator, operator, preconditioner, side, b, x }, true)
    }

    fn solve_from(&mut self, system: System<'_>, is_started: bool) -> Result<LinearReport, SolveError> {
        let System { communicator, operator, preconditioner, side, b, x } = system;
        let mut guard = Guard::new(communicator);
        for (what, part) in [("operator", Some(operator)), ("preconditioner", preconditioner)] {
            if let Some(found) = part.map(Operator::size).filter(|size| *size != self.n) {
                return Err(SolveError::Length { what, found, needed: self.n });
            }
        }
        let before = communicator.seconds();
        self.need(1, usize::from(side == Side::Left))?;
        let mut queue = Queue::new();
        if !is_started {
            queue.push(Call::of(&self.clear, &[("n", self.n)], &[("v", x)]));
        }
        match preconditioner.filter(|_| side == Side::Left) {
            Some(preconditioner) => preconditioner.apply(b, &self.basis[0], &mut queue),
            None => self.device.copy(b, &self.basis[0])?,
        }
        let whole = self.norm(communicator, queue)?;
        let limit = (self.options.relative * whole).max(self.options.absolute);
        let mut residuals = vec![whole];
        if is_started {
            residuals = vec![self.update(system, &LeastSquares::new(whole))?];
        }
        let reason = loop {
            let start = residuals.last().copied().unwrap_or(f64::NAN);
            if let Some(reason) = self.options.ended(&residuals, limit) {
                break reason;
            }
            let small = self.cycle(system, limit, &mut residuals)?;
            let exact = self.update(system, &small)?;
            if let Some(last) = residuals.last_mut() {
                *last = exact;
            }
            if exact > limit && exact >= start {
                break LinearReason::Stagnated;
            }
        };
        guard.is_done = true;
        Ok(LinearReport { reason, residuals, seconds: communicator.seconds() - before })
    }

    fn side(&self, preconditioner: Option<&dyn Operator>) -> Side {
        match (preconditioner, self.options.side) {
            (None, _) => Side::None,
            (Some(_), PreconditionerSide::Right) => Side::Right,
            (Some(_), PreconditionerSide::Left) => Side::Left,
        }
    }

    /// The norm of the first vector of the basis after a queue.
    fn norm<'a>(&'a self, communicator: &dyn Communicator, before: Queue<'a>) -> Result<f64, SolveError> {
        let first = &self.basis[0];
        let square = number(communicator, self.device, &self.sum, |sum, queue| {
            *queue = before;
            queue.push(match &self.products {
                Products::Whole { .. } => self.vectors.square_to(first, sum),
                Products::Owned { owned, square, .. } => self.square(owned, square, (sum, 1, 0), first),
            });
        })?;
        Ok(square.sqrt())
    }

    /// Adds the square of owned entries to the `k`-th of some sums.
    fn square<'a>(
        &self,
        owned: &Range<usize>,
        square: &'a Executable,
        (sums, n_sums, k): (&'a Buffer, usize, usize),
        v: &'a Buffer,
    ) -> Call<'a> {
        let sizes =
            [("n", owned.len()), ("n_all", self.n), ("first", owned.start), ("n_sums", n_sums), ("k", k)];
        Call::of(square, &sizes, &[("v", v), ("sums", sums)])
    }

    /// Vectors of the basis and directions, as many as are needed.
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
        system: System<'_>,
        limit: f64,
        residuals: &mut Vec<f64>,
    ) -> Result<LeastSquares, SolveError> {
        let mut length = residuals.last().copied().unwrap_or(f64::NAN);
        let mut small = LeastSquares::new(length);
        for j in 0..self.options.restart {
            let directions = match system.side {
                Side::None => 0,
                Side::Right => j + 1,
                Side::Left => 1,
            };
            self.need(j + 2, directions)?;
            let mut queue = Queue::new();
            self.iteration(j, length, system, &mut queue);
            system.communicator.perform(&queue)?;
            system.communicator.wait()?;
            let sums: Vec<f64> = download_values(self.device, &self.sums)?;
            let (rest, residual, is_whole) = small.take(&sums, j);
            length = rest;
            residuals.push(residual);
            if is_whole || self.options.ended(residuals, limit).is_some() {
                break;
            }
        }
        Ok(small)
    }

    /// Iteration `j`: scales its vector, and makes the image orthogonal to all so far.
    fn iteration<'a>(&'a self, j: usize, length: f64, system: System<'a>, queue: &mut Queue<'a>) {
        let Self { basis, directions, sums, .. } = self;
        let System { operator, preconditioner, side, .. } = system;
        queue.push(self.vectors.scale(1.0 / length, &basis[j]));
        queue.push(Call::of(&self.clear, &[("n", self.options.restart + 1)], &[("v", sums)]));
        let w = &basis[j + 1];
        match (preconditioner, side) {
            (None, _) | (_, Side::None) => operator.apply(&basis[j], w, queue),
            (Some(preconditioner), Side::Right) => {
                preconditioner.apply(&basis[j], &directions[j], queue);
                operator.apply(&directions[j], w, queue);
            }
            (Some(preconditioner), Side::Left) => {
                operator.apply(&basis[j], &directions[0], queue);
                preconditioner.apply(&directions[0], w, queue);
            }
        }
        self.orthogonalise(j, queue);
    }

    /// Makes vector `j + 1` of the basis orthogonal to those before it; its products with them are
    /// the first sums, and the square of what is left is the last one.
    fn orthogonalise<'a>(&'a self, j: usize, queue: &mut Queue<'a>) {
        let Self { basis, sums, .. } = self;
        let (w, n_sums) = (&basis[j + 1], self.options.restart + 1);
        let sizes = |k| [("n", self.n), ("n_sums", n_sums), ("k", k)];
        match &self.products {
            Products::Whole { dot, remove_dot, remove_square } => {
                queue.push(Call::of(dot, &sizes(0), &[("v", w), ("w", &basis[0]), ("sums", sums)]));
                queue.sum(sums, 0);
                for k in 0..j {
                    let arrays = [("v", &basis[k]), ("u", &basis[k + 1]), ("w", w), ("sums", sums)];
                    queue.push(Call::of(remove_dot, &sizes(k), &arrays));
                    queue.sum(sums, k + 1);
                }
                let arrays = [("v", &basis[j]), ("w", w), ("sums", sums)];
                queue.push(Call::of(remove_square, &sizes(j), &arrays));
            }
            Products::Owned { owned, dot, square, remove } => {
                for (k, v) in basis[..=j].iter().enumerate() {
                    let arrays = [("v", v), ("w", w), ("sums", sums)];
                    let of_owned = [("n", owned.len()), ("n_all", self.n), ("first", owned.start)];
                    let places = [("n_sums", n_sums), ("k", k)];
                    queue.push(Call::of(dot, &[&of_owned[..], &places].concat(), &arrays));
                    queue.sum(sums, k);
                    queue.push(Call::of(remove, &sizes(k), &arrays));
                }
                queue.push(self.square(owned, square, (sums, n_sums, j + 1), w));
            }
        }
        queue.sum(sums, j + 1);
    }

    /// Adds the best combination of directions to the solution; the norm of its residual,
    /// preconditioned from the left.
    fn update(&self, system: System<'_>, small: &LeastSquares) -> Result<f64, SolveError> {
        let System { communicator, operator, preconditioner, side, b, x } = system;
        let directions = match side {
            Side::None | Side::Left => &self.basis,
            Side::Right => &self.directions,
        };
        let parts = small.solution().into_iter().zip(directions);
        let mut queue: Queue<'_> = parts.map(|(y, z)| self.vectors.axpy(y, z, x)).collect();
        let first = &self.basis[0]; // read by the updates above, where it is a direction
        let left = preconditioner.filter(|_| side == Side::Left);
        let r = if left.is_some() { &self.directions[0] } else { first };
        operator.apply(x, r, &mut queue);
        queue.extend([self.vectors.scale(-1.0, r), self.vectors.axpy(1.0, b, r)]);
        if let Some(preconditioner) = left {
            preconditioner.apply(r, first, &mut queue);
        }
        self.norm(communicator, queue)
    }
}

/// The side of a preconditioner, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    None,
    Right,
    Left,
}

/// The least-squares problem of the Hessenberg matrix, whose columns come one by one, made
/// triangular by Givens rotations.
pub(crate) struct LeastSquares {
    /// Columns of the triangular matrix, each down to the diagonal.
    columns: Vec<Vec<f64>>,
    /// Cosine and sine of each rotation.
    rotations: Vec<[f64; 2]>,
    /// The right-hand side, rotated.
    rhs: Vec<f64>,
}

impl LeastSquares {
    pub(crate) fn new(residual: f64) -> Self {
        Self { columns: Vec::new(), rotations: Vec::new(), rhs: vec![residual] }
    }

    /// Adds column `j` from the products with the basis and, after them, the square of what is
    /// left: the length of that, the residual with the column, and whether what is left is
    /// roundings alone, so that the basis holds the solution.
    pub(crate) fn take(&mut self, sums: &[f64], j: usize) -> (f64, f64, bool) {
        let (column, rest) = sums.split_at(j + 1);
        let length = rest.first().copied().unwrap_or(f64::NAN).sqrt();
        let whole = column.iter().fold(length, |whole, h| whole.hypot(*h));
        (length, self.add(column, length), length <= f64::EPSILON * whole)
    }

    /// Adds a column with `below` under its diagonal; the residual with it.
    pub(crate) fn add(&mut self, column: &[f64], below: f64) -> f64 {
        let mut column = column.to_vec();
        for (i, [c, s]) in self.rotations.iter().enumerate() {
            let (upper, lower) = (column[i], column[i + 1]);
            column[i] = c * upper + s * lower;
            column[i + 1] = c * lower - s * upper;
        }
        let j = self.rotations.len();
        let whole = column[j].hypot(below);
        let [c, s] = if whole > 0.0 { [column[j] / whole, below / whole] } else { [1.0, 0.0] };
        column[j] = whole;
        let last = self.rhs[j];
        self.rhs[j] = c * last;
        self.rhs.push(-s * last);
        self.rotations.push([c, s]);
        self.columns.push(column);
        (s * last).abs()
    }

    /// The coefficients of the least residual. A column that adds nothing gets none.
    pub(crate) fn solution(&self) -> Vec<f64> {
        let n = self.columns.len();
        let mut y = self.rhs[..n].to_vec();
        for j in (0..n).rev() {
            let column = &self.columns[j];
            y[j] = if column[j] == 0.0 { 0.0 } else { y[j] / column[j] };
            let (above, at) = y.split_at_mut(j);
            above.iter_mut().zip(column).for_each(|(y, r)| *y -= r * at[0]);
        }
        y
    }
}
