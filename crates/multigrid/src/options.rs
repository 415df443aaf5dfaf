//! How a hierarchy computes: its numbers, its smoother and their order.

use crate::operation::{Operation, Variant};
use crate::structure::Structure;
use crate::{Element, MultigridError, Precision};
use kingpost_runtime::Backend;
use serde::{Deserialize, Serialize};

/// How a hierarchy computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HierarchyOptions {
    /// The numbers of all its vectors.
    pub precision: Precision,
    /// The kernels of its smoother; those of [`Variant::fastest`] if there are none.
    pub variant: Option<Variant>,
    /// How the patches are put together.
    pub relaxation: Relaxation,
    /// The structure of those on patches; the fastest that is known if there is none.
    pub smoother: Option<Structure>,
    /// Smoothing steps of a V-cycle before the coarser level and after it, one at least.
    pub steps: [u32; 2],
}

impl Default for HierarchyOptions {
    fn default() -> Self {
        Self {
            precision: Precision::default(),
            variant: None,
            relaxation: Relaxation::default(),
            smoother: None,
            steps: [1, 1],
        }
    }
}

impl HierarchyOptions {
    /// The kernels of its smoother on an architecture of a backend. All that may be chosen have
    /// the results of [`Variant::Fused`].
    pub(crate) fn variant_on(&self, on: (Backend, &str), element: Element, is_deformed: bool) -> Variant {
        match self.variant {
            Some(variant) => variant,
            // sums of patches and a structure that is given are those of the fused kernel
            None if is_deformed
                || self.smoother.is_some()
                || self.relaxation != Relaxation::Multiplicative =>
            {
                Variant::Fused
            }
            None => Variant::fastest(on, element, self.precision),
        }
    }
}

/// The order in which the colours of a smoother take their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending.
    Forward,
    /// Descending: the transpose of the other.
    Backward,
}

/// How the corrections of patches are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relaxation {
    /// Colour by colour, each for the residual that those before it have left.
    #[default]
    Multiplicative,
    /// All for the residual at the start, under a Chebyshev polynomial in the preconditioned operator.
    ///
    /// With 2^d colours, the sum of all corrections is one of 2^d projections, as the patches of a
    /// colour are orthogonal in energy. So eigenvalues are at most 2^d, and the polynomial is small
    /// on the upper three quarters of that interval.
    ///
    /// # Source
    /// Saad 2003, Algorithm 12.1.
    Additive {
        /// Degree of the polynomial, at least 1: a damped sum.
        degree: u32,
    },
}

impl Relaxation {
    /// Vectors of a level besides solution, right-hand side and residual.
    pub(crate) const fn vectors(self) -> u64 {
        match self {
            Self::Multiplicative => 0,
            Self::Additive { .. } => 2,
        }
    }

    /// Whether a smoother can be put together so.
    pub(crate) const fn check(self, variant: Variant) -> Result<(), MultigridError> {
        match (self, variant) {
            (Self::Additive { degree: 0 }, _) => Err(MultigridError::NoPolynomial),
            (Self::Additive { .. }, Variant::Point) => Err(MultigridError::AdditivePoints),
            _ => Ok(()),
        }
    }
}

/// What a smoother launches for a colour, in sequence.
pub(crate) const fn launched(
    variant: Variant,
    relaxation: Relaxation,
    is_deformed: bool,
) -> &'static [Operation] {
    match (relaxation, variant) {
        (Relaxation::Multiplicative, _) if is_deformed => {
            &[Operation::Copy, Operation::MeshResidual, Operation::MeshSolve]
        }
        (Relaxation::Additive { .. }, _) if is_deformed => &[Operation::MeshSolve],
        (Relaxation::Multiplicative, _) => variant.operations(),
        (Relaxation::Additive { .. }, Variant::Inverse) => &[Operation::PatchInverse],
        (
            Relaxation::Additive { .. },
            Variant::Global | Variant::Separate | Variant::Fused | Variant::Blended | Variant::Point,
        ) => &[Operation::PatchSolve],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dimension;
    use crate::structure::Structure;

    #[test]
    fn the_fastest_kernels_are_chosen_where_nothing_else_is_given() {
        let element = |dimension, degree| Element { dimension, degree };
        let cube = element(Dimension::Three, 7);
        let hopper = (Backend::Cuda, "sm_90");
        let by_default = HierarchyOptions::default();
        assert_eq!(by_default.variant_on(hopper, cube, false), Variant::Blended);
        for (on, of) in [
            ((Backend::C, "x86_64"), cube),
            ((Backend::Cuda, "sm_80"), cube),
            (hopper, element(Dimension::Two, 7)),
            (hopper, element(Dimension::Three, 4)),
        ] {
            assert_eq!(by_default.variant_on(on, of, false), Variant::Fused);
        }
        assert_eq!(by_default.variant_on(hopper, cube, true), Variant::Fused);
        for options in [
            HierarchyOptions { precision: Precision::Single, ..by_default },
            HierarchyOptions { relaxation: Relaxation::Additive { degree: 1 }, ..by_default },
            HierarchyOptions { smoother: Some(Structure::lines(1)), ..by_default },
        ] {
            assert_eq!(options.variant_on(hopper, cube, false), Variant::Fused, "{options:?}");
        }
        let point = HierarchyOptions { variant: Some(Variant::Point), ..by_default };
        assert_eq!(point.variant_on(hopper, cube, false), Variant::Point);
    }
}
