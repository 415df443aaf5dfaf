//! Text to tokens.

use super::error::{Fail, fail, fail_help};
use crate::verify::{is_identifier, is_name};
use std::ops::Range;
use winnow::ascii::{digit1, hex_digit1};
use winnow::combinator::{alt, delimited, fail as no_token, not, opt, preceded, repeat, terminated};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Stream};
use winnow::token::{none_of, one_of, take_while};

/// A place in the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct Token<'s> {
    pub kind: Kind<'s>,
    pub span: Span,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'s> {
    /// A word; a keyword that is a name has its backquotes.
    Name(&'s str),
    Int(&'s str),
    Real(&'s str),
    /// Digits before `i`, of a complex number.
    Imaginary(&'s str),
    /// Digits after `0x`.
    Hex(&'s str),
    Text(String),
    Symbol(&'static str),
    Newline,
    /// Text that is no token; it has been reported.
    Bad,
}

/// Longest first, so that the first that matches is the right one.
const SYMBOLS: [&str; 32] = [
    "...", "..", "->", ":=", "+=", "-=", "*=", "/=", "^=", "==", "!=", "<=", ">=", "=", "<", ">", "+", "-",
    "*", "/", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "$", "?",
];

type Input<'s> = LocatingSlice<&'s str>;

/// The tokens of a text, and an error for every place that is none.
pub(super) fn tokens(source: &str) -> (Vec<Token<'_>>, Vec<Fail>) {
    let mut input = LocatingSlice::new(source);
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    loop {
        blank(&mut input);
        let rest: &str = &input;
        if rest.is_empty() {
            return (tokens, errors);
        }
        let start = source.len() - rest.len();
        let before = input.checkpoint();
        match token.parse_next(&mut input) {
            Ok(kind) => {
                let rest: &str = &input;
                tokens.push(Token { kind, span: Span { start, end: source.len() - rest.len() } });
            }
            Err(_) => {
                input.reset(&before); // a parser that fails may have read something
                let length = unknown(rest);
                errors.push(describe(&rest[..length], start));
                tokens.push(Token { kind: Kind::Bad, span: Span { start, end: start + length } });
                input.next_slice(length);
            }
        }
    }
}

/// Skips blanks and comments within a line.
fn blank(input: &mut Input<'_>) {
    let blanks = take_while::<_, _, ()>(0.., (' ', '\t', '\r')).void();
    let comment = ('#', take_while(0.., |c| c != '\n')).void();
    let skipped: Result<(), ()> = (blanks, opt(comment)).void().parse_next(input);
    assert!(skipped.is_ok(), "zero characters are enough");
}

fn token<'s>(input: &mut Input<'s>) -> winnow::Result<Kind<'s>, ()> {
    let first = input.chars().next();
    match first {
        Some(c) if c.is_ascii_alphabetic() || c == '_' => name.map(Kind::Name).parse_next(input),
        Some(c) if c.is_ascii_digit() => number.parse_next(input),
        Some('`') => backquoted.map(Kind::Name).parse_next(input),
        Some('"') => quoted.map(Kind::Text).parse_next(input),
        Some('\n') => '\n'.value(Kind::Newline).parse_next(input),
        _ => symbol.map(Kind::Symbol).parse_next(input),
    }
}

fn name<'s>(input: &mut Input<'s>) -> winnow::Result<&'s str, ()> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '_').parse_next(input)
}

/// A name in backquotes, which are left out where they are not needed.
fn backquoted<'s>(input: &mut Input<'s>) -> winnow::Result<&'s str, ()> {
    let name = delimited('`', name, '`').with_taken();
    let name = name.verify(|(name, _): &(&str, &str)| is_identifier(name));
    name.map(|(name, whole): (&'s str, &'s str)| if is_name(name) { name } else { whole }).parse_next(input)
}

