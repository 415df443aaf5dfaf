//! Replacing an iname by an expression of other inames, everywhere.

use crate::tree::{inames_of, insns_of};
use purlin_ir::{Affine, Atom, Expr, InameId, Kernel, Node};

/// Replaces `iname` by `value` in the domains of the other inames and in all expressions.
pub(crate) fn substitute_iname(kernel: &mut Kernel, iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    let ids: Vec<_> = kernel.inames.ids().filter(|i| *i != iname).collect();
    for id in ids {
        let domain = &kernel.inames[id].domain;
        if domain.mentions(iname) {
            kernel.inames[id].domain = domain.substitute(&replace);
        }
    }
    let value = Expr::from_affine(value);
    let mut rewrite = |e: Expr| if e == Expr::Iname(iname) { value.clone() } else { e };
    for insn in kernel.insns.values_mut() {
        insn.map_expressions(&mut rewrite);
    }
}

/// Replaces `iname` by `value`, an expression of its own new value, everywhere: its domain included.
pub(crate) fn remap_iname(kernel: &mut Kernel, iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    kernel.inames[iname].domain = kernel.inames[iname].domain.substitute(&replace);
    substitute_iname(kernel, iname, value);
}

/// Replaces `iname` by `value` in the domains of the loops and reductions inside `nodes` and in the
/// instructions there.
pub(crate) fn substitute_in_nodes(kernel: &mut Kernel, nodes: &[Node], iname: InameId, value: &Affine) {
    let replace = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| value.clone());
    for inner in inames_of(kernel, nodes) {
        kernel.inames[inner].domain = kernel.inames[inner].domain.substitute(&replace);
    }
    let value = Expr::from_affine(value);
    let mut rewrite = |e: Expr| if e == Expr::Iname(iname) { value.clone() } else { e };
    for insn in insns_of(nodes) {
        kernel.insns[insn].map_expressions(&mut rewrite);
    }
}
