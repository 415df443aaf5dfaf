//! Tags of instructions: the stage of Kulkarni & Klöckner 2025's Algorithm 2 that an instruction
//! belongs to.
//!
//! They are how the text of a kernel says its roles; instructions of one function also have
//! `of_<name>`.

/// Coordinates and degrees of freedom of the cell are loaded (lines 3–13).
pub const GATHER: &str = "gather";
/// Jacobian, determinant, inverse, and what else is the same at all points of a cell (lines 14–15).
pub const GEOMETRY: &str = "geometry";
/// Functions and derivatives at a point (lines 18–39).
pub const EVALUATION: &str = "evaluation";
/// Factors `e_k` of the test function's basis at a point (line 41).
pub const POINTWISE: &str = "pointwise";
/// Local integrals (lines 32–33 and 42–46).
pub const QUADRATURE: &str = "quadrature";
/// Local integrals are added to the result (lines 47–48).
pub const SCATTER: &str = "scatter";
/// Gathered degrees of freedom, or the results of a cell, are multiplied by the matrices of the
/// orientation of the cell's entities.
pub const TRANSFORM: &str = "transform";
/// Besides `evaluation` or `quadrature`: an accumulator is set to zero.
pub const INIT: &str = "init";
/// What stands before the name of a function.
pub(crate) const OF: &str = "of_";
