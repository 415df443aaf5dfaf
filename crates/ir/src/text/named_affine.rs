//! Quasi-affine expressions apart from a kernel.

use super::cursor::Cursor;
use super::error::{Fail, ParseErrors, fail, fail_help};
use super::layout::declaring;
use super::lex::{Kind, Span, Token, tokens};
use super::line::lines;
use super::names::{Entity, may_name, plain};
use super::parse::Parser;
use crate::affine::{Affine, Atom};
use crate::ids::{Id, VarId};

/// Reads a quasi-affine expression, in which `value` says what the names stand for.
///
/// ```
/// use kingpost_ir::{Affine, text};
///
/// let value = |name: &str| (name == "t").then(|| Affine::constant(5));
/// assert_eq!(text::parse_affine("2*t + floor_div(t, 4)", &value)?, Affine::constant(11));
/// assert!(text::parse_affine("t*t + i", &value).is_err());
/// # Ok::<(), text::ParseErrors>(())
/// ```
///
/// # Errors
/// What is no such expression, and names without a value.
pub fn parse_affine(source: &str, value: &dyn Fn(&str) -> Option<Affine>) -> Result<Affine, ParseErrors> {
    let (tokens, mut errors) = tokens(source);
    let (lines, unbalanced) = lines(tokens, source);
    errors.extend(unbalanced);
    let all = |errors: Vec<Fail>| ParseErrors::new(errors.into_iter().map(|e| *e).collect(), source);
    if !errors.is_empty() {
        return Err(all(errors));
    }
    let read = || {
        let [line] = &lines[..] else {
            let whole = Span { start: 0, end: source.len() };
            return Err(fail_help(whole, "an expression is one line", "write it as in an index"));
        };
        let names = names(&line.tokens);
        let mut parser = Parser::of_parameters(declaring(names.iter().map(|(name, _)| plain(name))));
        let mut values = Vec::with_capacity(names.len());
        for (k, (name, span)) in names.iter().enumerate() {
            let known =
                value(plain(name)).ok_or_else(|| fail(*span, format!("`{name}` has no value here")))?;
            values.push(known);
            parser.names.declare(name, *span, Entity::Var(VarId::from_index(k)))?;
        }
        let mut c = Cursor::new(&line.tokens);
        let e = parser.affine(&mut c)?;
        c.expect_end("the expression")?;
        Ok(e.substitute(&|atom| match atom {
            Atom::Var(id) => values.get(id.index()).cloned(),
            Atom::Iname(_) | Atom::Floor(..) => None,
        }))
    };
    read().map_err(|e| all(vec![e]))
}

/// The words that may be names, each once.
fn names<'s>(tokens: &[Token<'s>]) -> Vec<(&'s str, Span)> {
    let mut found: Vec<(&str, Span)> = Vec::new();
    for token in tokens {
        if let Kind::Name(name) = token.kind
            && may_name(name)
            && found.iter().all(|(known, _)| *known != name)
        {
            found.push((name, token.span));
        }
    }
    found
}
