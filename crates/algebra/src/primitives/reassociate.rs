//! Orders sums and products by the loops that their operands depend on.

use crate::polynomial::{Atoms, Factor, joined};
use crate::proofs::sums::{self, REAL, SHORT};
use kingpost_analysis::Analysis;
use kingpost_ir::{BinaryOp, Expr, ExprType, InameId, Insn, InsnId, Kernel, ScalarType, UnaryOp, VarId};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::tree::loops_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Orders the operands of sums and products so that those that change least come first.
///
/// # Rewrite
/// ```text
/// for i in 0..n                            =>   for i in 0..n
///   for j in 0..n                                 for j in 0..n
///     s: y[i, j] += b[j]*(a[i]*w)*2.0               s: y[i, j] += 2.0*w*a[i]*b[j]
/// ```
/// An operand depends on a loop that it mentions, or that holds a write of what it reads. Operands
/// are ordered by the innermost loop that they depend on, literals first, and joined from left to
/// right: what does not depend on the inner loops is one subexpression then, which can be moved out
/// of them (`extract_rule`, `precompute_rule`). Sums inside products are ordered, too. Like terms
/// become one.
///
/// # Precondition
/// The value is computed in `f64`; sums and products are equal up to their order, where values are
/// finite. Divisors stay divisors, and what a condition selects stays under it.
///
/// # Errors
/// An unknown instruction; a value or a part of it that is not computed in `f64`; a value that is
/// ordered so; an infinity or a nan as a number; a
/// reduction; a call.
///
/// # Source
/// Luporini et al. 2017, §6.1, re-association.
///
/// # Elsewhere
/// COFFEE `reassociate`; LLVM's reassociate pass, which ranks operands likewise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reassociate {
    /// The instruction.
    pub insn: String,
}

impl Reassociate {
    /// Orders the operands of what `insn` computes.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into() }
    }
}

impl fmt::Display for Reassociate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reassociate `{}`", self.insn)
    }
}

/// The order is another one.
const CHANGES: Obligation = Obligation::new("reassociate.changes", "an operand comes before others then");

impl Primitive for Reassociate {
    const NAME: &'static str = "reassociate";
    const SUMMARY: &'static str = "Orders sums and products by the loops that their operands depend on.";

    type Proof = (InsnId, Expr);
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[REAL, SHORT, CHANGES, NOT_CALLED, sums::NO_REDUCTIONS, sums::FINITE];
    const KEEPS: Keeps = Keeps::REASSOCIATED.of_finite();

    fn check(&self, analysis: &Analysis) -> Result<(InsnId, Expr), Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        sums::check_value(kernel, insn)?;
        let value = Depths::of(kernel, id)?.ordered(insn, &insn.rhs)?;
        CHANGES.require(value != insn.rhs, || format!("the operands of `{}` are ordered so", insn.name))?;
        Ok((id, value))
    }

    fn edit(&self, kernel: &mut Kernel, (insn, value): &(InsnId, Expr)) {
        kernel.insns[*insn].rhs = value.clone();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let real = |i: &Insn| kernel.type_of(&i.rhs, &[]) == Ok(ExprType::Scalar(ScalarType::F64));
        draw::possible(kernel, draw::insns(kernel, real).into_iter().map(Self::new).collect(), p)
    }
}

/// How deep in the loops around an instruction what it reads changes.
struct Depths<'k> {
    kernel: &'k Kernel,
    /// The loops around, from 1 for the outermost one.
    loops: BTreeMap<InameId, usize>,
    /// The depth of the innermost of these loops that holds a write of the variable.
    written: BTreeMap<VarId, usize>,
}

impl<'k> Depths<'k> {
    fn of(kernel: &'k Kernel, id: InsnId) -> Result<Self, Refusal> {
        let around = loops_of(kernel, id)?;
        let written = kernel.write_depths(&around);
        let loops = around.iter().enumerate().map(|(k, iname)| (*iname, k + 1)).collect();
        Ok(Self { kernel, loops, written })
    }

    fn depth(&self, e: &Expr) -> usize {
        let mut deepest = 0;
        e.for_each(&mut |e| {
            let of_loop = if let Expr::Iname(iname) = e { self.loops.get(iname) } else { None };
            let of_load = e.as_load().and_then(|access| self.written.get(&access.var));
            deepest = deepest.max(of_loop.or(of_load).copied().unwrap_or(0)); // default: what no loop around changes
        });
        // a rule reads what its body reads, of which nothing is known here
        if e.any(&mut |e| matches!(e, Expr::Rule(..))) { self.loops.len() } else { deepest }
    }

    /// The expression with its operands in order.
    fn ordered(&self, insn: &Insn, e: &Expr) -> Result<Expr, Refusal> {
        let is_open = matches!(
            e,
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, ..)
                | Expr::Unary(UnaryOp::Neg, _)
        );
        if !is_open {
            return Ok(e.clone());
        }
        let mut atoms = Atoms::default();
        let sum = atoms.terms(self.kernel, e, &|_| false);
        let sum = sums::of(self.kernel, insn, sum)?;
        let mut terms = Vec::new();
        for (product, c) in &sum {
            let mut factors = Vec::new();
            for factor in product {
                let operand = atoms.get(factor.atom);
                let is_sum = matches!(operand, Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
                let value =
                    if is_sum && operand != e { self.ordered(insn, operand)? } else { operand.clone() };
                factors.push((self.depth(&value), *factor, value));
            }
            factors.sort_by_key(|(depth, factor, _)| (*depth, factor.atom));
            let depth = factors.iter().map(|(depth, _, _)| *depth).max();
            let place = product.iter().map(|f| f.atom).min();
            terms.push(((depth, place), joined_factors(factors, *c))); // a term of no factors comes first
        }
        terms.sort_by_key(|(key, _)| *key);
        let value = joined(terms.into_iter().map(|(_, term)| term));
        Ok(value.unwrap_or(Expr::from(0.0)))
    }
}

/// A product and its sign; the literal comes first.
fn joined_factors(factors: Vec<(usize, Factor, Expr)>, c: f64) -> (Option<Expr>, f64) {
    let literal = (c.abs() != 1.0).then(|| Expr::from(c.abs()));
    let (divisors, numerator): (Vec<_>, Vec<_>) = factors.into_iter().partition(|(_, f, _)| f.divides);
    let numerator = literal.into_iter().chain(numerator.into_iter().map(|(_, _, e)| e));
    let numerator = numerator.reduce(|a, b| a * b);
    let divided = divisors.into_iter().map(|(_, _, e)| e);
    let value = match (numerator, divided.len()) {
        (None, 0) => None,
        (numerator, _) => {
            let numerator = numerator.unwrap_or(Expr::from(1.0));
            Some(divided.fold(numerator, |a, b| Expr::binary(BinaryOp::Div, a, b)))
        }
    };
    (value, if c < 0.0 { -1.0 } else { 1.0 })
}
