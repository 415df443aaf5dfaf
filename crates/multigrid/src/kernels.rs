//! The kernels of a level as texts.

use crate::{Dimension, Element, MultigridError, Precision};
use purlin_ir::text::parse;
use purlin_ir::{Kernel, Variable};
use purlin_primitives::primitives::fix_parameter::ParamValue;
use purlin_primitives::primitives::{Assume, FixParameter, SetPrecision};
use purlin_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};

/// What a kernel of a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// One colour of the smoother: residual and exact solution on each patch of two cells a side,
    /// of Cui et al. 2024, Algorithm 2.3 and Table 4 (*Fused*).
    Smooth,
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
    pub const ALL: [Self; 14] = [
        Self::Smooth,
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
            (Self::Smooth, Dimension::Two) => include_str!("../kernels/smooth_2d.purlin"),
            (Self::Smooth, Dimension::Three) => include_str!("../kernels/smooth_3d.purlin"),
            (Self::PatchResidual, Dimension::Two) => include_str!("../kernels/patch_residual_2d.purlin"),
            (Self::PatchResidual, Dimension::Three) => include_str!("../kernels/patch_residual_3d.purlin"),
            (Self::PatchSolve, Dimension::Two) => include_str!("../kernels/patch_solve_2d.purlin"),
            (Self::PatchSolve, Dimension::Three) => include_str!("../kernels/patch_solve_3d.purlin"),
            (Self::PatchInverse, Dimension::Two) => include_str!("../kernels/patch_inverse_2d.purlin"),
            (Self::PatchInverse, Dimension::Three) => include_str!("../kernels/patch_inverse_3d.purlin"),
            (Self::Point, Dimension::Two) => include_str!("../kernels/point_2d.purlin"),
            (Self::Point, Dimension::Three) => include_str!("../kernels/point_3d.purlin"),
            (Self::Copy, Dimension::Two) => include_str!("../kernels/copy_2d.purlin"),
            (Self::Copy, Dimension::Three) => include_str!("../kernels/copy_3d.purlin"),
            (Self::Residual, Dimension::Two) => include_str!("../kernels/residual_2d.purlin"),
            (Self::Residual, Dimension::Three) => include_str!("../kernels/residual_3d.purlin"),
            (Self::Prolongate, Dimension::Two) => include_str!("../kernels/prolongate_2d.purlin"),
            (Self::Prolongate, Dimension::Three) => include_str!("../kernels/prolongate_3d.purlin"),
            (Self::Restrict, Dimension::Two) => include_str!("../kernels/restrict_2d.purlin"),
            (Self::Restrict, Dimension::Three) => include_str!("../kernels/restrict_3d.purlin"),
            (Self::Load, Dimension::Two) => include_str!("../kernels/load_2d.purlin"),
            (Self::Load, Dimension::Three) => include_str!("../kernels/load_3d.purlin"),
            (Self::SquaredError, Dimension::Two) => include_str!("../kernels/squared_error_2d.purlin"),
            (Self::SquaredError, Dimension::Three) => include_str!("../kernels/squared_error_3d.purlin"),
            (Self::MeshResidual, Dimension::Two) => include_str!("../kernels/mesh_residual_2d.purlin"),
            (Self::MeshResidual, Dimension::Three) => include_str!("../kernels/mesh_residual_3d.purlin"),
            (Self::MeshSolve, Dimension::Two) => include_str!("../kernels/mesh_solve_2d.purlin"),
            (Self::MeshSolve, Dimension::Three) => include_str!("../kernels/mesh_solve_3d.purlin"),
            (Self::MeshLoad, Dimension::Two) => include_str!("../kernels/mesh_load_2d.purlin"),
            (Self::MeshLoad, Dimension::Three) => include_str!("../kernels/mesh_load_3d.purlin"),
        }
    }

    /// What its blocks are.
    #[must_use]
    pub const fn blocks(self) -> Blocks {
        match self {
            Self::Smooth | Self::PatchResidual | Self::PatchSolve | Self::PatchInverse | Self::MeshSolve => {
                Blocks::Patches
            }
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
            Self::Inverse => &[Operation::PatchResidual, Operation::PatchInverse],
            Self::Point => &[Operation::Point],
        }
    }
}

