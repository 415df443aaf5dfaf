//! Accesses of a kernel in textual order.

use crate::polyhedral::{Polyhedral, is_symbol};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::expr::{Access, Expr, UpdateOp};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{Iname, Kernel, WriteOp};
use std::sync::Arc;

/// How an access touches its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads it.
    Read,
    /// Overwrites it.
    Assign,
    /// Reads and writes it by a commuting operator.
    Update(UpdateOp),
}

/// One access of one instruction.
#[derive(Clone, Debug)]
pub struct AccessSite {
    /// The instruction.
    pub insn: InsnId,
    /// What it touches.
    pub access: Access,
    /// How.
    pub mode: Mode,
    /// Reduction loops around the access, inside the instruction.
    pub reduction: Vec<InameId>,
    /// The loop around the instruction whose bounds read it; none: the instruction itself does.
    pub bound_of: Option<InameId>,
    /// How many parts of the instruction's condition, joined by `and`, hold where it happens; none:
    /// all of them.
    pub conditions: Option<usize>,
    /// Each index as a quasi-affine value of loops and symbols, if it is one.
    pub index: Arc<[Option<Affine>]>,
}

impl AccessSite {
    /// Whether every index is quasi-affine.
    pub fn is_affine(&self) -> bool {
        self.index.iter().all(Option::is_some)
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.mode != Mode::Read
    }
}

/// The accesses of each variable in textual order; of one instruction the reads come before the
/// write.
pub fn access_sites(poly: &Polyhedral) -> Vec<Vec<AccessSite>> {
    let kernel = &*poly.kernel;
    let mut sites: Vec<Vec<AccessSite>> = vec![Vec::new(); kernel.vars.len()];
    let bounds = scalars_in_bounds(kernel);
    let bounded = bounds.iter().any(|read| !read.is_empty());
    for id in poly.in_order().iter().copied() {
        let insn = &kernel.insns[id];
        if bounded {
            collect_bounds(poly, id, &bounds, &mut sites);
        }
        for e in insn.lhs.index.iter().chain([&insn.rhs]) {
            collect(poly, (id, None), e, &mut Vec::new(), &mut sites);
        }
        for (k, part) in insn.predicate.iter().flat_map(Expr::conjuncts).enumerate() {
            collect(poly, (id, Some(k)), part, &mut Vec::new(), &mut sites);
        }
        let mode = match insn.op {
            WriteOp::Update { op, .. } if op.commutes() => Mode::Update(op),
            WriteOp::Update { .. } => {
                sites[insn.lhs.var.index()].push(site(poly, id, &insn.lhs, Mode::Read, Vec::new()));
                Mode::Assign
            }
            WriteOp::Assign => Mode::Assign,
        };
        sites[insn.lhs.var.index()].push(site(poly, id, &insn.lhs, mode, Vec::new()));
    }
    sites
}

fn collect(
    poly: &Polyhedral,
    (insn, conditions): (InsnId, Option<usize>),
    e: &Expr,
    reduction: &mut Vec<InameId>,
    sites: &mut [Vec<AccessSite>],
) {
    let depth = reduction.len();
    if let Expr::Load(access) = e {
        let read = site(poly, insn, access, Mode::Read, reduction.clone());
        sites[access.var.index()].push(AccessSite { conditions, ..read });
    }
    if let Expr::Reduce(r) = e {
        reduction.extend(&r.inames);
    }
    for operand in e.operands() {
        collect(poly, (insn, conditions), operand, reduction, sites);
    }
    reduction.truncate(depth);
}

/// The scalars that the bounds of each loop read and that may change.
fn scalars_in_bounds(kernel: &Kernel) -> Vec<Vec<VarId>> {
    let of = |iname: &Iname| {
        let mut read = Vec::new();
        iname.domain.for_each_symbol(&mut |atom| match atom {
            Atom::Var(v) if !is_symbol(kernel, *v) => read.push(*v),
            Atom::Var(_) | Atom::Iname(_) | Atom::Floor(..) => {}
        });
        read
    };
    kernel.inames.values().map(of).collect()
}

/// Scalars in the bounds of the loops around an instruction count as read by it: the loop reads
/// them on entry, which no write may overtake.
fn collect_bounds(poly: &Polyhedral, insn: InsnId, bounds: &[Vec<VarId>], sites: &mut [Vec<AccessSite>]) {
    let kernel = &*poly.kernel;
    let mut reduction = Vec::new();
    let stmt = &kernel.insns[insn];
    for e in stmt.expressions() {
        e.for_each(&mut |e| {
            if let Expr::Reduce(r) = e {
                reduction.extend(r.inames.iter().copied());
            }
        });
    }
    for iname in poly.loops(insn).iter().chain(&reduction) {
        for v in &bounds[iname.index()] {
            if let Some(writer) = kernel.insns.values().find(|i| i.lhs.var == *v) {
                // A scalar's left-hand side is the access itself: no index.
                let read = site(poly, insn, &writer.lhs, Mode::Read, Vec::new());
                sites[v.index()].push(AccessSite { bound_of: Some(*iname), ..read });
            }
        }
    }
}

fn site(poly: &Polyhedral, insn: InsnId, access: &Access, mode: Mode, reduction: Vec<InameId>) -> AccessSite {
    let index = access.index.iter().map(|e| e.as_affine().filter(|a| poly.is_symbolic(a))).collect();
    AccessSite { insn, access: access.clone(), mode, reduction, bound_of: None, conditions: None, index }
}
