//! Chebyshev's iteration: a solver, and a polynomial of an operator that preconditions others.

use crate::history::History;
use crate::texts::{compiled, text};
use crate::{
    Call, Communicator, ConjugateGradients, LinearMethod, LinearOptions, LinearReport, Operator,
    Preconditioning, Queue, SolveError, put, run,
};
use kingpost_runtime::{Buffer, Device, Executable, download_values};

/// An interval of eigenvalues, from above zero on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectrum {
    /// At most the least one that counts.
    pub least: f64,
    /// At least the largest.
    pub largest: f64,
}

/// What is added to the largest eigenvalue that was found, which is a little below the largest of all.
const ABOVE: f64 = 1.1;
/// Part of the least value that was found which the least eigenvalue may have.
const BELOW: f64 = 0.5;

impl Spectrum {
    /// All eigenvalues, from [values among them](ConjugateGradients::ritz_values).
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] without a positive value.
    pub fn of_all(values: &[f64]) -> Result<Self, SolveError> {
        let whole = Self::of_upper(values, 1.0)?;
        let least = values.iter().copied().find(|value| *value > 0.0);
        Ok(Self { least: BELOW * least.unwrap_or(whole.largest), ..whole })
    }

    /// The upper part, down to a `ratio`-th of the largest: what a smoother has to reduce.
    ///
    /// # Errors
    /// As [`Spectrum::of_all`].
    ///
    /// # Source
    /// Adams et al. 2003.
    pub fn of_upper(values: &[f64], ratio: f64) -> Result<Self, SolveError> {
        match values.last() {
            Some(last) if *last > 0.0 && last.is_finite() => {
                Ok(Self { least: ABOVE * last / ratio, largest: ABOVE * last })
            }
            Some(_) | None => Err(SolveError::Spectrum { found: values.to_vec() }),
        }
    }

    /// The upper part likewise, where no eigenvalue is beyond a bound.
    pub(crate) const fn of_bound(bound: f64, ratio: f64) -> Self {
        Self { least: bound / ratio, largest: bound }
    }

    /// `α` and `β` of `α D⁻¹ - β D⁻¹ A D⁻¹`, which is what two steps from zero multiply by.
    pub(crate) fn two_steps(self) -> [f64; 2] {
        let mut factors = self.factors();
        let first = factors.first();
        let (a, c) = factors.next();
        [first + a + c * first, a * first]
    }

    /// Factors of the preconditioned residual and of the last direction in the directions after the
    /// first: the first is `residual/θ` alone.
    fn factors(self) -> Factors {
        let (middle, half) = ((self.largest + self.least) / 2.0, (self.largest - self.least) / 2.0);
        Factors { middle, half, rho: if half > 0.0 { half / middle } else { 0.0 } }
    }
}

/// The recurrence of Chebyshev polynomials on an interval.
struct Factors {
    middle: f64,
    half: f64,
    rho: f64,
}

impl Factors {
    fn first(&self) -> f64 {
        1.0 / self.middle
    }

    /// Of the residual, of the last direction.
    fn next(&mut self) -> (f64, f64) {
        if self.half <= 0.0 {
            return (1.0 / self.middle, 0.0);
        }
        let sigma = self.middle / self.half;
        let next = 1.0 / (2.0 * sigma - self.rho);
        let factors = (2.0 * next / self.half, next * self.rho);
        self.rho = next;
        factors
    }
}

/// A polynomial of an operator and a diagonal, near the inverse of the operator on an interval.
///
/// # Source
/// Saad 2003, Algorithm 12.1.
pub struct Chebyshev {
    n: usize,
    start: Executable,
    restart: Executable,
    step: Executable,
    subtract: Executable,
    r: Buffer,
    d: Buffer,
    q: Buffer,
}

