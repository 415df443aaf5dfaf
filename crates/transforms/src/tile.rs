//! Steps that are made of others: loops in another order, and tiles.

use crate::primitives::{ExpandArray, InterchangeInames};
use crate::schedule::ScheduleSteps;
use kingpost_ir::{AxisTag, InameId, Kernel, Node, VarId, VarKind};
use kingpost_steps::Combined;
use kingpost_steps::argument;
use kingpost_steps::lookup::{quoted, tree_loop};
use kingpost_steps::nest::NEST;
use kingpost_steps::refusal::{Refusal, TransformError};
use kingpost_steps::run::same;
use kingpost_steps::schedule::{Loop, Made, Schedule};
use kingpost_steps::tree::{body_of, insns_of, loop_body};
use serde::Deserialize;
use std::collections::BTreeSet;

/// `reorder([j, i])`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reorder {
    order: Vec<String>,
}

impl Combined for Reorder {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        schedule.reorder(&self.order).map(|()| Made::default())
    }
}

/// `tile([i, j], [8, 8])`, `tile([i, j], [8, 8], tags: [[g.1, l.1], [g.0, l.0]])`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tile {
    loops: Vec<String>,
    factors: Vec<i64>,
    /// Of the loop over blocks and the one inside, for as many of the loops.
    #[serde(default)]
    tags: Vec<[Named; 2]>,
}

/// A tag by its name.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Named(#[serde(deserialize_with = "argument::read")] AxisTag);

impl Combined for Tile {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        let tags: Vec<_> = self.tags.iter().map(|pair| pair.map(|Named(tag)| tag)).collect();
        let made = tile(schedule, self.loops.clone(), self.factors.clone(), &tags)?;
        Ok(Made { loops: made.into_iter().flatten().collect(), ..Made::default() })
    }
}

/// `wavefront([t, i])`: one map, by which the outermost loop counts waves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wavefront {
    loops: Vec<String>,
}

impl Combined for Wavefront {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        let loops = schedule.wavefront(&self.loops)?;
        Ok(Made { loops, ..Made::default() })
    }
}

/// [`ScheduleSteps::tile_on`].
pub(crate) fn tile(
    schedule: &mut Schedule,
    loops: Vec<String>,
    factors: Vec<i64>,
    tags: &[[AxisTag; 2]],
) -> Result<[Vec<Loop>; 2], TransformError> {
    let refused = |cause| TransformError { operation: format!("tile {}", quoted(&loops)), cause };
    if tags.len() > loops.len() {
        let found = format!("{} loops and {} pairs of tags", loops.len(), tags.len());
        return Err(refused(Refusal::argument("tags", found, "two tags for each of some loops")));
    }
    if loops.len() != factors.len() || loops.is_empty() {
        let found = format!("{} loops and {} factors", loops.len(), factors.len());
        return Err(refused(Refusal::argument("factors", found, "one factor for each of some loops")));
    }
    check_inside(schedule.kernel(), &loops).map_err(refused)?;
    let mut draft = schedule.clone();
    let (mut blocks, mut inside) = (Vec::new(), Vec::new());
    for (k, (iname, factor)) in loops.iter().zip(factors).enumerate() {
        let [block, inner] = draft.split(iname, factor)?;
        for (iname, tag) in [&block, &inner].into_iter().zip(tags.get(k).into_iter().flatten()) {
            if *tag != AxisTag::Sequential {
                draft.tag(iname, *tag)?;
            }
        }
        for around in inside.iter_mut().rev() {
            *around = carry_out(&mut draft, around, &block)?;
        }
        blocks.push(block);
        inside.push(inner);
    }
    *schedule = draft;
    Ok([blocks, inside])
}

/// Each loop is somewhere inside the one before.
fn check_inside(kernel: &Kernel, loops: &[String]) -> Result<(), Refusal> {
    let mut nodes = kernel.body.as_slice();
    for name in loops {
        let iname = tree_loop(kernel, name)?;
        nodes = NEST.find(loop_body(nodes, iname), || {
            format!("{} are not loops one inside the other; name them outer first", quoted(loops))
        })?;
    }
    Ok(())
}

/// Brings a loop out of the one directly around it; returns what that one is called where it holds
/// the other's body.
pub(crate) fn carry_out(s: &mut Schedule, around: &Loop, block: &Loop) -> Result<Loop, TransformError> {
    let kernel = s.kernel();
    let ids = kernel.iname(around.name()).zip(kernel.iname(block.name()));
    let (outer, inner) = s.expected(ids, "loop that was split")?;
    let operation = format!("bring `{block}` out of `{around}`");
    let body = body_of(kernel, outer).map_err(|cause| TransformError { operation, cause })?;
    let at = body.iter().position(|node| same(node, &Node::Loop(inner, Vec::new())));
    let at = s.expected(at, "loop directly inside the other")?;
    let mut cuts = Vec::new();
    if at > 0 {
        cuts.push(block.name().to_owned());
    }
    cuts.extend(body.get(at + 1).map(|node| name_of(kernel, node)));
    let mut held = around.clone();
    if !cuts.is_empty() {
        for var in shared(kernel, body, at, outer) {
            s.make(ExpandArray::new(var, [around]))?;
        }
        let made = s.distribute(around, cuts)?;
        if at > 0 {
            held = s.expected(made.into_iter().next(), "part of a distributed loop")?;
        }
    }
    s.make(InterchangeInames::new(&held, block))?;
    Ok(held)
}

fn name_of(kernel: &Kernel, node: &Node) -> String {
    match node {
        Node::Insn(insn) => kernel.insns[*insn].name.clone(),
        Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
    }
}

/// The temporaries that the statements before, at and after a place of a loop's body share, and
/// that have no axis for the loop.
fn shared(kernel: &Kernel, body: &[Node], at: usize, iname: InameId) -> Vec<String> {
    let touched = |nodes: &[Node]| -> BTreeSet<VarId> {
        let insns = insns_of(nodes).into_iter().map(|i| &kernel.insns[i]);
        insns.flat_map(|i| i.reads().into_iter().chain([&i.lhs]).map(|a| a.var).collect::<Vec<_>>()).collect()
    };
    let parts = [&body[..at], &body[at..=at], &body[at + 1..]].map(touched);
    let several = |var: &VarId| parts.iter().filter(|part| part.contains(var)).count() > 1;
    let by_iteration = |var: VarId| {
        let all = insns_of(body).into_iter().map(|i| &kernel.insns[i]);
        all.flat_map(|i| i.reads().into_iter().chain([&i.lhs]).cloned().collect::<Vec<_>>())
            .filter(|access| access.var == var)
            .all(|access| access.index.iter().any(|e| e.mentions(iname)))
    };
    let all: BTreeSet<VarId> = parts.iter().flatten().copied().filter(several).collect();
    let temporary = |var: &VarId| kernel.vars[*var].kind == VarKind::Temporary && !by_iteration(*var);
    all.into_iter().filter(temporary).map(|var| kernel.vars[var].name.clone()).collect()
}
