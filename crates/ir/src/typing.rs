//! Types of expressions.
//!
//! | operands | result |
//! |---|---|
//! | integer literals, inames | `Index`: an integer of whatever width holds it |
//! | `Index` with `i32` or `i64` | that type; `i32` with `i64`: `i64` |
//! | an element of type `i8`, `i16`, `u8` or `u16` | `i32` |
//! | an element of type `bool` | a truth value |
//! | an element of type `f16` or `bf16` | `f32` |
//! | `u32` with `u64` | `u64` |
//! | integer literal that fits with `u32` or `u64` | that word |
//! | floating-point literal | `WeakReal`: `f64`, or the type of the other operand |
//! | integer *literal* with a real | that real |
//! | `f32` with `f64` | `f64` |
//! | a real with a complex number, `c64` with `c128` | the complex type that holds both |
//! | `complex(re, im)` of literals | `WeakComplex`: `c128`, or the type that holds the other operand |
//!
//! Any other mixture of integers, words, reals and truth values needs a cast. A cast to an integer
//! needs a value that fits; one of an integer to a word takes it modulo 2^32 or 2^64, and `bits` takes
//! a word back to the integer of the same bits.
//!
//! Integers of loops, parameters and scalars are exact, and so are indices. Elsewhere a sum, a
//! difference or a product of values of `i32` that is made of elements of arrays is a value of `i32`:
//! a program in which it leaves 32 bits is an error, as a store that does not fit.

use crate::expr::{Access, BinaryOp, Expr, MathFn, Reduction, UnaryOp, UpdateOp};
use crate::kernel::Kernel;
use crate::types::{Class, Field, RecordType, ScalarType};

pub use crate::expr_type::ExprType;

