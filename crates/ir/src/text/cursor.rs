//! A position among the tokens of one statement.

use super::error::{Fail, fail, fail_help};
use super::foreign;
use super::lex::{Kind, Span, Token};

/// Reads the tokens of one statement from left to right.
pub(super) struct Cursor<'t, 's> {
    tokens: &'t [Token<'s>],
    at: usize,
    /// How many expressions, calls and accesses are open around the position.
    pub depth: usize,
}

impl<'t, 's> Cursor<'t, 's> {
    pub fn new(tokens: &'t [Token<'s>]) -> Self {
        Self { tokens, at: 0, depth: 0 }
    }

    pub fn peek(&self) -> Option<&'t Kind<'s>> {
        self.tokens.get(self.at).map(|t| &t.kind)
    }

    pub fn peek_second(&self) -> Option<&'t Kind<'s>> {
        self.tokens.get(self.at + 1).map(|t| &t.kind)
    }

    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// Place of the next token, or the empty place after the last.
    pub fn span(&self) -> Span {
        match self.tokens.get(self.at) {
            Some(token) => token.span,
            None => {
                let end = self.tokens.last().map_or(0, |t| t.span.end);
                Span { start: end, end }
            }
        }
    }

    /// Place of the token read last.
    pub fn last_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|k| self.tokens.get(k)).map_or_else(|| self.span(), |t| t.span)
    }

    pub fn whole_span(&self) -> Span {
        match (self.tokens.first(), self.tokens.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => self.span(),
        }
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Kind::Symbol(s)) if *s == symbol)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Kind::Name(s)) if *s == word)
    }

    /// Reads the symbol if it is next.
    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    /// Reads the word if it is next.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Reads a symbol that must be next; `role` says what it is for.
    pub fn expect_symbol(&mut self, symbol: &str, role: &str) -> Result<(), Fail> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        Err(self.expected(&format!("`{symbol}` {role}")))
    }

    /// Reads a word, keyword or not.
    pub fn expect_word(&mut self, role: &str) -> Result<(&'s str, Span), Fail> {
        match self.peek() {
            Some(Kind::Name(name)) => {
                let span = self.span();
                self.advance();
                Ok((name, span))
            }
            _ => Err(self.expected(role)),
        }
    }

    /// An error: something else is here than what is needed.
    pub fn expected(&self, needed: &str) -> Fail {
        let mut error = fail(self.span(), format!("expected {needed}, found {}", self.found()));
        error.help = self.advice().map(Into::into);
        error
    }

    /// What is said here where another language has what is next.
    fn advice(&self) -> Option<&'static str> {
        let before = self.at.checked_sub(1).and_then(|k| self.tokens.get(k)).map(|t| &t.kind);
        foreign::advice(before, self.peek(), self.peek_second())
    }

    /// Checks that nothing is left.
    pub fn expect_end(&self, after: &str) -> Result<(), Fail> {
        match self.peek() {
            None => Ok(()),
            Some(Kind::Name(_) | Kind::Int(_) | Kind::Real(_)) | Some(Kind::Symbol("(" | "[")) => {
                let message = format!("expected an operator or the end of {after}, found {}", self.found());
                let help = "products are written with `*`; one statement a line";
                Err(fail_help(self.span(), message, self.advice().unwrap_or(help)))
            }
            Some(_) => Err(self.expected(&format!("the end of {after}"))),
        }
    }

    /// The next token in words.
    pub fn found(&self) -> String {
        match self.peek() {
            None => "the end of the line".into(),
            Some(Kind::Newline) => "a line break".into(),
            Some(Kind::Bad) => "something unknown".into(),
            Some(Kind::Name(text) | Kind::Int(text) | Kind::Real(text)) => format!("`{text}`"),
            Some(Kind::Imaginary(digits)) => format!("`{digits}i`"),
            Some(Kind::Hex(digits)) => format!("`0x{digits}`"),
            Some(Kind::Text(text)) => format!("{text:?}"),
            Some(Kind::Symbol(symbol)) => format!("`{symbol}`"),
        }
    }
}

/// Reads a name or a string; says which it was.
pub(super) fn label(c: &mut Cursor<'_, '_>, role: &str) -> Result<(String, bool), Fail> {
    let (label, quoted) = match c.peek() {
        Some(Kind::Name(name)) => (name.trim_matches('`').to_owned(), false),
        Some(Kind::Text(text)) => (text.clone(), true),
        _ => return Err(c.expected(role)),
    };
    c.advance();
    Ok((label, quoted))
}
