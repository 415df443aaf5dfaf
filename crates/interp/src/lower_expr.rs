//! Expressions: types by the rules of [`kingpost_ir::typing`], implicit conversions made explicit.

use super::lower_complex;
use super::lowered::{Lowered, Typed, is_single, joined, tally};
use super::node::{Comparison, Complex, Conversion, Int, IntOp, Place, Real, RealOp, Truth};
use crate::op::OpKind;
use kingpost_ir::ExternalFn;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, Reduction, UnaryOp};
use kingpost_ir::ids::{Id, RuleId, VarId};
use kingpost_ir::kernel::Kernel;
use kingpost_ir::types::{Class, ScalarType};
use kingpost_ir::typing::{ExprType, TypeError, type_of_call};

/// What expressions are lowered against.
#[derive(Clone, Copy)]
pub(super) struct Lowering<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) params: &'k [Option<i64>],
    /// Whether this is an index, in which integers are exact.
    pub(super) in_index: bool,
}

/// Arguments of the rule whose body is being expanded; they live in the environment around it.
pub(super) struct Frame<'e> {
    args: &'e [Expr],
    outer: Option<&'e Frame<'e>>,
}

impl Lowering<'_> {
    pub(super) fn place(&self, access: &Access) -> Lowered<Place> {
        self.place_in(access, None)
    }

    fn place_in(&self, access: &Access, frame: Option<&Frame<'_>>) -> Lowered<Place> {
        self.kernel.vars.get(access.var).map_or(Ok(()), |var| rank(&var.name, var.shape.len(), access))?;
        let exact = Self { in_index: true, ..*self };
        let index = access.index.iter().map(|e| exact.value(e, frame)?.into_int());
        Ok(Place { var: access.var, index: index.collect::<Lowered<_>>()? })
    }

    /// The lowered form of an expression; `frame` holds the arguments its rule parameters stand
    /// for.
    pub(super) fn value(&self, e: &Expr, frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        Ok(match e {
            Expr::Int(c) => Typed::Int(Int::Const(*c), ExprType::Literal),
            Expr::Real(c) => Typed::Real(Real::Const(c.0), ExprType::WeakReal),
            Expr::Iname(i) => Typed::Int(Int::Iname(*i), ExprType::Index),
            Expr::Load(access) => self.load(access, frame)?,
            Expr::Unary(UnaryOp::Not, a) => {
                Typed::Truth(Truth::Not(Box::new(self.value(a, frame)?.into_truth()?)))
            }
            Expr::Unary(op @ (UnaryOp::BitNot | UnaryOp::Bits), a) => bits(*op, self.value(a, frame)?)?,
            Expr::Unary(UnaryOp::Field(record, _), _) | Expr::Call(MathFn::Record(record), _) => {
                return Err(not_taken_apart(ExprType::Scalar(ScalarType::Record(*record))));
            }
            Expr::Unary(UnaryOp::Neg, a) => match self.value(a, frame)? {
                Typed::Int(a, ty) if ty.word().is_some() => {
                    let (a, b) = (Box::new(Int::Const(0)), Box::new(a));
                    let tally = tally(OpKind::Neg, ty);
                    Typed::Int(Int::Arith { op: IntOp::Sub, word: ty.word(), tally, a, b }, ty)
                }
                Typed::Int(a, ty) => self.held(Typed::Int(Int::Neg(Box::new(a), tally(OpKind::Neg, ty)), ty)),
                Typed::Real(a, ty) => Typed::Real(Real::Neg(Box::new(a), tally(OpKind::Neg, ty)), ty),
                Typed::Complex(a, ty) => lower_complex::mirrored(false, a, ty),
                truth @ Typed::Truth(_) => return truth.mismatch("a number"),
            },
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, frame)?, self.value(b, frame)?);
                let narrow = a.is_narrow() && (b.is_narrow() || *op == BinaryOp::Shl);
                let value = binary(*op, a, b)?;
                if narrow { self.held(value) } else { value }
            }
            Expr::Call(MathFn::External(function), args) => self.external(*function, args, frame)?,
            Expr::Call(function, args) => self.call(*function, args, frame)?,
            Expr::Cast(ty, a) => cast(*ty, self.value(a, frame)?)?,
            Expr::Select(c, a, b) => self.select(c, a, b, frame)?,
            Expr::Reduce(r) => self.reduce(r, frame)?,
            Expr::Rule(rule, args) => self.rule(*rule, args, frame)?,
            Expr::RuleParam(k) => self.rule_param(*k, frame)?,
        })
    }

    /// A sum, a difference or a product that has to fit `i32`: see [`kingpost_ir::typing`].
    fn held(&self, value: Typed) -> Typed {
        match value {
            Typed::Int(e, ty) if self.is_held(ty) && e.may_leave_its_type() => {
                Typed::Int(Int::Converted(Conversion::Fits(ScalarType::I32), Box::new(e)), ty)
            }
            other @ (Typed::Truth(_) | Typed::Int(..) | Typed::Real(..) | Typed::Complex(..)) => other,
        }
    }

    fn is_held(&self, ty: ExprType) -> bool {
        ty == ExprType::Scalar(ScalarType::I32) && !self.in_index
    }

    fn load(&self, access: &Access, frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        let ty = self.kernel.vars[access.var].ty;
        let scalar = ty.value_type();
        if let Some(value) = self.param(access.var) {
            return Ok(Typed::Int(Int::Const(value), scalar));
        }
        let place = self.place_in(access, frame)?;
        Ok(match ty.class() {
            Class::Record => return Err(not_taken_apart(scalar)),
            Class::Real => Typed::Real(Real::Load(place), scalar),
            Class::Complex => Typed::Complex(Complex::Load(place), scalar),
            Class::Exact | Class::Word => Typed::Int(Int::Load(place), scalar),
            Class::Truth => Typed::Truth(Truth::Nonzero(Box::new(Int::Load(place)))),
        })
    }

    fn param(&self, var: VarId) -> Option<i64> {
        self.params.get(var.index()).copied().flatten()
    }

    fn call(&self, function: MathFn, args: &[Expr], frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        let args = args.iter().map(|a| self.value(a, frame)).collect::<Lowered<Vec<_>>>()?;
        let ty = type_of_call(function, args.len(), args.iter().map(|a| Ok(a.ty())))?;
        let args = match lower_complex::call(function, args, ty)? {
            Ok(value) => return Ok(value),
            Err(args) => args,
        };
        let args = args.into_iter().map(|a| a.coerce(ty).into_real()).collect::<Lowered<_>>()?;
        let tally = tally(OpKind::Math(function), ty);
        Ok(Typed::Real(Real::Call { function, single: is_single(ty), tally, args }, ty))
    }

    /// A declared function is what it computes. One of which that is not known can be counted, and not run.
    fn external(&self, function: ExternalFn, args: &[Expr], frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        if let Some(value) = function.applied(args) {
            return self.value(&value, frame);
        }
        let args = args.iter().map(|a| self.value(a, frame)).collect::<Lowered<Vec<_>>>()?;
        let ty = type_of_call(MathFn::External(function), args.len(), args.iter().map(|a| Ok(a.ty())))?;
        let real = |a: Typed| a.coerce(ExprType::Scalar(ScalarType::F64)).into_real();
        let args = args.into_iter().map(real).collect::<Lowered<_>>()?;
        let (function, result) = (MathFn::External(function), function.result);
        let (tally, single) = (tally(OpKind::External, ty), is_single(ty));
        let call = Real::Call { function, single, tally, args };
        let value = if ty.is_real() {
            Typed::Real(call, ty)
        } else {
            Typed::Int(Int::FromReal(Box::new(call), result), ty)
        };
        Ok(value)
    }

    fn select(&self, c: &Expr, a: &Expr, b: &Expr, frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        let c = Box::new(self.value(c, frame)?.into_truth()?);
        let (a, b) = (self.value(a, frame)?, self.value(b, frame)?);
        let ty = joined("if", &a, &b)?;
        match (a.coerce(ty), b.coerce(ty)) {
            (Typed::Int(a, _), Typed::Int(b, _)) => {
                Ok(Typed::Int(Int::Select(c, Box::new(a), Box::new(b)), ty))
            }
            (Typed::Complex(a, _), Typed::Complex(b, _)) => {
                Ok(Typed::Complex(Complex::Select(c, Box::new(a), Box::new(b)), ty))
            }
            (a, b) => {
                let (a, b) = (Box::new(a.into_real()?), Box::new(b.into_real()?));
                Ok(Typed::Real(Real::Select(c, a, b), ty))
            }
        }
    }

    fn reduce(&self, r: &Reduction, frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        let body = self.value(&r.body, frame)?;
        let (op, inames, ty) = (r.op, r.inames.clone(), body.ty());
        let tally = tally(OpKind::from(op), ty);
        Ok(match body {
            Typed::Real(body, _) => {
                let body = Box::new(body);
                Typed::Real(Real::Reduce { op, inames, single: is_single(ty), tally, body }, ty)
            }
            Typed::Complex(body, _) => {
                let body = Box::new(body);
                Typed::Complex(Complex::Reduce { op, inames, single: is_single(ty), tally, body }, ty)
            }
            Typed::Int(body, _) => {
                let body = Box::new(body);
                let of = if let ExprType::Scalar(of) = ty { of } else { ScalarType::I64 };
                let narrow = self.is_held(ty) && body.is_made_of_elements();
                let (neutral, word) = (op.integer_of_nothing(of), ty.word());
                Typed::Int(Int::Reduce { op, inames, neutral, narrow, word, tally, body }, ty)
            }
            Typed::Truth(body) => {
                let body = Box::new(Int::FromTruth(Box::new(body)));
                let neutral = op.integer_of_nothing(ScalarType::Bool);
                let all = Int::Reduce { op, inames, neutral, narrow: false, word: None, tally, body };
                Typed::Truth(Truth::Nonzero(Box::new(all)))
            }
        })
    }

    fn rule(&self, rule: RuleId, args: &[Expr], frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        self.value(&self.kernel.rules[rule].body, Some(&Frame { args, outer: frame }))
    }

    fn rule_param(&self, k: u32, frame: Option<&Frame<'_>>) -> Lowered<Typed> {
        match frame.and_then(|f| Some((f.args.get(k as usize)?, f.outer))) {
            Some((arg, outer)) => self.value(arg, outer),
            None => Err(TypeError::Arity { name: "rule".into(), needed: k as usize + 1, found: 0 }),
        }
    }
}

