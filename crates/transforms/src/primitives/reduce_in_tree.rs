//! Joins the terms of an update pairwise, in logarithmically many steps.

mod edit;

use kingpost_analysis::Analysis;
use kingpost_ir::{AxisTag, InameId, Insn, InsnId, Kernel, Node, ScalarType, SubGroup, UpdateOp};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::accumulation::{
    Delayed, HAS_ELEMENT, HAS_VALUE, IS_UPDATE, NO_REDUCTIONS, refuse_reductions, update, update_in_order,
};
use kingpost_steps::proofs::largest_length::{LARGEST_LENGTH, SOME_ITERATION, Values, work_item_tag};
use kingpost_steps::proofs::width::fits_i32;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Handles, Loop, Made, Statement};
use kingpost_steps::tree::loop_body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Stores the terms of an update over `iname` in local memory and joins them in a tree: in every
/// step the upper half of what is left is joined to the lower half, on the work-items of a group.
///
/// # Rewrite
/// ```text
///                       temp s_tree: f64[5] local
/// for j in 0..5    =>   for j in 0..5 {l.0}
///   s: y += a[j]          s_tree_leaf: s_tree[j] = a[j]
///                       for s_tree_0 in 0..2 {l.0}
///                         s_tree_join_0: s_tree[s_tree_0] += s_tree[s_tree_0 + 3]
///                       for s_tree_1 in 0..1 {l.0}
///                         s_tree_join_1: s_tree[s_tree_1] += s_tree[s_tree_1 + 2]
///                       for s_tree_2 in 0..1 {l.0}
///                         s_tree_join_2: s_tree[s_tree_2] += s_tree[s_tree_2 + 1]
///                       s: y += s_tree[0]
/// ```
/// Where the operands keep their order, as in an operator that is not declared commutative, neighbours are
/// joined: `tree[2*k]` with `tree[2*k + 1]`, then `tree[4*k]` with `tree[4*k + 2]`, and so on.
///
/// Any constant length is halved, rounding up. Where the loop is shorter than its largest length,
/// or a predicate leaves terms out, every leaf is set to the neutral element first: the sum over
/// nothing changes nothing. The barriers between the steps are derived like all others.
///
/// By shuffles, the work-items of a sub-group hold the terms and add what another one holds, in as
/// many steps and without a barrier; each of them has the sum in the end:
/// ```text
///                       temp s_tree: f64[8] subgroup
///                       temp s_tree_sum_0: f64[8] subgroup
///                       ...
/// for j in 0..8    =>   for j in 0..8 {l.0}
///   s: y += a[j]          s_tree_leaf: s_tree[j] = a[j]
///                       for s_tree_0 in 0..8 {l.0}
///                         s_tree_join_0: s_tree_sum_0[s_tree_0] = s_tree[s_tree_0] + s_tree[(s_tree_0 + 4) mod 8]
///                       ...
///                       s: y += s_tree_sum_2[0]
/// ```
/// CUDA reads by `__shfl_sync`. OpenCL leaves the size and the shape of sub-groups to the device,
/// so that there, and in C, which has none, the terms are in local memory with a barrier before
/// every step.
///
/// Where loops around are on other axes of work-items, each of their iterations has a tree of its own: the
/// arrays have an axis for each of these loops.
///
/// # Precondition
/// The loop holds nothing but an update, so that its terms may be regrouped. The element is the
/// same in all iterations, and the update reads its variable nowhere else: with `o` the loops
/// around, `{ s -> t : o = o', element(s) = element(t), s before t }` is empty for every read `t`
/// of it. Where there is no term, the element lies in the array. If it belongs to a temporary or an
/// output, it has surely been written. Terms of an `i32` extremum fit an `i32`. The length of the
/// loop has a constant bound. If loops are on axes, the placement must hold.
///
/// By shuffles, the length is a power of two, at most the width of the kernel's sub-groups, on
/// `l.0`. Code generation proves that all work-items of the sub-group take part.
///
/// # Errors
/// Refused are
///
/// - an element that the update reads, with two instances;
/// - an element that may not exist or have no value, with the sizes;
/// - an element that the loop selects;
/// - a loop of more than an update, of a plain store, of unknown length, or of integers that may not
///   fit; for shuffles, of another length or axis;
/// - an operator that is not declared associative; for shuffles, not commutative;
/// - a tag that is no axis of work-items;
/// - names that are taken.
///
/// # Elsewhere
/// Loopy realises reductions over `l.0` like this; CUB `BlockReduce`, by shuffles
/// `WarpReduce`; Halide `rfactor` with `gpu_threads` and `in`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReduceInTree {
    /// The loop over the terms.
    pub iname: String,
    /// Name of the tree; `{insn}_tree` if absent. Loops and instructions are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// `l.0`, `l.1` or `l.2`, for the loop over the terms as well; the tag of that loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::work_item_tags")]
    pub tag: Option<AxisTag>,
    /// Whether the work-items of a sub-group hold the terms and read them by shuffles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shuffle: bool,
}

