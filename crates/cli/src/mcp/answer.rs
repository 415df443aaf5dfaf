//! What a call answers: a value as JSON, or why there is none.

use super::super::failure::Failure;
use kingpost::ir::text::{ParseError, ParseErrors};
use serde_json::{Value, json};

/// Why a call has no result, as data.
#[derive(Debug)]
pub struct Wrong {
    kind: &'static str,
    message: String,
    more: Value,
}

/// The result of a call.
pub type Answer = Result<Value, Wrong>;

impl Wrong {
    /// An error of a kind.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), more: Value::Null }
    }

    /// With more fields than kind and message.
    pub fn with(self, more: Value) -> Self {
        Self { more, ..self }
    }

    /// The error as data.
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "kind": self.kind, "message": self.message });
        if let (Value::Object(all), Value::Object(more)) = (&mut json, &self.more) {
            all.extend(more.clone());
        }
        json
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        let kind = match &failure {
            Failure::Refused(_) => "refused",
            Failure::Compiler(_) => "compiler",
            Failure::Usage(_) => "usage",
            Failure::Missing(_) => "missing",
            Failure::Interrupted(_) => "interrupted",
            Failure::Text { errors, .. } => return errors.into(),
        };
        Self::new(kind, failure.text())
    }
}

impl From<&ParseErrors> for Wrong {
    fn from(errors: &ParseErrors) -> Self {
        let one = |e: &ParseError| json!({ "line": e.line, "column": e.column, "message": e.message, "help": e.help });
        let all: Vec<Value> = errors.errors().iter().map(one).collect();
        Self::new("text", errors.to_string()).with(json!({ "mistakes": all }))
    }
}

/// A value as JSON.
pub fn to_json(value: &impl serde::Serialize) -> Answer {
    serde_json::to_value(value)
        .map_err(|e| Wrong::new("bug", format!("this is a bug of kingpost, please report it: {e}")))
}
