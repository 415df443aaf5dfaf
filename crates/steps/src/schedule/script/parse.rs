//! The text of a schedule to statements: one step a statement, brackets may span lines.

use super::holes::{Arithmetic, Comparison, Hole, Operator, Requirement};
use super::value::{Kind, Span, Value, continues_word, starts_word};
use kingpost_ir::text::ParseError;
use winnow::Parser;
use winnow::combinator::{alt, cut_err, delimited, fail, opt, preceded, separated, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::stream::{LocatingSlice, Location, Stream};
use winnow::token::{one_of, take_till, take_while};

/// A line of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Hole(Hole),
    /// `threads = tile*tile`.
    Derived((String, Span), Arithmetic),
    Require(Requirement),
    /// `lowering rules(default)`, with the place of what stands after the keyword.
    Lowering((String, Span)),
    Step(Statement),
}

/// A step of the text: `let a, b = split_iname(i, 4)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    /// Handles, in the order of what the step makes; `_` skips one.
    pub(super) handles: Vec<(String, Span)>,
    pub(super) step: (String, Span),
    pub(super) arguments: Vec<Argument>,
    pub(super) span: Span,
}

/// An argument, by position or by name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) name: Option<(String, Span)>,
    pub(super) value: Value,
}

type Input<'s> = LocatingSlice<&'s str>;
type Parsed<T> = winnow::Result<T, ErrMode<ContextError>>;

/// Brackets deeper than this are an error, so that no text overflows the stack.
const DEPTH: usize = 32;

/// The lines of a text from a position on, and an error for each that is none.
pub(super) fn lines(text: &str, start: usize) -> (Vec<Line>, Vec<ParseError>) {
    let mut input = LocatingSlice::new(text);
    input.next_slice(start);
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    loop {
        let skipped: Parsed<()> = gap(&mut input);
        assert!(skipped.is_ok(), "zero characters are enough");
        if input.is_empty() {
            return (found, errors);
        }
        match line(&mut input) {
            Ok(line) => found.push(line),
            Err(error) => {
                let at = input.current_token_start();
                errors.push(describe(text, at, &error));
                let rest: Parsed<&str> = take_till(0.., '\n').parse_next(&mut input);
                assert!(rest.is_ok(), "zero characters are enough");
            }
        }
    }
}

/// What was found, and what was needed.
fn describe(text: &str, at: usize, error: &ErrMode<ContextError>) -> ParseError {
    let rest = &text[at..];
    let length = match rest.chars().next() {
        Some(c) if starts_word(c) => rest.find(|c| !continues_word(c)).unwrap_or(rest.len()),
        Some('\n') | None => 0,
        Some(c) => c.len_utf8(),
    };
    let found = match &rest[..length] {
        "" => "the end of the line".to_owned(),
        word => format!("`{word}`"),
    };
    let context = match error {
        ErrMode::Backtrack(e) | ErrMode::Cut(e) => e.context().collect(),
        ErrMode::Incomplete(_) => Vec::new(),
    };
    let needed: Vec<String> = context
        .into_iter()
        .filter_map(|c| if let StrContext::Expected(needed) = c { Some(needed.to_string()) } else { None })
        .collect();
    let needed =
        if needed.is_empty() { "a step such as `split_iname(i, 4)`".into() } else { needed.join(" or ") };
    let message = format!("found {found}, needed {needed}");
    ParseError { message, help: None, span: at..at + length, line: 1, column: 1 }
}

