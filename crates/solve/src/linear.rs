//! Solvers of linear systems by name, with their preconditioners.

use crate::scaling::is_usual;
use crate::{
    Amg, AmgPreconditioner, BiCgStab, BlockJacobi, BlocksOfRows, Chebyshev, ChebyshevPreconditioner,
    ChebyshevSolver, ConjugateGradients, CsrOperator, Diagonal, Eigenvalues, Gmres, GmresOptions,
    HierarchySize, HostMatrix, LinearOptions, LinearReport, Operator, PowerOfTwo, PreconditionerSide,
    Preconditioning, Smoothing, SolveError, Spectrum, Unknowns, run,
};
use purlin_forms::import::{CsrPattern, EntryOrder};
use purlin_runtime::{Buffer, Device, buffer_of, download_values, upload_values};
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// A method for linear systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinearMethod {
    /// [`ConjugateGradients`], for symmetric positive definite matrices.
    #[default]
    ConjugateGradients,
    /// [`Gmres`], for any matrix.
    Gmres,
    /// [`BiCgStab`], for any matrix.
    BiCgStab,
    /// [`ChebyshevSolver`], for symmetric positive definite matrices.
    Chebyshev,
}

/// What is near the inverse of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreconditionerKind {
    /// Nothing.
    None,
    /// The inverse of the [`Diagonal`].
    #[default]
    Jacobi,
    /// The inverses of the blocks on the diagonal, [`BlockJacobi`].
    BlockJacobi,
    /// A polynomial, [`Chebyshev`].
    Chebyshev,
    /// Algebraic multigrid, [`Amg`].
    Amg,
}

/// A method and a preconditioner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinearChoice {
    /// The method.
    pub method: LinearMethod,
    /// The preconditioner.
    pub preconditioner: PreconditionerKind,
}

/// A name that no method or preconditioner has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; known: {known}")]
pub struct UnknownSolver {
    what: &'static str,
    name: String,
    known: String,
}

pub(crate) fn named<T: Copy + fmt::Display>(
    what: &'static str,
    all: &[T],
    name: &str,
) -> Result<T, UnknownSolver> {
    let found = all.iter().find(|one| one.to_string() == name).copied();
    found.ok_or_else(|| {
        let known: Vec<String> = all.iter().map(ToString::to_string).collect();
        UnknownSolver { what, name: name.into(), known: known.join(", ") }
    })
}

impl LinearMethod {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ConjugateGradients, Self::Gmres, Self::BiCgStab, Self::Chebyshev];

    /// Vectors that it keeps beside right-hand side and solution, at most.
    #[must_use]
    pub const fn vectors(self) -> u64 {
        match self {
            Self::ConjugateGradients => 4,
            Self::Gmres => 2 * RESTART as u64 + 1,
            Self::BiCgStab => 7,
            // those of the search for eigenvalues too
            Self::Chebyshev => 9,
        }
    }
}

impl fmt::Display for LinearMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConjugateGradients => "cg",
            Self::Gmres => "gmres",
            Self::BiCgStab => "bicgstab",
            Self::Chebyshev => "chebyshev",
        })
    }
}

impl FromStr for LinearMethod {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named("method", &Self::ALL, name)
    }
}

impl PreconditionerKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Jacobi, Self::BlockJacobi, Self::Chebyshev, Self::Amg];

    /// Bytes that it takes on a device for a matrix of a number of unknowns of `components` each.
    #[must_use]
    pub const fn bytes(self, unknowns: u64, components: u64) -> u64 {
        match self {
            Self::None | Self::Jacobi => 8 * unknowns,
            Self::BlockJacobi => (8 + 4) * unknowns * components,
            // its diagonal, its vectors, those of the search for eigenvalues
            Self::Chebyshev => 8 * 10 * unknowns,
            // the vectors of the finest level; matrices are counted once they are known ([`Amg::new`])
            Self::Amg => 8 * 6 * unknowns,
        }
    }
}

