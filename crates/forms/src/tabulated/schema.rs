//! The JSON schema of tabulated forms.

use super::product::Product;
use super::{Arithmetic, Node, TabulatedForm, Values};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The JSON schema of the format: names and types of all keys. What it does not say, such as that
/// indices exist, [`TabulatedForm::validate`] checks.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(TabulatedForm).to_value()
}

impl JsonSchema for Values {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let lists =
            json_schema!({ "type": "array", "description": "nested lists of numbers of equal lengths" });
        json_schema!({ "anyOf": [lists, generator.subschema_for::<Product>()] })
    }
}

impl JsonSchema for Node {
    fn schema_name() -> Cow<'static, str> {
        "Node".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let arithmetic = Arithmetic::ALL.iter().map(|op| op.word());
        let others = [
            "literal",
            "constant",
            "evaluation",
            "weight",
            "table",
            "negate",
            "math",
            "bessel",
            "compare",
            "and",
            "or",
            "not",
            "select",
        ];
        let words: Vec<&str> = others.into_iter().chain(arithmetic).collect();
        json_schema!({
            "type": "array",
            "description": "a word, and after it names and places of operands",
            "prefixItems": [{ "enum": words }],
            "items": { "type": ["string", "number"] },
            "minItems": 1,
            "maxItems": 4
        })
    }
}
