//! Values of expressions.

use super::error::InterpError;
use super::machine::{Eval, Fault, Machine, holds};
use super::node::{Comparison, Conversion, Int, IntOp, Real, RealOp, Truth};
use super::observe::Observer;
use super::{math, rounding};
use kingpost_ir::expr::{MathFn, UpdateOp};
use kingpost_ir::math::remainder;
use kingpost_ir::types::ScalarType;

#[inline]
fn rounded(single: bool, value: f64) -> f64 {
    if single { f64::from(value as f32) } else { value }
}

/// `a op b`, rounded to the type. One operation in `f64` rounded to `f32` is the correctly rounded
/// `f32` operation: 53 >= 2 * 24 + 2 bits (Figueroa, "When is double rounding innocuous?").
fn combine_real(op: UpdateOp, single: bool, a: f64, b: f64) -> f64 {
    match op {
        UpdateOp::Add => rounded(single, a + b),
        UpdateOp::Mul => rounded(single, a * b),
        UpdateOp::Min => a.min(b),
        UpdateOp::Max => a.max(b),
        // joins truth values alone, or records
        UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_) => f64::NAN,
    }
}

impl<'p, O: Observer> Machine<'p, O> {
    /// The value of an operation, which an observer may round otherwise if it is not `exact`.
    #[inline]
    pub(super) fn settled(&mut self, single: bool, value: f64, exact: impl FnOnce(f64) -> bool) -> f64 {
        match O::PERTURBS && value.is_finite() && !exact(value) {
            true => self.observer.rounded(value, single),
            false => value,
        }
    }

