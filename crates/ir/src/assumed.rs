//! Assumptions: whether they can be made, and what they say of parameters.

use crate::affine::Affine;
use crate::domain::Constraint;
use crate::ids::VarId;
use crate::kernel::{Assumption, Kernel};
use crate::symmetry::{NoSymmetry, Symmetry};
use crate::verify::KernelError;

impl Kernel {
    /// Whether a variable is an array of integers with a given number of axes.
    pub(crate) fn verify_integers(
        &self,
        var: VarId,
        why: &'static str,
        has_axes: &dyn Fn(usize) -> bool,
    ) -> Result<(), KernelError> {
        let var = &self.vars[var];
        match !var.ty.is_float() && has_axes(var.shape.len()) {
            true => Ok(()),
            false => Err(KernelError::Variable { var: var.name.clone(), why }),
        }
    }

    pub(crate) fn verify_symmetry(&self, symmetry: &Symmetry) -> Result<(), KernelError> {
        let var = &self.vars[symmetry.var];
        let why = match symmetry.check(&var.shape) {
            Ok(()) if symmetry.negated && !var.ty.is_float() => "antisymmetric needs an array of reals",
            Ok(()) => return Ok(()),
            Err(NoSymmetry::Axes) => "a symmetry names one axis for each axis of its array",
            Err(NoSymmetry::Permutation) => "a symmetry names each axis of its array once",
            Err(NoSymmetry::Extents) => "a symmetry exchanges axes of one extent only",
        };
        Err(KernelError::Variable { var: var.name.clone(), why })
    }

    /// What the assumptions say of the parameters.
    pub(crate) fn not_negative(&self) -> Vec<Affine> {
        let of = |assumption: &Assumption| match assumption {
            Assumption::Params(Constraint::NonNegative(e)) => vec![e.clone()],
            Assumption::Params(Constraint::Zero(e)) => vec![e.clone(), e.times(-1)],
            Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => Vec::new(),
        };
        self.assumptions.iter().flat_map(of).collect()
    }
}
