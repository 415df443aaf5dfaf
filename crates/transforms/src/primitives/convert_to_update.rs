//! Makes an accumulation an update.

use kingpost_analysis::Analysis;
use kingpost_ir::{Access, BinaryOp, Expr, ExprType, Insn, InsnId, Kernel, UnaryOp, UpdateOp, WriteOp};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup::Selection;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes a store that adds to what it overwrites an update by a commuting operator, so that its
/// instances may be reordered, reduced in parallel, or made atomic.
///
/// # Rewrite
/// ```text
/// s: z[m] = z[m] + b - c     =>   s: z[m] += b - c
/// t: z[m] = a*z[m]*b         =>   t: z[m] *= a*b
/// u: z[m] = min(z[m], b)     =>   u: z[m] min= b
/// ```
/// Terms keep their order and the type they are summed in: `b - c` is computed in the type of `z`.
///
/// # Precondition
/// The right-hand side, seen as a sum (product, minimum, maximum) of terms, has the stored element
/// itself, by the same indices, as exactly one term with a positive sign, and no other term reads
/// `z`. The value is `z op (rest)`: equal up to the reassociation that updates declare, exactly so
/// with one other term. If loops are on axes, the placement must hold.
///
/// # Errors
/// A selection that matches nothing; an instruction that is an update already, that does not
/// accumulate, that subtracts the element, or that reads its variable elsewhere, also inside a
/// rule.
///
/// # Elsewhere
/// Exo `fold_into_reduce`; Halide's update definitions; Loopy has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvertToUpdate {
    /// The instructions.
    pub insns: Selection,
}

impl ConvertToUpdate {
    /// Makes an update of the instruction of this name.
    pub fn insn(name: impl Into<String>) -> Self {
        Self { insns: Selection::Insn(name.into()) }
    }
}

impl fmt::Display for ConvertToUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "convert {} to an update", self.insns)
    }
}

/// What is an update already accumulates twice.
const STORE: Obligation = Obligation::new("convert_to_update.store", "the instruction is a plain store");

/// The value is a chain of terms of which the element is one.
const ACCUMULATES: Obligation = Obligation::new(
    "convert_to_update.accumulates",
    "the value is a sum, product or extremum of terms of which the stored element is one",
);

/// No operator subtracts what is stored.
const POSITIVE: Obligation =
    Obligation::new("convert_to_update.positive", "the stored element is not subtracted");

/// The other terms do not depend on the order of the updates.
const READ_ONCE: Obligation = Obligation::new(
    "convert_to_update.read_once",
    "the rest of the value and the indices do not read the variable",
);

/// Stores that accumulate.
pub struct Accumulations {
    /// The instruction, its operator and the value without the stored element.
    insns: Vec<(InsnId, UpdateOp, Expr)>,
}

impl Primitive for ConvertToUpdate {
    const NAME: &'static str = "convert_to_update";
    const SUMMARY: &'static str = "Makes an accumulation an update.";

    type Proof = Accumulations;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[STORE, ACCUMULATES, POSITIVE, READ_ONCE];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Accumulations, Refusal> {
        let kernel = analysis.kernel();
        let chosen = self.insns.resolve(kernel)?.into_iter();
        let insns = chosen.map(|id| accumulation(kernel, id).map(|(op, rest)| (id, op, rest)));
        Ok(Accumulations { insns: insns.collect::<Result<_, _>>()? })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Accumulations) {
        for (id, op, rest) in &proof.insns {
            kernel.insns[*id].op = WriteOp::Update { op: *op, atomic: false };
            kernel.insns[*id].rhs = rest.clone();
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::insn(p.of(&draw::insns(kernel, |i| i.op == WriteOp::Assign && !i.lhs.index.is_empty()))?))
    }
}

/// A term of a chain by one operator, and whether it is subtracted.
pub(super) type Term<'e> = (&'e Expr, bool);

/// The other terms of a chain by one operator of which an element is a term, not subtracted.
pub(super) fn terms_beside<'e>(rhs: &'e Expr, element: &Access) -> Option<(UpdateOp, Vec<Term<'e>>)> {
    let (op, mut terms) = chain(rhs, element)?;
    let own = terms.iter().position(|(term, _)| is_element(term, element))?;
    let (_, minus) = terms.remove(own);
    (!minus).then_some((op, terms))
}

