//! The text of a schedule.

mod fields;
mod format;
mod holes;
mod parse;
mod trace;
mod value;

pub use fields::{Arguments, of as fields_of};
pub use holes::Choice;
pub use trace::AppliedStep;

use super::{Made, Schedule};
use crate::combined::Combined;
use crate::recipe::{Lowering, Recipe, StartsFrom, fixed_params};
use crate::refusal::TransformError;
use crate::step::Step;
use crate::step_set::StepSet;
use holes::{Arithmetic, Combinations, Hole, Requirement};
use kingpost_ir::Kernel;
use kingpost_ir::text::{ParseError, ParseErrors, parse, suggestion};
use parse::{Argument, Line, Statement};
use serde::de::DeserializeSeed;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;
use value::Span;
pub use value::is_word;

/// A schedule as text: one step a line, with comments, and names for what steps make.
///
/// ```text
/// # 128 work-items a group
/// let block, item = split(i, 128)
/// tag(block, g.0)
/// tag(item, l.0)
/// prefetch(x, at: block, space: local, work_items: [128])
/// ```
///
/// | part | form |
/// |---|---|
/// | step | name or verb of a primitive, and its arguments, by position first, then by name |
/// | combined step | `reorder([j, i])`, `tile([i, j], [8, 8])`: recipes hold the steps it makes |
/// | value | a word (`i`, `l.0`, `scatter_*`), a number, `true`, `"text"`, `[a, b]`, `{name: a}` |
/// | handles | `let a, _ = step(...)`: arrays, then loops, rules, instructions; `_` skips one |
/// | hole | `tile in [8, 16, 32]`: one of these values, which the tuner finds |
/// | derived value | `threads = tile*tile`: of holes by `+`, `-`, `*`, `/` (rounded down), `mod` |
/// | constraint | `require threads <= 1024`: combinations that break it are not tried |
/// | start | `lowering rules(default)`: what the form is lowered with that the steps are for |
///
/// A word that names a handle stands for the handle from there on, and so does one that names a
/// hole; text in quotes never does. Arguments have the names and the order of the fields of the
/// step's type. A line that starts with `#` is a comment, and so is the rest of a line after `#`.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    set: StepSet,
    text: String,
    lowering: Vec<Lowering>,
    holes: Vec<Hole>,
    derived: Vec<(String, Arithmetic)>,
    requirements: Vec<Requirement>,
    statements: Vec<Statement>,
}

/// A step of a script that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}{}", StartsFrom(&.recipe.lowering))]
pub struct ScriptError {
    /// Its line, from 1.
    pub line: usize,
    /// The steps before it, and the step itself if it is the one that is refused.
    pub recipe: Recipe,
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
    /// The schedule has holes, and no value is given for one.
    #[error("`{hole}` has no value; choose one of {values}, or let `kingpost tune` search for the best")]
    Hole {
        /// The hole.
        hole: String,
        /// Its values.
        values: String,
    },
    /// Values that break a constraint.
    #[error("{choice} break a constraint of the schedule; choose others")]
    Choice {
        /// The values.
        choice: String,
    },
    /// More handles than things that the step made.
    #[error("{needed} handles for {} made by this step: {}; leave out a handle", .made.len(), Names(.made))]
    Handles {
        /// How many are named.
        needed: usize,
        /// What the step made.
        made: Vec<String>,
    },
}

/// What came of a line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The line, from 1.
    pub line: usize,
    /// The kernel that it met.
    pub before: Kernel,
    /// Place of its first step in the recipe of the schedule; a combined step records several.
    pub first: usize,
    /// What it made.
    pub made: Made,
}

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|n| format!("`{n}`")).collect();
        f.write_str(if names.is_empty() { "nothing".into() } else { names.join(", ") }.as_str())
    }
}

impl Script {
    /// Reads the schedule, of steps of a set, that begins at a position of a text.
    pub fn parse_in(set: &StepSet, text: &str, start: usize) -> Result<Self, ParseErrors> {
        let (lines, mut errors) = parse::lines(text, start);
        let mut script = Self {
            set: set.clone(),
            text: text.to_owned(),
            lowering: Vec::new(),
            holes: Vec::new(),
            derived: Vec::new(),
            requirements: Vec::new(),
            statements: Vec::new(),
        };
        let mut words = Words::new();
        for line in lines {
            if let Err(error) = script.add(line, &mut words) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(script) } else { Err(ParseErrors::new(errors, text)) }
    }

