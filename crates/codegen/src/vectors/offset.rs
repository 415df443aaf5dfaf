//! Offsets of lanes: how they differ, what they are multiples of, and how they are written for one
//! lane.

use super::symbols::Symbols;
use crate::ast::{Block, Coding, Declare, Expr, IntFn, Name, Op, Stmt};
use kingpost_ir::ScalarType;
use kingpost_ir::multiples::{of_constant, of_product, of_quotient, of_sum};
use std::collections::BTreeMap;

/// Type of a number; none for what is not known.
pub(crate) fn type_of(e: &Expr, of: &dyn Fn(&Name) -> Option<ScalarType>) -> Option<ScalarType> {
    let widest = |a, b| Some(widest(type_of(a, of)?, type_of(b, of)?));
    match e {
        Expr::Int(_, ty) | Expr::Real(_, ty) | Expr::Call(_, ty, _) => Some(*ty),
        Expr::IntCall(_, ty, ..)
        | Expr::LanesCall(_, ty, ..)
        | Expr::Cast(ty, _)
        | Expr::Vector { ty, .. } => Some(*ty),
        Expr::Load(place) => of(&place.name).map(ScalarType::loaded),
        Expr::Hardware { .. } => Some(ScalarType::I32),
        Expr::Complex(op, ty, _) => op.value(*ty),
        Expr::Pair(op, _) => op.value(),
        Expr::Neg(a) => type_of(a, of),
        Expr::Select(_, a, b)
        | Expr::Binary(
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::BitAnd | Op::BitOr | Op::BitXor,
            a,
            b,
        ) => widest(a, b),
        Expr::Binary(Op::Shl | Op::Shr, a, _) => type_of(a, of),
        Expr::Binary(Op::Lt | Op::Le | Op::Eq | Op::Ne | Op::And | Op::Or, ..) => None,
        Expr::Half(Coding::Decode, ..) => Some(ScalarType::F32),
        Expr::Bool(_) | Expr::Not(_) | Expr::Half(Coding::Encode, ..) => None,
    }
}

/// The type that C gives to an operation on both.
fn widest(a: ScalarType, b: ScalarType) -> ScalarType {
    let rank = |ty| match ty {
        ScalarType::Bool
        | ScalarType::I8
        | ScalarType::U8
        | ScalarType::I16
        | ScalarType::U16
        | ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::Record(_)
        | ScalarType::I32 => 0,
        ScalarType::U32 => 1,
        ScalarType::I64 => 2,
        ScalarType::U64 => 3,
        ScalarType::F32 => 4,
        ScalarType::F64 => 5,
        ScalarType::C64 => 6,
        ScalarType::C128 => 7,
    };
    if rank(a) >= rank(b) { a } else { b }
}

fn is_integer(e: &Expr, symbols: &Symbols) -> bool {
    type_of(e, &|name| symbols.get(name).map(|(ty, _)| *ty)).is_some_and(|ty| ty.is_exact())
}

/// Whether an expression reads one of the wanted variables.
pub(super) fn reads(e: &Expr, wanted: &dyn Fn(&Name) -> bool) -> bool {
    let mut found = false;
    e.for_each(&mut |e| found |= matches!(e, Expr::Load(place) if wanted(&place.name)));
    found
}

pub(super) fn mentions(e: &Expr, name: &Name) -> bool {
    reads(e, &|read| read == name)
}

/// How much an integer grows from one value of a loop variable to the next, if by the same
/// everywhere; everything else in it is taken to stay.
pub(super) fn slope(e: &Expr, index: &Name, symbols: &Symbols) -> Option<i64> {
    if !is_integer(e, symbols) {
        return None;
    }
    if !mentions(e, index) {
        return Some(0);
    }
    let of = |e: &Expr| slope(e, index, symbols);
    match e {
        Expr::Load(place) => (place.name == *index).then_some(1),
        Expr::Neg(a) => of(a)?.checked_neg(),
        Expr::Cast(_, a) => of(a),
        Expr::Binary(Op::Add, a, b) => of(a)?.checked_add(of(b)?),
        Expr::Binary(Op::Sub, a, b) => of(a)?.checked_sub(of(b)?),
        Expr::Binary(Op::Mul, a, b) => match (&**a, &**b) {
            (Expr::Int(c, _), x) | (x, Expr::Int(c, _)) => of(x)?.checked_mul(*c),
            _ => None,
        },
        Expr::Int(..) | Expr::Real(..) | Expr::Bool(_) | Expr::Hardware { .. } | Expr::Not(_) => None,
        Expr::Binary(..)
        | Expr::Call(..)
        | Expr::IntCall(..)
        | Expr::LanesCall(..)
        | Expr::Half(..)
        | Expr::Complex(..)
        | Expr::Pair(..)
        | Expr::Select(..)
        | Expr::Vector { .. } => None,
    }
}

/// Powers of two of which integer variables are multiples, by name; those that are not there are of 1.
pub(super) type Known = BTreeMap<Name, u64>;

