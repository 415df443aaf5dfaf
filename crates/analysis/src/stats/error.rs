//! Why a kernel has no statistics.

use kingpost_interp::InterpError;

/// Why a kernel has no statistics.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum StatsError {
    #[error(transparent)]
    Setup(#[from] InterpError),
    #[error("the bounds of `{iname}` depend on the value of `{var}`; statistics need bounds in parameters")]
    DataDependent { iname: String, var: String },
    #[error("`{iname}` has no {missing} bound; add a constraint that is linear in it")]
    Unbounded { iname: String, missing: &'static str },
    #[error("a count exceeds 64 bits; use smaller parameters")]
    Overflow,
    #[error("counting the points of {what} took more than {limit} steps; use smaller parameters")]
    Budget { what: String, limit: u64 },
}
