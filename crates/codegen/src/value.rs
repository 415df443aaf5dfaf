//! Values of lowered expressions: integers stay affine as long as they can.

use crate::ast::{Expr, IntFn, Op};
use crate::complex::ComplexOp;
use crate::env::Env;
use crate::factors::{Factor, factors};
use crate::interval::Interval;
use kingpost_ir::{Affine, Atom, Constraint, ScalarType};

/// The value of a lowered expression.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An integer that is affine in hardware indices, loop variables and integer scalars.
    Affine(Affine),
    /// Any other integer, of type `I32` or `I64`, with its range.
    Int(Expr, ScalarType, Interval),
    /// A word of type `U32` or `U64`.
    Word(Expr, ScalarType),
    /// A real of a type.
    Real(Expr, ScalarType),
    /// A complex number of type `C64` or `C128`.
    Complex(Expr, ScalarType),
    /// A truth value.
    Bool(Expr),
}

impl Value {
    /// The code of the value.
    pub(crate) fn into_expr(self, env: &Env<'_>) -> Expr {
        match self {
            Self::Affine(e) => integer(env, &e).0,
            Self::Int(e, _, _)
            | Self::Word(e, _)
            | Self::Real(e, _)
            | Self::Complex(e, _)
            | Self::Bool(e) => e,
        }
    }

    /// The code of the value as a word of exactly this type.
    pub(crate) fn into_word(self, env: &Env<'_>, ty: ScalarType) -> Expr {
        match self {
            Self::Affine(e) if e.as_constant().is_some() => {
                let c = e.constant_term();
                Expr::Int(if ty == ScalarType::U32 { (c as u32).into() } else { c }, ty)
            }
            Self::Word(e, from) if from == ty => e,
            other @ (Self::Affine(_)
            | Self::Int(..)
            | Self::Word(..)
            | Self::Real(..)
            | Self::Complex(..)
            | Self::Bool(_)) => Expr::Cast(ty, Box::new(other.into_expr(env))),
        }
    }

    /// The code of the value as a complex number of exactly this type.
    pub(crate) fn into_complex(self, env: &Env<'_>, ty: ScalarType) -> Expr {
        match self {
            Self::Complex(e, from) if from == ty => e,
            Self::Complex(e, _) => Expr::Complex(ComplexOp::Convert, ty, vec![e]),
            real @ (Self::Affine(_) | Self::Int(..) | Self::Word(..) | Self::Real(..) | Self::Bool(_)) => {
                let part = ty.part();
                Expr::Complex(ComplexOp::Make, ty, vec![real.into_real(env, part), Expr::Real(0.0, part)])
            }
        }
    }

    /// Whether the value is an integer.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Self::Affine(_) | Self::Int(..))
    }

    /// The code of the value as an operand of an operation of type `ty`: C converts the narrower
    /// real itself.
    pub(crate) fn into_operand(self, env: &Env<'_>, ty: ScalarType) -> Expr {
        match self {
            Self::Real(e, _) => e,
            other
            @ (Self::Affine(_) | Self::Int(..) | Self::Word(..) | Self::Complex(..) | Self::Bool(_)) => {
                other.into_real(env, ty)
            }
        }
    }

    /// The code of the value as a real of exactly this type.
    pub(crate) fn into_real(self, env: &Env<'_>, ty: ScalarType) -> Expr {
        match self {
            Self::Affine(e) if e.as_constant().is_some() => {
                let c = e.constant_term();
                // one rounding: by way of `f64` it would be two
                Expr::Real(if ty == ScalarType::F32 { f64::from(c as f32) } else { c as f64 }, ty)
            }
            Self::Real(e, from) if from == ty => e,
            other @ (Self::Affine(_)
            | Self::Int(..)
            | Self::Word(..)
            | Self::Real(..)
            | Self::Complex(..)
            | Self::Bool(_)) => Expr::Cast(ty, Box::new(other.into_expr(env))),
        }
    }

    /// Code, type and range of an integer.
    pub(crate) fn as_integer(&self, env: &Env<'_>) -> (Expr, ScalarType, Interval) {
        match self {
            Self::Affine(e) => integer(env, e),
            Self::Int(e, ty, range) => (e.clone(), *ty, *range),
            Self::Word(e, _) | Self::Real(e, _) | Self::Complex(e, _) | Self::Bool(e) => {
                (e.clone(), ScalarType::I64, Interval::ALL)
            }
        }
    }
}

