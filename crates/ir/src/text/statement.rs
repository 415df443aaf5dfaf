//! What the statements of a text are, by their first words.

use super::lex::Kind;
use super::line::Line;
use super::names::may_name;

/// The kinds of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Kernel,
    Variable,
    Record,
    Rule,
    Callee,
    Assume,
    Values,
    Loop,
    Call,
    If,
    Else,
    Let,
    Insn,
}

impl Statement {
    /// Whether it may be indented.
    pub fn is_in_body(self) -> bool {
        match self {
            Self::Loop | Self::Call | Self::If | Self::Else | Self::Let | Self::Insn => true,
            Self::Kernel
            | Self::Variable
            | Self::Record
            | Self::Rule
            | Self::Callee
            | Self::Assume
            | Self::Values => false,
        }
    }
}

/// Words that start the declaration of a variable.
const VARIABLE_WORDS: [&str; 4] = ["param", "arg", "temp", "table"];

pub(super) fn statement(line: &Line<'_>) -> Statement {
    let kind = |k: usize| line.tokens.get(k).map(|t| &t.kind);
    match kind(0) {
        _ if kind(1) == Some(&Kind::Symbol(":")) => Statement::Insn,
        Some(Kind::Name("table")) if kind(2) == Some(&Kind::Symbol("=")) => Statement::Values,
        Some(Kind::Name(word)) if VARIABLE_WORDS.contains(word) => Statement::Variable,
        Some(Kind::Name("kernel")) => Statement::Kernel,
        Some(Kind::Name("record" | "operator" | "extern")) if kind(2) == Some(&Kind::Symbol("(")) => {
            Statement::Record
        }
        Some(Kind::Name("rule")) => Statement::Rule,
        Some(Kind::Name("callee")) => Statement::Callee,
        Some(Kind::Name("function")) if matches!(kind(1), Some(Kind::Name(_))) && kind(2).is_none() => {
            Statement::Callee
        }
        Some(Kind::Name("call")) => Statement::Call,
        Some(Kind::Name("assume")) => Statement::Assume,
        Some(Kind::Name("for")) => Statement::Loop,
        Some(Kind::Name("if")) => Statement::If,
        Some(Kind::Name("else")) => Statement::Else,
        // `let` may be the name of an array
        Some(Kind::Name("let")) if matches!(kind(1), Some(Kind::Name(name)) if may_name(name)) => {
            Statement::Let
        }
        // `launch` may be the name of an array; `launch min= 1` updates a scalar
        Some(Kind::Name("launch")) if matches!(kind(1), Some(Kind::Name(_))) => match kind(2) {
            Some(Kind::Symbol("=")) => Statement::Insn,
            Some(_) | None => Statement::Loop,
        },
        _ => Statement::Insn,
    }
}
