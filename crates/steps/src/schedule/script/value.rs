//! Values of arguments: what a schedule's text can hold, and its JSON.

use serde_json::{Map, Number, Value as Json};
use std::collections::BTreeMap;
use std::ops::Range;

/// A place in the text, in bytes.
pub(super) type Span = Range<usize>;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name: of something in the kernel, of a handle, or an option's.
    Word(String),
    /// Text in quotes, which never stands for a handle.
    Text(String),
    Number(Number),
    Bool(bool),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The JSON of the value, with words replaced by what they stand for.
    pub(super) fn json(&self, words: &BTreeMap<String, Json>) -> Json {
        match &self.kind {
            Kind::Word(word) => words.get(word).cloned().unwrap_or_else(|| Json::String(word.clone())),
            Kind::Text(text) => Json::String(text.clone()),
            Kind::Number(number) => Json::Number(number.clone()),
            Kind::Bool(value) => Json::Bool(*value),
            Kind::List(items) => items.iter().map(|v| v.json(words)).collect(),
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(name, value)| (name.clone(), value.json(words)));
                Json::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

/// Whether a name can be written without quotes.
pub fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(starts_word)
        && chars.all(continues_word)
        && !matches!(text, "true" | "false" | "let")
}

pub(super) fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '*')
}

pub(super) fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '.')
}

/// The text of a JSON value; nulls are left out of lists and maps by serde already.
pub(super) fn show(json: &Json) -> String {
    match json {
        Json::String(text) if is_word(text) => text.clone(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.to_string(),
        Json::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Json::Object(entries) => {
            let entries: Vec<_> = entries.iter().map(|(name, v)| format!("{name}: {}", show(v))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}
