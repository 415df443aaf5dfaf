//! Literals and constant tables: plain data that can be compared and hashed.

use crate::types::ScalarType;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A floating-point literal, compared and hashed by its bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Real {}
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

    /// Whether the values can be stored as `ty`: integers in integer types, reals in real types.
    pub fn fits(&self, ty: ScalarType) -> bool {
        match self {
            Self::Real(v) => match ty {
                ScalarType::F64 => true,
                ScalarType::F32 => v.iter().all(|x| f64::from(x.0 as f32).to_bits() == x.0.to_bits()),
                ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => false,
            },
            Self::Int(v) => match ty {
                ScalarType::I64 => true,
                ScalarType::I32 => v.iter().all(|&x| i32::try_from(x).is_ok()),
                ScalarType::I16 => v.iter().all(|&x| i16::try_from(x).is_ok()),
                ScalarType::F32 | ScalarType::F64 => false,
            },
        }
    }

    /// The bytes of the table as little-endian elements of `ty`, ready for a device buffer.
    pub fn to_bytes(&self, ty: ScalarType) -> Vec<u8> {
        match self {
            Self::Real(v) => match ty {
                ScalarType::F32 => v.iter().flat_map(|x| (x.0 as f32).to_le_bytes()).collect(),
                ScalarType::F64 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
                    v.iter().flat_map(|x| x.0.to_le_bytes()).collect()
                }
            },
            Self::Int(v) => match ty {
                ScalarType::I32 => v.iter().flat_map(|&x| (x as i32).to_le_bytes()).collect(),
                ScalarType::I16 => v.iter().flat_map(|&x| (x as i16).to_le_bytes()).collect(),
                ScalarType::F32 | ScalarType::F64 | ScalarType::I64 => {
                    v.iter().flat_map(|x| x.to_le_bytes()).collect()
                }
            },
        }
    }
}
