//! Replacing a parameter by a constant.

use crate::affine::{Affine, Atom};
use crate::expr::{Access, Expr};
use crate::ids::{Arena, Id, VarId};
use crate::kernel::{Assumption, Kernel, Variable};

impl Kernel {
    /// The kernel with an integer scalar replaced by a constant everywhere; the variable is gone and
    /// later variables move up by one.
    #[must_use]
    pub fn with_var_fixed(&self, var: VarId, value: i64) -> Self {
        let moved = |v: VarId| VarId::from_index(v.index() - usize::from(v.index() > var.index()));
        let replace = |atom: &Atom| match atom {
            Atom::Var(v) if *v == var => Some(Affine::constant(value)),
            Atom::Var(v) => Some(Affine::var(moved(*v))),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let mut rewrite = |e: Expr| match e {
            Expr::Load(a) if a.var == var => Expr::Int(value),
            Expr::Load(a) => Expr::Load(Access { var: moved(a.var), index: a.index }),
            other => other,
        };
        let mut kernel = self.clone();
        let kept = |(id, v): (VarId, &Variable)| (id != var).then(|| v.clone());
        kernel.vars = self.vars.iter().filter_map(kept).collect::<Arena<_, _>>();
        for v in kernel.vars.values_mut() {
            for e in v.shape.iter_mut().chain(v.layout.strides.iter_mut().flatten()) {
                *e = e.substitute(&replace);
            }
        }
        for iname in kernel.inames.values_mut() {
            iname.domain = iname.domain.substitute(&replace);
        }
        for rule in kernel.rules.values_mut() {
            rule.body = rule.body.map(&mut rewrite);
        }
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
            insn.lhs.var = moved(insn.lhs.var);
        }
        for assumption in &mut kernel.assumptions {
            match assumption {
                Assumption::Params(c) => *c = c.substitute(&replace),
                Assumption::Injective(v) => *v = moved(*v),
            }
        }
        kernel
    }
}
