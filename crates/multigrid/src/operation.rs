//! What the kernels of a level do, and which make a smoother.

use crate::Dimension;
use serde::{Deserialize, Serialize};

/// What a kernel of a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// One colour of the smoother: residual and exact solution on each patch of two cells a side,
    /// of Cui et al. 2024, Algorithm 2.3 and Table 4 (*Fused*).
    Smooth,
    /// The same from the nodes at the boundary of a patch alone: their values are extended by
    /// functions that are orthogonal to inner ones in the mass matrix of a line
    /// ([`Variant::Blended`]).
    SmoothBlended,
    /// The residual at the inner nodes of the patches of a colour (Table 4, *Separate*).
    PatchResidual,
    /// `x += A^-1 r` on the inner nodes of each patch of a colour (Table 4, *Separate*, *Global*).
    PatchSolve,
    /// `x += A^-1 r` on the inner nodes of each patch of a colour, by the inverse as a dense matrix.
    PatchInverse,
    /// A step of point Gauss–Seidel at one node of each patch of a colour.
    Point,
    /// `r = b`.
    Copy,
    /// `r -= A x` at inner nodes.
    Residual,
    /// `x += P xc`, of a level with half as many cells a side.
    Prolongate,
    /// `rc += P^T r` at inner nodes.
    Restrict,
    /// A right-hand side whose entries are products of those of a line.
    Load,
    /// Squares of the difference from a product of functions of one coordinate, integrated over the
    /// cells of a row.
    SquaredError,
    /// `r -= A x` at inner nodes, of -div(κ grad) on cells whose vertices lie anywhere.
    MeshResidual,
    /// `x += P^-1 r` on the inner nodes of each patch of a colour, with a separable operator P of each.
    MeshSolve,
    /// Integrals of a function of the nodes times those of the basis, on such cells, at inner nodes.
    MeshLoad,
}

