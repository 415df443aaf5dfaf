//! What counts the points for which something is evaluated: numbers, or formulas in the parameters.

use super::error::StatsError;
use super::formula::{Bound, Formula, Region};
use kingpost_ir::ids::{InameId, VarId};
use kingpost_ir::kernel::Kernel;

/// A set of points of loops.
#[derive(Clone, Debug)]
pub(super) struct Context<N = u64> {
    /// A box around the points, one dimension a loop, outer first.
    pub(super) region: Region,
    pub(super) formula: Formula,
    /// Whether the set is the true one, not a larger one.
    pub(super) exact: bool,
    /// Number of points.
    pub(super) count: N,
}

impl<N> Context<N> {
    /// The one point outside all loops, which counts `one`.
    pub(super) fn origin(one: N) -> Self {
        Self { region: Region::default(), formula: Formula::TRUE, exact: true, count: one }
    }
}

/// A count; by default there is nothing.
pub(super) trait Count: Clone + Default {
    fn one() -> Self;
    fn add(&mut self, other: &Self) -> Result<(), StatsError>;
    fn times(&self, factor: u64) -> Result<Self, StatsError>;
    fn is_zero(&self) -> bool;
}

impl Count for u64 {
    fn one() -> Self {
        1
    }

    fn add(&mut self, other: &Self) -> Result<(), StatsError> {
        *self = self.checked_add(*other).ok_or(StatsError::Overflow)?;
        Ok(())
    }

    fn times(&self, factor: u64) -> Result<Self, StatsError> {
        self.checked_mul(factor).ok_or(StatsError::Overflow)
    }

    fn is_zero(&self) -> bool {
        *self == 0
    }
}

/// A kernel, and how the points of its loops are counted.
pub(super) trait Counting {
    type Count: Count;

    fn kernel(&self) -> &Kernel;

    /// Whether a variable is a parameter whose value is not known.
    fn is_symbol(&self, var: VarId) -> bool;

    /// The points of loops inside a context.
    fn enter(
        &self,
        outer: &Context<Self::Count>,
        inames: &[InameId],
    ) -> Result<Context<Self::Count>, StatsError>;

    /// The points of a context where a condition may hold.
    fn restrict(
        &self,
        outer: &Context<Self::Count>,
        condition: &Bound,
    ) -> Result<Context<Self::Count>, StatsError>;
}
