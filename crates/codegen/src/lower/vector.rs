//! Loops over the lanes of a vector.

use super::Lower;
use crate::ast::LoopKind;
use purlin_ir::layout::vector_lanes;
use purlin_ir::{Access, AddressSpace, Affine, Expr, InameId, InsnId, Node, ScalarType, VarKind, WriteOp};

impl Lower<'_> {
    /// How the lanes of a loop run: as a copy of one vector if all they do is to copy between vector axes.
    pub(super) fn lanes(&self, iname: InameId) -> LoopKind {
        self.copied_vector(iname).map_or(LoopKind::Vector, |(ty, lanes)| LoopKind::VectorCopy { ty, lanes })
    }

    fn copied_vector(&self, iname: InameId) -> Option<(ScalarType, u8)> {
        let insn = &self.kernel.insns[only_insn(&self.kernel.body, iname)?];
        let Expr::Load(from) = &insn.rhs else { return None };
        if insn.op != WriteOp::Assign || insn.predicate.is_some() || from.var == insn.lhs.var {
            return None;
        }
        let (lo, hi) = self.kernel.inames[iname].domain.as_range(iname)?;
        let lanes = self.vectors(&insn.lhs, iname)?;
        let ty = self.kernel.vars[from.var].ty;
        let whole = lo == Affine::constant(0) && hi.as_constant() == Some(lanes);
        let alike = self.vectors(from, iname) == Some(lanes) && self.kernel.vars[insn.lhs.var].ty == ty;
        (whole && alike).then_some((ty, u8::try_from(lanes).ok()?))
    }

    /// Elements of the vectors that an access runs over with the loop, if it takes a whole one.
    fn vectors(&self, access: &Access, iname: InameId) -> Option<i64> {
        let var = &self.kernel.vars[access.var];
        if var.space == AddressSpace::Constant || matches!(var.kind, VarKind::Param) {
            return None;
        }
        let lanes = vector_lanes(var).ok()?;
        let axis = var.layout.vector_axis? as usize;
        let mut only_there = true;
        for (k, e) in access.index.iter().enumerate() {
            if k == axis {
                only_there &= *e == Expr::Iname(iname);
            } else {
                e.for_each(&mut |e| only_there &= *e != Expr::Iname(iname));
            }
        }
        only_there.then_some(lanes)
    }
}

/// The instruction that is all there is in a loop.
fn only_insn(nodes: &[Node], iname: InameId) -> Option<InsnId> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(found, body) if *found == iname => match body.as_slice() {
            [Node::Insn(insn)] => Some(*insn),
            _ => None,
        },
        Node::Loop(_, body) => only_insn(body, iname),
        Node::Insn(_) => None,
    })
}
