//! What may stand at the cursor: steps with their arguments, handles, things of the kernel, keywords.

use crate::document::{Document, Section};
use crate::documentation::{ArgumentDoc, StepDoc, names, step};
use crate::hover::{Call, enclosing_call};
use kingpost_ir::MathFn;
use kingpost_ir::verify::KEYWORDS;
use kingpost_primitives::StepSet;
use serde_json::{Value, json};

/// Kinds of the protocol.
const FUNCTION: u8 = 3;
const VARIABLE: u8 = 6;
const PROPERTY: u8 = 10;
const KEYWORD: u8 = 14;
const MEMBER: u8 = 20;

/// What may stand at a byte.
pub fn complete(document: &Document, at: usize) -> Vec<Value> {
    let Some(section) = document.section(at) else { return Vec::new() };
    let Some(start) = section.schedule.filter(|start| at >= *start) else { return in_kernel(section) };
    let text = &document.text[..at];
    let open = &text[start..];
    if open.rsplit('\n').next().is_some_and(|line| line.contains('#')) {
        return Vec::new();
    }
    match enclosing_call(open) {
        None => steps_at(&document.steps),
        Some(call) => {
            let doc = step(&document.steps, call.step);
            let mut items = match (&doc, call.is_nested) {
                (Some(doc), false) => arguments(doc, &call, open),
                (Some(_) | None, _) => Vec::new(),
            };
            items.extend(things(document, section, at));
            items
        }
    }
}

fn item(label: &str, kind: u8, detail: &str) -> Value {
    json!({"label": label, "kind": kind, "detail": detail})
}

fn markdown(text: &str) -> Value {
    json!({"kind": "markdown", "value": text})
}

fn in_kernel(section: &Section) -> Vec<Value> {
    let keywords = KEYWORDS.iter().map(|word| item(word, KEYWORD, "keyword"));
    let functions = MathFn::ALL.iter().map(|f| item(f.name(), FUNCTION, "function"));
    let names = section.statements.keys().map(|name| item(name, VARIABLE, "declared in this kernel"));
    keywords.chain(functions).chain(names).collect()
}

fn steps_at(steps: &StepSet) -> Vec<Value> {
    let words = [
        ("let", "names what a step makes: `let a, b = step(...)`"),
        ("require", "what values of holes must satisfy"),
        ("lowering", "what the form is lowered with"),
    ];
    let step = |(name, summary): (&str, &str)| {
        let mut item = item(name, FUNCTION, summary);
        if let Some(doc) = step(steps, name) {
            item["documentation"] = markdown(&doc.text);
            item["insertText"] = json!(format!("{name}({})", snippet(&doc)));
            item["insertTextFormat"] = json!(2);
        }
        item
    };
    let words = words.into_iter().map(|(word, what)| item(word, KEYWORD, what));
    names(steps).into_iter().map(step).chain(words).collect()
}

/// The arguments that a step needs, to be filled in.
fn snippet(doc: &StepDoc) -> String {
    let required = doc.arguments.iter().enumerate().filter(|(_, argument)| argument.is_required);
    let part = |(n, (k, argument)): (usize, (usize, &ArgumentDoc))| {
        // by position as far as none is left out
        let name = if n == k { String::new() } else { format!("{}: ", argument.name) };
        format!("{name}${{{}:{}}}", n + 1, argument.name)
    };
    required.enumerate().map(part).collect::<Vec<_>>().join(", ")
}

/// The arguments that the call has not got, or the values of the one whose value is to come.
fn arguments(doc: &StepDoc, at: &Call<'_>, open: &str) -> Vec<Value> {
    if let Some(argument) = at.argument.and_then(|name| doc.arguments.iter().find(|a| a.name == name)) {
        return argument.values.iter().map(|(value, what)| item(value, MEMBER, what)).collect();
    }
    let call = open.rsplit('\n').next().unwrap_or(open); // default: a text has a line
    let given = |name: &str| call.contains(&format!("{name}:"));
    // those before are given by position, or by name
    let left = doc.arguments.iter().skip(at.position).filter(|argument| !given(argument.name));
    let item = |argument: &ArgumentDoc| {
        let detail = if argument.is_required { "argument" } else { "optional argument" };
        let mut item = item(argument.name, PROPERTY, detail);
        item["insertText"] = json!(format!("{}: ", argument.name));
        item["documentation"] = markdown(&argument.text);
        item
    };
    left.map(item).collect()
}

/// Handles, and what the kernel has by name where the cursor is.
fn things(document: &Document, section: &Section, at: usize) -> Vec<Value> {
    // the line under the cursor can seldom be read: what is above counts
    let line = document.text[..at].rfind('\n').map_or(0, |end| end + 1);
    let above = Document::new(document.text[..line].to_owned(), &document.steps);
    let section =
        if document.problems.is_empty() { section } else { above.sections.last().unwrap_or(section) }; // default: a document has a section
    let (kernel, applied) = section.before(line);
    let handles = applied
        .iter()
        .flat_map(|step| &step.handles)
        .map(|(name, _, thing)| item(name, VARIABLE, &format!("handle of `{thing}`")));
    let mut items: Vec<Value> = handles.collect();
    let Some(kernel) = kernel else { return items };
    let loops = kernel.inames.values().map(|iname| (&iname.name, "loop"));
    let arrays = kernel.vars.values().map(|var| (&var.name, "variable"));
    let insns = kernel.insns.values().map(|insn| (&insn.name, "instruction"));
    let rules = kernel.rules.values().map(|rule| (&rule.name, "rule"));
    let own = loops.chain(insns).chain(arrays).chain(rules);
    items.extend(own.map(|(name, what)| item(name, VARIABLE, what)));
    items
}
