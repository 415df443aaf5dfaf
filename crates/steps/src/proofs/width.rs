//! What every primitive that stores an integer that was only computed must know: integers are
//! unbounded until they are stored.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_ir::{BinaryOp, Expr, ExprType, Insn, InsnId, Kernel, Reduction, ScalarType, UpdateOp, WriteOp};

/// An update joins its value before it stores.
pub const NO_WIDE_UPDATE: Obligation =
    Obligation::new("no_wide_update", "no update of an `i32` gets a value in 64 bits that had 32 before");

/// Whether an integer surely fits an `i32`: what is loaded from one, cast to one or written out
/// does.
pub fn fits_i32(kernel: &Kernel, e: &Expr) -> bool {
    match e {
        Expr::Int(value) => i32::try_from(*value).is_ok(),
        Expr::Load(access) => kernel.vars[access.var].ty.loaded() == ScalarType::I32,
        Expr::Cast(ty, _) => ty.loaded() == ScalarType::I32,
        Expr::Select(_, a, b) | Expr::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
            fits_i32(kernel, a) && fits_i32(kernel, b)
        }
        Expr::Rule(..) => fits_i32(kernel, &kernel.expand_rules(e)),
        Expr::Real(_)
        | Expr::Iname(_)
        | Expr::RuleParam(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Reduce(_) => false,
    }
}

/// The type of an accumulator for a reduction of type `ty` in an instruction.
///
/// An `i32` is kept where every value fits one, and where the instruction does nothing but to store
/// the value into one, or to add or multiply it: then sums and products are the same modulo 2^32,
/// whatever they were in between, and an extremum that does not fit has no value in the end.
/// Elsewhere the value is computed in 64 bits.
pub fn accumulator_type(kernel: &Kernel, insn: &Insn, r: &Reduction, ty: ScalarType) -> ScalarType {
    let is_sum = |op: UpdateOp| matches!(op, UpdateOp::Add | UpdateOp::Mul);
    let fits = !is_sum(r.op) && fits_i32(kernel, &r.body);
    let stored = match insn.op {
        WriteOp::Assign => true,
        WriteOp::Update { op, .. } => is_sum(op) && is_sum(r.op),
    };
    let whole = matches!(&insn.rhs, Expr::Reduce(all) if all == r);
    let narrow = kernel.vars[insn.lhs.var].ty.loaded() == ScalarType::I32;
    if ty != ScalarType::I32 || fits || (stored && whole && narrow) { ty } else { ScalarType::I64 }
}

/// Whether an instruction stores 64 bits into an `i32` by now, so that its value must be cast: what
/// a store does anyhow.
///
/// # Errors
/// [`NO_WIDE_UPDATE`] for an update, which joins the value before it stores.
pub fn stores_wide(kernel: &Kernel, id: InsnId, from: &str) -> Result<bool, Refusal> {
    let insn = &kernel.insns[id];
    let var = &kernel.vars[insn.lhs.var];
    let wide = kernel.type_of(&insn.rhs, &[]) == Ok(ExprType::Scalar(ScalarType::I64));
    if var.ty.loaded() != ScalarType::I32 || !wide {
        return Ok(false);
    }
    NO_WIDE_UPDATE.require(insn.op == WriteOp::Assign, || {
        format!(
            "`{}` updates `{}`, an i32, by a value that {from} gives in 64 bits; cast the value of `{}` to i32",
            insn.name, var.name, insn.name
        )
    })?;
    Ok(true)
}

/// Casts the value of an instruction to an `i32`.
pub fn cast_stored(kernel: &mut Kernel, id: InsnId) {
    let value = kernel.insns[id].rhs.clone();
    kernel.insns[id].rhs = Expr::Cast(ScalarType::I32, Box::new(value));
}
