//! Whether calls that run asynchronously are done at the end of the kernel.

use super::event::Event;
use crate::ast::Fence;
use crate::completions::Kind;
use kingpost_ir::InsnId;
use std::cmp::Reverse;

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

/// The least age of a call that may be under way after these events, if there was one of such an age
/// `before`.
pub(super) fn youngest(
    events: &[Event],
    fences: &[Option<Fence>],
    kind: &Kind,
    before: Option<Reverse<u8>>,
) -> Option<Reverse<u8>> {
    events.iter().fold(before, |before, event| match event {
        Event::Issue(_) => Some(Reverse(0)),
        Event::Barrier(k) => match (&fences[*k], before) {
            (Some(fence), Some(Reverse(age))) => kind.behind(fence, age, false).map(Reverse),
            (None, before) | (_, before @ None) => before,
        },
        // run once or not; again would find what the first time left, or older calls
        Event::If(body) | Event::For(_, body) => before.max(youngest(body, fences, kind, before)),
        Event::Run(_) | Event::Iteration(_) => before,
    })
}
