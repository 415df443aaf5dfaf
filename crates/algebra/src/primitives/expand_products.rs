//! Distributes products over sums.

use crate::polynomial::Atoms;
use crate::proofs::sums::{self, REAL, SHORT};
use kingpost_analysis::Analysis;
use kingpost_ir::{BinaryOp, Expr, ExprType, Insn, InsnId, Kernel, ScalarType};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

/// Multiplies out sums that are factors of a product in the value of an instruction.
///
/// # Rewrite
/// ```text
/// s: y[i] += (a*u[i] + b*v[i])*(c + d)   =>   s: y[i] += a*u[i]*(c + d) + b*v[i]*(c + d)
/// ```
/// by `expand_products(s, "a*u[i] + b*v[i]")`. `sums` are factors as the kernel's text has them,
/// spaces left out or not; none means all sums, also those that appear in what is multiplied out.
/// Like terms become one, and terms that cancel are gone.
///
/// # Precondition
/// The value is a sum of products of type `f64`, `(s_1 + s_2) p = s_1 p + s_2 p`. It is equal where
/// values are finite, up to the order of sums and products. What is selected by a condition stays
/// under it: calls, conditionals and divisors are operands that stay whole.
///
/// # Errors
/// An unknown instruction; a value or a part of it that is not computed in `f64`; a sum that is no
/// factor there, with those that are; more than 8,192 terms; an infinity or a nan as a number; a
/// reduction; a call.
///
/// # Source
/// Luporini et al. 2017, §3.2 and §6.1, expansion.
///
/// # Elsewhere
/// COFFEE `expand`; SymPy `expand`; UFL `apply_algebra_lowering` has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpandProducts {
    /// The instruction.
    pub insn: String,
    /// The sums that are multiplied out; all if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
}

impl ExpandProducts {
    /// Multiplies out all sums in what `insn` computes.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into(), sums: Vec::new() }
    }

    /// Multiplies out these sums only.
    #[must_use]
    pub fn with_sums<S: Into<String>>(mut self, sums: impl IntoIterator<Item = S>) -> Self {
        self.sums = sums.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for ExpandProducts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expand products of `{}`", self.insn)?;
        let sums: Vec<String> = self.sums.iter().map(|s| format!("`{s}`")).collect();
        if sums.is_empty() { Ok(()) } else { write!(f, " with {}", sums.join(", ")) }
    }
}

/// There is something to multiply out.
const FACTOR: Obligation =
    Obligation::new("expand_products.factor", "each sum that is multiplied out is a factor of a product");

impl Primitive for ExpandProducts {
    const NAME: &'static str = "expand_products";
    const SUMMARY: &'static str = "Multiplies out sums that are factors of a product.";

    type Proof = (InsnId, Expr);
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[REAL, SHORT, FACTOR, NOT_CALLED, sums::NO_REDUCTIONS, sums::FINITE];
    const KEEPS: Keeps = Keeps::REASSOCIATED.of_finite();

    fn check(&self, analysis: &Analysis) -> Result<(InsnId, Expr), Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        sums::check_value(kernel, insn)?;
        let wanted: BTreeSet<String> = self.sums.iter().map(|s| sums::without_spaces(s)).collect();
        let met = RefCell::new(BTreeSet::new());
        let opens = |e: &Expr| {
            let text = sums::without_spaces(&kernel.show_expr(e).to_string());
            let opens = wanted.is_empty() || wanted.contains(&text);
            met.borrow_mut().insert(text);
            opens
        };
        let mut atoms = Atoms::default();
        let sum = sums::of(kernel, insn, atoms.terms(kernel, &insn.rhs, &opens))?;
        let met = met.into_inner();
        let missing = wanted.iter().find(|text| !met.contains(*text));
        FACTOR.require(missing.is_none() && !met.is_empty(), || {
            let there: Vec<String> = factors(kernel, &insn.rhs).iter().map(|s| format!("`{s}`")).collect();
            let there = if there.is_empty() { "no sum".to_owned() } else { there.join(", ") };
            match missing {
                Some(text) => format!(
                    "`{text}` is no factor of a product in the value of `{}`; there is {there}",
                    insn.name
                ),
                None => format!("no factor of a product in the value of `{}` is a sum", insn.name),
            }
        })?;
        Ok((id, atoms.rebuild(&sum)))
    }

    fn edit(&self, kernel: &mut Kernel, (insn, value): &(InsnId, Expr)) {
        kernel.insns[*insn].rhs = value.clone();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        let fits = |i: &Insn| sums::check_value(kernel, i).is_ok() && !factors(kernel, &i.rhs).is_empty();
        for insn in draw::insns(kernel, fits) {
            let id = lookup::insn(kernel, &insn).ok()?;
            all.push(Self::new(&insn));
            for sum in factors(kernel, &kernel.insns[id].rhs) {
                all.push(Self::new(&insn).with_sums([sum]));
            }
        }
        draw::possible(kernel, all, p)
    }
}

/// The sums of type `f64` that are factors of a product, as text.
fn factors(kernel: &Kernel, e: &Expr) -> Vec<String> {
    let mut found = BTreeSet::new();
    e.for_each(&mut |e| {
        let Expr::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), a, b) = e else { return };
        let second = (*op == BinaryOp::Mul).then_some(b);
        for factor in [a].into_iter().chain(second).map(|factor| &**factor) {
            let is_sum = matches!(factor, Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
            if is_sum && kernel.type_of(factor, &[]) == Ok(ExprType::Scalar(ScalarType::F64)) {
                found.insert(kernel.show_expr(factor).to_string());
            }
        }
    });
    found.into_iter().collect()
}
