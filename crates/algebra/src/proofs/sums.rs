//! Values that are rewritten as sums of products.

use crate::polynomial::{MAX_TERMS, NoSum};
use kingpost_ir::{Expr, ExprType, Insn, Kernel, ScalarType};
use kingpost_steps::Means;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::accumulation;
pub(crate) use kingpost_steps::proofs::accumulation::NO_REDUCTIONS;
pub(crate) use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::check_not_called;

/// Reals alone have the laws.
pub(crate) const REAL: Obligation =
    Obligation::new("sums.real", "the value is computed in `f64`, and so is each part that is rewritten");

/// Expressions stay readable.
pub(crate) const SHORT: Obligation = Obligation::new("sums.short", "the value has at most 8,192 terms");

/// Checks that the value of an instruction may be rewritten: it is of type `f64`, holds no reduction,
/// and belongs to no call.
pub(crate) fn check_value(kernel: &Kernel, insn: &Insn) -> Result<(), Refusal> {
    check_not_called(kernel, insn)?;
    let ty = kernel.type_of(&insn.rhs, &[]);
    REAL.require(ty == Ok(ExprType::Scalar(ScalarType::F64)), || {
        format!("the value of `{}` is not computed in `f64`", insn.name)
    })?;
    accumulation::refuse_reductions(kernel, insn, &[&insn.rhs])
}

/// The value of an instruction as a sum of products.
pub(crate) fn of<T>(kernel: &Kernel, insn: &Insn, sum: Result<T, NoSum>) -> Result<T, Refusal> {
    let sum = sum.map_err(|why| refusal(kernel, insn, why))?;
    FINITE.holds(Means::Form, String::new);
    SHORT.holds(Means::Form, String::new);
    Ok(sum)
}

/// Why a value is no sum of products.
pub(crate) fn refusal(kernel: &Kernel, insn: &Insn, why: NoSum) -> Refusal {
    match why {
        NoSum::OtherType(e) => REAL.unfit(format!(
            "`{}` has a part `{}` that is not computed in `f64`",
            insn.name,
            kernel.show_expr(&e)
        )),
        NoSum::NotFinite(found) => FINITE.unfit(format!(
            "`{}` computes with numbers of which one or a product is {found}; pass it as an argument",
            insn.name
        )),
        NoSum::TooLong => {
            SHORT.unfit(format!("the value of `{}` has more than {MAX_TERMS} terms", insn.name))
        }
    }
}

/// The text of an expression without spaces.
pub(crate) fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text of an expression of a kernel, without spaces.
pub(crate) fn key(kernel: &Kernel, e: &Expr) -> String {
    without_spaces(&kernel.show_expr(e).to_string())
}