impl fmt::Display for PreconditionerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::BlockJacobi => "block-jacobi",
            Self::Chebyshev => "chebyshev",
            Self::Amg => "amg",
        })
    }
}

impl FromStr for PreconditionerKind {
    type Err = UnknownSolver;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        named("preconditioner", &Self::ALL, name)
    }
}

impl fmt::Display for LinearChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, preconditioner {}", self.method, self.preconditioner)
    }
}

/// Iterations of GMRES after which it starts again.
const RESTART: usize = 50;
/// Iterations that find the largest eigenvalue.
const OF_LARGEST: usize = 12;
/// Iterations that find the least one, too.
const OF_ALL: usize = 60;
/// The degree of the polynomial that preconditions, and the ratio of its interval.
const POLYNOMIAL: (usize, f64) = (4, 30.0);

enum Method<'d> {
    ConjugateGradients(ConjugateGradients<'d>),
    Gmres(Gmres<'d>),
    BiCgStab(Box<BiCgStab<'d>>),
    Chebyshev { solver: ChebyshevSolver<'d>, eigenvalues: Box<Eigenvalues<'d>>, spectrum: Option<Spectrum> },
}

impl<'d> Method<'d> {
    fn new(
        device: &'d dyn Device,
        n: usize,
        choice: LinearChoice,
        options: LinearOptions,
    ) -> Result<Self, SolveError> {
        Ok(match (choice.method, choice.preconditioner) {
            (LinearMethod::ConjugateGradients, _) => {
                Self::ConjugateGradients(ConjugateGradients::new(device, n, options)?)
            }
            (LinearMethod::Gmres, _) => {
                let options = options.of_residuals(LinearMethod::Gmres)?;
                let options = GmresOptions {
                    relative: options.relative,
                    absolute: options.absolute,
                    max_iterations: options.max_iterations,
                    restart: RESTART,
                    side: PreconditionerSide::Right,
                };
                Self::Gmres(Gmres::new(device, n, options)?)
            }
            (LinearMethod::BiCgStab, _) => Self::BiCgStab(Box::new(BiCgStab::new(device, n, options)?)),
            (LinearMethod::Chebyshev, PreconditionerKind::None | PreconditionerKind::Jacobi) => {
                Self::Chebyshev {
                    solver: ChebyshevSolver::new(device, n, options)?,
                    eigenvalues: Box::new(Eigenvalues::new(device, n, OF_ALL)?),
                    spectrum: None,
                }
            }
            (
                LinearMethod::Chebyshev,
                PreconditionerKind::BlockJacobi | PreconditionerKind::Chebyshev | PreconditionerKind::Amg,
            ) => {
                return Err(SolveError::Choice { choice });
            }
        })
    }
}

impl Method<'_> {
    fn set_absolute(&mut self, absolute: f64) {
        match self {
            Self::ConjugateGradients(solver) => solver.set_absolute(absolute),
            Self::Gmres(solver) => solver.set_absolute(absolute),
            Self::BiCgStab(solver) => solver.set_absolute(absolute),
            Self::Chebyshev { solver, .. } => solver.set_absolute(absolute),
        }
    }
}

enum Preconditioner<'d> {
    /// The inverse of the diagonal, or ones.
    Diagonal(Diagonal),
    BlockJacobi(BlockJacobi),
    Chebyshev {
        diagonal: Diagonal,
        kernels: Chebyshev,
        eigenvalues: Box<Eigenvalues<'d>>,
        spectrum: Option<Spectrum>,
    },
    Amg(Multilevel),
}

/// A hierarchy, and what it is made from.
struct Multilevel {
    row_starts: Vec<i32>,
    columns: Vec<i32>,
    unknowns: Unknowns,
    hierarchy: Option<Amg>,
    /// Iterations of the first solve with its sets of nodes, and with its numbers.
    iterations: [Option<usize>; 2],
    /// What the next matrix needs.
    needs: Renewal,
}

