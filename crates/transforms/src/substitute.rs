//! Replacing an iname by an expression of other inames, everywhere.

use purlin_ir::{Affine, Atom, Expr, InameId, Kernel};

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
