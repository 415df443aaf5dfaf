//! Values that a work-group waits for, in kernels whose groups start in order
//! ([`Launch::ordered_groups`](kingpost_ir::Launch::ordered_groups)).
//!
//! A flow through a temporary in global memory may go from a group to a later one along `g.0`.
//! Whoever reads an element waits until it is written:
//!
//! - Every element is written once, so that whatever a reader sees of it is its value.
//! - Every element that is read was written before, in the order of the text, so that nobody waits for ever: by
//!   induction the first group that has not ended waits for none that has not, and a group that has started
//!   goes on while others wait. That is what the descriptions of targets promise or not.
//! - The loop over the groups is the outermost one, the same at both ends: in the order of the text the source
//!   is then in an earlier group, or in the same one.
//!
//! Loops whose iterations wait for earlier ones: Cytron 1986; scans of this kind: Merrill & Garland
//! 2016.

use crate::Analysis;
use crate::deps::{AccessSite, Dependence, DependenceKind, Mode};
use crate::placement::refusal::PlacementError;
use crate::polyhedral::{Polyhedral, Side};
use crate::question::Written;
use kingpost_ir::expr::Expr;
use kingpost_ir::ids::VarId;
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel, VarKind, WriteOp};
use kingpost_ir::types::ScalarType;

/// Whether the sink may wait for the source, wherever they are in different groups.
pub(super) fn may_await(poly: &Polyhedral, d: &Dependence) -> bool {
    let kernel = &*poly.kernel;
    let var = &kernel.vars[d.var];
    let outermost = poly.common_loops(d.source, d.sink).first();
    kernel.launch.ordered_groups
        && !kernel.has_launches()
        && d.kind == DependenceKind::Flow
        && var.kind == VarKind::Temporary
        && var.space == AddressSpace::Global
        && outermost.is_some_and(|l| kernel.inames[*l].tag == AxisTag::Group(0))
        && kernel.inames.values().all(|i| !matches!(i.tag, AxisTag::Group(1 | 2)))
}

/// Checks what groups wait for: each element is written once, before anyone reads it, and read by a
/// copy.
pub(super) fn check_awaited(
    analysis: &Analysis,
    var: VarId,
    dependences: &[&Dependence],
) -> Result<(), PlacementError> {
    let (poly, kernel) = (analysis.polyhedral(), analysis.expanded());
    let refuse = |why: String| {
        let var = kernel.vars[var].name.clone();
        Err(PlacementError::Awaited { var, why })
    };
    if !has_words(kernel, var) {
        return refuse(format!("its elements are {}, needed ones of 32 or 64 bits", kernel.vars[var].ty));
    }
    for d in dependences.iter().filter(|d| d.var == var && d.kind != DependenceKind::Flow) {
        if let Some(w) = d.witness(kernel, &d.relation()?)? {
            let first = if d.kind == DependenceKind::Anti { "read" } else { "written" };
            return refuse(format!(
                "`{}` is {first} by {} and written by {} later",
                w.element, w.source, w.sink
            ));
        }
    }
    for site in analysis.sites(var) {
        let name = &kernel.insns[site.insn].name;
        if site.writes() {
            if site.mode != Mode::Assign {
                return refuse(format!("`{name}` updates it; sum in a private scalar, and store that once"));
            }
            continue;
        }
        if !is_copy(kernel, site) {
            return refuse(format!(
                "`{name}` computes with what it reads of it; copy the element to a temporary first"
            ));
        }
        let flows = dependences.iter().filter(|d| d.var == var && d.sink == site.insn);
        let sure =
            flows.filter(|d| d.kind == DependenceKind::Flow && poly.instances(d.source, Side::Source).1);
        let question = Written {
            reads: poly.instances_of(site.insn, None, &[]),
            flows: sure.map(|d| d.told().clone()).collect(),
            symbols: poly.symbols().clone(),
        };
        if !question.answer()? {
            return refuse(format!("`{name}` may read an element of it that nothing surely writes before"));
        }
    }
    Ok(())
}

/// Whether a read is all that its instruction computes.
fn is_copy(kernel: &Kernel, site: &AccessSite) -> bool {
    let insn = &kernel.insns[site.insn];
    insn.op == WriteOp::Assign
        && matches!(&insn.rhs, Expr::Load(access) if *access == site.access)
        && kernel.vars[insn.lhs.var].ty == kernel.vars[site.access.var].ty
        && site.conditions.is_none()
        && site.bound_of.is_none()
}

/// Whether an element is one number of 32 or 64 bits.
fn has_words(kernel: &Kernel, var: VarId) -> bool {
    match kernel.vars[var].ty {
        ScalarType::F32
        | ScalarType::F64
        | ScalarType::I32
        | ScalarType::U32
        | ScalarType::I64
        | ScalarType::U64 => true,
        ScalarType::I8
        | ScalarType::U8
        | ScalarType::I16
        | ScalarType::U16
        | ScalarType::Bool
        | ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => false,
    }
}