    /// Adds a line; `words` are the names so far, with a value each so that the kinds of arguments
    /// can be checked.
    fn add(&mut self, line: Line, words: &mut Words) -> Result<(), ParseError> {
        match line {
            Line::Hole(hole) => {
                check_name(&hole.name, words)?;
                let Some(first) = hole.json().into_iter().next() else {
                    return Err(error(&hole.name.1, format!("`{}` has no values", hole.name.0), None));
                };
                if let Some(value) = hole.repeated() {
                    return Err(error(&value.span, "this value stands in the list already".into(), None));
                }
                words.insert(hole.name.0.clone(), first);
                self.holes.push(hole);
            }
            Line::Derived(name, value) => {
                check_name(&name, words)?;
                check_integers(&value, words)?;
                words.insert(name.0.clone(), Json::from(1));
                self.derived.push((name.0, value));
            }
            Line::Require(requirement) => {
                check_integers(&requirement.left, words)?;
                check_integers(&requirement.right, words)?;
                self.requirements.push(requirement);
            }
            Line::Lowering((text, span)) => {
                if !self.statements.is_empty() {
                    let message = "what the form is lowered with stands before the first step";
                    return Err(error(&span, message.into(), None));
                }
                self.lowering.push(text.parse().map_err(|e| error(&span, format!("{e}"), None))?);
            }
            Line::Step(statement) => {
                let checked = action_of(&self.set, &statement, words);
                let handles = statement.handles.iter().filter(|(name, _)| name != "_");
                words.extend(handles.map(|(name, _)| (name.clone(), Json::String(name.clone()))));
                self.statements.push(statement);
                checked.map(drop)?;
            }
        }
        Ok(())
    }

    /// What the form is lowered with to give the kernel that the steps start from; nothing of a
    /// kernel that is no form's, or of a form as it is lowered by default.
    pub fn lowering(&self) -> &[Lowering] {
        &self.lowering
    }

    /// Whether values are to be chosen before it can be applied.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// A value of a hole, checked against its list: `tile=16`.
    ///
    /// # Errors
    /// No hole of that name, or a value that its list does not have; the message says what there
    /// is.
    pub fn value_of(&self, hole: &str, text: &str) -> Result<Json, String> {
        let Some(found) = self.holes.iter().find(|h| h.name.0 == hole) else {
            let names: Vec<_> = self.holes.iter().map(|h| h.name.0.as_str()).collect();
            return Err(format!("the schedule has no hole `{hole}`; its holes are {}", listed(&names)));
        };
        let values = found.json();
        values.iter().find(|v| value::show(v) == text).cloned().ok_or_else(|| {
            let values: Vec<_> = values.iter().map(value::show).collect();
            format!("`{hole}` is one of {}, not {text}", values.join(", "))
        })
    }

