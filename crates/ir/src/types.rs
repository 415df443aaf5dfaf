//! Element types of variables and expressions.

use crate::half::{Bf16, F16};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of one array element or scalar.
///
/// Types of 8 and 16 bits are for storage: an element is read as a value of 32 bits, an integer that is
/// stored must fit, and a real that is stored is rounded.
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
    /// Signed, 16 bits.
    I16,
    /// Signed, 8 bits.
    I8,
    /// Without sign, 8 bits.
    U8,
    /// Without sign, 16 bits.
    U16,
    /// Modulo 2^32.
    U32,
    /// Modulo 2^64.
    U64,
    /// A truth value, one byte.
    Bool,
    /// IEEE binary16.
    F16,
    /// The upper half of IEEE binary32.
    Bf16,
    /// A complex number: two `f32`.
    C64,
    /// A complex number: two `f64`.
    C128,
}

/// What arithmetic the values of a type have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Truth values.
    Truth,
    /// Integers of which every result is exact: one that does not fit where it is stored is an error.
    Exact,
    /// Integers modulo a power of two. No set of isl mentions them.
    Word,
    /// Floating-point numbers.
    Real,
    /// Pairs of them, real part and imaginary part.
    Complex,
}

impl ScalarType {
    /// Every type, in the order of the enum.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F64,
        Self::I32,
        Self::I64,
        Self::I16,
        Self::I8,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
        Self::F16,
        Self::Bf16,
        Self::C64,
        Self::C128,
    ];

    /// Size of one element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// What arithmetic its values have.
    pub const fn class(self) -> Class {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Class::Real,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U8 | Self::U16 => Class::Exact,
            Self::U32 | Self::U64 => Class::Word,
            Self::Bool => Class::Truth,
            Self::C64 | Self::C128 => Class::Complex,
        }
    }

    /// Whether its values are numbers with a fraction.
    pub fn is_real(self) -> bool {
        self.class() == Class::Real
    }

    /// Whether its values are complex numbers.
    pub fn is_complex(self) -> bool {
        self.class() == Class::Complex
    }

    /// The type of the parts of a complex number; any other type as it is.
    #[must_use]
    pub fn part(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other @ (Self::F32
            | Self::F64
            | Self::I32
            | Self::I64
            | Self::I16
            | Self::I8
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::Bool
            | Self::F16
            | Self::Bf16) => other,
        }
    }

    /// How many numbers a value is: two of a complex one.
    pub fn parts(self) -> usize {
        if self.is_complex() { 2 } else { 1 }
    }

    /// The complex type that holds a number of this real or complex type.
    #[must_use]
    pub fn complex(self) -> Self {
        if self.part().loaded() == Self::F32 { Self::C64 } else { Self::C128 }
    }

    /// Whether its values are exact integers.
    pub fn is_exact(self) -> bool {
        self.class() == Class::Exact
    }

    /// Whether its values are integers modulo a power of two.
    pub fn is_word(self) -> bool {
        self.class() == Class::Word
    }

    /// Whether nothing is computed in it: its elements are read as values of another type.
    pub fn is_storage(self) -> bool {
        self.loaded() != self
    }

    /// A real, or a part of a complex number, as an element of the type holds it; of another type as it is.
    pub fn rounded(self, x: f64) -> f64 {
        match self {
            Self::F16 => f32::from(F16::from(x as f32)).into(),
            Self::Bf16 => f32::from(Bf16::from(x as f32)).into(),
            Self::F32 | Self::C64 => (x as f32).into(),
            Self::F64
            | Self::C128
            | Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::Bool => x,
        }
    }

    /// Whether it is a type of reals of 16 bits.
    pub fn is_half(self) -> bool {
        self.is_real() && self.is_storage()
    }

    /// The smallest and the largest value of an integer type; none of another one.
    pub fn ends(self) -> Option<(i128, i128)> {
        let bits = 8 * self.bytes();
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some((0, (1 << bits) - 1)),
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::Bool | Self::C64 | Self::C128 => None,
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
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::C64 => "c64",
            Self::C128 => "c128",
        }
    }

    /// The type of a variable that holds the value of an element, as it is computed with.
    #[must_use]
    pub fn loaded(self) -> Self {
        match self {
            Self::I8 | Self::I16 | Self::U8 | Self::U16 => Self::I32,
            Self::F16 | Self::Bf16 => Self::F32,
            other @ (Self::F32
            | Self::F64
            | Self::I32
            | Self::I64
            | Self::U32
            | Self::U64
            | Self::Bool
            | Self::C64
            | Self::C128) => other,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A truth value as memory holds it: anything but 0 is true, and what is stored is 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Flag(pub u8);

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}
