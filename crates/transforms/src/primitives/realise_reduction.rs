//! Turns a reduction into a loop.

use kingpost_analysis::Analysis;
use kingpost_ir::neutral::of_nothing;
use kingpost_ir::{
    Access, AddressSpace, BinaryOp, Expr, ExprType, Id, InameId, Insn, InsnId, Kernel, Node, Reduction,
    ScalarType, UpdateOp, VarKind, Variable, WriteOp,
};
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::{NO_REDUCTIONS, refuse_reductions};
use kingpost_steps::proofs::reread::{Parts, UNREAD};
use kingpost_steps::proofs::width::{NO_WIDE_UPDATE, accumulator_type, cast_stored, stores_wide};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Array, Handles, Made, Statement};
use kingpost_steps::tree::edit_siblings;
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
/// In place, there is no accumulator: what the instruction writes is updated by the loop, after a
/// store of the value of nothing where the instruction is a store.
/// ```text
/// s: y[i] = sum(m in 0..n: a[i, m])        =>   s: y[i] = 0.0
///                                               for m in 0..n
///                                                 s_update: y[i] += a[i, m]
/// t: z[i] += sum(k in 0..n: a[i, k])       =>   for k in 0..n
///                                                 t_update: z[i] += a[i, k]
/// ```
///
/// # Precondition
/// The reduction is evaluated whenever the instruction runs: it stands under no condition, and
/// inside no other reduction or use of a rule. The loop runs right before
/// `s`, through the same points in the same order, from the value of nothing: the result is the
/// same bit by bit. No update of an `i32` takes a value that may not fit one, other than to add or
/// multiply a whole sum or product, which is the same modulo 2^32. If loops are on axes, the
/// placement must hold.
///
/// In place, the reduction is the whole value, of the type of what is written; an update is by the
/// same operator, a sum or a product, and equal up to reassociation. The body, the index and the
/// condition do not read the element in the same instance: with `w` the writes and `r` the reads of
/// the new instructions, `{ w -> r : o = o', element(w) = element(r), w before r }` is empty.
///
/// # Errors
/// An unknown iname, one of a loop, a reduction inside another, under a condition, in a predicate,
/// or among the arguments of a rule, one without a type of its own; an update of an `i32` by a sum
/// in 64 bits; names that are taken. In place: a value that is more than the reduction, another
/// type or operator, a body that reads the element, with two instances.
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
    /// Name of the accumulator; `{insn}_acc` if absent, or with a number if that is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<String>,
    /// Whether to accumulate in what the instruction writes, without an accumulator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
}

impl RealiseReduction {
    /// Realises the reduction over `iname` in an accumulator.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), accumulator: None, in_place: false }
    }

    /// Accumulates in a temporary of this name.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.accumulator = Some(name.into());
        self
    }

    /// Accumulates in what the instruction writes.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }
}

impl fmt::Display for RealiseReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "realise reduction over `{}`", self.iname)?;
        if self.in_place {
            f.write_str(" in place")?;
        }
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

/// Nothing is computed with the value before it is stored.
const WHOLE: Obligation = Obligation::new(
    "realise_reduction.whole",
    "in place, the reduction is the whole value of the instruction",
);

/// The value is rounded as often as before.
const SAME_TYPE: Obligation =
    Obligation::new("realise_reduction.same_type", "in place, the reduction has the type of what is written");

/// Terms join what is there as they join each other.
const SAME_OPERATOR: Obligation = Obligation::new(
    "realise_reduction.same_operator",
    "in place, an update is a sum or product by the operator of the reduction",
);

/// A reduction that is evaluated whenever an instruction runs, and what accumulates it.
pub struct Accumulation {
    insn: InsnId,
    reduction: Reduction,
    /// Type of the reduction.
    ty: ScalarType,
    into: Target,
}

/// What a reduction is accumulated in.
enum Target {
    /// A temporary.
    Temporary {
        /// Names of the accumulator, of what starts it and of what updates it.
        names: [String; 3],
        /// Type of the accumulator.
        wide: ScalarType,
        /// Whether the instruction stores a wider value now.
        cast: bool,
    },
    /// What the instruction writes, by an update of this name.
    Destination {
        /// The name.
        update: String,
    },
}

/// What a realised reduction is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realised {
    /// The accumulator, unless the reduction is accumulated in place.
    pub accumulator: Option<Array>,
    /// What starts the accumulator, and what updates it; in place the update alone.
    pub insns: Vec<Statement>,
}

impl Handles for Realised {
    fn list(&self, made: &mut Made) {
        made.arrays.extend(self.accumulator.clone());
        self.insns.list(made);
    }
}