fn rank(name: &str, needed: usize, access: &Access) -> Lowered<()> {
    let found = access.index.len();
    if found == needed { Ok(()) } else { Err(TypeError::Rank { name: name.into(), needed, found }) }
}

fn cast(ty: ScalarType, a: Typed) -> Lowered<Typed> {
    let (to, from) = (ty.value_type(), a.ty());
    let single = is_single(to);
    Ok(match (a, ty.class()) {
        (a, Class::Truth | Class::Record) => return a.mismatch("a comparison with 0"),
        (a @ Typed::Complex(..), Class::Complex) => Typed::Complex(lower_complex::cast(a, to)?, to),
        (a @ Typed::Complex(..), Class::Real | Class::Exact | Class::Word) => {
            return a.mismatch("a real number");
        }
        (a, Class::Complex) => {
            let part = cast(ty.part(), a)?;
            Typed::Complex(lower_complex::cast(part, to)?, to)
        }
        (a, Class::Real) if ty.is_storage() => {
            let single = cast(ScalarType::F32, a)?.into_real()?;
            Typed::Real(Real::Half(Box::new(single), ty), to)
        }
        (Typed::Truth(a), Class::Real) => {
            Typed::Real(Real::FromInt(Box::new(Int::FromTruth(Box::new(a))), single), to)
        }
        (Typed::Truth(a), Class::Exact | Class::Word) => Typed::Int(Int::FromTruth(Box::new(a)), to),
        (Typed::Int(a, _), Class::Real) if from.word() == Some(ScalarType::U64) => {
            Typed::Real(Real::FromU64(Box::new(a), single), to)
        }
        (Typed::Int(a, _), Class::Real) => Typed::Real(Real::FromInt(Box::new(a), single), to),
        (Typed::Int(a, _), Class::Word) if ty == ScalarType::U32 => {
            Typed::Int(Int::Converted(Conversion::Wraps, Box::new(a)), to)
        }
        (Typed::Int(a, _), Class::Word) => Typed::Int(a, to),
        (Typed::Int(a, _), Class::Exact) => {
            let signed = match from.word() {
                Some(ScalarType::U64) => Int::Converted(Conversion::FromU64, Box::new(a)),
                Some(_) | None => a,
            };
            match ty == ScalarType::I64 {
                true => Typed::Int(signed, to),
                false => Typed::Int(Int::Converted(Conversion::Fits(ty), Box::new(signed)), to),
            }
        }
        (Typed::Real(a, _), Class::Real) if single && !is_single(from) => {
            Typed::Real(Real::Round(Box::new(a)), to)
        }
        (Typed::Real(a, _), Class::Real) => Typed::Real(a, to),
        (Typed::Real(a, _), Class::Exact | Class::Word) => Typed::Int(Int::FromReal(Box::new(a), ty), to),
    })
}