fn width(range: Interval) -> ScalarType {
    if range.fits_i32() { ScalarType::I32 } else { ScalarType::I64 }
}

/// `e` in 64 bits.
pub(crate) fn widened(e: Expr, ty: ScalarType) -> Expr {
    match (e, ty) {
        (Expr::Int(v, _), _) => Expr::Int(v, ScalarType::I64),
        (e, ScalarType::I32) => Expr::Cast(ScalarType::I64, Box::new(e)),
        (e, _) => e,
    }
}

/// Code of an affine integer: positive terms first, larger factors before smaller ones, the
/// constant last. If a product or a partial sum may leave 32 bits, the operands are converted
/// before, so that nothing overflows in between.
pub(crate) fn integer(env: &Env<'_>, e: &Affine) -> (Expr, ScalarType, Interval) {
    integer_within(env, e, env.range(e))
}

/// The same for an integer whose range is known.
fn integer_within(env: &Env<'_>, e: &Affine, range: Interval) -> (Expr, ScalarType, Interval) {
    let (mut terms, constant) = factors(e);
    terms.sort_by_key(|(_, c)| (*c < 0, std::cmp::Reverse(c.saturating_abs())));
    let mut partial = Interval::point(0);
    let mut wide = !range.fits_i32();
    let mut fits = Interval::point(constant).is_finite();
    for (k, (factor, c)) in terms.iter().enumerate() {
        let product = env.factor_range(factor).times(*c);
        partial = partial.plus(product);
        // The last sum is the whole, of which facts may tell more than intervals do.
        let whole = k + 1 == terms.len() && constant == 0;
        wide |= !product.fits_i32() || !(partial.fits_i32() || whole && range.fits_i32());
        fits &= partial.is_finite() && product.is_finite();
    }
    // what stands for itself has a type that holds it
    let plain = matches!(terms.as_slice(), [(_, 1)]) && constant == 0;
    if !(fits && partial.plus(Interval::point(constant)).is_finite() || plain) {
        env.check_at_launch(&terms, constant);
    }
    let reversed = constant > 0 && terms.len() == 1 && terms[0].1 < 0;
    let mut sum: Option<Expr> = None;
    for (factor, c) in terms {
        let (value, ty) = code(env, &factor);
        let big = !env.factor_range(&factor).times(c).fits_i32() || (wide && sum.is_none());
        let value = if big { widened(value, ty) } else { value };
        sum = Some(add_term(sum, value, c));
    }
    let c = constant;
    let code = match sum {
        // `7 - i` rather than `-i + 7`
        Some(Expr::Neg(first)) if reversed => Expr::binary(Op::Sub, Expr::int(c), *first),
        None => Expr::int(c),
        Some(sum) if c == 0 => sum,
        Some(sum) if c < 0 => Expr::binary(Op::Sub, sum, Expr::int(c.saturating_neg())),
        Some(sum) => Expr::binary(Op::Add, sum, Expr::int(c)),
    };
    (code, if wide { ScalarType::I64 } else { ScalarType::I32 }, range)
}

fn add_term(sum: Option<Expr>, value: Expr, c: i64) -> Expr {
    let magnitude = c.saturating_abs();
    let term = if magnitude == 1 { value } else { Expr::binary(Op::Mul, Expr::int(magnitude), value) };
    match (sum, c < 0) {
        (None, false) => term,
        (None, true) => Expr::Neg(Box::new(term)),
        (Some(sum), false) => Expr::binary(Op::Add, sum, term),
        (Some(sum), true) => Expr::binary(Op::Sub, sum, term),
    }
}

/// Code and type of a factor.
fn code(env: &Env<'_>, factor: &Factor) -> (Expr, ScalarType) {
    let divided = |n: &Affine, d: i64, function| {
        let (n, d) = (Value::Affine(n.clone()), Value::Affine(Affine::constant(d)));
        let (code, ty, _) = divide(env, n, d, function);
        (code, ty)
    };
    match factor {
        Factor::Atom(Atom::Iname(i)) => (Expr::var(env.name(*i)), width(env.range_of(*i))),
        Factor::Atom(Atom::Var(v)) => {
            (Expr::var(&env.var_names[kingpost_ir::Id::index(*v)]), env.kernel.vars[*v].ty.loaded())
        }
        Factor::Atom(Atom::Floor(n, d)) => divided(n, *d, IntFn::FloorDiv),
        Factor::Remainder(n, d) => divided(n, *d, IntFn::Mod),
    }
}

