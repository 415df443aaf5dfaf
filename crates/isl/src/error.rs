//! What can go wrong in a call.

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IslError {
    /// A name that the space does not have.
    #[error("`{name}` is not a name of {space}; use one of those or add it first")]
    UnknownName {
        /// The name asked for.
        name: String,
        /// The space it was looked up in, printed.
        space: String,
    },
    /// A name that stands twice in one space.
    #[error("`{name}` stands twice in {space}; rename one of them")]
    DuplicateName {
        /// The name.
        name: String,
        /// The space, printed.
        space: String,
    },
    /// A name that is empty or holds a NUL character.
    #[error("`{}` cannot be a name: it is empty or holds a nul character", name.escape_debug())]
    InvalidName {
        /// The name.
        name: String,
    },
    /// Operands whose spaces do not match.
    #[error("{operation}: found {left} against {right}, needed the same tuple and names; rename first")]
    SpaceMismatch {
        /// The operation.
        operation: &'static str,
        /// Space of the left operand, printed.
        left: String,
        /// Space of the right operand, printed.
        right: String,
    },
    /// A floor division by a number below one.
    #[error("found a floor division by {denominator}, needed a denominator of at least 1")]
    Denominator {
        /// The denominator.
        denominator: i64,
    },
    /// An operation that needs a bounded set got an unbounded one.
    #[error("{operation}: the set is unbounded; intersect it with bounds first")]
    Unbounded {
        /// The operation.
        operation: &'static str,
    },
    /// An operation that needs fixed parameters found free ones.
    #[error("{operation}: parameters {names} are free; fix them first")]
    Parametric {
        /// The operation.
        operation: &'static str,
        /// The parameters, in backticks.
        names: String,
    },
    /// More points than the caller allowed.
    #[error("{operation}: the set has more than {limit} points; raise the limit or shrink the set")]
    TooManyPoints {
        /// The operation.
        operation: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A number of the result does not fit the type it is returned in.
    #[error("{operation}: a number of the result does not fit {needed}")]
    Overflow {
        /// The operation.
        operation: &'static str,
        /// The type, in backticks.
        needed: &'static str,
    },
    /// The limit on solver operations was reached.
    #[error("{operation}: the solver needed more than the {limit} operations it was given")]
    Quota {
        /// The operation, or the question that it was to answer.
        operation: String,
        /// The limit.
        limit: u64,
    },
    /// isl itself failed.
    #[error("{operation}: isl says: {message}")]
    Solver {
        /// The operation.
        operation: &'static str,
        /// isl's last message.
        message: String,
    },
}

impl IslError {
    /// The same error; where the limit on operations was reached, of this question.
    #[must_use]
    pub fn asked(self, question: impl FnOnce() -> String) -> Self {
        match self {
            Self::Quota { limit, .. } => Self::Quota { operation: question(), limit },
            Self::UnknownName { .. }
            | Self::DuplicateName { .. }
            | Self::InvalidName { .. }
            | Self::SpaceMismatch { .. }
            | Self::Denominator { .. }
            | Self::Unbounded { .. }
            | Self::Parametric { .. }
            | Self::TooManyPoints { .. }
            | Self::Overflow { .. }
            | Self::Solver { .. } => self,
        }
    }
}