impl Chebyshev {
    /// Compiles the kernels and allocates three vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &dyn Device, n: usize) -> Result<Self, SolveError> {
        Self::with_room(device, (n, n))
    }

    /// The same for operators that have [room](Operator::room) for more numbers.
    ///
    /// # Errors
    /// As [`Chebyshev::new`].
    pub fn with_room(device: &dyn Device, (n, room): (usize, usize)) -> Result<Self, SolveError> {
        let of_operator = || device.allocate_unset(8 * room.max(n) as u64);
        Ok(Self {
            n,
            start: compiled(device, text!("chebyshev_start"))?,
            restart: compiled(device, text!("chebyshev_restart"))?,
            step: compiled(device, text!("chebyshev_step"))?,
            subtract: compiled(device, text!("axpy"))?,
            r: device.allocate_unset(8 * n as u64)?,
            d: of_operator()?,
            q: of_operator()?,
        })
    }

    /// Appends what computes the residual after [`Chebyshev::smooth`].
    pub(crate) fn residual<'a>(&'a self, with: &Smoothing<'a>, queue: &mut Queue<'a>) -> &'a Buffer {
        let Self { r, d, q, .. } = self;
        with.operator.apply(d, q, queue);
        queue.push(Call::of(&self.subtract, &[("n", self.n)], &[("x", q), ("y", r)]).with("a", -1.0));
        r
    }

    /// Appends `steps` steps for `A x = b`, at least one, from zero or from what `x` holds. From zero,
    /// they take one product less.
    pub fn smooth<'a>(
        &'a self,
        with: &Smoothing<'a>,
        from_zero: bool,
        b: &'a Buffer,
        x: &'a Buffer,
        queue: &mut Queue<'a>,
    ) {
        let Self { r, d, q, .. } = self;
        let Smoothing { operator, inverse, spectrum, steps } = *with;
        let n = [("n", self.n)];
        let mut factors = spectrum.factors();
        let vectors = [("inverse", inverse), ("b", b), ("r", r), ("d", d), ("x", x)];
        let first = match from_zero {
            true => Call::of(&self.start, &n, &vectors),
            false => {
                operator.apply(x, q, queue);
                Call::of(&self.restart, &n, &[&vectors[..], &[("q", q)]].concat())
            }
        };
        queue.push(first.with("a", factors.first()));
        for _ in 1..steps {
            operator.apply(d, q, queue);
            let (a, c) = factors.next();
            let arrays = [("inverse", inverse), ("q", q), ("r", r), ("d", d), ("x", x)];
            queue.push(Call::of(&self.step, &n, &arrays).with("a", a).with("c", c));
        }
    }
}

/// What Chebyshev's iteration is of.
#[derive(Clone, Copy)]
pub struct Smoothing<'a> {
    /// The operator.
    pub operator: &'a dyn Operator,
    /// The inverse of its diagonal, or ones.
    pub inverse: &'a Buffer,
    /// Eigenvalues of the operator times `inverse`.
    pub spectrum: Spectrum,
    /// Steps, that is, the degree of the polynomial.
    pub steps: usize,
}

/// Chebyshev's iteration from zero as an operator: symmetric and positive definite if its operator is,
/// and has no eigenvalue above the interval.
pub struct ChebyshevPreconditioner<'a> {
    /// The kernels and vectors.
    pub chebyshev: &'a Chebyshev,
    /// What it iterates on.
    pub smoothing: Smoothing<'a>,
}

impl Operator for ChebyshevPreconditioner<'_> {
    fn size(&self) -> usize {
        self.chebyshev.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        self.chebyshev.smooth(&self.smoothing, true, x, y, queue);
    }
}

/// Chebyshev's iteration with a diagonal preconditioner as a solver: no products but those of the
/// operator, and no sums but the residual's, which only say when it ends.
///
/// # Source
/// Saad 2003, Algorithm 12.1.
pub struct ChebyshevSolver<'d> {
    device: &'d dyn Device,
    n: usize,
    options: LinearOptions,
    kernels: Chebyshev,
    limit: Executable,
    square: Executable,
    update: Executable,
    turn: Executable,
    rr: Buffer,
    enough: Buffer,
}

