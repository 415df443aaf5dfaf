//! Names that a text does not give: `s0`, `s1` and so on of instructions, as they stand, and those of
//! scalars that statements need.
//!
//! A word that stands anywhere in the text is passed over, so that no name which the user wrote changes
//! its meaning, wherever it stands.

use super::lex::{Kind, Token};
use super::line::Line;
use foldhash::fast::FixedState;
use std::collections::HashSet;

/// Whether a line begins as `y[i] = ...` or `y += ...` do, and not with a name and a colon.
pub(super) fn is_unnamed(line: &[Token<'_>]) -> bool {
    let kind = |k: usize| line.get(k).map(|token| &token.kind);
    match (kind(0), kind(1), kind(2)) {
        // `==` and `:=` are no operators of an instruction, and get their own message
        (Some(Kind::Name(_)), Some(Kind::Symbol("[" | "=" | "+=" | "-=" | "*=" | "/=" | "==" | ":=")), _) => {
            true
        }
        (Some(Kind::Name(_)), Some(Kind::Name("min" | "max" | "or" | "and")), Some(Kind::Symbol("="))) => {
            true
        }
        _ => false,
    }
}

/// Whether a line begins as `(q, r) = ...` does, or with a name before.
pub(super) fn is_tuple(line: &[Token<'_>]) -> bool {
    let is = |k: usize, symbol| line.get(k).is_some_and(|token| token.kind == Kind::Symbol(symbol));
    is(0, "(") || is(1, ":") && is(2, "(")
}

/// Whether a line may need names besides: records that are taken apart, `if`, `let`, `while`, calls, rules
/// with reductions, and bounds and extents that read arrays or hold products.
fn needs_names(line: &[Token<'_>]) -> bool {
    let has = |wanted: Kind<'_>| line.iter().any(|token| token.kind == wanted);
    let first_is = |word: &str| line.first().is_some_and(|t| t.kind == Kind::Name(word));
    let reduces = first_is("rule") && has(Kind::Name("in"));
    is_tuple(line)
        || first_is("if")
        || first_is("let")
        || first_is("call")
        || reduces
        || has(Kind::Name("while"))
        || has(Kind::Symbol("?"))
        || (has(Kind::Symbol("..")) && has(Kind::Symbol("[")))
        || ((has(Kind::Symbol("..")) || first_is("arg") || first_is("temp"))
            && (has(Kind::Symbol("*")) || has(Kind::Symbol("("))))
}

/// Gives names that the text does not have.
#[derive(Default)]
pub(super) struct Unnamed<'s> {
    /// All words of the text, where it has such instructions.
    words: HashSet<&'s str, FixedState>,
    /// Names that were given.
    given: HashSet<String>,
    next: usize,
}

impl<'s> Unnamed<'s> {
    pub fn of(lines: &[Line<'s>]) -> Self {
        let mut words = HashSet::default();
        if lines.iter().any(|line| is_unnamed(&line.tokens) || needs_names(&line.tokens)) {
            let word = |token: &Token<'s>| if let Kind::Name(word) = token.kind { Some(word) } else { None };
            words.extend(lines.iter().flat_map(|line| &line.tokens).filter_map(word));
        }
        Self { words, ..Self::default() }
    }

    /// The stem, or else the first of `stem_1`, `stem_2`, … that is free.
    pub fn fresh(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut k = 0;
        while self.words.contains(name.as_str()) || !self.given.insert(name.clone()) {
            k += 1;
            name = format!("{stem}_{k}");
        }
        name
    }

    /// A name for an instruction like one of this name, which the text may not have given.
    pub fn another(&mut self, name: &str) -> String {
        let digits = name.strip_prefix('s').unwrap_or_default();
        let is_given = digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit());
        if is_given { self.fresh(name) } else { self.name() }
    }

    /// The next name of an instruction.
    pub fn name(&mut self) -> String {
        loop {
            let name = format!("s{}", self.next);
            self.next += 1;
            if !self.words.contains(name.as_str()) && self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}
