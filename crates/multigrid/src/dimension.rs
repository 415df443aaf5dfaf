//! The dimension of a mesh, and the numbers that kernels compute with.

use serde::{Deserialize, Serialize};

/// The dimension of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dimension {
    /// Squares.
    Two,
    /// Cubes.
    Three,
}

impl Dimension {
    /// The number of axes.
    #[must_use]
    pub const fn axes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// The numbers that kernels compute with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Eight bytes.
    #[default]
    Double,
    /// Four bytes.
    Single,
}

impl Precision {
    /// Bytes of a number.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Single => 4,
        }
    }
}

impl From<Precision> for kingpost_primitives::primitives::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Double => Self::F64,
            Precision::Single => Self::F32,
        }
    }
}
