//! The types that expressions have.

use crate::types::{Class, RecordType, ScalarType};
use std::fmt;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExprType {
    /// A truth value.
    Bool,
    /// An integer literal: converts to any number.
    Literal,
    /// An integer of whatever width holds it.
    Index,
    /// A floating-point literal: `f64` unless the context says `f32`.
    WeakReal,
    /// A complex number made of literals: `c128` unless the context says `c64`.
    WeakComplex,
    /// A typed number.
    Scalar(ScalarType),
}

impl ScalarType {
    /// The type of the value of an element.
    pub fn value_type(self) -> ExprType {
        match self.class() {
            Class::Truth => ExprType::Bool,
            Class::Exact | Class::Word | Class::Real | Class::Complex | Class::Record => {
                ExprType::Scalar(self.loaded())
            }
        }
    }
}

impl ExprType {
    /// The element type that holds values of this type: `f64` for weak reals, `c128` for weak complex
    /// numbers, `i64` for indices.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Self::Bool => None,
            Self::Literal | Self::Index => Some(ScalarType::I64),
            Self::WeakReal => Some(ScalarType::F64),
            Self::WeakComplex => Some(ScalarType::C128),
            Self::Scalar(ty) => Some(ty),
        }
    }

    /// The type of a variable that holds just these values, where they have one.
    pub fn stored(self) -> Option<ScalarType> {
        match self {
            Self::Bool => Some(ScalarType::Bool),
            Self::Scalar(ty) => Some(ty),
            Self::Literal | Self::Index | Self::WeakReal | Self::WeakComplex => None,
        }
    }

    /// Whether values are exact integers.
    pub fn is_integer(self) -> bool {
        match self {
            Self::Literal | Self::Index => true,
            Self::Scalar(ty) => ty.is_exact(),
            Self::Bool | Self::WeakReal | Self::WeakComplex => false,
        }
    }

    /// The word type, if values are words.
    pub fn word(self) -> Option<ScalarType> {
        match self {
            Self::Scalar(ty) => Some(ty).filter(|ty| ty.is_word()),
            Self::Bool | Self::Literal | Self::Index | Self::WeakReal | Self::WeakComplex => None,
        }
    }

    /// The record, if values are of one.
    pub fn record(self) -> Option<RecordType> {
        if let Self::Scalar(ty) = self { ty.record() } else { None }
    }

    /// Whether values are numbers with a fraction.
    pub fn is_real(self) -> bool {
        match self {
            Self::WeakReal => true,
            Self::Scalar(ty) => ty.is_real(),
            Self::Bool | Self::Literal | Self::Index | Self::WeakComplex => false,
        }
    }

    /// Whether values are complex numbers.
    pub fn is_complex(self) -> bool {
        match self {
            Self::WeakComplex => true,
            Self::Scalar(ty) => ty.is_complex(),
            Self::Bool | Self::Literal | Self::Index | Self::WeakReal => false,
        }
    }

    /// The type of the parts of a complex number; any other type as it is.
    #[must_use]
    pub fn part(self) -> Self {
        match self {
            Self::WeakComplex => Self::WeakReal,
            Self::Scalar(ty) => Self::Scalar(ty.part()),
            other @ (Self::Bool | Self::Literal | Self::Index | Self::WeakReal) => other,
        }
    }

    /// The type of a complex number with parts of this real type.
    pub(crate) fn complex(self) -> Self {
        match self {
            Self::Scalar(ty) => Self::Scalar(ty.complex()),
            Self::Bool | Self::Literal | Self::Index | Self::WeakReal | Self::WeakComplex => {
                Self::WeakComplex
            }
        }
    }

    /// Whether a value of this type may be stored in an element of type `ty` without a cast.
    pub fn stores_in(self, ty: ScalarType) -> bool {
        match self {
            Self::Bool => ty.class() == Class::Truth,
            Self::Literal => !matches!(ty.class(), Class::Truth | Class::Record),
            Self::Index => ty.is_exact(),
            Self::WeakReal => ty.is_real() || ty.is_complex(),
            Self::WeakComplex => ty.is_complex(),
            Self::Scalar(from) if from.is_real() && ty.is_complex() => from.bytes() <= ty.part().bytes(),
            Self::Scalar(from) if from.class() == Class::Record => from == ty,
            // what is stored in 8 or 16 bits is computed in 32
            Self::Scalar(from) => {
                from.class() == ty.class() && (from.bytes() <= ty.bytes() || from == ty.loaded())
            }
        }
    }

    /// The type of an arithmetic operation on two numbers.
    pub fn join(self, other: Self) -> Option<Self> {
        let result = match (self, other) {
            (Self::Bool, _) | (_, Self::Bool) => return None,
            (a, b) if a.record().or_else(|| b.record()).is_some() => return (a == b).then_some(a),
            (Self::Literal, t) | (t, Self::Literal) => t,
            (Self::Index, t) | (t, Self::Index) if t.is_integer() => t,
            (Self::WeakReal, t) | (t, Self::WeakReal) if t.is_real() || t.is_complex() => t,
            (Self::WeakComplex, t) | (t, Self::WeakComplex) if t.is_real() || t.is_complex() => t.complex(),
            (Self::Scalar(a), Self::Scalar(b)) if a.is_real() && b.is_complex() => {
                Self::Scalar(wider(a.complex(), b))
            }
            (Self::Scalar(a), Self::Scalar(b)) if a.is_complex() && b.is_real() => {
                Self::Scalar(wider(a, b.complex()))
            }
            (Self::Scalar(a), Self::Scalar(b)) if a.class() == b.class() => Self::Scalar(wider(a, b)),
            (Self::Index | Self::WeakReal | Self::WeakComplex | Self::Scalar(_), _) => return None,
        };
        Some(result)
    }
}

fn wider(a: ScalarType, b: ScalarType) -> ScalarType {
    if a.bytes() >= b.bytes() { a } else { b }
}

impl fmt::Display for ExprType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("truth value"),
            Self::Literal => f.write_str("integer literal"),
            Self::Index => f.write_str("index"),
            Self::WeakReal => f.write_str("real literal"),
            Self::WeakComplex => f.write_str("complex literal"),
            Self::Scalar(ty) => write!(f, "{ty}"),
        }
    }
}
