//! All primitives of Kingpost as one set, with the frame they stand in: what recipes and strategies
//! are written with.
//!
//! ```
//! use kingpost_primitives::{Recipe, primitives::SplitIname};
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
//! )?;
//! let blocked = Recipe::default().then(SplitIname::new("i", 4)).apply(&kernel)?;
//! assert!(blocked.iname("i_o").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub use kingpost_algebra::{monomials, polynomial};
pub use kingpost_programs as programs;
pub use kingpost_steps::*;
pub use kingpost_transforms::ScheduleSteps;
pub use product::{TileProduct, Units};

use std::sync::OnceLock;

pub mod instruction_lines;
mod product;

/// The primitives by their types, with the types of their arguments.
pub mod primitives {
    pub use kingpost_algebra::primitives::*;
    pub use kingpost_transforms::primitives::*;
}

/// Kingpost's own primitives, as a set that others can be added to.
///
/// ```
/// assert!(kingpost_primitives::steps().row("split_iname").is_some());
/// ```
pub fn steps() -> &'static StepSet {
    static SET: OnceLock<StepSet> = OnceLock::new();
    SET.get_or_init(|| {
        let rows = kingpost_transforms::rows().into_iter().chain(kingpost_algebra::rows());
        StepSet::of(rows)
            .with_combined(kingpost_transforms::combined().into_iter().chain([product::combined()]))
    })
}
