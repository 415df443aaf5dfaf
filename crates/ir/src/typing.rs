//! Types of expressions.
//!
//! | operands | result |
//! |---|---|
//! | integer literals, inames | `Index`: an integer of whatever width holds it |
//! | `Index` with `i32` or `i64` | that type; `i32` with `i64`: `i64` |
//! | an element of type `i16` | `i32` |
//! | floating-point literal | `WeakReal`: `f64`, or the type of the other operand |
//! | integer *literal* with a real | that real |
//! | `f32` with `f64` | `f64` |
//!
//! Any other mixture of integers and reals needs a cast.
//!
//! Integers of loops, parameters and scalars are exact, and so are indices. Elsewhere a sum, a
//! difference or a product of values of `i32` that is made of elements of arrays is a value of `i32`:
//! a program in which it leaves 32 bits is an error, as a store that does not fit.

use crate::expr::{Access, BinaryOp, Expr, MathFn, Reduction, UnaryOp};
use crate::kernel::Kernel;
use crate::types::ScalarType;
use std::fmt;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExprType {
    /// A truth value.
    Bool,
    /// An integer literal: converts to any number.
    Literal,
    /// An integer of whatever width holds it.
    Index,
    /// A floating-point literal: `f64` unless the context says `f32`.
    WeakReal,
    /// A typed number.
    Scalar(ScalarType),
}

impl ExprType {
    /// The element type that holds values of this type: `f64` for weak reals, `i64` for indices.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Self::Bool => None,
            Self::Literal | Self::Index => Some(ScalarType::I64),
            Self::WeakReal => Some(ScalarType::F64),
            Self::Scalar(ty) => Some(ty),
        }
    }

    /// Whether values are integers.
    pub fn is_integer(self) -> bool {
        match self {
            Self::Literal | Self::Index => true,
            Self::Scalar(ty) => ty.is_exact(),
            Self::Bool | Self::WeakReal => false,
        }
    }

    /// Whether values are numbers with a fraction.
    pub fn is_real(self) -> bool {
        match self {
            Self::WeakReal => true,
            Self::Scalar(ty) => ty.is_real(),
            Self::Bool | Self::Literal | Self::Index => false,
        }
    }

    /// Whether a value of this type may be stored in an element of type `ty` without a cast.
    pub fn stores_in(self, ty: ScalarType) -> bool {
        match self {
            Self::Bool => false,
            Self::Literal => true,
            Self::Index => ty.is_exact(),
            Self::WeakReal => ty.is_real(),
            Self::Scalar(from) => from.is_real() == ty.is_real() && from.bytes() <= ty.bytes(),
        }
    }

    /// The type of an arithmetic operation on two numbers.
    pub fn join(self, other: Self) -> Option<Self> {
        let result = match (self, other) {
            (Self::Bool, _) | (_, Self::Bool) => return None,
            (Self::Literal, t) | (t, Self::Literal) => t,
            (a, b) if a.is_integer() != b.is_integer() => return None,
            (Self::Index, t) | (t, Self::Index) | (Self::WeakReal, t) | (t, Self::WeakReal) => t,
            (Self::Scalar(a), Self::Scalar(b)) => Self::Scalar(if a.bytes() >= b.bytes() { a } else { b }),
        };
        Some(result)
    }
}

impl fmt::Display for ExprType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("truth value"),
            Self::Literal => f.write_str("integer literal"),
            Self::Index => f.write_str("index"),
            Self::WeakReal => f.write_str("real literal"),
            Self::Scalar(ty) => write!(f, "{ty}"),
        }
    }
}

/// Why an expression has no type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// Operands that do not go together.
    #[error("`{op}` cannot combine {left} and {right}; cast one of them, for example `f64(i)`")]
    Mismatch {
        /// The operation.
        op: String,
        /// Type of the left operand.
        left: ExprType,
        /// Type of the right operand.
        right: ExprType,
    },
    /// An operand of the wrong type.
    #[error("`{op}` needs {needed}, found {found}")]
    Operand {
        /// The operation.
        op: String,
        /// What it needs.
        needed: &'static str,
        /// What it got.
        found: ExprType,
    },
    /// A call with the wrong number of arguments.
    #[error("`{name}` takes {needed} arguments, found {found}")]
    Arity {
        /// The function or rule.
        name: String,
        /// Its number of arguments.
        needed: usize,
        /// How many it got.
        found: usize,
    },
    /// An access with the wrong number of indices.
    #[error("`{name}` has {needed} axes, found {found} indices")]
    Rank {
        /// The variable.
        name: String,
        /// Its number of axes.
        needed: usize,
        /// How many indices it got.
        found: usize,
    },
}

