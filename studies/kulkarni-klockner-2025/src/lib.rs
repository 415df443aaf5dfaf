//! The study of Kulkarni & Klöckner 2025: its 70 operator actions, what was published about them,
//! quantities of its Algorithm 4, and pages that compare measurements with both.
//!
//! The library does not depend on it; its commands are those of the binary of this crate.

pub mod case;
pub mod formulas;
pub mod judge;
pub mod page;
pub mod ranking;
pub mod tilings;
