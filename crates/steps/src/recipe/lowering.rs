//! What a form is lowered with before a recipe begins.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a form is lowered with besides what it says itself: a name, and an argument if it has one,
/// as in `rules(xiao_gimbutas)`. The names are those of what lowers the form.
///
/// Steps are proved for the kernel that they meet, whatever it is. That they fit depends on its
/// arrays and tables, so that a recipe says which of the kernels of a form it is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lowering {
    name: String,
    argument: Option<String>,
}

/// Text that says nothing that a form could be lowered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, needed a name, or a name and an argument as in `rules(default)`")]
pub struct LoweringSyntaxError {
    /// The text, at most its first 80 characters.
    found: String,
}

impl Lowering {
    /// Of a name and an argument, which are words of letters, digits and `_`.
    #[must_use]
    pub fn new(name: &'static str, argument: Option<String>) -> Self {
        assert!(is_word(name) && argument.as_deref().is_none_or(is_word), "{name} {argument:?}");
        Self { name: name.into(), argument }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The argument.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for Lowering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            Some(argument) => write!(f, "{}({argument})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl FromStr for Lowering {
    type Err = LoweringSyntaxError;

    fn from_str(text: &str) -> Result<Self, LoweringSyntaxError> {
        let (name, argument) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        if is_word(name) && argument.is_none_or(is_word) {
            return Ok(Self { name: name.into(), argument: argument.map(str::to_owned) });
        }
        Err(LoweringSyntaxError { found: text.chars().take(80).collect() })
    }
}

impl TryFrom<String> for Lowering {
    type Error = LoweringSyntaxError;

    fn try_from(text: String) -> Result<Self, LoweringSyntaxError> {
        text.parse()
    }
}

impl From<Lowering> for String {
    fn from(lowering: Lowering) -> Self {
        lowering.to_string()
    }
}

/// After the refusal of a step: which kernel the recipe is for, if it is not that of a form as it
/// is lowered by default.
pub struct StartsFrom<'l>(pub &'l [Lowering]);

impl fmt::Display for StartsFrom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.0 else { return Ok(()) };
        write!(f, "; the recipe starts from a form that is lowered with `{first}`")?;
        rest.iter().try_for_each(|lowering| write!(f, ", `{lowering}`"))?;
        f.write_str(": give the form, and not the text of its kernel")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_back() {
        for text in ["symmetric_directions", "rules(xiao_gimbutas)"] {
            assert_eq!(text.parse::<Lowering>().unwrap().to_string(), text);
        }
        for text in ["", "a b", "rules()", "rules(a b)", "(a)", "rules(a", "rules(a)(b)", "a\nb"] {
            let found = text.parse::<Lowering>().unwrap_err();
            assert_eq!(found, LoweringSyntaxError { found: text.into() }, "{text}");
        }
        let long = "x ".repeat(100).parse::<Lowering>().unwrap_err().to_string();
        assert!(long.len() < 170, "{long}");
    }
}
