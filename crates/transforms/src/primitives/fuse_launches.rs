//! Makes one launch of several.

use super::split_launch::without_launches;
use kingpost_analysis::Analysis;
use kingpost_ir::{AxisTag, InameId, Kernel, Node};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::nest::new_loop;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{CONTIGUOUS, same};
use kingpost_steps::schedule::Loop;
use kingpost_steps::tree::{edit_siblings, inames_of, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes one launch of neighbouring launches, and of loops of the host with all the launches that
/// they hold.
///
/// # Rewrite
/// ```text
/// for t in 0..m          =>   for t in 0..m
///   launch first                launch first
///     S(t)                        S(t)
///   launch second                 T(t)
///     T(t)
/// ```
/// The loops named become one launch under the name of the first launch among them, or `launch`. A
/// loop of launches, or of the host, that is named stays as a loop inside. Where one launch is left
/// at the top, the kernel is it, and no loop says so.
///
/// # Precondition
/// The order of instances stays. What was ordered between the launches must now be ordered within
/// groups, or by barriers: the placement says so ([`kingpost_analysis::placement`]).
///
/// # Errors
/// No loop, an unknown one, one that is no launch and holds none, loops with others between them; a
/// dependence that nothing orders inside one launch, with two instances.
///
/// # Elsewhere
/// Kernel fusion; `fuse_loops` of two launches of one iteration does the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FuseLaunches {
    /// Launches, or loops around launches, that follow each other in one body.
    pub launches: Vec<String>,
}

impl FuseLaunches {
    /// Makes one launch of these.
    pub fn new<S: Into<String>>(launches: impl IntoIterator<Item = S>) -> Self {
        Self { launches: launches.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for FuseLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<_> = self.launches.iter().map(|n| format!("`{n}`")).collect();
        write!(
            f,
            "fuse the launches {}",
            if quoted.is_empty() { "of nothing".into() } else { quoted.join(", ") }
        )
    }
}

/// What is fused are launches.
const LAUNCHES: Obligation =
    Obligation::new("fuse_launches.launches", "each loop is a launch, or a loop around launches");

/// Loops that follow each other.
pub struct Neighbours {
    /// In textual order.
    loops: Vec<InameId>,
    /// The launch whose name the result has.
    first: Option<InameId>,
    /// Whether they are all that the kernel does.
    whole: bool,
}

impl Primitive for FuseLaunches {
    const NAME: &'static str = "fuse_launches";
    const SUMMARY: &'static str = "Makes one launch of several.";

    type Proof = Neighbours;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[LAUNCHES, CONTIGUOUS, NO_REDUCTION];

    fn check(&self, analysis: &Analysis) -> Result<Neighbours, Refusal> {
        let kernel = analysis.kernel();
        if self.launches.is_empty() {
            return Err(Refusal::argument("launches", "no loop is named", "launches, or loops around them"));
        }
        let mut nodes = Vec::with_capacity(self.launches.len());
        for name in &self.launches {
            let iname = lookup::tree_loop(kernel, name)?;
            nodes.push(Node::Loop(iname, Vec::new()));
        }
        let body = siblings(&kernel.body, &|node| same(node, &nodes[0]));
        let body = body.expected("loop of that name in the tree", kernel)?;
        let mut places = Vec::with_capacity(nodes.len());
        for (name, node) in self.launches.iter().zip(&nodes) {
            let place = body.iter().position(|other| same(other, node));
            places.push(place.ok_or_else(|| {
                CONTIGUOUS.unfit(format!(
                    "`{name}` does not stand in the body in which `{}` stands; name the loops around them",
                    self.launches[0]
                ))
            })?);
        }
        places.sort_unstable();
        places.dedup();
        let run = &body[places[0]..=places[places.len() - 1]];
        CONTIGUOUS.require(run.len() == places.len(), || {
            format!("they are {} of {}; name all of them", places.len(), lookup::names_in(kernel, run))
        })?;
        let mut loops = Vec::with_capacity(run.len());
        let mut first = None;
        for node in run {
            let launches: Vec<InameId> = inames_of(kernel, std::slice::from_ref(node))
                .into_iter()
                .filter(|l| kernel.inames[*l].tag == AxisTag::Launch)
                .collect();
            let Node::Loop(iname, _) = node else { continue };
            LAUNCHES.require(!launches.is_empty(), || {
                format!(
                    "`{}` is no launch and holds none; split the launches first, or tag it launch",
                    kernel.inames[*iname].name
                )
            })?;
            first = first.or_else(|| launches.into_iter().find(|l| kernel.inames[*l].is_one_launch(*l)));
            loops.push(*iname);
        }
        let whole = run.len() == kernel.body.len() && kernel.body.iter().zip(run).all(|(a, b)| same(a, b));
        Ok(Neighbours { loops, first, whole })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Neighbours) -> Vec<Loop> {
        let is_one = |node: &Node| matches!(node, Node::Loop(l, _) if proof.loops.contains(l));
        let mut body = std::mem::take(&mut kernel.body);
        let mut made = Vec::new();
        edit_siblings(&mut body, &is_one, &mut |nodes| {
            let Some(place) = nodes.iter().position(is_one) else { return };
            let taken = nodes.drain(place..place + proof.loops.len()).collect();
            let inside = without_launches(kernel, taken);
            if proof.whole {
                nodes.extend(inside);
                return;
            }
            let launch = proof.first.unwrap_or_else(|| new_loop(kernel, "launch", 1, AxisTag::Launch));
            made.push(Loop::named(&kernel.inames[launch].name));
            nodes.insert(place, Node::Loop(launch, inside));
        });
        kernel.body = body;
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        if !kernel.has_launches() {
            return None;
        }
        let (first, second) = p.of(&draw::neighbours(kernel))?;
        Some(if p.one_in(3) { Self::new([first]) } else { Self::new([first, second]) })
    }
}