fn needed(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

/// Blanks, comments and line ends.
fn gap(input: &mut Input<'_>) -> Parsed<()> {
    loop {
        let blank: &str = take_while(0.., |c: char| c.is_ascii_whitespace()).parse_next(input)?;
        let comment: Option<&str> = opt(preceded('#', take_till(0.., '\n'))).parse_next(input)?;
        if blank.is_empty() && comment.is_none() {
            return Ok(());
        }
    }
}

/// Blanks within a line.
fn blank(input: &mut Input<'_>) -> Parsed<()> {
    take_while(0.., (' ', '\t', '\r')).void().parse_next(input)
}

fn word(input: &mut Input<'_>) -> Parsed<(String, Span)> {
    (one_of(starts_word), take_while(0.., continues_word))
        .take()
        .with_span()
        .map(|(text, span): (&str, Span)| (text.to_owned(), span))
        .parse_next(input)
}

fn line(input: &mut Input<'_>) -> Parsed<Line> {
    let before = input.checkpoint();
    let first: Option<(String, Span)> = opt(terminated(word, blank)).parse_next(input)?;
    let line = match first {
        Some((keyword, _)) if keyword == "require" => Line::Require(cut_err(requirement).parse_next(input)?),
        Some(name) if input.starts_with("in ") || input.starts_with("in[") => {
            let values = preceded(("in", blank), |input: &mut Input<'_>| list(input, DEPTH));
            let values = cut_err(values.context(needed("a list of values"))).parse_next(input)?;
            let Kind::List(values) = values else { return cut_err(fail).parse_next(input) };
            Line::Hole(Hole { name, values })
        }
        Some(name) if name.0 != "let" && input.starts_with('=') => {
            Line::Derived(name, cut_err(preceded(('=', blank), arithmetic)).parse_next(input)?)
        }
        Some((keyword, _)) if keyword == "lowering" && input.starts_with(starts_word) => {
            let text = take_till(1.., |c| c == '#' || c == '\n').with_span();
            let (text, span): (&str, Span) = cut_err(text).parse_next(input)?;
            Line::Lowering((text.trim_end().to_owned(), span))
        }
        Some(_) | None => {
            input.reset(&before);
            Line::Step(statement(input)?)
        }
    };
    let comment = (blank, opt(preceded('#', take_till(0.., '\n'))));
    let end = (comment, alt(("\n".void(), winnow::combinator::eof.void())));
    cut_err(end.context(needed("the end of the line"))).parse_next(input)?;
    Ok(line)
}

fn requirement(input: &mut Input<'_>) -> Parsed<Requirement> {
    let left = arithmetic(input)?;
    let comparison = alt((
        "<=".value(Comparison::Le),
        ">=".value(Comparison::Ge),
        "==".value(Comparison::Eq),
        "!=".value(Comparison::Ne),
        "<".value(Comparison::Lt),
        ">".value(Comparison::Gt),
    ));
    let comparison =
        cut_err(delimited(blank, comparison, blank).context(needed("a comparison"))).parse_next(input)?;
    Ok(Requirement { left, comparison, right: arithmetic(input)? })
}

/// Sums of products of integers and names.
fn arithmetic(input: &mut Input<'_>) -> Parsed<Arithmetic> {
    let op = alt(('+'.value(Operator::Add), '-'.value(Operator::Sub)));
    chain(input, product, op)
}

fn product(input: &mut Input<'_>) -> Parsed<Arithmetic> {
    let op = alt(('*'.value(Operator::Mul), '/'.value(Operator::FloorDiv), "mod ".value(Operator::Mod)));
    chain(input, atom, op)
}

fn chain<'s>(
    input: &mut Input<'s>,
    mut part: impl FnMut(&mut Input<'s>) -> Parsed<Arithmetic>,
    op: impl Parser<Input<'s>, Operator, ErrMode<ContextError>>,
) -> Parsed<Arithmetic> {
    let mut left = part(input)?;
    let mut op = delimited(blank, op, blank);
    while let Some(op) = opt(op.by_ref()).parse_next(input)? {
        left = Arithmetic::Binary(op, Box::new(left), Box::new(part(input)?));
    }
    Ok(left)
}

fn atom(input: &mut Input<'_>) -> Parsed<Arithmetic> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let name = (one_of(letter), take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_'))
        .take()
        .with_span()
        .map(|(name, span): (&str, Span)| Arithmetic::Name(name.to_owned(), span));
    let int = winnow::ascii::dec_int.map(Arithmetic::Int);
    cut_err(alt((int, name)).context(needed("an integer or the name of a hole"))).parse_next(input)
}

