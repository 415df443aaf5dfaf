//! Preconditioners of forms on divided meshes that need no matrix of the form.

use crate::failure::Failure;
use crate::part::{Stopped, integers, reals};
use kingpost::forms::sparse::CsrPattern;
use kingpost::runtime::{Device, buffer_of};
use kingpost::solve::{
    Chebyshev, ChebyshevPreconditioner, CoarseLevel, Communicator, Diagonal, Eigenvalues, Interpolation,
    Operator, Smoothing, Spectrum, TwoLevels, Unknowns,
};
use pyo3::pybacked::PyBackedBytes;
use std::time::Instant;

/// Iterations that find the largest eigenvalue.
const OF_LARGEST: usize = 12;

/// A matrix by rows: where rows start and the columns, as `i32`, and the entries, as `f64`.
type Rows = (PyBackedBytes, PyBackedBytes, PyBackedBytes);
/// A coarse level: its matrix, components of a degree of freedom, the dimension of their points and these.
type Coarse = (Rows, (usize, usize, PyBackedBytes));
/// What tells a coarse level from others; itself, and the interpolation from there to what the part owns, unless it is
/// the last one.
type Level = (u64, Option<(Coarse, Rows)>);
/// Steps of Chebyshev's iteration and the ratio of its interval; a number for each owned unknown, `f64`, from which
/// the largest eigenvalue is found; a coarse level.
pub(crate) type Polynomial = (usize, f64, PyBackedBytes, Option<Level>);
/// A coarse level that is kept for the next solve.
pub(crate) type Kept = Option<(u64, CoarseLevel)>;

/// A system on the unknowns that a part owns.
pub(crate) struct System<'a> {
    pub device: &'a dyn Device,
    pub communicator: &'a dyn Communicator,
    pub operator: &'a dyn Operator,
    /// The inverse of its diagonal.
    pub diagonal: &'a Diagonal,
}

/// Chebyshev's iteration, and a coarse level if there is one.
pub(crate) struct Polynomials {
    chebyshev: Chebyshev,
    spectrum: Spectrum,
    steps: usize,
    /// Whether the coarse level is one of it.
    has_coarse: bool,
    coarse: Kept,
    /// Seconds that all of it took.
    pub seconds: f64,
}

/// One of both as an operator.
pub(crate) enum Preconditioner<'a> {
    Chebyshev(ChebyshevPreconditioner<'a>),
    TwoLevels(TwoLevels<'a>),
}

impl Polynomials {
    /// Finds the largest eigenvalue, and sets a coarse level up unless it is the one that was kept.
    pub(crate) fn new(
        system: &System<'_>,
        (steps, ratio, start, coarse): &Polynomial,
        kept: Kept,
    ) -> Result<Self, Stopped> {
        let has_coarse = coarse.is_some();
        let System { device, communicator, operator, diagonal } = *system;
        let since = Instant::now();
        let sizes = (operator.size(), operator.room());
        let start = buffer_of(device, &reals(start))?;
        let eigenvalues = Eigenvalues::from_start(device, sizes, OF_LARGEST, start)?;
        let values = eigenvalues.over(communicator, operator, diagonal.values())?;
        let spectrum = Spectrum::of_upper(&values, *ratio)?;
        let coarse = match (coarse, kept) {
            (None, kept) => kept,
            (Some((key, None)), Some((known, level))) if *key == known => Some((known, level)),
            (Some((_, None)), _) => return Err(missing().into()),
            (Some((key, Some(given))), _) => Some((*key, level(device, communicator, given)?)),
        };
        let (chebyshev, seconds) = (Chebyshev::with_room(device, sizes)?, since.elapsed().as_secs_f64());
        Ok(Self { chebyshev, spectrum, steps: *steps, has_coarse, coarse, seconds })
    }

    /// What it is for a system.
    pub(crate) fn on<'a>(&'a self, system: &System<'a>) -> Preconditioner<'a> {
        let Self { chebyshev, spectrum, steps, coarse, .. } = self;
        let (operator, inverse) = (system.operator, system.diagonal.values());
        let smoothing = Smoothing { operator, inverse, spectrum: *spectrum, steps: *steps };
        match coarse.as_ref().filter(|_| self.has_coarse) {
            None => Preconditioner::Chebyshev(ChebyshevPreconditioner { chebyshev, smoothing }),
            Some((_, coarse)) => Preconditioner::TwoLevels(TwoLevels { chebyshev, smoothing, coarse }),
        }
    }

    /// The coarse level, for the next solve.
    pub(crate) fn into_kept(self) -> Kept {
        self.coarse
    }
}

fn missing() -> Failure {
    Failure::new("InternalError", "a coarse level is taken for the one before, which it is not")
}

impl Preconditioner<'_> {
    pub(crate) fn as_operator(&self) -> &dyn Operator {
        match self {
            Self::Chebyshev(one) => one,
            Self::TwoLevels(one) => one,
        }
    }
}

fn level(
    device: &dyn Device,
    communicator: &dyn Communicator,
    (((starts, columns, values), (components, dim, points)), rows): &(Coarse, Rows),
) -> Result<CoarseLevel, Stopped> {
    let pattern = CsrPattern::of_block_rows(integers(starts), integers(columns), [1, 1]);
    let unknowns = Unknowns { components: *components, points: reals(points), dim: *dim };
    let interpolation =
        Interpolation { row_starts: integers(&rows.0), columns: integers(&rows.1), weights: reals(&rows.2) };
    let of = (communicator.rank(), communicator.size());
    Ok(CoarseLevel::new(device, of, (&pattern, &reals(values)), &unknowns, &interpolation)?)
}
