//! The JSON of recipes: its version, old forms, and its lines.

use super::{Lowering, Recipe, RecipeSyntaxError};
use crate::step::Step;
use crate::step_set::StepSet;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};

/// The version of the format that is written of steps alone.
const VERSION: u32 = 1;

/// The version of the format that is written where a form is lowered with something: a Kingpost that
/// knows nothing of it refuses the file.
const VERSION_OF_LOWERING: u32 = 2;

/// The key of the version.
const VERSION_KEY: &str = "kingpost_recipe";

/// The key of what the form is lowered with.
const LOWERING_KEY: &str = "lowering";

/// The key of the list of steps.
const STEPS_KEY: &str = "steps";

impl Serialize for Recipe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut recipe = serializer.serialize_struct("Recipe", 3)?;
        if self.lowering.is_empty() {
            recipe.serialize_field(VERSION_KEY, &VERSION)?;
        } else {
            recipe.serialize_field(VERSION_KEY, &VERSION_OF_LOWERING)?;
            recipe.serialize_field(LOWERING_KEY, &self.lowering)?;
        }
        recipe.serialize_field(STEPS_KEY, &self.steps)?;
        recipe.end()
    }
}

impl Recipe {
    /// The recipe as JSON, for people and files: one step a line.
    ///
    /// # Errors
    /// Never in practice: plain data always serialises.
    pub fn to_json(&self) -> Result<String, RecipeSyntaxError> {
        let mut text = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut text, StepLines::default());
        self.serialize(&mut serializer)?;
        Ok(String::from_utf8_lossy(&text).into_owned()) // JSON is UTF-8
    }
}

impl StepSet {
    /// Reads a recipe from JSON.
    ///
    /// # Errors
    /// Malformed JSON, a step that the set does not have, an unknown version, with line and column.
    pub fn recipe(&self, text: &str) -> Result<Recipe, RecipeSyntaxError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let recipe = RecipeIn(self).deserialize(&mut reader)?;
        reader.end()?;
        Ok(recipe)
    }
}

/// Reads a recipe of steps of a set: an object, or a list of steps.
pub struct RecipeIn<'s>(pub &'s StepSet);

impl<'de> DeserializeSeed<'de> for RecipeIn<'_> {
    type Value = Recipe;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Recipe, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RecipeIn<'_> {
    type Value = Recipe;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a recipe or a list of steps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Recipe, A::Error> {
        Ok(Recipe { lowering: Vec::new(), steps: Steps(self.0).visit_seq(list)? })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Recipe, A::Error> {
        let (mut version, mut lowering, mut steps) = (None, None, None);
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Version if version.is_some() => return Err(A::Error::duplicate_field(VERSION_KEY)),
                Key::Version => version = Some(object.next_value::<Version>()?),
                Key::Lowering if lowering.is_some() => return Err(A::Error::duplicate_field(LOWERING_KEY)),
                Key::Lowering => lowering = Some(object.next_value::<Vec<Lowering>>()?),
                Key::Steps if steps.is_some() => return Err(A::Error::duplicate_field(STEPS_KEY)),
                Key::Steps => steps = Some(object.next_value_seed(Steps(self.0))?),
            }
        }
        let steps = steps.ok_or_else(|| A::Error::missing_field(STEPS_KEY))?;
        let lowering = lowering.unwrap_or_default(); // default: none is written as nothing
        Ok(Recipe { lowering, steps })
    }
}

/// Reads a list of steps.
struct Steps<'s>(&'s StepSet);

impl<'de> DeserializeSeed<'de> for Steps<'_> {
    type Value = Vec<Step>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Step>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Steps<'_> {
    type Value = Vec<Step>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of steps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Step>, A::Error> {
        let mut steps = Vec::new();
        while let Some(step) = list.next_element_seed(self.0)? {
            steps.push(step);
        }
        Ok(steps)
    }
}

/// A key of the object.
#[derive(Deserialize)]
#[serde(field_identifier)]
enum Key {
    // the alias is of versions before 0.3
    #[serde(rename = "kingpost_recipe", alias = "purlin_recipe")]
    Version,
    #[serde(rename = "lowering")]
    Lowering,
    #[serde(rename = "steps")]
    Steps,
}

/// A version that can be read, which is one that is written.
struct Version;

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            version if [VERSION, VERSION_OF_LOWERING].map(u64::from).contains(&version) => Ok(Self),
            version => Err(D::Error::custom(format_args!(
                "found version {version} of the format, needed version {VERSION} or {VERSION_OF_LOWERING}, or a later Kingpost"
            ))),
        }
    }
}

/// JSON with a line for each element of the outermost array, so that recipes can be read and
/// compared by lines.
#[derive(Default)]
pub(super) struct StepLines {
    /// Brackets that are open: the array of steps is the second one.
    depth: usize,
    /// Whether the innermost bracket holds nothing yet.
    empty: bool,
}

impl StepLines {
    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &str) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        writer.write_all(bracket.as_bytes())
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &str) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < 2 && !self.empty {
            write!(writer, "\n{:1$}", "", 2 * self.depth)?;
        }
        self.empty = false;
        writer.write_all(bracket.as_bytes())
    }

    fn next<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.empty = false;
        let comma = if first { "" } else { "," };
        match (self.depth, first) {
            (..=2, _) => write!(writer, "{comma}\n{:1$}", "", 2 * self.depth),
            (_, true) => Ok(()),
            (_, false) => writer.write_all(b", "),
        }
    }
}

impl serde_json::ser::Formatter for StepLines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, "[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, "]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, "{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, "}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
