//! Refusals as data.

use crate::data::{Instance, Refused};
use kingpost_analysis::Witness;
use kingpost_primitives::TransformError;
use kingpost_primitives::refusal::{Clash, Refusal};

/// A refusal as the page shows it.
pub fn refused(error: &TransformError) -> Refused {
    let cause = &error.cause;
    let obligation = cause.obligation();
    let witness = cause.witness();
    let (clash, help) = split(cause.to_string(), help(cause));
    let instance = |of: fn(&Witness) -> &kingpost_analysis::Instance| {
        witness.map(of).map(|found| Instance { insn: found.insn.clone(), point: found.point.clone() })
    };
    let params = match (witness, cause) {
        (Some(witness), _) => witness.params.iter().cloned().collect(),
        (None, Refusal::NotProved(failed)) => match &failed.clash {
            Clash::Parameters(at) => at.params.iter().cloned().collect(),
            Clash::Reordered(_) | Clash::Stale(_) | Clash::Placement(_) | Clash::Lost(_) => [].into(),
        },
        (None, _) => [].into(),
    };
    Refused {
        kind: kind(cause),
        obligation: obligation.map(|o| o.id()),
        says: obligation.map(|o| o.says()),
        clash,
        help,
        source: instance(|w| &w.source),
        sink: instance(|w| &w.sink),
        element: witness.map(|w| w.element.clone()),
        through: witness.and_then(|w| w.through.clone()),
        params,
    }
}

fn kind(cause: &Refusal) -> &'static str {
    match cause {
        Refusal::Unknown { .. } => "unknown",
        Refusal::EmptySelection { .. } => "empty_selection",
        Refusal::Taken { .. } => "taken",
        Refusal::Argument(_) | Refusal::Arguments(_) => "argument",
        Refusal::Unfit(_) => "unfit",
        Refusal::Undecided(_) => "undecided",
        Refusal::NotProved(failed) => match &failed.clash {
            Clash::Reordered(_) => "reordered",
            Clash::Stale(_) => "stale",
            Clash::Placement(_) => "placement",
            Clash::Lost(_) => "lost",
            Clash::Parameters(_) => "parameters",
        },
        Refusal::Malformed(_) => "malformed",
        Refusal::Solver(_) => "solver",
        Refusal::Internal(_) => "internal",
    }
}

/// The advice, where the refusal has it apart from what was found.
fn help(cause: &Refusal) -> &str {
    match cause {
        Refusal::NotProved(failed) => match &failed.clash {
            Clash::Reordered(found) => &found.help,
            Clash::Stale(found) => &found.help,
            Clash::Lost(found) => &found.help,
            Clash::Placement(_) | Clash::Parameters(_) => "",
        },
        Refusal::Unknown { .. }
        | Refusal::EmptySelection { .. }
        | Refusal::Taken { .. }
        | Refusal::Argument(_)
        | Refusal::Arguments(_)
        | Refusal::Unfit(_)
        | Refusal::Undecided(_)
        | Refusal::Malformed(_)
        | Refusal::Solver(_)
        | Refusal::Internal(_) => "",
    }
}

/// A message without the advice that it ends with, and the advice.
fn split(message: String, help: &str) -> (String, String) {
    match message.strip_suffix(help).and_then(|found| found.strip_suffix("; ")) {
        Some(found) if !help.is_empty() => (found.to_owned(), help.to_owned()),
        Some(_) | None => (message, String::new()),
    }
}
