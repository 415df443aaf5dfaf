//! Whether calls that run asynchronously are done at the end of the kernel.

use super::event::Event;
use crate::ast::{Fence, Name};
use kingpost_ir::InsnId;

/// The events that concern calls of some instructions: those, barriers, and what holds either.
pub(super) fn concerning(events: &[Event], wanted: &dyn Fn(InsnId) -> bool) -> Vec<Event> {
    let of_event = |event: &Event| match event {
        Event::Issue(insns) => insns.iter().any(|insn| wanted(*insn)).then(|| Event::Issue(insns.clone())),
        Event::Barrier(k) => Some(Event::Barrier(*k)),
        Event::If(body) => Some(Event::If(concerning(body, wanted))),
        Event::For(l, body) => Some(Event::For(*l, concerning(body, wanted))),
        Event::Run(_) | Event::Iteration(_) => None,
    };
    let holds = |event: &Event| !matches!(event, Event::If(body) | Event::For(_, body) if body.is_empty());
    events.iter().filter_map(of_event).filter(holds).collect()
}

/// Whether a call may be under way after these events, if one may be before them.
pub(super) fn is_outstanding(
    events: &[Event],
    fences: &[Option<Fence>],
    completion: &Name,
    before: bool,
) -> bool {
    events.iter().fold(before, |before, event| match event {
        Event::Issue(_) => true,
        Event::Barrier(k) => {
            before && !fences[*k].as_ref().is_some_and(|fence| fence.completions.contains(completion))
        }
        // run once or not; again would find what the first time left
        Event::If(body) | Event::For(_, body) => before | is_outstanding(body, fences, completion, before),
        Event::Run(_) | Event::Iteration(_) => before,
    })
}
