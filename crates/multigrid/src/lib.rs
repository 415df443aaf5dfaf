//! Geometric multigrid for tensor-product elements on Cartesian meshes, with multiplicative
//! vertex-patch smoothers.
//!
//! The problem is Poisson's with homogeneous Dirichlet conditions on the unit square or cube, in
//! Q_k elements on `n` cells a side. A level has a vector of all nodes in lexicographic order,
//! those at the boundary among them, which stay zero. Every kernel is a text of the engine under a
//! schedule: the colours of the smoother are not assumed to be free of conflicts, the step that
//! runs patches in parallel proves it.
//!
//! On a [`DeformedMesh`], such as one that refines the [`MappedBox`] of a file, with a coefficient,
//! the operator is that of bilinear or trilinear cells, and each patch is solved for with a
//! separable operator that stands for its own.
//!
//! # Source
//! Cui et al. 2024: Algorithms 2.1 to 2.3, equations (2.11) to (2.15), Table 4.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod ahead;
mod arguments;
mod blended;
mod cycle;
mod dimension;
mod element;
mod error;
mod halves;
mod hierarchy;
mod instructions;
pub mod kernels;
mod krylov;
mod level;
mod line;
mod lines;
mod mapped_box;
mod matrix;
mod mesh;
mod mesh_plans;
mod on_mesh;
mod operation;
mod options;
mod parities;
mod plan;
mod planes;
pub mod schedules;
mod slabs;
mod smoother;
mod solver;
pub mod stokes;
mod structure;
mod tensor;
mod texts;

pub use cycle::VCycle;
pub use dimension::{Dimension, Precision};
pub use element::Element;
pub use error::MultigridError;
pub use hierarchy::{Hierarchy, Which};
pub use krylov::{LevelOperator, PreconditionedSolver, Start, sine_load};
pub use line::{Line, Points, Rule};
pub use mapped_box::MappedBox;
pub use matrix::Matrix;
pub use mesh::DeformedMesh;
pub use options::{HierarchyOptions, Order, Relaxation};
pub use slabs::{Exchanges, SlabOptions, SlabSolver};
pub use tensor::TensorTables;

/// Whether steps are taken.
type Steps = Result<(), kingpost_primitives::TransformError>;
