//! The proof of every primitive that evaluates something where nothing did before: it reads what
//! there is.

use crate::obligation::Obligation;
use crate::proofs::width::fits_i32;
use crate::proofs::written::may_be_undefined;
use crate::proved::Means;
use crate::refusal::Refusal;
use kingpost_analysis::Analysis;
use kingpost_analysis::inside::{Cause as Unknown, Reach};
use kingpost_analysis::witness::params_text;
use kingpost_ir::{BinaryOp, Class, Expr, ExprType, Insn, InsnId, Kernel, ScalarType};

/// What is computed besides is safe to read.
pub const INSIDE: Obligation = Obligation::new(
    "inside",
    "what is read where perhaps nothing was before is defined and inside its array",
);

/// What is computed besides is safe to compute.
pub const NO_FAULT: Obligation =
    Obligation::new("no_fault", "no division or cast is computed besides that some values do not allow");

/// Checks that an instruction, wherever it runs, reads defined elements inside their arrays, and
/// computes what all values allow.
///
/// Formula: for every read `r` along an axis of extent `n`, `{ i in D : r(i) < 0 or r(i) >= n }` is
/// empty; every divisor of integers is a constant other than 0 and -1, or at least 1.
///
/// # Errors
/// [`Refusal::Argument`] with the smallest element outside, or with what cannot be known: an index
/// that is not affine, a bound that is read from memory, an element that may be undefined, a
/// division of integers or a cast to them that some values do not allow.
pub fn check_inside(analysis: &Analysis, insn: InsnId, help: &str) -> Result<(), Refusal> {
    let (kernel, expanded) = (analysis.kernel(), analysis.expanded());
    let refuse = |what: &str| {
        let name = &kernel.insns[insn].name;
        Err(INSIDE.undecided(format!("`{name}` would read {what}, where perhaps nothing did before; {help}")))
    };
    for read in expanded.insns[insn].reads() {
        let var = &kernel.vars[read.var];
        if may_be_undefined(&var.kind) {
            return refuse(&format!("elements of `{}` that may be undefined", var.name));
        }
    }
    NO_FAULT.forbid(may_fault(expanded, &expanded.insns[insn]), |(what, instead)| {
        let name = &kernel.insns[insn].name;
        format!("`{name}` would {what}, where perhaps nothing did before; {instead}, or {help}")
    })?;
    for read in analysis.accesses_of(&|i| i == insn).iter().filter(|a| !a.writes) {
        match &read.reach {
            Reach::Inside => {}
            Reach::Outside(outside) => {
                return refuse(&format!("`{}`{}", outside.element, params_text(&outside.params)));
            }
            Reach::Open(Unknown::Index) => {
                let var = &kernel.vars[read.var].name;
                return refuse(&format!("`{var}` through an index that is not affine"));
            }
            Reach::Open(Unknown::Domain | Unknown::Computed | Unknown::Solver) => {
                return refuse(&format!("`{}`, perhaps outside its shape", read.access));
            }
        }
    }
    INSIDE.holds_in(kernel, Means::Empty, || format!("reads of `{}` out of bounds", kernel.insns[insn].name));
    Ok(())
}

/// An operation that is not defined for all operands, and what to write instead.
fn may_fault(kernel: &Kernel, insn: &Insn) -> Option<(&'static str, &'static str)> {
    let mut found = None;
    let of_class = |e: &Expr, class| {
        let ty = kernel.type_of(e, &[]).ok().and_then(ExprType::scalar);
        ty.is_some_and(|ty| ty.class() == class)
    };
    let mut visit = |e: &Expr| match e {
        Expr::Binary(
            BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::TruncDiv | BinaryOp::TruncRem,
            _,
            divisor,
        ) if !divides(divisor) && !of_class(divisor, Class::Real) => {
            found = Some(("divide integers by what may be zero", "divide by `max(…, 1)` or a constant"));
        }
        Expr::Binary(BinaryOp::Shl | BinaryOp::Shr, _, by) if !matches!(**by, Expr::Int(0..32)) => {
            found = Some(("shift by what may be too far", "shift by a constant below 32"));
        }
        Expr::Cast(ty, of) if !ty.part().is_real() && of_class(of, Class::Real) => {
            found = Some(("cast a real to an integer that it may not fit", "keep the rule real"));
        }
        // words are never affine, whatever they look like
        Expr::Cast(ty, of)
            if ty.is_exact()
                && (of_class(of, Class::Word)
                    || ty.is_storage()
                    || *ty == ScalarType::I32 && !fits_i32(kernel, of) && of.as_affine().is_none()) =>
        {
            found = Some(match *ty == ScalarType::I32 {
                true => ("cast an integer to an i32 that it may not fit", "cast where it is used"),
                false => ("cast an integer to a type that it may not fit", "cast where it is used"),
            });
        }
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => {}
    };
    insn.expressions().for_each(|e| e.for_each(&mut visit));
    found
}

/// Whether every integer can be divided by a value: -1 is none, of which the quotient may not fit.
fn divides(divisor: &Expr) -> bool {
    if let Expr::Binary(BinaryOp::Max, a, b) = divisor {
        return [a, b].iter().any(|e| matches!(***e, Expr::Int(1..)));
    }
    divisor.as_affine().and_then(|e| e.as_constant()).is_some_and(|c| c != 0 && c != -1)
}
