//! Sums of exponentials below a maximum: what their addends are made of, and what they start from.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{AccessSite, DependenceKind};
use kingpost_analysis::polyhedral::{Side, equal_values, smallest_point};
use kingpost_ir::{
    Access, Affine, Atom, BinaryOp, Expr, InameId, InsnId, Kernel, MathFn, Node, Real, VarId, WriteOp,
};
use kingpost_isl as isl;
use kingpost_steps::nest::renamed;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::written::NewRead;
use kingpost_steps::refusal::{AtParameters, Refusal, StaleValue};
use kingpost_steps::tree::insns_of;

/// A sum follows the maximum.
pub const SCALED: Obligation = Obligation::new(
    "rescale_reduction.scaled",
    "every addend is a product with `exp(c*(x - m))` or `exp2(c*(x - m))`, `c > 0` a number, and mentions the \
     maximum `m` nowhere else",
);

/// No exponent is positive.
pub const BELOW: Obligation = Obligation::new(
    "rescale_reduction.below",
    "each `x` is one of the values whose maximum is taken in the same iteration",
);

/// The sums so far are those of no term at first.
pub const STARTED: Obligation = Obligation::new(
    "rescale_reduction.started",
    "before the loops, each element of the sums is set to zero, and the maximum to what is no nan",
);

/// All elements are scaled in every iteration.
pub const ELEMENTS: Obligation = Obligation::new(
    "rescale_reduction.elements",
    "the elements of a sum are the same in every iteration of the loop",
);

/// A sum that is added to in a loop of its own.
pub struct Sum {
    /// The sum.
    pub var: VarId,
    /// Its loop.
    pub iname: InameId,
    /// Its update.
    pub insn: InsnId,
    /// The loops inside that its index mentions.
    pub axes: Vec<InameId>,
    /// `g(x, m)`.
    factor: Factor,
}

/// `exp` or `exp2` of a multiple of a difference `x - m`.
struct Factor {
    function: MathFn,
    exponent: Expr,
    /// `x`.
    above: Expr,
    /// `m`.
    max: Access,
}

impl Sum {
    /// The weight `g(before, m)` that takes the sum from one maximum to the next.
    pub fn weight(&self, before: &Expr) -> Expr {
        let Factor { function, exponent, max, .. } = &self.factor;
        Expr::call(*function, difference(exponent, max, before).map(|(_, weight)| weight))
    }

    /// The sum of an update in the loop `iname`.
    ///
    /// # Errors
    /// [`SCALED`], [`ELEMENTS`].
    pub fn of(
        kernel: &Kernel,
        iname: InameId,
        insn: InsnId,
        outer: &[InameId],
        max: &Access,
    ) -> Result<Self, Refusal> {
        let update = &kernel.insns[insn];
        let factor = SCALED.find(factor(kernel, insn, max), || {
            let max = kernel.show_expr(&Expr::Load(max.clone())).to_string();
            format!(
                "`{}` adds `{}`, needed a product with `exp(x - {max})`, also of a positive multiple or by `exp2`, and \
                 no other `{max}`; expand rules first",
                update.name,
                kernel.show_expr(&update.rhs)
            )
        })?;
        let loops = kingpost_steps::tree::loops_of(kernel, insn)?;
        let inner: Vec<_> = loops[outer.len()..].to_vec();
        let in_index = |l: &InameId| update.lhs.index.iter().any(|e| e.mentions(*l));
        let axes: Vec<_> = inner.iter().copied().filter(in_index).collect();
        let other = |l: &InameId| !axes.contains(l);
        let moves = |l: &InameId| axes.iter().any(|axis| kernel.inames[*axis].domain.mentions(*l));
        let moving = axes.contains(&iname).then_some(iname);
        let moving = moving.or_else(|| inner.iter().copied().find(|l| other(l) && moves(l)));
        ELEMENTS.forbid(moving, |l| {
            format!(
                "which elements of `{}` `{}` updates depends on `{}`; choose another loop",
                kernel.vars[update.lhs.var].name, update.name, kernel.inames[l].name
            )
        })?;
        Ok(Self { var: update.lhs.var, iname, insn, axes, factor })
    }
}

