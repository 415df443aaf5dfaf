//! Element types of variables and expressions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of one array element or scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScalarType {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Signed, 16 bits: for inputs and tables only, whose elements are read as [`I32`](Self::I32).
    I16,
}

/// What arithmetic the values of a type have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Integers of which every result is exact: one that does not fit where it is stored is an error.
    Exact,
    /// Floating-point numbers.
    Real,
}

impl ScalarType {
    /// Every type, in the order of the enum.
    pub const ALL: [Self; 5] = [Self::F32, Self::F64, Self::I32, Self::I64, Self::I16];

    /// Size of one element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }

    /// What arithmetic its values have.
    pub const fn class(self) -> Class {
        match self {
            Self::F32 | Self::F64 => Class::Real,
            Self::I16 | Self::I32 | Self::I64 => Class::Exact,
        }
    }

    /// Whether its values are numbers with a fraction.
    pub fn is_real(self) -> bool {
        self.class() == Class::Real
    }

    /// Whether its values are exact integers.
    pub fn is_exact(self) -> bool {
        self.class() == Class::Exact
    }

    /// The smallest and the largest value of an integer type; none of another one.
    pub fn ends(self) -> Option<(i128, i128)> {
        let signed = |bits: u32| (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        match self {
            Self::I16 => Some(signed(16)),
            Self::I32 => Some(signed(32)),
            Self::I64 => Some(signed(64)),
            Self::F32 | Self::F64 => None,
        }
    }

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I16 => "i16",
        }
    }

    /// The type of the value of an element: that of the element, except for 16 bits, in which nothing is
    /// computed.
    #[must_use]
    pub fn loaded(self) -> Self {
        match self {
            Self::I16 => Self::I32,
            other @ (Self::F32 | Self::F64 | Self::I32 | Self::I64) => other,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
