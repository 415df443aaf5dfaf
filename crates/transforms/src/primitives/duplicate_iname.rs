//! Gives some instructions of a loop a loop of their own.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Id, InameId, InsnId, Kernel, Node};
use kingpost_steps::copy::copy_loop;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup::{self, NO_REDUCTION, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::substitute_in_nodes;
use kingpost_steps::tree::{body_of, insns_of, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves the chosen instructions of the loop `iname` to a new loop over the same values, right
/// after it or before it.
///
/// # Rewrite
/// ```text
/// for i in 0..n          =>   for i in 0..n
///   S(i)                        S(i)
///   for j in 0..m               for j in 0..m
///     T(i, j)                     T(i, j)
///     U(i, j)                   V(i)
///   V(i)                      for i_dup in 0..n
///                               for j_dup in 0..m
///                                 U(i_dup, j_dup)
/// ```
/// One iname is one loop of the program, so that an iname of their own is a loop of their own: the
/// instructions need not be neighbours, and a loop in between that holds others as well is
/// duplicated with them. Every reduction has inames of its own already. The new loops have the tags
/// of the old ones.
///
/// # Precondition
/// With `C` the chosen instructions and `o` the loops around, for every flow, anti and output
/// dependence `D` no pair is turned around: after the loop, `{ s[o, i] -> t[o, i'] in D : s in C,
/// t not in C }` is empty; in front of it, `{ s[o, i] -> t[o, i'] in D : s not in C, t in C }`.
/// Nothing inside writes a scalar in the bounds of a loop that is duplicated. If loops are on axes,
/// the placement must still hold.
///
/// # Errors
/// An unknown iname, the iname of a reduction, a selection with nothing in the loop or with all of
/// it, a name that is taken, bounds that change, a dependence of that direction or that the
/// placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `duplicate_inames` with `within`; loop fission.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DuplicateIname {
    /// The loop.
    pub iname: String,
    /// The instructions; those outside the loop stay as they are.
    pub insns: Selection,
    /// Name of the new loop; `{iname}_dup` if absent, with a number if that is taken. Loops in between
    /// get `_dup` after their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the new loop stands before the old one instead of after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before: bool,
}

impl DuplicateIname {
    /// Moves the chosen instructions of `iname` to a loop of their own after it.
    pub fn new(iname: impl Into<String>, insns: Selection) -> Self {
        Self { iname: iname.into(), insns, name: None, before: false }
    }

    /// Puts the new loop before the old one.
    #[must_use]
    pub fn in_front(mut self) -> Self {
        self.before = true;
        self
    }

    fn new_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}_dup", self.iname))
    }
}

impl fmt::Display for DuplicateIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.before { "before" } else { "after" };
        write!(f, "duplicate `{}` as `{}` {side} it for {}", self.iname, self.new_name(), self.insns)
    }
}

/// Some instructions move.
const INSIDE: Obligation = Obligation::new("duplicate_iname.inside", "a chosen instruction is in the loop");

/// And some stay.
const NOT_ALL: Obligation =
    Obligation::new("duplicate_iname.not_all", "an instruction of the loop is not chosen");

/// Instructions of a loop that can run in a loop of their own.
pub struct Separable {
    iname: InameId,
    /// The name of its copy.
    name: String,
    /// The loops that are duplicated: the named one, and those in between that hold other
    /// instructions as well.
    loops: Vec<InameId>,
    /// The body of the named loop without the instructions, and with nothing else.
    kept: Vec<Node>,
    moved: Vec<Node>,
}

impl Primitive for DuplicateIname {
    const NAME: &'static str = "duplicate_iname";
    const SUMMARY: &'static str = "Gives some instructions of a loop a loop of their own.";

