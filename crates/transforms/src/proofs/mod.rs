//! Proofs that several primitives share.

pub(crate) mod accumulation;
pub(crate) mod alive;
pub mod attained;
pub mod bounds;
pub(crate) mod commit;
pub(crate) mod elements;
pub(crate) mod entries;
pub(crate) mod exposed;
pub(crate) mod extent;
pub(crate) mod finite;
pub mod footprint;
pub(crate) mod identity;
pub(crate) mod inside;
pub(crate) mod length;
pub(crate) mod linear;
pub(crate) mod orbit_products;
pub mod order;
pub(crate) mod point_terms;
pub(crate) mod reread;
pub(crate) mod separable;
pub mod stale;
pub(crate) mod sums;
pub(crate) mod width;
pub(crate) mod windows;
pub(crate) mod written;

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
