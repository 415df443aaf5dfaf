//! No input makes the parser panic, overflow the stack or take long.

use kingpost_ir::text::parse;
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Parses, and checks what every error must hold.
fn survives(text: &str) {
    match parse(text) {
        Ok(kernel) => assert_eq!(parse(&kernel.to_string()), Ok(kernel)),
        Err(errors) => {
            assert!(!errors.errors().is_empty());
            for error in errors.errors() {
                assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}");
                assert!(text.get(error.span.clone()).is_some(), "inside a character: {error:?}");
                assert!(!error.message.is_empty());
            }
            let rendered = errors.render(text);
            assert!(rendered.starts_with("error: "));
        }
    }
}

const WORDS: [&str; 64] = [
    "kernel",
    "param",
    "arg",
    "temp",
    "table",
    "rule",
    "assume",
    "for",
    "in",
    "out",
    "inout",
    "if",
    "where",
    "and",
    "or",
    "not",
    "sum",
    "min",
    "max",
    "mod",
    "floor_div",
    "select",
    "f64",
    "i32",
    "i64",
    "global",
    "local",
    "private",
    "injective",
    "inf",
    "nan",
    "true",
    "false",
    "ceil",
    "sin",
    "strides",
    "vector",
    "storage",
    "n",
    "x",
    "i",
    "s",
    "k",
    "0",
    "1",
    "9223372036854775808",
    "1.5",
    "1e999",
    "..",
    "...",
    ":=",
    "+=",
    "=",
    "==",
    "<",
    "-",
    "*",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\n",
];

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_characters(text in any::<String>()) {
        survives(&format!("kernel k\n{text}"));
    }

    #[test]
    fn any_words(words in vec((select(&WORDS[..]), select(vec![" ", " ", ":", ",", "\n", "\n  "])), 0..60)) {
        let text: String = words.into_iter().flat_map(|(a, b)| [a, b]).collect();
        survives(&text);
        survives(&format!("kernel k\nparam n: i32\narg x: f64[n] inout\nfor i in 0..n\n  s: x[i] = {text}"));
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn valid_programs_read_back(sample in arbitrary_kernel(SampleConfig::default())) {
        let text = sample.kernel.to_string();
        let again = parse(&text);
        prop_assert_eq!(again.as_ref(), Ok(&sample.kernel), "{}", text);
        prop_assert_eq!(again.map(|k| k.content_hash()), Ok(sample.kernel.content_hash()));
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn valid_programs_with_changes(
        sample in arbitrary_kernel(SampleConfig::default()),
        edits in vec((any::<Index>(), 0..4_usize, select(&WORDS[..]), any::<char>(), 0..5_u8), 1..4),
    ) {
        let mut characters: Vec<char> = sample.kernel.to_string().chars().collect();
        for (at, length, word, character, kind) in edits {
            let at = at.index(characters.len().max(1)).min(characters.len());
            let end = (at + length).min(characters.len());
            let replacement: Vec<char> = match kind {
                0 => Vec::new(),
                1 => vec![character],
                2 => characters[at..end].iter().rev().copied().collect(),
                _ => word.chars().collect(),
            };
            characters.splice(at..end, replacement);
        }
        survives(&characters.into_iter().collect::<String>());
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let store = |e: String| format!("kernel k\ntemp t: f64\ns: t = {e}");
    for (open, close) in
        [("(", ")"), ("sin(", ")"), ("-", ""), ("-(", ")"), ("not ", ""), ("select(", ")"), ("t[", "]")]
    {
        let text = store(format!("{}1.0{}", open.repeat(100_000), close.repeat(100_000)));
        survives(&text);
        assert!(parse(&text).is_err());
    }
    survives(&store(vec!["1.0"; 100_000].join(" + ")));
    survives(&store(vec!["1.0"; 100_000].join(" + (")));
    let loops: String = (0..3000).map(|k| format!("{}for i{k} in 0..3\n", " ".repeat(k))).collect();
    survives(&format!("kernel k\n{loops}"));
    let sums: String = (0..3000).map(|k| format!("sum(q{k} in 0..2: ")).collect();
    survives(&store(sums));
}

/// Each remainder writes its operand twice: without a bound, 60 of them are 2^60 terms.
#[test]
fn nested_remainders_are_an_error() {
    let nested = (2..60).fold("i".to_owned(), |e, d| format!("({e} + {d}) mod {}", d + 1));
    survives(&format!("kernel k\nfor i where {nested} == 0"));
}

#[test]
fn unions_that_explode_are_an_error() {
    let factors = vec!["(i < 1 or i > 3)"; 40].join(" and ");
    survives(&format!("kernel k\nfor i where {factors}"));
}

#[test]
fn rules_that_explode_are_an_error() {
    let mut text = "kernel k\nrule r0(a) := a\n".to_owned();
    for k in 1..60 {
        text += &format!("rule r{k}(a) := r{}(a) + r{}(a)\n", k - 1, k - 1);
    }
    text += "temp t: f64\ns: t = r59(1.0)\n";
    survives(&text);
    assert!(parse(&text).is_err());
}
