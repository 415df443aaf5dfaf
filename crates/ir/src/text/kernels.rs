//! Texts of several kernels.

use super::error::ParseErrors;
use super::lex::{Kind, tokens};
use super::line::lines;
use super::names::plain;
use super::parse::parse;
use super::statement::{Statement, statement};
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
/// let kernels = kingpost_ir::text::parse_all(text)?;
/// assert_eq!(kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["scale", "shift"]);
/// # Ok::<(), kingpost_ir::text::ParseErrors>(())
/// ```
///
/// # Errors
/// As [`parse`](super::parse()), for all kernels.
pub fn parse_all(source: &str) -> Result<Vec<Kernel>, ParseErrors> {
    let (mut kernels, mut errors) = (Vec::new(), Vec::new());
    for (_, text) in sections(source) {
        match parse(&text) {
            Ok(kernel) => kernels.push(kernel),
            Err(wrong) => errors.extend(wrong.errors().iter().cloned()),
        }
    }
    if errors.is_empty() { Ok(kernels) } else { Err(ParseErrors::new(errors, source)) }
}

/// The kernels of a text by name, each with the text up to the next one, at the places where it stands
/// in the whole: all else is blank.
pub fn sections(source: &str) -> Vec<(&str, String)> {
    let (lines, _) = lines(tokens(source).0, source);
    let heads = lines.iter().filter(|line| line.indent == 0 && statement(line) == Statement::Kernel);
    let starts: Vec<(&str, usize)> = heads
        .map(|line| match line.tokens.get(1).map(|token| &token.kind) {
            Some(Kind::Name(name)) => (plain(name), line.tokens[0].span.start),
            Some(_) | None => ("", line.tokens[0].span.start),
        })
        .collect();
    let text = |k: usize| {
        let start = if k == 0 { 0 } else { starts[k].1 };
        let end = starts.get(k + 1).map_or(source.len(), |(_, next)| *next);
        blank(&source[..start]) + &source[start..end]
    };
    starts.iter().enumerate().map(|(k, (name, _))| (*name, text(k))).collect()
}

/// As many bytes and lines without anything.
fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}
