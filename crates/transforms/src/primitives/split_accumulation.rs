//! Commits an accumulator half-way and accumulates the rest in a temporary of its own.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::DependenceKind;
use kingpost_analysis::polyhedral::{Side, difference};
use kingpost_ir::{Access, Atom, Expr, InsnId, Kernel, Node, UpdateOp, VarId, VarKind};
use kingpost_isl as isl;
use kingpost_steps::Means;
use kingpost_steps::copy::copy_nodes;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::commit::Accumulator;
use kingpost_steps::proofs::elements::{
    NO_RULE, ONLY_ACCESSED, TEMPORARY, check_no_rule, check_only_accessed, temporary,
};
use kingpost_steps::refusal::{Refusal, WrongOrder};
use kingpost_steps::schedule::{Array, Loop, Made, Statement};
use kingpost_steps::tree::{edit_siblings, inames_of, insns_of, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Commits what `var` has accumulated before the statement `before`, and accumulates what that and
/// later statements add in a temporary of its own.
///
/// # Rewrite
/// ```text
/// z: t = 0.0                  =>   z: t = 0.0
/// for p in 0..n                    for p in 0..n
///   s: t += a[p]                     s: t += a[p]
/// for q in 0..m                    c_1: y += t
///   r: t += b[q]                   z_1: t_1 = 0.0
/// c: y += t                        for q in 0..m
///                                    r: t_1 += b[q]
///                                  c: y += t_1
/// ```
/// Equal up to the order of the operations of the declared update; `c` runs once more.
///
/// # Precondition
/// `t` is accessed only by statements of one body: the first assigns the neutral element of `op`;
/// then come updates `t op= …`, some of them before
/// `before` and some from there on; the last one's instructions are `y[f] op= t[g]`. With `c` the
/// commits and `s` the instructions from `before` to them, no dependence orders `s` before `c`
/// other than through `t`, except updates `y op= …`, which commute: `{ s -> c in D } = {}` within
/// the same iteration of the loops around. The bounds of copied loops are not read from memory. If
/// loops are on axes, the placement must hold.
///
/// # Errors
/// Another access of the accumulator, a start that is not neutral, a commit of another form or
/// operator; a dependence between the later statements and the commit, with two instances; bounds
/// read from memory.
///
/// # Elsewhere
/// Partial sums; loop distribution of a Halide `Func` with several updates by `rfactor`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitAccumulation {
    /// The accumulator.
    pub var: String,
    /// The first statement, an instruction or a loop, of the second part.
    pub before: String,
    /// Name of the second part's temporary; `{var}_1`, or another number, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

impl SplitAccumulation {
    /// Splits the accumulation in `var` before `before`.
    pub fn new(var: impl Into<String>, before: impl Into<String>) -> Self {
        Self { var: var.into(), before: before.into(), part: None }
    }
}

impl fmt::Display for SplitAccumulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "split the accumulation in `{}` before `{}`", self.var, self.before)?;
        self.part.as_ref().map_or(Ok(()), |part| write!(f, " into `{part}`"))
    }
}

/// Who uses the accumulator.
const USES: Obligation = Obligation::new(
    "split_accumulation.uses",
    "the accumulator is used by a start, by updates on both sides, and by a commit, statements of one body",
);
/// What happens to it between start and commit.
const UPDATES: Obligation = Obligation::new(
    "split_accumulation.updates",
    "between start and commit the accumulator is only updated, by one operator",
);
/// What it starts from.
const START: Obligation = Obligation::new(
    "split_accumulation.start",
    "the accumulator starts from the neutral element of the update",
);
/// How it is committed.
const COMMIT: Obligation =
    Obligation::new("split_accumulation.commit", "the accumulator is committed by the update that made it");
/// The loops that are copied.
const BOUNDS: Obligation =
    Obligation::new("split_accumulation.bounds", "the bounds of copied loops are not read from memory");
/// What the earlier commit passes.
const ORDER: Obligation =
    Obligation::new("split_accumulation.order", "nothing in the second part is ordered before the commit");

