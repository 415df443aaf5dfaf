//! Lowered expressions with their types, and how they become operands.

use super::node::{Complex, ComplexOp, Int, Number, Real, Truth};
use crate::op::{OpKind, Tally};
use kingpost_ir::expr::MathFn;
use kingpost_ir::types::ScalarType;
use kingpost_ir::typing::{ExprType, TypeError};

/// A lowered expression and its type.
pub(super) enum Typed {
    Truth(Truth),
    Int(Int, ExprType),
    Real(Real, ExprType),
    Complex(Complex, ExprType),
}

pub(super) type Lowered<T> = Result<T, TypeError>;

pub(super) fn is_single(ty: ExprType) -> bool {
    ty.part() == ExprType::Scalar(ScalarType::F32)
}

pub(super) fn tally(kind: OpKind, ty: ExprType) -> Tally {
    Tally::new(kind, ty.scalar().unwrap_or(ScalarType::I64))
}

impl Typed {
    pub(super) fn ty(&self) -> ExprType {
        match self {
            Self::Truth(_) => ExprType::Bool,
            Self::Int(_, ty) | Self::Real(_, ty) | Self::Complex(_, ty) => *ty,
        }
    }

    /// [`kingpost_ir::TypedExpr::is_narrow`].
    pub(super) fn is_narrow(&self) -> bool {
        match self {
            Self::Int(Int::Const(c), ExprType::Literal) => i32::try_from(*c).is_ok(),
            Self::Int(_, ty) => *ty == ExprType::Scalar(ScalarType::I32),
            Self::Truth(_) | Self::Real(..) | Self::Complex(..) => false,
        }
    }

    /// The same value as an operand of an operation of type `ty`.
    pub(super) fn coerce(self, ty: ExprType) -> Self {
        if ty.is_complex() {
            return coerced(self, ty);
        }
        match self {
            Self::Int(e, _) if ty.is_real() => Self::Real(Real::FromInt(Box::new(e), is_single(ty)), ty),
            Self::Int(e, _) => Self::Int(e, ty),
            Self::Real(mut e, ExprType::WeakReal) => {
                if is_single(ty) {
                    narrow(&mut e);
                }
                Self::Real(e, ty)
            }
            Self::Real(e, _) => Self::Real(e, ty),
            other @ (Self::Truth(_) | Self::Complex(..)) => other,
        }
    }

    pub(super) fn mismatch<T>(&self, needed: &'static str) -> Lowered<T> {
        Err(TypeError::Operand { op: "expression".into(), needed, found: self.ty() })
    }

    pub(super) fn into_int(self) -> Lowered<Int> {
        match self {
            Self::Int(e, _) => Ok(e),
            Self::Real(..) | Self::Complex(..) | Self::Truth(_) => self.mismatch("an integer"),
        }
    }

    pub(super) fn into_real(self) -> Lowered<Real> {
        match self {
            Self::Real(e, _) => Ok(e),
            Self::Int(..) | Self::Complex(..) | Self::Truth(_) => self.mismatch("a real number"),
        }
    }

    pub(super) fn into_complex(self) -> Lowered<Complex> {
        match self {
            Self::Complex(e, _) => Ok(e),
            Self::Int(..) | Self::Real(..) | Self::Truth(_) => self.mismatch("a complex number"),
        }
    }

    pub(super) fn into_truth(self) -> Lowered<Truth> {
        match self {
            Self::Truth(e) => Ok(e),
            Self::Int(..) | Self::Real(..) | Self::Complex(..) => self.mismatch("a truth value"),
        }
    }

    pub(super) fn into_number(self) -> Lowered<Number> {
        match self {
            Self::Real(e, _) => Ok(Number::Real(e)),
            Self::Complex(e, _) => Ok(Number::Complex(e)),
            Self::Int(e, _) => Ok(Number::Int(e)),
            Self::Truth(e) => Ok(Number::Int(Int::FromTruth(Box::new(e)))),
        }
    }
}

/// Makes a tree of literals work in `f32`: all of it is as weak as its root.
fn narrow(e: &mut Real) {
    match e {
        Real::Const(c) => *c = f64::from(*c as f32),
        Real::FromInt(_, single) | Real::FromU64(_, single) => *single = true,
        Real::Neg(a, tally) => {
            *tally = tally.single();
            narrow(a);
        }
        Real::Arith { single, tally, a, b, .. } => {
            (*single, *tally) = (true, tally.single());
            narrow(a);
            narrow(b);
        }
        Real::Call { single, tally, args, .. } => {
            (*single, *tally) = (true, tally.single());
            args.iter_mut().for_each(narrow);
        }
        Real::Part { single, tally, of, .. } => {
            (*single, *tally) = (true, tally.single());
            narrow_complex(of);
        }
        Real::Select(_, a, b) => {
            narrow(a);
            narrow(b);
        }
        Real::Reduce { single, tally, body, .. } => {
            (*single, *tally) = (true, tally.single());
            narrow(body);
        }
        // loads and casts have a type of their own, so a weak tree holds none
        Real::Load(_) | Real::Round(_) | Real::Half(..) => {}
    }
}

/// A complex number of its parts, which costs nothing.
pub(super) fn of_parts(re: Real, im: Real, ty: ExprType) -> Complex {
    let (single, tally) = (is_single(ty), tally(OpKind::Math(MathFn::Complex), ty));
    Complex::Op { op: ComplexOp::Of, single, tally, times: 0, reals: vec![re, im], args: Vec::new() }
}

/// Makes a tree of literals work in `f32`: all of it is as weak as its root.
fn narrow_complex(e: &mut Complex) {
    match e {
        Complex::Op { single, tally, reals, args, .. } => {
            (*single, *tally) = (true, tally.single());
            reals.iter_mut().for_each(narrow);
            args.iter_mut().for_each(narrow_complex);
        }
        Complex::Select(_, a, b) => [a, b].into_iter().for_each(|e| narrow_complex(e)),
        Complex::Reduce { single, tally, body, .. } => {
            (*single, *tally) = (true, tally.single());
            narrow_complex(body);
        }
        // a load has a type of its own, so a weak tree holds none
        Complex::Load(_) => {}
    }
}

/// Any number as an operand of an operation of the complex type `ty`.
fn coerced(value: Typed, ty: ExprType) -> Typed {
    match value {
        Typed::Complex(mut e, ExprType::WeakComplex) => {
            if is_single(ty) {
                narrow_complex(&mut e);
            }
            Typed::Complex(e, ty)
        }
        Typed::Complex(e, _) => Typed::Complex(e, ty),
        real @ (Typed::Truth(_) | Typed::Int(..) | Typed::Real(..)) => match real.coerce(ty.part()) {
            Typed::Real(re, _) => Typed::Complex(of_parts(re, Real::Const(0.0), ty), ty),
            other @ (Typed::Truth(_) | Typed::Int(..) | Typed::Complex(..)) => other,
        },
    }
}

pub(super) fn joined(op: &str, a: &Typed, b: &Typed) -> Lowered<ExprType> {
    let (left, right) = (a.ty(), b.ty());
    left.join(right).ok_or(TypeError::Mismatch { op: op.into(), left, right })
}