/// The plain kernel of an operation: every loop in order, every number in a precision.
///
/// # Errors
/// A text that is no kernel: a bug.
pub fn plain(operation: Operation, element: Element, precision: Precision) -> Result<Kernel, MultigridError> {
    Ok(unscheduled(operation, element, precision, Region::Mesh, 2 * element.degree - 1)?.kernel().clone())
}

/// What a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// All layers of cells of a mesh.
    Mesh,
    /// Some layers of a slab of it, `nl` layers long: `nz` layers of cells, or of patches of one colour,
    /// from layer `z` on, of the smoother from the layer that the last colour names. Between levels those
    /// sizes are of the coarser slab, and the finer one has `nf` layers, of which those from `zf` on
    /// count.
    Slab,
}

/// The schedule of an operation before any loop is mapped, with room for a number of eigenvectors along a
/// line, of which some may be zero. Of the fused kernel in three dimensions alone; others have as many as
/// there are.
pub(crate) fn unscheduled(
    operation: Operation,
    element: Element,
    precision: Precision,
    region: Region,
    modes: usize,
) -> Result<Schedule, MultigridError> {
    let mut s = sized(operation.text(element.dimension), element, precision, modes)?;
    match region {
        Region::Mesh => take_all_layers(&mut s, operation, element.dimension)?,
        Region::Slab if operation.is_on_slabs() => {}
        Region::Slab => return Err(MultigridError::NoSlab(operation)),
    }
    Ok(s)
}

/// Makes the sizes and the place along the slowest axis those of a mesh.
fn take_all_layers(
    s: &mut Schedule,
    operation: Operation,
    dimension: Dimension,
) -> Result<(), TransformError> {
    if operation == Operation::Smooth {
        let colour = match dimension {
            Dimension::Two => "c1",
            Dimension::Three => "c2",
        };
        s.apply(Assume::AtMost { param: colour.into(), value: 1 })?;
        s.apply(FixParameter::new("nl", "n"))?;
        return s.apply(FixParameter::new("nz", ParamValue::sum([("n", 1), (colour, -1)], 0, 2))).map(drop);
    }
    let all = [
        ("z", 0.into()),
        ("zf", 0.into()),
        ("nf", ParamValue::sum([("n", 2)], 0, 1)),
        ("nl", "n".into()),
        ("nz", "n".into()),
    ];
    for (param, value) in all {
        if s.kernel().var(param).is_some() {
            s.apply(FixParameter::new(param, value))?;
        }
    }
    Ok(())
}

/// A kernel of a text for an element: `{k}` is the degree, `{m}` the nodes of a side of a cell, `{p}` and
/// `{q}` those of a patch with and without its boundary, every number in a precision.
///
/// # Errors
/// A text that is no kernel.
pub fn of_text(text: &str, element: Element, precision: Precision) -> Result<Schedule, MultigridError> {
    sized(text, element, precision, 2 * element.degree - 1)
}

fn sized(
    text: &str,
    element: Element,
    precision: Precision,
    modes: usize,
) -> Result<Schedule, MultigridError> {
    let k = element.degree;
    let nodes = (2 * k - 1).pow(element.dimension.axes() as u32);
    let sizes = [
        ("{Q}", nodes),
        ("{k}", k),
        ("{m}", k + 1),
        ("{p}", 2 * k + 1),
        ("{q}", 2 * k - 1),
        ("{s}", modes),
        ("{g}", k + 2),
    ];
    let text = sizes.iter().fold(text.to_owned(), |text, (name, size)| text.replace(name, &size.to_string()));
    let mut s = Schedule::of(&parse(&text)?);
    if precision == Precision::Single {
        let is_real = |v: &&Variable| v.ty.is_float();
        let reals: Vec<String> = s.kernel().vars.values().filter(is_real).map(|v| v.name.clone()).collect();
        s.apply(SetPrecision::new(reals, precision.into()))?;
    }
    Ok(s)
}