impl Kernel {
    /// The type of an expression; parameters of rules have the types in `rule_params`.
    ///
    /// # Errors
    /// The first operation whose operands do not fit.
    pub fn type_of(&self, e: &Expr, rule_params: &[ExprType]) -> Result<ExprType, TypeError> {
        let of = |e: &Expr| self.type_of(e, rule_params);
        Ok(match e {
            Expr::Int(_) => ExprType::Literal,
            Expr::Real(_) => ExprType::WeakReal,
            Expr::Iname(_) => ExprType::Index,
            Expr::RuleParam(k) => rule_params.get(*k as usize).copied().unwrap_or(ExprType::WeakReal),
            Expr::Load(access) => self.type_of_access(access, rule_params)?,
            Expr::Unary(UnaryOp::Neg, a) => number("-", of(a)?)?,
            Expr::Unary(UnaryOp::Not, a) => truth("not", of(a)?)?,
            Expr::Binary(op, a, b) => type_of_binary(*op, of(a)?, of(b)?)?,
            Expr::Cast(ty, a) => type_of_cast(*ty, of(a)?)?,
            Expr::Call(function, args) => type_of_call(*function, args.len(), args.iter().map(of))?,
            Expr::Select(c, a, b) => {
                truth("if", of(c)?)?;
                joined("if", of(a)?, of(b)?)?
            }
            Expr::Reduce(r) => number(r.op.reduction_name(), of(&r.body)?)?,
            Expr::Rule(rule, args) => {
                let rule = &self.rules[*rule];
                arity(&rule.name, rule.params.len(), args.len())?;
                let types = args.iter().map(of).collect::<Result<Vec<_>, _>>()?;
                self.type_of(&rule.body, &types)?
            }
        })
    }

    /// An expression without rules with the type of each of its parts, in one pass. An access is
    /// one part: its indices have nothing to do with the type of the element.
    ///
    /// # Errors
    /// The first operation whose operands do not fit.
    pub fn typed<'e>(&self, e: &'e Expr) -> Result<TypedExpr<'e>, TypeError> {
        if let Expr::Load(access) = e {
            return Ok(TypedExpr { expr: e, ty: self.type_of_access(access, &[])?, operands: Vec::new() });
        }
        let operands = e.operands().map(|o| self.typed(o)).collect::<Result<Vec<_>, _>>()?;
        let ty = match (e, operands.as_slice()) {
            (Expr::Unary(UnaryOp::Neg, _), [a]) => number("-", a.ty)?,
            (Expr::Unary(UnaryOp::Not, _), [a]) => truth("not", a.ty)?,
            (Expr::Binary(op, ..), [a, b]) => type_of_binary(*op, a.ty, b.ty)?,
            (Expr::Call(function, args), operands) => {
                type_of_call(*function, args.len(), operands.iter().map(|a| Ok(a.ty)))?
            }
            (Expr::Select(..), [c, a, b]) => {
                truth("if", c.ty)?;
                joined("if", a.ty, b.ty)?
            }
            (Expr::Reduce(r), [body]) => number(r.op.reduction_name(), body.ty)?,
            (Expr::Cast(ty, _), [a]) => type_of_cast(*ty, a.ty)?,
            // a leaf
            (e, _) => self.type_of(e, &[])?,
        };
        Ok(TypedExpr { expr: e, ty, operands })
    }

    /// The expression whose own type is `ty` and whose value is that of `e` where the context takes
    /// it as `ty`: what may stand for `e` stored in an element of that type, wherever it is put.
    ///
    /// A cast is no context: `f32(0.1 + 0.2)` is a sum in `f64`, while stored as `f32` it is one of
    /// `f32`. So a tree of literals gets the cast at a leaf, from which the other leaves take their
    /// type.
    ///
    /// # Errors
    /// The first operation whose operands do not fit.
    pub fn coerced(&self, e: &Expr, ty: ScalarType) -> Result<Expr, TypeError> {
        let expanded = self.expand_rules(e);
        Ok(match self.type_of(&expanded, &[])? {
            ExprType::Scalar(found) if found == ty => e.clone(),
            ExprType::WeakReal if ty == ScalarType::F32 => self.cast_at_a_leaf(&expanded, ty),
            ExprType::Bool
            | ExprType::Literal
            | ExprType::Index
            | ExprType::WeakReal
            | ExprType::Scalar(_) => Expr::Cast(ty, Box::new(e.clone())),
        })
    }

    /// A real made of literals in type `ty`. One operand of that type gives it to the operation and
    /// so to the others; what is an integer before it becomes a real is converted as a whole.
    fn cast_at_a_leaf(&self, e: &Expr, ty: ScalarType) -> Expr {
        let of = |a: &Expr| Box::new(self.cast_at_a_leaf(a, ty));
        match e {
            e if self.type_of(e, &[]) != Ok(ExprType::WeakReal) => Expr::Cast(ty, Box::new(e.clone())),
            Expr::Unary(op, a) => Expr::Unary(*op, of(a)),
            Expr::Binary(op, a, b) => Expr::Binary(*op, of(a), b.clone()),
            Expr::Call(function, args) => {
                let mut args = args.clone();
                if let Some(first) = args.first_mut() {
                    *first = self.cast_at_a_leaf(first, ty);
                }
                Expr::Call(*function, args)
            }
            Expr::Select(c, a, b) => Expr::Select(c.clone(), of(a), b.clone()),
            Expr::Reduce(r) => {
                Expr::Reduce(Reduction { op: r.op, inames: r.inames.clone(), body: of(&r.body) })
            }
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Cast(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => Expr::Cast(ty, Box::new(e.clone())),
        }
    }

    /// The type of an element, after a check of its indices.
    ///
    /// # Errors
    /// The wrong number of indices, an index that is no integer.
    pub fn type_of_access(&self, access: &Access, rule_params: &[ExprType]) -> Result<ExprType, TypeError> {
        let var = &self.vars[access.var];
        if var.shape.len() != access.index.len() {
            return Err(TypeError::Rank {
                name: var.name.clone(),
                needed: var.shape.len(),
                found: access.index.len(),
            });
        }
        for index in &access.index {
            let found = self.type_of(index, rule_params)?;
            if !found.is_integer() {
                return Err(TypeError::Operand { op: var.name.clone(), needed: "integer indices", found });
            }
        }
        Ok(ExprType::Scalar(var.ty.loaded()))
    }
}

