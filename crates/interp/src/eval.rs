//! Values of expressions.

use super::error::InterpError;
use super::machine::{Eval, Machine};
use super::node::{Comparison, Int, IntOp, Real, RealOp, Truth};
use super::observe::Observer;
use super::{math, rounding};
use purlin_ir::expr::UpdateOp;
use purlin_ir::types::ScalarType;

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
    }
}

impl<'p, O: Observer> Machine<'p, O> {
    /// The value of an operation, which an observer may round otherwise if it is not `exact`.
    #[inline]
    fn settled(&mut self, single: bool, value: f64, exact: impl FnOnce(f64) -> bool) -> f64 {
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
            UpdateOp::Min | UpdateOp::Max => true,
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
            Real::Round(a) => {
                let a = self.real(a)?;
                Ok(self.settled(true, rounded(true, a), |v| v == a))
            }
            Real::Call { function, single, tally, args } => {
                let mut x = [0.0; 3];
                for (slot, arg) in x.iter_mut().zip(args) {
                    *slot = self.real(arg)?;
                }
                self.ops[tally.index()] += 1;
                let value = math::call(*function, *single, &x);
                Ok(self.settled(*single, value, |v| rounding::exact_call(*function, x[0], v)))
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
            Int::Iname(i) => Ok(self.inames[purlin_ir::ids::Id::index(*i)]),
            Int::Load(place) => {
                let at = self.offset(place)?;
                self.load_int(place.var, at)
            }
            Int::Arith { op, tally, a, b } => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                self.ops[tally.index()] += 1;
                self.arith_int(*op, a, b)
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
            Int::Narrow(a) => {
                let value = self.int(a)?;
                self.narrow(value)
            }
            Int::Select(c, a, b) => {
                if self.truth(c)? {
                    self.int(a)
                } else {
                    self.int(b)
                }
            }
            Int::Reduce { op, inames, neutral, narrow, tally, body } => {
                let mut sum = *neutral;
                self.reduce(inames, &mut |this| {
                    let value = this.int(body)?;
                    this.ops[tally.index()] += 1;
                    sum = this.combine_int(*op, sum, value)?;
                    if *narrow {
                        sum = this.narrow(sum)?;
                    }
                    Ok(())
                })?;
                Ok(sum)
            }
        }
    }

    /// A value that has to fit `i32`.
    fn narrow(&self, value: i64) -> Eval<i64> {
        match i32::try_from(value) {
            Ok(_) => Ok(value),
            Err(_) => Err(self.overflow(format!("{value}"), "`i32`")),
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
            IntOp::FloorDiv if b == 0 => {
                return Err(Box::new(InterpError::DivisionByZero { at: self.here(), op: "floor_div" }));
            }
            IntOp::Mod if b == 0 => {
                return Err(Box::new(InterpError::DivisionByZero { at: self.here(), op: "mod" }));
            }
            IntOp::FloorDiv => (floor_div(a, b), "floor_div"),
            IntOp::Mod => (Some(floor_mod(a, b)), "mod"),
        };
        result.ok_or_else(|| self.overflow(format!("{a} {symbol} {b}"), "64 bits"))
    }

    pub(super) fn combine_int(&mut self, op: UpdateOp, a: i64, b: i64) -> Eval<i64> {
        match op {
            UpdateOp::Add => self.arith_int(IntOp::Add, a, b),
            UpdateOp::Mul => self.arith_int(IntOp::Mul, a, b),
            UpdateOp::Min => Ok(a.min(b)),
            UpdateOp::Max => Ok(a.max(b)),
        }
    }

    fn truncate(&mut self, value: f64, ty: ScalarType) -> Eval<i64> {
        let narrow = ty == ScalarType::I32;
        // 2^31 and 2^63 are exact in f64; so are the least values of both types
        let limit = if narrow { 2_147_483_648.0 } else { 9_223_372_036_854_775_808.0 };
        let whole = value.trunc();
        if whole >= -limit && whole < limit {
            Ok(whole as i64)
        } else {
            Err(self.overflow(format!("{value}"), if narrow { "`i32`" } else { "`i64`" }))
        }
    }

    pub(super) fn truth(&mut self, e: &'p Truth) -> Eval<bool> {
        match e {
            Truth::Int { op, tally, a, b } => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                self.ops[tally.index()] += 1;
                Ok(compare(*op, &a, &b))
            }
            Truth::Real { op, tally, a, b } => {
                let (a, b) = (self.real(a)?, self.real(b)?);
                self.ops[tally.index()] += 1;
                Ok(compare(*op, &a, &b))
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
