//! Expressions: types settled, integers kept affine, reductions moved before the statement.
//!
//! The types are those of [`kingpost_ir::typing`], found before any code is: what a literal is
//! depends on what stands around it. An integer that is joined with reals is computed as an integer
//! and then converted; a real made of literals has the type of its context, down to the
//! accumulators of its reductions.

use super::Lower;
use super::complex::complex_type;
use crate::ast::{Block, Declare, Expr, IntFn, Name, Op, Place, Stmt};
use crate::complex::ComplexOp;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::target::Posix;
use crate::value::{Value, arithmetic, divide, held_arithmetic, widened};
use kingpost_ir::affine::MAX_TERMS;
use kingpost_ir::{
    Affine, BinaryOp, Class, Expr as Ir, ExprType, MathFn, ScalarType, TypedExpr, UnaryOp, UpdateOp,
};

impl<'k> Lower<'k> {
    /// An expression in no context that gives reals made of literals another type than `f64`.
    pub(super) fn expr(&mut self, e: &Ir) -> Result<Value, CodegenError> {
        self.expr_for(e, ScalarType::F64)
    }

    /// An expression that is used as an element of type `ty`.
    pub(super) fn expr_for(&mut self, e: &Ir, ty: ScalarType) -> Result<Value, CodegenError> {
        let mut rules = false;
        e.for_each(&mut |e| rules |= matches!(e, Ir::Rule(..)));
        let expanded;
        let e = if rules {
            expanded = self.kernel.expand_rules(e);
            &expanded
        } else {
            e
        };
        let typed = self.kernel.typed(e).map_err(|e| self.internal(e.to_string()))?;
        let real = ty.is_real() || ty.is_complex();
        self.value(&typed, if real { ty.part().loaded() } else { ScalarType::F64 })
    }

    /// Code of a truth value.
    pub(super) fn condition(&mut self, e: &Ir) -> Result<Expr, CodegenError> {
        Ok(self.expr(e)?.into_expr(&self.env))
    }

