//! Whether a blank stands between two tokens.

use crate::text::lex::{Kind, Token};

/// Words after which an operand follows.
const OPERATORS: [&str; 9] = ["and", "or", "not", "mod", "in", "if", "else", "where", "while"];

/// Whether a blank stands before a token that follows some of its statement.
pub(super) fn stand_apart(before: &[Token<'_>], next: &Token<'_>) -> bool {
    let Some(last) = before.last() else { return false };
    match (&last.kind, &next.kind) {
        (Kind::Symbol("(" | "[" | "{" | "." | ".." | "*" | "/"), _)
        | (_, Kind::Symbol(")" | "]" | "}" | "," | ";" | ":" | "." | ".." | "*" | "/")) => false,
        (Kind::Symbol("-" | "+"), _) => follows_operand(&before[..before.len() - 1]),
        (_, Kind::Symbol("(")) => !is_called(before),
        (Kind::Name(word), Kind::Symbol("[")) => is_operator(word),
        (Kind::Symbol(")" | "]"), Kind::Symbol("[")) => false,
        (Kind::Name(_), Kind::Symbol("=")) => !is_update(before),
        _ => true,
    }
}

fn is_operator(word: &str) -> bool {
    OPERATORS.contains(&word)
}

/// Whether a sign after these tokens has two operands.
fn follows_operand(before: &[Token<'_>]) -> bool {
    match before.last().map(|token| &token.kind) {
        // in `operator f(...) := ... identity -inf`
        Some(Kind::Name("identity")) if begins_with(before, "operator") => false,
        Some(Kind::Name(word)) => !is_operator(word),
        Some(Kind::Int(_) | Kind::Real(_) | Kind::Imaginary(_) | Kind::Hex(_) | Kind::Text(_)) => true,
        Some(Kind::Symbol(symbol)) => matches!(*symbol, ")" | "]" | "?"),
        Some(Kind::Newline | Kind::Bad) | None => false,
    }
}

/// Whether brackets after these tokens hold arguments: not those of `code c (...)`, of `(q, r) = ...` or of
/// operands.
fn is_called(before: &[Token<'_>]) -> bool {
    let word = |k: usize| before.len().checked_sub(k).and_then(|k| before.get(k)).map(|token| &token.kind);
    match word(1) {
        Some(Kind::Name("code")) => !begins_with(before, "code") && !begins_with(before, "extern"),
        Some(Kind::Name(_)) if word(2) == Some(&Kind::Name("code")) => false,
        Some(Kind::Name("identity")) if begins_with(before, "operator") => false,
        Some(Kind::Name(word)) => !is_operator(word),
        Some(_) | None => false,
    }
}

/// Whether the last token is an operator such as `min` or `argmin` of an update `y[i] min= ...`.
fn is_update(before: &[Token<'_>]) -> bool {
    match before {
        [.., Token { kind: Kind::Name("min" | "max" | "or" | "and"), .. }] => true,
        [.., Token { kind: Kind::Symbol("]"), .. }, _] => true,
        // a scalar, but not `let x = ...` and `table t = [...]`
        [Token { kind: Kind::Name(word), .. }, _] => !matches!(*word, "let" | "table"),
        [
            Token { kind: Kind::Name(_), .. },
            Token { kind: Kind::Symbol(":"), .. },
            Token { kind: Kind::Name(_), .. },
            _,
        ] => true,
        _ => false,
    }
}

fn begins_with(statement: &[Token<'_>], word: &str) -> bool {
    statement.first().is_some_and(|token| token.kind == Kind::Name(word))
}