    /// [`combine_real`], settled.
    pub(super) fn combined(&mut self, op: UpdateOp, single: bool, a: f64, b: f64) -> f64 {
        let value = combine_real(op, single, a, b);
        self.settled(single, value, |v| match op {
            UpdateOp::Add => rounding::exact(RealOp::Add, a, b, v),
            UpdateOp::Mul => rounding::exact(RealOp::Mul, a, b, v),
            UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_) => true,
        })
    }

    pub(super) fn real(&mut self, e: &'p Real) -> Eval<f64> {
        match e {
            Real::Const(c) => Ok(*c),
            Real::Load(place) => {
                let at = self.offset(place)?;
                self.load_real(place.var, at)
            }
            Real::Arith { op, single, tally, a, b } => {
                let (a, b) = (self.real(a)?, self.real(b)?);
                self.ops[tally.index()] += 1;
                let value = match op {
                    RealOp::Add => rounded(*single, a + b),
                    RealOp::Sub => rounded(*single, a - b),
                    RealOp::Mul => rounded(*single, a * b),
                    RealOp::Div => rounded(*single, a / b),
                    RealOp::Mod => rounded(*single, remainder(a, b)),
                    RealOp::Min => a.min(b),
                    RealOp::Max => a.max(b),
                };
                Ok(self.settled(*single, value, |v| rounding::exact(*op, a, b, v)))
            }
            Real::Neg(a, tally) => {
                let a = self.real(a)?;
                self.ops[tally.index()] += 1;
                Ok(-a)
            }
            Real::FromInt(a, true) => Ok(f64::from(self.int(a)? as f32)),
            Real::FromInt(a, false) => Ok(self.int(a)? as f64),
            Real::FromU64(a, true) => Ok(f64::from(self.int(a)? as u64 as f32)),
            Real::FromU64(a, false) => Ok(self.int(a)? as u64 as f64),
            Real::Round(a) => {
                let a = self.real(a)?;
                Ok(self.settled(true, rounded(true, a), |v| v == a))
            }
            Real::Half(a, ty) => Ok(ty.rounded(self.real(a)?)),
            Real::Call { function: MathFn::External(function), .. } => {
                let (at, function) = (self.here(), function.name());
                Err(Box::new(InterpError::NoMeaning { at, function }))
            }
            Real::Call { function, single, tally, args } => {
                let mut x = [0.0; 3];
                for (slot, arg) in x.iter_mut().zip(args) {
                    *slot = self.real(arg)?;
                }
                self.ops[tally.index()] += 1;
                let value = math::call(*function, *single, x);
                Ok(self.settled(*single, value, |v| rounding::exact_call(*function, x[0], v)))
            }
            Real::Part { part, single, tally, of } => {
                self.ops[tally.index()] += 1;
                self.part(*part, *single, of)
            }
            Real::Select(c, a, b) => {
                if self.truth(c)? {
                    self.real(a)
                } else {
                    self.real(b)
                }
            }
            Real::Reduce { op, inames, single, tally, body } => {
                let mut sum = op.real_of_nothing();
                self.reduce(inames, &mut |this| {
                    let value = this.real(body)?;
                    this.ops[tally.index()] += 1;
                    sum = this.combined(*op, *single, sum, value);
                    Ok(())
                })?;
                Ok(sum)
            }
        }
    }

    pub(super) fn int(&mut self, e: &'p Int) -> Eval<i64> {
        match e {
            Int::Const(c) => Ok(*c),
            Int::Iname(i) => Ok(self.inames[kingpost_ir::ids::Id::index(*i)]),
            Int::Load(place) => {
                let at = self.offset(place)?;
                self.load_int(place.var, at)
            }
            Int::Arith { op, word, tally, a, b } => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                self.ops[tally.index()] += 1;
                self.joined(*op, *word, a, b)
            }
            Int::Neg(a, tally) => {
                let a = self.int(a)?;
                self.ops[tally.index()] += 1;
                a.checked_neg().ok_or_else(|| self.overflow(format!("-({a})"), "64 bits"))
            }
            Int::FromReal(a, ty) => {
                let value = self.real(a)?;
                self.truncate(value, *ty)
            }
            Int::Converted(how, a) => {
                let value = self.int(a)?;
                self.converted(*how, value)
            }
            Int::FromTruth(a) => Ok(self.truth(a)?.into()),
            Int::Select(c, a, b) => {
                if self.truth(c)? {
                    self.int(a)
                } else {
                    self.int(b)
                }
            }
            Int::Reduce { op, inames, neutral, narrow, word, tally, body } => {
                let mut sum = *neutral;
                self.reduce(inames, &mut |this| {
                    let value = this.int(body)?;
                    this.ops[tally.index()] += 1;
                    sum = this.combine_int(*op, *word, sum, value)?;
                    if *narrow {
                        sum = this.converted(Conversion::Fits(ScalarType::I32), sum)?;
                    }
                    Ok(())
                })?;
                Ok(sum)
            }
        }
    }

    fn converted(&self, how: Conversion, value: i64) -> Eval<i64> {
        match how {
            Conversion::Fits(ty) if holds(ty, value) => Ok(value),
            Conversion::Fits(ty) => Err(self.overflow(format!("{value}"), format!("`{ty}`"))),
            Conversion::FromU64 if value >= 0 => Ok(value),
            Conversion::FromU64 => Err(self.overflow(format!("{}", value as u64), "`i64`")),
            Conversion::Wraps => Ok(value & 0xFFFF_FFFF),
            Conversion::Signed => Ok((value as i32).into()),
        }
    }

    /// `a op b` of exact integers, or of words of a type.
    #[inline]
    fn joined(&mut self, op: IntOp, word: Option<ScalarType>, a: i64, b: i64) -> Eval<i64> {
        match word {
            None => self.arith_int(op, a, b),
            Some(ty) => self.arith_word(op, ty, a as u64, b as u64),
        }
    }

    #[inline]
    fn arith_int(&mut self, op: IntOp, a: i64, b: i64) -> Eval<i64> {
        let (result, symbol) = match op {
            IntOp::Add => (a.checked_add(b), "+"),
            IntOp::Sub => (a.checked_sub(b), "-"),
            IntOp::Mul => (a.checked_mul(b), "*"),
            IntOp::Min => (Some(a.min(b)), "min"),
            IntOp::Max => (Some(a.max(b)), "max"),
            IntOp::BitAnd => (Some(a & b), "bit_and"),
            IntOp::BitOr => (Some(a | b), "bit_or"),
            IntOp::BitXor => (Some(a ^ b), "bit_xor"),
            IntOp::Shl => {
                let by = self.shift(b, 64)?;
                (i64::try_from(i128::from(a) << by).ok(), "shl")
            }
            IntOp::Shr => (Some(a >> self.shift(b, 64)?), "shr"),
            IntOp::FloorDiv | IntOp::Mod | IntOp::TruncDiv | IntOp::TruncRem if b == 0 => {
                return Err(self.by_zero(op));
            }
            IntOp::FloorDiv => (floor_div(a, b), "floor_div"),
            IntOp::Mod => (Some(floor_mod(a, b)), "mod"),
            IntOp::TruncDiv => (a.checked_div(b), "trunc_div"),
            IntOp::TruncRem => (Some(a.wrapping_rem(b)), "trunc_rem"),
        };
        result.ok_or_else(|| self.overflow(format!("{a} {symbol} {b}"), "64 bits"))
    }

    fn arith_word(&mut self, op: IntOp, ty: ScalarType, a: u64, b: u64) -> Eval<i64> {
        let bits = 8 * ty.bytes();
        let value = match op {
            IntOp::Add => a.wrapping_add(b),
            IntOp::Sub => a.wrapping_sub(b),
            IntOp::Mul => a.wrapping_mul(b),
            IntOp::Min => a.min(b),
            IntOp::Max => a.max(b),
            IntOp::BitAnd => a & b,
            IntOp::BitOr => a | b,
            IntOp::BitXor => a ^ b,
            IntOp::Shl => a << self.shift(b as i64, bits)?,
            IntOp::Shr => a >> self.shift(b as i64, bits)?,
            IntOp::FloorDiv | IntOp::Mod | IntOp::TruncDiv | IntOp::TruncRem if b == 0 => {
                return Err(self.by_zero(op));
            }
            IntOp::FloorDiv | IntOp::TruncDiv => a / b,
            IntOp::Mod | IntOp::TruncRem => a % b,
        };
        Ok((value & (u64::MAX >> (64 - bits))) as i64)
    }

    /// By how many bits a shift goes, which must be fewer than there are.
    fn shift(&self, by: i64, bits: u64) -> Eval<u32> {
        match u32::try_from(by) {
            Ok(by) if u64::from(by) < bits => Ok(by),
            Ok(_) | Err(_) => Err(self.overflow(format!("a shift by {by}"), format!("0..{bits}"))),
        }
    }

    fn by_zero(&self, op: IntOp) -> Fault {
        let op = match op {
            IntOp::FloorDiv => "floor_div",
            IntOp::TruncDiv => "trunc_div",
            IntOp::TruncRem => "trunc_rem",
            IntOp::Mod
            | IntOp::Add
            | IntOp::Sub
            | IntOp::Mul
            | IntOp::BitAnd
            | IntOp::BitOr
            | IntOp::BitXor
            | IntOp::Shl
            | IntOp::Shr
            | IntOp::Min
            | IntOp::Max => "mod",
        };
        Box::new(InterpError::DivisionByZero { at: self.here(), op })
    }

    pub(super) fn combine_int(
        &mut self,
        op: UpdateOp,
        word: Option<ScalarType>,
        a: i64,
        b: i64,
    ) -> Eval<i64> {
        let op = match op {
            UpdateOp::Add => IntOp::Add,
            UpdateOp::Mul => IntOp::Mul,
            UpdateOp::Min => IntOp::Min,
            UpdateOp::Max => IntOp::Max,
            UpdateOp::Or => IntOp::BitOr,
            // of records, which are read field by field, there is none
            UpdateOp::And | UpdateOp::Named(_) => IntOp::BitAnd,
        };
        self.joined(op, word, a, b)
    }

    /// A real rounded towards zero, as an integer of a type.
    fn truncate(&mut self, value: f64, ty: ScalarType) -> Eval<i64> {
        let whole = value.trunc();
        // powers of two and their negations are exact in f64
        let fits = ty.ends().is_some_and(|(lo, hi)| whole >= lo as f64 && whole < (hi + 1) as f64);
        match fits {
            true if ty.is_word() => Ok(whole as u64 as i64),
            true => Ok(whole as i64),
            false => Err(self.overflow(format!("{value}"), format!("`{ty}`"))),
        }
    }

    pub(super) fn truth(&mut self, e: &'p Truth) -> Eval<bool> {
        match e {
            Truth::Int { op, unsigned, tally, a, b } => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                self.ops[tally.index()] += 1;
                Ok(if *unsigned { compare(*op, &(a as u64), &(b as u64)) } else { compare(*op, &a, &b) })
            }
            Truth::Nonzero(a) => Ok(self.int(a)? != 0),
            Truth::Real { op, tally, a, b } => {
                let (a, b) = (self.real(a)?, self.real(b)?);
                self.ops[tally.index()] += 1;
                Ok(compare(*op, &a, &b))
            }
            Truth::Complex { equal, tally, a, b } => {
                let (a, b) = (self.complex(a)?, self.complex(b)?);
                self.ops[tally.index()] += 1;
                Ok((a == b) == *equal)
            }
            Truth::Not(a) => Ok(!self.truth(a)?),
            Truth::And(a, b) => Ok(self.truth(a)? && self.truth(b)?),
            Truth::Or(a, b) => Ok(self.truth(a)? || self.truth(b)?),
        }
    }
}

fn compare<T: PartialOrd>(op: Comparison, a: &T, b: &T) -> bool {
    match op {
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
    }
}

/// Quotient rounded towards minus infinity; `None` for `i64::MIN / -1`.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Remainder with the sign of the divisor.
fn floor_mod(a: i64, b: i64) -> i64 {
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_divide_towards_minus_infinity() {
        for a in -9..10_i64 {
            for b in (-4..5_i64).filter(|b| *b != 0) {
                let quotient = (a as f64 / b as f64).floor() as i64;
                assert_eq!(floor_div(a, b), Some(quotient));
                assert_eq!(floor_mod(a, b), a - b * quotient);
            }
        }
        assert_eq!(floor_div(i64::MIN, -1), None);
        assert_eq!(floor_mod(i64::MIN, -1), 0);
    }
}
