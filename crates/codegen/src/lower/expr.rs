//! Expressions: types settled, integers kept affine, reductions moved before the statement.

use super::Lower;
use crate::ast::{Block, Declare, Expr, IntFn, Name, Op, Place, Stmt};
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::value::{Value, arithmetic, divide};
use purlin_ir::affine::MAX_TERMS;
use purlin_ir::{Affine, BinaryOp, Expr as Ir, MathFn, Reduction, ScalarType, UnaryOp, UpdateOp};

impl<'k> Lower<'k> {
    /// An expression without rules, in this context.
    pub(super) fn expr(&mut self, e: &Ir) -> Result<Value, CodegenError> {
        Ok(match e {
            Ir::Int(c) => Value::Affine(Affine::constant(*c)),
            Ir::Real(r) => Value::Weak(Expr::Real(r.0, ScalarType::F64)),
            Ir::Iname(i) => Value::Affine(self.env.resolve(&Affine::iname(*i))),
            Ir::Load(access) => self.load(access)?,
            Ir::Unary(UnaryOp::Neg, a) => match self.expr(a)? {
                Value::Affine(e) => Value::Affine(e.times(-1)),
                Value::Real(e, ty) => Value::Real(Expr::Neg(Box::new(e)), ty),
                Value::Weak(Expr::Real(v, ty)) => Value::Weak(Expr::Real(-v, ty)),
                Value::Weak(e) => Value::Weak(Expr::Neg(Box::new(e))),
                integer => arithmetic(&self.env, Op::Sub, Value::Affine(Affine::constant(0)), integer),
            },
            Ir::Unary(UnaryOp::Not, a) => Value::Bool(Expr::Not(Box::new(self.condition(a)?))),
            Ir::Binary(op, a, b) => self.binary(*op, a, b)?,
            Ir::Call(f, args) => self.call(*f, args)?,
            Ir::Cast(ty, a) => self.cast(*ty, a)?,
            Ir::Select(c, a, b) => self.select(c, a, b)?,
            Ir::Reduce(r) => self.reduce(r)?,
            Ir::Rule(rule, args) => {
                let expanded = self.expand_rule(*rule, args);
                self.expr(&expanded)?
            }
            Ir::RuleParam(_) => return Err(self.internal("a rule parameter outside of a rule")),
        })
    }

    /// The body of a rule with its arguments in place.
    fn expand_rule(&self, rule: purlin_ir::RuleId, args: &[Ir]) -> Ir {
        self.kernel.rules[rule].body.map(&mut |e| match e {
            Ir::RuleParam(k) => args.get(k as usize).cloned().unwrap_or(Ir::RuleParam(k)),
            other => other,
        })
    }

    /// Code of a truth value.
    pub(super) fn condition(&mut self, e: &Ir) -> Result<Expr, CodegenError> {
        Ok(self.expr(e)?.into_expr(&self.env))
    }

