//! The proof of a primitive that computes bounds of a loop before a loop around it: the scalars in them
//! have the values that they will have there.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use crate::tree::{body_of, insns_of};
use kingpost_analysis::{Analysis, changing_bounds};
use kingpost_ir::{Affine, Atom, Expr, InameId, Insn, InsnId, VarId, WriteOp};
use std::collections::BTreeSet;

/// What is computed early is what is computed later.
pub const RECOMPUTED: Obligation = Obligation::new(
    "recomputed",
    "each scalar in the bounds that the outer loop sets is set once before the inner one, without condition, from \
     what nothing in the outer loop writes",
);

/// Checks that `bound`, evaluated where `inner` is entered, can be computed before the outermost of `loops`,
/// those from an outer loop to `inner`; returns it in terms of these loops.
///
/// Formula: with `w` the one write in the outer loop of a scalar in `bound` and `loops(w)` a prefix of those
/// around `inner`, `vars(rhs(w)) ∩ written(outer) = {}`, so that `rhs(w)` has the same value wherever these
/// loops have the same ones.
///
/// # Errors
/// [`RECOMPUTED`] with the scalar and what sets it.
pub fn check_recomputed(
    analysis: &Analysis,
    loops: &[InameId],
    inner: InameId,
    bound: &Affine,
) -> Result<Expr, Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let inside = insns_of(body_of(kernel, loops[0])?);
    let written: BTreeSet<VarId> = inside.iter().map(|i| kernel.insns[*i].lhs.var).collect();
    let name = |iname: InameId| &kernel.inames[iname].name;
    let moving = loops.iter().find(|l| changing_bounds(kernel, **l).iter().any(|v| written.contains(v)));
    RECOMPUTED
        .forbid(moving, |l| format!("the bounds of `{}` change while `{}` runs", name(*l), name(loops[0])))?;
    let first = insns_of(body_of(kernel, inner)?);
    let first = first.first().copied();
    let refuse = |var: VarId, found: String| {
        RECOMPUTED.unfit(format!(
            "the bounds of `{}` mention `{}`, {found}; set it once in `{}`, without condition and from inputs",
            name(inner),
            kernel.vars[var].name,
            name(loops[0])
        ))
    };
    let mut values: Vec<(VarId, &Expr)> = Vec::new();
    for var in scalars(bound).into_iter().filter(|var| written.contains(var)) {
        let mut writers = inside.iter().copied().filter(|i| kernel.insns[*i].lhs.var == var);
        let (Some(writer), None, Some(first)) = (writers.next(), writers.next(), first) else {
            return Err(refuse(var, "which several instructions write".into()));
        };
        let around = poly.loops(first);
        let around = &around[..around.iter().position(|l| *l == inner).unwrap_or(0)]; // default: not met
        let before = poly.position(writer) < poly.position(first) && around.starts_with(poly.loops(writer));
        let insn = &kernel.insns[writer];
        let Some(value) = plain(insn).filter(|_| before) else {
            return Err(refuse(var, format!("which `{}` does not surely set before", insn.name)));
        };
        if let Some(read) = read_of(value, &written) {
            let other = inside.iter().find(|i| kernel.insns[**i].lhs.var == read);
            let other = other.map_or("", |i: &InsnId| &kernel.insns[*i].name);
            let array = &kernel.vars[read].name;
            return Err(refuse(
                var,
                format!("which `{}` sets from `{array}`, which `{other}` writes", insn.name),
            ));
        }
        values.push((var, value));
    }
    Ok(Expr::from_affine(bound).map(&mut |e| {
        let value = e.as_load().and_then(|access| values.iter().find(|(var, _)| *var == access.var));
        value.map_or(e, |(_, value)| (*value).clone())
    }))
}

/// The value of an assignment that always runs, if it has no loops of its own.
fn plain(insn: &Insn) -> Option<&Expr> {
    let always = insn.op == WriteOp::Assign && insn.predicate.is_none() && insn.callee.is_none();
    (always && !insn.rhs.any(&mut |e| matches!(e, Expr::Reduce(_) | Expr::Rule(..)))).then_some(&insn.rhs)
}

/// A variable among `written` that an expression reads.
fn read_of(e: &Expr, written: &BTreeSet<VarId>) -> Option<VarId> {
    let mut found = None;
    e.for_each(&mut |e| {
        if let Expr::Load(access) = e
            && written.contains(&access.var)
        {
            found = Some(access.var);
        }
    });
    found
}

/// The scalars that a value mentions.
fn scalars(e: &Affine) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    e.for_each_symbol(&mut |atom| {
        if let Atom::Var(var) = atom {
            found.insert(*var);
        }
    });
    found
}
