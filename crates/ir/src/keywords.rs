//! Words of the text format, and names.

use crate::functions::MathFn;

macro_rules! keywords {
    ($($word:literal),*) => {
        /// Words of the text format that cannot be names.
        pub const KEYWORDS: &[&str] = &[$($word),*];

        fn is_keyword(text: &str) -> bool {
            matches!(text, $($word)|*)
        }
    };
}

keywords!(
    "kernel",
    "param",
    "arg",
    "temp",
    "table",
    "rule",
    "callee",
    "call",
    "assume",
    "for",
    "in",
    "out",
    "inout",
    "if",
    "else",
    "where",
    "and",
    "or",
    "not",
    "sum",
    "product",
    "minimum",
    "maximum",
    "min",
    "max",
    "mod",
    "floor_div",
    "select",
    "f32",
    "f64",
    "i32",
    "i64",
    "global",
    "constant",
    "local",
    "subgroup",
    "private",
    "injective",
    "ascending",
    "symmetric",
    "antisymmetric",
    "inf",
    "nan",
    "true",
    "false"
);

/// Whether text can name something: a letter or `_`, then letters, digits and `_`.
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Whether text can name something without backquotes: it is no keyword and no function.
pub fn is_name(text: &str) -> bool {
    is_identifier(text) && !is_keyword(text) && MathFn::from_name(text).is_none_or(MathFn::is_of_complex)
}
