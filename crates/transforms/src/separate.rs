//! A step that is made of cuts: loops without conditions and without bounds to choose from.

use crate::primitives::CutIname;
use kingpost_analysis::polyhedral::affine_condition;
use kingpost_ir::{Affine, Atom, AxisTag, Constraint, Domain, Expr, InameId, Kernel, Node};
use kingpost_isl::{IslError, with_operation_limit};
use kingpost_steps::Combined;
use kingpost_steps::lookup::tree_loop;
use kingpost_steps::refusal::{BUDGET, Refusal, TransformError};
use kingpost_steps::schedule::{Loop, Made, Schedule};
use kingpost_steps::tree::loop_body;
use serde::Deserialize;

/// Maximum number of loops that one loop becomes.
const MAX_PIECES: usize = 32;

/// Operations of the solver that all cuts of a step may take together: some seconds.
const LIMIT: u64 = 50_000_000;

/// Maximum number of expressions that the bounds of loops inside make of a condition.
const MAX_ENDS: usize = 16;

/// `separate_loops(i)`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Separate {
    iname: String,
    #[serde(default)]
    depth: Option<usize>,
}

impl Combined for Separate {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        let loops = separate(schedule, &self.iname, self.depth)?;
        Ok(Made { loops, ..Made::default() })
    }
}

/// [`crate::ScheduleSteps::separate`].
pub(crate) fn separate(
    schedule: &mut Schedule,
    iname: &str,
    depth: Option<usize>,
) -> Result<Vec<Loop>, TransformError> {
    let refused = |cause| TransformError { operation: format!("separate `{iname}`"), cause };
    tree_loop(schedule.kernel(), iname).map_err(refused)?;
    if depth == Some(0) {
        return Err(refused(Refusal::argument(
            "depth",
            "no loop is to be cut",
            "1 for this one alone, or more",
        )));
    }
    let mut draft = schedule.clone();
    let mut cut = || -> Result<Vec<Loop>, TransformError> {
        let pieces = pieces(&mut draft, iname)?;
        for piece in pieces.iter().filter(|_| depth != Some(1)) {
            for inner in inner_loops(draft.kernel(), piece.name()) {
                separate(&mut draft, &inner, depth.map(|depth| depth - 1))?;
            }
        }
        Ok(pieces)
    };
    // the budget of the loops inside is a part of this one
    let pieces =
        with_operation_limit(LIMIT, || Ok::<_, IslError>(cut())).map_err(|e| refused(e.into()))??;
    *schedule = draft;
    Ok(pieces)
}

/// Cuts a loop wherever that takes conditions away inside.
fn pieces(schedule: &mut Schedule, iname: &str) -> Result<Vec<Loop>, TransformError> {
    let mut done = Vec::new();
    let mut open = vec![Loop::named(iname)];
    // the piece that comes first is cut first, so that the pieces stay in order
    while let Some(piece) = open.pop() {
        let few = done.len() + open.len() + 2 <= MAX_PIECES;
        match if few { cut(schedule, piece.name())? } else { None } {
            Some(parts) => open.extend(parts.into_iter().rev()),
            None => done.push(piece),
        }
    }
    Ok(done)
}