impl Primitive for RealiseReduction {
    const NAME: &'static str = "realise_reduction";
    const VERB: Option<&'static str> = Some("realise");
    const SUMMARY: &'static str = "Turns a reduction into a loop.";

    type Proof = Accumulation;
    type Made = Realised;

    const OBLIGATIONS: &'static [Obligation] = &[
        REDUCTION,
        EVALUATED,
        NOT_IN_PREDICATE,
        TYPED,
        NO_WIDE_UPDATE,
        WHOLE,
        SAME_TYPE,
        SAME_OPERATOR,
        UNREAD,
        NO_REDUCTIONS,
        NOT_CALLED,
    ];
    const WEIGHT: usize = 2;

    /// In place, the terms are added to what is there already, one after the other.
    fn keeps(&self) -> Keeps {
        if self.in_place { Keeps::REASSOCIATED } else { Keeps::BITS }
    }

    fn check(&self, analysis: &Analysis) -> Result<Accumulation, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        let (insn, reduction) = self.find(kernel, iname)?;
        let found = kernel.type_of(&Expr::Reduce(reduction.clone()), &[]);
        let ty = TYPED.find(found.ok().and_then(ExprType::stored), || {
            format!(
                "the reduction over `{}` takes its type from where it stands; cast its body, for example to f64",
                self.iname
            )
        })?;
        if self.in_place {
            return self.check_in_place(
                analysis,
                Accumulation { insn, reduction, ty, into: Target::Destination { update: String::new() } },
            );
        }
        let names = self.names(kernel, &kernel.insns[insn].name)?;
        let wide = accumulator_type(kernel, &kernel.insns[insn], &reduction, ty);
        let into = |cast| Target::Temporary { names: names.clone(), wide, cast };
        let mut proof = Accumulation { insn, reduction, ty, into: into(false) };
        let draft = self.draft(kernel, &proof);
        proof.into = into(stores_wide(&draft, insn, &format!("the reduction over `{}`", self.iname))?);
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Accumulation) -> Realised {
        match &proof.into {
            Target::Temporary { names, wide, cast } => proof.edit_temporary(kernel, names, *wide, *cast),
            Target::Destination { update } => proof.edit_in_place(kernel, update),
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let step = Self::new(p.of(&draw::reductions(kernel))?);
        Some(if p.one_in(3) { step.in_place() } else { step })
    }
}

impl Accumulation {
    /// The loops of the reduction around a new instruction.
    fn nest(&self, insn: InsnId) -> Node {
        let loops = self.reduction.inames.iter().rev();
        loops.fold(Node::Insn(insn), |node, iname| Node::Loop(*iname, vec![node]))
    }

    fn edit_temporary(
        &self,
        kernel: &mut Kernel,
        [name, init, update]: &[String; 3],
        wide: ScalarType,
        cast: bool,
    ) -> Realised {
        let (id, reduction) = (self.insn, &self.reduction);
        let temporary = Variable::new(name, wide, VarKind::Temporary, [], AddressSpace::Private);
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
        let start = new(init, WriteOp::Assign, of_nothing(reduction.op, self.ty));
        let first = kernel.insns.push(start);
        let op = WriteOp::Update { op: reduction.op, atomic: false };
        let step = new(update, op, (*reduction.body).clone());
        let node = self.nest(kernel.insns.push(step));
        let (whole, value) = (Expr::Reduce(reduction.clone()), Expr::Load(acc.clone()));
        kernel.insns[id].map_expressions(&mut |e| if e == whole { value.clone() } else { e });
        if cast {
            cast_stored(kernel, id);
        }
        edit_siblings(&mut kernel.body, &|n| *n == Node::Insn(id), &mut |nodes| {
            if let Some(at) = nodes.iter().position(|n| *n == Node::Insn(id)) {
                nodes.splice(at..at, [Node::Insn(first), node.clone()]);
            }
        });
        let insns = vec![Statement::named(init), Statement::named(update)];
        Realised { accumulator: Some(Array::named(name)), insns }
    }

