//! What the walk meets.

use kingpost_ir::{InameId, InsnId};

/// What the walk meets.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// Instructions that run as one, all of which are ends of syncs.
    Run(Vec<InsnId>),
    /// The same of a call that runs asynchronously.
    Issue(Vec<InsnId>),
    /// The barrier of this number.
    Barrier(usize),
    /// The next copy of the body of a loop.
    Iteration(Loop),
    /// What runs under a condition.
    If(Vec<Event>),
    /// A loop.
    For(Loop, Vec<Event>),
}

/// A loop by its name in the code: the first iname of this name, if there is one.
pub(super) type Loop = Option<InameId>;

/// Events with those inside.
pub(super) fn count(events: &[Event]) -> usize {
    let inside = |event: &Event| match event {
        Event::If(body) | Event::For(_, body) => count(body),
        Event::Run(_) | Event::Issue(_) | Event::Barrier(_) | Event::Iteration(_) => 0,
    };
    events.iter().map(|event| 1 + inside(event)).sum()
}