/// `a + b`, `a - b` or `a * b` of integers, exact.
pub(crate) fn arithmetic(env: &Env<'_>, op: Op, a: Value, b: Value) -> Value {
    within(env, op, a, b, Interval::ALL)
}

/// The same of integers in 32 bits whose result the kernel promises to fit them.
pub(crate) fn held_arithmetic(env: &Env<'_>, op: Op, a: Value, b: Value) -> Value {
    within(env, op, a, b, Interval::I32)
}

/// The same where the result is known to be in `known`.
fn within(env: &Env<'_>, op: Op, a: Value, b: Value, known: Interval) -> Value {
    if let (Value::Affine(x), Value::Affine(y)) = (&a, &b) {
        let affine = match op {
            Op::Add => Some(x.plus(y)),
            Op::Sub => Some(x.minus(y)),
            Op::Mul => match (x.as_constant(), y.as_constant()) {
                (Some(c), _) => Some(y.times(c)),
                (_, Some(c)) => Some(x.times(c)),
                (None, None) => None,
            },
            Op::Div
            | Op::Rem
            | Op::Lt
            | Op::Le
            | Op::Eq
            | Op::Ne
            | Op::And
            | Op::Or
            | Op::BitAnd
            | Op::BitOr
            | Op::BitXor
            | Op::Shl
            | Op::Shr => None,
        };
        if let Some(affine) = affine.filter(Affine::in_bounds) {
            return Value::Affine(affine);
        }
    }
    let is = |v: &Value, c: i64| matches!(v, Value::Affine(e) if e.as_constant() == Some(c));
    if op == Op::Add && is(&a, 0) || op == Op::Mul && is(&a, 1) {
        return b;
    }
    if matches!(op, Op::Add | Op::Sub) && is(&b, 0) || op == Op::Mul && is(&b, 1) {
        return a;
    }
    let constant = |v: &Value| matches!(v, Value::Affine(e) if e.as_constant().is_some());
    // `3*dof[i]` rather than `dof[i]*3`
    let (a, b) = if op == Op::Mul && constant(&b) { (b, a) } else { (a, b) };
    let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(env), b.as_integer(env));
    let range = match op {
        Op::Add => ra.plus(rb),
        Op::Sub => ra.plus(rb.times(-1)),
        Op::Mul
        | Op::Div
        | Op::Rem
        | Op::Lt
        | Op::Le
        | Op::Eq
        | Op::Ne
        | Op::And
        | Op::Or
        | Op::BitAnd
        | Op::BitOr
        | Op::BitXor
        | Op::Shl
        | Op::Shr => ra.product(rb),
    };
    let range = range.meet(known);
    let wide = !range.fits_i32() || ta == ScalarType::I64 || tb == ScalarType::I64;
    // One wide operand makes the operation wide; a literal in front stays as it is.
    let (ea, eb) = match (wide, &ea) {
        (false, _) => (ea, eb),
        (true, Expr::Int(..)) => (ea, widened(eb, tb)),
        (true, _) => (widened(ea, ta), eb),
    };
    let ty = if wide { ScalarType::I64 } else { ScalarType::I32 };
    Value::Int(Expr::binary(op, ea, eb), ty, range)
}

/// `a ^ b` of integers from 0 to `extent`, a power of two: so are the results.
pub(crate) fn exclusive_or(env: &Env<'_>, a: &Value, b: &Value, extent: i64) -> Value {
    let constant = |v: &Value| match v {
        Value::Affine(e) => env.resolve(e).as_constant(),
        Value::Int(..) | Value::Word(..) | Value::Real(..) | Value::Complex(..) | Value::Bool(_) => None,
    };
    match (constant(a), constant(b)) {
        (Some(x), Some(y)) => Value::Affine(Affine::constant(x ^ y)),
        (None, Some(0)) => a.clone(),
        (Some(0), None) => b.clone(),
        _ => {
            let ((a, ta, _), (b, tb, _)) = (a.as_integer(env), b.as_integer(env));
            let range = Interval::new(0, i128::from(extent) - 1);
            let is_wide = ta == ScalarType::I64 || tb == ScalarType::I64;
            let ty = if is_wide { ScalarType::I64 } else { ScalarType::I32 };
            Value::Int(Expr::binary(Op::BitXor, a, b), ty, range)
        }
    }
}

