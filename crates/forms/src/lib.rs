//! Variational forms, their lowering to kernels whose
//! parts have roles, strategies that map those, and the sizes of their tilings.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod form;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod import;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod lowering;
pub mod program;
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "private kinds of nodes and roles, of which most functions ask for few"
)]
pub mod reference;
pub mod strategies;
pub mod strategy;
pub mod tabulated;
pub mod tiling;

pub use strategy::mapping::Mapping;
pub use strategy::relowering::{Relowering, relowered};
pub use strategy::set::{StrategyInfo, StrategySet, TakenName};
pub use strategy::{Combinator, MappingError, Strategy};