/// What of a hierarchy is made again for a matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewal {
    Nothing,
    Numbers,
    Whole,
}

impl Multilevel {
    /// Makes what is needed of a hierarchy of a matrix whose unknowns are `u`.
    fn make(
        &mut self,
        device: &dyn Device,
        matrix: &CsrOperator,
        u: Option<&Buffer>,
    ) -> Result<(), SolveError> {
        if self.needs == Renewal::Nothing {
            return Ok(());
        }
        let values = download_values(device, matrix.values())?;
        let moved = u.filter(|_| self.unknowns.are_displacements());
        let u: Vec<f64> = moved.map(|u| download_values(device, u)).transpose()?.unwrap_or_default();
        let host = HostMatrix { row_starts: &self.row_starts, columns: &self.columns, values: &values };
        let is_renewed = match &mut self.hierarchy {
            Some(known) if self.needs == Renewal::Numbers => {
                known.renew(device, &host, &self.unknowns, &u)?
            }
            Some(_) | None => false,
        };
        if !is_renewed {
            self.hierarchy = None; // its memory is free before the next one is allocated
            self.hierarchy = Some(Amg::new(device, &host, &self.unknowns, &u)?);
            self.iterations[0] = None;
        }
        self.iterations[1] = None;
        self.needs = Renewal::Nothing;
        Ok(())
    }

    /// Judges the hierarchy by a solve with it.
    fn judge(&mut self, report: &LinearReport) {
        let found = report.iterations();
        let is_more = |first: &mut Option<usize>| 2 * found > 3 * *first.get_or_insert(found) + 4;
        let is_fresh = self.iterations[1].is_none();
        let [of_sets, of_numbers] = self.iterations.each_mut().map(is_more);
        self.needs = match () {
            // other numbers did not help
            () if is_fresh && of_sets => Renewal::Whole,
            () if !report.converged() || of_numbers => Renewal::Numbers,
            () => Renewal::Nothing,
        };
    }
}

/// A solver with its preconditioner, for matrices of one pattern.
pub struct LinearSolver<'d> {
    device: &'d dyn Device,
    n: usize,
    choice: LinearChoice,
    /// The norm of the residual that is small enough in any case.
    absolute: f64,
    method: Method<'d>,
    preconditioner: Preconditioner<'d>,
    /// What products are computed with, where unknowns have components.
    blocks: Option<BlocksOfRows>,
}

impl<'d> LinearSolver<'d> {
    /// Compiles the kernels and allocates the vectors for matrices of a pattern and its unknowns.
    ///
    /// # Errors
    /// [`SolveError::Choice`] of a preconditioner that the method does not take, [`SolveError::HalfOfRows`] of
    /// one that needs whole rows, [`SolveError::Option`]; no memory, a device that refuses the kernels.
    pub fn new(
        device: &'d dyn Device,
        pattern: &CsrPattern,
        unknowns: &Unknowns,
        choice: LinearChoice,
        options: LinearOptions,
    ) -> Result<Self, SolveError> {
        let options = options.checked()?;
        let n = pattern.row_starts.len().saturating_sub(1);
        let is_half = pattern.order() == EntryOrder::UpperRows;
        let needs_rows =
            matches!(choice.preconditioner, PreconditionerKind::BlockJacobi | PreconditionerKind::Amg);
        if is_half && needs_rows {
            return Err(SolveError::HalfOfRows { preconditioner: choice.preconditioner });
        }
        let method = Method::new(device, n, choice, options)?;
        let preconditioner = match choice.preconditioner {
            PreconditionerKind::None | PreconditionerKind::Jacobi => {
                Preconditioner::Diagonal(Diagonal::identity(device, n)?)
            }
            PreconditionerKind::BlockJacobi => {
                Preconditioner::BlockJacobi(BlockJacobi::new(device, pattern, unknowns.components)?)
            }
            PreconditionerKind::Chebyshev => Preconditioner::Chebyshev {
                diagonal: Diagonal::identity(device, n)?,
                kernels: Chebyshev::new(device, n)?,
                eigenvalues: Box::new(Eigenvalues::new(device, n, OF_LARGEST)?),
                spectrum: None,
            },
            PreconditionerKind::Amg => Preconditioner::Amg(Multilevel {
                row_starts: pattern.row_starts.clone(),
                columns: pattern.columns.clone(),
                unknowns: unknowns.clone(),
                hierarchy: None,
                iterations: [None, None],
                needs: Renewal::Whole,
            }),
        };
        let has_blocks =
            !is_half && unknowns.components > 1 && pattern.by_blocks().extents == [unknowns.components; 2];
        let blocks = has_blocks.then(|| BlocksOfRows::new(device, pattern)).transpose()?;
        Ok(Self { device, n, choice, absolute: options.absolute, method, preconditioner, blocks })
    }