/// What the edit relies on.
pub struct Split {
    var: VarId,
    part: String,
    before: Node,
    start: Node,
    /// The statements of the second part, without the commit.
    later: Vec<InsnId>,
    commit: Node,
}

/// What there is of an accumulation.
struct Uses {
    split: Split,
    /// Instructions that touch the accumulator between start and commit.
    updates: Vec<InsnId>,
}

impl Primitive for SplitAccumulation {
    const NAME: &'static str = "split_accumulation";
    const SUMMARY: &'static str =
        "Commits an accumulator half-way and accumulates the rest in a temporary of its own.";

    type Proof = Split;
    type Made = Made;

    const OBLIGATIONS: &'static [Obligation] =
        &[USES, UPDATES, START, COMMIT, BOUNDS, ORDER, TEMPORARY, ONLY_ACCESSED, NO_RULE];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Split, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries accumulate")?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        let part = match &self.part {
            Some(part) => {
                lookup::free(kernel, part)?;
                part.clone()
            }
            None => kernel.fresh_name(&format!("{}_1", self.var)),
        };
        let Uses { split, updates } = self.uses(kernel, var, part)?;
        let op = self.check_updates(kernel, var, &updates)?;
        let accumulator = Accumulator { kernel, var, op };
        accumulator.check_start(&split.start, false, START)?;
        accumulator.check_commit(&split.commit, COMMIT, COMMIT)?;
        check_bounds(kernel, &split)?;
        check_order(analysis, &split)?;
        Ok(split)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for var in draw::temporaries(kernel, 0) {
            let statements = draw::loops(kernel).into_iter().chain(draw::insns(kernel, |_| true));
            all.extend(statements.map(|at| Self::new(&var, at)));
        }
        draw::possible(kernel, all, p)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Split) -> Made {
        let mut part = kernel.vars[proof.var].clone();
        part.name.clone_from(&proof.part);
        let part = kernel.vars.push(part);
        let early_commit = copy_nodes(kernel, std::slice::from_ref(&proof.commit), "1");
        let late_start = copy_nodes(kernel, std::slice::from_ref(&proof.start), "1");
        let of_part = insns_of(&late_start).into_iter().chain(proof.later.iter().copied());
        for id in of_part.chain(insns_of(std::slice::from_ref(&proof.commit))) {
            redirect(kernel, id, proof.var, part);
        }
        let copies: Vec<Node> = early_commit.into_iter().chain(late_start).collect();
        let made = Made {
            arrays: vec![Array::named(&proof.part)],
            loops: inames_of(kernel, &copies).iter().map(|l| Loop::named(&kernel.inames[*l].name)).collect(),
            rules: Vec::new(),
            insns: insns_of(&copies).iter().map(|i| Statement::named(&kernel.insns[*i].name)).collect(),
        };
        let is_before = |n: &Node| *n == proof.before;
        edit_siblings(&mut kernel.body, &is_before, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_before) {
                nodes.splice(at..at, copies.iter().cloned());
            }
        });
        made
    }
}

impl SplitAccumulation {
    fn uses(&self, kernel: &Kernel, var: VarId, part: String) -> Result<Uses, Refusal> {
        let is_before = |n: &Node| match n {
            Node::Loop(l, _) => kernel.inames[*l].name == self.before,
            Node::Insn(i) => kernel.insns[*i].name == self.before,
        };
        let Some(nodes) = siblings(&kernel.body, &is_before) else {
            let loops = kernel.inames.values().map(|i| i.name.as_str());
            let all = kernel.insns.values().map(|i| i.name.as_str()).chain(loops);
            let known = lookup::near(&self.before, all);
            return Err(Refusal::Unknown { kind: "instruction or loop", name: self.before.clone(), known });
        };
        let touching = |nodes: &[Node]| {
            insns_of(nodes).into_iter().filter(|i| touches(kernel, *i, var)).collect::<Vec<_>>()
        };
        let users: Vec<_> = (0..nodes.len()).filter(|k| !touching(&nodes[*k..=*k]).is_empty()).collect();
        let at = nodes.iter().position(is_before).expected("place of a sibling", kernel)?;
        if let [start, updates @ .., commit] = &users[..]
            && updates.iter().any(|k| *k < at)
            && updates.iter().any(|k| *k >= at)
            && touching(nodes).len() == touching(&kernel.body).len()
        {
            let split = Split {
                var,
                part,
                before: nodes[at].clone(),
                start: nodes[*start].clone(),
                later: insns_of(&nodes[at..*commit]),
                commit: nodes[*commit].clone(),
            };
            USES.holds(Means::Form, String::new);
            return Ok(Uses { split, updates: touching(&nodes[start + 1..*commit]) });
        }
        Err(USES.unfit(format!(
            "`{}` is not used by a statement that starts it, by updates before and from `{}` on, and by a statement that \
             commits it, all in the body of `{}`; distribute or move the statements first",
            self.var, self.before, self.before
        )))
    }