/// A kernel that is run is in scalar form.
fn not_taken_apart(found: ExprType) -> TypeError {
    TypeError::Operand { op: "run".into(), needed: "fields, not records", found }
}

/// The complement of an integer, or the bits of a word with a sign.
fn bits(op: UnaryOp, a: Typed) -> Lowered<Typed> {
    let (ty, tally) = (a.ty(), tally(OpKind::Bitwise, a.ty()));
    let a = Box::new(a.into_int()?);
    if op == UnaryOp::BitNot {
        let b = Box::new(Int::Const(-1));
        return Ok(Typed::Int(Int::Arith { op: IntOp::BitXor, word: ty.word(), tally, a, b }, ty));
    }
    Ok(match ty.word() {
        Some(ScalarType::U32) => {
            Typed::Int(Int::Converted(Conversion::Signed, a), ExprType::Scalar(ScalarType::I32))
        }
        Some(_) | None => Typed::Int(*a, ExprType::Scalar(ScalarType::I64)),
    })
}

/// A shift has the type of what is shifted.
fn shift(op: IntOp, a: Typed, b: Typed) -> Lowered<Typed> {
    let ty = if a.ty() == ExprType::Literal { ExprType::Index } else { a.ty() };
    let (a, b) = (Box::new(a.into_int()?), Box::new(b.into_int()?));
    Ok(Typed::Int(Int::Arith { op, word: ty.word(), tally: tally(OpKind::Bitwise, ty), a, b }, ty))
}