    fn edit_in_place(&self, kernel: &mut Kernel, update: &str) -> Realised {
        let (id, reduction) = (self.insn, &self.reduction);
        let old = kernel.insns[id].clone();
        let (keeps, op) = match old.op {
            WriteOp::Assign => (true, WriteOp::Update { op: reduction.op, atomic: false }),
            update @ WriteOp::Update { .. } => (false, update),
        };
        if keeps {
            kernel.insns[id].rhs = of_nothing(reduction.op, self.ty);
        }
        let step = Insn { name: update.to_owned(), op, rhs: (*reduction.body).clone(), ..old };
        let node = self.nest(kernel.insns.push(step));
        edit_siblings(&mut kernel.body, &|n| *n == Node::Insn(id), &mut |nodes| {
            if let Some(at) = nodes.iter().position(|n| *n == Node::Insn(id)) {
                let start = keeps.then_some(Node::Insn(id));
                nodes.splice(at..=at, start.into_iter().chain([node.clone()]));
            }
        });
        Realised { accumulator: None, insns: vec![Statement::named(update)] }
    }
}

impl RealiseReduction {
    /// The instruction and the reduction, which must be evaluated whenever the instruction runs.
    fn find(&self, kernel: &Kernel, iname: InameId) -> Result<(InsnId, Reduction), Refusal> {
        for (id, insn) in kernel.insns.iter() {
            for e in insn.lhs.index.iter().chain([&insn.rhs]) {
                let Some((reduction, obstacle)) = search(e, iname, None) else { continue };
                EVALUATED.forbid(obstacle, |obstacle| {
                    format!("the reduction over `{}` in `{}` {obstacle}", self.iname, insn.name)
                })?;
                REDUCTION.holds(Means::Form, String::new);
                return Ok((id, reduction.clone()));
            }
            let elsewhere = insn.predicate.as_ref().is_none_or(|p| search(p, iname, None).is_none());
            NOT_IN_PREDICATE.require(elsewhere, || {
                format!(
                    "the reduction over `{}` stands in the predicate of `{}`; store it in a temporary first",
                    self.iname, insn.name
                )
            })?;
        }
        Err(REDUCTION.unfit(format!("`{}` is a loop, not the iname of a reduction", self.iname)))
    }

    /// The reduction is all that is written, and what is written is not read meanwhile.
    fn check_in_place(&self, analysis: &Analysis, mut proof: Accumulation) -> Result<Accumulation, Refusal> {
        let kernel = analysis.kernel();
        if self.accumulator.is_some() {
            let found = "an accumulator is named, and none is used in place";
            return Err(Refusal::argument("accumulator", found, "one of the two arguments"));
        }
        let insn = &kernel.insns[proof.insn];
        let (name, var) = (&insn.name, &kernel.vars[insn.lhs.var]);
        let update = format!("{name}_update");
        lookup::free(kernel, &update)?;
        NOT_CALLED.require(insn.callee.is_none(), || {
            format!("`{name}` belongs to a call; inline the call first")
        })?;
        WHOLE.require(matches!(&insn.rhs, Expr::Reduce(r) if *r == proof.reduction), || {
            format!(
                "the reduction over `{}` is a part of the value of `{name}`; split the sum first, or name an accumulator",
                self.iname
            )
        })?;
        SAME_TYPE.require(var.ty == proof.ty, || {
            format!(
                "the reduction over `{}` has the type {}, and `{}` the type {}; cast the body",
                self.iname,
                proof.ty.name(),
                var.name,
                var.ty.name()
            )
        })?;
        let is_sum = matches!(proof.reduction.op, UpdateOp::Add | UpdateOp::Mul);
        let joins = insn.update_op().is_none_or(|op| op == proof.reduction.op && is_sum);
        SAME_OPERATOR.require(joins, || {
            format!(
                "`{name}` updates `{}` by `{}`, needed an update by `+=` of a sum or by `*=` of a product",
                var.name,
                insn.update_op().map_or("", UpdateOp::update_symbol)
            )
        })?;
        refuse_reductions(kernel, insn, &insn.lhs.index.iter().chain(&insn.predicate).collect::<Vec<_>>())?;
        proof.into = Target::Destination { update };
        let draft = self.draft(kernel, &proof);
        let insns = [proof.insn, InsnId::from_index(kernel.insns.len())];
        let stored = usize::from(insn.op != WriteOp::Assign);
        let parts = Parts { draft: &draft, insns: &insns[stored..], depth: analysis.loops(proof.insn).len() };
        parts.check_unread(analysis, "accumulate in a temporary")?;
        Ok(proof)
    }

    /// Names of the accumulator, of what starts it and of what updates it.
    fn names(&self, kernel: &Kernel, insn: &str) -> Result<[String; 3], Refusal> {
        // an instruction may have several reductions
        let end = if self.accumulator.is_some() { "" } else { "_acc" };
        let names = |stem: &str| [end, "_init", "_update"].map(|end| format!("{stem}{end}"));
        let asked = self.accumulator.as_deref();
        Ok(names(&lookup::made(kernel, asked, insn, |stem| names(stem).to_vec())?))
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