    /// In between the accumulator is only updated; returns the operator.
    fn check_updates(&self, kernel: &Kernel, var: VarId, updates: &[InsnId]) -> Result<UpdateOp, Refusal> {
        let op_of = |id: &InsnId| {
            kernel.insns[*id].update_op().filter(|op| op.commutes() && !kernel.insns[*id].loads(var))
        };
        let mut first = None;
        for id in updates {
            let op = op_of(id);
            let same = op.is_some() && (first.is_none() || first == op);
            UPDATES.require(same, || {
                format!(
                    "`{}` does something else with `{}` than to update it by one operator, so the parts would be seen",
                    kernel.insns[*id].name, self.var
                )
            })?;
            first = first.or(op);
        }
        USES.find(first, || format!("nothing updates `{}`", self.var))
    }
}

fn check_bounds(kernel: &Kernel, split: &Split) -> Result<(), Refusal> {
    for iname in inames_of(kernel, &[split.start.clone(), split.commit.clone()]) {
        let mut from_memory = false;
        kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
            from_memory |= matches!(atom, Atom::Var(v) if kernel.vars[*v].kind != VarKind::Param);
        });
        BOUNDS.require(!from_memory, || {
            let name = &kernel.inames[iname].name;
            format!("the bounds of `{name}` are read from memory, which may change in between; keep one accumulation")
        })?;
    }
    Ok(())
}

fn check_order(analysis: &Analysis, split: &Split) -> Result<(), Refusal> {
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    let commits = insns_of(std::slice::from_ref(&split.commit));
    let [inner, outer] = [&split.commit, &split.before].map(|node| {
        let first = insns_of(std::slice::from_ref(node)).into_iter().next();
        first.map_or(&[][..], |i| poly.loops(i))
    });
    // the loops around the body
    let around = inner.iter().zip(outer).take_while(|(a, b)| a == b).map(|(a, _)| a);
    let step = |l: &kingpost_ir::InameId| {
        let ends = [Side::Source, Side::Sink].map(|side| isl::Affine::name(poly.name(*l, side)));
        isl::Constraint::zero(difference(&ends[1], &ends[0]))
    };
    let same: Vec<_> = around.map(step).collect();
    for d in analysis.dependences()? {
        let across = split.later.contains(&d.source) && commits.contains(&d.sink);
        let within = commits.contains(&d.source) && commits.contains(&d.sink);
        if !(across || within) || d.var == split.var || d.kind == DependenceKind::Update {
            continue;
        }
        let witness = d.witness(kernel, &d.relation_where(std::slice::from_ref(&same))?)?;
        ORDER.refute(witness.map(|witness| {
            let relation = format!("which touches `{}`", witness.element);
            let help = "the first part is committed before the second one; split elsewhere".into();
            WrongOrder { witness, relation, help }
        }))?;
    }
    Ok(())
}

fn touches(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    kernel.insns[insn].lhs.var == var || kernel.insns[insn].loads(var)
}

/// Lets an instruction access another variable of the same shape.
fn redirect(kernel: &mut Kernel, insn: InsnId, from: VarId, to: VarId) {
    let insn = &mut kernel.insns[insn];
    insn.map_expressions(&mut |e| match e {
        Expr::Load(Access { var, index }) if var == from => Expr::Load(Access { var: to, index }),
        other => other,
    });
    if insn.lhs.var == from {
        insn.lhs.var = to;
    }
}
