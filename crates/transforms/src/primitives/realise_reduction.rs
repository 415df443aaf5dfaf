//! Turns a reduction into a loop.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::neutral::of_nothing;
use crate::proofs::width::{accumulator_type, cast_stored};
use crate::refusal::Refusal;
use crate::tree::edit_siblings;
use purlin_ir::{
    Access, AddressSpace, BinaryOp, Expr, ExprType, InameId, Insn, InsnId, Kernel, Node, Reduction,
    ScalarType, VarKind, Variable, WriteOp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
/// The accumulator is private and has the type of the reduction; `i64` if values of type `i32` may not fit one, as a sum
/// in `y[i] = floor_div(sum(…), 8)`, whose value is then cast to the type of `y`. Several inames become loops in their order. A
/// predicate of `s` holds for all three. Tags of the instruction are kept by all three.
///
/// # Precondition
/// The reduction is evaluated whenever the instruction runs: it stands under no condition, and inside no other
/// reduction or use of a rule. The loop runs right before `s`, through the same points in the same order, from
/// the value of nothing: the result is the same bit by bit. No update of an `i32` takes a value that may not fit one,
/// other than to add or multiply a whole sum or product, which is the same modulo 2^32. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown iname, one of a loop, a reduction inside another, under a condition, in a predicate, or among the
/// arguments of a rule, one without a type of its own; an update of an `i32` by a sum in 64 bits; names that are taken.
///
/// # Elsewhere
/// Loopy `realize_reduction`; Halide `RDom`; Exo writes reductions as loops; TVM `decompose_reduction`. The
/// update that this makes is what `factor_update`, `reduce_in_tree` and `make_atomic` take further.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Transform for RealiseReduction {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let iname = lookup::iname(kernel, &self.iname)?;
        let (insn, reduction) = self.find(kernel, iname)?;
        let ty = match kernel.type_of(&Expr::Reduce(reduction.clone()), &[]) {
            Ok(ExprType::Scalar(ty)) => ty,
            _ => {
                return Err(Refusal::Other(format!(
                    "the reduction over `{}` takes its type from where it stands; cast its body, for example to f64",
                    self.iname
                )));
            }
        };
        let mut realised = self.edit(kernel, insn, &reduction, ty)?;
        cast_stored(&mut realised, insn, &format!("the reduction over `{}`", self.iname))?;
        realised.verify()?;
        check_placement(&realised)?;
        Ok(realised)
    }
}

impl RealiseReduction {
    /// The instruction and the reduction, which must be evaluated whenever the instruction runs.
    fn find(&self, kernel: &Kernel, iname: InameId) -> Result<(InsnId, Reduction), Refusal> {
        for (id, insn) in kernel.insns.iter() {
            for e in insn.lhs.index.iter().chain([&insn.rhs]) {
                if let Some((reduction, obstacle)) = search(e, iname, None) {
                    return match obstacle {
                        None => Ok((id, reduction.clone())),
                        Some(obstacle) => Err(Refusal::Other(format!(
                            "the reduction over `{}` in `{}` {obstacle}",
                            self.iname, insn.name
                        ))),
                    };
                }
            }
            if insn.predicate.as_ref().is_some_and(|p| search(p, iname, None).is_some()) {
                return Err(Refusal::Other(format!(
                    "the reduction over `{}` stands in the predicate of `{}`; store it in a temporary first",
                    self.iname, insn.name
                )));
            }
        }
        Err(Refusal::Other(format!("`{}` is a loop, not the iname of a reduction", self.iname)))
    }

    fn edit(
        &self,
        kernel: &Kernel,
        id: InsnId,
        reduction: &Reduction,
        ty: ScalarType,
    ) -> Result<Kernel, Refusal> {
        let mut realised = kernel.clone();
        let insn = &kernel.insns[id];
        let name = self.accumulator.clone().unwrap_or_else(|| format!("{}_acc", insn.name));
        let (init, update) = (format!("{}_init", insn.name), format!("{}_update", insn.name));
        let (init, update) = match &self.accumulator {
            None => (init, update),
            Some(name) => (format!("{name}_init"), format!("{name}_update")),
        };
        for name in [&name, &init, &update] {
            lookup::free(kernel, name)?;
        }
        let wide = accumulator_type(kernel, insn, reduction, ty);
        let temporary = Variable::new(name, wide, VarKind::Temporary, [], AddressSpace::Private);
        let acc = Access::scalar(realised.vars.push(temporary));
        let new = |name, op, rhs| Insn {
            name,
            lhs: acc.clone(),
            op,
            rhs,
            predicate: insn.predicate.clone(),
            tags: insn.tags.iter().cloned().collect::<BTreeSet<_>>(),
            callee: insn.callee,
        };
        let first = realised.insns.push(new(init, WriteOp::Assign, of_nothing(reduction.op, ty)));
        let step = WriteOp::Update { op: reduction.op, atomic: false };
        let mut node = Node::Insn(realised.insns.push(new(update, step, (*reduction.body).clone())));
        for iname in reduction.inames.iter().rev() {
            node = Node::Loop(*iname, vec![node]);
        }
        let whole = Expr::Reduce(reduction.clone());
        let value = Expr::Load(acc.clone());
        let mut replace = |e: Expr| if e == whole { value.clone() } else { e };
        realised.insns[id].map_expressions(&mut replace);
        edit_siblings(&mut realised.body, &|n| *n == Node::Insn(id), &mut |nodes| {
            if let Some(at) = nodes.iter().position(|n| *n == Node::Insn(id)) {
                nodes.splice(at..at, [Node::Insn(first), node.clone()]);
            }
        });
        Ok(realised)
    }
}

/// The reduction over an iname, and what keeps it from being evaluated once whenever the expression is.
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
