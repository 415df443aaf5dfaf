//! The smoothers of the publication: those of the library, and kernels that only its figures need.

use crate::published::{self, Published};
use kingpost::codegen::{Options, Program, generate};
use kingpost::runtime::Device;
use kingpost::transforms::Schedule;
use kingpost_multigrid::kernels::{self, Blocks, Operation, of_text, plain};
use kingpost_multigrid::schedules;
use kingpost_multigrid::{
    Dimension, Element, Hierarchy, HierarchyOptions, MultigridError, Precision, PreconditionedSolver,
};
use serde::{Deserialize, Serialize};

/// A kernel of a smoother.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Of the library.
    Of(Operation),
    /// The fused kernel without the inner nodes of the solution: they are replaced by what solves for
    /// the right-hand side and the nodes at the boundary of the patch, equations (4.1) and (4.2). Equal
    /// to `Smooth` because the local solver is exact.
    SmoothBoundary,
    /// `x += b - scale x` on the inner nodes of each patch of a colour: Richardson's iteration, which
    /// reads and writes what [`Operation::Smooth`] does and contracts nothing (Table 6, *data only*).
    MovePatch,
    /// `b - scale x` at the inner nodes of the patches of a colour: what [`Operation::PatchResidual`]
    /// reads and writes.
    MoveResidual,
    /// `x += r` on the inner nodes of each patch of a colour: what [`Operation::PatchSolve`] reads and
    /// writes.
    MoveSolution,
}

impl Kernel {
    /// The kernel before any loop is mapped.
    ///
    /// # Errors
    /// A text that is no kernel: a bug.
    pub fn plain(self, element: Element, precision: Precision) -> Result<Schedule, MultigridError> {
        let [in_two, in_three] = match self {
            Self::Of(operation) => return Ok(Schedule::of(&plain(operation, element, precision)?)),
            Self::SmoothBoundary => [
                include_str!("../kernels/smooth_boundary_2d.kingpost"),
                include_str!("../kernels/smooth_boundary_3d.kingpost"),
            ],
            Self::MovePatch => [
                include_str!("../kernels/move_patch_2d.kingpost"),
                include_str!("../kernels/move_patch_3d.kingpost"),
            ],
            Self::MoveResidual => [
                include_str!("../kernels/move_residual_2d.kingpost"),
                include_str!("../kernels/move_residual_3d.kingpost"),
            ],
            Self::MoveSolution => [
                include_str!("../kernels/move_solution_2d.kingpost"),
                include_str!("../kernels/move_solution_3d.kingpost"),
            ],
        };
        let text = match element.dimension {
            Dimension::Two => in_two,
            Dimension::Three => in_three,
        };
        of_text(text, element, precision)
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
    /// In one kernel, of the nodes at the boundary of a patch alone.
    Boundary,
    /// Beyond the publication: in one kernel, of blended values at the boundary of a patch.
    Blended,
    /// *Separate*, with the inverse of a patch as a dense matrix: the slow variant of Figure 3.
    Inverse,
    /// Point Gauss–Seidel (Table 3).
    Point,
    /// *Fused* without its contractions, for the time that its data take (Table 6).
    MoveFused,
    /// *Separate* without its contractions.
    MoveSeparate,
}

impl Variant {
    /// The variant of the library whose vectors and matrices it takes.
    #[must_use]
    pub const fn of_library(self) -> kernels::Variant {
        match self {
            Self::Global => kernels::Variant::Global,
            Self::Separate => kernels::Variant::Separate,
            Self::Fused | Self::Boundary | Self::MoveFused | Self::MoveSeparate => kernels::Variant::Fused,
            Self::Blended => kernels::Variant::Blended,
            Self::Inverse => kernels::Variant::Inverse,
            Self::Point => kernels::Variant::Point,
        }
    }

    /// What is launched for a colour, in sequence.
    #[must_use]
    pub fn kernels(self) -> Vec<Kernel> {
        match self {
            Self::Boundary => vec![Kernel::SmoothBoundary],
            Self::MoveFused => vec![Kernel::MovePatch],
            Self::MoveSeparate => vec![Kernel::MoveResidual, Kernel::MoveSolution],
            Self::Global | Self::Separate | Self::Fused | Self::Blended | Self::Inverse | Self::Point => {
                self.of_library().operations().iter().map(|operation| Kernel::Of(*operation)).collect()
            }
        }
    }
}

/// How a kernel is mapped onto a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Structure {
    /// As it is published.
    Published(Published),
    /// As the library has it.
    Of(schedules::Structure),
}

impl Structure {
    /// *Basic*.
    pub const BASIC: Self = Self::Published(Published::Basic);
    /// *Linear indexing*.
    pub const LINEAR_INDEXING: Self = Self::Published(Published::LinearIndexing);
    /// *Conflict free*.
    pub const CONFLICT_FREE: Self = Self::Published(Published::ConflictFree);