fn symbol(input: &mut Input<'_>) -> winnow::Result<&'static str, ()> {
    let rest: &str = input;
    let Some(symbol) = SYMBOLS.into_iter().find(|s| rest.starts_with(s)) else {
        return no_token.parse_next(input);
    };
    input.next_slice(symbol.len());
    Ok(symbol)
}

/// Digits, then a fraction (not the dots of a range), then an exponent; nothing glued to them.
fn number<'s>(input: &mut Input<'s>) -> winnow::Result<Kind<'s>, ()> {
    let fraction = ('.', digit1);
    let exponent = (one_of(('e', 'E')), opt(one_of(('+', '-'))), digit1);
    let real = (digit1, opt(fraction), opt(exponent)).with_taken().map(|((_, f, e), text): (_, &'s str)| {
        if f.is_some() || e.is_some() { Kind::Real(text) } else { Kind::Int(text) }
    });
    let hex = preceded("0x", hex_digit1).map(Kind::Hex);
    let imaginary = (digit1, opt(('.', digit1)), opt((one_of(('e', 'E')), opt(one_of(('+', '-'))), digit1)));
    let imaginary = terminated(imaginary.take(), 'i').map(Kind::Imaginary);
    let glued = || one_of(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let number = terminated(alt((hex, real)), not(glued()));
    alt((number, terminated(imaginary, not(glued())))).parse_next(input)
}

fn quoted(input: &mut Input<'_>) -> winnow::Result<String, ()> {
    let code = preceded('u', delimited('{', hex_digit1, '}'))
        .verify_map(|digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
    let escape = preceded('\\', alt((one_of(('"', '\\')), code)));
    let plain = none_of(('"', '\\', '\n'));
    delimited('"', repeat(0.., alt((plain, escape))), '"').parse_next(input)
}

/// Bytes of the text that is no token: a word, a string up to the end of the line, `&&`, `||`, or one
/// character.
fn unknown(rest: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let length = match rest.chars().next() {
        Some('"') => rest.find('\n').unwrap_or(rest.len()),
        Some('`') => {
            let end = rest.find('\n').unwrap_or(rest.len());
            rest[1..end].find('`').map_or(end, |k| k + 2)
        }
        Some(c) if word(c) => {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            rest[..end].find("..").unwrap_or(end)
        }
        Some(c @ ('&' | '|')) => {
            if rest[1..].starts_with(c) {
                2
            } else {
                1
            }
        }
        Some(c) => c.len_utf8(),
        None => 0,
    };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    length.max(first)
}

fn describe(text: &str, start: usize) -> Fail {
    let span = Span { start, end: start + text.len() };
    if text.starts_with('"') {
        let help = "strings end with `\"` on the same line; inside, write `\\\"`, `\\\\` and `\\u{..}`";
        return fail_help(span, "this string does not end or holds an unknown escape", help);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let help = "write integers as `12` and reals as `1.5` or `1e-7`; names start with a letter";
        return fail_help(span, format!("`{text}` is not a number"), help);
    }
    if text.starts_with('`') {
        let help = "backquotes are for names that are keywords: `` `in` ``";
        return fail_help(span, "this is no name in backquotes", help);
    }
    let mut error = fail(span, format!("`{text}` has no meaning here"));
    error.help = other_operator(text).map(Into::into);
    error
}

/// How operators of other languages are written here.
fn other_operator(text: &str) -> Option<&'static str> {
    match text {
        "%" => Some("`x mod y` has the sign of `y`, `trunc_rem(x, y)` is C's"),
        "&&" => Some("write `and`"),
        "||" => Some("write `or`"),
        "!" => Some("write `not`"),
        "&" | "|" | "~" => {
            Some("operations on bits are `bit_and(x, y)`, `bit_or`, `bit_xor` and `bit_not(x)`")
        }
        "^" => Some("powers are `pow(x, 2.0)`, exclusive ors of bits `bit_xor(x, y)`"),
        _ => None,
    }
}
