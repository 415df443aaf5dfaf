//! What the steps of a set and their arguments are, from the schemas of their types.

use kingpost_primitives::{PrimitiveInfo, StepSet};
use serde_json::Value;

/// A step as a schedule calls it.
pub struct StepDoc {
    /// All that its type says, in Markdown.
    pub text: String,
    pub arguments: Vec<ArgumentDoc>,
}

/// An argument of a step.
pub struct ArgumentDoc {
    pub name: &'static str,
    pub text: String,
    pub is_required: bool,
    /// Its values with what they do, where there are only some.
    pub values: Vec<(String, String)>,
}

/// The names of steps, verbs among them, with a sentence each.
pub fn names(steps: &StepSet) -> Vec<(&'static str, &'static str)> {
    let rows = steps
        .rows()
        .flat_map(|row| std::iter::once(row.name).chain(row.verb()).map(|name| (name, row.summary)));
    rows.chain(steps.combined_steps().map(|step| (step.name, step.summary))).collect()
}

/// The step of a name, a verb or a former name.
pub fn step(steps: &StepSet, name: &str) -> Option<StepDoc> {
    if let Some(row) = steps.called(name) {
        let other = steps.other_names().find(|(other, ..)| *other == name);
        return Some(of_primitive(row, other.map_or(row.arguments(), |(_, _, arguments)| arguments)));
    }
    let combined = steps.combined(name)?;
    let argument = |name: &&'static str| ArgumentDoc {
        name,
        text: String::new(),
        is_required: false,
        values: Vec::new(),
    };
    let text = format!("{}\n\nMade of other steps, which the recipe holds.", combined.summary);
    Some(StepDoc { text, arguments: combined.arguments().iter().map(argument).collect() })
}

fn of_primitive(row: &PrimitiveInfo, arguments: &'static [&'static str]) -> StepDoc {
    let schema = (row.schema)();
    let schema = schema.as_value();
    let required = schema.get("required").and_then(Value::as_array);
    let argument = |name: &&'static str| {
        let property = property(schema, name);
        ArgumentDoc {
            name,
            text: property.map(description).unwrap_or_default(), // default: one that a former step had
            is_required: required.is_some_and(|all| all.iter().any(|other| other == name)),
            values: property.map(|property| values(schema, property)).unwrap_or_default(), // default: as above
        }
    };
    let obligations = row.obligations.iter().map(|o| format!("- `{}`: {}\n", o.id(), o.says()));
    let proves = if row.obligations.is_empty() { "" } else { "\n\n# Proves\n" };
    let text = format!("{}{proves}{}", description(schema), obligations.collect::<String>());
    StepDoc { text, arguments: arguments.iter().map(argument).collect() }
}

/// An argument of a step, or one of the alternatives that it takes.
fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let of = |schema: &'s Value| schema.get("properties")?.get(name);
    let mut alternatives = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    of(schema).or_else(|| alternatives.find(|alternative| of(alternative).is_some()))
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned() // default: it is not documented
}

/// The constants among what an argument may be.
fn values(root: &Value, schema: &Value) -> Vec<(String, String)> {
    let target =
        schema.get("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.strip_prefix('#')?));
    let schema = target.unwrap_or(schema); // default: it stands where it is used
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let constant = |of: &Value| Some((of.get("const")?.as_str()?.to_owned(), description(of)));
    let plain = list("enum").filter_map(|value| Some((value.as_str()?.to_owned(), String::new())));
    let nested = list("anyOf").flat_map(|other| values(root, other));
    list("oneOf").filter_map(constant).chain(plain).chain(nested).collect()
}

#[cfg(test)]
#[allow(clippy::panic)] // how a test fails
mod tests {
    use super::*;
    use kingpost_primitives::steps;

    #[test]
    fn every_step_and_argument_is_documented() {
        for (name, summary) in names(steps()) {
            let doc = step(steps(), name).expect("it is a name");
            assert!(!summary.is_empty());
            assert!(doc.text.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {}", doc.text);
            let is_primitive = steps().called(name).is_some();
            for argument in &doc.arguments {
                assert!(!is_primitive || !argument.text.is_empty(), "{name}: {}", argument.name);
            }
        }
        let split = step(steps(), "split").expect("a verb");
        let [iname, factor, .., tail] = &split.arguments[..] else { panic!("five arguments") };
        assert!((iname.is_required, factor.is_required, tail.is_required) == (true, true, false));
        assert_eq!(
            tail.values.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>(),
            ["guard", "peel", "exact"]
        );
        assert!(step(steps(), "splitt").is_none());
    }
}
