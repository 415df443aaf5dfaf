//! Primitives that transform kernels, each with its proof, schedules that compose them, and
//! recipes.
//!
//! ```
//! use purlin_transforms::{Recipe, primitives::SplitIname};
//!
//! let kernel = purlin_ir::text::parse(
//!     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
//! )?;
//! let blocked = Recipe::default().then(SplitIname::new("i", 4)).apply(&kernel)?;
//! assert!(blocked.iname("i_o").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod accuracy;
mod argument;
mod condition;
mod copy;
pub mod draw;
pub mod expected;
pub mod keeps;
pub mod kit;
mod listed_elements;
pub mod lists;
pub mod lookup;
mod modes;
mod moments;
pub mod monomials;
mod moved_terms;
mod nest;
mod neutral;
pub mod obligation;
mod orbits;
mod outer_factors;
mod parity;
pub mod polynomial;
pub mod primitive;
#[allow(clippy::wildcard_enum_match_arm, reason = "until its matches are exhaustive, too")]
pub mod primitives;
mod product;
pub mod proofs;
pub mod recipe;
pub mod refusal;
mod run;
pub mod schedule;
mod setup;
pub mod staging;
mod step;
mod step_set;
mod substitute;
mod table_sums;
mod tensor;
mod tree;
mod wide;

pub use purlin_ir::intrinsics;

pub use keeps::{Instances, Keeps, Order};
pub use lookup::Selection;
pub use obligation::Obligation;
pub use primitive::Primitive;
pub use primitives::steps;
pub use recipe::{Lowering, LoweringSyntaxError, Recipe, RecipeError, RecipeSyntaxError};
pub use refusal::{Refusal, TransformError, WrongOrder};
pub use schedule::{Made, Schedule, Script, ScriptError};
pub use staging::{Filled, Footprint};
pub use step::Step;
pub use step_set::{PrimitiveInfo, StepSet, StepSetError};