/// Why an expression has no type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// Operands that do not go together.
    #[error("`{op}` cannot combine {left} and {right}; cast one of them, for example `{}`", example(.left, .right))]
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
            Expr::Unary(UnaryOp::BitNot, a) => integer("bit_not", of(a)?)?,
            Expr::Unary(UnaryOp::Bits, a) => type_of_bits(of(a)?)?,
            Expr::Unary(UnaryOp::Field(record, k), a) => type_of_field(*record, *k, of(a)?)?,
            Expr::Binary(op, a, b) => self.type_of_binary(*op, (a, of(a)?), (b, of(b)?))?,
            Expr::Cast(ty, a) => type_of_cast(*ty, of(a)?)?,
            Expr::Call(function, args) => type_of_call(*function, args.len(), args.iter().map(of))?,
            Expr::Select(c, a, b) => {
                truth("if", of(c)?)?;
                self.joined("if", (a, of(a)?), (b, of(b)?))?
            }
            Expr::Reduce(r) => type_of_reduction(r.op, of(&r.body)?)?,
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
            (Expr::Unary(UnaryOp::BitNot, _), [a]) => integer("bit_not", a.ty)?,
            (Expr::Unary(UnaryOp::Bits, _), [a]) => type_of_bits(a.ty)?,
            (Expr::Unary(UnaryOp::Field(record, k), _), [a]) => type_of_field(*record, *k, a.ty)?,
            (Expr::Binary(op, ..), [a, b]) => self.type_of_binary(*op, (a.expr, a.ty), (b.expr, b.ty))?,
            (Expr::Call(function, args), operands) => {
                type_of_call(*function, args.len(), operands.iter().map(|a| Ok(a.ty)))?
            }
            (Expr::Select(..), [c, a, b]) => {
                truth("if", c.ty)?;
                self.joined("if", (a.expr, a.ty), (b.expr, b.ty))?
            }
            (Expr::Reduce(r), [body]) => type_of_reduction(r.op, body.ty)?,
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
            ExprType::Bool if ty == ScalarType::Bool => e.clone(),
            ExprType::WeakReal if ty == ScalarType::F32 => self.cast_at_a_leaf(&expanded, ty),
            ExprType::WeakComplex if ty == ScalarType::C64 => self.cast_at_a_leaf(&expanded, ty.part()),
            ExprType::WeakReal if ty == ScalarType::C64 => {
                Expr::Cast(ty, Box::new(self.cast_at_a_leaf(&expanded, ty.part())))
            }
            ExprType::WeakReal if ty.is_half() => {
                Expr::Cast(ty, Box::new(self.cast_at_a_leaf(&expanded, ScalarType::F32)))
            }
            ExprType::Bool
            | ExprType::Literal
            | ExprType::Index
            | ExprType::WeakReal
            | ExprType::WeakComplex
            | ExprType::Scalar(_) => Expr::Cast(ty, Box::new(e.clone())),
        })
    }

    /// A number made of literals, of real parts of type `ty`. One operand of that type gives it to the
    /// operation and so to the others; what is an integer before it becomes a real is converted as a whole.
    fn cast_at_a_leaf(&self, e: &Expr, ty: ScalarType) -> Expr {
        let of = |a: &Expr| Box::new(self.cast_at_a_leaf(a, ty));
        match e {
            e if !matches!(self.type_of(e, &[]), Ok(ExprType::WeakReal | ExprType::WeakComplex)) => {
                Expr::Cast(ty, Box::new(e.clone()))
            }
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
        Ok(var.ty.value_type())
    }

    /// Whether `e` of type `found`, if it is a literal, is one of the words of type `ty`; anything else
    /// passes.
    pub(crate) fn literal_fits(&self, e: &Expr, found: ExprType, ty: ExprType) -> bool {
        let Some((0, hi)) = ty.word().filter(|_| found == ExprType::Literal).and_then(ScalarType::ends)
        else {
            return true;
        };
        let value = self.expand_rules(e).as_affine().and_then(|e| e.as_constant());
        value.is_some_and(|value| (0..=hi).contains(&value.into()))
    }

    fn joined(
        &self,
        op: &str,
        (a, left): (&Expr, ExprType),
        (b, right): (&Expr, ExprType),
    ) -> Result<ExprType, TypeError> {
        left.join(right)
            .filter(|ty| self.literal_fits(a, left, *ty) && self.literal_fits(b, right, *ty))
            .ok_or_else(|| TypeError::Mismatch { op: op.into(), left, right })
    }

    fn type_of_binary(
        &self,
        op: BinaryOp,
        (a, left): (&Expr, ExprType),
        (b, right): (&Expr, ExprType),
    ) -> Result<ExprType, TypeError> {
        let name = op.symbol();
        if op.is_logical() {
            truth(name, left)?;
            return truth(name, right);
        }
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            integer(name, right)?;
            return integer(name, if left == ExprType::Literal { ExprType::Index } else { left });
        }
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) && [left, right] == [ExprType::Bool; 2] {
            return Ok(ExprType::Bool);
        }
        let result = number(name, self.joined(name, (a, left), (b, right))?)?;
        if result.is_complex() && op.is_ordered() {
            let needed = "real operands: complex numbers have no order, `abs(z)` and `real(z)` have";
            return Err(TypeError::Operand { op: name.into(), needed, found: result });
        }
        if op.is_comparison() {
            return Ok(ExprType::Bool);
        }
        if op == BinaryOp::Div && result == ExprType::Literal {
            return Ok(ExprType::WeakReal);
        }
        if op == BinaryOp::Div && !result.is_real() && !result.is_complex() {
            let needed = "real operands (integers use floor_div)";
            return Err(TypeError::Operand { op: name.into(), needed, found: result });
        }
        match op {
            BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor => integer(name, result),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Mod
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => Ok(result),
        }
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
            Expr::Cast(..) => self
                .operands
                .iter()
                .any(|a| a.ty.is_real() || a.ty == ExprType::Bool || a.is_made_of_elements()),
            Expr::Binary(BinaryOp::Shl, ..) => self.operands.first().is_some_and(Self::is_made_of_elements),
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

/// The type of a call of a function.
///
/// # Errors
/// The wrong number of arguments, one that the function is not defined of.
pub fn type_of_call(
    function: MathFn,
    found: usize,
    args: impl Iterator<Item = Result<ExprType, TypeError>>,
) -> Result<ExprType, TypeError> {
    arity(function.name(), function.arity(), found)?;
    if let MathFn::Record(record) = function {
        type_of_fields(record.name(), &record.fields, args)?;
        return Ok(ExprType::Scalar(ScalarType::Record(record)));
    }
    if let MathFn::External(external) = function {
        type_of_fields(external.name(), &external.params, args)?;
        return Ok(ExprType::Scalar(external.result));
    }
    let takes_complex = function.is_of_complex() && function != MathFn::Complex;
    let needed = match (takes_complex, function.extends()) {
        (true, _) if function == MathFn::Abs => "a complex argument (a real has `fabs`)",
        (true, _) => "a complex argument",
        (false, true) => "real or complex arguments",
        (false, false) => "real arguments",
    };
    let fits = |ty: &ExprType| match takes_complex {
        true => ty.is_complex(),
        false => ty.is_real() || ty.is_complex() && function.extends(),
    };
    let mut result = ExprType::WeakReal;
    for found in args {
        let found = found?;
        let op = || function.name().into();
        result =
            result.join(found).filter(fits).ok_or_else(|| TypeError::Operand { op: op(), needed, found })?;
    }
    if function == MathFn::Complex {
        return Ok(result.complex());
    }
    Ok(if takes_complex && function != MathFn::Conj { result.part() } else { result })
}