    /// A part of an expression; a real made of literals has type `weak`.
    pub(super) fn value(&mut self, e: &TypedExpr<'_>, weak: ScalarType) -> Result<Value, CodegenError> {
        Ok(match (e.expr, e.operands.as_slice()) {
            (Ir::Int(c), _) => Value::Affine(Affine::constant(*c)),
            (Ir::Real(r), _) => Value::Real(Expr::Real(r.0, weak), weak),
            (Ir::Iname(i), _) => Value::Affine(self.env.resolve(&Affine::iname(*i))),
            (Ir::Load(access), _) => self.load(access)?,
            (Ir::Unary(UnaryOp::Neg, _), [a]) => match (self.value(a, weak)?, a.ty) {
                (Value::Affine(e), _) => Value::Affine(e.times(-1)),
                (Value::Real(Expr::Real(v, ty), _), ExprType::WeakReal) => {
                    Value::Real(Expr::Real(-v, ty), ty)
                }
                (Value::Real(e, ty), _) => Value::Real(Expr::Neg(Box::new(e)), ty),
                (Value::Complex(e, ty), _) => Value::Complex(Expr::Complex(ComplexOp::Neg, ty, vec![e]), ty),
                (Value::Word(e, ty), _) => Value::Word(Expr::binary(Op::Sub, Expr::Int(0, ty), e), ty),
                (integer, _) => {
                    let zero = Value::Affine(Affine::constant(0));
                    self.sum_or_product(Op::Sub, zero, integer, self.is_held(e.ty, a))
                }
            },
            (Ir::Unary(UnaryOp::Not, _), [a]) => Value::Bool(Expr::Not(Box::new(self.truth(a)?))),
            (Ir::Unary(UnaryOp::BitNot, _), [a]) => {
                let (a, ones) = (self.value(a, weak)?, Value::Affine(Affine::constant(-1)));
                if let Value::Word(e, ty) = a {
                    Value::Word(Expr::binary(Op::BitXor, e, ones.into_word(&self.env, ty)), ty)
                } else {
                    arithmetic(&self.env, Op::Sub, ones, a)
                }
            }
            (Ir::Unary(UnaryOp::Bits, _), [a]) => {
                let signed =
                    if e.ty == ExprType::Scalar(ScalarType::I32) { ScalarType::I32 } else { ScalarType::I64 };
                let code = self.value(a, weak)?.into_expr(&self.env);
                Value::Int(Expr::Cast(signed, Box::new(code)), signed, Interval::of(signed))
            }
            (Ir::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), ..), [a, b]) => {
                let held = a.is_narrow() && self.is_held(e.ty, a);
                let (a, b) = (self.value(a, weak)?, self.value(b, weak)?);
                self.shift(*op, a, b, held)
            }
            (Ir::Binary(op, ..), [a, b]) => self.binary(*op, a, b, weak)?,
            (Ir::Call(MathFn::Record(_), _), _) => return Err(self.internal(NO_RECORDS)),
            (Ir::Call(MathFn::External(function), _), args) => self.external_call(*function, args)?,
            (Ir::Call(f, _), args) => {
                if self.target.posix == Posix::Missing && f.posix_symbol().is_some() {
                    return Err(CodegenError::NoFunction { function: f.name(), target: self.target.target });
                }
                if let Some(value) = self.complex_call(*f, e, weak)? {
                    return Ok(value);
                }
                let ty = real_type(e.ty, weak);
                let args = args.iter().map(|a| Ok(self.value(a, ty)?.into_real(&self.env, ty)));
                let code = Expr::Call(*f, ty, args.collect::<Result<_, CodegenError>>()?);
                Value::Real(code, ty)
            }
            (Ir::Cast(ty, _), [a]) => self.cast(*ty, a)?,
            (Ir::Select(..), [c, a, b]) => self.select(e.ty, [c, a, b], weak)?,
            (Ir::Reduce(_), [body]) => self.reduce(e, body, weak)?,
            (Ir::Rule(..) | Ir::RuleParam(_), _) => return Err(self.internal("a rule that is not expanded")),
            (Ir::Unary(UnaryOp::Field(..), _), _) => return Err(self.internal(NO_RECORDS)),
            (Ir::Unary(..) | Ir::Binary(..) | Ir::Cast(..) | Ir::Select(..) | Ir::Reduce(_), _) => {
                return Err(self.internal("an operation without its operands"));
            }
        })
    }

    fn truth(&mut self, e: &TypedExpr<'_>) -> Result<Expr, CodegenError> {
        // no context reaches into a condition
        Ok(self.value(e, ScalarType::F64)?.into_expr(&self.env))
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: &TypedExpr<'_>,
        b: &TypedExpr<'_>,
        weak: ScalarType,
    ) -> Result<Value, CodegenError> {
        if op.is_logical() {
            return self.logical(op, a, b);
        }
        let weak = if op.is_comparison() { ScalarType::F64 } else { weak };
        if [a.ty, b.ty] == [ExprType::Bool; 2] {
            return Ok(Value::Bool(Expr::binary(comparison(op), self.truth(a)?, self.truth(b)?)));
        }
        let joined = a.ty.join(b.ty).ok_or_else(|| self.internal("operands that do not go together"))?;
        if joined.is_complex() {
            return self.complex_binary(op, (a, b), complex_type(joined, weak));
        }
        if let Some(ty) = joined.word() {
            let (a, b) = (
                self.value(a, weak)?.into_word(&self.env, ty),
                self.value(b, weak)?.into_word(&self.env, ty),
            );
            return word_binary(op, ty, a, b)
                .ok_or_else(|| self.internal(format!("`{}` of words", op.symbol())));
        }
        if joined.is_integer() && op != BinaryOp::Div {
            let held = a.is_narrow() && b.is_narrow() && (self.is_held(joined, a) || self.is_held(joined, b));
            let (a, b) = (self.value(a, weak)?, self.value(b, weak)?);
            let value = self.integer_binary(op, a, b, held);
            return Ok(value);
        }
        let ty = real_type(joined, weak);
        let (a, b) = (self.value(a, ty)?, self.value(b, ty)?);
        let operator = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div => Op::Div,
            BinaryOp::Min | BinaryOp::Max => {
                let f = if op == BinaryOp::Min { MathFn::Fmin } else { MathFn::Fmax };
                let args = vec![a.into_real(&self.env, ty), b.into_real(&self.env, ty)];
                return Ok(Value::Real(Expr::Call(f, ty, args), ty));
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => comparison(op),
            BinaryOp::Mod => {
                let (a, b) = (a.into_real(&self.env, ty), b.into_real(&self.env, ty));
                return Ok(Value::Real(Expr::IntCall(IntFn::Mod, ty, Box::new(a), Box::new(b)), ty));
            }
            BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::And
            | BinaryOp::Or => {
                return Err(self.internal(format!("`{}` of reals", op.symbol())));
            }
        };
        let code = Expr::binary(operator, a.into_operand(&self.env, ty), b.into_operand(&self.env, ty));
        Ok(if op.is_comparison() { Value::Bool(code) } else { Value::Real(code, ty) })
    }

    /// A comparison that the ranges of the loops decide.
    fn decided(&self, op: BinaryOp, a: &Value, b: &Value) -> Option<bool> {
        let (Value::Affine(a), Value::Affine(b)) = (a, b) else { return None };
        let by = self.env.range(&b.minus(a));
        let (always, never) = match op {
            BinaryOp::Lt => (by.lo > 0, by.hi <= 0),
            BinaryOp::Le => (by.lo >= 0, by.hi < 0),
            BinaryOp::Eq => (by.lo == 0 && by.hi == 0, by.lo > 0 || by.hi < 0),
            BinaryOp::Ne => (by.lo > 0 || by.hi < 0, by.lo == 0 && by.hi == 0),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::And
            | BinaryOp::Or => return None,
        };
        (always || never).then_some(always)
    }

    /// Whether the kernel promises that an operation of this type fits 32 bits: outside indices,
    /// one of `i32` with an operand that is made of elements of arrays does.
    fn is_held(&self, ty: ExprType, operand: &TypedExpr<'_>) -> bool {
        ty == ExprType::Scalar(ScalarType::I32) && !self.in_index && operand.is_made_of_elements()
    }

    /// `a + b`, `a - b` or `a * b` of integers, in 32 bits where the kernel promises that it fits.
    fn sum_or_product(&self, op: Op, a: Value, b: Value, held: bool) -> Value {
        let narrow = |v: &Value| v.as_integer(&self.env).1 == ScalarType::I32;
        if held && narrow(&a) && narrow(&b) {
            return held_arithmetic(&self.env, op, a, b);
        }
        arithmetic(&self.env, op, a, b)
    }

    fn integer_binary(&self, op: BinaryOp, a: Value, b: Value, held: bool) -> Value {
        let function = |f: IntFn| {
            if let (Value::Affine(n), Value::Affine(d)) = (&a, &b)
                && let Some(d) = d.as_constant().filter(|d| *d > 0)
            {
                let floor = self.env.quotient(n, d);
                let value = if f == IntFn::Mod { n.minus(&floor.times(d)) } else { floor };
                if value.in_bounds() && value.size() <= MAX_TERMS {
                    return Value::Affine(value);
                }
            }
            let (code, ty, range) = divide(&self.env, a.clone(), b.clone(), f);
            Value::Int(code, ty, range)
        };
        match op {
            BinaryOp::Add => self.sum_or_product(Op::Add, a, b, held),
            BinaryOp::Sub => self.sum_or_product(Op::Sub, a, b, held),
            BinaryOp::Mul => self.sum_or_product(Op::Mul, a, b, held),
            BinaryOp::FloorDiv => function(IntFn::FloorDiv),
            BinaryOp::Mod => function(IntFn::Mod),
            BinaryOp::TruncDiv => self.truncated(Op::Div, &a, &b),
            BinaryOp::TruncRem => self.truncated(Op::Rem, &a, &b),
            BinaryOp::BitAnd => self.bitwise(Op::BitAnd, &a, &b),
            BinaryOp::BitOr => self.bitwise(Op::BitOr, &a, &b),
            BinaryOp::BitXor => self.bitwise(Op::BitXor, &a, &b),
            BinaryOp::Min | BinaryOp::Max => self.integer_extreme(op == BinaryOp::Min, &a, &b),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
                Value::Bool(self.decided(op, &a, &b).map_or_else(
                    || Expr::binary(comparison(op), a.as_integer(&self.env).0, b.as_integer(&self.env).0),
                    Expr::Bool,
                ))
            }
            // Real division, logic and shifts do not come here.
            BinaryOp::Div | BinaryOp::And | BinaryOp::Or | BinaryOp::Shl | BinaryOp::Shr => a,
        }
    }

    /// Quotient or remainder as C has them; -2^31 by -1 needs more bits.
    fn truncated(&self, op: Op, a: &Value, b: &Value) -> Value {
        let ((ea, ta, ra), (eb, tb, _)) = (a.as_integer(&self.env), b.as_integer(&self.env));
        let range = ra.join(ra.times(-1)).join(Interval::point(0));
        let wide = ta == ScalarType::I64 || tb == ScalarType::I64 || !range.fits_i32();
        let (ea, ty) = if wide { (widened(ea, ta), ScalarType::I64) } else { (ea, ScalarType::I32) };
        Value::Int(Expr::binary(op, ea, eb), ty, range)
    }

    /// An operation on the bits of two's complement, which any width holds.
    fn bitwise(&self, op: Op, a: &Value, b: &Value) -> Value {
        let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(&self.env), b.as_integer(&self.env));
        let wide = ta == ScalarType::I64 || tb == ScalarType::I64;
        let ty = if wide { ScalarType::I64 } else { ScalarType::I32 };
        let range = match (op, ra.lo >= 0, rb.lo >= 0) {
            (Op::BitAnd, true, true) => Interval::new(0, ra.hi.min(rb.hi)),
            (Op::BitAnd, true, false) => Interval::new(0, ra.hi),
            (Op::BitAnd, false, true) => Interval::new(0, rb.hi),
            _ if ra.fits_i32() && rb.fits_i32() => Interval::I32,
            _ => Interval::ALL,
        };
        Value::Int(Expr::binary(op, ea, eb), ty, range)
    }

    /// A shift: of a word as C has it, of an integer a product with a power of two or a quotient.
    fn shift(&self, op: BinaryOp, a: Value, b: Value, held: bool) -> Value {
        let by = b.as_integer(&self.env).0;
        if let Value::Word(e, ty) = a {
            let op = if op == BinaryOp::Shl { Op::Shl } else { Op::Shr };
            return Value::Word(Expr::binary(op, e, by), ty);
        }
        let known = if let Expr::Int(k @ 0..=61, _) = &by { Some(Affine::constant(1 << *k)) } else { None };
        let known = known.map(Value::Affine);
        let wide = |v: &Value| {
            let (e, ty, _) = v.as_integer(&self.env);
            widened(e, ty)
        };
        match (op, known) {
            (BinaryOp::Shl, Some(factor)) => self.sum_or_product(Op::Mul, a, factor, held),
            (BinaryOp::Shl, None) => {
                let factor = Expr::binary(Op::Shl, Expr::Int(1, ScalarType::I64), by);
                let product = Expr::binary(Op::Mul, wide(&a), factor);
                match held {
                    true => Value::Int(
                        Expr::Cast(ScalarType::I32, Box::new(product)),
                        ScalarType::I32,
                        Interval::I32,
                    ),
                    false => Value::Int(product, ScalarType::I64, Interval::ALL),
                }
            }
            // what is computed of loops and sizes may vanish as a quotient; what was read is bits
            (_, Some(divisor)) if matches!(&a, Value::Affine(e) if !self.env.is_read(e)) => {
                self.integer_binary(BinaryOp::FloorDiv, a, divisor, false)
            }
            (_, Some(_)) if matches!(a, Value::Affine(_)) => {
                let (e, ty, range) = a.as_integer(&self.env);
                // a shift makes no number larger
                Value::Int(Expr::binary(Op::Shr, e, by), ty, range.join(Interval::new(-1, 0)))
            }
            // compilers for C shift the sign as OpenCL and CUDA do
            _ => {
                let range = a.as_integer(&self.env).2.join(Interval::new(-1, 0));
                Value::Int(Expr::binary(Op::Shr, wide(&a), by), ScalarType::I64, range)
            }
        }
    }

    fn integer_extreme(&self, min: bool, a: &Value, b: &Value) -> Value {
        let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(&self.env), b.as_integer(&self.env));
        let ty =
            if ta == ScalarType::I64 || tb == ScalarType::I64 { ScalarType::I64 } else { ScalarType::I32 };
        let range = if min {
            Interval { lo: ra.lo.min(rb.lo), hi: ra.hi.min(rb.hi) }
        } else {
            Interval { lo: ra.lo.max(rb.lo), hi: ra.hi.max(rb.hi) }
        };
        let f = if min { IntFn::Min } else { IntFn::Max };
        Value::Int(Expr::IntCall(f, ty, Box::new(ea), Box::new(eb)), ty, range)
    }

    /// Short-circuit: what the right operand needs before runs only where it is evaluated.
    fn logical(&mut self, op: BinaryOp, a: &TypedExpr<'_>, b: &TypedExpr<'_>) -> Result<Value, CodegenError> {
        let left = self.truth(a)?;
        let and = op == BinaryOp::And;
        let when = if and { left.clone() } else { Expr::Not(Box::new(left.clone())) };
        let right = self.under(when, |this| this.truth(b))?;
        match (&left, &right) {
            (Expr::Bool(known), other) | (other, Expr::Bool(known)) => {
                // `true and x` is x, `false and x` is false; of `or` the other way round
                let whole = if *known == and { other.clone() } else { Expr::Bool(*known) };
                return Ok(Value::Bool(whole));
            }
            _ => {}
        }
        Ok(Value::Bool(Expr::binary(if and { Op::And } else { Op::Or }, left, right)))
    }

    fn select(
        &mut self,
        ty: ExprType,
        [c, a, b]: [&TypedExpr<'_>; 3],
        weak: ScalarType,
    ) -> Result<Value, CodegenError> {
        let weak = match ty.is_complex() {
            true => complex_type(ty, weak).part(),
            false if ty.is_real() => real_type(ty, weak),
            false => weak,
        };
        let c = self.truth(c)?;
        let a = self.under(c.clone(), |this| this.value(a, weak))?;
        let b = self.under(Expr::Not(Box::new(c.clone())), |this| this.value(b, weak))?;
        let choose = |c, a, b| Expr::Select(Box::new(c), Box::new(a), Box::new(b));
        if ty.is_real() {
            let (a, b) = (a.into_real(&self.env, weak), b.into_real(&self.env, weak));
            return Ok(Value::Real(choose(c, a, b), weak));
        }
        if ty.is_complex() {
            let ty = weak.complex();
            let (a, b) = (a.into_complex(&self.env, ty), b.into_complex(&self.env, ty));
            return Ok(Value::Complex(choose(c, a, b), ty));
        }
        if let Some(ty) = ty.word() {
            let (a, b) = (a.into_word(&self.env, ty), b.into_word(&self.env, ty));
            return Ok(Value::Word(choose(c, a, b), ty));
        }
        let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(&self.env), b.as_integer(&self.env));
        let ty =
            if ta == ScalarType::I64 || tb == ScalarType::I64 { ScalarType::I64 } else { ScalarType::I32 };
        Ok(Value::Int(choose(c, ea, eb), ty, ra.join(rb)))
    }

    /// Lowers under a condition: statements that it needs before stand in an `if`.
    fn under<T>(
        &mut self,
        condition: Expr,
        lower: impl FnOnce(&mut Self) -> Result<T, CodegenError>,
    ) -> Result<T, CodegenError> {
        self.prelude.push(Block::new());
        let result = lower(self);
        let code = self.take_prelude()?;
        let (declared, body): (Block, Block) = code.into_iter().partition(|s| matches!(s, Stmt::Declare(_)));
        self.before(declared);
        self.before(super::guarded(vec![condition], body));
        result
    }

    /// Puts statements before the one that is being lowered.
    fn before(&mut self, code: Block) {
        if let Some(last) = self.prelude.last_mut() {
            last.extend(code);
        }
    }

    /// A cast is no context: what is made of literals is computed in `f64` and converted once.
    pub(super) fn cast(&mut self, ty: ScalarType, a: &TypedExpr<'_>) -> Result<Value, CodegenError> {
        if ty.is_half() {
            let single = self.cast(ScalarType::F32, a)?.into_real(&self.env, ScalarType::F32);
            return Ok(Value::Real(single.encoded(ty).decoded(ty), ScalarType::F32));
        }
        let value = self.value(a, ScalarType::F64)?;
        if ty.is_real() {
            let code = match value {
                Value::Real(Expr::Real(v, _), _) if a.ty == ExprType::WeakReal => Expr::Real(v, ty),
                value @ (Value::Affine(_)
                | Value::Int(..)
                | Value::Word(..)
                | Value::Real(..)
                | Value::Complex(..)
                | Value::Bool(_)) => value.into_real(&self.env, ty),
            };
            return Ok(Value::Real(code, ty));
        }
        if ty.is_complex() {
            return Ok(Value::Complex(value.into_complex(&self.env, ty), ty));
        }
        if ty.is_word() {
            return Ok(Value::Word(value.into_word(&self.env, ty), ty));
        }
        // the kernel promises that a value fits the type of a cast
        let ty = ty.loaded();
        let range = Interval::of(ty);
        Ok(match value {
            Value::Affine(e) if ty == ScalarType::I64 || self.env.range(&e).fits_i32() => Value::Affine(e),
            Value::Int(e, from, r) if ty == from || (ty == ScalarType::I64 && from == ScalarType::I32) => {
                Value::Int(e, from, r)
            }
            other @ (Value::Affine(_)
            | Value::Int(..)
            | Value::Word(..)
            | Value::Real(..)
            | Value::Complex(..)
            | Value::Bool(_)) => Value::Int(Expr::Cast(ty, Box::new(other.into_expr(&self.env))), ty, range),
        })
    }

    /// A reduction as an accumulator and loops before the statement. The type decides what an
    /// integer starts from, also where the code computes in a wider one.
    fn reduce(
        &mut self,
        e: &TypedExpr<'_>,
        body: &TypedExpr<'_>,
        weak: ScalarType,
    ) -> Result<Value, CodegenError> {
        let Ir::Reduce(r) = e.expr else { return Err(self.internal("no reduction")) };
        let stem = format!("acc_{}", r.inames.first().map_or("r", |i| self.env.name(*i)));
        let name = self.env.names.fresh(&stem);
        let ty = match e.ty.is_real() {
            true => real_type(e.ty, weak),
            false if e.ty.is_complex() => complex_type(e.ty, weak),
            false if self.is_held(e.ty, body) => ScalarType::I32,
            false if e.ty == ExprType::Bool => ScalarType::Bool,
            false => e.ty.word().unwrap_or(ScalarType::I64),
        };
        let code = self.reduction_nest(e, body, &name, ty, 0)?;
        let narrow = e.ty == ExprType::Scalar(ScalarType::I32);
        let value = Some(neutral(r.op, if narrow { ScalarType::I32 } else { ty }));
        self.before(vec![Stmt::Declare(Declare::scalar(name.clone(), ty, value))]);
        self.before(code);
        let code = Expr::var(&name);
        Ok(match ty.class() {
            Class::Real => Value::Real(code, ty),
            Class::Complex => Value::Complex(code, ty),
            Class::Exact => Value::Int(code, ty, Interval::of(ty)),
            Class::Word => Value::Word(code, ty),
            Class::Truth => Value::Bool(code.nonzero()),
            Class::Record => return Err(self.internal(NO_RECORDS)),
        })
    }

    fn reduction_nest(
        &mut self,
        e: &TypedExpr<'_>,
        body: &TypedExpr<'_>,
        name: &Name,
        ty: ScalarType,
        depth: usize,
    ) -> Result<Block, CodegenError> {
        let Ir::Reduce(r) = e.expr else { return Err(self.internal("no reduction")) };
        if let Some(iname) = r.inames.get(depth) {
            return self
                .reduction_loop(*iname, &mut |this| this.reduction_nest(e, body, name, ty, depth + 1));
        }
        self.prelude.push(Block::new());
        let value = self.value(body, ty.part());
        let mut code = self.take_prelude()?;
        let value = self.stored(self.clamped(value?, Some(r.op), ty), ty);
        code.push(super::insn::update(Place::scalar(name.clone()), r.op, ty, value, None));
        Ok(code)
    }
}

