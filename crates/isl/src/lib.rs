//! The safe wrapper of isl: checked calls, dimensions by name, objects that stay on their thread.
//!
//! [`Set`] and [`Map`] are isl objects of the calling thread; [`Affine`], [`Constraint`],
//! [`SetSpace`] and [`MapSpace`] are plain data that they are built from and taken apart into.
//! Everything else in the workspace that crosses threads or is stored is plain data too.
//!
//! ```
//! use kingpost_isl::{Affine, Constraint, Set, SetSpace};
//!
//! // [N] -> { [i] : 0 <= i < N and i mod 4 = 1 }
//! let space = SetSpace::new(&["i"], &["N"]);
//! let i = || Affine::name("i");
//! let set = Set::from_constraints(
//!     &space,
//!     &[
//!         Constraint::non_negative(i()),
//!         Constraint::non_negative(Affine::name("N").plus(-1, "i").offset(-1)),
//!         Constraint::zero(i().offset(-1).add_scaled(-4, &i().floor_div(4))),
//!     ],
//! )?;
//! assert_eq!(set.fix("N", 20)?.count()?, 5);
//! let witness = set.lexmin_point()?;
//! assert_eq!(witness, Some(vec![("N".to_owned(), 2), ("i".to_owned(), 1)]));
//! # Ok::<(), kingpost_isl::IslError>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod affine;
mod compose;
mod context;
mod decode;
mod encode;
mod error;
mod ffi;
mod map;
mod map_ops;
mod operations;
mod points;
mod scheduler;
mod set;
mod set_ops;
mod space;

pub use affine::{Affine, Constraint, ConstraintKind, FloorDiv};
pub use compose::lex_less;
pub use context::with_operation_limit;
pub use error::IslError;
pub use map::Map;
pub use map_ops::Pair;
pub use points::Point;
pub use scheduler::{Band, Branch, Objective, ScheduleTree, Scheduling};
pub use set::Set;
pub use space::{MapSpace, SetSpace};
