//! Expressions with complex values.

use super::lowered::{Lowered, Typed, is_single, joined, of_parts, tally};
use super::node::{Comparison, Complex, ComplexFn, ComplexOp, Part, Real, RealOp, Truth};
use crate::op::OpKind;
use kingpost_ir::expr::MathFn;
use kingpost_ir::typing::ExprType;

/// An operation that is done once.
fn op(op: ComplexOp, kind: OpKind, ty: ExprType, reals: Vec<Real>, args: Vec<Complex>) -> Complex {
    Complex::Op { op, single: is_single(ty), tally: tally(kind, ty), times: 1, reals, args }
}

/// Converts a number to a complex type; a real was converted to that of the parts.
pub(super) fn cast(value: Typed, to: ExprType) -> Lowered<Complex> {
    let from = value.ty();
    Ok(match value {
        Typed::Complex(a, _) if is_single(to) && !is_single(from) => {
            let (single, tally) = (true, tally(OpKind::Math(MathFn::Complex), to));
            Complex::Op { op: ComplexOp::Round, single, tally, times: 0, reals: Vec::new(), args: vec![a] }
        }
        Typed::Complex(a, _) => a,
        real @ (Typed::Truth(_) | Typed::Int(..) | Typed::Real(..)) => {
            of_parts(real.into_real()?, Real::Const(0.0), to)
        }
    })
}

/// A sum, a difference, a product or a quotient, of two complex numbers or of one and a real.
pub(super) fn arithmetic(real: RealOp, kind: OpKind, ty: ExprType, a: Typed, b: Typed) -> Lowered<Typed> {
    let mixed = |op, x: Typed, z: Typed| {
        let part = ty.part();
        let (x, z) = (x.coerce(part).into_real()?, z.coerce(ty).into_complex()?);
        // a sum is one operation on reals, a product is two
        let times = if kind == OpKind::Add { 1 } else { 2 };
        let (single, tally) = (is_single(ty), tally(kind, part));
        Ok(Complex::Op { op, single, tally, times, reals: vec![x], args: vec![z] })
    };
    let e: Lowered<Complex> = match (&a, &b, real) {
        (Typed::Complex(..), Typed::Complex(..), _) | (_, Typed::Complex(..), RealOp::Div) => {
            let operator = match real {
                RealOp::Add => ComplexOp::Add,
                RealOp::Sub => ComplexOp::Sub,
                RealOp::Mul => ComplexOp::Mul,
                RealOp::Div => ComplexOp::Div,
                RealOp::Mod | RealOp::Min | RealOp::Max => return a.mismatch("operands with an order"),
            };
            Ok(op(
                operator,
                kind,
                ty,
                Vec::new(),
                vec![a.coerce(ty).into_complex()?, b.coerce(ty).into_complex()?],
            ))
        }
        (Typed::Complex(..), _, RealOp::Add) => mixed(ComplexOp::Plus, b, a),
        (Typed::Complex(..), _, RealOp::Sub) => mixed(ComplexOp::Minus, b, a),
        (Typed::Complex(..), _, RealOp::Mul) => mixed(ComplexOp::Scale, b, a),
        (Typed::Complex(..), _, RealOp::Div) => mixed(ComplexOp::Shrink, b, a),
        (_, _, RealOp::Add) => mixed(ComplexOp::Plus, a, b),
        (_, _, RealOp::Sub) => mixed(ComplexOp::From, a, b),
        (_, _, RealOp::Mul) => mixed(ComplexOp::Scale, a, b),
        (_, _, RealOp::Div | RealOp::Mod | RealOp::Min | RealOp::Max) => {
            return a.mismatch("operands with an order");
        }
    };
    Ok(Typed::Complex(e?, ty))
}

/// Whether two numbers are equal, or differ.
pub(super) fn compare(comparison: Comparison, a: Typed, b: Typed) -> Lowered<Typed> {
    let ty = joined("compare", &a, &b)?;
    if matches!(comparison, Comparison::Lt | Comparison::Le) {
        return a.mismatch("operands with an order");
    }
    let (equal, tally) = (comparison == Comparison::Eq, tally(OpKind::Compare, ty));
    let (a, b) = (a.coerce(ty).into_complex()?, b.coerce(ty).into_complex()?);
    Ok(Typed::Truth(Truth::Complex { equal, tally, a, b }))
}

/// The negative of a complex number, or its conjugate.
pub(super) fn mirrored(conjugate: bool, a: Complex, ty: ExprType) -> Typed {
    let (operator, kind) = match conjugate {
        true => (ComplexOp::Conj, OpKind::Math(MathFn::Conj)),
        false => (ComplexOp::Neg, OpKind::Neg),
    };
    Typed::Complex(op(operator, kind, ty, Vec::new(), vec![a]), ty)
}

/// A function that makes a complex number or takes one, with a result of type `ty`; none for others.
pub(super) fn call(function: MathFn, args: Vec<Typed>, ty: ExprType) -> Lowered<Result<Typed, Vec<Typed>>> {
    let parts =
        [(MathFn::RealPart, Part::Real), (MathFn::ImagPart, Part::Imaginary), (MathFn::Abs, Part::Size)];
    let functions = [
        (MathFn::Exp, ComplexFn::Exp),
        (MathFn::Log, ComplexFn::Log),
        (MathFn::Sqrt, ComplexFn::Sqrt),
        (MathFn::Sin, ComplexFn::Sin),
        (MathFn::Cos, ComplexFn::Cos),
        (MathFn::Pow, ComplexFn::Pow),
    ];
    let part = parts.iter().find(|(of, _)| *of == function);
    if part.is_none() && !ty.is_complex() {
        return Ok(Err(args));
    }
    let to = if function == MathFn::Complex { ty.part() } else { ty };
    let mut operands = args.into_iter();
    let (first, second) = (operands.next(), operands.next());
    Ok(Ok(match (first, second) {
        (Some(re), Some(im)) if function == MathFn::Complex => {
            let (re, im) = (re.coerce(to).into_real()?, im.coerce(to).into_real()?);
            Typed::Complex(of_parts(re, im, ty), ty)
        }
        (Some(of), None) if function == MathFn::Conj => mirrored(true, of.into_complex()?, ty),
        (Some(of), None) if part.is_some() => {
            let (single, tally) = (is_single(ty), tally(OpKind::Math(function), of.ty()));
            let of = Box::new(of.into_complex()?);
            let part = part.map_or(Part::Size, |(_, part)| *part);
            Typed::Real(Real::Part { part, single, tally, of }, ty)
        }
        (Some(a), b) => {
            let Some((_, f)) = functions.iter().find(|(of, _)| *of == function) else {
                return a.mismatch("a real number");
            };
            let args = [Some(a), b].into_iter().flatten().map(|a| a.coerce(ty).into_complex());
            let args = args.collect::<Lowered<_>>()?;
            Typed::Complex(op(ComplexOp::Function(*f), OpKind::Math(function), ty, Vec::new(), args), ty)
        }
        (None, _) => return Ok(Err(Vec::new())),
    }))
}
