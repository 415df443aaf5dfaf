//! Why a transformation was not applied.

use purlin_analysis::Witness;
use purlin_analysis::placement::{self, PlacementError, StorageError};
use purlin_ir::KernelError;
use purlin_isl::IslError;

/// A transformation that was not applied: the operation as the user wrote it, and the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {cause}")]
pub struct TransformError {
    /// The operation, for example ``split `cell` by 32``.
    pub operation: String,
    /// Why it was not applied.
    pub cause: Refusal,
}

/// What stood against a transformation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A name that stands for nothing.
    #[error("there is no {kind} `{name}`; there is {known}")]
    Unknown {
        /// What was looked for: iname, instruction, variable, parameter.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A selection that matches no instruction.
    #[error("no instruction matches {selection}; there is {known}")]
    EmptySelection {
        /// The selection.
        selection: String,
        /// What could be selected.
        known: String,
    },
    /// An argument that makes no sense.
    #[error("{0}")]
    Argument(String),
    /// The proof failed: two instances would run in the wrong order.
    #[error("{0}")]
    Reordered(Box<WrongOrder>),
    /// The proof failed: a value would be taken before it is written.
    #[error("{0}")]
    Stale(Box<StaleValue>),
    /// The proof failed: the placement on work-groups and work-items breaks a dependence.
    #[error("{0}")]
    Placement(Box<placement::Refusal>),
    /// The proof failed: a reader would not find the value it needs.
    #[error("{0}")]
    Value(Box<LostValue>),
    /// The result would not be well formed, by the user's choice of names or tags.
    #[error("{0}")]
    Malformed(#[from] KernelError),
    /// isl failed.
    #[error("the integer-set library failed, which is no fault of yours: {0}")]
    Solver(#[from] IslError),
}

/// Two instances that would run in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("would run {} before {}, {relation}{}; {help}", .witness.sink, .witness.source, .witness.params_text())]
pub struct WrongOrder {
    /// The two instances, in today's order.
    pub witness: Witness,
    /// What the later one does to the earlier one, as a relative clause.
    pub relation: String,
    /// What to try.
    pub help: String,
}

/// A value that would not reach its reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}{}; {help}", .witness.params_text())]
pub struct LostValue {
    /// The write and the read.
    pub witness: Witness,
    /// What was found, with both instances.
    pub found: String,
    /// What to try.
    pub help: String,
}

/// A write between the place where a value would be taken and the instance that uses it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} uses `{}`, which {} writes{} after {place}{}; {help}",
    .witness.sink, .witness.element, .witness.source, .witness.through_text(), .witness.params_text())]
pub struct StaleValue {
    /// The write and the use.
    pub witness: Witness,
    /// Where the value would be taken, for example `the copy`.
    pub place: String,
    /// What to try.
    pub help: String,
}

impl Refusal {
    /// The two instances that clash, if the proof failed.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Self::Reordered(order) => Some(&order.witness),
            Self::Stale(stale) => Some(&stale.witness),
            Self::Placement(refusal) => Some(&refusal.witness),
            Self::Value(lost) => Some(&lost.witness),
            Self::Unknown { .. }
            | Self::EmptySelection { .. }
            | Self::Argument(_)
            | Self::Malformed(_)
            | Self::Solver(_) => None,
        }
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unfit(why) => Self::Argument(why),
            StorageError::Alive { witness, found } => {
                Self::Value(Box::new(LostValue { witness: *witness, found, help: StorageError::HELP.into() }))
            }
            StorageError::Isl(error) => Self::Solver(error),
        }
    }
}

impl From<PlacementError> for Refusal {
    fn from(error: PlacementError) -> Self {
        match error {
            PlacementError::Refused(refusal) => Self::Placement(refusal),
            PlacementError::Storage(error) => (*error).into(),
            error @ PlacementError::NotByLane { .. } => Self::Argument(error.to_string()),
            PlacementError::Isl(error) => Self::Solver(error),
        }
    }
}
