//! Words of the text format.

macro_rules! keywords {
    ($($word:literal),*) => {
        /// Words of the text format that cannot be names.
        pub const KEYWORDS: &[&str] = &[$($word),*];

        pub(crate) fn is_keyword(text: &str) -> bool {
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
