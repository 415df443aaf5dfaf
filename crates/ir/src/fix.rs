//! Replacing a parameter by a constant or by other parameters.

use crate::affine::{Affine, Atom};
use crate::expr::{BinaryOp, Expr, Reduction, UpdateOp};
use crate::ids::{Arena, Id, VarId};
use crate::kernel::{Assumption, Kernel, Variable};
use crate::places::Places;
use crate::types::ScalarType;
use crate::typing::ExprType;

impl Kernel {
    /// The kernel with an integer scalar replaced by a constant everywhere; the variable is gone
    /// and later variables move up by one. Minima and maxima keep their type, see
    /// [`Kernel::with_typed_extrema`].
    #[must_use]
    pub fn with_var_fixed(&self, var: VarId, value: i64) -> Self {
        self.with_var_defined(var, &Affine::constant(value))
    }

    /// The same with a quasi-affine value of other integer scalars.
    #[must_use]
    pub fn with_var_defined(&self, var: VarId, value: &Affine) -> Self {
        let moved = |v: VarId| VarId::from_index(v.index() - usize::from(v.index() > var.index()));
        let stands = value.substitute(&|atom| match atom {
            Atom::Var(v) => Some(Affine::var(moved(*v))),
            Atom::Iname(_) | Atom::Floor(..) => None,
        });
        let expr = Expr::from_affine(&stands);
        let replace = |atom: &Atom| match atom {
            Atom::Var(v) if *v == var => Some(stands.clone()),
            Atom::Var(v) => Some(Affine::var(moved(*v))),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let mut rewrite = |mut e: Expr| {
            if let Expr::Load(a) = &mut e {
                if a.var == var {
                    return expr.clone();
                }
                a.var = moved(a.var);
            }
            e
        };
        let is_it = |e: &Expr| matches!(e, Expr::Load(a) if a.var == var);
        let mut kernel = self.with_typed_extrema(&|e| is_it(e).then(|| Expr::from_affine(value)));
        let kept = |(id, v): (VarId, &Variable)| (id != var).then(|| v.clone());
        kernel.vars = self.vars.iter().filter_map(kept).collect::<Arena<_, _>>();
        for v in kernel.vars.values_mut() {
            let strides = match &mut v.layout.places {
                Places::Strides(strides) => strides.as_mut_slice(),
                Places::RowMajor | Places::Order(_) => &mut [],
            };
            for e in v.shape.iter_mut().chain(strides) {
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
        kernel.assumptions.retain(|a| !matches!(a, Assumption::Defined(param, _) if *param == var));
        for assumption in &mut kernel.assumptions {
            match assumption {
                Assumption::Params(c) => *c = c.substitute(&replace),
                Assumption::Defined(param, value) => {
                    (*param, *value) = (moved(*param), value.map(&mut rewrite));
                }
                Assumption::Injective(v) | Assumption::Ascending(v) => *v = moved(*v),
                Assumption::Outside(outside) => {
                    outside.array = moved(outside.array);
                    outside.from = outside.from.substitute(&replace);
                    outside.to = outside.to.substitute(&replace);
                }
                Assumption::Symmetric(symmetry) => symmetry.var = moved(symmetry.var),
                Assumption::Lists(lists) => *lists = lists.map_vars(&moved),
            }
        }
        kernel
    }

    /// The kernel before `replace` puts integer literals instead of elements, see
    /// [`Kernel::with_ends_kept`].
    #[must_use]
    pub fn with_typed_extrema(&self, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Self {
        let mut kernel = self.clone();
        // rules hold no reductions
        for insn in kernel.insns.values_mut() {
            insn.map_roots(&mut |e| self.with_ends_kept(e, replace));
        }
        kernel
    }

    /// The expression before `replace` puts other integers instead of elements or inames. A
    /// minimum or maximum over nothing is an end of its type, and what is replaced may have another
    /// type than what stands for it: a literal and an iname have none. So it gets a cast to the
    /// type that the reduction had; where that does not help, because a part has one already, the
    /// result is bounded by the end that it had. Nothing else that an integer expression means
    /// depends on its type, and indices stay affine.
    #[must_use]
    pub fn with_ends_kept(&self, e: &Expr, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
        let of = |a: &Expr| Box::new(self.with_ends_kept(a, replace));
        match e {
            Expr::Reduce(r) => {
                let reduce = |body| Expr::Reduce(Reduction { op: r.op, inames: r.inames.clone(), body });
                let body = of(&r.body);
                let (Some(end), Some(found)) =
                    (self.end(r.op, &r.body), self.end(r.op, &self.replaced(&body, replace)))
                else {
                    return reduce(body);
                };
                if end == found {
                    return reduce(body);
                }
                let ty = if is_end_of_i32(end) { ScalarType::I32 } else { ScalarType::I64 };
                // what gives it its type may stand in a rule
                let cast = [*body.clone(), self.expand_rules(&body)].map(|e| cast_terms(&e, ty, replace));
                match cast.into_iter().find(|e| self.end(r.op, &self.replaced(e, replace)) == Some(end)) {
                    Some(cast) => reduce(Box::new(cast)),
                    None => bounded(r.op, reduce(body), end),
                }
            }
            Expr::Unary(op, a) => Expr::Unary(*op, of(a)),
            Expr::Cast(ty, a) => Expr::Cast(*ty, of(a)),
            Expr::Binary(op, a, b) => Expr::Binary(*op, of(a), of(b)),
            Expr::Select(c, a, b) => Expr::Select(of(c), of(a), of(b)),
            Expr::Call(function, args) => Expr::Call(*function, args.iter().map(|a| *of(a)).collect()),
            Expr::Rule(rule, args) => Expr::Rule(*rule, args.iter().map(|a| *of(a)).collect()),
            Expr::Int(_) | Expr::Real(_) | Expr::Iname(_) | Expr::Load(_) | Expr::RuleParam(_) => e.clone(),
        }
    }

    /// The expression without rules, in which what is replaced may stand, too.
    fn replaced(&self, e: &Expr, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
        self.expand_rules(e).map(&mut |e| replace(&e).unwrap_or(e))
    }

    /// What a minimum or maximum of integers is over nothing.
    fn end(&self, op: UpdateOp, body: &Expr) -> Option<i64> {
        let is_narrow = match self.type_of(body, &[]).ok()? {
            ExprType::Scalar(ScalarType::I32) => true,
            ExprType::Literal | ExprType::Index | ExprType::Scalar(ScalarType::I64) => false,
            ExprType::Bool | ExprType::WeakReal | ExprType::WeakComplex | ExprType::Scalar(_) => return None,
        };
        match (op, is_narrow) {
            (UpdateOp::Min, true) => Some(i32::MAX.into()),
            (UpdateOp::Min, false) => Some(i64::MAX),
            (UpdateOp::Max, true) => Some(i32::MIN.into()),
            (UpdateOp::Max, false) => Some(i64::MIN),
            (UpdateOp::Add | UpdateOp::Mul | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_), _) => None,
        }
    }
}

fn is_end_of_i32(end: i64) -> bool {
    i32::try_from(end).is_ok()
}

/// The reduction with the end of a narrower type.
fn bounded(op: UpdateOp, reduction: Expr, end: i64) -> Expr {
    let bound = if op == UpdateOp::Min { BinaryOp::Min } else { BinaryOp::Max };
    Expr::Binary(bound, Box::new(reduction), Box::new(Expr::Int(end)))
}

/// An integer expression with a cast around what is replaced and gives it its type.
fn cast_terms(e: &Expr, ty: ScalarType, replace: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    let of = |a: &Expr| Box::new(cast_terms(a, ty, replace));
    match e {
        Expr::Load(_) | Expr::Iname(_) if replace(e).is_some() => Expr::Cast(ty, Box::new(e.clone())),
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
