//! Reference cells and the elements on them.
//!
//! The order of vertices, edges, faces and degrees of freedom is that of basix (and UFC), so a
//! table can be compared entry by entry with FEniCS:
//!
//! ```
//! use kingpost_fem::element::{CellShape, LagrangeElement};
//!
//! let element = LagrangeElement::new(CellShape::Triangle, 2)?;
//! assert_eq!(element.dim(), 6);
//! let table = element.tabulate(&[0.0, 0.5])?; // the middle of edge 1, whose node is number 4
//! assert_eq!(table.values, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
//! # Ok::<(), kingpost_fem::element::ElementError>(())
//! ```

mod composed;
mod error;
mod family;
mod finite_element;
mod functionals;
mod jets;
mod lagrange;
mod lattice;
mod nodes;
mod orientation;
mod orthonormal;
mod space;
mod transformations;

pub use crate::cell::CellShape;
pub use composed::{ComposedElement, ElementPart};
pub use error::ElementError;
pub use family::{ElementFamily, LagrangeVariant, Pullback};
pub use finite_element::{ElementTable, FiniteElement};
pub use jets::derivatives;
pub use lagrange::{LagrangeElement, Tabulation};
pub use nodes::{NodeMismatch, Nodes};
pub use orientation::{n_orientations, orientation_of, oriented_point};
pub use orthonormal::{OrthonormalTable, orthonormal};
pub use transformations::{Reorientation, vertex_order, vertex_orders};
