//! The extension for editors: its grammar has the words of the language.

use crate::architecture::root;
use kingpost::ir::verify::KEYWORDS;
use kingpost::ir::{AddressSpace, AxisTag, MathFn, ScalarType};
use std::collections::BTreeSet;

fn read(path: &str) -> serde_json::Value {
    let path = root().join("editors/vscode").join(path);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The words in the alternatives `\b(a|b)\b` of a grammar.
fn words(grammar: &serde_json::Value, found: &mut BTreeSet<String>) {
    match grammar {
        serde_json::Value::String(text) => {
            for alternatives in text.split("\\b(").skip(1) {
                let alternatives = alternatives.split(')').next().unwrap();
                found.extend(alternatives.split('|').map(str::to_owned));
            }
        }
        serde_json::Value::Array(parts) => parts.iter().for_each(|part| words(part, found)),
        serde_json::Value::Object(parts) => parts.values().for_each(|part| words(part, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[test]
fn the_grammar_has_every_word_of_the_language() {
    let mut found = BTreeSet::new();
    words(&read("syntaxes/kingpost.tmLanguage.json"), &mut found);
    let keywords = KEYWORDS.iter().map(ToString::to_string);
    let types = ScalarType::ALL.iter().map(ToString::to_string);
    let functions = MathFn::ALL.iter().map(|f| f.name().to_owned());
    let spaces = AddressSpace::ALL.iter().map(|space| space.name().to_owned());
    // axes such as `g.0` have a pattern of their own
    let tags = AxisTag::ALL.iter().map(ToString::to_string).filter(|tag| !tag.contains('.'));
    let words = keywords.chain(types).chain(functions).chain(spaces).chain(tags);
    let missing: Vec<_> = words.filter(|word| !found.contains(word)).collect();
    assert!(missing.is_empty(), "the grammar lacks {missing:?}");
    assert!(!found.contains("cell"), "it is no word of the language");
}

#[test]
fn the_extension_is_of_this_version() {
    let package = read("package.json");
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    let paths = [
        &package["contributes"]["grammars"][0]["path"],
        &package["contributes"]["languages"][0]["configuration"],
        &package["main"],
    ];
    for path in paths {
        assert!(root().join("editors/vscode").join(path.as_str().unwrap()).is_file(), "{path}");
    }
    read("language-configuration.json");
}