impl<'d> ChebyshevSolver<'d> {
    /// Compiles the kernels and allocates three vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, options: LinearOptions) -> Result<Self, SolveError> {
        let options = options.of_residuals(LinearMethod::Chebyshev)?;
        Ok(Self {
            device,
            n,
            options,
            kernels: Chebyshev::new(device, n)?,
            limit: compiled(device, text!("cg_limit"))?,
            square: compiled(device, text!("square"))?,
            update: compiled(device, text!("chebyshev_update"))?,
            turn: compiled(device, text!("chebyshev_turn"))?,
            rr: device.allocate_unset(8 * (options.look_every as u64 + 1))?,
            enough: device.allocate_unset(8)?,
        })
    }

    /// Takes another norm of the residual that is small enough in any case.
    pub(crate) fn set_absolute(&mut self, absolute: f64) {
        self.options.absolute = absolute;
    }

    /// Solves `A x = b` from a start of zero. The steps of `with` do not count.
    ///
    /// # Errors
    /// An operator of another size, a failing driver. That it does not converge is in the report.
    pub fn solve(&self, with: &Smoothing<'_>, b: &Buffer, x: &Buffer) -> Result<LinearReport, SolveError> {
        let Chebyshev { r, d, q, .. } = &self.kernels;
        let Smoothing { operator, inverse, spectrum, .. } = *with;
        if operator.size() != self.n {
            let (found, needed) = (operator.size(), self.n);
            return Err(SolveError::Length { what: "operator", found, needed });
        }
        let n_sums = self.options.look_every + 1;
        let mut factors = spectrum.factors();
        self.device.fill(&self.rr, 0)?;
        let vectors = [("inverse", inverse), ("b", b), ("r", r), ("d", d), ("x", x)];
        let start = Call::of(&self.kernels.start, &[("n", self.n)], &vectors).with("a", factors.first());
        let sizes = |k: usize| [("n", self.n), ("n_sums", n_sums), ("k", k)];
        let square = Call::of(&self.square, &sizes(0), &[("v", b), ("sums", &self.rr)]);
        let limit = Call::of(&self.limit, &sizes(0)[1..], &[("rr", &self.rr), ("limit", &self.enough)])
            .with("relative", self.options.relative.powi(2))
            .with("absolute", self.options.absolute.powi(2));
        let mut seconds = run(self.device, &[start, square, limit])?;
        // an iteration adds its own direction
        self.device.fill(x, 0)?;
        let mut history = History::new(self.options);
        let reason = loop {
            let count = history.next();
            let mut queue = Queue::new();
            for k in 0..count {
                operator.apply(d, q, &mut queue);
                let (a, c) = factors.next();
                let vectors = [("inverse", inverse), ("q", q), ("x", x), ("r", r), ("d", d)];
                let arrays = [&vectors[..], &[("limit", &self.enough), ("rr", &self.rr)]].concat();
                queue.push(Call::of(&self.update, &sizes(k), &arrays).with("a", a).with("c", c));
            }
            seconds += queue.run(self.device)?;
            let squares: Vec<f64> = download_values(self.device, &self.rr)?;
            if let Some(reason) = history.judge(&squares[..=count], |_| None) {
                break reason;
            }
            let turn = Call::of(&self.turn, &[("n_sums", n_sums)], &[("rr", &self.rr)]);
            seconds += run(self.device, &[turn])?;
        };
        Ok(LinearReport { reason, residuals: history.residuals, seconds })
    }
}

/// Eigenvalues of operators, found on the device.
pub struct Eigenvalues<'d> {
    solver: ConjugateGradients<'d>,
    random: Buffer,
    x: Buffer,
}

impl<'d> Eigenvalues<'d> {
    /// Compiles the kernels for a given number of iterations, allocates vectors of `n` numbers, and fills one with
    /// pseudo-random numbers.
    ///
    /// # Errors
    /// A device that refuses them, no memory.
    pub fn new(device: &'d dyn Device, n: usize, iterations: usize) -> Result<Self, SolveError> {
        let random = device.allocate_unset(8 * n as u64)?;
        let draw = compiled(device, text!("random_numbers"))?;
        put(device, &[Call::of(&draw, &[("n", n)], &[("x", &random)])])?;
        Self::from_start(device, (n, n), iterations, random)
    }

    /// The same from other numbers, f64 `[n]`, that have a part of each eigenvector, for operators that have
    /// [room](Operator::room) for more.
    ///
    /// # Errors
    /// As [`Eigenvalues::new`].
    pub fn from_start(
        device: &'d dyn Device,
        (n, room): (usize, usize),
        iterations: usize,
        random: Buffer,
    ) -> Result<Self, SolveError> {
        let options = LinearOptions { relative: 0.0, look_every: iterations, ..LinearOptions::default() };
        let solver = ConjugateGradients::with_room(device, (n, room), options)?;
        Ok(Self { solver, random, x: device.allocate_unset(8 * n as u64)? })
    }

    /// Values among the eigenvalues of an operator times a diagonal, ascending.
    ///
    /// # Errors
    /// As [`ConjugateGradients::ritz_values`].
    pub fn of(&self, operator: &dyn Operator, inverse: &Buffer) -> Result<Vec<f64>, SolveError> {
        self.solver.ritz_values(operator, Preconditioning::Diagonal(inverse), &self.random, &self.x)
    }

    /// The same together with the threads of other parts.
    ///
    /// # Errors
    /// As [`ConjugateGradients::ritz_values_over`].
    pub fn over(
        &self,
        communicator: &dyn Communicator,
        operator: &dyn Operator,
        inverse: &Buffer,
    ) -> Result<Vec<f64>, SolveError> {
        let by = Preconditioning::Diagonal(inverse);
        self.solver.ritz_values_over(communicator, operator, by, &self.random, &self.x)
    }
}
