//! The safe wrapper of isl: checked calls, dimensions by name, objects that stay on their thread.

mod affine;
mod compose;
mod context;
mod decode;
mod encode;
mod error;
mod ffi;
mod flow;
mod map;
mod map_ops;
mod piecewise;
mod points;
mod set;
mod set_ops;
mod space;

pub use affine::{Affine, Constraint, ConstraintKind, FloorDiv};
pub use compose::{lex_less, lex_less_or_equal};
pub use context::with_operation_limit;
pub use error::IslError;
pub use flow::{Dataflow, Flow, FlowEdge};
pub use map::Map;
pub use map_ops::Pair;
pub use piecewise::{AffineQuotient, PwAffine, PwAffinePiece};
pub use points::Point;
pub use set::Set;
pub use space::{MapSpace, SetSpace};