fn binary(op: BinaryOp, a: Typed, b: Typed) -> Lowered<Typed> {
    match op {
        BinaryOp::And => Ok(Typed::Truth(Truth::And(Box::new(a.into_truth()?), Box::new(b.into_truth()?)))),
        BinaryOp::Or => Ok(Typed::Truth(Truth::Or(Box::new(a.into_truth()?), Box::new(b.into_truth()?)))),
        BinaryOp::Lt => compare(Comparison::Lt, a, b),
        BinaryOp::Le => compare(Comparison::Le, a, b),
        BinaryOp::Eq => compare(Comparison::Eq, a, b),
        BinaryOp::Ne => compare(Comparison::Ne, a, b),
        BinaryOp::Add => arithmetic(OpKind::Add, Some(RealOp::Add), Some(IntOp::Add), a, b),
        BinaryOp::Sub => arithmetic(OpKind::Add, Some(RealOp::Sub), Some(IntOp::Sub), a, b),
        BinaryOp::Mul => arithmetic(OpKind::Mul, Some(RealOp::Mul), Some(IntOp::Mul), a, b),
        BinaryOp::Min => arithmetic(OpKind::MinMax, Some(RealOp::Min), Some(IntOp::Min), a, b),
        BinaryOp::Max => arithmetic(OpKind::MinMax, Some(RealOp::Max), Some(IntOp::Max), a, b),
        BinaryOp::Div => arithmetic(OpKind::Div, Some(RealOp::Div), None, a, b),
        BinaryOp::FloorDiv => arithmetic(OpKind::FloorDiv, None, Some(IntOp::FloorDiv), a, b),
        BinaryOp::Mod => arithmetic(OpKind::Mod, Some(RealOp::Mod), Some(IntOp::Mod), a, b),
        BinaryOp::TruncDiv => arithmetic(OpKind::FloorDiv, None, Some(IntOp::TruncDiv), a, b),
        BinaryOp::TruncRem => arithmetic(OpKind::Mod, None, Some(IntOp::TruncRem), a, b),
        BinaryOp::BitAnd => arithmetic(OpKind::Bitwise, None, Some(IntOp::BitAnd), a, b),
        BinaryOp::BitOr => arithmetic(OpKind::Bitwise, None, Some(IntOp::BitOr), a, b),
        BinaryOp::BitXor => arithmetic(OpKind::Bitwise, None, Some(IntOp::BitXor), a, b),
        BinaryOp::Shl => shift(IntOp::Shl, a, b),
        BinaryOp::Shr => shift(IntOp::Shr, a, b),
    }
}