    /// Patches of a work-group along an axis.
    #[must_use]
    pub const fn patches(self) -> u32 {
        match self {
            Self::Of(schedules::Structure::Lines { patches, .. }) => patches,
            Self::Of(_) | Self::Published(_) => 1,
        }
    }

    /// Whether work-items have lines.
    #[must_use]
    pub const fn is_lines(self) -> bool {
        matches!(self, Self::Of(schedules::Structure::Lines { .. }))
    }

    /// The schedule of the fused kernel.
    ///
    /// # Errors
    /// A step that is refused: a bug.
    pub fn of_fused(self, element: Element, precision: Precision) -> Result<Schedule, MultigridError> {
        match self {
            Self::Published(structure) => {
                published::schedule(Kernel::Of(Operation::Smooth), element, structure, precision)
            }
            Self::Of(structure) => schedules::schedule(Operation::Smooth, element, structure, precision),
        }
    }
}

/// A smoother: its kernels, their structure, and its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Smoother {
    /// The kernels.
    pub variant: Variant,
    /// Their structure where they work on patches; the fastest that is known of those of the library if
    /// there is none, and else blocks.
    pub structure: Option<Structure>,
    /// The numbers.
    pub precision: Precision,
}

impl Smoother {
    /// What the library needs to know of it.
    #[must_use]
    pub fn options(&self) -> HierarchyOptions {
        let smoother = match self.structure {
            Some(Structure::Of(structure)) => Some(structure),
            Some(Structure::Published(_)) | None => None,
        };
        let variant = Some(self.variant.of_library());
        HierarchyOptions { precision: self.precision, variant, smoother, ..HierarchyOptions::default() }
    }

    /// The code of its kernels, in sequence.
    ///
    /// # Errors
    /// A schedule that there is not, code that cannot be generated.
    pub fn programs(
        &self,
        device: &dyn Device,
        element: Element,
    ) -> Result<Vec<(Blocks, Program)>, MultigridError> {
        self.variant.kernels().into_iter().map(|kernel| self.program(device, element, kernel)).collect()
    }

    fn program(
        &self,
        device: &dyn Device,
        element: Element,
        kernel: Kernel,
    ) -> Result<(Blocks, Program), MultigridError> {
        let (info, precision) = (device.info(), self.precision);
        let on = (info.backend, info.arch.as_str());
        let generated = |s: Schedule| generate(s.kernel(), info.backend.target(), &Options::default());
        Ok(match (kernel, self.structure) {
            (Kernel::Of(operation), structure) => {
                let on_patches = matches!(
                    operation,
                    Operation::Smooth
                        | Operation::SmoothBlended
                        | Operation::PatchResidual
                        | Operation::PatchSolve
                );
                let schedule = match structure {
                    Some(Structure::Published(structure)) if on_patches => {
                        published::schedule(kernel, element, structure, precision)?
                    }
                    Some(Structure::Of(structure)) => {
                        let structure = structure.of_smoother(on, operation, element, precision);
                        schedules::schedule(operation, element, structure, precision)?
                    }
                    Some(Structure::Published(_)) | None => {
                        let structure = schedules::Structure::of(on, operation, element, precision);
                        schedules::schedule(operation, element, structure, precision)?
                    }
                };
                (operation.blocks(), generated(schedule)?)
            }
            (_, Some(Structure::Published(structure))) => {
                (Blocks::Patches, generated(published::schedule(kernel, element, structure, precision)?)?)
            }
            (_, Some(Structure::Of(_)) | None) => {
                let plain = kernel.plain(element, precision)?;
                let blocks = schedules::mapped(plain, element.dimension, None, |_, _| Ok(()))?;
                (Blocks::Patches, generated(blocks)?)
            }
        })
    }

    /// A hierarchy with it.
    ///
    /// # Errors
    /// As [`Hierarchy::with`], and a kernel that the device cannot take.
    pub fn hierarchy<'d>(
        &self,
        device: &'d dyn Device,
        element: Element,
        cells: usize,
    ) -> Result<Hierarchy<'d>, MultigridError> {
        let levels = Hierarchy::with(device, element, cells, self.options())?;
        if self.is_of_library() { Ok(levels) } else { levels.with_smoother(&self.programs(device, element)?) }
    }

    /// A solver with it instead of that of its options.
    ///
    /// # Errors
    /// A kernel that the device cannot take.
    pub fn in_solver<'d>(
        &self,
        solver: PreconditionedSolver<'d>,
        device: &'d dyn Device,
        element: Element,
    ) -> Result<PreconditionedSolver<'d>, MultigridError> {
        if self.is_of_library() { Ok(solver) } else { solver.with_smoother(&self.programs(device, element)?) }
    }

    fn is_of_library(&self) -> bool {
        !matches!(self.structure, Some(Structure::Published(_)))
            && self.variant.kernels().iter().all(|kernel| matches!(kernel, Kernel::Of(_)))
    }
}