fn statement(input: &mut Input<'_>) -> Parsed<Statement> {
    let start = input.current_token_start();
    let handles = opt(preceded(("let", one_of((' ', '\t')), blank), cut_err(handles))).parse_next(input)?;
    let step = cut_err(word.context(needed("the name of a step"))).parse_next(input)?;
    blank(input)?;
    let open = cut_err('('.context(needed("`(` and the arguments of the step")));
    let close = cut_err((opt(comma), gap, ')').context(needed("`,` or `)`")));
    let arguments = delimited((open, gap), separated(0.., argument, comma), close).parse_next(input)?;
    let end = input.previous_token_end();
    let handles = handles.unwrap_or_default(); // default: a line without `let` names none
    Ok(Statement { handles, step, arguments, span: start..end })
}

fn handles(input: &mut Input<'_>) -> Parsed<Vec<(String, Span)>> {
    let name = delimited(blank, word, blank).context(needed("the name of a handle"));
    terminated(separated(1.., name, ','), ('='.context(needed("`=`")), blank)).parse_next(input)
}

fn comma(input: &mut Input<'_>) -> Parsed<()> {
    (gap, ',', gap).void().parse_next(input)
}

fn argument(input: &mut Input<'_>) -> Parsed<Argument> {
    let name = opt(terminated(word, (blank, ':', gap))).parse_next(input)?;
    let mut value = |input: &mut Input<'_>| value(input, DEPTH);
    let value = match name {
        Some(_) => cut_err(&mut value).parse_next(input)?,
        None => value.parse_next(input)?,
    };
    Ok(Argument { name, value })
}

fn value(input: &mut Input<'_>, depth: usize) -> Parsed<Value> {
    if depth == 0 {
        return cut_err(fail.context(needed("fewer brackets"))).parse_next(input);
    }
    let before = input.checkpoint();
    let kind = match input.chars().next() {
        Some('[') => list(input, depth)?,
        Some('{') => map(input, depth)?,
        Some('"') => Kind::Text(json_token(input, string)?),
        Some(c) if c.is_ascii_digit() || c == '-' => Kind::Number(json_token(input, number)?),
        Some(c) if starts_word(c) => match word(input)?.0.as_str() {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            other => Kind::Word(other.to_owned()),
        },
        _ => return fail.context(needed("a value")).parse_next(input),
    };
    let start = {
        let after = input.checkpoint();
        input.reset(&before);
        let start = input.current_token_start();
        input.reset(&after);
        start
    };
    Ok(Value { kind, span: start..input.previous_token_end() })
}

fn list(input: &mut Input<'_>, depth: usize) -> Parsed<Kind> {
    let item = |input: &mut Input<'_>| value(input, depth - 1);
    let close = cut_err((opt(comma), gap, ']').context(needed("`,` or `]`")));
    delimited(('[', gap), separated(0.., item, comma), close).map(Kind::List).parse_next(input)
}

fn map(input: &mut Input<'_>, depth: usize) -> Parsed<Kind> {
    let entry = |input: &mut Input<'_>| {
        let name = terminated(word, (blank, cut_err(':'.context(needed("`:`"))), gap)).parse_next(input)?.0;
        let value = cut_err(|input: &mut Input<'_>| value(input, depth - 1)).parse_next(input)?;
        Ok((name, value))
    };
    let close = cut_err((opt(comma), gap, '}').context(needed("`,` or `}`")));
    delimited(('{', gap), separated(0.., entry, comma), close).map(Kind::Map).parse_next(input)
}

/// A literal of JSON: its text is found by `token`, its value by serde.
fn json_token<T: serde::de::DeserializeOwned>(
    input: &mut Input<'_>,
    token: for<'a, 's> fn(&'a mut Input<'s>) -> Parsed<&'s str>,
) -> Parsed<T> {
    let text = token.verify_map(|text: &str| serde_json::from_str(text).ok());
    cut_err(text.context(needed("a number or a string as in JSON"))).parse_next(input)
}

fn string<'s>(input: &mut Input<'s>) -> Parsed<&'s str> {
    let rest: &'s str = &input.as_ref()[..];
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '\n' || (*c == '"' && !escaped);
        escaped = *c == '\\' && !escaped;
        ends
    });
    match end {
        Some((at, '"')) => Ok(input.next_slice(at + 1)),
        Some(_) | None => fail.parse_next(input),
    }
}

fn number<'s>(input: &mut Input<'s>) -> Parsed<&'s str> {
    take_while(1.., |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')).parse_next(input)
}
