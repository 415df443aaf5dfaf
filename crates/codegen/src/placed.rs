//! A kernel placed on hardware axes: the stage that can be turned into code.

use crate::error::CodegenError;
use kingpost_analysis::Analysis;
use kingpost_analysis::placement::{Placement, PlacementError};
use kingpost_ir::Kernel;
use kingpost_ir::depth::with_room;
use std::borrow::Cow;

/// A kernel whose axis tags keep every dependence, with the barriers that this takes.
#[derive(Clone, Debug)]
pub struct PlacedKernel<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) placement: Placement,
}

impl<'k> PlacedKernel<'k> {
    /// Derives the dependences and checks the axis tags against them.
    ///
    /// # Errors
    /// [`CodegenError::Refused`] with two instances that clash, [`CodegenError::Storage`] for
    /// temporaries that share a buffer and must not; a failure of isl.
    pub fn new(kernel: &'k Kernel) -> Result<Self, CodegenError> {
        Self::of(&Analysis::of(kernel))
    }

    /// As [`PlacedKernel::new`], of a kernel of which something is known already.
    ///
    /// # Errors
    /// As [`PlacedKernel::new`].
    pub fn of(analysis: &Analysis<'k>) -> Result<Self, CodegenError> {
        match analysis.place() {
            Ok(placement) => Ok(Self { kernel: analysis.kernel(), placement: placement.clone() }),
            Err(PlacementError::Refused(refusal)) => Err(CodegenError::Refused(refusal)),
            Err(PlacementError::Storage(error)) => Err(CodegenError::Storage(error)),
            Err(error @ (PlacementError::NotByLane { .. } | PlacementError::Awaited { .. })) => {
                Err(CodegenError::Placement(error))
            }
            Err(PlacementError::Calls(error)) => Err(CodegenError::Internal {
                what: format!("a kernel that is not well formed: {error}"),
                kernel: kingpost_ir::text::print(analysis.kernel()),
            }),
            Err(PlacementError::Isl(e)) => Err(e.into()),
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// The placement.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Lowering and printing know no records, and recur over expressions, which may be long sums.
    pub(crate) fn with_room<T: Send>(
        &self,
        work: impl Fn(&PlacedKernel<'_>) -> Result<T, CodegenError> + Sync,
    ) -> Result<T, CodegenError> {
        match self.kernel.scalar_form() {
            Cow::Borrowed(_) => with_room(self.kernel.longest_path(), || work(self)),
            Cow::Owned(kernel) => {
                let placed = PlacedKernel::new(&kernel)?;
                with_room(kernel.longest_path(), || work(&placed))
            }
        }
    }
}