    /// Takes other options, for later solves.
    ///
    /// # Errors
    /// As [`LinearSolver::new`].
    pub fn set_options(&mut self, options: LinearOptions) -> Result<(), SolveError> {
        self.method = Method::new(self.device, self.n, self.choice, options.checked()?)?;
        self.absolute = options.absolute;
        Ok(())
    }

    /// What the hierarchy of its preconditioner consists of, if it has one.
    #[must_use]
    pub fn hierarchy(&self) -> Option<&HierarchySize> {
        match &self.preconditioner {
            Preconditioner::Amg(levels) => levels.hierarchy.as_ref().map(Amg::size),
            Preconditioner::Diagonal(_)
            | Preconditioner::BlockJacobi(_)
            | Preconditioner::Chebyshev { .. } => None,
        }
    }

    /// What it is.
    #[must_use]
    pub const fn choice(&self) -> LinearChoice {
        self.choice
    }

    /// Makes the preconditioner of a matrix, whose unknowns are `u` (points move with displacements); wall
    /// time in seconds. A hierarchy is kept from matrix to matrix until a solve with it takes half as many
    /// iterations again as the first one, and four. Then its numbers are found again, and if they do no
    /// better than that, its sets of nodes too.
    ///
    /// # Errors
    /// [`SolveError::Spectrum`] of a matrix that has no positive eigenvalue where the method needs the
    /// largest; a failing driver.
    pub fn prepare(&mut self, matrix: &CsrOperator, u: Option<&Buffer>) -> Result<f64, SolveError> {
        let start = Instant::now();
        let by_jacobi = self.choice.preconditioner != PreconditionerKind::None;
        match &mut self.preconditioner {
            Preconditioner::Diagonal(diagonal) => {
                if by_jacobi {
                    run(self.device, &[diagonal.invert(matrix)])?;
                }
                if let Method::Chebyshev { eigenvalues, spectrum, .. } = &mut self.method {
                    *spectrum = Some(Spectrum::of_all(&eigenvalues.of(matrix, diagonal.values())?)?);
                }
            }
            Preconditioner::BlockJacobi(blocks) => {
                run(self.device, &[blocks.invert(matrix)])?;
            }
            Preconditioner::Chebyshev { diagonal, eigenvalues, spectrum, .. } => {
                run(self.device, &[diagonal.invert(matrix)])?;
                let values = eigenvalues.of(matrix, diagonal.values())?;
                *spectrum = Some(Spectrum::of_upper(&values, POLYNOMIAL.1)?);
            }
            Preconditioner::Amg(levels) => levels.make(self.device, matrix, u)?,
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Solves `A x = b` from a start of zero, with the preconditioner that was made last. Products are those of
    /// a copy [by blocks](BlocksOfRows) where unknowns have components; the seconds are with it. A right-hand
    /// side so small or large that its square is none is solved for by a multiple of it.
    ///
    /// # Errors
    /// A matrix of another size, [`SolveError::Unprepared`], no memory, a failing driver. That it does
    /// not converge is in the report.
    pub fn solve(
        &mut self,
        matrix: &CsrOperator,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let mut report = self.solve_as_given(matrix, b, x)?;
        let first = report.residuals.first().copied();
        if first.is_some_and(|norm| !is_usual(norm)) {
            let mut values = download_values::<f64>(self.device, b)?;
            if let Some(scale) = PowerOfTwo::to_one(&values) {
                scale.scale(&mut values);
                let seconds = report.seconds;
                report = self.solve_scaled(matrix, &buffer_of(self.device, &values)?, x, scale)?;
                report.seconds += seconds;
            }
        }
        if let Preconditioner::Amg(levels) = &mut self.preconditioner {
            levels.judge(&report);
        }
        Ok(report)
    }

    /// Solves for a multiple `b` of the right-hand side; the solution and the report are those without it.
    fn solve_scaled(
        &mut self,
        matrix: &CsrOperator,
        b: &Buffer,
        x: &Buffer,
        scale: PowerOfTwo,
    ) -> Result<LinearReport, SolveError> {
        // what is beyond all numbers is larger than all residuals
        self.method.set_absolute(scale.times(self.absolute).min(f64::MAX));
        let solved = self.solve_as_given(matrix, b, x);
        self.method.set_absolute(self.absolute);
        let mut report = solved?;
        let mut solution = download_values::<f64>(self.device, x)?;
        scale.inverse().scale(&mut solution);
        scale.inverse().scale(&mut report.residuals);
        upload_values(self.device, x, &solution)?;
        Ok(report)
    }

    fn solve_as_given(
        &mut self,
        matrix: &CsrOperator,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        if matrix.size() != self.n {
            return Err(SolveError::Length { what: "operator", found: matrix.size(), needed: self.n });
        }
        let mut copied = 0.0;
        let operator: &dyn Operator = match &self.blocks {
            Some(blocks) => {
                copied = run(self.device, &[blocks.take(matrix)])?;
                blocks.blocks()
            }
            None => matrix,
        };
        let is_identity = self.choice.preconditioner == PreconditionerKind::None;
        let (polynomial, cycle);
        let (diagonal, other): (Option<&Diagonal>, &dyn Operator) = match &self.preconditioner {
            Preconditioner::Diagonal(diagonal) => (Some(diagonal), diagonal),
            Preconditioner::BlockJacobi(blocks) => (None, blocks),
            Preconditioner::Chebyshev { diagonal, kernels, spectrum, .. } => {
                let spectrum = spectrum.ok_or(SolveError::Unprepared)?;
                let (steps, inverse) = (POLYNOMIAL.0, diagonal.values());
                let smoothing = Smoothing { operator, inverse, spectrum, steps };
                polynomial = ChebyshevPreconditioner { chebyshev: kernels, smoothing };
                (None, &polynomial)
            }
            Preconditioner::Amg(levels) => {
                let hierarchy = levels.hierarchy.as_ref().ok_or(SolveError::Unprepared)?;
                cycle = AmgPreconditioner { hierarchy, operator };
                (None, &cycle)
            }
        };
        let mut report = match &mut self.method {
            Method::ConjugateGradients(solver) => {
                let preconditioning = match diagonal {
                    Some(diagonal) => Preconditioning::Diagonal(diagonal.values()),
                    None => Preconditioning::Operator(other),
                };
                solver.solve(operator, preconditioning, b, x)
            }
            Method::Gmres(solver) => solver.solve(operator, (!is_identity).then_some(other), b, x),
            Method::BiCgStab(solver) => solver.solve(operator, other, b, x),
            Method::Chebyshev { solver, spectrum, .. } => {
                let spectrum = spectrum.ok_or(SolveError::Unprepared)?;
                let inverse = diagonal.ok_or(SolveError::Unprepared)?.values();
                solver.solve(&Smoothing { operator, inverse, spectrum, steps: 1 }, b, x)
            }
        }?;
        report.seconds += copied;
        Ok(report)
    }
}
