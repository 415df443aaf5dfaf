//! Assumptions: whether they can be made, and what they say of parameters.

use crate::ids::VarId;
use crate::kernel::{Kernel, VarKind};
use crate::lists::BlockLists;
use crate::symmetry::{NoSymmetry, Symmetry};
use crate::types::ScalarType;
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
        match var.ty.is_exact() && has_axes(var.shape.len()) {
            true => Ok(()),
            false => Err(KernelError::Variable { var: var.name.clone(), why }),
        }
    }

    pub(crate) fn verify_symmetry(&self, symmetry: &Symmetry) -> Result<(), KernelError> {
        let var = &self.vars[symmetry.var];
        let why = match symmetry.check(&var.shape) {
            Ok(()) if symmetry.negated && var.ty.is_exact() => "antisymmetric needs an array of reals",
            Ok(()) => return Ok(()),
            Err(NoSymmetry::Axes) => "a symmetry names one axis for each axis of its array",
            Err(NoSymmetry::Permutation) => "a symmetry names each axis of its array once",
            Err(NoSymmetry::Extents) => "a symmetry exchanges axes of one extent only",
        };
        Err(KernelError::Variable { var: var.name.clone(), why })
    }
}

impl BlockLists {
    /// Whether numbers have 16 bits.
    #[must_use]
    pub fn is_short(&self, kernel: &Kernel) -> bool {
        kernel.vars[self.numbers].ty == ScalarType::I16
    }

    /// As [`check`](Self::check), in the words of the verifier.
    pub(crate) fn verify(&self, kernel: &Kernel) -> Result<(), KernelError> {
        let refused = |(v, why): (VarId, _)| KernelError::Variable { var: kernel.vars[v].name.clone(), why };
        self.check(kernel).map_err(refused)
    }

    /// Whether the arrays can be lists of the map.
    ///
    /// # Errors
    /// The array that cannot, and why.
    pub fn check(&self, kernel: &Kernel) -> Result<(), (VarId, &'static str)> {
        if self.block < 1 {
            return Err((self.map, "a block of a map has at least one row"));
        }
        if self.exclusive.is_some_and(|exclusive| exclusive.room < 1) {
            return Err((self.items, "exclusive items of a list have room for at least one"));
        }
        for (var, axes) in self.with_axes() {
            let data = &kernel.vars[var];
            if !data.ty.is_exact() || data.shape.len() != axes {
                return Err((var, "lists and their map are integers: two axes, lengths one"));
            }
            if !matches!(data.kind, VarKind::Argument(_) | VarKind::Table(_)) {
                return Err((var, "lists and their map are arguments or tables"));
            }
        }
        Ok(())
    }
}
