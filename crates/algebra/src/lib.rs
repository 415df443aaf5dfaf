//! Primitives that compute with tables, sums and products: symmetries, quadrature, modes, moments,
//! common factors. Each proves that results keep their bits, or says to how many digits they do.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod listed_elements;
mod modes;
mod modes_of_sums;
mod moments;
pub mod monomials;
mod moved_terms;
mod orbits;
mod outer_factors;
mod parity;
pub mod polynomial;
#[allow(clippy::wildcard_enum_match_arm, reason = "until its matches are exhaustive, too")]
pub mod primitives;
mod product;
mod proofs;
mod setup;
mod table_sums;
mod tensor;
mod wide;

/// The rows of the primitives of this crate, for a set.
#[must_use]
pub fn rows() -> Vec<kingpost_steps::PrimitiveInfo> {
    primitives::rows()
}
