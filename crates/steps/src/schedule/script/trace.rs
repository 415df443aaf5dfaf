//! A script step by step, with the places of its text.

use super::holes::Choice;
use super::value::Span;
use super::{Schedule, Script, ScriptError};
use kingpost_ir::Kernel;
use serde_json::Value as Json;

/// A step of a script that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedStep {
    /// The place of the step, with its handles and arguments.
    pub span: Span,
    /// Its handles: the name and the place, and what the kernel calls the thing.
    pub handles: Vec<(String, Span, String)>,
    /// The kernel after it.
    pub kernel: Kernel,
}

impl Script {
    /// The places of its steps, with their handles and arguments.
    pub fn places(&self) -> impl ExactSizeIterator<Item = Span> + '_ {
        self.statements.iter().map(|statement| statement.span.clone())
    }

    /// Applies the steps in order and keeps what each did, also those before one that is refused.
    pub fn trace(
        &self,
        kernel: &Kernel,
        choice: &Choice,
    ) -> (Vec<AppliedStep>, Result<Schedule, ScriptError>) {
        let mut applied = Vec::new();
        let mut schedule = Schedule::of(kernel);
        let result = self.follow(&mut schedule, choice, |statement, _, kernel, words| {
            let handles = statement.handles.iter().filter_map(|(name, place)| {
                // `_` stands for nothing
                let thing = words.get(name).and_then(Json::as_str)?;
                Some((name.clone(), place.clone(), thing.to_owned()))
            });
            let handles = handles.collect();
            applied.push(AppliedStep { span: statement.span.clone(), handles, kernel: kernel.clone() });
        });
        (applied, result.map(|()| schedule))
    }
}