/// A power of two of which an integer is a multiple, where `index` is one of `step` and other
/// variables are of what is known of them.
pub(super) fn factor(e: &Expr, index: &Name, step: u64, known: &Known, symbols: &Symbols) -> u64 {
    if !is_integer(e, symbols) {
        return 1;
    }
    let of = |e: &Expr| factor(e, index, step, known, symbols);
    match e {
        Expr::Int(c, _) => of_constant(*c),
        Expr::Load(place) if place.name == *index => step,
        Expr::Load(place) if place.offset.is_none() => known.get(&place.name).copied().unwrap_or(1),
        Expr::Neg(a) | Expr::Cast(_, a) => of(a),
        Expr::Binary(Op::Add | Op::Sub | Op::Rem, a, b) | Expr::Select(_, a, b) => of_sum(of(a), of(b)),
        Expr::IntCall(IntFn::Mod | IntFn::Min | IntFn::Max, _, a, b) => of_sum(of(a), of(b)),
        Expr::Binary(Op::Mul, a, b) => of_product(of(a), of(b)),
        Expr::Binary(Op::Div, a, b) | Expr::IntCall(IntFn::FloorDiv, _, a, b) => {
            if let Expr::Int(d, _) = **b { of_quotient(of(a), d) } else { 1 }
        }
        Expr::Load(_) | Expr::Real(..) | Expr::Bool(_) | Expr::Hardware { .. } | Expr::Not(_) => 1,
        Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Complex(..)
        | Expr::Pair(..)
        | Expr::LanesCall(..)
        | Expr::Half(..)
        | Expr::Vector { .. } => 1,
    }
}

/// Adds what constants and loops of a block tell to what is known of parameters. A name that stands
/// there twice is a multiple of what both are.
pub(super) fn learn(block: &Block, known: &mut Known, symbols: &Symbols) {
    let note = |name: &Name, found: u64, known: &mut Known| {
        let least = known.entry(name.clone()).or_insert(found);
        *least = found.min(*least);
    };
    for stmt in block {
        match stmt {
            Stmt::Declare(Declare { name, constant: true, len: None, value: Some(value), .. }) => {
                // no variable has the name of the constant before it is declared
                let found = factor(value, name, 1, known, symbols);
                note(name, found, known);
            }
            Stmt::For(f) => {
                let start = factor(&f.lower, &f.name, 1, known, symbols);
                note(&f.name, of_sum(start, of_constant(f.step)), known);
            }
            Stmt::Declare(d) => note(&d.name, 1, known),
            Stmt::Comment(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::If { .. }
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => {}
        }
        if let Some(body) = stmt.body() {
            learn(body, known, symbols);
        }
    }
}

/// A sum in which the loop variable has become `index + c` or a number, its small literals joined
/// at its end. Other partial sums stay what they were for the first lane, so that none leaves its
/// type.
pub(super) fn joined(e: Expr, index: &Name) -> Expr {
    let mut sum = Sum::default();
    sum.add_all(e, index);
    sum.into_expr()
}

#[derive(Default)]
struct Sum {
    /// Each with whether it is subtracted.
    terms: Vec<(bool, Expr)>,
    constant: i64,
}

impl Sum {
    fn add_all(&mut self, e: Expr, index: &Name) {
        match e {
            Expr::Binary(Op::Add, a, b) => {
                self.add_all(*a, index);
                match *b {
                    Expr::Binary(Op::Add, first, c) if *first == Expr::var(index) => {
                        self.add(false, *first);
                        self.add(false, *c);
                    }
                    b @ (Expr::Int(..)
                    | Expr::Real(..)
                    | Expr::Bool(_)
                    | Expr::Load(_)
                    | Expr::Hardware { .. }
                    | Expr::Neg(_)
                    | Expr::Not(_)
                    | Expr::Binary(..)
                    | Expr::Call(..)
                    | Expr::IntCall(..)
                    | Expr::LanesCall(..)
                    | Expr::Half(..)
                    | Expr::Complex(..)
                    | Expr::Pair(..)
                    | Expr::Cast(..)
                    | Expr::Select(..)
                    | Expr::Vector { .. }) => self.add(false, b),
                }
            }
            Expr::Binary(Op::Sub, a, b) => {
                self.add_all(*a, index);
                self.add(true, *b);
            }
            Expr::Neg(a) => self.add(true, *a),
            other @ (Expr::Int(..)
            | Expr::Real(..)
            | Expr::Bool(_)
            | Expr::Load(_)
            | Expr::Hardware { .. }
            | Expr::Not(_)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::IntCall(..)
            | Expr::LanesCall(..)
            | Expr::Half(..)
            | Expr::Complex(..)
            | Expr::Pair(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Vector { .. }) => self.add(false, other),
        }
    }

    fn add(&mut self, minus: bool, term: Expr) {
        let integer = |e: &Expr| if let Expr::Int(c, ScalarType::I32) = e { Some(*c) } else { None };
        let literal = if let Expr::Binary(Op::Mul, a, b) = &term {
            integer(a).zip(integer(b)).and_then(|(a, b)| a.checked_mul(b))
        } else {
            integer(&term)
        };
        match literal {
            Some(c) => self.constant = self.constant.saturating_add(if minus { -c } else { c }),
            None => self.terms.push((minus, term)),
        }
    }

    fn into_expr(mut self) -> Expr {
        let alone = self.terms.len() == 1;
        let mut sum: Option<Expr> = None;
        for (minus, term) in self.terms {
            sum = Some(match (sum, minus) {
                (None, false) => term,
                // `7 - i` rather than `-i + 7`
                (None, true) if alone && self.constant > 0 => {
                    Expr::binary(Op::Sub, Expr::int(std::mem::take(&mut self.constant)), term)
                }
                (None, true) => Expr::Neg(Box::new(term)),
                (Some(sum), false) => Expr::binary(Op::Add, sum, term),
                (Some(sum), true) => Expr::binary(Op::Sub, sum, term),
            });
        }
        match (sum, self.constant) {
            (None, c) => Expr::int(c),
            (Some(sum), 0) => sum,
            (Some(sum), c) if c < 0 => Expr::binary(Op::Sub, sum, Expr::int(c.saturating_neg())),
            (Some(sum), c) => Expr::binary(Op::Add, sum, Expr::int(c)),
        }
    }
}
