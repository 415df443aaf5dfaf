//! Texts of kernels in the layout that the printer has: blanks, indentation and empty lines are set, and
//! nothing else changes. Comments stay, and so do line breaks inside brackets.
//!
//! This works on tokens instead of the tree, which has neither comments nor what the parser writes out.

mod blanks;
mod layout;
mod lines;
mod rows;

pub use lines::{FormattedLine, lay_out};

use super::error::{Fail, ParseErrors, fail_help};
use super::lex::{Kind, Token, tokens};
use super::line::lines as statements;
use layout::Layout;
use rows::rows;

/// Lays out a text of kernels as [`print`](super::print()) does.
///
/// Tokens, comments and blocks are those of the text, so that it parses to what it did. Formatting a text
/// twice changes nothing more.
///
/// ```
/// let text = "
/// kernel scale
/// param n:i32
/// arg x : f64[n] inout  # in place
/// for i in 0 .. n
///     x[i]*=2
/// ";
/// assert_eq!(kingpost_ir::text::format(text)?, "\
/// kernel scale
///
/// param n: i32
/// arg x: f64[n] inout  # in place
///
/// for i in 0..n
///   x[i] *= 2
/// ");
/// # Ok::<(), kingpost_ir::text::ParseErrors>(())
/// ```
///
/// # Errors
/// Text that is no token, tabs in indentation, brackets without partners. Other mistakes do not matter.
pub fn format(source: &str) -> Result<String, ParseErrors> {
    formatted_lines(source).map(|lines| lay_out(&lines))
}

/// The lines of [`format()`], for texts in which other things follow.
///
/// # Errors
/// As [`format()`].
pub fn formatted_lines(source: &str) -> Result<Vec<FormattedLine>, ParseErrors> {
    let (mut read, mut errors) = tokens(source);
    let (statements, unbalanced) = statements(read.clone(), source);
    errors.extend(unbalanced);
    if errors.is_empty() {
        read.retain(|token| token.kind != Kind::Newline);
        let mut layout = Layout::new(source, &statements);
        rows(source, &read).iter().for_each(|row| layout.add(row));
        let lines = layout.finish();
        match first_change(&read, &lay_out(&lines)) {
            None => return Ok(lines),
            Some(error) => errors.push(error),
        }
    }
    Err(ParseErrors::new(errors.into_iter().map(|error| *error).collect(), source))
}

/// The first token that the text no longer has, as blanks glued or cut it.
fn first_change(before: &[Token<'_>], text: &str) -> Option<Fail> {
    let (after, _) = tokens(text);
    let mut after = after.iter().map(|token| &token.kind).filter(|kind| **kind != Kind::Newline);
    let lost = before.iter().find(|token| after.next() != Some(&token.kind))?;
    Some(fail_help(lost.span, "no layout is known for this token", "report it, with the text"))
}
