//! Proofs that several primitives share.

pub mod accumulation;
pub mod alive;
pub mod any_order;
pub mod attained;
pub mod bounds;
pub mod commit;
pub mod computed;
pub mod elements;
pub mod entries;
pub mod exposed;
pub mod extent;
pub mod finite;
pub mod footprint;
pub mod index_cases;
pub mod inside;
pub mod largest_length;
pub mod length;
pub mod order;
pub mod recomputed;
pub mod reread;
pub mod stale;
pub mod width;
pub mod windows;
pub mod written;

use crate::obligation::Obligation;

/// What every step that moves instances proves.
pub const ORDER: Obligation = Obligation::new("order", "every dependence still runs forward");

/// What every step that takes a value elsewhere proves.
pub const CURRENT: Obligation = Obligation::new(
    "current",
    "nothing writes an operand between where a value is taken and where it is used",
);

/// What every step that changes where values are stored proves.
pub const VALUES: Obligation = Obligation::new("values", "every reader finds the value that it found before");