/// The type in which a real is computed.
fn real_type(ty: ExprType, weak: ScalarType) -> ScalarType {
    match ty {
        ExprType::Scalar(ty) => ty,
        ExprType::Bool | ExprType::Literal | ExprType::Index | ExprType::WeakReal | ExprType::WeakComplex => {
            weak
        }
    }
}

fn comparison(op: BinaryOp) -> Op {
    match op {
        BinaryOp::Lt => Op::Lt,
        BinaryOp::Le => Op::Le,
        BinaryOp::Eq => Op::Eq,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::Mod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or => Op::Ne,
    }
}

/// What a kernel in scalar form does not have.
pub(super) const NO_RECORDS: &str = "a record that is not taken apart";

/// The value that an operator does not change.
fn neutral(op: UpdateOp, ty: ScalarType) -> Expr {
    let value = op.integer_of_nothing(ty);
    match ty.class() {
        Class::Real => Expr::Real(op.real_of_nothing(), ty),
        Class::Complex => {
            let parts = [op.real_of_nothing(), 0.0].map(|part| Expr::Real(part, ty.part()));
            Expr::Complex(ComplexOp::Make, ty, parts.into())
        }
        Class::Word => Expr::Int(value, ty),
        Class::Truth => Expr::Bool(value != 0),
        Class::Exact if ty == ScalarType::I32 || matches!(op, UpdateOp::Add | UpdateOp::Mul) => {
            Expr::int(value)
        }
        Class::Exact | Class::Record => Expr::Int(value, ScalarType::I64),
    }
}

/// An operation on words of a type; none if words have no such operation.
fn word_binary(op: BinaryOp, ty: ScalarType, a: Expr, b: Expr) -> Option<Value> {
    let function = |f| Value::Word(Expr::IntCall(f, ty, Box::new(a.clone()), Box::new(b.clone())), ty);
    let of = |op| Value::Word(Expr::binary(op, a.clone(), b.clone()), ty);
    Some(match op {
        BinaryOp::Add => of(Op::Add),
        BinaryOp::Sub => of(Op::Sub),
        BinaryOp::Mul => of(Op::Mul),
        // no word is negative
        BinaryOp::FloorDiv | BinaryOp::TruncDiv => of(Op::Div),
        BinaryOp::Mod | BinaryOp::TruncRem => of(Op::Rem),
        BinaryOp::BitAnd => of(Op::BitAnd),
        BinaryOp::BitOr => of(Op::BitOr),
        BinaryOp::BitXor => of(Op::BitXor),
        BinaryOp::Min => function(IntFn::Min),
        BinaryOp::Max => function(IntFn::Max),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
            Value::Bool(Expr::binary(comparison(op), a, b))
        }
        BinaryOp::Div | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::And | BinaryOp::Or => return None,
    })
}
