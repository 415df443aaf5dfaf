//! Distributes a loop over the parts of its body.

use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Id, InameId, Kernel, Node};
use kingpost_steps::copy::copy_loop;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::substitute::substitute_in_nodes;
use kingpost_steps::tree::{body_of, insns_of, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Distributes `iname` over its body: a new loop begins before each of the parts named.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for i in 0..n
///   S(i)                    S(i)
///   T(i)                  for i_1 in 0..n
///                           T(i_1)
/// ```
/// A part is a statement of the body: an instruction, or a loop with all it holds; it is named by
/// the loop or by any instruction in it. The first loop keeps its name; tags are copied.
///
/// # Precondition
/// No dependence runs from an instance of a later part to one of an earlier part: with
/// `o` the loops around, `{ s[o, i] -> t[o, i'] in D : part(s) > part(t)
/// }` is empty for every flow, anti and output dependence `D`. Nothing inside writes a scalar in
/// the bounds of the loop. If loops are on axes, the placement must still hold.
///
/// # Errors
/// Unknown names, the iname of a reduction, a part that is not inside or is the first, names that
/// are taken or too few, bounds that change, a dependence of that direction or that the placement
/// breaks, with two instances.
///
/// # Elsewhere
/// Loop fission; Loopy `distribute_loops`; Exo `fission`; Halide `compute_root` of an inlined
/// stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistributeLoop {
    /// The loop.
    pub iname: String,
    /// Instructions or loops inside; a new loop begins before the part that each belongs to.
    pub before: Vec<String>,
    /// Names of the new loops in textual order; `{iname}_1`, `{iname}_2`, … if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl DistributeLoop {
    /// Begins a new loop over `iname` before each of the parts.
    pub fn new<S: Into<String>>(iname: impl Into<String>, before: impl IntoIterator<Item = S>) -> Self {
        let before = before.into_iter().map(Into::into).collect();
        Self { iname: iname.into(), before, names: Vec::new() }
    }
}

impl fmt::Display for DistributeLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| {
            let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
            quoted.join(", ")
        };
        let before = if self.before.is_empty() { "nothing".into() } else { list(&self.before) };
        write!(f, "distribute `{}` before {before}", self.iname)?;
        if self.names.is_empty() { Ok(()) } else { write!(f, " into {}", list(&self.names)) }
    }
}

/// The first part keeps the loop.
const LATER_PART: Obligation =
    Obligation::new("distribute_loop.later_part", "each named part is in the loop and is not the first");

/// The parts of a loop that can run one after the other.
pub struct Parts {
    iname: InameId,
    /// Positions in the body before which a loop begins, ascending.
    cuts: Vec<usize>,
    body: Vec<Node>,
}

impl Primitive for DistributeLoop {
    const NAME: &'static str = "distribute_loop";
    const VERB: Option<&'static str> = Some("distribute");
    const SUMMARY: &'static str = "Distributes a loop over the parts of its body.";

    type Proof = Parts;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[LATER_PART, BOUNDS_STAY, ORDER, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Parts, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let body = body_of(kernel, iname)?;
        let cuts = self.cuts(kernel, body)?;
        self.check_names(kernel, cuts.len())?;
        check_bounds_stay(kernel, iname, body)?;
        let proof = Parts { iname, cuts, body: body.to_vec() };
        let after = self.draft(kernel, &proof);
        let is_copy = |l: InameId| l.index() >= kernel.inames.len();
        let value = |_, l| is_copy(l).then(|| Affine::iname(iname));
        let order = Reordering { before: analysis, after: &after, value: &value, whole: &[] };
        check_order(&order, &|source, sink| {
            format!(
                "keep `{source}` and `{sink}` in one loop, or give each iteration memory of its own for what \
                 they share"
            )
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Parts) -> Vec<Loop> {
        let iname = proof.iname;
        let mut rest = proof.body.clone();
        let mut loops = Vec::new();
        let mut made = Vec::new();
        for (k, cut) in proof.cuts.iter().enumerate().rev() {
            let part = rest.split_off(*cut);
            let name = self.names.get(k).cloned().unwrap_or_else(|| numbered(kernel, &self.iname, k + 1));
            made.push(Loop::named(&name));
            let copy = copy_loop(kernel, iname, name);
            substitute_in_nodes(kernel, &part, iname, &Affine::iname(copy));
            loops.push(Node::Loop(copy, part));
        }
        loops.push(Node::Loop(iname, rest));
        loops.reverse();
        made.reverse();
        replace_loop(&mut kernel.body, iname, &mut |_| std::mem::take(&mut loops));
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut several = draw::bodies(kernel);
        several.retain(|(of, names)| of.is_some() && names.len() > 1);
        let (of, names) = p.of(&several)?;
        Some(Self::new(of?, [p.of(&names[1..])?]))
    }
}

impl DistributeLoop {
    /// Positions in the body before which a loop begins, ascending.
    fn cuts(&self, kernel: &Kernel, body: &[Node]) -> Result<Vec<usize>, Refusal> {
        if self.before.is_empty() {
            return Err(Refusal::argument("before", "no part is named", "what a new loop begins with"));
        }
        let mut cuts = Vec::new();
        for name in &self.before {
            let k = LATER_PART.find(body.iter().position(|node| holds(kernel, node, name)), || {
                format!(
                    "there is no instruction or loop `{name}` inside `{}`; there is {}",
                    self.iname,
                    lookup::names_in(kernel, body)
                )
            })?;
            LATER_PART.require(k > 0, || {
                format!(
                    "`{name}` belongs to the first part of `{}`, which stays; name a later one",
                    self.iname
                )
            })?;
            cuts.push(k);
        }
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts)
    }

    fn check_names(&self, kernel: &Kernel, needed: usize) -> Result<(), Refusal> {
        if self.names.is_empty() {
            return Ok(());
        }
        if self.names.len() != needed {
            let found = self.names.len();
            let found = format!("{found} names for {needed} new loops");
            return Err(Refusal::argument("names", found, "one for each"));
        }
        for (k, name) in self.names.iter().enumerate() {
            lookup::free(kernel, name)?;
            if self.names[..k].contains(name) {
                let found = format!("two loops would be called `{name}`");
                return Err(Refusal::argument("names", found, "different names"));
            }
        }
        Ok(())
    }
}

/// `{stem}_{k}`, or with more after it if that is taken.
fn numbered(kernel: &Kernel, stem: &str, k: usize) -> String {
    kernel.fresh_name(&format!("{stem}_{k}"))
}

/// Whether a statement is, or holds, the instruction or loop of this name.
fn holds(kernel: &Kernel, node: &Node, name: &str) -> bool {
    let node = std::slice::from_ref(node);
    insns_of(node).into_iter().any(|s| kernel.insns[s].name == name)
        || kernel.iname(name).is_some_and(|l| loop_body(node, l).is_some())
}
