//! Joins the terms of an update pairwise, in logarithmically many steps.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::nest::new_loop;
use crate::neutral::neutral;
use crate::proofs::accumulation::{Delayed, mentions, refuse_reductions, update};
use crate::proofs::extent::{parametric_extent, points_of};
use crate::proofs::width::fits_i32;
use crate::refusal::Refusal;
use crate::tree::{edit_siblings, loop_body};
use purlin_analysis::Analysis;
use purlin_analysis::placement::SUB_GROUP;
use purlin_ir::{
    Access, AddressSpace, Affine, AxisTag, BinaryOp, Domain, Expr, InameId, Insn, InsnId, Kernel, Node,
    ScalarType, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Stores the terms of an update over `iname` in local memory and joins them in a tree: in every step the upper half
/// of what is left is joined to the lower half, on the work-items of a group.
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
/// Any constant length is halved, rounding up. Where the loop is shorter than its largest length, or a predicate
/// leaves terms out, every leaf is set to the neutral element first: the sum over nothing changes nothing. The
/// barriers between the steps are derived like all others.
///
/// By shuffles, the work-items of a sub-group hold the terms and add what another one holds, in as many steps and
/// without a barrier; each of them has the sum in the end:
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
/// CUDA reads by `__shfl_sync`. OpenCL leaves the size and the shape of sub-groups to the device, so that there, and in
/// C, which has none, the terms are in local memory with a barrier before every step.
///
/// # Precondition
/// The loop holds nothing but an update, so that its terms may be regrouped. The element is the same in all
/// iterations, and the update reads its variable nowhere else: with `o` the loops around,
/// `{ s -> t : o = o', element(s) = element(t), s before t }` is empty for every read `t` of it. Where no term is, the
/// element lies in the array and, of a temporary or output, has surely been written. Terms of an `i32` extremum fit an
/// `i32`. The length of the loop has a constant bound. If loops are on axes, the placement must hold. By shuffles, the
/// length is a power of two of at most 32, on `l.0`; that all work-items of the sub-group take part is for code
/// generation to prove.
///
/// # Errors
/// An element that the update reads, with two instances; one that may not exist or have no value, with the sizes; a
/// loop of more than an update, of a plain store, of unknown length, for shuffles of another length or axis, of
/// integers that may not fit; an element that the loop selects; a tag that is no axis of work-items; names that are
/// taken.
///
/// # Elsewhere
/// Loopy realises reductions over `l.0` like this; CUB `BlockReduce`, by shuffles `WarpReduce`; Halide `rfactor` with `gpu_threads` and
/// `in`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReduceInTree {
    /// The loop over the terms.
    pub iname: String,
    /// Name of the tree; `{insn}_tree` if absent. Loops and instructions are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// `l.0`, `l.1` or `l.2`, for the loop over the terms as well; the tag of that loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
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
    pub fn by_work_items(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
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

impl Transform for ReduceInTree {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let plan = self.check(kernel)?;
        let reduced = plan.edit(kernel.clone());
        reduced.verify()?;
        check_placement(&reduced)?;
        Ok(reduced)
    }
}

struct Plan {
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
}

/// The tag of work-items that a text says, or else that a loop has.
pub(super) fn work_item_tag(kernel: &Kernel, iname: InameId, text: Option<&str>) -> Result<AxisTag, Refusal> {
    let tag = match text {
        None => return Ok(kernel.inames[iname].tag),
        Some(text) => AxisTag::parse(text),
    };
    tag.filter(|tag| matches!(tag, AxisTag::Local(_))).ok_or_else(|| {
        Refusal::Other(format!(
            "`{}` is no axis of the work-items of a group; there is l.0, l.1, l.2",
            text.unwrap_or_default()
        ))
    })
}

/// The values of a loop that has a constant largest length.
pub(super) struct Values {
    /// Lower bound.
    pub(super) lo: Affine,
    /// Most iterations.
    pub(super) length: i64,
    /// The bound that only the assumptions give and the loop should show.
    bound: Option<Domain>,
}

impl Values {
    /// The values of a loop.
    ///
    /// # Errors
    /// [`Refusal::Argument`] for a loop without a constant bound, or that never runs.
    pub(super) fn of(kernel: &Kernel, iname: InameId) -> Result<Self, Refusal> {
        let name = &kernel.inames[iname].name;
        let known = parametric_extent(Analysis::of(kernel).polyhedral(), iname)?;
        let known = known.and_then(|(lo, n)| Some(Self { lo, length: n.as_constant()?, bound: None }));
        let known = match known {
            Some(known) => Some(known),
            None => Self::assumed(kernel, iname)?,
        };
        match known {
            None => Err(Refusal::Other(format!(
                "the length of `{name}` has no constant bound; split it, and take the loop inside a block, or assume \
                 a bound"
            ))),
            Some(values) if values.length < 1 => {
                Err(Refusal::Other(format!("`{name}` never runs; there is nothing to join")))
            }
            Some(values) => Ok(values),
        }
    }

    /// Constants between which a loop runs at all sizes that are assumed.
    fn assumed(kernel: &Kernel, iname: InameId) -> Result<Option<Self>, Refusal> {
        let analysis = Analysis::of(kernel);
        let name = &kernel.inames[iname].name;
        let values = points_of(analysis.polyhedral(), &[iname])?.project_onto(&[name])?;
        let (Some(first), Some(last)) = values.bounds(name)? else { return Ok(None) };
        let Some(length) = last.checked_sub(first).and_then(|n| n.checked_add(1)) else { return Ok(None) };
        let lo = Affine::constant(first);
        let bound = Some(Domain::range(iname, &lo, &lo.plus_constant(length)));
        Ok(Some(Self { lo, length, bound }))
    }

    /// Writes the bound into the domain of the loop, where work-items are counted by it.
    pub(super) fn show_bound(&self, kernel: &mut Kernel, iname: InameId) {
        if let Some(bound) = &self.bound {
            kernel.inames[iname].domain = kernel.inames[iname].domain.intersect(bound);
        }
    }
}

impl ReduceInTree {
    fn check(&self, kernel: &Kernel) -> Result<Plan, Refusal> {
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let id = match loop_body(&kernel.body, iname) {
            Some([Node::Insn(only)]) => *only,
            Some(_) | None => {
                return Err(Refusal::Other(format!(
                    "the loop over `{}` holds more than one update; distribute it, and interchange it inward, first",
                    self.iname
                )));
            }
        };
        let analysis = Analysis::of(kernel);
        let insn = &analysis.expanded().insns[id];
        let (_, op) = update(kernel, &insn.name)?;
        let var = &kernel.vars[insn.lhs.var].name;
        if insn.lhs.index.iter().any(|e| mentions(e, iname)) {
            return Err(Refusal::Other(format!(
                "every iteration of `{}` updates an element of `{var}` of its own; there is nothing to join",
                self.iname
            )));
        }
        check_terms_fit(kernel, insn, op)?;
        let tag = work_item_tag(kernel, iname, self.tag.as_deref())?;
        let poly = analysis.polyhedral();
        let outer = poly.loops(id).len() - 1;
        let predicate = insn.predicate.as_ref().filter(|p| !mentions(p, iname));
        refuse_reductions(kernel, insn, &insn.predicate.iter().collect::<Vec<_>>())?;
        let delayed = Delayed { analysis: &analysis, id, outer };
        delayed.check_unseen("keep the update sequential")?;
        delayed.check_element_exists(&poly.loops(id)[..outer], predicate)?;
        let values = Values::of(kernel, iname)?;
        let full = insn.predicate.is_none() && is_full(kernel, iname, values.length);
        let name = self.tree.clone().unwrap_or_else(|| format!("{}_tree", insn.name));
        if self.shuffle {
            check_lanes(&self.iname, values.length, tag)?;
        }
        let plan = Plan { iname, id, op, tag, name, values, full, shuffle: self.shuffle };
        plan.check_names(kernel)?;
        Ok(plan)
    }
}

/// The leaves hold the terms: of an extremum, other than of a sum modulo 2^32, they must fit.
fn check_terms_fit(kernel: &Kernel, insn: &Insn, op: UpdateOp) -> Result<(), Refusal> {
    let var = &kernel.vars[insn.lhs.var];
    let is_sum = matches!(op, UpdateOp::Add | UpdateOp::Mul);
    if is_sum || var.ty != ScalarType::I32 || fits_i32(kernel, &insn.rhs) {
        return Ok(());
    }
    Err(Refusal::Other(format!(
        "`{}` compares values that may not fit the type of `{}`, i32, in which the tree would hold them; cast them \
         to i32",
        insn.name, var.name
    )))
}

/// Whether the work-items of a sub-group can hold as many leaves.
fn check_lanes(iname: &str, length: i64, tag: AxisTag) -> Result<(), Refusal> {
    if tag != AxisTag::Local(0) {
        return Err(Refusal::Other(format!(
            "the work-items of a sub-group are neighbours along l.0, and `{iname}` is on {tag}; reduce on l.0"
        )));
    }
    if length > SUB_GROUP || u64::try_from(length).is_ok_and(|n| !n.is_power_of_two()) {
        return Err(Refusal::Other(format!(
            "`{iname}` has up to {length} terms, and a sub-group joins 1, 2, 4, 8, 16 or {SUB_GROUP} by shuffles; \
             split it, and take the loop inside a block"
        )));
    }
    Ok(())
}

/// Whether a loop always has its largest length.
fn is_full(kernel: &Kernel, iname: InameId, length: i64) -> bool {
    let range = kernel.inames[iname].domain.as_range(iname);
    range.is_some_and(|(lo, hi)| hi.minus(&lo).as_constant() == Some(length))
}

impl Plan {
    /// How many leaves are left before each step, and to how many the rest is joined.
    fn halves(&self) -> Vec<(i64, i64)> {
        let mut halves = Vec::new();
        let mut left = self.values.length;
        while left > 1 {
            let half = left - left / 2;
            halves.push((left, half));
            left = half;
        }
        halves
    }

    fn check_names(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let name = &self.name;
        let steps = 0..self.halves().len();
        let joins = steps.clone().map(|k| format!("{name}_join_{k}"));
        let sums = steps.filter(|_| self.shuffle).map(|k| self.sum(k));
        let fixed = ["", "_fill", "_leaf"].map(|end| format!("{name}{end}"));
        fixed.into_iter().chain(joins).chain(sums).try_for_each(|name| lookup::free(kernel, &name))
    }

    fn edit(&self, mut kernel: Kernel) -> Kernel {
        let update = kernel.insns[self.id].clone();
        let ty = kernel.vars[update.lhs.var].ty;
        let shape = [Affine::constant(self.values.length)];
        let space = if self.shuffle { AddressSpace::SubGroup } else { AddressSpace::Local };
        let temporary = |name: String| Variable::new(name, ty, VarKind::Temporary, shape.clone(), space);
        let tree = kernel.vars.push(temporary(self.name.clone()));
        let insn = |end: &str, lhs, op, rhs, predicate| Insn {
            name: format!("{}{end}", self.name),
            lhs,
            op,
            rhs,
            predicate,
            tags: update.tags.clone(),
            callee: None,
        };
        let mut nodes = Vec::new();
        if !self.full {
            let at = new_loop(&mut kernel, &format!("{}_f", self.name), self.values.length, self.tag);
            let fill = insn("_fill", element(tree, at, 0), WriteOp::Assign, neutral(self.op, ty), None);
            nodes.push(Node::Loop(at, vec![Node::Insn(kernel.insns.push(fill))]));
        }
        kernel.inames[self.iname].tag = self.tag;
        self.values.show_bound(&mut kernel, self.iname);
        let at = Expr::from_affine(&Affine::iname(self.iname).minus(&self.values.lo));
        let leaf = Access::new(tree, [at]);
        let leaf = insn("_leaf", leaf, WriteOp::Assign, update.rhs.clone(), update.predicate.clone());
        nodes.push(Node::Loop(self.iname, vec![Node::Insn(kernel.insns.push(leaf))]));
        let mut sum = tree;
        for (k, (left, half)) in self.halves().into_iter().enumerate() {
            let length = if self.shuffle { self.values.length } else { left - half };
            let at = new_loop(&mut kernel, &format!("{}_{k}", self.name), length, self.tag);
            let end = format!("_join_{k}");
            let join = if self.shuffle {
                let before = std::mem::replace(&mut sum, kernel.vars.push(temporary(self.sum(k))));
                let rhs = self.joined(before, at, half);
                insn(&end, element(sum, at, 0), WriteOp::Assign, rhs, None)
            } else {
                let op = WriteOp::Update { op: self.op, atomic: false };
                insn(&end, element(tree, at, 0), op, Expr::Load(element(tree, at, half)), None)
            };
            nodes.push(Node::Loop(at, vec![Node::Insn(kernel.insns.push(join))]));
        }
        let sum = Expr::load(sum, [Expr::Int(0)]);
        let same = |p: &Expr| !mentions(p, self.iname);
        let predicate = update.predicate.clone().filter(same);
        kernel.insns[self.id] = Insn { rhs: sum, predicate, ..update };
        nodes.push(Node::Insn(self.id));
        self.replace(&mut kernel, &nodes);
        kernel
    }

    /// Name of what the work-items of a sub-group hold after a step.
    fn sum(&self, k: usize) -> String {
        format!("{}_sum_{k}", self.name)
    }

    /// What a work-item holds, joined with what the one half the sub-group further holds.
    fn joined(&self, held: VarId, at: InameId, half: i64) -> Expr {
        let (own, length) = (Expr::Load(element(held, at, 0)), self.values.length);
        let further = Expr::from_affine(&Affine::iname(at).plus_constant(half));
        let other = Expr::Binary(BinaryOp::Mod, Box::new(further), Box::new(Expr::Int(length)));
        let op = match self.op {
            UpdateOp::Add => BinaryOp::Add,
            UpdateOp::Mul => BinaryOp::Mul,
            UpdateOp::Min => BinaryOp::Min,
            UpdateOp::Max => BinaryOp::Max,
        };
        Expr::Binary(op, Box::new(own), Box::new(Expr::load(held, [other])))
    }

    fn replace(&self, kernel: &mut Kernel, nodes: &[Node]) {
        let wanted = |n: &Node| matches!(n, Node::Loop(l, _) if *l == self.iname);
        edit_siblings(&mut kernel.body, &wanted, &mut |siblings| {
            if let Some(at) = siblings.iter().position(wanted) {
                siblings.splice(at..=at, nodes.iter().cloned());
            }
        });
    }
}

fn element(tree: VarId, iname: InameId, offset: i64) -> Access {
    Access::new(tree, [Expr::from_affine(&Affine::iname(iname).plus_constant(offset))])
}
