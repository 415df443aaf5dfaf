//! Expressions: scalars, array accesses, calls, casts, conditionals, reductions.
//!
//! Integer expressions have the meaning of unbounded integers; a code generator picks a width that
//! holds them. Words (`u32`, `u64`) are integers modulo a power of two. `/` is real division and needs
//! a floating-point operand; integers divide with `floor_div` and `mod`, which round towards minus
//! infinity, or with `trunc_div` and `trunc_rem`, which round towards zero.

use crate::affine::{Affine, Atom, MAX_TERMS};
use crate::constant::Real;
use crate::ids::{InameId, RuleId, VarId};
use crate::types::ScalarType;
use serde::{Deserialize, Serialize};

pub use crate::functions::MathFn;
pub use crate::operators::{BinaryOp, UnaryOp};
pub use crate::update_op::UpdateOp;

/// An element of a variable; the index of a scalar is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access {
    /// The variable.
    pub var: VarId,
    /// One integer expression an axis.
    pub index: Vec<Expr>,
}

impl Access {
    /// An element of an array.
    pub fn new(var: VarId, index: impl IntoIterator<Item = Expr>) -> Self {
        Self { var, index: index.into_iter().collect() }
    }

    /// A scalar.
    pub fn scalar(var: VarId) -> Self {
        Self { var, index: Vec::new() }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expr {
    /// An integer literal; takes the floating-point type of the other operand where there is one.
    Int(i64),
    /// A floating-point literal; takes the type of the other operand, `f64` by default.
    Real(Real),
    /// The value of a loop variable.
    Iname(InameId),
    /// The value of a variable's element.
    Load(Access),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr>),
    /// A binary operation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A function of the C99 mathematics library, or one that the kernel declares.
    Call(MathFn, Vec<Expr>),
    /// Conversion to a type; from real to integer rounds towards zero as in C.
    Cast(ScalarType, Box<Expr>),
    /// `if condition then a else b`; only the chosen one is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A reduction over loops of its own.
    Reduce(Reduction),
    /// A use of a substitution rule.
    Rule(RuleId, Vec<Expr>),
    /// The k-th parameter, inside the body of a substitution rule only.
    RuleParam(u32),
}

/// `op` over all points of the inames, in lexicographic order, from its value over nothing: 0 of a
/// sum, 1 of a product, infinity or the end of an integer type of an extremum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reduction {
    /// The operator.
    pub op: UpdateOp,
    /// Outer to inner; their domains are in the kernel's table.
    pub inames: Vec<InameId>,
    /// What is reduced.
    pub body: Box<Expr>,
}

impl Expr {
    /// A binary operation.
    pub fn binary(op: BinaryOp, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::Binary(op, Box::new(a.into()), Box::new(b.into()))
    }

    /// A truth value as a literal: a comparison of two literals.
    pub fn truth(value: bool) -> Self {
        Self::binary(if value { BinaryOp::Eq } else { BinaryOp::Ne }, 0, 0)
    }

    /// The truth value, if it is a literal.
    pub fn as_truth(&self) -> Option<bool> {
        [true, false].into_iter().find(|value| *self == Self::truth(*value))
    }

    /// The value of a scalar.
    pub fn scalar(var: VarId) -> Self {
        Self::Load(Access::scalar(var))
    }

    /// The value of an array's element.
    pub fn load(var: VarId, index: impl IntoIterator<Item = Expr>) -> Self {
        Self::Load(Access::new(var, index))
    }

    /// A call of a mathematical function.
    pub fn call(function: MathFn, args: impl IntoIterator<Item = Expr>) -> Self {
        Self::Call(function, args.into_iter().collect())
    }

    /// `op` of `body` over all points of `inames`.
    pub fn reduce(op: UpdateOp, inames: impl IntoIterator<Item = InameId>, body: Expr) -> Self {
        Self::Reduce(Reduction { op, inames: inames.into_iter().collect(), body: Box::new(body) })
    }

