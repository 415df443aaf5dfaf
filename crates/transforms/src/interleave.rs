//! A loop whose iterations run side by side: innermost, and written out.

use crate::primitives::Tag;
use crate::tile::carry_out;
use kingpost_ir::{AxisTag, Kernel, Node};
use kingpost_steps::Combined;
use kingpost_steps::lookup::tree_loop;
use kingpost_steps::refusal::{Refusal, TransformError};
use kingpost_steps::schedule::{Loop, Made, Schedule};
use kingpost_steps::tree::loop_body;
use serde::Deserialize;

/// `interleave(i)`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interleave {
    iname: String,
}

impl Combined for Interleave {
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError> {
        let loops = interleave(schedule, &self.iname)?;
        Ok(Made { loops, ..Made::default() })
    }
}

/// [`ScheduleSteps::interleave`](crate::ScheduleSteps::interleave).
pub(crate) fn interleave(schedule: &mut Schedule, iname: &str) -> Result<Vec<Loop>, TransformError> {
    let mut draft = schedule.clone();
    let mut innermost = Vec::new();
    let mut open = vec![iname.to_owned()];
    while let Some(name) = open.pop() {
        let kernel = draft.kernel();
        let inside = loop_inside(kernel, &name)
            .map_err(|cause| TransformError { operation: format!("interleave `{iname}`"), cause })?;
        let Some(inside) = inside else {
            innermost.push(name);
            continue;
        };
        let before: Vec<String> = names(kernel).map(str::to_owned).collect();
        let held = carry_out(&mut draft, &Loop::named(&name), &Loop::named(inside))?;
        let made = names(draft.kernel()).filter(|n| !before.iter().any(|b| b == n)).map(str::to_owned);
        let parts: Vec<String> = made.chain([name, held.name().to_owned()]).collect();
        open.extend(parts);
        open.sort();
        open.dedup();
    }
    innermost.sort();
    innermost.dedup();
    draft.apply(Tag::all(&innermost, AxisTag::Unrolled))?;
    *schedule = draft;
    Ok(innermost.into_iter().map(Loop::named).collect())
}

fn names(kernel: &Kernel) -> impl Iterator<Item = &str> {
    kernel.inames.values().map(|iname| iname.name.as_str())
}

/// The first loop directly inside one that runs its iterations one after the other.
fn loop_inside(kernel: &Kernel, name: &str) -> Result<Option<String>, Refusal> {
    let iname = tree_loop(kernel, name)?;
    let missing = || Refusal::internal(format!("no body of the loop `{name}`"), kernel);
    let body = loop_body(&kernel.body, iname).ok_or_else(missing)?;
    let in_turn = |node: &Node| match node {
        Node::Loop(l, _) => match kernel.inames[*l].tag {
            AxisTag::Sequential | AxisTag::Rolled => Some(kernel.inames[*l].name.clone()),
            AxisTag::Unrolled | AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => {
                None
            }
        },
        Node::Insn(_) => None,
    };
    Ok(body.iter().find_map(in_turn))
}
