//! Turns a reduction into a loop.

use crate::draw::{self, Picks};
use crate::lookup;
use crate::neutral::of_nothing;
use crate::obligation::Obligation;
use crate::primitive::Primitive;
use crate::proofs::width::{NO_WIDE_UPDATE, accumulator_type, cast_stored, stores_wide};
use crate::refusal::Refusal;
use crate::schedule::{Array, Statement};
use crate::tree::edit_siblings;
use purlin_analysis::Analysis;
use purlin_ir::{
    Access, AddressSpace, BinaryOp, Expr, ExprType, InameId, Insn, InsnId, Kernel, Node, Reduction,
    ScalarType, VarKind, Variable, WriteOp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Turns the reduction over `iname` into an accumulator, a loop that updates it, and a use.
///
/// # Rewrite
/// ```text
/// s: y[i] = 2.0*sum(k in 0..n: a[i, k])   =>   s_init: s_acc = 0.0
///                                              for k in 0..n
///                                                s_update: s_acc += a[i, k]
///                                              s: y[i] = 2.0*s_acc
/// ```
/// The accumulator is private and has the type of the reduction; `i64` if values of type `i32` may
/// not fit one, as a sum in `y[i] = floor_div(sum(…), 8)`, whose value is then cast to the type of
/// `y`. Several inames become loops in their order. A predicate of `s` holds for all three. Tags of
/// the instruction are kept by all three.
///
/// # Precondition
/// The reduction is evaluated whenever the instruction runs: it stands under no condition, and
/// inside no other reduction or use of a rule. The loop runs right before
/// `s`, through the same points in the same order, from the value of nothing: the result is the same bit by bit. No update of an `i32`
/// takes a value that may not fit one, other than to add or multiply a whole sum or product, which
/// is the same modulo 2^32. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown iname, one of a loop, a reduction inside another, under a condition, in a predicate,
/// or among the arguments of a rule, one without a type of its own; an update of an `i32` by a sum
/// in 64 bits; names that are taken.
///
/// # Elsewhere
/// Loopy `realize_reduction`; Halide `RDom`; Exo writes reductions as loops; TVM
/// `decompose_reduction`. The update that this makes is what `factor_update`,
/// `reduce_in_tree` and `make_atomic` take further.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealiseReduction {
    /// An iname of the reduction.
    pub iname: String,
    /// Name of the accumulator; `{insn}_acc` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<String>,
}

impl RealiseReduction {
    /// Realises the reduction over `iname`.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), accumulator: None }
    }
}

impl fmt::Display for RealiseReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "realise reduction over `{}`", self.iname)?;
        self.accumulator.as_ref().map_or(Ok(()), |name| write!(f, " in `{name}`"))
    }
}

/// Loops run already.
const REDUCTION: Obligation =
    Obligation::new("realise_reduction.reduction", "the iname is one of a reduction");

/// The loop in front runs whenever the instruction does.
const EVALUATED: Obligation = Obligation::new(
    "realise_reduction.evaluated",
    "the reduction is evaluated once whenever the instruction runs",
);

/// What a predicate needs is not computed under that predicate.
const NOT_IN_PREDICATE: Obligation =
    Obligation::new("realise_reduction.not_in_predicate", "the reduction stands in a value or an index");

/// The accumulator has a type.
const TYPED: Obligation = Obligation::new("realise_reduction.typed", "the reduction has a type of its own");

/// A reduction that is evaluated whenever an instruction runs, and what accumulates it.
pub struct Accumulation {
    insn: InsnId,
    reduction: Reduction,
    /// Names of the accumulator, of what starts it and of what updates it.
    names: [String; 3],
    /// Type of the reduction.
    ty: ScalarType,
    /// Type of the accumulator.
    wide: ScalarType,
    /// Whether the instruction stores a wider value now.
    cast: bool,
}

impl Primitive for RealiseReduction {
    type Proof = Accumulation;
    type Made = (Array, [Statement; 2]);

