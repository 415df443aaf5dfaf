//! Affine expressions, constraints and domains as text.
//!
//! Printing rearranges freely: the parser's arithmetic brings every form back to the same normal
//! form.

use super::show::{Names, Out};
use crate::affine::{Affine, Atom};
use crate::domain::{Constraint, Domain};
use crate::ids::InameId;
use std::fmt;

/// Positive terms first, then negative ones, then the constant; `x - d*floor_div(x, d)` as
/// `x mod d`.
impl Names<'_> {
    pub(super) fn affine(&self, f: Out<'_, '_>, e: &Affine) -> fmt::Result {
        let (remainders, rest) = split_remainders(e);
        let mut sum = Sum { names: self, first: true };
        for (positive, sign) in [(true, 1), (false, -1)] {
            if !positive && sum.first && rest.constant_term() > 0 {
                sum.constant(f, rest.constant_term())?; // `4 - i` rather than `-i + 4`
            }
            for (x, d, c) in remainders.iter().filter(|(_, _, c)| c.signum() == sign) {
                sum.sign(f, *c)?;
                sum.remainder(f, x, *d, *c)?;
            }
            for (atom, c) in rest.terms().iter().filter(|(_, c)| c.signum() == sign) {
                sum.sign(f, *c)?;
                sum.atom(f, atom)?;
            }
        }
        let written_first = rest.constant_term() > 0 && is_all_negative(&remainders, &rest);
        if !written_first && (rest.constant_term() != 0 || sum.first) {
            sum.constant(f, rest.constant_term())?;
        }
        Ok(())
    }

    /// `a < b`, `a <= b`, `a >= c` or `a == b`.
    pub(super) fn constraint(&self, f: Out<'_, '_>, c: &Constraint) -> fmt::Result {
        let (remainders, rest) = split_remainders(c.expr());
        // sides without the constant: expr = plus - minus + constant
        let (mut plus, mut minus) = (Affine::default(), Affine::default());
        for (x, d, k) in &remainders {
            let term = x.modulo(*d).times(k.saturating_abs());
            if *k > 0 { plus = plus.plus(&term) } else { minus = minus.plus(&term) }
        }
        for (atom, k) in rest.terms() {
            let term = of_atom(atom).times(k.saturating_abs());
            if *k > 0 { plus = plus.plus(&term) } else { minus = minus.plus(&term) }
        }
        let k = rest.constant_term();
        let (left, symbol, right) = match c {
            Constraint::Zero(_) if k > 0 && minus == Affine::default() => (plus, "==", Affine::constant(-k)),
            Constraint::Zero(_) if k > 0 => (plus.plus_constant(k), "==", minus),
            Constraint::Zero(_) => (plus, "==", minus.plus_constant(k.saturating_neg())),
            Constraint::NonNegative(_) if minus == Affine::default() && plus != minus => {
                (plus, ">=", Affine::constant(k.saturating_neg()))
            }
            Constraint::NonNegative(_) if k == -1 => (minus, "<", plus),
            Constraint::NonNegative(_) if k >= 0 => (minus, "<=", plus.plus_constant(k)),
            Constraint::NonNegative(_) => (minus.plus_constant(k.saturating_neg()), "<=", plus),
        };
        self.affine(f, &left)?;
        write!(f, " {symbol} ")?;
        self.affine(f, &right)
    }

    /// What stands after the name of a loop: ` in lo..hi`, ` where set`, or both.
    pub(super) fn domain(&self, f: Out<'_, '_>, iname: InameId, domain: &Domain) -> fmt::Result {
        let disjuncts = domain.disjuncts();
        let [only] = disjuncts else {
            f.write_str(" where ")?;
            if disjuncts.is_empty() {
                return f.write_str("false");
            }
            for (k, conjunction) in disjuncts.iter().enumerate() {
                f.write_str(if k > 0 { ") or (" } else { "(" })?;
                let mut ordered: Vec<&Constraint> = conjunction.iter().collect();
                // lower bounds, upper bounds, the rest
                ordered.sort_by_key(|c| bound(c, iname).map_or(2, |b| if b.low { 0 } else { 1 }));
                self.conjunction(f, ordered.into_iter())?;
            }
            return f.write_str(")");
        };
        let bounds: Vec<_> = only.iter().map(|c| bound(c, iname)).collect();
        let is = |low: bool| {
            let mut side: Vec<&Bound> = bounds.iter().flatten().filter(|b| b.low == low).collect();
            side.sort_by_key(|b| b.value.as_constant().is_none()); // `max(0, k - 2)`
            side
        };
        let (lower, upper) = (is(true), is(false));
        if lower.is_empty() || upper.is_empty() {
            f.write_str(" where ")?;
            return self.conjunction(f, only.iter());
        }
        f.write_str(" in ")?;
        self.bounds(f, "max", &lower)?;
        f.write_str("..")?;
        self.bounds(f, "min", &upper)?;
        let rest: Vec<_> = only.iter().zip(&bounds).filter(|(_, b)| b.is_none()).map(|(c, _)| c).collect();
        if rest.is_empty() {
            return Ok(());
        }
        f.write_str(" where ")?;
        self.conjunction(f, rest.into_iter())
    }

    fn conjunction<'c>(
        &self,
        f: Out<'_, '_>,
        constraints: impl Iterator<Item = &'c Constraint>,
    ) -> fmt::Result {
        let mut none = true;
        for c in constraints {
            if !none {
                f.write_str(" and ")?;
            }
            self.constraint(f, c)?;
            none = false;
        }
        if none { f.write_str("true") } else { Ok(()) }
    }

    fn bounds(&self, f: Out<'_, '_>, function: &str, bounds: &[&Bound]) -> fmt::Result {
        if let [only] = bounds {
            return self.bound(f, only);
        }
        write!(f, "{function}(")?;
        for (k, bound) in bounds.iter().enumerate() {
            f.write_str(if k > 0 { ", " } else { "" })?;
            self.bound(f, bound)?;
        }
        f.write_str(")")
    }

    fn bound(&self, f: Out<'_, '_>, bound: &Bound) -> fmt::Result {
        if bound.divisor == 1 {
            return self.affine(f, &bound.value);
        }
        f.write_str("ceil(")?;
        self.in_brackets_unless_symbol(f, &bound.value)?;
        write!(f, "/{})", bound.divisor)
    }
}

