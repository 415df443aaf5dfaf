//! Replacing a parameter by a constant.

use crate::affine::{Affine, Atom};
use crate::expr::{Access, Expr, Reduction, UpdateOp};
use crate::ids::{Arena, Id, VarId};
use crate::kernel::{Assumption, Kernel, Variable};
use crate::types::ScalarType;
use crate::typing::ExprType;

impl Kernel {
    /// The kernel with an integer scalar replaced by a constant everywhere; the variable is gone
    /// and later variables move up by one. Minima and maxima keep their type, see
    /// [`Kernel::with_typed_extrema`].
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
            other @ (Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_)) => other,
        };
        let is_it = |e: &Expr| matches!(e, Expr::Load(a) if a.var == var);
        let mut kernel = self.with_typed_extrema(&|e| is_it(e).then_some(Expr::Int(value)));
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
                Assumption::Symmetric(symmetry) => symmetry.var = moved(symmetry.var),
            }
        }
        kernel
    }
    /// The kernel before `replace` puts integer literals in the place of elements. A literal has no
    /// type, and a minimum or maximum over nothing is an end of its type, so in those that would
    /// lose the type `i32` the elements get a cast to it. Nothing else that an integer expression
    /// means depends on its type, and indices stay affine.
    #[must_use]
    pub fn with_typed_extrema(&self, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Self {
        let is_narrow = |e: &Expr| self.type_of(e, &[]) == Ok(ExprType::Scalar(ScalarType::I32));
        let stays_narrow =
            |e: &Expr| is_narrow(&self.expand_rules(e).map(&mut |e: Expr| replace(&e).unwrap_or(e)));
        let mut keep = |e: Expr| match e {
            Expr::Reduce(mut r)
                if matches!(r.op, UpdateOp::Min | UpdateOp::Max)
                    && is_narrow(&r.body)
                    && !stays_narrow(&r.body) =>
            {
                let cast = cast_terms(&r.body, replace);
                // what gives it its type may stand in a rule
                let cast =
                    if stays_narrow(&cast) { cast } else { cast_terms(&self.expand_rules(&r.body), replace) };
                *r.body = cast;
                Expr::Reduce(r)
            }
            other @ (Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_)) => other,
        };
        let mut kernel = self.clone();
        // rules hold no reductions
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut keep);
        }
        kernel
    }
}

/// An integer expression with a cast to `i32` around what is replaced and gives it its type.
fn cast_terms(e: &Expr, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    let of = |a: &Expr| Box::new(cast_terms(a, replace));
    match e {
        Expr::Load(_) if replace(e).is_some() => Expr::Cast(ScalarType::I32, Box::new(e.clone())),
        Expr::Unary(op, a) => Expr::Unary(*op, of(a)),
        Expr::Binary(op, a, b) => Expr::Binary(*op, of(a), of(b)),
        Expr::Select(c, a, b) => Expr::Select(c.clone(), of(a), of(b)),
        Expr::Reduce(r) => Expr::Reduce(Reduction { op: r.op, inames: r.inames.clone(), body: of(&r.body) }),
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => e.clone(),
    }
}
