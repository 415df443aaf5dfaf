//! Names of instructions that a text gives none: `s0`, `s1` and so on, as they stand.
//!
//! A word that stands anywhere in the text is passed over, so that no name which the user wrote changes
//! its meaning, wherever it stands.

use super::lex::{Kind, Token};
use super::line::Line;
use std::collections::HashSet;

/// Whether a line begins as `y[i] = ...` or `y += ...` do, and not with a name and a colon.
pub(super) fn is_unnamed(line: &[Token<'_>]) -> bool {
    let kind = |k: usize| line.get(k).map(|token| &token.kind);
    match (kind(0), kind(1), kind(2)) {
        // `==`, `:=` and `-=` are no operators of an instruction, and get their own message
        (Some(Kind::Name(_)), Some(Kind::Symbol("[" | "=" | "+=" | "*=" | "==" | ":=" | "-")), _) => true,
        (Some(Kind::Name(_)), Some(Kind::Name("min" | "max")), Some(Kind::Symbol("="))) => true,
        _ => false,
    }
}

/// Gives such instructions their names.
#[derive(Default)]
pub(super) struct Unnamed<'s> {
    /// All words of the text, where it has such instructions.
    words: HashSet<&'s str>,
    next: usize,
}

impl<'s> Unnamed<'s> {
    pub fn of(lines: &[Line<'s>]) -> Self {
        let mut words = HashSet::new();
        if lines.iter().any(|line| is_unnamed(&line.tokens)) {
            let word = |token: &Token<'s>| if let Kind::Name(word) = token.kind { Some(word) } else { None };
            words.extend(lines.iter().flat_map(|line| &line.tokens).filter_map(word));
        }
        Self { words, next: 0 }
    }

    /// The next name.
    pub fn name(&mut self) -> String {
        loop {
            let name = format!("s{}", self.next);
            self.next += 1;
            if !self.words.contains(name.as_str()) {
                return name;
            }
        }
    }
}
