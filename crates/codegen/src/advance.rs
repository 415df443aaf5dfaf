//! Addresses of asynchronous copies move with the loop, instead of being multiplied out in each iteration.
//!
//! Copies of later iterations leave the instructions of a loop to what computes. An offset with a product
//! of 64 bits, which the rows of an array of any size take, costs several instructions a copy: in a
//! matrix product of 4096 rows on an H200, ratios to cuBLAS were 0.94 with and 0.96 without (2026-11-29).
//!
//! Formula: an offset is `p*t + r + c`, where `t` is the variable of the loop, `p` and `r` have one value
//! in all of its iterations and `c` is a number. Where `p` is a number, `r` is computed before the loop. Else a
//! variable begins with `p*lower + r`, every iteration adds `p*step`, and the copy is at the variable plus `c`.
//!
//! Registers: a loop of which more than [`LIMIT`] variables would come stays as it is.

use crate::ast::{Block, CodePiece, Declare, Expr, For, LoopKind, Name, Op, Place, Stmt};
use crate::hoist::changes;
use crate::names::Names;
use kingpost_ir::{ScalarType, UpdateOp};
use std::collections::BTreeSet;

/// Maximum number of variables of a loop.
const LIMIT: usize = 8;

/// Lets the addresses of asynchronous copies move with the loops that they stand in.
pub(crate) fn advance(block: &mut Block, names: &mut Names) {
    for mut stmt in std::mem::take(block) {
        if let Some(body) = stmt.body_mut() {
            advance(body, names);
        }
        if let Stmt::For(f) = &mut stmt
            && f.kind == LoopKind::Sequential
        {
            block.extend(of_loop(f, names));
        }
        block.push(stmt);
    }
}

/// What takes the place of offsets in a loop.
struct Moving {
    name: Name,
    per: Sum,
    rest: Sum,
    /// The value in the first iteration, and what each adds, if anything.
    first: Expr,
    step: Option<Expr>,
}

/// Moves the addresses in a loop; returns the declarations before it.
fn of_loop(f: &mut For, names: &mut Names) -> Block {
    let mut changing = BTreeSet::new();
    f.body.iter().for_each(|s| changes(s, &mut changing));
    let mut found: Vec<(Sum, Sum)> = Vec::new();
    each_offset(&mut f.body, &mut |offset| {
        if let Some((per, rest, _)) = moves(offset, &f.name, &changing)
            && !found.contains(&(per.clone(), rest.clone()))
        {
            found.push((per, rest));
        }
    });
    if found.len() > LIMIT {
        return Block::new();
    }
    let named = |(per, rest): (Sum, Sum)| {
        let moves = !per.terms.is_empty();
        let first = if moves { per.times(&f.lower)?.plus(rest.clone())? } else { rest.clone() }.expr();
        let step = if moves { Some(per.times(&Expr::int(f.step))?.expr()) } else { None };
        Some(Moving { name: names.fresh(&format!("{}_at", f.name)), per, rest, first, step })
    };
    let moving: Vec<Moving> = found.into_iter().filter_map(named).collect();
    each_offset(&mut f.body, &mut |offset| {
        let Some((per, rest, constant)) = moves(offset, &f.name, &changing) else { return };
        if let Some(m) = moving.iter().find(|m| m.per == per && m.rest == rest) {
            let per = per.times(&Expr::var(&f.name)).filter(|_| m.step.is_none());
            let terms = [Expr::var(&m.name)].into_iter().chain(per.into_iter().flat_map(|per| per.terms));
            *offset = Sum { terms: terms.collect(), constant }.expr();
        }
    });
    let mut before = Block::new();
    for Moving { name, first, step, .. } in moving {
        let constant = step.is_none();
        let declared = Declare { constant, ..Declare::scalar(name.clone(), ScalarType::I64, Some(first)) };
        before.push(Stmt::Declare(declared));
        let moved =
            |value| Stmt::Assign { place: Place::scalar(name), op: Some(UpdateOp::Add), value, origin: None };
        f.body.extend(step.map(moved));
    }
    before
}

/// Visits the offsets of addresses of asynchronous copies in a block, but those in other loops.
fn each_offset(block: &mut Block, visit: &mut dyn FnMut(&mut Expr)) {
    for stmt in block {
        match stmt {
            Stmt::Intrinsic(call) if call.asynchronous => {
                for piece in &mut call.pieces {
                    if let CodePiece::Address(Expr::Load(Place { offset: Some(offset), .. })) = piece {
                        visit(offset);
                    }
                }
            }
            Stmt::If { body, .. } => each_offset(body, visit),
            Stmt::Comment(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::For(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => {}
        }
    }
}

/// An offset that is worth it as what a step of a loop adds, what stays, and a number.
fn moves(offset: &Expr, l: &Name, changing: &BTreeSet<Name>) -> Option<(Sum, Sum, i64)> {
    let (mut product, mut fixed) = (false, true);
    offset.for_each(&mut |e| {
        if let Expr::Binary(Op::Mul, a, b) = e {
            let literal = |e: &Expr| matches!(e, Expr::Int(..));
            product |= is_wide(e) && !literal(a) && !literal(b);
        }
        if let Expr::Load(place) = e {
            fixed &= place.offset.is_none() && !changing.contains(&place.name);
        }
    });
    if !(product && fixed && mentions(offset, l)) {
        return None;
    }
    let (per, mut rest) = linear(offset, l)?;
    let constant = std::mem::take(&mut rest.constant);
    Some((per, rest, constant))
}

/// A sum of 64 bits.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sum {
    terms: Vec<Expr>,
    constant: i64,
}

impl Sum {
    fn of_number(constant: i64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    fn plus(mut self, other: Self) -> Option<Self> {
        self.terms.extend(other.terms);
        self.constant = self.constant.checked_add(other.constant)?;
        Some(self)
    }

    fn times(&self, factor: &Expr) -> Option<Self> {
        let own = Some(Expr::int(self.constant)).filter(|_| self.constant != 0);
        let all: Option<Vec<_>> = self.terms.iter().chain(&own).map(|term| product(term, factor)).collect();
        let (numbers, terms): (Vec<_>, Vec<_>) = all?.into_iter().partition(|e| matches!(e, Expr::Int(..)));
        let number = |e: &Expr| if let Expr::Int(value, _) = e { *value } else { 0 };
        // a number is the product of the one that there was
        Some(Self { terms, constant: numbers.first().map_or(0, number) })
    }

    fn expr(self) -> Expr {
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
fn linear(e: &Expr, t: &Name) -> Option<(Sum, Sum)> {
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

fn mentions(e: &Expr, name: &Name) -> bool {
    let mut found = false;
    e.for_each(&mut |e| found |= matches!(e, Expr::Load(place) if place.name == *name));
    found
}

fn wide(e: &Expr) -> Expr {
    if is_wide(e) { e.clone() } else { Expr::Cast(ScalarType::I64, Box::new(e.clone())) }
}

/// Whether an expression is known to have 64 bits.
fn is_wide(e: &Expr) -> bool {
    if let Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, a, b) = e {
        return is_wide(a) || is_wide(b);
    }
    matches!(e, Expr::Cast(ScalarType::I64, _) | Expr::Int(_, ScalarType::I64))
}