impl Names<'_> {
    fn in_brackets_unless_symbol(&self, f: Out<'_, '_>, e: &Affine) -> fmt::Result {
        let symbol = match e.terms() {
            [(Atom::Iname(_) | Atom::Var(_), 1)] => e.constant_term() == 0,
            [(Atom::Floor(..), 1)] => e.constant_term() == 0, // `floor_div(...)` has its brackets
            _ => false,
        };
        f.write_str(if symbol { "" } else { "(" })?;
        self.affine(f, e)?;
        f.write_str(if symbol { "" } else { ")" })
    }
}

/// `iname >= ceil(value/divisor)` if low, `iname < ceil(value/divisor)` if not.
struct Bound {
    low: bool,
    value: Affine,
    divisor: i64,
}

/// The bound a constraint puts on the iname, if it is one.
fn bound(c: &Constraint, iname: InameId) -> Option<Bound> {
    let Constraint::NonNegative(e) = c else { return None };
    let k = e.coefficient(&Atom::Iname(iname));
    let rest = e.minus(&Affine::iname(iname).times(k));
    if k == 0 || rest.mentions(iname) {
        return None;
    }
    // k*i + rest >= 0: i >= ceil(-rest/k) for k > 0; |k|*i < rest + 1, so i < ceil((rest+1)/|k|),
    // for k < 0
    Some(if k > 0 {
        Bound { low: true, value: rest.times(-1), divisor: k }
    } else {
        Bound { low: false, value: rest.plus_constant(1), divisor: k.saturating_neg() }
    })
}

/// Remainders `(x, d, c)`, each meaning `c*(x mod d)`, and what is left of the expression.
fn split_remainders(e: &Affine) -> (Vec<(Affine, i64, i64)>, Affine) {
    let (mut remainders, mut rest) = (Vec::new(), e.clone());
    for (atom, c) in e.terms() {
        let Atom::Floor(x, d) = atom else { continue };
        if c % d != 0 {
            continue;
        }
        // c*floor(x/d) = k*(x mod d) - k*x for k = -c/d: worth it where -k*x cancels something
        let k = -(c / d);
        let without = rest.minus(&x.modulo(*d).times(k));
        if without.terms().len() + 1 < rest.terms().len() {
            remainders.push(((**x).clone(), *d, k));
            rest = without;
        }
    }
    (remainders, rest)
}

fn is_all_negative(remainders: &[(Affine, i64, i64)], rest: &Affine) -> bool {
    remainders.iter().all(|(_, _, c)| *c < 0) && rest.terms().iter().all(|(_, c)| *c < 0)
}

fn of_atom(atom: &Atom) -> Affine {
    match atom {
        Atom::Iname(i) => Affine::iname(*i),
        Atom::Var(v) => Affine::var(*v),
        Atom::Floor(n, d) => n.floor_div(*d),
    }
}

/// Writes a sum term by term.
struct Sum<'n, 'k> {
    names: &'n Names<'k>,
    first: bool,
}

impl Sum<'_, '_> {
    fn operator(&mut self, c: i64) -> &'static str {
        match (std::mem::take(&mut self.first), c < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        }
    }

    /// The operator before a term and the term's factor.
    fn sign(&mut self, f: Out<'_, '_>, c: i64) -> fmt::Result {
        f.write_str(self.operator(c))?;
        match c.unsigned_abs() {
            1 => Ok(()),
            magnitude => write!(f, "{magnitude}*"),
        }
    }

    fn constant(&mut self, f: Out<'_, '_>, c: i64) -> fmt::Result {
        write!(f, "{}{}", self.operator(c), c.unsigned_abs())
    }

    fn atom(&self, f: Out<'_, '_>, atom: &Atom) -> fmt::Result {
        match atom {
            Atom::Iname(i) => self.names.iname(f, *i),
            Atom::Var(v) => self.names.var(f, *v),
            Atom::Floor(numerator, d) => {
                f.write_str("floor_div(")?;
                self.names.affine(f, numerator)?;
                write!(f, ", {d})")
            }
        }
    }

    /// `2*(k mod 4)`, `(k + j) mod 2`: in brackets after a factor or a sign.
    fn remainder(&self, f: Out<'_, '_>, x: &Affine, d: i64, factor: i64) -> fmt::Result {
        f.write_str(if factor == 1 { "" } else { "(" })?;
        self.names.in_brackets_unless_symbol(f, x)?;
        write!(f, " mod {d}")?;
        f.write_str(if factor == 1 { "" } else { ")" })
    }
}
