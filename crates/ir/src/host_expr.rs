//! Integer expressions of parameters that a host evaluates: how parameters are computed, and what launches take.

use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::VarId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An integer expression of the parameters, evaluated on the host in checked 64-bit arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostExpr {
    /// A constant.
    Const(i64),
    /// A parameter, by name.
    Param(String),
    /// Sum.
    Add(Box<HostExpr>, Box<HostExpr>),
    /// Product.
    Mul(Box<HostExpr>, Box<HostExpr>),
    /// Quotient rounded down.
    FloorDiv(Box<HostExpr>, Box<HostExpr>),
    /// The larger of two.
    Max(Box<HostExpr>, Box<HostExpr>),
    /// The smaller of two.
    Min(Box<HostExpr>, Box<HostExpr>),
}

/// Why a host expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostExprError {
    /// A parameter has no value.
    #[error("parameter `{0}` has no value; pass one")]
    Unbound(String),
    /// A result does not fit 64 bits.
    #[error("`{expression}` does not fit 64 bits with {params}; use smaller sizes")]
    Overflow {
        /// What was computed.
        expression: String,
        /// The parameters in it, with their values.
        params: String,
    },
    /// An array would have fewer than no elements.
    #[error("`{0}` has a negative length with these parameters; use larger ones")]
    Negative(String),
    /// A divisor is zero.
    #[error("`{0}` divides by zero with these parameters")]
    DivisionByZero(String),
}

impl HostExpr {
    /// What a parameter may be computed as: `+`, `-`, `*`, `floor_div`, `mod`, `min` and `max` of scalars, by the
    /// names that `name` gives them; none of another expression.
    pub fn of_definition(e: &Expr, name: &dyn Fn(VarId) -> String) -> Option<Self> {
        let negative = |e| Self::Mul(Box::new(Self::Const(-1)), Box::new(e));
        Some(match e {
            Expr::Int(value) => Self::Const(*value),
            Expr::Load(access) if access.index.is_empty() => Self::Param(name(access.var)),
            Expr::Unary(UnaryOp::Neg, a) => negative(Self::of_definition(a, name)?),
            Expr::Binary(op, a, b) => {
                let (a, b) = (Self::of_definition(a, name)?, Self::of_definition(b, name)?);
                let (a, b) = (Box::new(a), Box::new(b));
                match op {
                    BinaryOp::Add => Self::Add(a, b),
                    BinaryOp::Sub => Self::Add(a, Box::new(negative(*b))),
                    BinaryOp::Mul => Self::Mul(a, b),
                    BinaryOp::FloorDiv => Self::FloorDiv(a, b),
                    BinaryOp::Mod => {
                        let whole = Self::Mul(Box::new(Self::FloorDiv(a.clone(), b.clone())), b);
                        Self::Add(a, Box::new(negative(whole)))
                    }
                    BinaryOp::Min => Self::Min(a, b),
                    BinaryOp::Max => Self::Max(a, b),
                    BinaryOp::Div
                    | BinaryOp::TruncDiv
                    | BinaryOp::TruncRem
                    | BinaryOp::BitAnd
                    | BinaryOp::BitOr
                    | BinaryOp::BitXor
                    | BinaryOp::Shl
                    | BinaryOp::Shr
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::And
                    | BinaryOp::Or => return None,
                }
            }
            Expr::Unary(..)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => return None,
        })
    }

    /// The value under `params` (name to value).
    ///
    /// # Errors
    /// A parameter without a value, overflow of 64 bits, division by zero.
    pub fn eval(&self, params: &BTreeMap<String, i64>) -> Result<i64, HostExprError> {
        let overflow = || self.overflow(params);
        Ok(match self {
            Self::Const(c) => *c,
            Self::Param(p) => *params.get(p).ok_or_else(|| HostExprError::Unbound(p.clone()))?,
            Self::Add(a, b) => a.eval(params)?.checked_add(b.eval(params)?).ok_or_else(overflow)?,
            Self::Mul(a, b) => a.eval(params)?.checked_mul(b.eval(params)?).ok_or_else(overflow)?,
            Self::FloorDiv(a, b) => {
                let (a, b) = (a.eval(params)?, b.eval(params)?);
                if b == 0 {
                    return Err(HostExprError::DivisionByZero(self.to_string()));
                }
                let q = a.checked_div(b).ok_or_else(overflow)?;
                if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
            }
            Self::Max(a, b) => a.eval(params)?.max(b.eval(params)?),
            Self::Min(a, b) => a.eval(params)?.min(b.eval(params)?),
        })
    }
}

impl HostExpr {
    fn overflow(&self, params: &BTreeMap<String, i64>) -> HostExprError {
        let values = self.values(params);
        let params = if values.is_empty() { "any parameters".to_owned() } else { values };
        HostExprError::Overflow { expression: self.to_string(), params }
    }

    /// `n = 3, m = 4` for its parameters that have values.
    #[must_use]
    pub fn values(&self, params: &BTreeMap<String, i64>) -> String {
        let mut names = Vec::new();
        self.params(&mut names);
        names.sort_unstable();
        names.dedup();
        let values = names.iter().filter_map(|n| Some(format!("{n} = {}", params.get(*n)?)));
        values.collect::<Vec<_>>().join(", ")
    }

    /// Whether it mentions one of these parameters.
    #[must_use]
    pub fn mentions(&self, params: &[&str]) -> bool {
        let mut names = Vec::new();
        self.params(&mut names);
        names.into_iter().any(|name| params.contains(&name))
    }

    /// Adds the names of its parameters to a list, each as often as it stands there.
    pub fn params<'e>(&'e self, names: &mut Vec<&'e str>) {
        match self {
            Self::Const(_) => {}
            Self::Param(name) => names.push(name),
            Self::Add(a, b) | Self::Mul(a, b) | Self::FloorDiv(a, b) | Self::Max(a, b) | Self::Min(a, b) => {
                a.params(names);
                b.params(names);
            }
        }
    }
}

impl fmt::Display for HostExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(c) => write!(f, "{c}"),
            Self::Param(p) => f.write_str(p),
            Self::Add(a, b) => write!(f, "({a} + {b})"),
            Self::Mul(a, b) => write!(f, "{a}*{b}"),
            Self::FloorDiv(a, b) => write!(f, "floor({a}/{b})"),
            Self::Max(a, b) => write!(f, "max({a}, {b})"),
            Self::Min(a, b) => write!(f, "min({a}, {b})"),
        }
    }
}