    /// Direct operands, left to right; those of an access are its index expressions.
    pub fn operands(&self) -> Operands<'_> {
        let (boxed, listed): ([Option<&Expr>; 3], &[Expr]) = match self {
            Self::Int(_) | Self::Real(_) | Self::Iname(_) | Self::RuleParam(_) => ([None; 3], &[]),
            Self::Load(access) => ([None; 3], &access.index),
            Self::Unary(_, a) | Self::Cast(_, a) => ([Some(a), None, None], &[]),
            Self::Binary(_, a, b) => ([Some(a), Some(b), None], &[]),
            Self::Call(_, args) | Self::Rule(_, args) => ([None; 3], args),
            Self::Select(c, a, b) => ([Some(c), Some(a), Some(b)], &[]),
            Self::Reduce(r) => ([Some(&r.body), None, None], &[]),
        };
        Operands { boxed, listed: listed.iter() }
    }

    /// The conditions that a condition joins by `and`, in the order in which they are evaluated.
    pub fn conjuncts(&self) -> Vec<&Self> {
        let Self::Binary(BinaryOp::And, a, b) = self else { return vec![self] };
        [a.conjuncts(), b.conjuncts()].concat()
    }

    /// The factors of a product from left to right, without signs; a divisor is none. An expression that
    /// is no product is its only factor.
    pub fn factors(&self) -> Vec<&Self> {
        if let Self::Binary(BinaryOp::Mul, a, b) = self {
            return [a.factors(), b.factors()].concat();
        }
        let (Self::Binary(BinaryOp::Div, a, _) | Self::Unary(UnaryOp::Neg, a)) = self else {
            return vec![self];
        };
        a.factors()
    }

    /// The loads among the [factors](Self::factors).
    pub fn loaded_factors(&self) -> impl Iterator<Item = &Access> {
        self.factors().into_iter().filter_map(Self::as_load)
    }

    /// Calls `visit` with this expression and every expression inside it, outer before inner.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Self::Int(_) | Self::Real(_) | Self::Iname(_) | Self::RuleParam(_) => {}
            Self::Load(Access { index: all, .. }) | Self::Call(_, all) | Self::Rule(_, all) => {
                for operand in all {
                    operand.for_each(visit);
                }
            }
            Self::Unary(_, a) | Self::Cast(_, a) => a.for_each(visit),
            Self::Binary(_, a, b) => {
                a.for_each(visit);
                b.for_each(visit);
            }
            Self::Select(c, a, b) => {
                c.for_each(visit);
                a.for_each(visit);
                b.for_each(visit);
            }
            Self::Reduce(r) => r.body.for_each(visit),
        }
    }

    /// Whether this expression or one inside it is what is looked for.
    pub fn any(&self, is: &mut dyn FnMut(&Expr) -> bool) -> bool {
        is(self) || self.operands().any(|e| e.any(is))
    }

    /// Whether an iname occurs in it.
    pub fn mentions(&self, iname: InameId) -> bool {
        self.any(&mut |e| *e == Self::Iname(iname))
    }

    /// Whether a variable is loaded in it.
    pub fn loads(&self, var: VarId) -> bool {
        self.any(&mut |e| matches!(e, Self::Load(access) if access.var == var))
    }

    /// The access, if it is a load.
    pub fn as_load(&self) -> Option<&Access> {
        if let Self::Load(access) = self { Some(access) } else { None }
    }

    /// Passes every node through `rewrite`, from inside out.
    #[must_use]
    pub fn map(&self, rewrite: &mut dyn FnMut(Expr) -> Expr) -> Self {
        let mut mapped = self.clone();
        mapped.rewrite(rewrite);
        mapped
    }

    /// Passes every node through `rewrite`, from inside out, in place.
    pub(crate) fn rewrite(&mut self, rewrite: &mut dyn FnMut(Expr) -> Expr) {
        match self {
            Self::Int(_) | Self::Real(_) | Self::Iname(_) | Self::RuleParam(_) => {}
            Self::Load(Access { index: all, .. }) | Self::Call(_, all) | Self::Rule(_, all) => {
                for operand in all {
                    operand.rewrite(rewrite);
                }
            }
            Self::Unary(_, a) | Self::Cast(_, a) => a.rewrite(rewrite),
            Self::Binary(_, a, b) => {
                a.rewrite(rewrite);
                b.rewrite(rewrite);
            }
            Self::Select(c, a, b) => {
                c.rewrite(rewrite);
                a.rewrite(rewrite);
                b.rewrite(rewrite);
            }
            Self::Reduce(r) => r.body.rewrite(rewrite),
        }
        let node = std::mem::replace(self, Self::Int(0));
        *self = rewrite(node);
    }

    /// The quasi-affine value of an integer expression of inames and integer scalars, if it is one.
    ///
    /// Loads of scalars are taken as symbols: whether they are exact integers and do not change is for
    /// the caller to know. Words are not: `w + 1` of the largest one is 0. What has a coefficient beyond
    /// [`MAX_COEFFICIENT`](crate::affine::MAX_COEFFICIENT), which may have saturated, or more than
    /// [`MAX_TERMS`] terms counts as no affine value.
    pub fn as_affine(&self) -> Option<Affine> {
        let value = match self {
            Self::Int(c) => Some(Affine::constant(*c)),
            Self::Iname(i) => return Some(Affine::iname(*i)),
            Self::Load(access) if access.index.is_empty() => return Some(Affine::var(access.var)),
            Self::Unary(UnaryOp::Neg, a) => Some(a.as_affine()?.times(-1)),
            Self::Unary(UnaryOp::BitNot, a) => Some(a.as_affine()?.times(-1).plus_constant(-1)),
            Self::Binary(op, a, b) => affine_of_binary(*op, &a.as_affine()?, &b.as_affine()?),
            Self::Real(_)
            | Self::Load(_)
            | Self::Unary(..)
            | Self::Call(..)
            | Self::Cast(..)
            | Self::Select(..)
            | Self::Reduce(_)
            | Self::Rule(..)
            | Self::RuleParam(_) => None,
        };
        value.filter(|e| e.in_bounds() && e.size() <= MAX_TERMS)
    }

    /// The expression of a quasi-affine value, terms in canonical order, constant last.
    pub fn from_affine(affine: &Affine) -> Self {
        let mut sum: Option<Self> = None;
        for (atom, c) in affine.terms() {
            let value = match atom {
                Atom::Iname(i) => Self::Iname(*i),
                Atom::Var(v) => Self::scalar(*v),
                Atom::Floor(n, d) => Self::binary(BinaryOp::FloorDiv, Self::from_affine(n), Self::Int(*d)),
            };
            sum = Some(add_scaled(sum, *c, value));
        }
        let c = affine.constant_term();
        match sum {
            None => Self::Int(c),
            Some(sum) if c == 0 => sum,
            Some(sum) if c < 0 => sum - Self::Int(c.saturating_neg()),
            Some(sum) => sum + Self::Int(c),
        }
    }
}