/// The operator and the rest of an accumulation.
fn accumulation(kernel: &Kernel, id: InsnId) -> Result<(UpdateOp, Expr), Refusal> {
    let insn = &kernel.insns[id];
    let (name, var) = (&insn.name, &kernel.vars[insn.lhs.var].name);
    STORE.require(insn.op == WriteOp::Assign, || format!("`{name}` is an update already"))?;
    let (op, terms) = ACCUMULATES.find(chain(&insn.rhs, &insn.lhs), || {
        format!(
            "`{name}` does not add to, multiply, or take an extremum with the element of `{var}` that it stores; \
             only an accumulation becomes an update"
        )
    })?;
    let own = |(term, _): &&Term| is_element(term, &insn.lhs);
    POSITIVE.require(matches!(terms.iter().find(own), Some((_, false))), || {
        format!(
            "`{name}` subtracts the element of `{var}` that it stores, which no update does; keep the store"
        )
    })?;
    let mut taken = false;
    let rest: Vec<Term> = terms
        .into_iter()
        .filter(|term| {
            let first = !taken && own(&term);
            taken |= first;
            !first
        })
        .collect();
    let elsewhere = rest.iter().map(|(term, _)| *term).chain(&insn.lhs.index).any(|e| reads(kernel, e, insn));
    READ_ONCE.require(!elsewhere, || {
        format!(
            "`{name}` reads `{var}` in another place as well, so its instances do not commute; keep the store"
        )
    })?;
    Ok((op, joined(kernel, insn, op, &rest)))
}

/// A right-hand side as a chain of terms by one operator that has the element as a term.
fn chain<'e>(rhs: &'e Expr, element: &Access) -> Option<(UpdateOp, Vec<Term<'e>>)> {
    UpdateOp::ALL.into_iter().find_map(|op| {
        let mut terms = Vec::new();
        flatten(op, rhs, false, &mut terms);
        let found = terms.len() > 1 && terms.iter().any(|(term, _)| is_element(term, element));
        found.then_some((op, terms))
    })
}

/// Only the left operand is opened: `z + (b + c)` has the terms `z` and `b +
/// c`, in any nesting that holds `z`.
fn flatten<'e>(op: UpdateOp, e: &'e Expr, minus: bool, terms: &mut Vec<Term<'e>>) {
    match (op, e) {
        (UpdateOp::Add, Expr::Binary(BinaryOp::Sub, a, b)) => {
            flatten(op, a, minus, terms);
            terms.push((b, !minus));
        }
        (UpdateOp::Add, Expr::Binary(BinaryOp::Add, a, b))
        | (UpdateOp::Mul, Expr::Binary(BinaryOp::Mul, a, b))
        | (UpdateOp::Min, Expr::Binary(BinaryOp::Min, a, b))
        | (UpdateOp::Max, Expr::Binary(BinaryOp::Max, a, b)) => {
            flatten(op, a, minus, terms);
            terms.push((b, minus));
        }
        _ => terms.push((e, minus)),
    }
}

/// Whether an expression is the element that an access stores: the same indices, literally or as
/// affine values.
fn is_element(e: &Expr, lhs: &Access) -> bool {
    let Expr::Load(access) = e else { return false };
    let same = |(a, b): (&Expr, &Expr)| a == b || (a.as_affine().is_some() && a.as_affine() == b.as_affine());
    access.var == lhs.var
        && access.index.len() == lhs.index.len()
        && access.index.iter().zip(&lhs.index).all(same)
}

fn reads(kernel: &Kernel, e: &Expr, insn: &Insn) -> bool {
    kernel.expand_rules(e).loads(insn.lhs.var)
}

/// The terms joined again, from left to right, in the type of the variable.
pub(super) fn joined(kernel: &Kernel, insn: &Insn, op: UpdateOp, rest: &[Term]) -> Expr {
    let ty = kernel.vars[insn.lhs.var].ty.loaded();
    // b + c of a narrower type would be rounded before it is added
    let widened = |e: &Expr| match kernel.type_of(e, &[]) {
        Ok(ExprType::Scalar(found)) if found != ty && rest.len() > 1 => Expr::Cast(ty, Box::new(e.clone())),
        // and integers would be joined as integers
        Ok(ExprType::Literal) if ty.part().is_real() && rest.len() > 1 => Expr::Cast(ty, Box::new(e.clone())),
        _ => e.clone(),
    };
    let mut sum: Option<Expr> = None;
    for (term, minus) in rest {
        let term = widened(term);
        sum = Some(match (sum, minus) {
            (None, false) => term,
            (None, true) => Expr::Unary(UnaryOp::Neg, Box::new(term)),
            (Some(sum), true) => sum - term,
            (Some(sum), false) => op.joined(sum, term),
        });
    }
    sum.unwrap_or(Expr::Int(0))
}
