//! Sums of products of scalars that multiply a part of an update, computed once and in front.

use crate::polynomial::{Atoms, Product, joined};
use kingpost_ir::{
    Access, AddressSpace, Expr, Insn, InsnId, Kernel, ScalarType, VarId, VarKind, Variable, WriteOp,
};
use std::collections::BTreeSet;

/// A sum of products with coefficients as one expression with a coefficient; no product is none.
pub(crate) fn value_of(atoms: &Atoms, factors: &[(Product, f64)]) -> Option<(Option<Expr>, f64)> {
    match factors {
        [] => None,
        [(one, c)] => Some((atoms.product_of(one), *c)),
        _ => joined(factors.iter().map(|(p, c)| (atoms.product_of(p), *c))).map(|e| (Some(e), 1.0)),
    }
}

/// Whether a sum of products holds an operation, and nothing but scalars.
pub(crate) fn is_worth_a_scalar(atoms: &Atoms, factors: &[(Product, f64)]) -> bool {
    let all: Vec<_> = factors.iter().flat_map(|(product, _)| product).collect();
    let plain = factors.len() == 1 && factors[0].1.abs() == 1.0 && all.len() <= 1;
    let divides = all.iter().any(|f| f.divides);
    let of_scalars = all.iter().all(|f| {
        let varies =
            |e: &Expr| matches!(e, Expr::Iname(_)) || e.as_load().is_some_and(|a| !a.index.is_empty());
        !atoms.get(f.atom).any(&mut |e| varies(e))
    });
    (!plain || divides) && of_scalars && !all.is_empty()
}

/// Stores a sum of products of scalars in a temporary of its own; the tags are those that all users
/// have.
pub(crate) fn store(
    kernel: &mut Kernel,
    atoms: &Atoms,
    factors: &[(Product, f64)],
    users: impl IntoIterator<Item = InsnId>,
) -> (VarId, InsnId) {
    let name = kernel.fresh_name("factor");
    let temporary = Variable::new(&name, ScalarType::F64, VarKind::Temporary, [], AddressSpace::Private);
    let var = kernel.vars.push(temporary);
    let terms = factors.iter().map(|(p, c)| (atoms.product_of(p), *c));
    let tags = common_tags(kernel, users);
    let insn = Insn {
        name: kernel.fresh_name(&format!("set_{name}")),
        lhs: Access::scalar(var),
        op: WriteOp::Assign,
        rhs: joined(terms).unwrap_or(Expr::Int(0)),
        predicate: None,
        tags,
        callee: None,
    };
    (var, kernel.insns.push(insn))
}

/// The tags that all of some instructions have.
pub(crate) fn common_tags(kernel: &Kernel, insns: impl IntoIterator<Item = InsnId>) -> BTreeSet<String> {
    let all = insns.into_iter().map(|i| kernel.insns[i].tags.clone());
    all.reduce(|all, of| &all & &of).unwrap_or_default() // default: those of no instruction are none
}
