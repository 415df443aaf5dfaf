//! Declarations of variables.

use crate::ast::{Expr, Name};
use kingpost_ir::{InsnId, ScalarType};

/// A declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declare {
    /// Name of the variable.
    pub name: Name,
    /// Type of the value or of an element.
    pub ty: ScalarType,
    /// Number of elements of an array.
    pub len: Option<u64>,
    /// Lanes of the vectors that it holds; 1 for plain values.
    pub lanes: u8,
    /// First value of a scalar.
    pub value: Option<Expr>,
    /// Whether it never changes afterwards.
    pub constant: bool,
    /// Whether all work-items of a group share it.
    pub local: bool,
    /// The instruction of which it holds the result from the start, if it comes from one.
    pub origin: Option<InsnId>,
    /// Of a scalar: the array that it is a place in.
    pub into: Option<Pointee>,
}

/// The array that a variable is a place in, as an offset; languages without address spaces have a
/// pointer there instead, to which compilers add constants in the address of an access.
#[derive(Clone, Debug, PartialEq)]
pub struct Pointee {
    /// Its name.
    pub array: Name,
    /// Type of an element.
    pub ty: ScalarType,
    /// Whether it is only read.
    pub constant: bool,
}

impl Declare {
    /// A scalar of one work-item that changes.
    pub fn scalar(name: Name, ty: ScalarType, value: Option<Expr>) -> Self {
        Self { name, ty, len: None, lanes: 1, value, constant: false, local: false, origin: None, into: None }
    }

    /// A scalar of one work-item that keeps its value.
    pub fn constant(name: Name, ty: ScalarType, value: Expr) -> Self {
        Self { constant: true, ..Self::scalar(name, ty, Some(value)) }
    }
}
