//! Why a mapping was not applied.

use crate::tiling::TilingError;
use kingpost_forms::lowering::{NoSymmetry, OtherRules};
use kingpost_forms::program::NotAnAction;
use kingpost_ir::Kernel;
use kingpost_primitives::{Lowering, Recipe, ScriptError, TransformError};

/// A strategy that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// The kernel is not made of the stages of Algorithm 2.
    #[error(transparent)]
    Roles(#[from] NotAnAction),
    /// A parameter of a tiling that makes no sense.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// Another parameter that makes no sense.
    #[error("{symbol} is {found}, needed {needed}")]
    Parameter {
        /// What it is, and its symbol.
        symbol: String,
        /// Its value.
        found: u64,
        /// The bound it breaks.
        needed: String,
    },
    /// The kernel has nothing to factorise.
    #[error(
        "no update is a contraction with a table that is a tensor product; order its rows and columns by axes"
    )]
    NoTensorTable,
    /// Tables are products of different numbers of axes.
    #[error(
        "tables are tensor products of two axes and of three, whose work-items differ; map a cell to a work-item (`factorised_cells`)"
    )]
    MixedTensors,
    /// The integer program of sharing elimination has no solution that the solver finds.
    #[error("the integer program of sharing elimination: {0}")]
    IntegerProgram(String),
    /// What a strategy of another crate does not take, in its own words.
    #[error("{strategy}: {reason}")]
    Unsuited {
        /// The strategy.
        strategy: &'static str,
        /// What was found, what was needed and what to try.
        reason: String,
    },
    /// A step that was refused.
    #[error(transparent)]
    Step(Box<RefusedStep>),
}

/// A step of a strategy that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {number}: {source}")]
pub struct RefusedStep {
    /// Number of the step, from 1.
    pub number: usize,
    /// The steps before it.
    pub recipe: Recipe,
    /// The kernel it met.
    pub kernel: Kernel,
    /// Why it was refused.
    pub source: TransformError,
}

/// A mapping that was not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MappingError {
    /// Its strategy does not suit the kernel.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The kernel keeps its quadrature rules.
    #[error(transparent)]
    Rules(#[from] OtherRules),
    /// The kernel has no symmetric tables, or the mapping does not use them.
    #[error(transparent)]
    Symmetry(#[from] NoSymmetry),
    /// A recipe for a form that is lowered with what this Kingpost does not know.
    #[error("lowering `{found}`: found no such lowering, needed one of {needed}, or a later Kingpost")]
    Lowering {
        /// What the recipe says.
        found: Lowering,
        /// What there is.
        needed: String,
    },
    /// The mapping has values for the holes of a schedule, and there is none.
    #[error("values of holes belong to a schedule; give the file that ends with it, and --hole NAME=VALUE")]
    NoSchedule,
    /// A value that a hole of the schedule does not take.
    #[error("{0}")]
    Hole(String),
    /// A line of the schedule that was refused.
    #[error(transparent)]
    Script(#[from] Box<ScriptError>),
}

/// Why a strategy stopped.
///
/// `?` turns every error that a strategy meets into one: a step that is refused, roles that a kernel
/// does not have, arguments that make no sense.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// A step was refused. [`Mapping::apply`](crate::Mapping::apply) says which one, and after which
    /// others.
    Refused(TransformError),
    /// The strategy does not suit the kernel.
    Unsuited(MappingError),
}

impl Stopped {
    /// Which step was refused, if one was, after those of a recipe.
    pub(crate) fn after(self, kernel: Kernel, recipe: Recipe) -> MappingError {
        match self {
            Self::Unsuited(error) => error,
            Self::Refused(source) => {
                let number = recipe.steps.len() + 1;
                StrategyError::Step(Box::new(RefusedStep { number, recipe, kernel, source })).into()
            }
        }
    }
}

impl From<TransformError> for Stopped {
    fn from(error: TransformError) -> Self {
        Self::Refused(error)
    }
}

impl<E: Into<MappingError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Unsuited(error.into())
    }
}

impl From<NotAnAction> for MappingError {
    fn from(error: NotAnAction) -> Self {
        Self::Strategy(error.into())
    }
}

impl From<TilingError> for MappingError {
    fn from(error: TilingError) -> Self {
        Self::Strategy(error.into())
    }
}
