//! Tools that ask the engine alone: the same messages have the same answers.

use super::super::failure::Failure;
use super::super::source::{Source, SourceArgs};
use super::answer::{Answer, Wrong, to_json};
use super::arguments::{Apply, Format, Load, Nothing, Primitives, Save, SourceOf, Steps, Undo};
use super::server::{Server, Subject};
use clap::{Args, Command, FromArgMatches};
use kingpost::codegen::{CodegenError, Options, Target, generate};
use kingpost::explore::{NotApplied, Session};
use kingpost::ir::{Kernel, TableData};
use kingpost::transforms::draw::Inputs;
use kingpost::transforms::schedule::{self, Choice};
use kingpost::transforms::{PrimitiveInfo, Script, steps as set};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum number of combinations of arguments that are tried of a primitive, if nothing else is asked for.
const COMBINATIONS: usize = 256;

impl From<Box<NotApplied>> for Wrong {
    fn from(error: Box<NotApplied>) -> Self {
        let message = error.message.clone();
        to_json(&error).map_or_else(|bug| bug, |more| Self::new("refused", message).with(more))
    }
}

/// Starts over with a kernel.
pub fn load(server: &mut Server, given: Load) -> Answer {
    let (kernel, script) = match given {
        Load { text: Some(text), form: None } => set().file(&text).map_err(|errors| Wrong::from(&errors))?,
        Load { text: None, form: Some(form) } => named(&form)?,
        Load { text: Some(_), form: Some(_) } | Load { text: None, form: None } => {
            return Err(Wrong::new("usage", "needed either `text` or `form`"));
        }
    };
    let mut session = Session::of(&kernel);
    let (mut done, mut open) = (Vec::new(), None);
    match script {
        Some(script) if script.has_holes() => open = Some(script),
        Some(script) => done = session.apply(&script, &Choice::default())?,
        None => {}
    }
    server.bench = None;
    let subject = server.subject.insert(Subject { session, script: open });
    let mut state = state(subject)?;
    state["applied"] = to_json(&done)?;
    Ok(state)
}

/// The kernel that the command line means by these words.
fn named(words: &str) -> Result<(Kernel, Option<Script>), Wrong> {
    let command = SourceArgs::augment_args(Command::new("load").no_binary_name(true).disable_help_flag(true));
    let usage = |e: clap::Error| Wrong::new("usage", e.to_string());
    let matches = command.try_get_matches_from(words.split_whitespace()).map_err(usage)?;
    let source = SourceArgs::from_arg_matches(&matches).map_err(usage)?.source()?;
    let kernel = source.kernel()?;
    Ok((
        kernel,
        match source {
            Source::File(file) => file.script,
            Source::Form(_) => None,
        },
    ))
}

/// The kernel as it is now.
pub fn kernel(server: &mut Server, Nothing {}: Nothing) -> Answer {
    state(server.subject()?)
}

fn state(Subject { session, script }: &Subject) -> Answer {
    let kernel = session.kernel();
    Ok(json!({
        "name": kernel.name,
        "text": kernel.to_string(),
        "parts": to_json(&session.parts())?,
        "steps": schedule::print(session.recipe()),
        "has_holes": script.is_some(),
    }))
}

/// Lists the primitives, or explains one.
pub fn primitives(_: &mut Server, given: Primitives) -> Answer {
    let Some(name) = given.name else {
        let all = set().rows().map(|row| (row.name.to_owned(), Value::from(row.summary)));
        return Ok(Value::Object(all.collect()));
    };
    let row = primitive(&name)?;
    let proves: BTreeMap<&str, &str> = row.obligations.iter().map(|o| (o.id(), o.says())).collect();
    Ok(json!({
        "name": row.name,
        "summary": row.summary,
        "arguments": row.arguments(),
        "schema": (row.schema)().to_value(),
        "proves": proves,
        "keeps": row.keeps.to_string(),
    }))
}