/// The direct operands of an expression: see [`Expr::operands`].
#[derive(Clone, Debug)]
pub struct Operands<'e> {
    /// Those that have a box each; what was taken is gone.
    boxed: [Option<&'e Expr>; 3],
    /// Those that stand in a list.
    listed: std::slice::Iter<'e, Expr>,
}

impl<'e> Iterator for Operands<'e> {
    type Item = &'e Expr;

    fn next(&mut self) -> Option<&'e Expr> {
        let boxed = self.boxed.iter_mut().find_map(Option::take);
        boxed.or_else(|| self.listed.next())
    }
}

impl DoubleEndedIterator for Operands<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let listed = self.listed.next_back();
        listed.or_else(|| self.boxed.iter_mut().rev().find_map(Option::take))
    }
}

fn add_scaled(sum: Option<Expr>, c: i64, value: Expr) -> Expr {
    let magnitude = c.saturating_abs();
    let term = if magnitude == 1 { value } else { Expr::Int(magnitude) * value };
    match (sum, c < 0) {
        (None, false) => term,
        (None, true) => -term,
        (Some(sum), false) => sum + term,
        (Some(sum), true) => sum - term,
    }
}

fn affine_of_binary(op: BinaryOp, a: &Affine, b: &Affine) -> Option<Affine> {
    match op {
        BinaryOp::Add => Some(a.plus(b)),
        BinaryOp::Sub => Some(a.minus(b)),
        BinaryOp::Mul => match (a.as_constant(), b.as_constant()) {
            (Some(c), _) => Some(b.times(c)),
            (_, Some(c)) => Some(a.times(c)),
            _ => None,
        },
        BinaryOp::FloorDiv => b.as_constant().filter(|d| *d > 0).map(|d| a.floor_div(d)),
        BinaryOp::Mod => b.as_constant().filter(|d| *d > 0).map(|d| a.modulo(d)),
        BinaryOp::Shl => power_of_two(b).map(|factor| a.times(factor)),
        BinaryOp::Shr => power_of_two(b).map(|divisor| a.floor_div(divisor)),
        BinaryOp::Div
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

/// By what a shift multiplies or divides, where that is known.
fn power_of_two(by: &Affine) -> Option<i64> {
    by.as_constant().filter(|k| (0..62).contains(k)).map(|k| 1 << k)
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<f64> for Expr {
    fn from(value: f64) -> Self {
        Self::Real(Real(value))
    }
}
impl From<InameId> for Expr {
    fn from(iname: InameId) -> Self {
        Self::Iname(iname)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident) => {
        impl<T: Into<Expr>> std::ops::$trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::binary(BinaryOp::$op, self, other)
            }
        }
    };
}
operator!(Add, add, Add);
operator!(Sub, sub, Sub);
operator!(Mul, mul, Mul);
operator!(Div, div, Div);

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Expr::Unary(UnaryOp::Neg, Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    /// A remainder holds its operand twice: 60 levels would be 2^60 terms.
    #[test]
    fn nested_remainders_stop_being_affine() {
        let mut e = Expr::Iname(InameId::from_index(0));
        let mut affine = 0;
        for k in 0..60 {
            e = Expr::binary(BinaryOp::Mod, e, Expr::Int(1000 - k));
            affine += u32::from(e.as_affine().is_some());
        }
        assert!((3..12).contains(&affine), "{affine}");
    }

    #[test]
    fn saturated_coefficients_are_not_affine() {
        let i = || Expr::Iname(InameId::from_index(0));
        let product = |a: i64, b: i64| Expr::Int(a) * (Expr::Int(b) * i());
        assert!(product(1 << 20, 1 << 20).as_affine().is_some());
        assert_eq!(product(1 << 40, 1 << 40).as_affine(), None);
        assert_eq!((product(1 << 40, 1 << 40) - product(1 << 40, 1 << 40)).as_affine(), None);
    }
}
