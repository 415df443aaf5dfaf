//! Solvers of linear systems with their preconditioners.

mod times;

pub use times::HierarchyTimes;

use crate::choice::RESTART;
use crate::parts::own_pattern;
use crate::scaling::is_usual;
use crate::{
    Alone, Amg, AmgPreconditioner, BiCgStab, BlockJacobi, BlockRows, BlocksOfRows, Chebyshev,
    ChebyshevPreconditioner, ChebyshevSolver, Communicator, ConjugateGradients, CsrOperator, CycleNumbers,
    Diagonal, Eigenvalues, Gmres, GmresOptions, HierarchySize, LinearChoice, LinearMethod, LinearOptions,
    LinearReport, Operator, PartLayout, PartRows, PowerOfTwo, PreconditionerKind, PreconditionerSide,
    Preconditioning, Queue, Smoothing, SolveError, Spectrum, SystemMatrix, Unknowns, run,
};
use kingpost_fem::sparse::{CsrPattern, EntryOrder};
use kingpost_runtime::{Buffer, Device, buffer_of, download_values, stage, upload_values};
use std::time::Instant;

/// Iterations that find the largest eigenvalue.
const OF_LARGEST: usize = 12;
/// Iterations that find the least one, too.
const OF_ALL: usize = 60;
/// The degree of the polynomial that preconditions, and the ratio of its interval.
const POLYNOMIAL: (usize, f64) = (4, 30.0);

/// Iterations between two looks where each is a cycle: the last ones run for nothing, and a cycle takes longer than
/// a look. With 16, systems of 680,943 unknowns that take 6 to 14 iterations took 27 ms each (H200, 2026-11-29).
const CYCLES: usize = 2;