impl ReduceInTree {
    /// Reduces over `iname`, where its tag says.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), tree: None, tag: None, shuffle: false }
    }

    /// Runs on the work-items along the axis of this tag.
    #[must_use]
    pub fn by_work_items(mut self, tag: AxisTag) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Holds the terms in the registers of a sub-group.
    #[must_use]
    pub fn by_shuffles(mut self) -> Self {
        self.shuffle = true;
        self
    }

    /// Calls the tree `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.tree = Some(name.into());
        self
    }
}

impl fmt::Display for ReduceInTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reduce over `{}` in a tree", self.iname)?;
        self.tree.as_ref().map_or(Ok(()), |name| write!(f, " `{name}`"))?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, " on {tag}"))?;
        f.write_str(if self.shuffle { " by shuffles" } else { "" })
    }
}

/// Nothing else happens between two terms.
const ONLY_UPDATE: Obligation =
    Obligation::new("reduce_in_tree.only_update", "the loop holds nothing but an update");

/// There is something to join.
const ONE_ELEMENT: Obligation =
    Obligation::new("reduce_in_tree.one_element", "all iterations update the same element");

/// The leaves hold the terms: of an extremum, other than of a sum modulo 2^32, they must fit.
const TERMS_FIT: Obligation =
    Obligation::new("reduce_in_tree.terms_fit", "the terms of an extremum of an `i32` surely fit one");

/// Shuffles go to neighbours.
const LANES_AXIS: Obligation =
    Obligation::new("reduce_in_tree.lanes_axis", "the work-items of a sub-group are neighbours along l.0");

/// Every step halves the work-items of a sub-group.
const LANES_LENGTH: Obligation = Obligation::new(
    "reduce_in_tree.lanes_length",
    "a sub-group joins as many terms as a power of two, at most its width",
);

/// An update whose terms may be regrouped, and the tree that joins them.
pub struct Plan {
    iname: InameId,
    id: InsnId,
    op: UpdateOp,
    tag: AxisTag,
    name: String,
    values: Values,
    /// Whether there is a term for every leaf.
    full: bool,
    /// Whether the work-items of a sub-group hold the leaves.
    shuffle: bool,
    /// Loops around on other axes of work-items, each iteration of which has a tree of its own.
    around: Vec<(InameId, Values)>,
}

/// Handles to the parts of a tree, from the leaves on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// What holds the leaves, and by shuffles what holds the sums after each step.
    pub arrays: Vec<Array>,
    /// The loop that fills the leaves, if there is one, and that of each step.
    pub loops: Vec<Loop>,
    /// What fills and sets the leaves, and the joins.
    pub statements: Vec<Statement>,
}

impl Handles for Tree {
    fn list(&self, made: &mut Made) {
        self.arrays.list(made);
        self.loops.list(made);
        self.statements.list(made);
    }
}

impl Primitive for ReduceInTree {
    const NAME: &'static str = "reduce_in_tree";
    const SUMMARY: &'static str = "Joins the terms of an update pairwise, in logarithmically many steps.";

    type Proof = Plan;
    type Made = Tree;

