//! Integers that 64 bits may not hold: what they reach at a launch is checked there.
//!
//! The kernel's integers are unbounded, those of code have 64 bits at most. Where types, constant
//! bounds and assumptions do not show that a product or a partial sum fits, the launch plan gets
//! its largest and its smallest value as expressions of the parameters, made of the bounds of the
//! loops around; a launch where one of them does not fit is refused. So an
//! `i64` parameter needs no assumption. What memory holds is unknown at a launch: an `i64` that is
//! read from there is taken as it is, and only those in 32 bits count with their ends.

use crate::env::Env;
use crate::factors::Factor;
use crate::plan::{HostExpr, Precondition};
use kingpost_ir::{Affine, Atom, Id, InameId, ScalarType};

impl Env<'_> {
    /// Has a launch check that the terms, summed up in this order, and then the constant stay
    /// within 64 bits.
    pub(crate) fn check_at_launch(&self, terms: &[(Factor, i64)], constant: i64) {
        let whole =
            terms.iter().fold(Affine::constant(constant), |e, (f, c)| e.plus(&f.to_affine().times(*c)));
        for upper in [true, false] {
            let term = |(factor, c): &(Factor, i64)| {
                let value = match factor {
                    Factor::Atom(atom) => self.atom_reach(atom, upper == (*c > 0))?,
                    Factor::Remainder(_, d) => HostExpr::Const(if upper == (*c > 0) { d - 1 } else { 0 }),
                };
                // code multiplies by the magnitude and then subtracts
                let product = times(c.saturating_abs(), value);
                Some(if *c < 0 { times(-1, product) } else { product })
            };
            let sum = terms.iter().map(term).chain([Some(HostExpr::Const(constant))]);
            let Some(sum) = sum.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().reduce(plus))
            else {
                continue;
            };
            // whatever the value, only whether it fits counts
            let value = HostExpr::Max(Box::new(HostExpr::Const(0)), Box::new(sum));
            let text = format!("{} in 64 bits", crate::axes::show(self.kernel, &whole));
            let condition = Precondition { value, text, array: None };
            let mut found = self.reach.found.borrow_mut();
            if !found.contains(&condition) {
                found.push(condition);
            }
        }
    }

    /// The largest or smallest value of an expression; none where memory decides.
    fn reach(&self, e: &Affine, upper: bool) -> Option<HostExpr> {
        let mut sum = None;
        for (atom, c) in e.terms() {
            let term = times(*c, self.atom_reach(atom, upper == (*c > 0))?);
            sum = Some(sum.map_or(term.clone(), |sum| plus(sum, term)));
        }
        let constant = HostExpr::Const(e.constant_term());
        Some(match sum {
            None => constant,
            Some(sum) => plus(sum, constant),
        })
    }

    fn atom_reach(&self, atom: &Atom, upper: bool) -> Option<HostExpr> {
        let range = self.atom_range(atom);
        let known = if upper { range.finite_hi() } else { range.finite_lo() };
        match atom {
            Atom::Var(v) if self.is_param(*v) => Some(HostExpr::Param(self.kernel.vars[*v].name.clone())),
            _ if known.is_some() => known.map(HostExpr::Const),
            // ends of 64 bits say nothing
            Atom::Var(v) => {
                let ty = Some(self.kernel.vars[*v].ty).filter(|ty| *ty != ScalarType::I64)?;
                let (lo, hi) = ty.ends()?;
                i64::try_from(if upper { hi } else { lo }).ok().map(HostExpr::Const)
            }
            Atom::Floor(n, d) => {
                let (n, d) = (self.reach(n, upper)?, HostExpr::Const(*d));
                Some(HostExpr::FloorDiv(Box::new(n), Box::new(d)))
            }
            Atom::Iname(i) => self.iname_reach(*i, upper),
        }
    }

    fn iname_reach(&self, iname: InameId, upper: bool) -> Option<HostExpr> {
        if let Some((_, extent)) = self.reach.extents.iter().find(|(index, _)| *index == iname) {
            let last = plus(extent.clone(), HostExpr::Const(-1));
            return Some(if upper { last } else { HostExpr::Const(0) });
        }
        let bounds = self.reach.bounds.get(iname.index())?.as_ref()?;
        let min = |a, b| HostExpr::Min(Box::new(a), Box::new(b));
        let max = |a, b| HostExpr::Max(Box::new(a), Box::new(b));
        let pieces = if upper { &bounds.upper } else { &bounds.lower };
        let mut whole: Option<HostExpr> = None;
        for piece in pieces {
            // a bound that memory decides is left out: the others are weaker, but hold
            let known = piece.iter().filter_map(|e| self.reach(e, upper));
            let piece = if upper { known.reduce(min) } else { known.reduce(max) }?;
            whole = Some(match whole {
                None => piece,
                Some(whole) if upper => max(whole, piece),
                Some(whole) => min(whole, piece),
            });
        }
        if upper { whole.map(|end| plus(end, HostExpr::Const(-1))) } else { whole }
    }
}

fn plus(a: HostExpr, b: HostExpr) -> HostExpr {
    match (a, b) {
        (a, HostExpr::Const(0)) => a,
        (HostExpr::Const(a), HostExpr::Const(b)) if a.checked_add(b).is_some() => HostExpr::Const(a + b),
        (a, b) => HostExpr::Add(Box::new(a), Box::new(b)),
    }
}

fn times(c: i64, value: HostExpr) -> HostExpr {
    match (c, value) {
        (1, value) => value,
        (c, HostExpr::Const(v)) if c.checked_mul(v).is_some() => HostExpr::Const(c * v),
        (c, value) => HostExpr::Mul(Box::new(HostExpr::Const(c)), Box::new(value)),
    }
}
