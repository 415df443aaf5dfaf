//! The facts of primitives: `facts/PRIMITIVE/*.txt`, a step a question.
//!
//! The program is printed and read back. Each accepted step is run before and after by the
//! interpreter; its answer is the step in words and the program it makes. The answer to a refused
//! one is `refused: ` and the message.
//!
//! A crate with primitives of its own calls [`main`] in a test without a harness:
//!
//! ```no_run
//! # use std::{path::Path, process::ExitCode};
//! fn main() -> ExitCode {
//!     let set = kingpost_primitives::steps().clone(); // with::<YourPrimitive>()
//!     kingpost_step_facts::main(&set, Path::new("facts"))
//! }
//! ```
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod story;

use kingpost_analysis::Analysis;
use kingpost_facts::{Answers, Fact};
use kingpost_ir::Kernel;
use kingpost_primitives::refusal::{PLACEMENT, STORAGE};
use kingpost_primitives::schedule::ScriptProblem;
use kingpost_primitives::{PrimitiveInfo, Refusal, Step, StepSet};
use std::path::Path;
use std::process::ExitCode;

/// Runs the facts of a folder, whose steps are of a set.
#[must_use]
pub fn main(set: &StepSet, folder: &Path) -> ExitCode {
    let set = set.clone();
    kingpost_facts::main(folder, move |fact| answer(&set, fact))
}

/// The obligation that a refusal names is one that the primitive declares, or that the frame
/// checks.
fn declared(set: &StepSet, step: &str, refusal: &Refusal) -> Result<(), String> {
    let Some(obligation) = refusal.obligation() else { return Ok(()) };
    let name = step.split('(').next().unwrap_or_default().trim();
    let known = |p: &&PrimitiveInfo| p.obligations.contains(&obligation);
    match set.called(name).filter(known) {
        Some(_) => Ok(()),
        None if [STORAGE, PLACEMENT].contains(&obligation) => Ok(()),
        None => Err(format!("`{name}` does not declare the obligation `{}`", obligation.id())),
    }
}

/// What a step keeps of a placed kernel is what is found again.
fn check_kept(before: &Kernel, step: &Step) -> Result<(), String> {
    let analysis = Analysis::of(before);
    if analysis.check_placement().is_err() {
        return Ok(()); // there is nothing to keep
    }
    let (after, _) = step.apply_to(&analysis).map_err(|e| e.to_string())?;
    after.kernel().verify().map_err(|e| format!("`{step}` keeps what is not verified: {e}"))?;
    let anew = Analysis::of(after.kernel());
    if after.analysis().place() == anew.place() {
        Ok(())
    } else {
        Err(format!(
            "`{step}` keeps of the placement what is not found again:\n{after}",
            after = after.kernel()
        ))
    }
}

/// A step that a refusal prints, with its arguments, is accepted and keeps the results.
fn check_printed(set: &StepSet, kernel: &Kernel, message: &str) -> Result<(), String> {
    let Some(text) = set.rows().find_map(|row| printed(message, row.name)) else { return Ok(()) };
    let script = set.script(text).map_err(|e| e.render(text))?;
    let schedule = script.apply(kernel).map_err(|e| format!("`{text}`, which the refusal prints: {e}"))?;
    for step in &schedule.recipe().steps {
        story::check(kernel, schedule.kernel(), step);
    }
    Ok(())
}

/// A step of a name in a message, from the name to the end of its arguments.
fn printed<'m>(message: &'m str, name: &str) -> Option<&'m str> {
    let text = &message[message.find(&format!(" {name}("))? + 1..];
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c == ')'
    })?;
    Some(&text[..=end])
}

/// What becomes of the program, step by step, until one is refused.
fn answer(set: &StepSet, fact: &Fact) -> Result<Answers, String> {
    let text = &fact.kernel.text;
    let mut kernel = kingpost_ir::text::parse(text).map_err(|e| e.render(text))?;
    let mut found = Answers { kernel: Some(kernel.to_string()), answers: Vec::new() };
    for question in &fact.questions {
        let script = set.script(&question.text).map_err(|e| e.render(&question.text))?;
        let schedule = match script.apply(&kernel) {
            Ok(schedule) => schedule,
            Err(error) => {
                let ScriptProblem::Refused(refusal) = error.problem else { return Err(error.to_string()) };
                let message = refusal.to_string();
                story::assert_style(&message);
                declared(set, &question.text, &refusal.cause)?;
                check_printed(set, &kernel, &message)?;
                found.answers.push(format!("refused: {message}"));
                return Ok(found);
            }
        };
        let [step] = schedule.recipe().steps.as_slice() else {
            return Err(format!("`{}` is no single step", question.text));
        };
        story::check(&kernel, schedule.kernel(), step);
        check_kept(&kernel, step)?;
        kernel = schedule.kernel().clone();
        found.answers.push(format!("{step}\n\n{kernel}"));
    }
    Ok(found)
}
