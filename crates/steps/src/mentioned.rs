//! The variables that a program mentions.

use kingpost_ir::{Assumption, Atom, Expr, Id, Kernel, VarId};

/// Which variables an instruction, a rule, a bound or an assumption mentions.
#[must_use]
pub fn mentioned(kernel: &Kernel) -> Vec<bool> {
    let mut used = vec![false; kernel.vars.len()];
    let loads = |e: &Expr, used: &mut Vec<bool>| {
        e.for_each(&mut |e| {
            if let Expr::Load(a) = e {
                used[a.var.index()] = true;
            }
        });
    };
    for insn in kernel.insns.values() {
        used[insn.lhs.var.index()] = true;
        for e in insn.expressions() {
            loads(e, &mut used);
        }
    }
    for rule in kernel.rules.values() {
        loads(&rule.body, &mut used);
    }
    let mut mark = |v: VarId| used[v.index()] = true;
    for iname in kernel.inames.values() {
        iname.domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                mark(*v);
            }
        });
    }
    for assumption in &kernel.assumptions {
        match assumption {
            Assumption::Injective(v) | Assumption::Ascending(v) => mark(*v),
            Assumption::Outside(outside) => outside.inputs(kernel).into_iter().for_each(&mut mark),
            Assumption::Symmetric(symmetry) => mark(symmetry.var),
            Assumption::Lists(lists) => lists.vars().into_iter().for_each(&mut mark),
            Assumption::Params(_) | Assumption::Defined(..) => {} // mentions parameters only
        }
    }
    used
}
