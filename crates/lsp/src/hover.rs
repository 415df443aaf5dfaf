//! What is under the cursor, and where it is declared.

use crate::describe::describe;
use crate::document::{Document, Section};
use crate::documentation::step;
use crate::position::word;
use std::ops::Range;

/// What is at a byte, in Markdown, and its place.
pub fn hover(document: &Document, at: usize) -> Option<(String, Range<usize>)> {
    let section = document.section(at)?;
    let under = word(&document.text, at);
    let name = under.clone().map(|place| &document.text[place]);
    if section.schedule.is_some_and(|start| at >= start) {
        let (place, name) = (under?, name?);
        return in_schedule(document, section, &place, name).map(|text| (text, place));
    }
    let kernel = section.kernel.as_ref()?;
    if let (Some(place), Some(name)) = (under, name)
        && let Some(text) = describe(kernel, name)
    {
        return Some((text, place));
    }
    // anywhere else in a statement: the shortest one, as the line of a loop declares one name
    let around = section.statements.iter().filter(|(_, place)| place.contains(&at));
    let (name, place) = around.min_by_key(|(_, place)| place.len())?;
    Some((describe(kernel, name)?, place.clone()))
}

fn in_schedule(document: &Document, section: &Section, place: &Range<usize>, name: &str) -> Option<String> {
    let steps = &document.steps;
    let after = document.text[place.end..].trim_start();
    if after.starts_with('(')
        && let Some(doc) = step(steps, name)
    {
        return Some(format!(
            "`{name}({})`\n\n{}",
            doc.arguments.iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
            doc.text
        ));
    }
    if after.starts_with(':')
        && let Some(call) = enclosing_call(&document.text[..place.start])
    {
        let argument =
            step(steps, call.step)?.arguments.into_iter().find(|argument| argument.name == name)?;
        let values = argument.values.iter().map(|(value, what)| format!("\n- `{value}`: {what}"));
        return Some(format!("{}\n{}", argument.text, values.collect::<String>()));
    }
    // a handle where a step makes it stands for something after the step, any other word before it
    let made = section.applied.iter().find(|step| step.handles.iter().any(|(_, handle, _)| handle == place));
    let thing = section.meaning(name, place.start);
    match made {
        Some(step) => describe(&step.kernel, thing),
        None => describe(section.before(place.start).0?, thing),
    }
}

/// A call of a step that is open at the end of a text.
pub struct Call<'t> {
    pub step: &'t str,
    /// The argument by name whose value stands there.
    pub argument: Option<&'t str>,
    /// The number of arguments before.
    pub position: usize,
    /// Whether a list or a map inside is open.
    pub is_nested: bool,
}

/// The call around the end of a schedule, if there is one.
pub fn enclosing_call(text: &str) -> Option<Call<'_>> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let (mut is_text, mut is_comment) = (false, false);
    let mut commas: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, c) in text.char_indices() {
        match c {
            '\n' => (is_text, is_comment) = (false, false),
            _ if is_comment => {}
            '"' => is_text = !is_text,
            _ if is_text => {}
            '#' => is_comment = true,
            '(' | '[' | '{' => {
                open.push((c, at));
                commas.push(Vec::new());
            }
            ')' | ']' | '}' if !open.is_empty() => {
                open.pop();
                commas.pop();
            }
            ',' => commas.last_mut().into_iter().for_each(|own| own.push(at)),
            _ => {}
        }
    }
    if is_comment || is_text {
        return None;
    }
    let at = open.iter().rposition(|(c, _)| *c == '(')?;
    let (_, start) = open[at];
    let step = word(text, text[..start].trim_end().len())?;
    let own = &commas[at + 1];
    let value = &text[own.last().map_or(start, |comma| *comma) + 1..];
    let argument = value.split_once(':').map(|(name, _)| name.trim());
    let argument = argument.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    Some(Call { step: &text[step], argument, position: own.len(), is_nested: open.len() > at + 1 })
}

/// The place where what is under the cursor gets its name.
pub fn definition(document: &Document, at: usize) -> Option<Range<usize>> {
    let section = document.section(at)?;
    let name = &document.text[word(&document.text, at)?];
    if section.schedule.is_some_and(|start| at >= start) {
        let handles =
            section.applied.iter().take_while(|step| step.span.start <= at).flat_map(|step| &step.handles);
        if let Some((_, place, _)) = handles.filter(|(handle, ..)| handle == name).last() {
            return Some(place.clone());
        }
    }
    section.statements.get(name).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_around_the_cursor() {
        let of = |text| enclosing_call(text).map(|c| (c.step, c.argument, c.position, c.is_nested));
        assert_eq!(of("split(i, 4)\ntag("), Some(("tag", None, 0, false)));
        assert_eq!(of("let a, b = split (i, "), Some(("split", None, 1, false)));
        assert_eq!(of("f(a, at: "), Some(("f", Some("at"), 1, false)));
        assert_eq!(of("f(a, items: [1, "), Some(("f", Some("items"), 1, true)));
        assert_eq!(of("f(a, [1, 2], {b: c}, \"x)\", "), Some(("f", None, 4, false)));
        assert_eq!(of("f(a) # g("), None);
        assert_eq!(of("f(a)"), None);
        assert_eq!(of("("), None);
        assert_eq!(of(")]}"), None);
    }
}