    fn binary(&mut self, op: BinaryOp, a: &Ir, b: &Ir) -> Result<Value, CodegenError> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            return self.logical(op, a, b);
        }
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        let real_division = op == BinaryOp::Div;
        if a.is_integer() && b.is_integer() && !real_division {
            return Ok(self.integer_binary(op, a, b));
        }
        let ty = join(a.real_type(), b.real_type());
        let weak = ty.is_none();
        let ty = ty.unwrap_or(ScalarType::F64);
        let convert = |v: Value| match v {
            // C converts the narrower operand itself.
            Value::Real(e, _) => e,
            other => other.into_real(&self.env, ty),
        };
        let code = match op {
            BinaryOp::Add => Expr::binary(Op::Add, convert(a), convert(b)),
            BinaryOp::Sub => Expr::binary(Op::Sub, convert(a), convert(b)),
            BinaryOp::Mul => Expr::binary(Op::Mul, convert(a), convert(b)),
            BinaryOp::Div => Expr::binary(Op::Div, convert(a), convert(b)),
            BinaryOp::Min | BinaryOp::Max => {
                let f = if op == BinaryOp::Min { MathFn::Fmin } else { MathFn::Fmax };
                Expr::Call(f, ty, vec![a.into_real(&self.env, ty), b.into_real(&self.env, ty)])
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
                return Ok(Value::Bool(Expr::binary(comparison(op), convert(a), convert(b))));
            }
            BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::And | BinaryOp::Or => {
                return Err(self.internal(format!("`{}` of reals", op.symbol())));
            }
        };
        Ok(if weak { Value::Weak(code) } else { Value::Real(code, ty) })
    }

    fn integer_binary(&self, op: BinaryOp, a: Value, b: Value) -> Value {
        let function = |f: IntFn| {
            if let (Value::Affine(n), Value::Affine(d)) = (&a, &b)
                && let Some(d) = d.as_constant().filter(|d| *d > 0)
            {
                let floor = crate::factors::quotient(&self.env, n, d);
                let value = if f == IntFn::Mod { n.minus(&floor.times(d)) } else { floor };
                if value.in_bounds() && value.size() <= MAX_TERMS {
                    return Value::Affine(value);
                }
            }
            let (code, ty, range) = divide(&self.env, a.clone(), b.clone(), f);
            Value::Int(code, ty, range)
        };
        match op {
            BinaryOp::Add => arithmetic(&self.env, Op::Add, a, b),
            BinaryOp::Sub => arithmetic(&self.env, Op::Sub, a, b),
            BinaryOp::Mul => arithmetic(&self.env, Op::Mul, a, b),
            BinaryOp::FloorDiv => function(IntFn::FloorDiv),
            BinaryOp::Mod => function(IntFn::Mod),
            BinaryOp::Min | BinaryOp::Max => self.integer_extreme(op == BinaryOp::Min, &a, &b),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => Value::Bool(Expr::binary(
                comparison(op),
                a.as_integer(&self.env).0,
                b.as_integer(&self.env).0,
            )),
            // Real division and logic do not come here.
            BinaryOp::Div | BinaryOp::And | BinaryOp::Or => a,
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
    fn logical(&mut self, op: BinaryOp, a: &Ir, b: &Ir) -> Result<Value, CodegenError> {
        let left = self.condition(a)?;
        let and = op == BinaryOp::And;
        let when = if and { left.clone() } else { Expr::Not(Box::new(left.clone())) };
        let right = self.under(when, |this| this.condition(b))?;
        Ok(Value::Bool(Expr::binary(if and { Op::And } else { Op::Or }, left, right)))
    }

    fn select(&mut self, c: &Ir, a: &Ir, b: &Ir) -> Result<Value, CodegenError> {
        let c = self.condition(c)?;
        let a = self.under(c.clone(), |this| this.expr(a))?;
        let b = self.under(Expr::Not(Box::new(c.clone())), |this| this.expr(b))?;
        let choose = |c, a, b| Expr::Select(Box::new(c), Box::new(a), Box::new(b));
        if a.is_integer() && b.is_integer() {
            let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(&self.env), b.as_integer(&self.env));
            let ty = if ta == ScalarType::I64 || tb == ScalarType::I64 {
                ScalarType::I64
            } else {
                ScalarType::I32
            };
            return Ok(Value::Int(choose(c, ea, eb), ty, ra.join(rb)));
        }
        Ok(match join(a.real_type(), b.real_type()) {
            Some(ty) => Value::Real(choose(c, a.into_real(&self.env, ty), b.into_real(&self.env, ty)), ty),
            None => {
                let ty = ScalarType::F64;
                Value::Weak(choose(c, a.into_real(&self.env, ty), b.into_real(&self.env, ty)))
            }
        })
    }

    /// Lowers under a condition: statements that it needs before stand in an `if`.
    fn under<T>(
        &mut self,
        condition: Expr,
        lower: impl FnOnce(&mut Self) -> Result<T, CodegenError>,
    ) -> Result<T, CodegenError> {
        self.prelude.push(Block::new());
        let result = lower(self);
        let code = self.prelude.pop().unwrap_or_default();
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

    fn call(&mut self, f: MathFn, args: &[Ir]) -> Result<Value, CodegenError> {
        let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
        let ty = args.iter().fold(None, |ty, a| join(ty, a.real_type()));
        let at = ty.unwrap_or(ScalarType::F64);
        let args = args.into_iter().map(|a| a.into_real(&self.env, at)).collect();
        let code = Expr::Call(f, at, args);
        Ok(if ty.is_none() { Value::Weak(code) } else { Value::Real(code, at) })
    }

    fn cast(&mut self, ty: ScalarType, a: &Ir) -> Result<Value, CodegenError> {
        let value = self.expr(a)?;
        if ty.is_float() {
            let literal = match &value {
                Value::Affine(e) => e.as_constant().is_some(),
                Value::Weak(_) => true,
                Value::Int(..) | Value::Real(..) | Value::Bool(_) => false,
            };
            let code = match value {
                Value::Real(e, from) if from == ty => e,
                v if literal => v.into_real(&self.env, ty),
                v => Expr::Cast(ty, Box::new(v.into_expr(&self.env))),
            };
            return Ok(Value::Real(code, ty));
        }
        let range = if ty == ScalarType::I32 { Interval::I32 } else { Interval::ALL };
        Ok(match value {
            Value::Affine(e) if ty == ScalarType::I64 || self.env.range(&e).fits_i32() => Value::Affine(e),
            Value::Int(e, from, r) if ty == from || (ty == ScalarType::I64 && from == ScalarType::I32) => {
                Value::Int(e, from, r)
            }
            other => Value::Int(Expr::Cast(ty, Box::new(other.into_expr(&self.env))), ty, range),
        })
    }

    /// A reduction as an accumulator and loops before the statement.
    fn reduce(&mut self, r: &Reduction) -> Result<Value, CodegenError> {
        let stem = format!("acc_{}", r.inames.first().map_or("r", |i| self.env.name(*i)));
        let name = self.env.names.fresh(&stem);
        let mut ty = None;
        let code = self.reduction_nest(r, &name, &mut ty, 0)?;
        let ty = match ty {
            Some(ty) => ty,
            // Every loop was empty: the type decides the neutral element all the same.
            None => {
                self.kernel.type_of(&r.body, &[]).ok().and_then(|t| t.scalar()).unwrap_or(ScalarType::F64)
            }
        };
        // the kernel's type decides the limits, also where the code computes in a wider one
        let limits = self.kernel.type_of(&r.body, &[]).ok().and_then(|t| t.scalar());
        let narrow = limits == Some(ScalarType::I32);
        let value = Some(if narrow { neutral(r.op, ScalarType::I32) } else { neutral(r.op, ty) });
        self.before(vec![Stmt::Declare(Declare::scalar(name.clone(), ty, value))]);
        self.before(code);
        let code = Expr::var(&name);
        Ok(if ty.is_float() { Value::Real(code, ty) } else { Value::Int(code, ty, Interval::ALL) })
    }

    fn reduction_nest(
        &mut self,
        r: &Reduction,
        name: &Name,
        ty: &mut Option<ScalarType>,
        depth: usize,
    ) -> Result<Block, CodegenError> {
        if let Some(iname) = r.inames.get(depth) {
            return self.reduction_loop(*iname, &mut |this| this.reduction_nest(r, name, ty, depth + 1));
        }
        self.prelude.push(Block::new());
        let value = self.expr(&r.body);
        let mut code = self.prelude.pop().unwrap_or_default();
        let value = value?;
        let element = match &value {
            Value::Real(_, ty) => *ty,
            Value::Weak(_) | Value::Bool(_) => ScalarType::F64,
            Value::Affine(_) | Value::Int(..) => ScalarType::I64,
        };
        *ty = Some(element);
        let value = value.into_expr(&self.env);
        code.push(super::insn::update(Place::scalar(name.clone()), r.op, element, value, None));
        Ok(code)
    }
}

fn join(a: Option<ScalarType>, b: Option<ScalarType>) -> Option<ScalarType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.bytes() >= b.bytes() { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn comparison(op: BinaryOp) -> Op {
    match op {
        BinaryOp::Lt => Op::Lt,
        BinaryOp::Le => Op::Le,
        BinaryOp::Eq => Op::Eq,
        _ => Op::Ne,
    }
}

/// The value that an operator does not change.
fn neutral(op: UpdateOp, ty: ScalarType) -> Expr {
    let real = |v: f64| Expr::Real(v, ty);
    match (op, ty.is_float()) {
        (UpdateOp::Add, true) => real(0.0),
        (UpdateOp::Mul, true) => real(1.0),
        (UpdateOp::Min, true) => real(f64::INFINITY),
        (UpdateOp::Max, true) => real(f64::NEG_INFINITY),
        (UpdateOp::Add, false) => Expr::int(0),
        (UpdateOp::Mul, false) => Expr::int(1),
        (UpdateOp::Min, false) if ty == ScalarType::I32 => Expr::int(i32::MAX.into()),
        (UpdateOp::Max, false) if ty == ScalarType::I32 => Expr::int(i32::MIN.into()),
        (UpdateOp::Min, false) => Expr::Int(i64::MAX, ScalarType::I64),
        (UpdateOp::Max, false) => Expr::Int(i64::MIN, ScalarType::I64),
    }
}