    const OBLIGATIONS: &'static [Obligation] =
        &[REDUCTION, EVALUATED, NOT_IN_PREDICATE, TYPED, NO_WIDE_UPDATE];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Accumulation, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        let (insn, reduction) = self.find(kernel, iname)?;
        let Ok(ExprType::Scalar(ty)) = kernel.type_of(&Expr::Reduce(reduction.clone()), &[]) else {
            return Err(TYPED.unfit(format!(
                "the reduction over `{}` takes its type from where it stands; cast its body, for example to f64",
                self.iname
            )));
        };
        let names = self.names(&kernel.insns[insn].name);
        for name in &names {
            lookup::free(kernel, name)?;
        }
        let wide = accumulator_type(kernel, &kernel.insns[insn], &reduction, ty);
        let mut proof = Accumulation { insn, reduction, names, ty, wide, cast: false };
        let draft = self.draft(kernel, &proof);
        proof.cast = stores_wide(&draft, insn, &format!("the reduction over `{}`", self.iname))?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Accumulation) -> (Array, [Statement; 2]) {
        let (id, reduction, [name, init, update]) = (proof.insn, &proof.reduction, &proof.names);
        let temporary = Variable::new(name, proof.wide, VarKind::Temporary, [], AddressSpace::Private);
        let acc = Access::scalar(kernel.vars.push(temporary));
        let insn = kernel.insns[id].clone();
        let new = |name: &String, op, rhs| Insn {
            name: name.clone(),
            lhs: acc.clone(),
            op,
            rhs,
            predicate: insn.predicate.clone(),
            tags: insn.tags.clone(),
            callee: insn.callee,
        };
        let start = new(init, WriteOp::Assign, of_nothing(reduction.op, proof.ty));
        let first = kernel.insns.push(start);
        let op = WriteOp::Update { op: reduction.op, atomic: false };
        let step = new(update, op, (*reduction.body).clone());
        let mut node = Node::Insn(kernel.insns.push(step));
        for iname in reduction.inames.iter().rev() {
            node = Node::Loop(*iname, vec![node]);
        }
        let (whole, value) = (Expr::Reduce(reduction.clone()), Expr::Load(acc.clone()));
        kernel.insns[id].map_expressions(&mut |e| if e == whole { value.clone() } else { e });
        if proof.cast {
            cast_stored(kernel, id);
        }
        edit_siblings(&mut kernel.body, &|n| *n == Node::Insn(id), &mut |nodes| {
            if let Some(at) = nodes.iter().position(|n| *n == Node::Insn(id)) {
                nodes.splice(at..at, [Node::Insn(first), node.clone()]);
            }
        });
        (Array::named(name), [Statement::named(init), Statement::named(update)])
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::reductions(kernel))?))
    }
}

impl RealiseReduction {
    /// The instruction and the reduction, which must be evaluated whenever the instruction runs.
    fn find(&self, kernel: &Kernel, iname: InameId) -> Result<(InsnId, Reduction), Refusal> {
        for (id, insn) in kernel.insns.iter() {
            for e in insn.lhs.index.iter().chain([&insn.rhs]) {
                let Some((reduction, obstacle)) = search(e, iname, None) else { continue };
                EVALUATED.require(obstacle.is_none(), || {
                    let obstacle = obstacle.unwrap_or_default();
                    format!("the reduction over `{}` in `{}` {obstacle}", self.iname, insn.name)
                })?;
                return Ok((id, reduction.clone()));
            }
            if insn.predicate.as_ref().is_some_and(|p| search(p, iname, None).is_some()) {
                return Err(NOT_IN_PREDICATE.unfit(format!(
                    "the reduction over `{}` stands in the predicate of `{}`; store it in a temporary first",
                    self.iname, insn.name
                )));
            }
        }
        Err(REDUCTION.unfit(format!("`{}` is a loop, not the iname of a reduction", self.iname)))
    }

    /// Names of the accumulator, of what starts it and of what updates it.
    fn names(&self, insn: &str) -> [String; 3] {
        let stem = self.accumulator.as_deref().unwrap_or(insn);
        let accumulator = self.accumulator.clone().unwrap_or_else(|| format!("{insn}_acc"));
        [accumulator, format!("{stem}_init"), format!("{stem}_update")]
    }
}

/// The reduction over an iname, and what keeps it from being evaluated once whenever the expression
/// is.
pub(super) fn search<'e>(
    e: &'e Expr,
    iname: InameId,
    obstacle: Option<&'static str>,
) -> Option<(&'e Reduction, Option<&'static str>)> {
    const CONDITION: &str = "is evaluated under a condition only; store it in a temporary first";
    const INSIDE: &str = "stands inside another reduction; realise that one first";
    const RULE: &str = "is an argument of a rule; expand the rule first";
    if let Expr::Reduce(r) = e
        && r.inames.contains(&iname)
    {
        return Some((r, obstacle));
    }
    let of = |operand: usize| match e {
        Expr::Select(..) if operand > 0 => Some(CONDITION),
        Expr::Binary(BinaryOp::And | BinaryOp::Or, ..) if operand > 0 => Some(CONDITION),
        Expr::Reduce(_) => Some(INSIDE),
        Expr::Rule(..) => Some(RULE),
        _ => None,
    };
    e.operands().enumerate().find_map(|(k, operand)| search(operand, iname, obstacle.or(of(k))))
}
