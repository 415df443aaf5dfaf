//! The elements of a discretisation.

use crate::{Dimension, MultigridError};
use serde::{Deserialize, Serialize};

/// A discretisation: dimension and degree of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    /// Dimension of the mesh.
    pub dimension: Dimension,
    /// Polynomial degree k along each axis, 1 to [`Element::MAX_DEGREE`].
    pub degree: usize,
}

impl Element {
    /// The highest degree.
    pub const MAX_DEGREE: usize = 15;

    /// Elements of this degree.
    ///
    /// # Errors
    /// A degree of 0 or above [`Element::MAX_DEGREE`].
    pub fn new(dimension: Dimension, degree: usize) -> Result<Self, MultigridError> {
        if (1..=Self::MAX_DEGREE).contains(&degree) {
            Ok(Self { dimension, degree })
        } else {
            Err(MultigridError::Degree { degree, highest: Self::MAX_DEGREE })
        }
    }

    /// Nodes of a side of a mesh with `cells` cells a side, or the largest number.
    #[must_use]
    pub const fn nodes_of_side(self, cells: usize) -> usize {
        self.degree.saturating_mul(cells).saturating_add(1)
    }

    /// Nodes of a mesh with `cells` cells a side, those at the boundary among them, or the largest
    /// number.
    #[must_use]
    pub fn nodes(self, cells: usize) -> usize {
        self.nodes_of_side(cells).saturating_pow(self.dimension.axes() as u32)
    }
}
