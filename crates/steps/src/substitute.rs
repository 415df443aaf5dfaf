//! Replacing an iname by an expression of other inames, everywhere.

use crate::tree::{inames_of, insns_of};
use kingpost_ir::{Access, Affine, Atom, Expr, InameId, Insn, InsnId, Kernel, Node};

/// Replaces `iname` by `value` in the domains of the other inames and in all expressions.
pub fn substitute_iname(kernel: &mut Kernel, iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    let ids: Vec<_> = kernel.inames.ids().filter(|i| *i != iname).collect();
    for id in ids {
        let domain = &kernel.inames[id].domain;
        if domain.mentions(iname) {
            kernel.inames[id].domain = domain.substitute(&replace);
        }
    }
    let all: Vec<_> = kernel.insns.ids().collect();
    substitute_in_insns(kernel, &all, iname, value);
}

/// Replaces `iname` by `value` in the expressions of instructions; minima and maxima over nothing
/// stay what they are.
fn substitute_in_insns(kernel: &mut Kernel, insns: &[InsnId], iname: InameId, value: &Affine) {
    let value = Expr::from_affine(value);
    let replace = |e: &Expr| (*e == Expr::Iname(iname)).then(|| value.clone());
    let mut rewrite = |e: Expr| replace(&e).unwrap_or(e);
    // the type of an iname is that of an expression of inames
    let has_another_type = kernel.type_of(&value, &[]) != kernel.type_of(&Expr::Iname(iname), &[]);
    for id in insns {
        if !kernel.insns[*id].expressions().any(|e| e.mentions(iname)) {
            continue; // and stays shared with the kernel before
        }
        let mut insn = kernel.insns[*id].clone();
        if has_another_type {
            insn.map_roots(&mut |e| kernel.with_ends_kept(e, &replace));
        }
        insn.map_expressions(&mut rewrite);
        kernel.insns[*id] = insn;
    }
}

/// Replaces `iname` by `value`, an expression of its own new value, everywhere: its domain
/// included.
pub fn remap_iname(kernel: &mut Kernel, iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    kernel.inames[iname].domain = kernel.inames[iname].domain.substitute(&replace);
    substitute_iname(kernel, iname, value);
    let mentions = |insn: &Insn| insn.expressions().any(|e| e.mentions(iname));
    let users: Vec<_> = kernel.insns.iter().filter(|(_, insn)| mentions(insn)).map(|(id, _)| id).collect();
    simplify_indices(kernel, &users);
}

/// Replaces `iname` by `value` in the domains of the loops and reductions inside `nodes` and in the
/// instructions there.
pub fn substitute_in_nodes(kernel: &mut Kernel, nodes: &[Node], iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    for inner in inames_of(kernel, nodes) {
        kernel.inames[inner].domain = kernel.inames[inner].domain.substitute(&replace);
    }
    substitute_in_insns(kernel, &insns_of(nodes), iname, value);
}

/// Brings the quasi-affine indices of instructions to their normal form: `a[i + 2 - 2]` becomes
/// `a[i]`.
pub fn simplify_indices(kernel: &mut Kernel, insns: &[InsnId]) {
    let simple = |e: &Expr| e.as_affine().map_or_else(|| e.clone(), |value| Expr::from_affine(&value));
    let mut rewrite = |mut e: Expr| {
        if let Expr::Load(access) = &mut e {
            access.index = access.index.iter().map(simple).collect();
        }
        e
    };
    for insn in insns {
        let insn = &mut kernel.insns[*insn];
        insn.map_expressions(&mut rewrite);
        insn.lhs.index = insn.lhs.index.iter().map(simple).collect();
    }
}

/// The expression at a value of an iname.
pub fn with_value(e: &Expr, iname: InameId, value: &Affine) -> Expr {
    let value = Expr::from_affine(value);
    let replaced = e.map(&mut |e| if e == Expr::Iname(iname) { value.clone() } else { e });
    replaced.map(&mut |e| if let Expr::Load(access) = e { Expr::Load(simplified(access)) } else { e })
}

fn simplified(access: Access) -> Access {
    let simple = |e: Expr| e.as_affine().map_or(e, |value| Expr::from_affine(&value));
    Access { var: access.var, index: access.index.into_iter().map(simple).collect() }
}
