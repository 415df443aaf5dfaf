//! Values of all work-items of a group.

use crate::ast::{Expr, IntFn, Op};
use kingpost_ir::ScalarType;

/// Whether values of a type are in floating point: reals, and complex numbers.
pub(super) fn is_real(ty: ScalarType) -> bool {
    ty.part().is_real()
}

/// The value of an expression in each work-item.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// An integer or a truth value that all have in common.
    Uniform(i64),
    /// An integer or a truth value of each.
    Lanes(Vec<i64>),
    /// An integer or a truth value that is not known.
    Unknown,
    /// A number in floating point, or a complex one.
    Real,
}

impl Value {
    /// The value of a work-item, if it is known.
    pub(super) fn at(&self, lane: usize) -> Option<i64> {
        match self {
            Self::Uniform(value) => Some(*value),
            Self::Lanes(values) => values.get(lane).copied(),
            Self::Unknown | Self::Real => None,
        }
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self, Self::Real)
    }

    /// A function of a value.
    pub(super) fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        match self {
            Self::Uniform(value) => Self::Uniform(f(*value)),
            Self::Lanes(values) => Self::Lanes(values.iter().map(|v| f(*v)).collect()).shared(),
            Self::Unknown => Self::Unknown,
            Self::Real => Self::Real,
        }
    }

    /// A function of two values; unknown where it has no result.
    pub(super) fn zip(&self, other: &Self, f: impl Fn(i64, i64) -> Option<i64>) -> Self {
        if self.is_real() || other.is_real() {
            return Self::Unknown;
        }
        let lanes = match (self, other) {
            (Self::Lanes(values), _) | (_, Self::Lanes(values)) => values.len(),
            (Self::Uniform(a), Self::Uniform(b)) => return f(*a, *b).map_or(Self::Unknown, Self::Uniform),
            (Self::Unknown | Self::Real, _) | (_, Self::Unknown | Self::Real) => return Self::Unknown,
        };
        let of_lane = |k| f(self.at(k)?, other.at(k)?);
        let values: Option<Vec<i64>> = (0..lanes).map(of_lane).collect();
        values.map_or(Self::Unknown, |values| Self::Lanes(values).shared())
    }

    /// One value, if all lanes have the same.
    pub(super) fn shared(self) -> Self {
        match self {
            Self::Lanes(values) if values.windows(2).all(|w| w[0] == w[1]) => {
                values.first().map_or(Self::Unknown, |v| Self::Uniform(*v))
            }
            other @ (Self::Lanes(_) | Self::Uniform(_) | Self::Unknown | Self::Real) => other,
        }
    }
}

/// The result of an operator on integers or truth values.
pub(super) fn operate(op: Op, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => a.checked_div(b)?,
        Op::Rem => a.checked_rem(b)?,
        Op::Lt => i64::from(a < b),
        Op::Le => i64::from(a <= b),
        Op::Eq => i64::from(a == b),
        Op::Ne => i64::from(a != b),
        Op::And => i64::from(a != 0 && b != 0),
        Op::Or => i64::from(a != 0 || b != 0),
        Op::BitAnd => a & b,
        Op::BitOr => a | b,
        Op::BitXor => a ^ b,
        Op::Shl => a.checked_shl(u32::try_from(b).ok()?)?,
        Op::Shr => a.checked_shr(u32::try_from(b).ok()?)?,
    })
}

/// The result of an integer function.
pub(super) fn call(f: IntFn, a: i64, b: i64) -> Option<i64> {
    Some(match f {
        IntFn::FloorDiv if b > 0 => a.div_euclid(b),
        IntFn::Mod if b > 0 => a.rem_euclid(b),
        IntFn::FloorDiv | IntFn::Mod => return None,
        IntFn::Min => a.min(b),
        IntFn::Max => a.max(b),
    })
}

/// What an operation on numbers of two parts takes of those of one, and its value.
pub(super) fn of_parts(e: &Expr) -> ((f64, f64), Value) {
    let (cost, ty) = if let Expr::Complex(op, ty, _) = e {
        (op.cost(), op.value(*ty))
    } else if let Expr::Pair(op, _) = e {
        (op.cost(), op.value())
    } else {
        ((0.0, 0.0), None)
    };
    (cost, if ty.is_some() { Value::Real } else { Value::Unknown })
}

/// Sums, products and quotients of an expression, those of its indices left out.
pub(super) fn arithmetic(e: &Expr) -> u64 {
    if matches!(e, Expr::Load(_)) {
        return 0;
    }
    let own = matches!(
        e,
        Expr::Complex(..) | Expr::Pair(..) | Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div, ..)
    );
    u64::from(own) + e.operands().map(arithmetic).sum::<u64>()
}
