//! Stores a sum term by term.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    BinaryOp, Expr, ExprType, Id, Insn, InsnId, Kernel, Node, ScalarType, UnaryOp, UpdateOp, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::{NO_REDUCTIONS, refuse_reductions};
use kingpost_steps::proofs::reread::{Parts, UNREAD};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Statement;
use kingpost_steps::tree::edit_siblings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes a store of a sum a store of its first terms and an update for each of the others; of an
/// update by a sum, an update for each term.
///
/// # Rewrite
/// ```text
/// for i in 0..n                      =>   for i in 0..n
///   s: y[i] = a[i] + b[i] - c[i]            s: y[i] = a[i]
///                                           s_1: y[i] += b[i]
///                                           s_2: y[i] += -c[i]
/// ```
/// Terms are those of `+` and `-` in any nesting, from left to right. With `from`, that many terms
/// stay together. The condition and the tags are copied. Equal up to the reassociation that updates
/// declare; sums of an `i32` are the same modulo 2^32, whatever they are in between.
///
/// # Precondition
/// The value is a sum of more than `from` terms, in the type of what is written: no term is rounded
/// that is not rounded today. No later term, nor the index or the condition, reads the element in
/// the same instance: with `y` the element that `s[x]` writes and `r` the reads of these, `{ x :
/// element(r(x)) = element(y(x)) }` is empty. Nothing runs between the parts of an instance.
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown instruction, an update by another operator, a value with too few terms or of another
/// type; a term that reads the element, with two instances; a reduction in the index or the
/// condition; a statement of a call; a placement that breaks a dependence.
///
/// # Elsewhere
/// The inverse of fusing updates; Exo `split_write`; Halide's update definitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitSum {
    /// The instruction.
    pub insn: String,
    /// The first term, counted from 0, that is split off; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
}

impl SplitSum {
    /// Splits every term but the first off.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into(), from: None }
    }

    /// Splits the terms from number `term` on off.
    #[must_use]
    pub fn from(mut self, term: u32) -> Self {
        self.from = Some(term);
        self
    }
}

impl fmt::Display for SplitSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "split the sum of `{}`", self.insn)?;
        self.from.map_or(Ok(()), |term| write!(f, " from term {term} on"))
    }
}

/// Terms are added.
const ADDS: Obligation = Obligation::new("split_sum.adds", "the instruction is a store or an update by `+=`");

/// There is something to split off.
const TERMS: Obligation = Obligation::new("split_sum.terms", "the value is a sum of more terms than stay");

/// No part is rounded that is not rounded today.
const SAME_TYPE: Obligation =
    Obligation::new("split_sum.same_type", "the sum is computed in the type of what the instruction writes");

/// A sum whose terms can be stored one after the other.
pub struct Terms {
    insn: InsnId,
    /// What the instruction still stores.
    first: Expr,
    /// What its updates add.
    rest: Vec<Expr>,
    /// Their names.
    names: Vec<String>,
}

impl Primitive for SplitSum {
    const NAME: &'static str = "split_sum";
    const SUMMARY: &'static str = "Stores a sum term by term, by a store and updates.";

    type Proof = Terms;
    type Made = Vec<Statement>;

    const OBLIGATIONS: &'static [Obligation] = &[ADDS, TERMS, SAME_TYPE, UNREAD, NO_REDUCTIONS, NOT_CALLED];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Terms, Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        self.check_form(kernel, insn)?;
        let (first, rest) = self.terms(kernel, insn)?;
        let names = names(kernel, &self.insn, rest.len());
        let proof = Terms { insn: id, first, rest, names };
        let draft = self.draft(kernel, &proof);
        let new = (kernel.insns.len()..draft.insns.len()).map(InsnId::from_index);
        let insns: Vec<_> = std::iter::once(id).chain(new).collect();
        let parts = Parts { draft: &draft, insns: &insns, depth: analysis.loops(id).len() };
        let help = format!("stage that operand of `{}` in a temporary, or split fewer terms off", self.insn);
        parts.check_unread(analysis, &help)?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Terms) -> Vec<Statement> {
        let old = kernel.insns[proof.insn].clone();
        kernel.insns[proof.insn].rhs = proof.first.clone();
        let op = match old.op {
            WriteOp::Assign => WriteOp::Update { op: UpdateOp::Add, atomic: false },
            update @ WriteOp::Update { .. } => update,
        };
        let updates = proof.rest.iter().zip(&proof.names).map(|(rhs, name)| {
            let insn = Insn { name: name.clone(), op, rhs: rhs.clone(), ..old.clone() };
            Node::Insn(kernel.insns.push(insn))
        });
        let updates: Vec<_> = updates.collect();
        let is_old = |n: &Node| *n == Node::Insn(proof.insn);
        edit_siblings(&mut kernel.body, &is_old, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_old) {
                nodes.splice(at + 1..at + 1, updates.iter().cloned());
            }
        });
        proof.names.iter().map(Statement::named).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let is_sum = |i: &Insn| matches!(i.rhs, Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        let step = Self::new(p.of(&draw::insns(kernel, is_sum))?);
        Some(if p.one_in(4) { step.from(p.below(3) as u32) } else { step })
    }
}