    const OBLIGATIONS: &'static [Obligation] = &[
        ONLY_UPDATE,
        ONE_ELEMENT,
        TERMS_FIT,
        ORDER,
        LARGEST_LENGTH,
        SOME_ITERATION,
        LANES_AXIS,
        LANES_LENGTH,
        NO_REDUCTION,
        IS_UPDATE,
        NO_REDUCTIONS,
        HAS_ELEMENT,
        HAS_VALUE,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const INSTANCES: Instances = Instances::Free;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Plan, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let only = match loop_body(&kernel.body, iname) {
            Some([Node::Insn(id)]) => Some(*id),
            Some(_) | None => None,
        };
        let id = ONLY_UPDATE.find(only, || {
            format!(
                "the loop over `{}` holds more than one update; distribute it, and interchange it inward, first",
                self.iname
            )
        })?;
        let insn = &analysis.expanded().insns[id];
        // shuffles join what is left and right of a work-item
        let of_update = if self.shuffle { update } else { update_in_order };
        let (_, op) = of_update(kernel, &insn.name)?;
        ONE_ELEMENT.require(!insn.lhs.index.iter().any(|e| e.mentions(iname)), || {
            format!(
                "every iteration of `{}` updates an element of `{}` of its own; there is nothing to join",
                self.iname, kernel.vars[insn.lhs.var].name
            )
        })?;
        check_terms_fit(kernel, insn, op)?;
        let tag = work_item_tag(kernel, iname, self.tag)?;
        let poly = analysis.polyhedral();
        let outer = poly.loops(id).len() - 1;
        let predicate = insn.predicate.as_ref().filter(|p| !p.mentions(iname));
        refuse_reductions(kernel, insn, &insn.predicate.iter().collect::<Vec<_>>())?;
        let delayed = Delayed { analysis, id, outer };
        delayed.check_unseen("keep the update sequential")?;
        delayed.check_element_exists(&poly.loops(id)[..outer], predicate)?;
        let values = Values::of(kernel, iname)?;
        let full = insn.predicate.is_none() && is_full(kernel, iname, values.length);
        if self.shuffle {
            check_lanes(&self.iname, values.length, tag, kernel.sub_group)?;
        }
        let around = on_other_axes(kernel, &poly.loops(id)[..outer], tag);
        let stem = format!("{}_tree", insn.name);
        let mut plan =
            Plan { iname, id, op, tag, name: String::new(), values, full, shuffle: self.shuffle, around };
        plan.name = lookup::made(kernel, self.tree.as_deref(), &stem, |name| plan.names(name))?;
        Ok(plan)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Plan) -> Tree {
        proof.edit(kernel)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut single = draw::bodies(kernel);
        single.retain(|(_, names)| names.len() == 1 && kernel.insn(&names[0]).is_some());
        let all = single.into_iter().filter_map(|(of, _)| Some(Self::new(of?))).collect();
        let step = draw::possible(kernel, all, p)?.into_temporary(kernel.fresh_name("tree"));
        Some(match p.below(4) {
            0 => step,
            1 => step.by_work_items(AxisTag::Local(0)).by_shuffles(),
            _ => step.by_work_items(AxisTag::Local(0)),
        })
    }
}

fn check_terms_fit(kernel: &Kernel, insn: &Insn, op: UpdateOp) -> Result<(), Refusal> {
    let var = &kernel.vars[insn.lhs.var];
    let is_sum = matches!(op, UpdateOp::Add | UpdateOp::Mul);
    TERMS_FIT.require(is_sum || var.ty.loaded() != ScalarType::I32 || fits_i32(kernel, &insn.rhs), || {
        format!(
            "`{}` compares values that may not fit the type of `{}`, i32, in which the tree would hold them; cast \
             them to i32",
            insn.name, var.name
        )
    })
}

/// Whether the work-items of a sub-group can hold as many leaves.
fn check_lanes(iname: &str, length: i64, tag: AxisTag, width: SubGroup) -> Result<(), Refusal> {
    LANES_AXIS.require(tag == AxisTag::Local(0), || {
        format!(
            "the work-items of a sub-group are neighbours along l.0, and `{iname}` is on {tag}; reduce on l.0"
        )
    })?;
    let mut joined = (0..=width.width().ilog2()).map(|k| 1_i64 << k);
    LANES_LENGTH.require(joined.any(|n| n == length), || {
        let (below, last) = (width.width().ilog2(), width.width());
        let below: Vec<String> = (0..below).map(|k| (1 << k).to_string()).collect();
        let numbers =
            if below.is_empty() { last.to_string() } else { format!("{} or {last}", below.join(", ")) };
        format!(
            "`{iname}` has up to {length} terms, and a sub-group joins {numbers} by shuffles; \
             split it, and take the loop inside a block"
        )
    })
}

/// The loops of more than one iteration on axes of work-items but this one.
fn on_other_axes(kernel: &Kernel, around: &[InameId], tag: AxisTag) -> Vec<(InameId, Values)> {
    let is_other =
        |i: &&InameId| matches!(kernel.inames[**i].tag, AxisTag::Local(_)) && kernel.inames[**i].tag != tag;
    let several = |i: &InameId| Some((*i, Values::of(kernel, *i).ok().filter(|v| v.length > 1)?));
    around.iter().filter(is_other).filter_map(several).collect()
}

/// Whether a loop always has its largest length.
fn is_full(kernel: &Kernel, iname: InameId, length: i64) -> bool {
    let range = kernel.inames[iname].domain.as_range(iname);
    range.is_some_and(|(lo, hi)| hi.minus(&lo).as_constant() == Some(length))
}
