//! Tokens to lines: a line break inside brackets does not count.

use super::error::{Fail, fail_help};
use super::lex::{Kind, Span, Token};

/// A statement: its tokens without line breaks, and how far it is indented.
#[derive(Clone, Debug)]
pub(super) struct Line<'s> {
    pub tokens: Vec<Token<'s>>,
    pub indent: usize,
    /// Everything is a token and brackets match; if not, that has been reported.
    pub sound: bool,
}

impl Line<'_> {
    /// About how many brackets and signs are open at once.
    pub fn nesting(&self) -> usize {
        // signs in each bracket, and brackets and signs in all
        let (mut signs, mut open, mut deepest) = (vec![0], 1, 0);
        for token in &self.tokens {
            match token.kind {
                Kind::Symbol("-") | Kind::Name("not") => {
                    signs.last_mut().into_iter().for_each(|n| *n += 1);
                    open += 1;
                }
                Kind::Symbol("(" | "[") => {
                    signs.push(0);
                    open += 1;
                }
                Kind::Symbol(")" | "]") => open -= signs.pop().map_or(0, |n| n + 1).min(open),
                Kind::Name(_)
                | Kind::Int(_)
                | Kind::Real(_)
                | Kind::Imaginary(_)
                | Kind::Hex(_)
                | Kind::Text(_)
                | Kind::Symbol(_)
                | Kind::Newline
                | Kind::Bad => open -= signs.last_mut().map_or(0, std::mem::take).min(open),
            }
            deepest = deepest.max(open);
        }
        deepest
    }
}

/// Words that start a statement and stand nowhere else.
const STARTERS: [&str; 11] =
    ["kernel", "param", "arg", "temp", "table", "rule", "assume", "callee", "call", "for", "else"];

/// The statements of a text, with an error for every bracket without a partner.
pub(super) fn lines<'s>(tokens: Vec<Token<'s>>, source: &str) -> (Vec<Line<'s>>, Vec<Fail>) {
    let mut grouping = Grouping { source, lines: Vec::new(), errors: Vec::new(), open: Vec::new() };
    let mut current: Option<Line<'s>> = None;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if token.kind != Kind::Newline {
            let line = current.get_or_insert_with(|| grouping.start(&token));
            line.sound &= token.kind != Kind::Bad;
            grouping.bracket(&token, line);
            line.tokens.push(token);
            continue;
        }
        let Some(line) = current.take() else { continue };
        let next_starts = tokens.peek().is_none_or(|next| grouping.starts_statement(next, &line));
        if grouping.open.is_empty() || next_starts {
            grouping.finish(line);
        } else {
            current = Some(line);
        }
    }
    if let Some(line) = current {
        grouping.finish(line);
    }
    (grouping.lines, grouping.errors)
}

struct Grouping<'s, 't> {
    source: &'t str,
    lines: Vec<Line<'s>>,
    errors: Vec<Fail>,
    open: Vec<(&'static str, Span)>,
}

impl<'s> Grouping<'s, '_> {
    fn start(&mut self, first: &Token<'_>) -> Line<'s> {
        let line_start = self.source[..first.span.start].rfind('\n').map_or(0, |k| k + 1);
        let blanks = &self.source[line_start..first.span.start];
        if let Some(k) = blanks.find('\t') {
            let span = Span { start: line_start + k, end: line_start + k + 1 };
            self.errors.push(fail_help(span, "a tab in the indentation", "indent with spaces"));
        }
        Line { tokens: Vec::new(), indent: blanks.chars().count(), sound: true }
    }

    fn bracket(&mut self, token: &Token<'_>, line: &mut Line<'_>) {
        let Kind::Symbol(symbol) = token.kind else { return };
        let partner = match symbol {
            "(" | "[" | "{" => return self.open.push((symbol, token.span)),
            ")" => "(",
            "]" => "[",
            "}" => "{",
            _ => return,
        };
        match self.open.last() {
            Some((open, _)) if *open == partner => {
                self.open.pop();
            }
            Some((open, span)) => {
                let message = format!("`{symbol}` does not close `{open}`");
                let help = format!("write `{}` before it", closing(open));
                if line.sound {
                    self.errors.push(fail_help(span.to(token.span), message, help));
                }
                line.sound = false;
            }
            None => {
                if line.sound {
                    let help = format!("remove it, or write `{partner}` before");
                    self.errors.push(fail_help(token.span, format!("`{symbol}` closes nothing"), help));
                }
                line.sound = false;
            }
        }
    }

    /// Whether a token after a line break starts a statement although brackets are open.
    fn starts_statement(&self, next: &Token<'_>, line: &Line<'_>) -> bool {
        let Kind::Name(word) = next.kind else { return false };
        if STARTERS.contains(&word) {
            return true;
        }
        let line_start = self.source[..next.span.start].rfind('\n').map_or(0, |k| k + 1);
        let labelled = self.source[next.span.end..].trim_start_matches(' ').starts_with(':');
        labelled && next.span.start - line_start <= line.indent
    }

    fn finish(&mut self, mut line: Line<'s>) {
        if let Some((open, span)) = self.open.first() {
            if line.sound {
                let help = format!("write `{}` before the end of the statement", closing(open));
                self.errors.push(fail_help(*span, format!("`{open}` is never closed"), help));
            }
            line.sound = false;
        }
        self.open.clear();
        self.lines.push(line);
    }
}

fn closing(open: &str) -> &'static str {
    match open {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}
