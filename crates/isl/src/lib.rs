//! The safe wrapper of isl: checked calls, dimensions by name, objects that stay on their thread.

mod affine;
mod context;
mod decode;
mod encode;
mod error;
mod ffi;
mod set;
mod set_ops;
mod space;

pub use affine::{Affine, Constraint, ConstraintKind, FloorDiv};
pub use context::with_operation_limit;
pub use error::IslError;
pub use set::Set;
pub use space::{MapSpace, SetSpace};
