//! What of a placement holds for the kernel that a step made.

use crate::Analysis;
use crate::deps::AccessSite;
use crate::kept::Kept;
use crate::placement::axes::LaunchAxes;
use crate::placement::barriers::{Barrier, Carried, Placement};
use crate::polyhedral::is_symbol;
use kingpost_ir::canonical::Renumbering;
use kingpost_ir::ids::{Id, InameId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel};

/// The variables of a draft, which an edit made of a placed kernel, whose dependences are checked
/// again; none: those of all.
///
/// What the check of the dependences through a variable reads: the accesses of the variable, the
/// instructions that they stand in, the loops around these with their domains and tags, the order
/// of these instructions in the text, the declarations of variables, assumptions and the axes of
/// the launch. A variable is closed where all of this is the same. Left open besides: accesses
/// through arrays, as injectivity depends on what other instructions write; those in reductions;
/// scalars that bound loops; memory of sub-groups, which depends on the lengths of other loops;
/// what work-items may write alike; all variables where rules or vectors are used.
pub(crate) fn open_vars(before: &Analysis, draft: &Kernel, kept: &Kept) -> Option<Vec<bool>> {
    let kernel = before.kernel();
    if !kept.is_in_order() || !has_same_surroundings(kernel, draft) {
        return None;
    }
    let mut open = vec![false; draft.vars.len()];
    for insn in kept.draft_insns().filter(|s| !kept.insn_and_loops(*s)) {
        let insn = &draft.insns[insn];
        open[insn.lhs.var.index()] = true;
        insn.reads().iter().for_each(|access| open[access.var.index()] = true);
    }
    let insns = draft.insns.len();
    let closed = |s: &AccessSite| {
        s.insn.index() < insns
            && kept.insn_and_loops(s.insn)
            && s.is_affine()
            && s.bound_of.is_none()
            && s.reduction.is_empty()
    };
    // whether work-items repeat a write depends on what writes the arrays that it reads
    for (insn, loops) in draft.schedule() {
        let insn = &draft.insns[insn];
        let varies = |l: &InameId| insn.expressions().any(|e| e.mentions(*l));
        let items = |l: &&InameId| matches!(draft.inames[**l].tag, AxisTag::Local(_));
        let shared = draft.vars[insn.lhs.var].space != AddressSpace::Private;
        open[insn.lhs.var.index()] |= shared && loops.iter().filter(items).any(|l| !varies(l));
    }
    for (var, sites) in kernel.vars.ids().zip(before.all_sites()) {
        let variable = &kernel.vars[var];
        open[var.index()] |= variable.space == AddressSpace::SubGroup
            || variable.is_integer_scalar()
            || !sites.iter().all(closed);
    }
    open[kernel.vars.len()..].fill(true);
    Some(open)
}

/// The barriers of the variables that are not open, for the draft in canonical form.
pub(crate) fn carried(placement: &Placement, open: &[bool], after: &Kernel, ids: &Renumbering) -> Carried {
    if LaunchAxes::of(after).axes != placement.axes {
        return Vec::new();
    }
    let renumbered = |b: &Barrier| {
        let carrier = match b.carrier {
            None => None,
            Some(l) => Some(ids.iname(l)?),
        };
        Some(Barrier { source: ids.insn(b.source)?, sink: ids.insn(b.sink)?, carrier, ..b.clone() })
    };
    let of_var = |(var, open): (_, &bool)| {
        let barriers = placement.barriers.iter().filter(|b| b.var == var);
        if *open { None } else { barriers.map(renumbered).collect() }
    };
    after.vars.ids().zip(open).map(of_var).collect()
}

/// Whether what all dependences rely on is the same in both kernels.
fn has_same_surroundings(before: &Kernel, draft: &Kernel) -> bool {
    let is_vector = |kernel: &Kernel| kernel.inames.values().any(|i| i.tag == AxisTag::Vector);
    before.rules.is_empty()
        && draft.rules.is_empty()
        && before.assumptions == draft.assumptions
        && before.vars.len() <= draft.vars.len()
        && before.vars.changed(&draft.vars).all(|(a, b)| {
            a.name == b.name
                && a.ty == b.ty
                && a.kind == b.kind
                && a.shape == b.shape
                && a.space == b.space
                && a.layout == b.layout
        })
        && draft.vars.ids().skip(before.vars.len()).all(|v| !is_symbol(draft, v))
        // the axes of each launch would have to be the same
        // what groups wait for is found again
        && !before.launch.ordered_groups
        && !draft.launch.ordered_groups
        && !before.has_launches()
        && !draft.has_launches()
        && !is_vector(before)
        && !is_vector(draft)
}
