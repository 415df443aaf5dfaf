//! The kernels of a level as texts.

use crate::{Dimension, Element, MultigridError};
use purlin_ir::Kernel;
use purlin_ir::text::parse;

/// What a kernel of a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// One colour of the smoother: residual and exact solution on each patch of two cells a side,
    /// of Cui et al. 2024, Algorithm 2.3 and Table 4 (*Fused*).
    Smooth,
    /// `r -= A x` at inner nodes.
    Residual,
    /// `x += P xc`, of a level with half as many cells a side.
    Prolongate,
    /// `rc += P^T r` at inner nodes.
    Restrict,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Smooth, Self::Residual, Self::Prolongate, Self::Restrict];

    const fn text(self, dimension: Dimension) -> &'static str {
        match (self, dimension) {
            (Self::Smooth, Dimension::Two) => include_str!("../kernels/smooth_2d.purlin"),
            (Self::Smooth, Dimension::Three) => include_str!("../kernels/smooth_3d.purlin"),
            (Self::Residual, Dimension::Two) => include_str!("../kernels/residual_2d.purlin"),
            (Self::Residual, Dimension::Three) => include_str!("../kernels/residual_3d.purlin"),
            (Self::Prolongate, Dimension::Two) => include_str!("../kernels/prolongate_2d.purlin"),
            (Self::Prolongate, Dimension::Three) => include_str!("../kernels/prolongate_3d.purlin"),
            (Self::Restrict, Dimension::Two) => include_str!("../kernels/restrict_2d.purlin"),
            (Self::Restrict, Dimension::Three) => include_str!("../kernels/restrict_3d.purlin"),
        }
    }

    /// The loops over patches or cells, outer first.
    pub(crate) fn blocks(self, dimension: Dimension) -> Vec<String> {
        let stem = match self {
            Self::Smooth => 'p',
            Self::Residual | Self::Prolongate | Self::Restrict => 'e',
        };
        (0..dimension.axes()).rev().map(|axis| format!("{stem}{axis}")).collect()
    }

    /// The updates to which several blocks contribute: nodes that cells share.
    pub(crate) const fn shared(self) -> Option<&'static str> {
        match self {
            Self::Smooth | Self::Prolongate => None,
            Self::Residual => Some("subtract"),
            Self::Restrict => Some("add"),
        }
    }
}

/// The plain kernel of an operation: every loop in order.
///
/// # Errors
/// A text that is no kernel: a bug.
pub fn plain(operation: Operation, element: Element) -> Result<Kernel, MultigridError> {
    let k = element.degree;
    let sizes = [("{k}", k), ("{m}", k + 1), ("{p}", 2 * k + 1), ("{q}", 2 * k - 1)];
    let text = sizes.iter().fold(operation.text(element.dimension).to_owned(), |text, (name, size)| {
        text.replace(name, &size.to_string())
    });
    Ok(parse(&text)?)
}
