//! The text of a schedule.

mod fields;
mod parse;
mod value;

pub(crate) use fields::of as fields_of;

use super::Schedule;
use crate::error::TransformError;
use crate::recipe::Recipe;
use crate::step::{Step, argument_names, primitives};
use parse::{Argument, Statement};
use purlin_ir::Kernel;
use purlin_ir::text::{ParseError, ParseErrors, suggestion};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;

/// A schedule as text: one step a line, with comments, and names for what steps make.
///
/// ```text
/// # 128 work-items a group
/// let block, item = split_iname(i, 128)
/// tag_iname(block, g.0)
/// tag_iname(item, l.0)
/// prefetch_array(x, at: block, space: local, work_items: [128])
/// ```
///
/// | part | form |
/// |---|---|
/// | step | a primitive's name and its arguments in brackets, by position first, then by name |
/// | value | a word (`i`, `l.0`, `scatter_*`), a number, `true`, `false`, text in quotes as in JSON, `[a, b]`, `{name: value}` |
/// | handles | `let a, b = step(...)` names what the step makes: arrays, then loops, rules, instructions; `_` skips one |
///
/// A word that names a handle stands for the handle from there on; text in quotes never does. Arguments have the names
/// and the order of the fields of the step's type. A line that starts with `#` is a comment, and so is the rest of a
/// line after `#`.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    text: String,
    statements: Vec<Statement>,
}

/// A step of a script that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// Its line, from 1.
    pub line: usize,
    /// The kernel it met.
    pub kernel: Box<Kernel>,
    /// What is wrong.
    pub problem: ScriptProblem,
}

/// What is wrong with a step of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptProblem {
    /// The step is refused.
    #[error("{0}")]
    Refused(Box<TransformError>),
    /// More handles than things that the step made.
    #[error("{needed} handles for {} made by this step: {}; leave out a handle", .made.len(), Names(.made))]
    Handles {
        /// How many are named.
        needed: usize,
        /// What the step made.
        made: Vec<String>,
    },
}

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|n| format!("`{n}`")).collect();
        f.write_str(if names.is_empty() { "nothing".into() } else { names.join(", ") }.as_str())
    }
}

impl Script {
    /// Reads a schedule, and checks the names of its steps and arguments.
    ///
    /// # Errors
    /// Every line that is no step, unknown steps and arguments with the nearest names, values that the argument does
    /// not take; each with its place.
    pub fn parse(text: &str) -> Result<Self, ParseErrors> {
        let (statements, mut errors) = parse::statements(text);
        let mut handles = BTreeMap::new();
        for statement in &statements {
            if let Err(error) = step_of(statement, &handles) {
                errors.push(error);
            }
            // a handle's name is a word like any other, so the kinds of values can be checked without a kernel
            handles.extend(statement.handles.iter().map(|(name, _)| (name.clone(), name.clone())));
        }
        if errors.is_empty() {
            return Ok(Self { text: text.to_owned(), statements });
        }
        Err(ParseErrors::new(errors, text))
    }

    /// Applies the steps in order.
    ///
    /// # Errors
    /// The first step that is refused, with its line and the kernel it met.
    pub fn apply(&self, kernel: &Kernel) -> Result<Schedule, ScriptError> {
        let mut schedule = Schedule::of(kernel);
        let mut handles = BTreeMap::new();
        for statement in &self.statements {
            let line = 1 + self.text[..statement.span.start].matches('\n').count();
            let refused = |schedule: &Schedule, problem| ScriptError {
                line,
                kernel: Box::new(schedule.kernel().clone()),
                problem,
            };
            let step = step_of(statement, &handles).map_err(|e| {
                let cause = crate::Cause::Argument(e.message);
                let operation = statement.step.0.clone();
                refused(&schedule, ScriptProblem::Refused(Box::new(TransformError { operation, cause })))
            })?;
            let made =
                schedule.apply(step).map_err(|e| refused(&schedule, ScriptProblem::Refused(Box::new(e))))?;
            let names: Vec<String> = made.names().map(str::to_owned).collect();
            if statement.handles.len() > names.len() {
                let problem = ScriptProblem::Handles { needed: statement.handles.len(), made: names };
                return Err(refused(&schedule, problem));
            }
            for ((handle, _), name) in statement.handles.iter().zip(names) {
                if handle != "_" {
                    handles.insert(handle.clone(), name);
                }
            }
        }
        Ok(schedule)
    }
}

/// The step of a statement.
fn step_of(statement: &Statement, handles: &BTreeMap<String, String>) -> Result<Step, ParseError> {
    let (name, span) = &statement.step;
    let error = |span: &std::ops::Range<usize>, message: String, help: Option<String>| ParseError {
        message,
        help,
        span: span.clone(),
        line: 1,
        column: 1,
    };
    let Some(known) = argument_names(name) else {
        let names: Vec<String> = primitives().iter().map(|p| p.step_name()).collect();
        let hint = suggestion(name, names.iter().map(String::as_str));
        let help = hint.unwrap_or_else(|| "`purlin primitives` lists them".into());
        return Err(error(span, format!("there is no step `{name}`"), Some(help)));
    };
    let mut arguments = Map::new();
    for (k, Argument { name: given, value }) in statement.arguments.iter().enumerate() {
        let (field, place) = match given {
            Some((field, place)) => (field.as_str(), place),
            None if statement.arguments[..k].iter().any(|a| a.name.is_some()) => {
                let message = "an argument by position after one by name".to_owned();
                return Err(error(&value.span, message, Some("give it by name, too".into())));
            }
            None => match known.get(k) {
                Some(field) => (*field, &value.span),
                None => {
                    let message = format!("`{name}` takes {} arguments: {}", known.len(), listed(known));
                    return Err(error(&value.span, message, None));
                }
            },
        };
        if !known.contains(&field) {
            let help = suggestion(field, known.iter().copied())
                .unwrap_or_else(|| format!("its arguments are {}", listed(known)));
            return Err(error(place, format!("`{name}` has no argument `{field}`"), Some(help)));
        }
        if arguments.insert(field.to_owned(), value.json(handles)).is_some() {
            return Err(error(place, format!("`{field}` is given twice"), None));
        }
    }
    let json = Json::Object([(name.clone(), Json::Object(arguments))].into_iter().collect());
    serde_json::from_value(json).map_err(|e| {
        let help = format!("its arguments are {}", listed(known));
        error(&statement.span, format!("`{name}`: {e}"), Some(help))
    })
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        names => names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
    }
}

/// The text of a recipe, a step a line; [`Script::parse`] reads it back.
pub fn print(recipe: &Recipe) -> String {
    recipe.steps.iter().map(|step| line(step) + "\n").collect()
}

/// A step with its first argument by position and the others by name.
fn line(step: &Step) -> String {
    let json = serde_json::to_value(step).unwrap_or_default();
    let (name, arguments) = match json {
        Json::Object(entries) => entries.into_iter().next().unwrap_or_default(),
        Json::String(name) => (name, Json::Null),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => Default::default(),
    };
    let known = argument_names(&name).unwrap_or_default();
    let mut shown = Vec::new();
    for (k, field) in known.iter().enumerate() {
        match arguments.get(*field) {
            Some(value) if k == 0 => shown.push(value::show(value)),
            Some(value) => shown.push(format!("{field}: {}", value::show(value))),
            None => {}
        }
    }
    format!("{name}({})", shown.join(", "))
}
