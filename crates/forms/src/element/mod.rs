//! Reference cells and the Lagrange elements on them.
//!
//! The order of vertices, edges, faces and degrees of freedom is that of basix (and UFC), so a
//! table can be compared entry by entry with FEniCS:
//!
//! ```
//! use purlin_forms::element::{CellShape, LagrangeElement};
//!
//! let element = LagrangeElement::new(CellShape::Triangle, 2)?;
//! assert_eq!(element.dim(), 6);
//! let table = element.tabulate(&[0.0, 0.5])?; // the middle of edge 1, whose node is number 4
//! assert_eq!(table.values, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
//! # Ok::<(), purlin_forms::element::ElementError>(())
//! ```

mod cell;
mod lagrange;
mod lattice;
mod nodes;
mod orthonormal;

pub use cell::CellShape;
pub use lagrange::{ElementError, LagrangeElement, Tabulation};
pub use nodes::{LagrangeVariant, NodeMismatch, Nodes};
pub use orthonormal::{OrthonormalTable, orthonormal};

pub(crate) use lattice::interior_lattice;