enum Method<'d> {
    ConjugateGradients(Box<ConjugateGradients<'d>>),
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
        let look_every = match choice.preconditioner {
            PreconditionerKind::Amg | PreconditionerKind::AmgF32 => options.look_every.min(CYCLES),
            PreconditionerKind::None
            | PreconditionerKind::Jacobi
            | PreconditionerKind::BlockJacobi
            | PreconditionerKind::Chebyshev => options.look_every,
        };
        let options = LinearOptions { look_every, ..options };
        Ok(match (choice.method, choice.preconditioner) {
            (LinearMethod::ConjugateGradients, _) => {
                Self::ConjugateGradients(Box::new(ConjugateGradients::new(device, n, options)?))
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
                PreconditionerKind::BlockJacobi
                | PreconditionerKind::Chebyshev
                | PreconditionerKind::Amg
                | PreconditionerKind::AmgF32,
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
    Amg(Box<Multilevel>),
}

/// A hierarchy, and what it is made from.
struct Multilevel {
    numbers: CycleNumbers,
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
        matrix: &BlockRows<'_>,
        u: Option<&Buffer>,
    ) -> Result<(), SolveError> {
        if let (Renewal::Nothing, Some(known)) = (self.needs, &self.hierarchy) {
            return known.take(device, matrix);
        }
        stage("making a hierarchy");
        let known = self.hierarchy.take();
        let renewed = match known {
            Some(known) if self.needs == Renewal::Numbers => known.renew(device, matrix, u)?,
            // its memory is free before the next one is allocated
            Some(_) | None => None,
        };
        self.hierarchy = Some(match renewed {
            Some(renewed) => renewed,
            None => {
                self.iterations[0] = None;
                Amg::of_numbers(device, (matrix, u), &self.unknowns, self.numbers)?
            }
        });
        self.iterations[1] = None;
        self.needs = Renewal::Nothing;
        Ok(())
    }

    /// Judges the hierarchy by a solve with it.
    fn judge(&mut self, report: &LinearReport) {
        let found = report.iterations();
        let is_more = |first: &mut Option<usize>| 2 * found > 3 * *first.get_or_insert(found) + 4;
        let [is_first, is_fresh] = self.iterations.map(|first| first.is_none());
        let [of_sets, of_numbers] = self.iterations.each_mut().map(is_more);
        self.needs = match () {
            // other numbers did not help
            () if is_fresh && (of_sets || !(is_first || report.converged())) => Renewal::Whole,
            () if !report.converged() || of_numbers => Renewal::Numbers,
            () => Renewal::Nothing,
        };
    }
}

/// A system, as it is to be solved.
#[derive(Clone, Copy)]
struct Asked<'a> {
    communicator: &'a dyn Communicator,
    /// The matrix, of a part its own rows and columns.
    matrix: &'a CsrOperator,
    /// All of a part's rows.
    rows: Option<&'a PartRows>,
    b: &'a Buffer,
    x: &'a Buffer,
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
    /// Whether other parts have other unknowns.
    is_part: bool,
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
            choice.preconditioner == PreconditionerKind::BlockJacobi || choice.preconditioner.is_multilevel();
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
            PreconditionerKind::Amg | PreconditionerKind::AmgF32 => {
                Preconditioner::Amg(Box::new(Multilevel {
                    numbers: choice.preconditioner.cycle_numbers(),
                    unknowns: unknowns.clone(),
                    hierarchy: None,
                    iterations: [None, None],
                    needs: Renewal::Whole,
                }))
            }
        };
        let has_blocks =
            !is_half && unknowns.components > 1 && pattern.by_blocks().extents == [unknowns.components; 2];
        let blocks = match choice.preconditioner {
            _ if has_blocks => Some(BlocksOfRows::new(device, pattern)?),
            // nodes are what is aggregated
            kind if kind.is_multilevel() && unknowns.components > 1 => {
                BlocksOfRows::of_entries(device, pattern, unknowns.components)?
            }
            PreconditionerKind::Amg
            | PreconditionerKind::AmgF32
            | PreconditionerKind::None
            | PreconditionerKind::Jacobi
            | PreconditionerKind::BlockJacobi
            | PreconditionerKind::Chebyshev => None,
        };
        let (absolute, is_part) = (options.absolute, false);
        Ok(Self { device, n, choice, absolute, method, preconditioner, blocks, is_part })
    }

    /// The same for the unknowns that a part owns, of matrices that have this pattern on its mesh.
    /// The preconditioner is that of owned rows and columns alone, so that parts do not exchange
    /// anything for it: block Jacobi with a block a part.
    ///
    /// # Errors
    /// [`SolveError::PartsChoice`] but of conjugate gradients and GMRES, and of Chebyshev's
    /// polynomial; as [`LinearSolver::new`].
    ///
    /// # Source
    /// Saad 2003, §14.3.1, without overlap.
    pub fn of_part(
        device: &'d dyn Device,
        (pattern, layout): (&CsrPattern, &PartLayout),
        unknowns: &Unknowns,
        choice: LinearChoice,
        options: LinearOptions,
    ) -> Result<Self, SolveError> {
        let choice = choice.for_parts()?;
        let is_multilevel = choice.preconditioner.is_multilevel();
        if is_multilevel || choice.preconditioner == PreconditionerKind::BlockJacobi {
            let own = own_pattern(pattern, layout);
            let solver = Self::new(device, &own, unknowns, choice, options)?;
            let blocks = solver.blocks.filter(|_| is_multilevel);
            return Ok(Self { blocks, is_part: true, ..solver });
        }
        let (options, n) = (options.checked()?, layout.owned.len());
        Ok(Self {
            device,
            n,
            choice,
            absolute: options.absolute,
            method: Method::new(device, n, choice, options)?,
            preconditioner: Preconditioner::Diagonal(Diagonal::identity(device, n)?),
            blocks: None,
            is_part: true,
        })
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
        self.prepare_over(&Alone::new(self.device), matrix, u)
    }

    /// The same of the rows and columns that a part owns, together with the threads of other parts.
    ///
    /// # Errors
    /// As [`LinearSolver::prepare`].
    pub fn prepare_over(
        &mut self,
        communicator: &dyn Communicator,
        matrix: &CsrOperator,
        u: Option<&Buffer>,
    ) -> Result<f64, SolveError> {
        let start = Instant::now();
        let perform = |call| communicator.perform(&[call].into_iter().collect());
        let by_jacobi = self.choice.preconditioner != PreconditionerKind::None;
        match &mut self.preconditioner {
            Preconditioner::Diagonal(diagonal) => {
                if by_jacobi {
                    perform(diagonal.invert(matrix))?;
                }
                if let Method::Chebyshev { eigenvalues, spectrum, .. } = &mut self.method {
                    *spectrum = Some(Spectrum::of_all(&eigenvalues.of(matrix, diagonal.values())?)?);
                }
            }
            Preconditioner::BlockJacobi(blocks) => {
                perform(blocks.invert(matrix))?;
            }
            Preconditioner::Chebyshev { diagonal, eigenvalues, spectrum, .. } => {
                perform(diagonal.invert(matrix))?;
                let values = eigenvalues.of(matrix, diagonal.values())?;
                *spectrum = Some(Spectrum::of_upper(&values, POLYNOMIAL.1)?);
            }
            Preconditioner::Amg(levels) => {
                // entries of a part are taken on a stream of its own; positions move with its whole
                // mesh
                communicator.wait()?;
                let u = u.filter(|_| !self.is_part);
                let rows = match &self.blocks {
                    None => matrix.block_rows()?,
                    Some(blocks) => {
                        perform(blocks.take(matrix))?;
                        communicator.wait()?;
                        blocks.blocks().block_rows()?
                    }
                };
                levels.make(self.device, &rows, u)?;
            }
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
        let communicator = &Alone::new(self.device);
        self.solve_any(&Asked { communicator, matrix, rows: None, b, x })
    }

    /// The same together with the threads of other parts, if the matrix is that of a part.
    ///
    /// # Errors
    /// As [`LinearSolver::solve`]; a part that ended. The other parts end likewise.
    pub fn solve_over(
        &mut self,
        communicator: &dyn Communicator,
        matrix: &SystemMatrix,
        b: &Buffer,
        x: &Buffer,
    ) -> Result<LinearReport, SolveError> {
        let rows = match matrix {
            SystemMatrix::Whole(_) => None,
            SystemMatrix::Part(rows) => Some(&**rows),
        };
        self.solve_any(&Asked { communicator, matrix: matrix.own(), rows, b, x })
    }

    fn solve_any(&mut self, asked: &Asked<'_>) -> Result<LinearReport, SolveError> {
        let mut report = self.solve_as_given(asked)?;
        let first = report.residuals.first().copied();
        if first.is_some_and(|norm| !is_usual(norm)) {
            let mut values = download_values::<f64>(self.device, asked.b)?;
            if let Some(scale) = self.scale_of_all(asked.communicator, &values)? {
                scale.scale(&mut values);
                let seconds = report.seconds;
                let b = &buffer_of(self.device, &values)?;
                report = self.solve_scaled(&Asked { b, ..*asked }, scale)?;
                report.seconds += seconds;
            }
        }
        if let Preconditioner::Amg(levels) = &mut self.preconditioner {
            levels.judge(&report);
        }
        Ok(report)
    }

    /// What takes the largest number of all parts to one.
    fn scale_of_all(
        &self,
        communicator: &dyn Communicator,
        own: &[f64],
    ) -> Result<Option<PowerOfTwo>, SolveError> {
        if communicator.size() == 1 {
            return Ok(PowerOfTwo::to_one(own));
        }
        // each part adds its own to zeros
        let mut of_parts = vec![0.0; communicator.size()];
        of_parts[communicator.rank()] = PowerOfTwo::largest(own);
        let largest = buffer_of(self.device, &of_parts)?;
        let mut queue = Queue::new();
        (0..communicator.size()).for_each(|part| queue.sum(&largest, part));
        communicator.perform(&queue)?;
        communicator.wait()?;
        Ok(PowerOfTwo::to_one(&download_values::<f64>(self.device, &largest)?))
    }

    /// Solves for a multiple of the right-hand side, which is given; the solution and the report are those
    /// without it.
    fn solve_scaled(&mut self, asked: &Asked<'_>, scale: PowerOfTwo) -> Result<LinearReport, SolveError> {
        // what is beyond all numbers is larger than all residuals
        self.method.set_absolute(scale.times(self.absolute).min(f64::MAX));
        let solved = self.solve_as_given(asked);
        self.method.set_absolute(self.absolute);
        let mut report = solved?;
        let mut solution = download_values::<f64>(self.device, asked.x)?;
        scale.inverse().scale(&mut solution);
        scale.inverse().scale(&mut report.residuals);
        upload_values(self.device, asked.x, &solution)?;
        Ok(report)
    }

    fn solve_as_given(&mut self, asked: &Asked<'_>) -> Result<LinearReport, SolveError> {
        let Asked { communicator, matrix, rows, b, x } = *asked;
        if matrix.size() != self.n {
            return Err(SolveError::Length { what: "operator", found: matrix.size(), needed: self.n });
        }
        let mut copied = 0.0;
        let operator: &dyn Operator = match (rows, &self.blocks) {
            (Some(rows), _) => rows,
            (None, Some(blocks)) => {
                copied = run(self.device, &[blocks.take(matrix)])?;
                blocks.blocks()
            }
            (None, None) => matrix,
        };
        // that of a part is preconditioned by its own rows and columns
        let local: &dyn Operator = match (rows, &self.blocks) {
            (Some(_), Some(blocks)) => blocks.blocks(),
            (Some(_), None) => matrix,
            (None, _) => operator,
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
                cycle = AmgPreconditioner { hierarchy, operator: local };
                (None, &cycle)
            }
        };
        let mut report = match &mut self.method {
            Method::ConjugateGradients(solver) => {
                let preconditioning = match diagonal {
                    Some(diagonal) => Preconditioning::Diagonal(diagonal.values()),
                    None => Preconditioning::Operator(other),
                };
                solver.solve_over(communicator, operator, preconditioning, b, x)
            }
            Method::Gmres(solver) => {
                solver.solve_over(communicator, operator, (!is_identity).then_some(other), b, x)
            }
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

impl LinearChoice {
    /// The same, if several parts solve so together.
    ///
    /// # Errors
    /// [`SolveError::PartsChoice`] of what needs the whole matrix.
    pub const fn for_parts(self) -> Result<Self, SolveError> {
        match (self.method, self.preconditioner) {
            (
                LinearMethod::ConjugateGradients | LinearMethod::Gmres,
                PreconditionerKind::None
                | PreconditionerKind::Jacobi
                | PreconditionerKind::BlockJacobi
                | PreconditionerKind::Amg
                | PreconditionerKind::AmgF32,
            ) => Ok(self),
            (LinearMethod::BiCgStab | LinearMethod::Chebyshev, _)
            | (LinearMethod::ConjugateGradients | LinearMethod::Gmres, PreconditionerKind::Chebyshev) => {
                Err(SolveError::PartsChoice { choice: self })
            }
        }
    }
}