/// An expression, its type and its operands in the order of [`Expr::operands`]; none of an access.
#[derive(Clone, Debug)]
pub struct TypedExpr<'e> {
    /// The expression.
    pub expr: &'e Expr,
    /// Its type.
    pub ty: ExprType,
    /// What it is made of.
    pub operands: Vec<TypedExpr<'e>>,
}

impl TypedExpr<'_> {
    /// Whether this is a value of `i32`, or a literal that is one: a loop or what is computed of
    /// literals has whatever width holds it.
    pub fn is_narrow(&self) -> bool {
        let fits = |e: &Expr| matches!(e, Expr::Int(c) if i32::try_from(*c).is_ok());
        self.ty == ExprType::Scalar(ScalarType::I32) || fits(self.expr)
    }

    /// Whether the integer is made of elements of arrays or of reals. Loops, parameters and integer
    /// scalars alone make bounds and places, which are exact; elements are data, of which an
    /// operation has a result of its type.
    pub fn is_made_of_elements(&self) -> bool {
        let any = |operands: &[Self]| operands.iter().any(Self::is_made_of_elements);
        match self.expr {
            Expr::Load(access) => !access.index.is_empty(),
            Expr::Select(..) => any(self.operands.get(1..).unwrap_or(&[])),
            Expr::Cast(..) => self.operands.iter().any(|a| a.ty.is_real() || a.is_made_of_elements()),
            Expr::Unary(..) | Expr::Binary(..) | Expr::Reduce(_) => any(&self.operands),
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Call(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => false,
        }
    }
}

fn type_of_call(
    function: MathFn,
    found: usize,
    args: impl Iterator<Item = Result<ExprType, TypeError>>,
) -> Result<ExprType, TypeError> {
    arity(function.name(), function.arity(), found)?;
    let mut result = ExprType::WeakReal;
    for found in args {
        let found = found?;
        result = result.join(found).filter(|r| r.is_real()).ok_or_else(|| TypeError::Operand {
            op: function.name().into(),
            needed: "real arguments",
            found,
        })?;
    }
    Ok(result)
}

fn arity(name: &str, needed: usize, found: usize) -> Result<(), TypeError> {
    if needed == found { Ok(()) } else { Err(TypeError::Arity { name: name.into(), needed, found }) }
}

fn number(op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    match found {
        ExprType::Bool => Err(TypeError::Operand { op: op.into(), needed: "a number", found }),
        other @ (ExprType::Literal | ExprType::Index | ExprType::WeakReal | ExprType::Scalar(_)) => Ok(other),
    }
}

fn type_of_cast(ty: ScalarType, from: ExprType) -> Result<ExprType, TypeError> {
    if ty == ScalarType::I16 {
        let needed = "no cast, as values have 32 bits or more";
        return Err(TypeError::Operand { op: ty.name().into(), needed, found: from });
    }
    number(ty.name(), from)?;
    Ok(ExprType::Scalar(ty))
}

fn truth(op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    match found {
        ExprType::Bool => Ok(ExprType::Bool),
        ExprType::Literal | ExprType::Index | ExprType::WeakReal | ExprType::Scalar(_) => {
            Err(TypeError::Operand { op: op.into(), needed: "a truth value", found })
        }
    }
}

fn joined(op: &str, left: ExprType, right: ExprType) -> Result<ExprType, TypeError> {
    left.join(right).ok_or_else(|| TypeError::Mismatch { op: op.into(), left, right })
}

fn type_of_binary(op: BinaryOp, left: ExprType, right: ExprType) -> Result<ExprType, TypeError> {
    let name = op.symbol();
    if op.is_logical() {
        truth(name, left)?;
        return truth(name, right);
    }
    let result = joined(name, left, right)?;
    if op.is_comparison() {
        return Ok(ExprType::Bool);
    }
    let needs = |needed| Err(TypeError::Operand { op: name.into(), needed, found: result });
    if op == BinaryOp::Div && result == ExprType::Literal {
        return Ok(ExprType::WeakReal);
    }
    if op == BinaryOp::Div && !result.is_real() {
        return needs("real operands (integers use floor_div)");
    }
    if matches!(op, BinaryOp::FloorDiv | BinaryOp::Mod) && !result.is_integer() {
        return needs("integer operands");
    }
    Ok(result)
}
