//! A kernel placed on hardware axes: the stage that can be turned into code.

use crate::error::CodegenError;
use crate::passes::Pass;
use crate::plan::Program;
use crate::program::{self, Code, Options};
use crate::sequence;
use crate::target::Target;
use purlin_analysis::Analysis;
use purlin_analysis::placement::{Placement, PlacementError};
use purlin_ir::Kernel;
use purlin_ir::depth::with_room;

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
            Err(error @ PlacementError::NotByLane { .. }) => Err(CodegenError::SubGroup(error)),
            Err(PlacementError::Calls(error)) => Err(CodegenError::Internal {
                what: format!("a kernel that is not well formed: {error}"),
                kernel: purlin_ir::text::print(analysis.kernel()),
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

    /// The code for a target, before it is printed.
    ///
    /// # Errors
    /// What the target cannot say or the axes do not allow; see [`CodegenError`].
    pub fn code(&self, target: Target, options: &Options) -> Result<Code, CodegenError> {
        let Options { contraction: _, trust: _ } = options; // what compilers and devices may do
        self.with_room(|| Ok(program::lower(self, target.description(), None)?.0))
    }

    /// The program for a target, and its code before it is printed: that of each entry in the order of
    /// [`Sequence::entries`](crate::Sequence::entries), or the only one.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`].
    pub fn program_and_codes(
        &self,
        target: Target,
        options: &Options,
    ) -> Result<(Program, Vec<Code>), CodegenError> {
        self.with_room(|| match self.kernel.has_launches() {
            true => sequence::of_launches(self.kernel, target.description(), options),
            false => {
                let (code, program) = program::program(self, target.description(), options)?;
                Ok((program, vec![code]))
            }
        })
    }

    /// The program for a target.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`].
    pub fn generate(&self, target: Target, options: &Options) -> Result<Program, CodegenError> {
        Ok(self.program_and_codes(target, options)?.0)
    }

    /// The code for a target after one of the [`passes`](crate::passes), as its printer writes it:
    /// for reading, as it need not compile before the last one.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`], as far as the passes up to this one refuse it.
    pub fn source_after(
        &self,
        target: Target,
        options: &Options,
        pass: &Pass,
    ) -> Result<String, CodegenError> {
        let Options { contraction, trust: _ } = options; // for reading only
        self.with_room(|| program::source_after(self, target.description(), *contraction, pass))
    }

    /// Lowering and printing recur over expressions, which may be long sums.
    pub(crate) fn with_room<T: Send>(&self, work: impl Fn() -> T + Sync) -> T {
        with_room(self.kernel.longest_path(), work)
    }
}
