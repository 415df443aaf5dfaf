//! The operators of Kulkarni & Klöckner 2025, Appendix A, the bake-off problems of Fischer et al.
//! 2020, the benchmark problems of Świrydowicz et al. 2019, and the boundary value problems of Trotter
//! et al. 2023.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod bake_off;
pub mod boundary_value;
pub mod operators;
pub mod tensor_product;

pub use bake_off::{BakeOff, BakeOffError};
pub use boundary_value::{BoundaryValueError, BoundaryValueProblem, Prescribed};
pub use operators::{Operator, OperatorError};
pub use tensor_product::{TensorProduct, TensorProductError};
