//! Why an element or a tabulation was refused.

use super::{CellShape, ElementFamily};
use thiserror::Error;

/// Why an element or a tabulation was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElementError {
    /// The degree is outside the range that the shape supports.
    #[error("Lagrange degree {degree} on a {shape}: supported are 1 to {max}")]
    Degree {
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
        /// The highest degree on that shape.
        max: usize,
    },
    /// The degree is outside the range of the family on the shape.
    #[error("{family} of degree {degree} on a {shape}: supported are {min} to {max}")]
    FamilyDegree {
        /// The family asked for.
        family: ElementFamily,
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
        /// The lowest degree.
        min: usize,
        /// The highest degree.
        max: usize,
    },
    /// The family does not exist on the shape.
    #[error("{family} on a {shape}: the family is defined on triangles and tetrahedra")]
    Shape {
        /// The family asked for.
        family: ElementFamily,
        /// The shape asked for.
        shape: CellShape,
    },
    /// The degrees of freedom belong to no facet, so that nothing can make functions continuous.
    #[error("{family} of degree {degree} cannot be continuous; make it with `FiniteElement::discontinuous`")]
    Discontinuous {
        /// The family asked for.
        family: ElementFamily,
        /// The degree asked for.
        degree: usize,
    },
    /// The parts of a mixed element are on different cells.
    #[error("a mixed element has parts on a {first} and on a {second}, needed one cell shape")]
    MixedShapes {
        /// The shape of the first part.
        first: CellShape,
        /// Another shape.
        second: CellShape,
    },
    /// A mixed element without parts, or a blocked one without blocks.
    #[error("an element of no parts has no values, needed at least 1")]
    NoParts,
    /// The list of coordinates does not hold whole points.
    #[error("{length} coordinates are not whole points of dimension {dim}: give them as [points, {dim}]")]
    Points {
        /// The number of coordinates given.
        length: usize,
        /// The number of coordinates of a point.
        dim: usize,
    },
    /// A bug of this crate: the nodes do not determine the polynomials.
    #[error("bug of kingpost: the nodes of P{degree} on a {shape} do not determine its polynomials")]
    Singular {
        /// The shape asked for.
        shape: CellShape,
        /// The degree asked for.
        degree: usize,
    },
    /// A bug of this crate: no rule for the integrals that define the element.
    #[error("bug of kingpost: the element needs a rule that does not exist: {0}")]
    Rule(String),
}
