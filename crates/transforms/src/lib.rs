//! Primitives that transform kernels, each with its proof, the strategies composed of them, and recipes.
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

mod condition;
mod copy;
pub mod lookup;
mod nest;
mod neutral;
pub mod obligation;
pub mod primitive;
pub mod primitives;
pub mod proofs;
pub mod recipe;
pub mod refusal;
mod run;
pub mod schedule;
pub mod staging;
pub mod step;
pub mod strategies;
mod substitute;
mod tree;

pub use lookup::Selection;
pub use obligation::Obligation;
pub use primitive::Primitive;
pub use primitives::Transform;
pub use recipe::{Recipe, RecipeError, RecipeSyntaxError};
pub use refusal::{Refusal, TransformError, WrongOrder};
pub use schedule::{Made, Schedule, Script, ScriptError};
pub use staging::Footprint;
pub use step::{PrimitiveInfo, Step, primitives};
