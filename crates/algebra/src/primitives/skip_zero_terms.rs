//! Leaves out the terms of a sum that a table makes zero.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, BinaryOp, Expr, Insn, InsnId, Kernel, Real, ScalarType, TableData, UnaryOp, UpdateOp, VarKind,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup::Selection;
use kingpost_steps::lookup::table_factors;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::finite::{FINITE, check_finite};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Adds the terms of a sum only where the entry of a table that they are multiplied by is not zero.
///
/// # Rewrite
/// ```text
/// for j in 0..3                =>   for j in 0..3
///   s: y += w[j]*x[j]                 s: y += w[j]*x[j] if w[j] != 0.0
/// table w = [0.5, 0.0, 2.0]         table w = [0.5, 0.0, 2.0]
/// ```
/// In a loop that is written out, with a table of literals, the condition is known: the
/// zero terms are gone, and the others have no condition.
///
/// # Precondition
/// Each selected instruction adds a product, one factor of which is an entry of a table that has
/// zeros: `T(f) = 0` makes `T(f)*v = 0` for every finite `v`. Zero times an infinity or a nan is a
/// nan, which is left out as well. Nothing divides but numbers other than zero: zero over zero is a
/// nan of finite values. A result of zero may have the other sign.
///
/// # Errors
/// An empty selection, an instruction that does not add, one whose value is no product with an
/// entry of a table, or a quotient; a number or an entry that is an infinity or a nan; tables without a
/// zero.
///
/// # Source
/// The zero blocks of Luporini et al. 2017, §5, entry by entry.
///
/// # Elsewhere
/// FFCx and TSFC leave out zero columns of tables, COFFEE their zero blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipZeroTerms {
    /// The updates.
    pub insns: Selection,
}

impl SkipZeroTerms {
    /// Leaves out zero terms of the update of this name.
    pub fn insn(name: impl Into<String>) -> Self {
        Self { insns: Selection::Insn(name.into()) }
    }
}

impl fmt::Display for SkipZeroTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skip zero terms of {}", self.insns)
    }
}

/// Zero is neutral for sums alone.
const ADDS: Obligation = Obligation::new("skip_zero_terms.adds", "the instructions add to what they update");

/// A zero factor makes a product zero.
const PRODUCT: Obligation =
    Obligation::new("skip_zero_terms.product", "each value is a product with an entry of a table");

/// A zero numerator makes no quotient zero.
pub(super) const NO_QUOTIENT: Obligation = Obligation::new(
    "zero_terms.no_quotient",
    "no product with an entry that is zero is divided, but by numbers other than zero",
);

/// Otherwise nothing is left out.
const HAS_ZERO: Obligation =
    Obligation::new("skip_zero_terms.has_zero", "a table that each value is multiplied by has a zero");

/// Updates with the conditions of their terms.
pub struct ZeroTerms(Vec<(InsnId, Expr)>);

impl Primitive for SkipZeroTerms {
    const NAME: &'static str = "skip_zero_terms";
    const SUMMARY: &'static str = "Leaves out the terms of a sum that a table makes zero.";

    type Proof = ZeroTerms;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[ADDS, PRODUCT, HAS_ZERO, NO_QUOTIENT, FINITE];
    const KEEPS: Keeps = Keeps::NUMBERS.of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<ZeroTerms, Refusal> {
        let kernel = analysis.kernel();
        let mut terms = Vec::new();
        for id in self.insns.resolve(kernel)? {
            let insn = &kernel.insns[id];
            ADDS.require(insn.update_op() == Some(UpdateOp::Add) && insn.callee.is_none(), || {
                format!("`{}` does not add to `{}` by `+=`", insn.name, kernel.vars[insn.lhs.var].name)
            })?;
            let entries = table_factors(kernel, insn);
            PRODUCT.require(!entries.is_empty(), || {
                format!(
                    "the value of `{}` is no product with an entry of a table; expand its rules, realise its \
                     reductions, or split its sums first",
                    insn.name
                )
            })?;
            check_zero_terms(kernel, insn)?;
            let conditions = entries.into_iter().filter_map(|e| not_zero(kernel, e));
            let condition = conditions.reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
            HAS_ZERO.require(condition.is_some(), || {
                format!("no table that the value of `{}` is multiplied by has a zero", insn.name)
            })?;
            terms.extend(condition.map(|c| (id, c)));
        }
        Ok(ZeroTerms(terms))
    }

    fn edit(&self, kernel: &mut Kernel, ZeroTerms(terms): &ZeroTerms) {
        for (id, condition) in terms {
            let predicate = &mut kernel.insns[*id].predicate;
            *predicate = Some(match predicate.take() {
                Some(old) => Expr::binary(BinaryOp::And, old, condition.clone()),
                None => condition.clone(),
            });
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::insn(p.of(&draw::insns(kernel, |i| !table_factors(kernel, i).is_empty()))?))
    }
}

/// Checks that a factor of zero makes the value of an instruction zero, where what it reads is finite.
pub(super) fn check_zero_terms(kernel: &Kernel, insn: &Insn) -> Result<(), Refusal> {
    let divisor = divisors(&insn.rhs).into_iter().find(|e| !is_nonzero(e));
    NO_QUOTIENT.forbid(divisor, |divisor| {
        let shown = kernel.show_expr(divisor);
        format!(
            "`{}` divides by `{shown}`, and zero over zero is no zero; divide the sum after the loop \
             (`factor_out`), or multiply by a reciprocal that is stored before",
            insn.name
        )
    })?;
    check_finite(kernel, &insn.name, &insn.rhs)
}

/// What a product is divided by.
fn divisors(e: &Expr) -> Vec<&Expr> {
    if let Expr::Binary(BinaryOp::Mul, a, b) = e {
        return [divisors(a), divisors(b)].concat();
    }
    if let Expr::Binary(BinaryOp::Div, a, b) = e {
        return [divisors(a), vec![&**b]].concat();
    }
    if let Expr::Unary(UnaryOp::Neg, a) = e { divisors(a) } else { Vec::new() }
}

/// Whether a divisor is a number other than zero.
fn is_nonzero(e: &Expr) -> bool {
    match e {
        Expr::Int(value) => *value != 0,
        Expr::Real(value) => value.0 != 0.0,
        Expr::Unary(UnaryOp::Neg, a) | Expr::Cast(ScalarType::F32 | ScalarType::F64, a) => is_nonzero(a),
        Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => false,
    }
}

/// That an entry of a table is not zero, if the table has zeros.
fn not_zero(kernel: &Kernel, access: &Access) -> Option<Expr> {
    let VarKind::Table(data) = &kernel.vars[access.var].kind else { return None };
    let has_zero = (0..data.len()).any(|at| data.is_zero(at) == Some(true));
    let zero = match data {
        TableData::Real(_) | TableData::Complex(_) => Expr::Real(Real(0.0)),
        TableData::Int(_) => Expr::Int(0),
    };
    has_zero.then(|| Expr::binary(BinaryOp::Ne, Expr::Load(access.clone()), zero))
}