fn primitive(name: &str) -> Result<&'static PrimitiveInfo, Wrong> {
    let unknown = || Wrong::new("usage", format!("there is no primitive `{name}`; {}", set().hint(name)));
    set().called(name).ok_or_else(unknown)
}

/// Values of parameters, and no arrays.
struct Params<'p>(&'p BTreeMap<String, i64>);

impl Inputs for Params<'_> {
    fn param(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    fn array(&self, _: &str) -> Option<TableData> {
        None
    }
}

/// Tries the steps that primitives draw.
pub fn steps(server: &mut Server, given: Steps) -> Answer {
    let Subject { session, .. } = server.subject()?;
    let rows: Vec<&PrimitiveInfo> = match given.only.as_slice() {
        [] => set().rows().filter(|row| row.is_drawn()).collect(),
        names => names.iter().map(|name| primitive(name)).collect::<Result<_, _>>()?,
    };
    let limit = given.limit.unwrap_or(COMBINATIONS);
    let mut found = Vec::new();
    for row in rows {
        let tried = session.tried(row, &Params(&given.params), limit);
        if given.refused || !tried.legal.is_empty() {
            let refused = tried.refused.len();
            let mut json = to_json(&tried)?;
            if !given.refused {
                json["refused"] = refused.into();
            }
            found.push(json);
        }
    }
    Ok(Value::Array(found))
}

/// Applies steps, all or none.
pub fn apply(server: &mut Server, given: Apply) -> Answer {
    let Subject { session, .. } = server.subject_mut()?;
    let done = match given {
        Apply { steps: Some(text), recipe: None, holes } => {
            let script = set().script(&text).map_err(|errors| Wrong::from(&errors))?;
            session.apply(&script, &Choice::new(holes))?
        }
        Apply { steps: None, recipe: Some(recipe), holes } if holes.is_empty() => {
            let recipe = set().recipe(&recipe.to_string()).map_err(|e| Wrong::new("text", e.to_string()))?;
            session.replay(&recipe)?
        }
        Apply { .. } => return Err(Wrong::new("usage", "needed either `steps` (with `holes`) or `recipe`")),
    };
    Ok(json!({ "applied": to_json(&done)?, "text": session.kernel().to_string() }))
}

/// Takes steps back.
pub fn undo(server: &mut Server, given: Undo) -> Answer {
    let Subject { session, .. } = server.subject_mut()?;
    let calls = given.calls.unwrap_or(1); // default: the last one
    let undone = session.undo(calls).map_err(|e| Wrong::new("usage", e.to_string()))?;
    Ok(json!({ "undone": undone, "text": session.kernel().to_string() }))
}

/// The dependences of the kernel as it is now.
pub fn dependences(server: &mut Server, Nothing {}: Nothing) -> Answer {
    let found = server.subject()?.session.dependences();
    to_json(&found.map_err(|e| Wrong::new("solver", format!("the integer-set library failed: {e}")))?)
}

/// The source for a target.
pub fn source(server: &mut Server, given: SourceOf) -> Answer {
    let target = Target::ALL.iter().find(|target| target.description().name == given.target);
    let known: Vec<&str> = Target::ALL.iter().map(|target| target.description().name).collect();
    let unknown = || {
        Wrong::new("usage", format!("there is no target `{}`; there is {}", given.target, known.join(", ")))
    };
    let target = target.ok_or_else(unknown)?;
    let refused = |e: CodegenError| Wrong::from(Failure::from(e));
    to_json(&generate(server.subject()?.session.kernel(), *target, &Options::default()).map_err(refused)?)
}

/// All steps so far, to keep.
pub fn save(server: &mut Server, given: Save) -> Answer {
    let Subject { session, .. } = server.subject()?;
    let text = match given.format {
        Format::Schedule => schedule::print(session.recipe()),
        Format::Recipe => session.recipe().to_json().map_err(|e| Wrong::new("bug", e.to_string()))?,
        Format::File => format!("{}\nschedule\n{}", session.written(), schedule::print(session.recipe())),
    };
    Ok(json!({ "text": text }))
}