fn compare(op: Comparison, a: Typed, b: Typed) -> Lowered<Typed> {
    let [a, b] = match (a, b) {
        (Typed::Truth(a), Typed::Truth(b)) => {
            [a, b].map(|truth| Typed::Int(Int::FromTruth(Box::new(truth)), ExprType::Scalar(ScalarType::I32)))
        }
        (a, b) => [a, b],
    };
    let ty = joined("compare", &a, &b)?;
    if ty.is_complex() {
        return lower_complex::compare(op, a, b);
    }
    let tally = tally(OpKind::Compare, ty);
    Ok(Typed::Truth(match (a.coerce(ty), b.coerce(ty)) {
        (Typed::Int(a, _), Typed::Int(b, _)) => Truth::Int { op, unsigned: ty.word().is_some(), tally, a, b },
        (a, b) => Truth::Real { op, tally, a: a.into_real()?, b: b.into_real()? },
    }))
}

fn arithmetic(kind: OpKind, real: Option<RealOp>, int: Option<IntOp>, a: Typed, b: Typed) -> Lowered<Typed> {
    let mut ty = joined(kind.name(), &a, &b)?;
    if kind == OpKind::Div && ty == ExprType::Literal {
        ty = ExprType::WeakReal;
    }
    if let (true, Some(op)) = (ty.is_complex(), real) {
        return lower_complex::arithmetic(op, kind, ty, a, b);
    }
    let tally = tally(kind, ty);
    match (a.coerce(ty), b.coerce(ty), real, int) {
        (Typed::Int(a, _), Typed::Int(b, _), _, Some(op)) => {
            let (a, b, word) = (Box::new(a), Box::new(b), ty.word());
            Ok(Typed::Int(Int::Arith { op, word, tally, a, b }, ty))
        }
        (Typed::Real(a, _), Typed::Real(b, _), Some(op), _) => {
            let (a, b) = (Box::new(a), Box::new(b));
            Ok(Typed::Real(Real::Arith { op, single: is_single(ty), tally, a, b }, ty))
        }
        (a, ..) => a.mismatch("operands the operation works on"),
    }
}