    type Proof = Separable;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[INSIDE, NOT_ALL, BOUNDS_STAY, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Separable, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let insns = self.chosen(kernel, iname)?;
        let all = |name: &str| vec![name.to_owned()];
        let name = lookup::made(kernel, self.name.as_deref(), &self.new_name(), all)?;
        let body = body_of(kernel, iname)?;
        let kept = filter(body, &|insn| !insns.contains(&insn));
        let moved = filter(body, &|insn| insns.contains(&insn));
        let both = tree_loops(&kept);
        let loops: Vec<_> = std::iter::once(iname)
            .chain(tree_loops(&moved).into_iter().filter(|l| both.contains(l)))
            .collect();
        for old in &loops {
            check_bounds_stay(kernel, *old, body)?;
        }
        let proof = Separable { iname, name, loops, kept, moved };
        let after = self.draft(kernel, &proof);
        // the copies are made in the order of the loops
        let original = |l: InameId| proof.loops.get(l.index().checked_sub(kernel.inames.len())?).copied();
        let value = |_, l| original(l).map(Affine::iname);
        let order = Reordering { before: analysis, after: &after, value: &value, whole: &[] };
        check_order(&order, &|source, sink| {
            format!(
                "keep `{source}` and `{sink}` in one loop, choose the other side, or give each iteration memory of \
                 its own for what they share"
            )
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Separable) -> Vec<Loop> {
        let (kept, mut moved) = (proof.kept.clone(), proof.moved.clone());
        let mut copies = Vec::new();
        for old in &proof.loops {
            let name = match *old == proof.iname {
                true => proof.name.clone(),
                false => kernel.fresh_name(&format!("{}_dup", kernel.inames[*old].name)),
            };
            copies.push((*old, copy_loop(kernel, *old, name)));
        }
        rename_loops(&mut moved, &copies);
        for (old, new) in &copies {
            substitute_in_nodes(kernel, &moved, *old, &Affine::iname(*new));
        }
        let mut both = vec![Node::Loop(proof.iname, kept), Node::Loop(copies[0].1, moved)];
        if self.before {
            both.reverse();
        }
        replace_loop(&mut kernel.body, proof.iname, &mut |_| std::mem::take(&mut both));
        copies.iter().map(|(_, new)| Loop::named(&kernel.inames[*new].name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut several = draw::bodies(kernel);
        several.retain(|(of, names)| of.is_some() && names.len() > 1);
        let (of, _) = p.of(&several)?;
        let insn = Selection::Insn(p.of(&draw::insns(kernel, |_| true))?);
        let step = Self::new(of?, insn);
        Some(if p.one_in(2) { step.in_front() } else { step })
    }
}

impl DuplicateIname {
    /// The chosen instructions inside the loop: some, and not all.
    fn chosen(&self, kernel: &Kernel, iname: InameId) -> Result<Vec<InsnId>, Refusal> {
        let inside = insns_of(body_of(kernel, iname)?);
        let mut chosen = self.insns.resolve(kernel)?;
        chosen.retain(|insn| inside.contains(insn));
        let names = || lookup::near("", inside.iter().map(|i| kernel.insns[*i].name.as_str()));
        INSIDE.require(!chosen.is_empty(), || {
            format!("{} is not inside `{}`; there is {}", self.insns, self.iname, names())
        })?;
        NOT_ALL.require(chosen.len() < inside.len(), || {
            format!(
                "{} is all there is inside `{}`, and a loop without instructions is none; rename the loop, or choose \
                 some of {}",
                self.insns,
                self.iname,
                names()
            )
        })?;
        Ok(chosen)
    }
}

/// The nodes with the instructions that `wanted` accepts, and the loops around them.
fn filter(nodes: &[Node], wanted: &dyn Fn(InsnId) -> bool) -> Vec<Node> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Insn(insn) if wanted(*insn) => found.push(node.clone()),
            Node::Insn(_) => {}
            Node::Loop(iname, body) => {
                let body = filter(body, wanted);
                if !body.is_empty() {
                    found.push(Node::Loop(*iname, body));
                }
            }
        }
    }
    found
}

/// The loops in some nodes, outer before inner.
fn tree_loops(nodes: &[Node]) -> Vec<InameId> {
    let mut found = Vec::new();
    for node in nodes {
        if let Node::Loop(iname, body) = node {
            found.push(*iname);
            found.extend(tree_loops(body));
        }
    }
    found
}

fn rename_loops(nodes: &mut [Node], copies: &[(InameId, InameId)]) {
    for node in nodes {
        if let Node::Loop(iname, body) = node {
            rename_loops(body, copies);
            if let Some((_, new)) = copies.iter().find(|(old, _)| old == iname) {
                *iname = *new;
            }
        }
    }
}
