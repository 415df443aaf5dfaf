//! Literals and constant tables: plain data that can be compared and hashed.

use crate::half::{Bf16, F16};
use crate::types::{Class, ScalarType};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A floating-point literal, compared, ordered and hashed by its bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

/// The values of a constant table, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TableData {
    /// Values of an `f32` or `f64` table (an `f32` table holds values that `f32` represents).
    Real(Arc<[Real]>),
    /// Values of a table of integers.
    Int(Arc<[i64]>),
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

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(v) => v.len(),
            Self::Int(v) => v.len(),
        }
    }

    /// Whether the table holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the values can be stored as `ty`: integers in integer types, reals in real types, 0 and 1
    /// as truth values.
    pub fn fits(&self, ty: ScalarType) -> bool {
        match (self, ty.class()) {
            (Self::Real(v), Class::Real) => v.iter().all(|x| ty.rounded(x.0).to_bits() == x.0.to_bits()),
            (Self::Int(v), Class::Exact | Class::Word) => {
                ty.ends().is_some_and(|(lo, hi)| v.iter().all(|&x| (lo..=hi).contains(&x.into())))
            }
            (Self::Int(v), Class::Truth) => v.iter().all(|x| matches!(x, 0 | 1)),
            (Self::Real(_), Class::Exact | Class::Word | Class::Truth)
            | (Self::Int(_), Class::Real)
            | (Self::Real(_) | Self::Int(_), Class::Complex | Class::Record) => false,
        }
    }

    /// The bytes of the table as little-endian elements of `ty`, ready for a device buffer.
    pub fn to_bytes(&self, ty: ScalarType) -> Vec<u8> {
        match self {
            Self::Real(v) if ty == ScalarType::F32 => {
                v.iter().flat_map(|x| (x.0 as f32).to_le_bytes()).collect()
            }
            Self::Real(v) if ty == ScalarType::F16 => {
                v.iter().flat_map(|x| F16::from(x.0 as f32).0.to_le_bytes()).collect()
            }
            Self::Real(v) if ty == ScalarType::Bf16 => {
                v.iter().flat_map(|x| Bf16::from(x.0 as f32).0.to_le_bytes()).collect()
            }
            Self::Real(v) => v.iter().flat_map(|x| x.0.to_le_bytes()).collect(),
            // the low bytes of two's complement are those of the narrower type
            Self::Int(v) => {
                let size = ty.bytes() as usize;
                v.iter().flat_map(|x| x.to_le_bytes().into_iter().take(size)).collect()
            }
        }
    }
}
