//! The generalised minimal residual method, with a preconditioner that may change.

use crate::texts::{compiled, text};
use crate::{Call, LinearReason, LinearReport, Operator, SolveError, Vectors, run};
use purlin_runtime::{Buffer, Device, Executable, download_values};

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
/// allocated when an iteration needs them, two each (else one). An iteration is one list of
/// launches; after it the host reads its column of the Hessenberg matrix.
///
/// # Source
/// Saad & Schultz 1986; from the right Saad 1993, Algorithm 2.2 (FGMRES).
pub struct Gmres<'d> {
    device: &'d dyn Device,
    n: usize,
    options: GmresOptions,
    vectors: Vectors<'d>,
    clear: Executable,
    dot: Executable,
    remove_dot: Executable,
    remove_square: Executable,
    basis: Vec<Buffer>,
    directions: Vec<Buffer>,
    sums: Buffer,
}

impl<'d> Gmres<'d> {
    /// Compiles the kernels for vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: GmresOptions) -> Result<Self, SolveError> {
        let options = GmresOptions { restart: options.restart.max(1), ..options };
        Ok(Self {
            device,
            n,
            options,
            vectors: Vectors::new(device, n)?,
            clear: compiled(device, text!("clear"))?,
            dot: compiled(device, text!("dot"))?,
            remove_dot: compiled(device, text!("remove_dot"))?,
            remove_square: compiled(device, text!("remove_square"))?,
            basis: Vec::new(),
            directions: Vec::new(),
            sums: device.allocate(8 * (options.restart as u64 + 1))?,
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
        self.solve_by(operator, preconditioner, b, x, false)
    }

    /// The same from what `x` holds. Residuals are small enough relative to the right-hand side, as
    /// from a start of zero; the first one is that of the start.
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
        self.solve_by(operator, preconditioner, b, x, true)
    }

    fn solve_by(
        &mut self,
        operator: &dyn Operator,
        preconditioner: Option<&dyn Operator>,
        b: &Buffer,
        x: &Buffer,
        is_started: bool,
    ) -> Result<LinearReport, SolveError> {
        for (what, part) in [("operator", Some(operator)), ("preconditioner", preconditioner)] {
            if let Some(found) = part.map(Operator::size).filter(|size| *size != self.n) {
                return Err(SolveError::Length { what, found, needed: self.n });
            }
        }
        let side = self.side(preconditioner);
        self.need(1, usize::from(side == Side::Left))?;
        let mut calls = Vec::new();
        if !is_started {
            calls.push(Call::of(&self.clear, &[("n", self.n)], &[("v", x)]));
        }
        match preconditioner.filter(|_| side == Side::Left) {
            Some(preconditioner) => preconditioner.apply(b, &self.basis[0], &mut calls),
            None => self.device.copy(b, &self.basis[0])?,
        }
        let mut seconds = run(self.device, &calls)?;
        drop(calls);
        let whole = self.vectors.norm(&self.basis[0])?;
        let limit = (self.options.relative * whole).max(self.options.absolute);
        let mut residuals = vec![whole];
        if is_started {
            let nothing = LeastSquares::new(whole);
            seconds += run(self.device, &self.update(&nothing, operator, preconditioner, b, x))?;
            residuals = vec![self.vectors.norm(&self.basis[0])?];
        }
        let reason = loop {
            let start = residuals.last().copied().unwrap_or(f64::NAN);
            if let Some(reason) = self.options.ended(&residuals, limit) {
                break reason;
            }
            let small = self.cycle(operator, preconditioner, limit, &mut residuals, &mut seconds)?;
            seconds += run(self.device, &self.update(&small, operator, preconditioner, b, x))?;
            let exact = self.vectors.norm(&self.basis[0])?;
            if let Some(last) = residuals.last_mut() {
                *last = exact;
            }
            if exact > limit && exact >= start {
                break LinearReason::Stagnated;
            }
        };
        Ok(LinearReport { reason, residuals, seconds })
    }