impl SplitSum {
    fn check_form(&self, kernel: &Kernel, insn: &Insn) -> Result<(), Refusal> {
        let name = &self.insn;
        NOT_CALLED.require(insn.callee.is_none(), || {
            format!("`{name}` belongs to a call; inline the call first")
        })?;
        let adds = insn.op == WriteOp::Assign || insn.update_op() == Some(UpdateOp::Add);
        ADDS.require(adds, || {
            format!("`{name}` joins its value as a whole, needed a store or an update by `+=`")
        })?;
        refuse_reductions(kernel, insn, &insn.lhs.index.iter().chain(&insn.predicate).collect::<Vec<_>>())?;
        let var = &kernel.vars[insn.lhs.var];
        let found = kernel.type_of(&insn.rhs, &[]);
        let same = found == Ok(ExprType::Scalar(var.ty)) || found == Ok(of_literals(var.ty));
        SAME_TYPE.require(same, || {
            format!(
                "the value of `{name}` is not computed in the type {} that it is stored in, so that its terms would \
                 be rounded one by one; cast them",
                var.ty.name()
            )
        })
    }

    /// What stays, and the terms that are split off.
    fn terms(&self, kernel: &Kernel, insn: &Insn) -> Result<(Expr, Vec<Expr>), Refusal> {
        let from = self.from.unwrap_or(1) as usize; // default: the first term stays
        if from == 0 {
            return Err(Refusal::argument("from", "no term would stay", "1 or more"));
        }
        let mut terms = Vec::new();
        let whole = kernel.type_of(&insn.rhs, &[]).ok();
        let opens = |e: &Expr| kernel.type_of(e, &[]).ok() == whole;
        flatten(&insn.rhs, false, &opens, &mut terms);
        let found = terms.len();
        TERMS.require(found > from, || match found {
            1 => format!("the value of `{}` is no sum; split a sum or a difference", self.insn),
            _ => format!("the value of `{}` has {found} terms, needed more than {from}", self.insn),
        })?;
        let (first, rest) = terms.split_at(from);
        let rest = rest.iter().filter_map(|(term, minus)| joined(None, term, *minus)).collect();
        let together = |cast: Option<ScalarType>| {
            let first = first.iter().enumerate().fold(None, |sum, (k, (term, minus))| {
                let wide = cast.filter(|_| k == 0).map(|ty| Expr::Cast(ty, Box::new((*term).clone())));
                joined(sum, wide.as_ref().unwrap_or(term), *minus)
            });
            first.unwrap_or(Expr::Int(0))
        };
        // terms of narrower types were joined to one of this type, which may no longer be among
        // them
        let keeps = from == 1 || kernel.type_of(&together(None), &[]).ok() == whole;
        let ty = kernel.vars[insn.lhs.var].ty;
        Ok((together(Some(ty).filter(|_| !keeps)), rest))
    }
}

/// The type of literals that are stored in this type.
fn of_literals(ty: ScalarType) -> ExprType {
    if ty.part().is_real() { ExprType::WeakReal } else { ExprType::Literal }
}

/// The terms of a sum from left to right, and whether each is subtracted. A sum in another type is
/// one term.
fn flatten<'e>(e: &'e Expr, minus: bool, opens: &dyn Fn(&Expr) -> bool, terms: &mut Vec<(&'e Expr, bool)>) {
    if let Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = e
        && opens(e)
    {
        flatten(a, minus, opens, terms);
        return flatten(b, minus != (*op == BinaryOp::Sub), opens, terms);
    }
    terms.push((e, minus));
}

/// A sum with one more term.
fn joined(sum: Option<Expr>, term: &Expr, minus: bool) -> Option<Expr> {
    let term = term.clone();
    Some(match (sum, minus) {
        (None, false) => term,
        (None, true) => Expr::Unary(UnaryOp::Neg, Box::new(term)),
        (Some(sum), false) => sum + term,
        (Some(sum), true) => sum - term,
    })
}

/// `{insn}_1`, `{insn}_2`, …, or with more after them where they are taken.
fn names(kernel: &Kernel, insn: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(count);
    let mut k = 0;
    while names.len() < count {
        k += 1;
        let name = kernel.fresh_name(&format!("{insn}_{k}"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
