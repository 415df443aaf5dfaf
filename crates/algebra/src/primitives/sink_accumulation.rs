//! Zeroes and commits an accumulator in every iteration of a loop instead of around it.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::DependenceKind;
use kingpost_analysis::polyhedral::{Side, difference};
use kingpost_ir::{Atom, Constraint, InameId, InsnId, Kernel, Node, UpdateOp, VarId, VarKind};
use kingpost_isl as isl;
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::commit::Accumulator;
use kingpost_steps::proofs::elements::NO_RULE;
use kingpost_steps::proofs::elements::ONLY_ACCESSED;
use kingpost_steps::proofs::elements::TEMPORARY;
use kingpost_steps::proofs::elements::{check_no_rule, check_only_accessed, temporary};
use kingpost_steps::proofs::length::always;
use kingpost_steps::refusal::{Refusal, WrongOrder};
use kingpost_steps::tree::loops_down_to;
use kingpost_steps::tree::{edit_siblings, inames_of, insns_of, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves the statement that sets an accumulator to the neutral element and the one that adds it to
/// its destination into the loop `into` between them: every iteration accumulates a part of its own
/// and commits it.
///
/// # Rewrite
/// ```text
/// z: t = 0.0                  =>   for q in 0..n
/// for q in 0..n                      z: t = 0.0
///   for k in 0..4                    for k in 0..4
///     s: t += a[q, k]                  s: t += a[q, k]
/// c: y += t                          c: y += t
/// ```
/// Equal up to the order of the operations of the declared update; `c` runs once an iteration.
///
/// # Precondition
/// `t` is accessed only by one statement before the loop, which assigns the neutral element of
/// `op`, or the infinity that an extremum of nothing is if the loop runs at least once; inside, by
/// updates `t op= …`; and by one statement after, whose instructions are `y[f] op= t[g]`. With `c`
/// the commits and `s` the instructions from the loop to them, no dependence orders `s` before or
/// after `c` other than through `t`, except updates `y op= …`, which commute: `{ s -> c in D } = {
/// c -> s in D } = {}` within the same iteration of the loops around. If loops are on axes, the
/// placement must hold.
///
/// # Errors
/// Another access of the accumulator, a start that is not neutral, a commit of another form or
/// operator; a dependence between the loop and the commit, with two instances; bounds read from
/// memory.
///
/// # Source
/// Kulkarni & Klöckner 2025, Algorithm 4 (the scatter of every quadrature tile).
///
/// # Elsewhere
/// Partial sums; Halide `rfactor` where the destination is the intermediate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkAccumulation {
    /// The accumulator.
    pub var: String,
    /// The loop.
    pub into: String,
}

impl SinkAccumulation {
    /// Accumulates `var` again in every iteration of `into`.
    pub fn new(var: impl Into<String>, into: impl Into<String>) -> Self {
        Self { var: var.into(), into: into.into() }
    }
}

impl fmt::Display for SinkAccumulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sink the accumulation in `{}` into `{}`", self.var, self.into)
    }
}

/// Nobody else sees the accumulator.
const USERS: Obligation = Obligation::new(
    "sink_accumulation.users",
    "one statement before the loop, the loop, and one statement after it use the accumulator",
);

/// The parts of the iterations are summed.
const UPDATES: Obligation =
    Obligation::new("sink_accumulation.updates", "the loop only updates the accumulator, by one operator");

/// A start in every iteration changes nothing.
const NEUTRAL_START: Obligation =
    Obligation::new("sink_accumulation.neutral_start", "the accumulator starts from the neutral element");

/// The commits of the parts make the commit of the whole.
const COMMIT: Obligation =
    Obligation::new("sink_accumulation.commit", "the accumulator is committed by the update that made it");

/// Parts are rounded as the whole is.
const SAME_TYPE: Obligation =
    Obligation::new("sink_accumulation.same_type", "the destination has the type of the accumulator");

/// The loops that move run as often.
const BOUNDS: Obligation =
    Obligation::new("sink_accumulation.bounds", "the bounds of what moves are known before the loop runs");

/// The commit may run while the loop does.
const APART: Obligation = Obligation::new(
    "sink_accumulation.apart",
    "no dependence but through the accumulator orders the loop and the commit",
);

/// The statements concerned, siblings of the loop.
pub struct Parts {
    var: VarId,
    into: InameId,
    start: Node,
    /// Instructions of the loop.
    inside: Vec<InsnId>,
    /// Instructions of the loop and from there to the commit.
    between: Vec<InsnId>,
    commit: Node,
}

impl Primitive for SinkAccumulation {
    const NAME: &'static str = "sink_accumulation";
    const SUMMARY: &'static str =
        "Zeroes and commits an accumulator in every iteration of a loop instead of around it.";

    type Proof = Parts;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[
        USERS,
        UPDATES,
        NEUTRAL_START,
        COMMIT,
        SAME_TYPE,
        BOUNDS,
        APART,
        TEMPORARY,
        ONLY_ACCESSED,
        NO_RULE,
        NO_REDUCTION,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const INSTANCES: Instances = Instances::Free;
    const WEIGHT: usize = 3;

    fn check(&self, analysis: &Analysis) -> Result<Parts, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries accumulate")?;
        let into = lookup::tree_loop(kernel, &self.into)?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        let parts = self.parts(kernel, var, into)?;
        let op = self.check_loop(kernel, &parts)?;
        let accumulator = Accumulator { kernel, var: parts.var, op };
        // a commit of nothing replaces a nan, and where the loop does not run, no other one does so
        // any more
        accumulator.check_start(&parts.start, runs(analysis, &parts)?, NEUTRAL_START)?;
        accumulator.check_commit(&parts.commit, COMMIT, SAME_TYPE)?;
        self.check_bounds(kernel, &parts)?;
        self.check_apart(analysis, &parts)?;
        Ok(parts)
    }

