//! Equal values of a page, written once: most of a kernel stays as it is from step to step.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Values shorter than this as text are written where they stand.
const LEAST: usize = 24;

/// Values that others refer to as `{"$": number}`; they refer to those before them only.
#[derive(Default)]
pub struct Pool {
    numbers: HashMap<String, usize>,
    values: Vec<Value>,
}

impl Pool {
    /// A value whose parts refer to the pool.
    pub fn put(&mut self, value: Value) -> Result<Value, serde_json::Error> {
        let whole = match value {
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.put(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, field)| Ok((name, self.put(field)?)));
                Value::Object(fields.collect::<Result<Map<_, _>, serde_json::Error>>()?)
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
        };
        let text = serde_json::to_string(&whole)?;
        if text.len() < LEAST {
            return Ok(whole);
        }
        let number = *self.numbers.entry(text).or_insert_with(|| {
            self.values.push(whole);
            self.values.len() - 1
        });
        Ok(serde_json::json!({ "$": number }))
    }

    /// The values in the order of their numbers.
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}