    /// The combinations of values for the holes that satisfy the constraints, in the order of the
    /// text.
    pub fn choices(&self) -> impl Iterator<Item = Choice> + '_ {
        let lists = self.holes.iter().map(|h| (h.name.0.clone(), h.json())).collect();
        Combinations::of(lists).filter(|chosen| self.words(chosen).is_some()).map(Choice)
    }

    /// The values of holes and what is derived from them; `None` if they break a constraint.
    fn words(&self, chosen: &Words) -> Option<Words> {
        let mut words = chosen.clone();
        for (name, value) in &self.derived {
            let value = value.value(&words)?;
            words.insert(name.clone(), Json::from(value));
        }
        self.requirements.iter().all(|r| r.holds(&words)).then_some(words)
    }

    /// The parameters that its steps give a value for good, and the values; those without one by
    /// this choice are left out. `given` are values of other parameters, which expressions may
    /// need.
    #[must_use]
    pub fn fixed_params(&self, choice: &Choice, given: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
        let words = self.words(&choice.0).unwrap_or_else(|| choice.0.clone());
        // a step that mentions a handle fixes nothing
        let steps = self.statements.iter().filter_map(|s| match action_of(&self.set, s, &words) {
            Ok(Action::Step(step)) => Some(step),
            Ok(Action::Combined(_)) | Err(_) => None,
        });
        let steps: Vec<Step> = steps.collect();
        fixed_params(steps.iter(), given)
    }

    /// Applies the steps in order.
    ///
    /// # Errors
    /// The first step that is refused, with its line and the kernel it met; a schedule with holes.
    pub fn apply(&self, kernel: &Kernel) -> Result<Schedule, ScriptError> {
        self.apply_with(kernel, &Choice::default())
    }

    /// Applies the steps in order, with values for the holes.
    ///
    /// # Errors
    /// As [`Script::apply`]; holes without a value, values that break a constraint.
    pub fn apply_with(&self, kernel: &Kernel, choice: &Choice) -> Result<Schedule, ScriptError> {
        let mut schedule = Schedule::of(kernel);
        self.extend(&mut schedule, choice)?;
        Ok(schedule)
    }

    /// Applies the steps in order after those of a schedule, with values for the holes; says what came of
    /// each line.
    ///
    /// ```
    /// use kingpost_primitives::{Schedule, schedule::Choice, steps};
    ///
    /// let kernel = kingpost_ir::text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 0..64\n  s: y[i] = 0.0\n")?;
    /// let mut schedule = Schedule::of(&kernel);
    /// let text = "let block, item = split_iname(i, factor: 8)\ntag(block, g.0)\n";
    /// let done = steps().script(text)?.extend(&mut schedule, &Choice::default())?;
    /// assert_eq!(done[0].made.names().collect::<Vec<_>>(), ["i_o", "i_i"]);
    /// assert_eq!((done[1].line, done[1].first), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Script::apply_with`]; the steps before the one that is refused stay applied.
    pub fn extend(&self, schedule: &mut Schedule, choice: &Choice) -> Result<Vec<Applied>, ScriptError> {
        let mut done = Vec::new();
        self.follow(schedule, choice, |_, applied, _, _| done.push(applied))?;
        Ok(done)
    }

    /// Applies the steps in order, and shows each, what came of it, the kernel after it, and what words stand
    /// for.
    fn follow(
        &self,
        schedule: &mut Schedule,
        choice: &Choice,
        mut applied: impl FnMut(&Statement, Applied, &Kernel, &Words),
    ) -> Result<(), ScriptError> {
        schedule.start_from(&self.lowering);
        let line = |at: usize| 1 + self.text[..at].matches('\n').count();
        let refused = |schedule: &Schedule, at: usize, problem| ScriptError {
            line: line(at),
            recipe: schedule.recipe().clone(),
            kernel: Box::new(schedule.kernel().clone()),
            problem,
        };
        if let Some(hole) = self.holes.iter().find(|h| !choice.0.contains_key(&h.name.0)) {
            let values: Vec<_> = hole.json().iter().map(value::show).collect();
            let problem = ScriptProblem::Hole { hole: hole.name.0.clone(), values: values.join(", ") };
            return Err(refused(schedule, hole.name.1.start, problem));
        }
        let Some(mut words) = self.words(&choice.0) else {
            let problem = ScriptProblem::Choice { choice: choice.to_string() };
            return Err(refused(schedule, 0, problem));
        };
        for statement in &self.statements {
            let (before, first) = (schedule.kernel().clone(), schedule.recipe().steps.len());
            match run(&self.set, schedule, statement, &mut words) {
                Ok(made) => {
                    let done = Applied { line: line(statement.span.start), before, first, made };
                    applied(statement, done, schedule.kernel(), &words);
                }
                Err((step, problem)) => {
                    let mut error = refused(schedule, statement.span.start, problem);
                    error.recipe.steps.extend(step.map(|step| *step));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// What words stand for: handles, holes and what is derived from them.
type Words = BTreeMap<String, Json>;

/// Applies the step of a statement and names what it made; where it is refused, the step, and why.
fn run(
    set: &StepSet,
    schedule: &mut Schedule,
    statement: &Statement,
    words: &mut Words,
) -> Result<Made, (Option<Box<Step>>, ScriptProblem)> {
    let refused = |e: TransformError| ScriptProblem::Refused(Box::new(e));
    let action = action_of(set, statement, words).map_err(|e| {
        let cause = crate::Refusal::Arguments(e.message);
        (None, refused(TransformError { operation: statement.step.0.clone(), cause }))
    })?;
    let made: Made = match action {
        Action::Step(step) => schedule.apply(step.clone()).map_err(|e| (Some(Box::new(step)), refused(e)))?,
        Action::Combined(combined) => combined.apply(schedule).map_err(|e| (None, refused(e)))?,
    };
    let names: Vec<String> = made.names().map(str::to_owned).collect();
    if statement.handles.len() > names.len() {
        return Err((None, ScriptProblem::Handles { needed: statement.handles.len(), made: names }));
    }
    for ((handle, _), name) in statement.handles.iter().zip(names) {
        if handle != "_" {
            words.insert(handle.clone(), Json::String(name));
        }
    }
    Ok(made)
}

fn error(span: &Span, message: String, help: Option<String>) -> ParseError {
    ParseError { message, help, span: span.clone(), line: 1, column: 1 }
}

/// The name of a hole or a derived value: an identifier that nothing else has.
fn check_name((name, span): &(String, Span), words: &Words) -> Result<(), ParseError> {
    if name.contains(['*', '.']) || name == "_" {
        return Err(error(span, format!("`{name}` is no name for a value"), None));
    }
    if words.contains_key(name) {
        return Err(error(span, format!("there is a `{name}` already"), None));
    }
    Ok(())
}

/// Every name in an expression stands for an integer.
fn check_integers(e: &Arithmetic, words: &Words) -> Result<(), ParseError> {
    for (name, span) in e.names() {
        if !words.get(name).is_some_and(Json::is_i64) {
            let help = suggestion(name, words.keys().map(String::as_str));
            return Err(error(span, format!("`{name}` is no hole with integer values"), help));
        }
    }
    Ok(())
}

/// What a statement does.
enum Action {
    Step(Step),
    Combined(Box<dyn Combined>),
}

/// The step of a statement.
fn action_of(set: &StepSet, statement: &Statement, words: &Words) -> Result<Action, ParseError> {
    let (name, span) = &statement.step;
    let combined = set.combined(name);
    let form = set.form(name).map(|(arguments, _)| arguments);
    let form = form.or_else(|| combined.map(|combined| combined.arguments));
    let Some(Arguments { names: known, alternatives }) = form else {
        return Err(error(span, format!("there is no step `{name}`"), Some(set.hint(name))));
    };
    let mut arguments = Map::new();
    for (k, Argument { name: given, value }) in statement.arguments.iter().enumerate() {
        let (field, place) = match given {
            Some((field, place)) => (field.as_str(), place),
            None if statement.arguments[..k].iter().any(|a| a.name.is_some()) => {
                let message = "an argument by position after one by name".to_owned();
                return Err(error(&value.span, message, Some("give it by name, too".into())));
            }
            None if alternatives => {
                let help = format!("one of {}", listed(known));
                return Err(error(&value.span, format!("`{name}` takes its argument by name"), Some(help)));
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
        if arguments.insert(field.to_owned(), value.json(words)).is_some() {
            return Err(error(place, format!("`{field}` is given twice"), None));
        }
    }
    let arguments = Json::Object(arguments);
    let action = match combined {
        Some(combined) => (combined.read)(arguments).map(Action::Combined),
        None => {
            let json = Json::Object([(name.clone(), arguments)].into_iter().collect());
            set.deserialize(json).map(Action::Step)
        }
    };
    action.map_err(|e| {
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

/// The text of a recipe, a step a line; [`StepSet::script`] reads it back.
pub fn print(recipe: &Recipe) -> String {
    let start = recipe.lowering.iter().map(|lowering| format!("lowering {lowering}\n"));
    start.chain(recipe.steps.iter().map(|step| line(step) + "\n")).collect()
}

/// A step with its first argument by position and the others by name.
fn line(step: &Step) -> String {
    let name = step.name();
    let json = match serde_json::to_value(step) {
        Ok(json) => json,
        Err(why) => return format!("{name}(unwritten: \"{why}\")"), // which no step reads as its own
    };
    let arguments = json.get(name).unwrap_or(&Json::Null);
    let Arguments { names, alternatives } = step.arguments();
    let mut shown = Vec::new();
    for (k, field) in names.iter().enumerate() {
        match arguments.get(*field) {
            Some(value) if k == 0 && !alternatives => shown.push(value::show(value)),
            Some(value) => shown.push(format!("{field}: {}", value::show(value))),
            None => {}
        }
    }
    format!("{name}({})", shown.join(", "))
}

impl StepSet {
    /// Reads a schedule, and checks the names of its steps and arguments.
    ///
    /// # Errors
    /// Every line that is no step, unknown steps and arguments with the nearest names, values that
    /// the argument does not take; each with its place.
    pub fn script(&self, text: &str) -> Result<Script, ParseErrors> {
        Script::parse_in(self, text, 0)
    }

    /// Reads a kernel and, after a line `schedule`, the schedule that belongs to it.
    ///
    /// # Errors
    /// Everything wrong with the kernel, else with the schedule, each with its place in the file.
    pub fn file(&self, text: &str) -> Result<(Kernel, Option<Script>), ParseErrors> {
        let Some((end, start)) = heading(text) else { return Ok((parse(text)?, None)) };
        let kernel = parse(&text[..end])?;
        Ok((kernel, Some(Script::parse_in(self, text, start)?)))
    }
}

/// Where the line `schedule` of a text begins, and where the one after it does.
pub fn heading(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        if content.trim_end() == "schedule" {
            return Some((at, at + line.len()));
        }
        at += line.len();
    }
    None
}
