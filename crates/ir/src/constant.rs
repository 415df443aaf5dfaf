//! Literals and constant tables: plain data that can be compared and hashed.

use crate::complex::Complex;
use crate::half::{Bf16, F16};
use crate::types::{Class, ScalarType};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A floating-point literal, compared, ordered and hashed by its bits.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Real {}
impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The values of a constant table, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TableData {
    /// Values of an `f32` or `f64` table (an `f32` table holds values that `f32` represents).
    Real(Arc<[Real]>),
    /// Values of a table of integers.
    Int(Arc<[i64]>),
    /// Values of a table of complex numbers, whose parts are those of a `c64` or `c128`.
    Complex(Arc<[Complex<Real>]>),
}

impl TableData {
    /// A table of floating-point values.
    pub fn real(values: impl IntoIterator<Item = f64>) -> Self {
        Self::Real(values.into_iter().map(Real).collect())
    }

    /// A table of integers.
    pub fn int(values: impl IntoIterator<Item = i64>) -> Self {
        Self::Int(values.into_iter().collect())
    }

    /// A table of complex numbers, from their real and imaginary parts.
    pub fn complex(values: impl IntoIterator<Item = [f64; 2]>) -> Self {
        Self::Complex(values.into_iter().map(|[re, im]| Complex { re: Real(re), im: Real(im) }).collect())
    }

    /// The values at some places, zero where there is no place.
    ///
    /// # Panics
    /// A place is beyond the end.
    #[must_use]
    pub fn picked(&self, places: impl IntoIterator<Item = Option<usize>>) -> Self {
        fn of<T: Copy + Default>(values: &[T], places: impl IntoIterator<Item = Option<usize>>) -> Arc<[T]> {
            places.into_iter().map(|place| place.map_or_else(T::default, |k| values[k])).collect()
        }
        match self {
            Self::Real(v) => Self::Real(of(v, places)),
            Self::Int(v) => Self::Int(of(v, places)),
            Self::Complex(v) => Self::Complex(of(v, places)),
        }
    }

    /// Whether the value at a place is zero, of any sign; none beyond the end.
    #[must_use]
    pub fn is_zero(&self, place: usize) -> Option<bool> {
        match self {
            Self::Real(v) => v.get(place).map(|x| x.0 == 0.0),
            Self::Int(v) => v.get(place).map(|x| *x == 0),
            Self::Complex(v) => v.get(place).map(|z| z.re.0 == 0.0 && z.im.0 == 0.0),
        }
    }

    /// The value at a place, for messages.
    ///
    /// # Panics
    /// The place is beyond the end.
    #[must_use]
    pub fn show(&self, place: usize) -> String {
        match self {
            Self::Real(v) => v[place].to_string(),
            Self::Int(v) => v[place].to_string(),
            Self::Complex(v) => v[place].to_string(),
        }
    }

    /// The first value that is an infinity or a nan, or has such a part.
    #[must_use]
    pub fn not_finite(&self) -> Option<usize> {
        match self {
            Self::Real(v) => v.iter().position(|x| !x.0.is_finite()),
            Self::Int(_) => None,
            Self::Complex(v) => v.iter().position(|z| !(z.re.0.is_finite() && z.im.0.is_finite())),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::Complex(v) => v.len(),
        }
    }

    /// Whether the table holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the values can be stored as `ty`: integers in integer types, reals in real types, complex
    /// numbers in complex types, 0 and 1 as truth values.
    pub fn fits(&self, ty: ScalarType) -> bool {
        let holds = |x: Real| ty.rounded(x.0).to_bits() == x.0.to_bits();
        match (self, ty.class()) {
            (Self::Real(v), Class::Real) => v.iter().all(|x| holds(*x)),
            (Self::Complex(v), Class::Complex) => v.iter().all(|z| holds(z.re) && holds(z.im)),
            (Self::Int(v), Class::Exact | Class::Word) => {
                ty.ends().is_some_and(|(lo, hi)| v.iter().all(|&x| (lo..=hi).contains(&x.into())))
            }
            (Self::Int(v), Class::Truth) => v.iter().all(|x| matches!(x, 0 | 1)),
            (Self::Real(_), Class::Exact | Class::Word | Class::Truth | Class::Complex)
            | (Self::Int(_), Class::Real | Class::Complex)
            | (Self::Complex(_), Class::Exact | Class::Word | Class::Truth | Class::Real)
            | (Self::Real(_) | Self::Int(_) | Self::Complex(_), Class::Record) => false,
        }
    }

    /// The bytes of the table as little-endian elements of `ty`, ready for a device buffer.
    pub fn to_bytes(&self, ty: ScalarType) -> Vec<u8> {
        let part = |x: &Real| {
            if ty.part() == ScalarType::F32 {
                (x.0 as f32).to_le_bytes().to_vec()
            } else if ty == ScalarType::F16 {
                F16::from(x.0 as f32).0.to_le_bytes().to_vec()
            } else if ty == ScalarType::Bf16 {
                Bf16::from(x.0 as f32).0.to_le_bytes().to_vec()
            } else {
                x.0.to_le_bytes().to_vec()
            }
        };
        match self {
            Self::Real(v) => v.iter().flat_map(part).collect(),
            Self::Complex(v) => v.iter().flat_map(|z| [z.re, z.im]).flat_map(|x| part(&x)).collect(),
            // the low bytes of two's complement are those of the narrower type
            Self::Int(v) => {
                let size = ty.bytes() as usize;
                v.iter().flat_map(|x| x.to_le_bytes().into_iter().take(size)).collect()
            }
        }
    }
}
