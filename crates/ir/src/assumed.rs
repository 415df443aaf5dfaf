//! Assumptions: whether they can be made, and what they say of parameters.

use crate::affine::{Affine, Atom};
use crate::ids::VarId;
use crate::kernel::{Direction, Kernel, VarKind};
use crate::lists::BlockLists;
use crate::outside::OutsideRange;
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

impl OutsideRange {
    /// How many numbers a row has alone.
    #[must_use]
    pub fn length(&self, kernel: &Kernel) -> i64 {
        let columns = kernel.vars[self.array].shape.last().and_then(Affine::as_constant);
        // the verifier has seen that columns are constant where a row has numbers alone
        columns.zip(self.own).map_or(0, |(columns, first)| columns - first)
    }

    /// The array, and the scalars that are inputs among what the range mentions.
    #[must_use]
    pub fn inputs(&self, kernel: &Kernel) -> Vec<VarId> {
        let mut found = vec![self.array];
        for end in [&self.from, &self.to] {
            end.for_each_symbol(&mut |atom| match atom {
                Atom::Var(v) if kernel.vars[*v].kind != VarKind::Param => found.push(*v),
                Atom::Var(_) | Atom::Iname(_) | Atom::Floor(..) => {}
            });
        }
        found
    }

    /// As [`check`](Self::check), in the words of the verifier.
    pub(crate) fn verify(&self, kernel: &Kernel) -> Result<(), KernelError> {
        if !self.from.in_bounds() || !self.to.in_bounds() {
            return Err(KernelError::Overflow { what: "an assumption".into() });
        }
        let refused = |(v, why): (VarId, _)| KernelError::Variable { var: kernel.vars[v].name.clone(), why };
        self.check(kernel).map_err(refused)
    }

    /// Whether the array can be so.
    ///
    /// # Errors
    /// The variable that cannot, and why.
    pub fn check(&self, kernel: &Kernel) -> Result<(), (VarId, &'static str)> {
        let data = &kernel.vars[self.array];
        if !data.ty.is_exact() || data.shape.is_empty() {
            return Err((self.array, "entries outside a range are those of an array of integers"));
        }
        if !matches!(data.kind, VarKind::Argument(_) | VarKind::Table(_)) {
            return Err((self.array, "entries outside a range are those of an argument or a table"));
        }
        let given = |v: VarId| {
            let is_input = kernel.vars[v].kind == VarKind::Argument(Direction::In);
            is_input && kernel.vars[v].is_integer_scalar()
        };
        let mut found = self.inputs(kernel).into_iter().skip(1);
        if let Some(other) = found.find(|v| !given(*v)) {
            return Err((other, "a range is one of parameters and of integers that are inputs"));
        }
        let is_iname = |end: &Affine| end.any_symbol(&mut |atom| matches!(atom, Atom::Iname(_)));
        if is_iname(&self.from) || is_iname(&self.to) {
            return Err((self.array, "a range is one of parameters and of integers that are inputs"));
        }
        let Some(first) = self.own else { return Ok(()) };
        let columns = match &data.shape[..] {
            [_, columns] => columns.as_constant(),
            _ => None,
        };
        match columns {
            Some(columns) if (0..columns).contains(&first) => Ok(()),
            _ => Err((
                self.array,
                "numbers that a row has alone are in the last of two axes, of constant length",
            )),
        }
    }
}