fn of_record(record: RecordType, op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    if found.record() == Some(record) {
        return Ok(found);
    }
    Err(TypeError::Operand { op: op.into(), needed: "a value of its record", found })
}

fn type_of_field(record: RecordType, k: u8, found: ExprType) -> Result<ExprType, TypeError> {
    let Some(field) = record.field_of(k) else {
        return Err(TypeError::Operand { op: record.name().into(), needed: "a field that it has", found });
    };
    of_record(record, &format!(".{}", field.name), found)?;
    Ok(field.ty.value_type())
}

/// Checks values of fields of a record, or of parameters of a declared function.
fn type_of_fields(
    name: &str,
    fields: &[Field],
    args: impl Iterator<Item = Result<ExprType, TypeError>>,
) -> Result<(), TypeError> {
    for (field, right) in fields.iter().zip(args) {
        let right = right?;
        if !right.stores_in(field.ty) {
            let op = format!("{name}.{}", field.name);
            return Err(TypeError::Mismatch { op, left: field.ty.value_type(), right });
        }
    }
    Ok(())
}

fn arity(name: &str, needed: usize, found: usize) -> Result<(), TypeError> {
    if needed == found { Ok(()) } else { Err(TypeError::Arity { name: name.into(), needed, found }) }
}

fn number(op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    match found {
        ExprType::Bool | ExprType::Scalar(ScalarType::Record(_)) => {
            Err(TypeError::Operand { op: op.into(), needed: "a number", found })
        }
        other @ (ExprType::Literal
        | ExprType::Index
        | ExprType::WeakReal
        | ExprType::WeakComplex
        | ExprType::Scalar(_)) => Ok(other),
    }
}

fn integer(op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    if found.is_integer() || found.word().is_some() {
        return Ok(found);
    }
    Err(TypeError::Operand { op: op.into(), needed: "integer operands", found })
}

fn type_of_bits(from: ExprType) -> Result<ExprType, TypeError> {
    match from.word() {
        Some(ScalarType::U32) => Ok(ExprType::Scalar(ScalarType::I32)),
        Some(_) => Ok(ExprType::Scalar(ScalarType::I64)),
        None => Err(TypeError::Operand { op: "bits".into(), needed: "a `u32` or a `u64`", found: from }),
    }
}

fn type_of_reduction(op: UpdateOp, body: ExprType) -> Result<ExprType, TypeError> {
    let name = op.reduction_name();
    if matches!(op, UpdateOp::Min | UpdateOp::Max) && body.is_complex() {
        let needed = "real numbers: complex numbers have no order";
        return Err(TypeError::Operand { op: name.into(), needed, found: body });
    }
    match op {
        UpdateOp::Named(operator) => of_record(operator.record, name, body),
        UpdateOp::Or | UpdateOp::And => truth(name, body),
        UpdateOp::Add | UpdateOp::Mul | UpdateOp::Min | UpdateOp::Max => number(name, body),
    }
}

fn type_of_cast(ty: ScalarType, from: ExprType) -> Result<ExprType, TypeError> {
    if from.record().is_some() || ty.class() == Class::Record {
        return Err(TypeError::Operand { op: ty.name().into(), needed: "a number", found: from });
    }
    if ty == ScalarType::Bool {
        let needed = "no cast but `!= 0`";
        return Err(TypeError::Operand { op: ty.name().into(), needed, found: from });
    }
    if ty.is_half() && from == ExprType::Scalar(ScalarType::F64) {
        let needed = "an `f32`, which it rounds";
        return Err(TypeError::Operand { op: ty.name().into(), needed, found: from });
    }
    if from.is_complex() && !ty.is_complex() {
        let needed = "a real number, such as `real(z)` or `abs(z)`";
        return Err(TypeError::Operand { op: ty.name().into(), needed, found: from });
    }
    Ok(ty.value_type())
}

/// A cast that helps where two types do not go together.
fn example(left: &ExprType, right: &ExprType) -> &'static str {
    match (left.word().or_else(|| right.word()), [left, right].contains(&&ExprType::Bool)) {
        (_, true) => "i32(b)",
        (Some(ScalarType::U64), _) => "u64(i)",
        (Some(_), _) => "u32(i)",
        (None, false) => "f64(i)",
    }
}

fn truth(op: &str, found: ExprType) -> Result<ExprType, TypeError> {
    match found {
        ExprType::Bool => Ok(ExprType::Bool),
        ExprType::Literal
        | ExprType::Index
        | ExprType::WeakReal
        | ExprType::WeakComplex
        | ExprType::Scalar(_) => Err(TypeError::Operand { op: op.into(), needed: "a truth value", found }),
    }
}
