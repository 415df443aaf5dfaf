//! Offsets as sums, of what a loop multiplies and of what stays.

use crate::ast::{Expr, Name, Op};
use kingpost_ir::ScalarType;
use std::collections::BTreeSet;

/// A sum of 64 bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) terms: Vec<Expr>,
    pub(super) constant: i64,
}

impl Sum {
    fn of_number(constant: i64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub(super) fn plus(mut self, other: Self) -> Option<Self> {
        self.terms.extend(other.terms);
        self.constant = self.constant.checked_add(other.constant)?;
        Some(self)
    }

    pub(super) fn times(&self, factor: &Expr) -> Option<Self> {
        let own = Some(Expr::int(self.constant)).filter(|_| self.constant != 0);
        let all: Option<Vec<_>> = self.terms.iter().chain(&own).map(|term| product(term, factor)).collect();
        let (numbers, terms): (Vec<_>, Vec<_>) = all?.into_iter().partition(|e| matches!(e, Expr::Int(..)));
        let number = |e: &Expr| if let Expr::Int(value, _) = e { *value } else { 0 };
        // a number is the product of the one that there was
        Some(Self { terms, constant: numbers.first().map_or(0, number) })
    }

    pub(super) fn expr(self) -> Expr {
        let sum = self.terms.into_iter().reduce(|a, b| Expr::binary(Op::Add, a, b));
        match (sum, self.constant) {
            (Some(sum), 0) => sum,
            (Some(sum), constant) => Expr::binary(Op::Add, sum, Expr::int(constant)),
            (None, constant) => Expr::int(constant),
        }
    }
}

/// The product of two factors, numbers in front; none that does not fit.
fn product(a: &Expr, b: &Expr) -> Option<Expr> {
    let (number, e) = match (a, b) {
        (Expr::Int(x, _), Expr::Int(y, _)) => return Some(Expr::int(x.checked_mul(*y)?)),
        (Expr::Int(number, _), e) | (e, Expr::Int(number, _)) => (*number, e),
        (a, b) => return Some(Expr::binary(Op::Mul, wide(a), b.clone())),
    };
    if let Expr::Binary(Op::Mul, own, rest) = e
        && matches!(**own, Expr::Int(..))
    {
        return product(&product(own, &Expr::int(number))?, rest);
    }
    Some(match number {
        0 => Expr::int(0),
        1 => wide(e),
        _ => Expr::binary(Op::Mul, Expr::int(number), wide(e)),
    })
}

/// `e = p*t + r`, in 64 bits: parts of a sum of 32 bits may leave it.
pub(super) fn linear(e: &Expr, t: &Name) -> Option<(Sum, Sum)> {
    if let Expr::Int(value, _) = e {
        return Some((Sum::default(), Sum::of_number(*value)));
    }
    if let Expr::Binary(Op::Add, a, b) = e {
        let ((p, r), (q, s)) = (linear(a, t)?, linear(b, t)?);
        return Some((p.plus(q)?, r.plus(s)?));
    }
    if !mentions(e, t) {
        return Some((Sum::default(), Sum { terms: vec![wide(e)], constant: 0 }));
    }
    if let Expr::Load(place) = e {
        return place.offset.is_none().then(|| (Sum::of_number(1), Sum::default()));
    }
    if let Expr::Cast(ScalarType::I64, inner) = e {
        return linear(inner, t);
    }
    let Expr::Binary(Op::Mul, a, b) = e else { return None };
    let (of, factor) = if mentions(b, t) { (b, a) } else { (a, b) };
    let (p, r) = linear(of, t).filter(|_| !mentions(factor, t))?;
    Some((p.times(factor)?, r.times(factor)?))
}

pub(super) fn mentions(e: &Expr, name: &Name) -> bool {
    let mut found = false;
    e.for_each(&mut |e| found |= matches!(e, Expr::Load(place) if place.name == *name));
    found
}

fn wide(e: &Expr) -> Expr {
    if is_wide(e) { e.clone() } else { Expr::Cast(ScalarType::I64, Box::new(e.clone())) }
}

/// Whether an expression is known to have 64 bits.
pub(super) fn is_wide(e: &Expr) -> bool {
    if let Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, a, b) = e {
        return is_wide(a) || is_wide(b);
    }
    matches!(e, Expr::Cast(ScalarType::I64, _) | Expr::Int(_, ScalarType::I64))
}

/// Whether an offset is made of variables that a loop does not change, except for its own.
pub(super) fn is_fixed(offset: &Expr, changing: &BTreeSet<Name>) -> bool {
    let mut fixed = true;
    offset.for_each(&mut |e| {
        if let Expr::Load(place) = e {
            fixed &= place.offset.is_none() && !changing.contains(&place.name);
        }
    });
    fixed
}
