//! Texts of several kernels.

use super::cursor::Cursor;
use super::error::{ParseErrors, fail_help};
use super::lex::tokens;
use super::line::lines;
use super::parse::{Parser, Statement, statement};
use crate::kernel::Kernel;

/// Reads all kernels of a text, each of which starts with its line `kernel name`.
///
/// ```
/// let text = "
/// kernel scale
/// param n: i32
/// arg x: f64[n] inout
/// for i in 0..n
///   x[i] *= 2
///
/// kernel shift
/// param n: i32
/// arg x: f64[n] inout
/// for i in 0..n
///   x[i] += 2
/// ";
/// let kernels = purlin_ir::text::parse_all(text)?;
/// assert_eq!(kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["scale", "shift"]);
/// # Ok::<(), purlin_ir::text::ParseErrors>(())
/// ```
///
/// # Errors
/// Those of [`parse`](super::parse()), of all kernels, and two kernels of one name.
pub fn parse_all(source: &str) -> Result<Vec<Kernel>, ParseErrors> {
    let (tokens, mut unread) = tokens(source);
    let (lines, unbalanced) = lines(tokens, source);
    unread.extend(unbalanced);
    let (mut kernels, mut errors) = (Vec::<Kernel>::new(), Vec::new());
    let mut groups = lines.chunk_by(|_, next| statement(next) != Statement::Kernel).peekable();
    while let Some(group) = groups.next() {
        let next = groups.peek().and_then(|next| next.first());
        let end = next.map_or(source.len(), |line| Cursor::new(&line.tokens).span().start);
        let (own, rest) = unread.into_iter().partition(|error| error.span.start < end);
        unread = rest;
        let mut parser = Parser::new(own);
        parser.header = group.first().map_or(parser.header, |line| Cursor::new(&line.tokens).whole_span());
        let header = parser.header;
        match parser.read(group) {
            Ok(kernel) if kernels.iter().any(|other| other.name == kernel.name) => {
                let message = format!("a second kernel of the name `{}`", kernel.name);
                errors.push(*fail_help(header, message, "rename one"));
            }
            Ok(kernel) => kernels.push(kernel),
            Err(wrong) => errors.extend(wrong),
        }
    }
    errors.extend(unread.into_iter().map(|error| *error));
    if errors.is_empty() { Ok(kernels) } else { Err(ParseErrors::new(errors, source)) }
}
