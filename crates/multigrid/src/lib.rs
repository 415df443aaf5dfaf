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
mod cycle;
mod error;
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
pub mod schedules;
mod slabs;
mod smoother;
mod solver;
mod structure;
mod tensor;
mod texts;

pub use cycle::VCycle;
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

use serde::{Deserialize, Serialize};

/// Whether steps are taken.
type Steps = Result<(), purlin_primitives::TransformError>;

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

impl From<Precision> for purlin_primitives::primitives::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Double => Self::F64,
            Precision::Single => Self::F32,
        }
    }
}

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
