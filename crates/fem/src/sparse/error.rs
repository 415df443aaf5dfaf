//! Why there is no pattern.

use kingpost_capacity::OutOfMemory;
use thiserror::Error;

/// Why a sparse matrix has no such pattern.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Maps or a matrix that do not fit each other.
    #[error("`{place}`: found {found}, needed {needed}")]
    Invalid {
        /// What they are of, such as `map`.
        place: String,
        /// What stands there.
        found: String,
        /// What would be accepted.
        needed: String,
    },
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}