/// The one factor of an addend that mentions the maximum.
fn factor(kernel: &Kernel, insn: InsnId, max: &Access) -> Option<Factor> {
    let insn = &kernel.insns[insn];
    let count = |e: &Expr| {
        let mut n = 0;
        kernel
            .expand_rules(e)
            .for_each(&mut |e| n += usize::from(e.as_load().is_some_and(|a| a.var == max.var)));
        n
    };
    let all: usize = insn.expressions().map(count).sum();
    if all != 1 {
        return None;
    }
    insn.rhs.factors().into_iter().find_map(|e| {
        let Expr::Call(function @ (MathFn::Exp | MathFn::Exp2), arguments) = e else { return None };
        let [exponent] = arguments.as_slice() else { return None };
        let (above, _) = difference(exponent, max, &Expr::from(0.0))?;
        Some(Factor { function: *function, exponent: exponent.clone(), above, max: max.clone() })
    })
}

/// Of a positive multiple of `x - m`: `x`, and the same with `other` for `x`.
fn difference(e: &Expr, max: &Access, other: &Expr) -> Option<(Expr, Expr)> {
    let Expr::Binary(op, a, b) = e else { return None };
    let is_scale = |e: &Expr| {
        matches!(e, Expr::Real(Real(c)) if *c > 0.0 && c.is_finite()) || matches!(e, Expr::Int(c) if *c > 0)
    };
    let with = |a: &Expr, b: &Expr| Expr::binary(*op, a.clone(), b.clone());
    if *op == BinaryOp::Sub && b.as_load() == Some(max) {
        return Some(((**a).clone(), with(other, b)));
    }
    if *op == BinaryOp::Mul && is_scale(a) {
        return difference(b, max, other).map(|(x, inner)| (x, with(a, &inner)));
    }
    let by_scale = matches!(op, BinaryOp::Mul | BinaryOp::Div) && is_scale(b);
    difference(a, max, other).filter(|_| by_scale).map(|(x, inner)| (x, with(&inner, b)))
}

/// The loops that become one.
pub struct Nest<'a, 'k> {
    /// What is known of the kernel.
    pub analysis: &'a Analysis<'k>,
    /// The loop that takes the maximum.
    pub along: InameId,
    /// The loops around it.
    pub outer: &'a [InameId],
    /// The statements from that loop to that of the last sum.
    pub between: &'a [Node],
    /// The updates of the maximum.
    pub tops: &'a [InsnId],
}

impl Nest<'_, '_> {
    fn kernel(&self) -> &Kernel {
        self.analysis.kernel()
    }

    /// Each `x` of a sum is one of those whose maximum is taken in the same iteration, and stays.
    ///
    /// # Errors
    /// [`BELOW`]; [`CURRENT`] not proved.
    pub fn check_below(&self, sum: &Sum) -> Result<(), Refusal> {
        let kernel = self.kernel();
        let top = self.tops.iter().copied().find(|top| self.is_below(sum, *top));
        if top.is_none() && BELOW.is_waived() {
            return Ok(());
        }
        let top = BELOW.find(top, || {
            format!(
                "nothing says that `{}` of `{}` is at most `{}`: `{}` takes no maximum of it in the same iteration and \
                 under the same condition",
                kernel.show_expr(&sum.factor.above),
                kernel.insns[sum.insn].name,
                kernel.show_expr(&Expr::Load(sum.factor.max.clone())),
                kernel.inames[self.along].name
            )
        })?;
        self.check_stays(top)
    }