    fn edit(&self, kernel: &mut Kernel, parts: &Parts) {
        let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == parts.into);
        edit_siblings(&mut kernel.body, &is_loop, &mut |nodes| {
            nodes.retain(|n| *n != parts.start && *n != parts.commit);
            for node in nodes.iter_mut().filter(|n| is_loop(n)) {
                if let Node::Loop(_, body) = node {
                    body.insert(0, parts.start.clone());
                    body.push(parts.commit.clone());
                }
            }
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for var in draw::temporaries(kernel, 0) {
            all.extend(draw::loops(kernel).into_iter().map(|l| Self::new(&var, l)));
        }
        draw::possible(kernel, all, p)
    }
}

impl SinkAccumulation {
    fn parts(&self, kernel: &Kernel, var: VarId, into: InameId) -> Result<Parts, Refusal> {
        let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == into);
        let nodes = siblings(&kernel.body, &is_loop).expected("loop of that name in the tree", kernel)?;
        let touching =
            |nodes: &[Node]| insns_of(nodes).into_iter().filter(|i| touches(kernel, *i, var)).count();
        let users: Vec<_> = (0..nodes.len()).filter(|k| touching(&nodes[*k..=*k]) > 0).collect();
        match users[..] {
            [start, at, commit] if is_loop(&nodes[at]) && touching(nodes) == touching(&kernel.body) => {
                USERS.holds(Means::Form, String::new);
                Ok(Parts {
                    var,
                    into,
                    start: nodes[start].clone(),
                    inside: insns_of(&nodes[at..=at]),
                    between: insns_of(&nodes[at..commit]),
                    commit: nodes[commit].clone(),
                })
            }
            _ => Err(USERS.unfit(format!(
                "`{}` is not used by exactly one statement before `{}`, by `{}`, and by one statement after it in the \
                 same body; distribute or move the statements first",
                self.var, self.into, self.into
            ))),
        }
    }

    /// Inside the loop the accumulator is only updated; returns the operator.
    fn check_loop(&self, kernel: &Kernel, parts: &Parts) -> Result<UpdateOp, Refusal> {
        let mut found = None;
        for id in parts.inside.iter().filter(|i| touches(kernel, **i, parts.var)) {
            let insn = &kernel.insns[*id];
            let op = insn.update_op().filter(|op| op.commutes() && !insn.loads(parts.var));
            match (op, found) {
                (Some(op), None) => found = Some(op),
                (Some(op), Some(other)) if op == other => {}
                (Some(_) | None, _) => UPDATES.require(false, || {
                    format!(
                        "`{}` in `{}` does something else with `{}` than to update it by one operator, so the parts \
                         of the iterations would be seen",
                        insn.name, self.into, self.var
                    )
                })?,
            }
        }
        UPDATES.find(found, || format!("nothing in `{}` updates `{}`", self.into, self.var))
    }

    /// The loops that move must not have bounds that the loop changes.
    fn check_bounds(&self, kernel: &Kernel, parts: &Parts) -> Result<(), Refusal> {
        let moved = [parts.start.clone(), parts.commit.clone()];
        for iname in inames_of(kernel, &moved) {
            let mut from_memory = false;
            kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
                from_memory |= matches!(atom, Atom::Var(v) if kernel.vars[*v].kind != VarKind::Param);
            });
            BOUNDS.decide(!from_memory, || {
                let name = &kernel.inames[iname].name;
                format!("the bounds of `{name}` are read from memory; keep it outside")
            })?;
        }
        Ok(())
    }

    /// `{ s -> c in D } = { c -> s in D } = {}` within one iteration of the loops around.
    fn check_apart(&self, analysis: &Analysis, parts: &Parts) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        let commits = insns_of(std::slice::from_ref(&parts.commit));
        let poly = analysis.polyhedral();
        let mut around = loops_down_to(kernel, parts.into)?;
        around.pop();
        let step = |l: &InameId| {
            let ends = [Side::Source, Side::Sink].map(|side| isl::Affine::name(poly.name(*l, side)));
            isl::Constraint::zero(difference(&ends[1], &ends[0]))
        };
        let same: Vec<_> = around.iter().map(step).collect();
        for d in analysis.dependences()? {
            let across = parts.between.contains(&d.source) && commits.contains(&d.sink);
            let within = commits.contains(&d.source) && commits.contains(&d.sink);
            if !(across || within) || d.var == parts.var || d.kind == DependenceKind::Update {
                continue;
            }
            let witness = d.witness(kernel, &d.relation_where(std::slice::from_ref(&same))?)?;
            APART.refute(witness.map(|witness| {
                let relation = format!("which touches `{}`", witness.element);
                let help = "the accumulator is committed in every iteration; choose another loop".into();
                WrongOrder { witness, relation, help }
            }))?;
        }
        Ok(())
    }
}

/// Whether the loop surely has an iteration.
fn runs(analysis: &Analysis, parts: &Parts) -> Result<bool, Refusal> {
    let (kernel, into) = (analysis.kernel(), parts.into);
    let Some((lo, hi)) = kernel.inames[into].domain.as_range(into) else { return Ok(false) };
    let mut around = loops_down_to(kernel, into)?;
    around.pop();
    let some = Constraint::lt(&lo, &hi);
    Ok(some.as_constant() == Some(true) || always(analysis.polyhedral(), &around, &some)?)
}

fn touches(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    kernel.insns[insn].lhs.var == var || kernel.insns[insn].loads(var)
}
