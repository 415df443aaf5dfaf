//! The loops that fill a temporary, and the reads of it.

use super::loops::Loops;
use crate::condition::condition;
use crate::proofs::footprint::element_names;
use crate::refusal::Refusal;
use crate::staging::{Region, Temporary, Tile};
use crate::tree::edit_body;
use purlin_analysis::Analysis;
use purlin_analysis::polyhedral::Polyhedral;
use purlin_ir::{
    Access, AddressSpace, Affine, Constraint, Domain, Expr, Insn, Kernel, Node, ScalarType, VarId, VarKind,
    Variable, WriteOp,
};
use purlin_isl as isl;
use std::collections::BTreeSet;

impl Temporary<'_> {
    /// The kernel with the temporary, filled in front of the region's first read, and its reads replaced.
    ///
    /// # Errors
    /// Names that are taken or of the wrong number; conditions without closed form.
    pub(crate) fn fill(
        &self,
        analysis: &Analysis,
        region: &Region,
        tile: &Tile,
        (ty, space): (ScalarType, AddressSpace),
    ) -> Result<Kernel, Refusal> {
        let mut filled = analysis.kernel().clone();
        let temporary = Variable::new(self.name, ty, VarKind::Temporary, tile.shape(), space);
        let temporary = filled.vars.push(temporary);
        redirect(&mut filled, region, tile, temporary);
        let loops = if self.work_items.is_empty() {
            tile.box_loops(&mut filled, self.inames, self.name)?
        } else {
            tile.flat_loops(&mut filled, self.work_items, self.name)?
        };
        let from = tile.element_at(&loops.offsets);
        let predicate = restrict(&mut filled, analysis.polyhedral(), &loops, &tile.conditions, &from)?;
        let lhs = Access::new(temporary, tile.temporary_at(&loops.offsets));
        let rhs = Expr::load(region.var, tile.array_at(&loops.offsets));
        let (name, tags) = (self.insn_name(), BTreeSet::new());
        let insn = Insn { name, lhs, op: WriteOp::Assign, rhs, predicate, tags, callee: None };
        let node = loops.around(Node::Insn(filled.insns.push(insn)));
        edit_body(&mut filled, region.at, &mut |body| body.insert(region.node, node.clone()));
        Ok(filled)
    }
}

/// Leaves out the elements that do not satisfy the conditions: by the bounds of the innermost loop, or by the
/// predicate that is returned where there is no loop.
fn restrict(
    kernel: &mut Kernel,
    poly: &Polyhedral,
    loops: &Loops,
    conditions: &[Vec<isl::Constraint>],
    elements: &[Affine],
) -> Result<Option<Expr>, Refusal> {
    let names = element_names(elements.len());
    let value = |name: &str| match names.iter().position(|n| n == name) {
        Some(k) => elements.get(k).cloned(),
        None => poly.to_affine(&isl::Affine::name(name)),
    };
    let one = |c: &isl::Constraint| {
        let e = with_values(&c.expr, &value)?;
        Some(match c.kind {
            isl::ConstraintKind::Zero => Constraint::equal(&e, &Affine::default()),
            isl::ConstraintKind::NonNegative => Constraint::le(&Affine::default(), &e),
        })
    };
    let all: Option<Vec<Vec<_>>> = conditions.iter().map(|d| d.iter().map(one).collect()).collect();
    let Some(all) = all else {
        return Err(Refusal::Other("what is read has no closed form; copy the box around it instead".into()));
    };
    let wanted = Domain::union(all);
    if wanted == Domain::universe() {
        return Ok(None);
    }
    match loops.inames.last() {
        Some(last) => {
            kernel.inames[*last].domain = kernel.inames[*last].domain.intersect(&wanted);
            Ok(None)
        }
        None => Ok(condition(&wanted)),
    }
}

/// An expression by names with a value for each name.
fn with_values(e: &isl::Affine, value: &dyn Fn(&str) -> Option<Affine>) -> Option<Affine> {
    let mut result = Affine::constant(e.constant);
    for (name, c) in &e.terms {
        result = result.plus(&value(name)?.times(*c));
    }
    for (div, c) in &e.divs {
        let floor = with_values(&div.numerator, value)?.floor_div(div.denominator);
        result = result.plus(&floor.times(*c));
    }
    Some(result)
}

/// Reads the temporary instead of the array.
fn redirect(kernel: &mut Kernel, region: &Region, tile: &Tile, temporary: VarId) {
    let mut rewrite = |e: Expr| match e {
        Expr::Load(access) if access.var == region.var => Expr::load(temporary, tile.index(&access.index)),
        other => other,
    };
    for insn in &region.insns {
        kernel.insns[*insn].map_expressions(&mut rewrite);
    }
}
