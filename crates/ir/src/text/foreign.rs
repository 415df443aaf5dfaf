//! What other languages write, and how that is said here: the advice of errors.

use super::lex::Kind;

/// Advice where something is not what is needed: the token before it, itself, and the next one.
pub(super) fn advice(
    before: Option<&Kind<'_>>,
    found: Option<&Kind<'_>>,
    next: Option<&Kind<'_>>,
) -> Option<&'static str> {
    let symbol = |kind: Option<&Kind<'_>>, of: &str| matches!(kind, Some(Kind::Symbol(s)) if *s == of);
    match found {
        Some(Kind::Symbol("*")) if symbol(before, "*") => Some("powers are `pow(x, 2.0)`"),
        Some(Kind::Symbol("?") | Kind::Name("if" | "else")) => Some("write `select(condition, x, y)`"),
        Some(Kind::Symbol(";")) => Some("statements end with their lines"),
        Some(Kind::Symbol("[")) if symbol(before, "]") => {
            Some("all indices stand in one pair of brackets: `x[i, j]`")
        }
        Some(Kind::Symbol(s @ ("<" | ">"))) if symbol(before, s) => {
            Some("shifts are `shl(x, n)`, `shr(x, n)`")
        }
        Some(Kind::Symbol("=")) if symbol(before, "..") => Some("write `0..n + 1`"),
        Some(Kind::Symbol(".")) if matches!(next, Some(Kind::Int(_))) => {
            Some("reals start with a digit: `0.5`")
        }
        Some(Kind::Symbol(".." | ":")) if symbol(before, "[") || symbol(before, ",") => {
            Some("one element is computed at a time: write a loop around it")
        }
        Some(Kind::Name("step" | "by")) => Some("loops take all integers: `0..ceil(n/2)` with `2*k` inside"),
        Some(Kind::Symbol("(")) if matches!(before, Some(Kind::Name("for"))) => Some("write `for i in 0..n`"),
        _ => None,
    }
}

/// Advice on a word that begins no statement, or that nothing is named by.
pub(super) fn word(word: &str) -> Option<&'static str> {
    match word {
        "while" => Some("a loop that may end early is `for k in 0..n while condition`"),
        "double" | "float" | "int" | "long" => {
            Some("write `let x = ...` for a value, `f64(x)` to convert one")
        }
        _ => None,
    }
}
