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

    /// Whether the type is `f32` or `f64`.
    pub fn is_float(self) -> bool {
        match self {
            Self::F32 | Self::F64 => true,
            Self::I16 | Self::I32 | Self::I64 => false,
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
