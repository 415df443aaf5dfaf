//! Errors of the parser: what, where, and what to try.

use std::fmt;
use std::ops::Range;

/// One thing wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}{}", .help.as_ref().map(|h| format!("; {h}")).unwrap_or_default())]
pub struct ParseError {
    /// What was found and what was needed.
    pub message: String,
    /// What to try, if there is something to say.
    pub help: Option<String>,
    /// The place, in bytes of the text; empty where something is missing.
    pub span: Range<usize>,
    /// Line of the start of the span, from 1.
    pub line: usize,
    /// Column of the start of the span, from 1, in characters.
    pub column: usize,
}

/// Everything wrong with a text, in its order; at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseErrors(Vec<ParseError>);

/// An error on its way up; boxed so that results stay small.
pub(super) type Fail = Box<ParseError>;

/// More errors than this help nobody.
const MAX_ERRORS: usize = 50;

impl ParseErrors {
    /// Sorts the errors and finds their lines.
    pub fn new(mut errors: Vec<ParseError>, source: &str) -> Self {
        errors.sort_by_key(|e| (e.span.start, e.span.end));
        errors.dedup();
        errors.truncate(MAX_ERRORS);
        let (mut line, mut line_start, mut at) = (1, 0, 0);
        for error in &mut errors {
            let start = error.span.start.min(source.len());
            for (k, _) in source[at..start].match_indices('\n') {
                line += 1;
                line_start = at + k + 1;
            }
            at = start;
            error.line = line;
            error.column = source[line_start..start].chars().count() + 1;
        }
        Self(errors)
    }

    /// The errors in the order of the text.
    pub fn errors(&self) -> &[ParseError] {
        &self.0
    }

    /// The errors with the lines they are in and a mark under the place.
    pub fn render(&self, source: &str) -> String {
        let mut text = String::new();
        for error in &self.0 {
            let line = source.lines().nth(error.line - 1).unwrap_or_default();
            let start = error.column - 1;
            let covered = source.get(error.span.clone()).unwrap_or_default();
            let width = covered.lines().next().unwrap_or_default().chars().count().max(1);
            let width = width.min(line.chars().count().saturating_sub(start).max(1));
            let number = error.line.to_string();
            let margin = " ".repeat(number.len());
            let mark = format!("{}{}", " ".repeat(start), "^".repeat(width));
            text += &format!("error: {}\n{margin}--> {number}:{}\n", error.message, error.column);
            text += &format!("{number} | {line}\n{margin} | {mark}\n");
            if let Some(help) = &error.help {
                text += &format!("{margin} = help: {help}\n");
            }
        }
        text
    }
}

impl fmt::Display for ParseErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, error) in self.0.iter().enumerate() {
            if k > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseErrors {}

/// An error whose line is found later, by [`ParseErrors::new`].
pub(super) fn fail(span: impl Into<Range<usize>>, message: impl Into<String>) -> Fail {
    Box::new(ParseError { message: message.into(), help: None, span: span.into(), line: 1, column: 1 })
}

/// An error with advice.
pub(super) fn fail_help(
    span: impl Into<Range<usize>>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Fail {
    let mut error = fail(span, message);
    error.help = Some(help.into());
    error
}

/// The candidate nearest to a misspelt name, as a question, if one is near.
pub fn suggestion<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let limit = name.chars().count() / 3; // none for names of one or two letters: everything is near them
    candidates
        .into_iter()
        .map(|c| (edit_distance(name, c, limit), c))
        .filter(|(d, c)| *d <= limit && *c != name)
        .min()
        .map(|(_, c)| format!("did you mean `{c}`?"))
}

/// Insertions, deletions, replacements and swaps of neighbours between two words; `limit + 1` where
/// more.
pub fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = row[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()].min(limit + 1)
}
