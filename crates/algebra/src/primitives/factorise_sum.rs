//! Collects common factors of the terms of a sum.

use crate::polynomial::{Atoms, Factor, Product, Sum, joined};
use crate::proofs::sums::{self, REAL, SHORT};
use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, ExprType, Insn, InsnId, Kernel, ScalarType};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Collects factors that several terms of a sum have in common.
///
/// # Rewrite
/// ```text
/// s: y[i, j] += b[j]*c[i] + b[j]*d[i]   =>   s: y[i, j] += b[j]*(c[i] + d[i])
/// ```
/// by `factorise_sum(s, ["b[j]"])`. Factors are taken in the order of `by`; a term is collected
/// under the first of them that it has. They are operands as the kernel's text has them, loads or
/// whole sums, spaces left out or not. Like terms become one.
///
/// # Precondition
/// The value is a sum of products of type `f64`, `f p_1 + f p_2 = f (p_1 + p_2)`, and each factor is
/// one of at least two terms that are left. It is equal where values are finite, up to the order of
/// sums and products. Nothing leaves its instruction, so that nothing can change in between.
///
/// # Errors
/// An unknown instruction; a value or a part of it that is not computed in `f64`; a factor that fewer
/// than two terms have, with their number: one that changes from term to term, or that divides; a
/// reduction; an infinity or a nan as a number; a call.
///
/// # Source
/// Luporini et al. 2017, §3.2 and §6.1, factorisation.
///
/// # Elsewhere
/// COFFEE `factorize`; SymPy `collect`; Loopy `collect_common_factors_on_increment`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactoriseSum {
    /// The instruction.
    pub insn: String,
    /// The factors.
    pub by: Vec<String>,
}

impl FactoriseSum {
    /// Collects the factors `by` in what `insn` computes.
    pub fn new<S: Into<String>>(insn: impl Into<String>, by: impl IntoIterator<Item = S>) -> Self {
        Self { insn: insn.into(), by: by.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for FactoriseSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by: Vec<String> = self.by.iter().map(|s| format!("`{s}`")).collect();
        write!(f, "factorise `{}` by {}", self.insn, by.join(", "))
    }
}

/// Terms that have no factor in common keep what they have.
const SHARED: Obligation =
    Obligation::new("factorise_sum.shared", "each factor is one of at least two terms that are left");

impl Primitive for FactoriseSum {
    const NAME: &'static str = "factorise_sum";
    const SUMMARY: &'static str = "Collects factors that terms of a sum have in common.";

    type Proof = (InsnId, Expr);
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[REAL, SHORT, SHARED, NOT_CALLED, sums::NO_REDUCTIONS, sums::FINITE];
    const KEEPS: Keeps = Keeps::REASSOCIATED.of_finite();

    fn check(&self, analysis: &Analysis) -> Result<(InsnId, Expr), Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        if self.by.is_empty() {
            return Err(Refusal::argument("by", "no factor is named", "at least one"));
        }
        sums::check_value(kernel, insn)?;
        let mut atoms = Atoms::default();
        let mut left = terms(kernel, insn, &mut atoms)?;
        let mut collected = Vec::new();
        for text in &self.by {
            let is =
                |f: &Factor| !f.divides && sums::key(kernel, atoms.get(f.atom)) == sums::without_spaces(text);
            let has = |product: &Product| product.iter().any(is);
            let with = left.keys().filter(|p| has(p)).count();
            SHARED.require(with >= 2, || {
                format!(
                    "`{text}` is a factor of {with} of the {} terms that are left of the value of `{}`, needed 2",
                    left.len(),
                    insn.name
                )
            })?;
            let (mut rest, mut factor) = (Sum::new(), None);
            for (product, c) in &left {
                if let Some(at) = product.iter().position(is) {
                    let mut product = product.clone();
                    factor = Some(product.remove(at));
                    rest.insert(product, *c);
                }
            }
            left.retain(|p, _| !has(p));
            let times = factor.map_or(Expr::from(1.0), |f| atoms.get(f.atom).clone());
            collected.push((Some(times * atoms.rebuild(&rest)), 1.0));
        }
        let rest = left.iter().map(|(product, c)| (atoms.product_of(product), *c));
        let value = joined(collected.into_iter().chain(rest)).unwrap_or(Expr::from(0.0));
        Ok((id, value))
    }

    fn edit(&self, kernel: &mut Kernel, (insn, value): &(InsnId, Expr)) {
        kernel.insns[*insn].rhs = value.clone();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let real = |i: &Insn| kernel.type_of(&i.rhs, &[]) == Ok(ExprType::Scalar(ScalarType::F64));
        let mut all = Vec::new();
        for name in draw::insns(kernel, real) {
            let insn = &kernel.insns[lookup::insn(kernel, &name).ok()?];
            let mut atoms = Atoms::default();
            let Ok(sum) = terms(kernel, insn, &mut atoms) else { continue };
            let factors = sum.keys().flatten().filter(|f| !f.divides);
            let mut factors: Vec<String> =
                factors.map(|f| kernel.show_expr(atoms.get(f.atom)).to_string()).collect();
            factors.sort();
            let twice = factors.windows(2).filter(|pair| pair[0] == pair[1]);
            let mut twice: Vec<String> = twice.map(|pair| pair[0].clone()).collect();
            twice.dedup();
            all.extend(twice.into_iter().map(|factor| Self::new(&name, [factor])));
        }
        draw::possible(kernel, all, p)
    }
}

/// The terms of a value; no sum is multiplied out.
fn terms(kernel: &Kernel, insn: &Insn, atoms: &mut Atoms) -> Result<Sum, Refusal> {
    sums::of(kernel, insn, atoms.terms(kernel, &insn.rhs, &|_| false))
}