    fn side(&self, preconditioner: Option<&dyn Operator>) -> Side {
        match (preconditioner, self.options.side) {
            (None, _) => Side::None,
            (Some(_), PreconditionerSide::Right) => Side::Right,
            (Some(_), PreconditionerSide::Left) => Side::Left,
        }
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
        operator: &dyn Operator,
        preconditioner: Option<&dyn Operator>,
        limit: f64,
        residuals: &mut Vec<f64>,
        seconds: &mut f64,
    ) -> Result<LeastSquares, SolveError> {
        let mut length = residuals.last().copied().unwrap_or(f64::NAN);
        let mut small = LeastSquares::new(length);
        for j in 0..self.options.restart {
            let directions = match self.side(preconditioner) {
                Side::None => 0,
                Side::Right => j + 1,
                Side::Left => 1,
            };
            self.need(j + 2, directions)?;
            let mut calls = Vec::new();
            self.iteration(j, length, operator, preconditioner, &mut calls);
            *seconds += run(self.device, &calls)?;
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
    fn iteration<'a>(
        &'a self,
        j: usize,
        length: f64,
        operator: &'a dyn Operator,
        preconditioner: Option<&'a dyn Operator>,
        calls: &mut Vec<Call<'a>>,
    ) {
        let Self { basis, directions, sums, .. } = self;
        let n_sums = self.options.restart + 1;
        let sizes = |k| [("n", self.n), ("n_sums", n_sums), ("k", k)];
        calls.push(self.vectors.scale(1.0 / length, &basis[j]));
        calls.push(Call::of(&self.clear, &[("n", n_sums)], &[("v", sums)]));
        let w = &basis[j + 1];
        match (preconditioner, self.side(preconditioner)) {
            (None, _) | (_, Side::None) => operator.apply(&basis[j], w, calls),
            (Some(preconditioner), Side::Right) => {
                preconditioner.apply(&basis[j], &directions[j], calls);
                operator.apply(&directions[j], w, calls);
            }
            (Some(preconditioner), Side::Left) => {
                operator.apply(&basis[j], &directions[0], calls);
                preconditioner.apply(&directions[0], w, calls);
            }
        }
        calls.push(Call::of(&self.dot, &sizes(0), &[("v", w), ("w", &basis[0]), ("sums", sums)]));
        for k in 0..j {
            let arrays = [("v", &basis[k]), ("u", &basis[k + 1]), ("w", w), ("sums", sums)];
            calls.push(Call::of(&self.remove_dot, &sizes(k), &arrays));
        }
        calls.push(Call::of(&self.remove_square, &sizes(j), &[("v", &basis[j]), ("w", w), ("sums", sums)]));
    }

    /// Adds the best combination of directions to the solution, and computes its residual,
    /// preconditioned from the left.
    fn update<'a>(
        &'a self,
        small: &LeastSquares,
        operator: &'a dyn Operator,
        preconditioner: Option<&'a dyn Operator>,
        b: &'a Buffer,
        x: &'a Buffer,
    ) -> Vec<Call<'a>> {
        let directions = match self.side(preconditioner) {
            Side::None | Side::Left => &self.basis,
            Side::Right => &self.directions,
        };
        let parts = small.solution().into_iter().zip(directions);
        let mut calls: Vec<_> = parts.map(|(y, z)| self.vectors.axpy(y, z, x)).collect();
        let first = &self.basis[0]; // read by the updates above, where it is a direction
        let left = preconditioner.filter(|_| self.side(preconditioner) == Side::Left);
        let r = if left.is_some() { &self.directions[0] } else { first };
        operator.apply(x, r, &mut calls);
        calls.extend([self.vectors.scale(-1.0, r), self.vectors.axpy(1.0, b, r)]);
        if let Some(preconditioner) = left {
            preconditioner.apply(r, first, &mut calls);
        }
        calls
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