/// What the blocks of a kernel are, which decides the matrices and places that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocks {
    /// Cells.
    Cells,
    /// Patches of two cells a side, all of a colour.
    Patches,
    /// A node of each patch of a colour, one place in a patch after the other.
    Points,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Smooth,
        Self::SmoothBlended,
        Self::PatchResidual,
        Self::PatchSolve,
        Self::PatchInverse,
        Self::Point,
        Self::Copy,
        Self::Residual,
        Self::Prolongate,
        Self::Restrict,
        Self::Load,
        Self::SquaredError,
        Self::MeshResidual,
        Self::MeshSolve,
        Self::MeshLoad,
    ];

    pub(crate) const fn text(self, dimension: Dimension) -> &'static str {
        match (self, dimension) {
            (Self::Smooth, Dimension::Two) => include_str!("../kernels/smooth_2d.kingpost"),
            (Self::Smooth, Dimension::Three) => include_str!("../kernels/smooth_3d.kingpost"),
            (Self::SmoothBlended, Dimension::Two) => include_str!("../kernels/smooth_blended_2d.kingpost"),
            (Self::SmoothBlended, Dimension::Three) => include_str!("../kernels/smooth_blended_3d.kingpost"),
            (Self::PatchResidual, Dimension::Two) => include_str!("../kernels/patch_residual_2d.kingpost"),
            (Self::PatchResidual, Dimension::Three) => include_str!("../kernels/patch_residual_3d.kingpost"),
            (Self::PatchSolve, Dimension::Two) => include_str!("../kernels/patch_solve_2d.kingpost"),
            (Self::PatchSolve, Dimension::Three) => include_str!("../kernels/patch_solve_3d.kingpost"),
            (Self::PatchInverse, Dimension::Two) => include_str!("../kernels/patch_inverse_2d.kingpost"),
            (Self::PatchInverse, Dimension::Three) => include_str!("../kernels/patch_inverse_3d.kingpost"),
            (Self::Point, Dimension::Two) => include_str!("../kernels/point_2d.kingpost"),
            (Self::Point, Dimension::Three) => include_str!("../kernels/point_3d.kingpost"),
            (Self::Copy, Dimension::Two) => include_str!("../kernels/copy_2d.kingpost"),
            (Self::Copy, Dimension::Three) => include_str!("../kernels/copy_3d.kingpost"),
            (Self::Residual, Dimension::Two) => include_str!("../kernels/residual_2d.kingpost"),
            (Self::Residual, Dimension::Three) => include_str!("../kernels/residual_3d.kingpost"),
            (Self::Prolongate, Dimension::Two) => include_str!("../kernels/prolongate_2d.kingpost"),
            (Self::Prolongate, Dimension::Three) => include_str!("../kernels/prolongate_3d.kingpost"),
            (Self::Restrict, Dimension::Two) => include_str!("../kernels/restrict_2d.kingpost"),
            (Self::Restrict, Dimension::Three) => include_str!("../kernels/restrict_3d.kingpost"),
            (Self::Load, Dimension::Two) => include_str!("../kernels/load_2d.kingpost"),
            (Self::Load, Dimension::Three) => include_str!("../kernels/load_3d.kingpost"),
            (Self::SquaredError, Dimension::Two) => include_str!("../kernels/squared_error_2d.kingpost"),
            (Self::SquaredError, Dimension::Three) => include_str!("../kernels/squared_error_3d.kingpost"),
            (Self::MeshResidual, Dimension::Two) => include_str!("../kernels/mesh_residual_2d.kingpost"),
            (Self::MeshResidual, Dimension::Three) => include_str!("../kernels/mesh_residual_3d.kingpost"),
            (Self::MeshSolve, Dimension::Two) => include_str!("../kernels/mesh_solve_2d.kingpost"),
            (Self::MeshSolve, Dimension::Three) => include_str!("../kernels/mesh_solve_3d.kingpost"),
            (Self::MeshLoad, Dimension::Two) => include_str!("../kernels/mesh_load_2d.kingpost"),
            (Self::MeshLoad, Dimension::Three) => include_str!("../kernels/mesh_load_3d.kingpost"),
        }
    }

    /// What its blocks are.
    #[must_use]
    pub const fn blocks(self) -> Blocks {
        match self {
            Self::Smooth
            | Self::SmoothBlended
            | Self::PatchResidual
            | Self::PatchSolve
            | Self::PatchInverse
            | Self::MeshSolve => Blocks::Patches,
            Self::Point => Blocks::Points,
            Self::Copy
            | Self::Residual
            | Self::Prolongate
            | Self::Restrict
            | Self::Load
            | Self::SquaredError
            | Self::MeshResidual
            | Self::MeshLoad => Blocks::Cells,
        }
    }

    /// Whether it works on slabs of a mesh too.
    pub(crate) const fn is_on_slabs(self) -> bool {
        match self {
            Self::Smooth
            | Self::SmoothBlended
            | Self::Residual
            | Self::Prolongate
            | Self::Restrict
            | Self::Load
            | Self::SquaredError => true,
            Self::PatchResidual
            | Self::PatchSolve
            | Self::PatchInverse
            | Self::Point
            | Self::Copy
            | Self::MeshResidual
            | Self::MeshSolve
            | Self::MeshLoad => false,
        }
    }

    /// Whether it adds corrections of patches to a solution.
    pub(crate) const fn adds(self) -> bool {
        matches!(self, Self::Smooth | Self::PatchSolve | Self::MeshSolve)
    }

    /// The updates to which several blocks contribute: nodes that cells share.
    pub(crate) const fn shared(self) -> Option<&'static str> {
        match self {
            Self::Smooth
            | Self::SmoothBlended
            | Self::PatchResidual
            | Self::PatchSolve
            | Self::PatchInverse
            | Self::Point
            | Self::Copy
            | Self::Prolongate
            | Self::MeshSolve
            | Self::Load => None,
            Self::Residual | Self::MeshResidual => Some("subtract"),
            Self::Restrict | Self::SquaredError | Self::MeshLoad => Some("add"),
        }
    }
}

/// The kernels of a smoother, of Cui et al. 2024, Table 4 and §4.1.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The residual of the whole level, then the solutions on patches.
    Global,
    /// Residuals on patches, then the solutions.
    Separate,
    /// Both in one kernel.
    #[default]
    Fused,
    /// In one kernel that does not read inner nodes of the solution, but replaces them: values at
    /// the boundary of a patch are blended (Gordon & Hall 1973) by functions of a line that are
    /// orthogonal to inner ones in its mass matrix, so that the operator takes a product with two
    /// vectors along one axis, and with the mass matrix along the others. Equal to *Fused* up to
    /// rounding, as patches are solved exactly, with half of its operations in three dimensions.
    Blended,
    /// *Separate*, with the inverse of a patch as a dense matrix instead of fast diagonalisation:
    /// the slow variant of Figure 3.
    Inverse,
    /// Point Gauss–Seidel (Table 3): the nodes of a patch one after the other, those of the same
    /// place in all patches of a colour at once. Nodes that no patch before has had take their turn
    /// with the first patch that they lie in.
    Point,
}

impl Variant {
    /// What is launched for a colour, in sequence.
    #[must_use]
    pub const fn operations(self) -> &'static [Operation] {
        match self {
            Self::Global => &[Operation::Copy, Operation::Residual, Operation::PatchSolve],
            Self::Separate => &[Operation::PatchResidual, Operation::PatchSolve],
            Self::Fused => &[Operation::Smooth],
            Self::Blended => &[Operation::SmoothBlended],
            Self::Inverse => &[Operation::PatchResidual, Operation::PatchInverse],
            Self::Point => &[Operation::Point],
        }
    }
}