/// Quotient or remainder, rounded down; plain operators where neither operand can be negative.
pub(crate) fn divide(env: &Env<'_>, a: Value, b: Value, function: IntFn) -> (Expr, ScalarType, Interval) {
    let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(env), b.as_integer(env));
    let ty = if ta == ScalarType::I64 || tb == ScalarType::I64 { ScalarType::I64 } else { ScalarType::I32 };
    let divisor = match &b {
        Value::Affine(e) => e.as_constant().filter(|d| *d > 0),
        Value::Int(..) | Value::Word(..) | Value::Real(..) | Value::Complex(..) | Value::Bool(_) => None,
    };
    let range = match (function, divisor) {
        (IntFn::Mod, Some(d)) => Interval::new(0, i128::from(d) - 1),
        (IntFn::FloorDiv, Some(d)) => ra.floor_div(d),
        (IntFn::Mod, None) => rb.join(Interval::point(0)).join(rb.times(-1)),
        // -2^31 / -1 is the one quotient that grows
        (_, None) => ra.join(ra.times(-1)),
        (IntFn::Min | IntFn::Max, Some(_)) => ra.join(rb),
    };
    let proved = || matches!(&a, Value::Affine(e) if env.is_non_negative(e));
    if rb.lo > 0 && (ra.lo >= 0 || proved()) {
        let op = if function == IntFn::Mod { Op::Rem } else { Op::Div };
        return (Expr::binary(op, ea, eb), ty, range);
    }
    let ty = if range.fits_i32() { ty } else { ScalarType::I64 };
    (Expr::IntCall(function, ty, Box::new(ea), Box::new(eb)), ty, range)
}

/// `a <= b`, `a < b` or `a == b` of a constraint: the negative terms moved to the other side. Where
/// `48*g + i < n` needs 64 bits, `i < n - 48*g` if that is proved to need only 32.
pub(crate) fn condition(env: &Env<'_>, c: &Constraint) -> Expr {
    let (op, left, right) = sides(c);
    let ((left, left_ty, _), (right, right_ty, _)) = (integer(env, &left), integer(env, &right));
    if (left_ty == ScalarType::I64 || right_ty == ScalarType::I64)
        && let Some(narrow) = narrow_condition(env, c)
    {
        return narrow;
    }
    Expr::binary(op, left, right)
}

/// The sides of the comparison that a constraint is.
fn sides(c: &Constraint) -> (Op, Affine, Affine) {
    let (e, op) = match c {
        Constraint::Zero(e) => (e, Op::Eq),
        Constraint::NonNegative(e) => (e, Op::Le),
    };
    let (mut left, mut right) = (Affine::constant(0), Affine::constant(0));
    let (terms, constant) = factors(e);
    for (factor, k) in terms {
        let term = factor.to_affine();
        if k < 0 {
            left = left.plus(&term.times(k.saturating_neg()));
        } else {
            right = right.plus(&term.times(k));
        }
    }
    match (op, constant) {
        (Op::Le, -1) => (Op::Lt, left, right),
        (Op::Le, k) if right.terms().is_empty() => (Op::Lt, left, right.plus_constant(k.saturating_add(1))),
        (_, k) if right.terms().is_empty() || k > 0 => (op, left, right.plus_constant(k)),
        (_, k) => (op, left.plus_constant(-k), right),
    }
}

/// `a < rest` in 32 bits for a negative term `-a` of an inequality, if both sides are proved to
/// fit.
fn narrow_condition(env: &Env<'_>, c: &Constraint) -> Option<Expr> {
    let Constraint::NonNegative(e) = c else { return None };
    let mut negative: Vec<_> = e.terms().iter().filter(|(_, k)| *k < 0).collect();
    negative.sort_by_key(|(_, k)| k.saturating_neg());
    negative.into_iter().find_map(|(atom, k)| {
        let left = Affine::from(atom).times(k.saturating_neg());
        let right = e.plus(&left).plus_constant(1);
        let (left, left_ty, _) = integer(env, &left);
        let (right, right_ty, _) = integer_within(env, &right, env.proved_range(&right));
        (left_ty == ScalarType::I32 && right_ty == ScalarType::I32).then(|| Expr::binary(Op::Lt, left, right))
    })
}
