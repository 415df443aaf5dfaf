//! The frame of transformations: what a primitive is, schedules that apply steps and record them,
//! recipes, and the proofs, edits and names that primitives share ([`kit`], [`proofs`],
//! [`staging`]).
//!
//! The primitives themselves are in `kingpost-transforms` and `kingpost-algebra`; `kingpost-primitives`
//! has all of them as one set.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod accuracy;
pub mod argument;
pub mod block_numbers;
pub mod combined;
pub mod condition;
pub mod copy;
pub mod cut;
pub mod draw;
pub mod expected;
pub mod former;
pub mod hull;
pub mod inverse;
pub mod keeps;
pub mod kit;
mod laws;
pub mod lists;
pub mod lookup;
pub mod mentioned;
pub mod nest;
pub mod obligation;
mod picks;
pub mod primitive;
pub mod proofs;
mod proved;
pub mod recipe;
pub mod refusal;
pub mod run;
pub mod runs;
pub mod schedule;
pub mod staging;
mod step;
pub mod step_set;
pub mod substitute;
pub mod symmetry;
pub mod template;
pub mod tree;
pub mod widest;

pub use kingpost_ir::intrinsics;

pub use combined::{Combined, CombinedInfo};
pub use former::Former;
pub use keeps::{Instances, Keeps, Order};
pub use laws::Reliance;
pub use lookup::Selection;
pub use obligation::Obligation;
pub use primitive::Primitive;
pub use proved::{Evidence, Means, Proved};
pub use recipe::{Lowering, LoweringSyntaxError, Recipe, RecipeError, RecipeSyntaxError};
pub use refusal::{Refusal, TransformError, WrongOrder};
pub use schedule::{Made, Schedule, Script, ScriptError};
pub use staging::{Footprint, Staged};
pub use step::Step;
pub use step_set::{PrimitiveInfo, StepSet, StepSetError};
