//! What every step of a schedule makes of a kernel: as data, and as one page that needs no server and
//! no network.
//!
//! [`Exploration::of`] follows a recipe and gathers, of the kernel after each step, its text and
//! statements, its dependences, sources, counts, and the refusal of the step that stopped it. Points
//! are never listed: bounds, conditions, indices and dependences are expressions, which serve all
//! parameters. [`page`] writes all of it into one file of HTML that evaluates them.
//!
//! ```
//! use kingpost_explore::{Exploration, Subject, page};
//! use kingpost_primitives::{Recipe, primitives::SplitIname};
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
//! )?;
//! let recipe = Recipe::default().then(SplitIname::new("i", 4));
//! let explored = Exploration::of(&Subject::new("scale", &kernel, &recipe))?;
//! assert_eq!(explored.steps.len(), 2);
//! assert!(page(&explored)?.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Session`] is what programs choose their own steps with.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod changes;
mod counts;
mod data;
mod dependences;
mod explorer;
mod origins;
mod page;
mod params;
mod performance;
mod pool;
mod refusal;
mod rows;
mod session;
mod sources;
mod state;
mod statements;
mod subject;
mod text;

pub use data::{
    Access, Array, Change, Counts, Dependence, Exploration, Instance, KernelState, Launch, Loop, Origin,
    Primitive, Refused, Separated, Source, Statement, StepState,
};
pub use explorer::Explorer;
pub use page::{PageError, data, is_page, live_page, page};
pub use performance::{Ceilings, Compiler, Performance, Times, Trial, Used, Work};
pub use rows::{Conditions, Row, Term};
pub use session::{Done, Legal, Names, NotApplied, NothingToUndo, Parts, Session, Tried};
pub use subject::{ExploreError, Subject};
