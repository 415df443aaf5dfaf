//! An accumulator that starts from nothing and is committed by the update that made it.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use crate::tree::insns_of;
use kingpost_ir::neutral::{is_neutral, is_of_nothing, neutral};
use kingpost_ir::{Expr, Kernel, Node, UpdateOp, VarId, WriteOp};

/// An accumulator, and the operator of its updates.
pub struct Accumulator<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// The accumulator.
    pub var: VarId,
    /// The operator.
    pub op: UpdateOp,
}

impl Accumulator<'_> {
    /// `start` sets it to the neutral element; with `of_nothing` also to what a reduction of
    /// nothing is.
    ///
    /// # Errors
    /// `neutral_start`.
    pub fn check_start(
        &self,
        start: &Node,
        of_nothing: bool,
        neutral_start: Obligation,
    ) -> Result<(), Refusal> {
        let (kernel, op) = (self.kernel, self.op);
        let accumulator = &kernel.vars[self.var];
        for id in insns_of(std::slice::from_ref(start)) {
            let insn = &kernel.insns[id];
            let plain = insn.op == WriteOp::Assign && insn.predicate.is_none() && insn.lhs.var == self.var;
            let same = is_neutral(&insn.rhs, op, accumulator.ty)
                || (of_nothing && is_of_nothing(&insn.rhs, op, accumulator.ty));
            neutral_start.require(plain && same, || {
                format!(
                    "`{}` does not simply set `{}` to the neutral element of `{}`, {}; keep it in a statement of its own",
                    insn.name,
                    accumulator.name,
                    op.update_symbol(),
                    kernel.show_expr(&neutral(op, accumulator.ty))
                )
            })?;
        }
        Ok(())
    }

    /// `commit` is of the form `y op= accumulator`, of one type.
    ///
    /// # Errors
    /// `form`, or `same_type`.
    pub fn check_commit(
        &self,
        commit: &Node,
        form: Obligation,
        same_type: Obligation,
    ) -> Result<(), Refusal> {
        let (kernel, accumulator) = (self.kernel, &self.kernel.vars[self.var]);
        for id in insns_of(std::slice::from_ref(commit)) {
            let insn = &kernel.insns[id];
            let part = matches!(&insn.rhs, Expr::Load(a) if a.var == self.var);
            let plain = insn.update_op() == Some(self.op) && insn.predicate.is_none();
            form.require(plain && part && insn.lhs.var != self.var, || {
                format!(
                    "`{}` is not of the form `y {} {}`; a sum can be committed in parts only by the update that made it",
                    insn.name,
                    self.op.update_symbol(),
                    accumulator.name
                )
            })?;
            same_type.require(kernel.vars[insn.lhs.var].ty == accumulator.ty, || {
                format!(
                    "`{}` converts `{}` to another type, and the parts would be converted one by one",
                    insn.name, accumulator.name
                )
            })?;
        }
        Ok(())
    }
}
