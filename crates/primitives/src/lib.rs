//! All primitives of Purlin as one set, with the frame they stand in: what recipes and strategies
//! are written with.
//!
//! ```
//! use purlin_primitives::{Recipe, primitives::SplitIname};
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

pub use purlin_algebra::{monomials, polynomial};
pub use purlin_programs as programs;
pub use purlin_steps::*;
pub use purlin_transforms::ScheduleSteps;

use std::sync::OnceLock;

pub mod instruction_lines;

/// The primitives by their types, with the types of their arguments.
pub mod primitives {
    pub use purlin_algebra::primitives::*;
    pub use purlin_transforms::primitives::*;
}

/// Purlin's own primitives, as a set that others can be added to.
///
/// ```
/// assert!(purlin_primitives::steps().row("split_iname").is_some());
/// ```
pub fn steps() -> &'static StepSet {
    static SET: OnceLock<StepSet> = OnceLock::new();
    SET.get_or_init(|| {
        let rows = purlin_transforms::rows().into_iter().chain(purlin_algebra::rows());
        StepSet::of(rows).with_combined(purlin_transforms::combined())
    })
}
