//! The steps of schedules in Python, with types: `python/kingpost/_steps.pyi` is generated of the primitives.

use crate::architecture::root;
use kingpost::transforms::steps;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = r#""""The steps of a schedule as methods, for type checkers and editors. Generated of the primitives by

    KINGPOST_WRITE_PAGES=1 cargo test --test repository stubs
"""

from typing import Any, Iterable, Mapping, Optional, Union

from kingpost.schedule import Made

#: A name, or the one thing that a step made.
Name = Union[str, Made]

class Steps:
"#;

/// Words of Python, which its arguments cannot have.
const PYTHON_WORDS: [&str; 6] = ["from", "in", "is", "lambda", "with", "as"];

/// The type of an argument.
fn type_of(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(kind)) => match kind.as_str() {
            "string" => "Name".into(),
            "integer" => "int".into(),
            "number" => "float".into(),
            "boolean" => "bool".into(),
            "array" => format!("Iterable[{}]", schema.get("items").map_or_else(|| "Any".into(), type_of)),
            "object" => "Mapping[str, Any]".into(),
            _ => "Any".into(),
        },
        // with `null`: it may be left out
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter(|kind| *kind != "null");
            match (kinds.next(), kinds.next()) {
                (Some(kind), None) => {
                    let mut alone = schema.clone();
                    alone["type"] = kind.clone();
                    type_of(&alone)
                }
                _ => "Any".into(),
            }
        }
        Some(_) | None => "Any".into(),
    }
}

/// The method of a step.
fn method(name: &str, summary: &str, arguments: &[&str], one_of: bool, schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|other| other == name));
    let mut text = format!("    def {name}(\n        self,\n");
    if one_of {
        text += "        *,\n";
    }
    let mut optional = one_of;
    for argument in arguments {
        let alternatives = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
        let place =
            [schema].into_iter().chain(alternatives).find_map(|of| of.get("properties")?.get(argument));
        let ty = place.map_or_else(|| "Any".into(), type_of);
        let own =
            if PYTHON_WORDS.contains(argument) { format!("{argument}_") } else { (*argument).to_owned() };
        optional |= !is_required(argument);
        let end = if optional { format!("Optional[{ty}] = None") } else { ty };
        writeln!(text, "        {own}: {end},").unwrap();
    }
    text + &format!("    ) -> Made:\n        \"\"\"{summary}\"\"\"\n        ...\n")
}

#[test]
fn stubs_of_steps_are_those_of_the_primitives() {
    let written_by_hand = std::fs::read_to_string(root().join("python/kingpost/schedule.py")).unwrap();
    let mut methods = BTreeMap::new();
    for row in steps().rows() {
        let schema = (row.schema)();
        let text = method(row.name, row.summary, row.arguments(), row.takes_one_of(), schema.as_value());
        methods.insert(row.name, text);
    }
    for (name, row, arguments) in steps().other_names() {
        let summary = format!("{} Another name of `{}`.", row.summary, row.name);
        let schema = (row.schema)();
        methods.insert(name, method(name, &summary, arguments, row.takes_one_of(), schema.as_value()));
    }
    methods.retain(|name, _| !written_by_hand.contains(&format!("    def {name}(")));
    let text = HEAD.to_owned() + &methods.into_values().collect::<Vec<_>>().join("\n");
    let path = root().join("python/kingpost/_steps.pyi");
    if std::env::var_os("KINGPOST_WRITE_PAGES").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is not that of the primitives; its head says how it is written",
        path.display()
    );
}
