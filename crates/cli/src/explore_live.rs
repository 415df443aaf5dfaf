//! `kingpost explore --live`: the page with an editor, for as long as the command runs.

use super::failure::Failure;
use super::loopback::{Answer, Question, Server};
use super::out;
use super::text_file::read;
use kingpost::explore::{Explorer, Subject, live_page};
use kingpost::ir::text::ParseErrors;
use kingpost::transforms::schedule::{Choice, ScriptProblem};
use kingpost::transforms::{Recipe, ScriptError, steps};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What the page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The text in the editor.
    text: String,
}

/// What is wrong with a text.
#[derive(Serialize)]
struct Mistakes {
    errors: Vec<Mistake>,
}

#[derive(Serialize)]
struct Mistake {
    message: String,
    help: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    /// Where it starts and ends, as editors of browsers count.
    start: usize,
    end: usize,
}

impl Mistake {
    fn nowhere(message: impl Into<String>) -> Vec<Self> {
        vec![Self { message: message.into(), help: None, line: None, column: None, start: 0, end: 0 }]
    }

    fn at(source: &str, at: std::ops::Range<usize>, message: String, help: Option<String>) -> Self {
        let units = |end: usize| source.get(..end).map_or(0, |text| text.encode_utf16().count());
        let before = source.get(..at.start).unwrap_or_default(); // default: a span beyond the text is at its start
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        let (start, end) = (units(at.start), units(at.end));
        Self { message, help, line: Some(line), column: Some(column), start, end }
    }

    fn of_text(source: &str, errors: &ParseErrors) -> Vec<Self> {
        let of = |e: &kingpost::ir::text::ParseError| {
            Self::at(source, e.span.clone(), e.message.clone(), e.help.clone())
        };
        errors.errors().iter().map(of).collect()
    }
}

/// Serves the page until the command is stopped.
///
/// # Errors
/// A file that cannot be read; a port that is taken.
pub fn run(file: &str, params: &BTreeMap<String, i64>, port: u16) -> Result<(), Failure> {
    let text = read(Path::new(file))?;
    let title = format!("{file}, live");
    let page = live_page(&title, &text).map_err(|error| Failure::Refused(error.to_string()))?;
    let server = Server::listen(port).map_err(|error| {
        Failure::Usage(format!("--port {port}: cannot listen on 127.0.0.1: {error}; try another"))
    })?;
    out(&format!("{}\nopen it in a browser of this machine; Ctrl-C ends it\n", server.url()))?;
    let mut explorer = Explorer::default();
    let answered = server.answer(|question| match question {
        Question::Page => Answer { kind: "text/html", body: page.clone() },
        Question::Post(body) => {
            let told = catch_unwind(AssertUnwindSafe(|| explore(&mut explorer, &title, params, &body)));
            let told = told.unwrap_or_else(|_| {
                explorer = Explorer::default();
                Err(Mistake::nowhere(
                    "a bug of kingpost: this text stopped it; please report it with the text",
                ))
            });
            Answer { kind: "application/json", body: told.unwrap_or_else(mistakes) }
        }
    });
    answered.map_err(|error| Failure::Missing(format!("the server has stopped: {error}")))
}

fn mistakes(errors: Vec<Mistake>) -> String {
    // texts and numbers alone: there is no JSON that they have not
    serde_json::to_string(&Mistakes { errors })
        .unwrap_or_else(|error| format!("{{\"errors\":[{{\"message\":\"{error}\"}}]}}"))
}

/// The data of the page for a text, or what is wrong with it.
fn explore(
    explorer: &mut Explorer,
    title: &str,
    params: &BTreeMap<String, i64>,
    body: &str,
) -> Result<String, Vec<Mistake>> {
    let Edit { text } = serde_json::from_str(body).map_err(|error| Mistake::nowhere(error.to_string()))?;
    let (kernel, script) = steps().file(&text).map_err(|errors| Mistake::of_text(&text, &errors))?;
    let recipe = match script.map(|script| script.apply_with(&kernel, &Choice::default())) {
        None => Recipe::default(),
        Some(Ok(schedule)) => schedule.finish().1,
        // the page shows the step and why
        Some(Err(ScriptError { problem: ScriptProblem::Refused(_), recipe, .. })) => recipe,
        Some(Err(error)) => return Err(Mistake::nowhere(error.to_string())),
    };
    let known = |name: &&String| kernel.var(name.as_str()).is_some();
    let params = params.iter().filter(|(name, _)| known(name)).map(|(n, v)| (n.clone(), *v)).collect();
    let subject = Subject::new(title, &kernel, &recipe).with_params(params);
    explorer.json(&subject).map_err(|error| Mistake::nowhere(error.to_string()))
}