    /// Whether an update takes the maximum of `x`, with the loops inside by position.
    fn is_below(&self, sum: &Sum, top: InsnId) -> bool {
        let (kernel, poly) = (self.kernel(), self.analysis.polyhedral());
        let (of_top, of_sum) = (&kernel.insns[top], &kernel.insns[sum.insn]);
        let inner = |insn: InsnId, by: &[&Expr]| -> Vec<InameId> {
            let own = poly.loops(insn)[self.outer.len() + 1..].iter().copied();
            own.filter(|l| by.iter().any(|e| e.mentions(*l))).collect()
        };
        let below: Vec<_> = [&of_top.rhs].into_iter().chain(&of_top.predicate).collect();
        let above: Vec<_> = [&sum.factor.above].into_iter().chain(&of_sum.predicate).collect();
        let above = inner(sum.insn, &above).into_iter().filter(|l| !sum.axes.contains(l));
        let pairs: Vec<(InameId, InameId)> =
            [(sum.iname, self.along)].into_iter().chain(above.zip(inner(top, &below))).collect();
        let to_top = |atom: &Atom| match atom {
            Atom::Iname(l) => pairs.iter().find(|(a, _)| a == l).map(|(_, b)| Affine::iname(*b)),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        let same = |(a, b): &(InameId, InameId)| {
            kernel.inames[*a].domain.substitute(&to_top) == kernel.inames[*b].domain
        };
        let given: Vec<_> =
            of_sum.predicate.iter().flat_map(Expr::conjuncts).map(|e| renamed(e, &pairs)).collect();
        pairs.iter().all(same)
            && renamed(&sum.factor.above, &pairs) == of_top.rhs
            && of_top.predicate.iter().flat_map(Expr::conjuncts).all(|e| given.contains(e))
    }

    /// Nothing overwrites what the maximum was taken of until the sums are done.
    ///
    /// Formula: with `o` the loops around and `t` the update of the maximum, for every anti
    /// dependence `D` from `t` to the statements between, `{ t -> w in D : o = o' }` is empty.
    fn check_stays(&self, top: InsnId) -> Result<(), Refusal> {
        let (kernel, poly) = (self.kernel(), self.analysis.polyhedral());
        let between = insns_of(self.between);
        let here = equal_values(poly, self.outer);
        let concerns =
            |a: InsnId, b: InsnId| [(a, b), (b, a)].iter().any(|(t, w)| *t == top && between.contains(w));
        for d in self.analysis.dependences_between(&concerns)? {
            let is_anti = d.kind == DependenceKind::Anti && d.source == top && between.contains(&d.sink);
            if !is_anti || d.var == kernel.insns[top].lhs.var {
                continue;
            }
            let witness = d.witness(kernel, &d.relation_where(std::slice::from_ref(&here))?)?;
            CURRENT.refute(witness.map(|witness| StaleValue {
                // the message names the write first
                witness: kingpost_analysis::Witness {
                    source: witness.sink.clone(),
                    sink: witness.source.clone(),
                    ..witness
                },
                place: "the maximum was taken".into(),
                help: "let the sums add the values that the maximum was taken of".into(),
            }))?;
        }
        Ok(())
    }

    /// The maximum has a value, which is no nan.
    ///
    /// # Errors
    /// [`STARTED`].
    pub fn check_maximum_starts(&self, top: InsnId) -> Result<(), Refusal> {
        self.check_starts(
            top,
            self.along,
            &[],
            &|e| !matches!(e, Expr::Real(Real(v)) if v.is_nan()),
            "a number or to `-inf`",
        )
    }

    /// Each element of a sum starts from zero.
    ///
    /// # Errors
    /// [`STARTED`].
    pub fn check_sum_starts(&self, sum: &Sum) -> Result<(), Refusal> {
        let is_zero = |e: &Expr| matches!(e, Expr::Int(0)) || matches!(e, Expr::Real(Real(v)) if *v == 0.0);
        self.check_starts(sum.insn, sum.iname, &sum.axes, &is_zero, "zero")
    }

    /// Formula: with `E` the values of the loops around and of `axes`, `E` without the union, over
    /// the last writes `w` before the loop that are starts, of `{ x : w runs surely, element(w) =
    /// element(x) }` is empty.
    fn check_starts(
        &self,
        id: InsnId,
        iname: InameId,
        axes: &[InameId],
        is_start: &dyn Fn(&Expr) -> bool,
        from: &str,
    ) -> Result<(), Refusal> {
        let (kernel, poly) = (self.kernel(), self.analysis.polyhedral());
        let var = kernel.insns[id].lhs.var;
        let here = |s: &&AccessSite| {
            s.writes()
                && poly.loops(s.insn).starts_with(self.outer)
                && !poly.loops(s.insn).contains(&iname)
                && poly.position(s.insn) < poly.position(id)
        };
        let starts = |s: &AccessSite| {
            let insn = &kernel.insns[s.insn];
            insn.op == WriteOp::Assign && insn.predicate.is_none() && is_start(&insn.rhs)
        };
        let mut sites: Vec<_> = self.analysis.sites(var).iter().filter(here).cloned().collect();
        sites.sort_by_key(|s| poly.position(s.insn));
        let first = sites.iter().rposition(|s| !starts(s)).map_or(0, |k| k + 1);
        let loops: Vec<_> = self.outer.iter().chain(axes).copied().collect();
        let space = isl::SetSpace::new(&poly.names(&loops, Side::Source), &poly.params);
        let all = poly.in_context(poly.domains(&loops, Side::Source).0);
        let read = NewRead { poly, sites: &sites[first..], id, iname, loops: &loops, condition: None };
        let rest = read.unwritten(isl::Set::from_disjuncts(&space, &all)?)?;
        let point = smallest_point(kernel, &rest)?;
        STARTED.refute(point.map(|params| AtParameters {
            params,
            found: format!("nothing has surely set `{}` to {from}", kernel.vars[var].name),
            reason: format!(
                "as it must be before `{}` in the same body; set it there without a condition",
                kernel.inames[iname].name
            ),
        }))
    }
}
