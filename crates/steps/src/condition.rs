//! Sets of loops and parameters as conditions of instructions.

use kingpost_ir::{Affine, BinaryOp, Constraint, Domain, Expr, GuardedRange};

/// A set of loops and parameters as a truth value; `None` for everything.
pub fn condition(domain: &Domain) -> Option<Expr> {
    if domain.disjuncts().is_empty() {
        return Some(Expr::binary(BinaryOp::Lt, Expr::Int(0), Expr::Int(0)));
    }
    let all = |d: &Vec<Constraint>| d.iter().map(holds).reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
    let disjuncts: Option<Vec<_>> = domain.disjuncts().iter().map(all).collect();
    disjuncts?.into_iter().reduce(|a, b| Expr::binary(BinaryOp::Or, a, b))
}

/// Whether a range has a value: first its guard, without which its bounds may mean nothing.
pub fn range_runs(range: &GuardedRange) -> Expr {
    let some = Expr::binary(BinaryOp::Lt, Expr::from_affine(&range.lo), Expr::from_affine(&range.hi));
    let mut guard = range.guard.iter().map(holds);
    let and = |a, b| Expr::binary(BinaryOp::And, a, b);
    match guard.next() {
        None => some,
        Some(first) => and(guard.fold(first, and), some),
    }
}

/// The condition of an instruction where a range has a value; the range first, as the rest may be
/// defined inside its loop only.
pub fn where_runs(range: &GuardedRange, condition: Option<Expr>) -> Expr {
    let runs = range_runs(range);
    match condition {
        None => runs,
        Some(rest) => Expr::binary(BinaryOp::And, runs, rest),
    }
}

/// The condition of an instruction under another one, which is decided first.
pub fn also(predicate: Option<Expr>, condition: Option<Expr>) -> Option<Expr> {
    match (predicate, condition) {
        (Some(a), Some(b)) => Some(Expr::binary(BinaryOp::And, b, a)),
        (a, b) => a.or(b),
    }
}

/// A constraint as a comparison, with what it subtracts on the left.
fn holds(c: &Constraint) -> Expr {
    let op = match c {
        Constraint::Zero(_) => BinaryOp::Eq,
        Constraint::NonNegative(_) => BinaryOp::Le,
    };
    let constant = c.expr().constant_term();
    let (mut left, mut right) = (Affine::constant((-constant).max(0)), Affine::constant(constant.max(0)));
    for (atom, factor) in c.expr().terms() {
        let side = if *factor < 0 { &mut left } else { &mut right };
        *side = side.plus(&Affine::from(atom).times(factor.abs()));
    }
    Expr::binary(op, Expr::from_affine(&left), Expr::from_affine(&right))
}