/// The first cut after which one of the parts has fewer conditions.
fn cut(schedule: &mut Schedule, name: &str) -> Result<Option<Vec<Loop>>, TransformError> {
    let kernel = schedule.kernel();
    let Some(iname) = kernel.iname(name) else { return Ok(None) };
    if kernel.inames[iname].tag != AxisTag::Sequential {
        return Ok(None);
    }
    let before = conditions(kernel, iname);
    for at in places(kernel, iname) {
        let mut draft = schedule.clone();
        let at = draft.kernel().show_affine(&at).to_string();
        let made = match draft.make(CutIname::new(name, at)) {
            Ok(made) => made,
            Err(error) if matches!(error.cause, Refusal::Internal(_)) => return Err(error),
            Err(error) if error.cause.obligation() == Some(BUDGET) => return Err(error),
            Err(_) => continue, // no iteration before or after it, say
        };
        let after = |part: &Loop| {
            let kernel = draft.kernel();
            kernel.iname(part.name()).map(|iname| conditions(kernel, iname))
        };
        if made.iter().filter_map(after).any(|count| count < before) {
            *schedule = draft;
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// The loops directly inside one.
fn inner_loops(kernel: &Kernel, name: &str) -> Vec<String> {
    let Some(iname) = kernel.iname(name) else { return Vec::new() };
    body_of_loop(kernel, iname)
        .iter()
        .filter_map(|node| match node {
            Node::Loop(iname, _) => Some(kernel.inames[*iname].name.clone()),
            Node::Insn(_) => None,
        })
        .collect()
}

/// What runs inside a loop.
fn body_of_loop(kernel: &Kernel, iname: InameId) -> &[Node] {
    loop_body(&kernel.body, iname).unwrap_or_default() // default: a loop that is gone holds nothing
}

/// What is decided inside a loop: conditions of instructions, and bounds beyond one at each end.
fn conditions(kernel: &Kernel, iname: InameId) -> usize {
    let mut count = 0;
    visit(kernel, body_of_loop(kernel, iname), &mut Vec::new(), &mut |_, found| {
        count += match found {
            Found::Condition(_) => 1,
            Found::Ends(ends) => ends.len() - 1,
        };
    });
    count
}

/// What is decided in an iteration.
enum Found<'k> {
    /// Whether an instruction runs.
    Condition(&'k Constraint),
    /// Where a loop begins, or where it ends: the greatest of these, or the least.
    Ends(Vec<Affine>),
}

/// Visits what is decided inside some nodes, with the loops between them and that.
fn visit(
    kernel: &Kernel,
    nodes: &[Node],
    around: &mut Vec<InameId>,
    found: &mut dyn FnMut(&[InameId], Found<'_>),
) {
    for node in nodes {
        match node {
            Node::Insn(insn) => {
                let parts = kernel.insns[*insn].predicate.iter().flat_map(Expr::conjuncts);
                for domain in parts.filter_map(affine_condition) {
                    for c in domain.disjuncts().iter().flatten() {
                        found(around, Found::Condition(c));
                    }
                }
            }
            Node::Loop(iname, body) => {
                for at_start in [true, false] {
                    let ends = ends(&kernel.inames[*iname].domain, *iname, at_start);
                    if ends.len() > 1 {
                        found(around, Found::Ends(ends));
                    }
                }
                around.push(*iname);
                visit(kernel, body, around, found);
                around.pop();
            }
        }
    }
}

/// The bounds of a loop at one end that are no quotients: its first values, or its last ones.
fn ends(domain: &Domain, iname: InameId, at_start: bool) -> Vec<Affine> {
    let sign = if at_start { 1 } else { -1 };
    let mut found = Vec::new();
    let Some(conjunction) = domain.as_conjunction() else { return found };
    for c in conjunction {
        let factor = c.expr().coefficient(&Atom::Iname(iname));
        let rest = c.expr().minus(&Affine::iname(iname).times(factor));
        let is_end = factor == sign || matches!(c, Constraint::Zero(_)) && factor.abs() == 1;
        if is_end && !rest.mentions(iname) {
            found.push(rest.times(-factor));
        }
    }
    found
}

/// Where the decisions inside a loop change: the first values at which one is always made in the same way,
/// and those after the last ones.
fn places(kernel: &Kernel, iname: InameId) -> Vec<Affine> {
    let mut all: Vec<Affine> = Vec::new();
    let mut add = |e: &Affine, inner: &[InameId]| {
        for high in [false, true] {
            for end in extremes(kernel, e, inner, high) {
                let place = turning_point(&end, iname).filter(|place| !all.contains(place));
                all.extend(place);
            }
        }
    };
    visit(kernel, body_of_loop(kernel, iname), &mut Vec::new(), &mut |inner, found| match found {
        Found::Condition(Constraint::NonNegative(e)) => add(e, inner),
        Found::Condition(Constraint::Zero(e)) => {
            add(e, inner);
            add(&e.times(-1), inner);
        }
        Found::Ends(ends) => {
            for (k, a) in ends.iter().enumerate() {
                ends[..k].iter().for_each(|b| add(&a.minus(b), inner));
            }
        }
    });
    all
}

/// Expressions without the loops `inner` of which the greatest value of `e`, or the least one, is one.
fn extremes(kernel: &Kernel, e: &Affine, inner: &[InameId], high: bool) -> Vec<Affine> {
    let mut all = vec![e.clone()];
    for iname in inner.iter().rev() {
        let mut next = Vec::new();
        for e in all {
            let factor = e.coefficient(&Atom::Iname(*iname));
            let rest = e.minus(&Affine::iname(*iname).times(factor));
            if factor == 0 || rest.mentions(*iname) {
                next.push(e);
                continue;
            }
            let at_start = (factor < 0) == high;
            let values = ends(&kernel.inames[*iname].domain, *iname, at_start);
            next.extend(values.iter().map(|value| rest.plus(&value.times(factor))));
        }
        next.truncate(MAX_ENDS);
        all = next;
    }
    all.retain(|e| !inner.iter().any(|iname| e.mentions(*iname)));
    all
}

/// The first value of a loop from which on `e >= 0`, or from which on not.
fn turning_point(e: &Affine, iname: InameId) -> Option<Affine> {
    let factor = e.coefficient(&Atom::Iname(iname));
    let rest = e.minus(&Affine::iname(iname).times(factor));
    if factor == 0 || rest.mentions(iname) {
        return None;
    }
    Some(if factor > 0 {
        // i >= -rest/factor
        rest.times(-1).plus_constant(factor - 1).floor_div(factor)
    } else {
        // i <= rest/-factor
        rest.floor_div(-factor).plus_constant(1)
    })
}
