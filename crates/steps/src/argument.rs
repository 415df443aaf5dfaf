//! Arguments whose values have a name each: recipes write the name and read no other.

use kingpost_ir::{AddressSpace, AxisTag};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// A type of arguments that recipes write as text.
pub trait Named: Sized {
    /// What a value is.
    const WHAT: &'static str;

    /// Every value with its name, in the order of the documentation.
    fn all() -> Vec<(Self, String)>;
}

impl Named for AxisTag {
    const WHAT: &'static str = "tag";

    fn all() -> Vec<(Self, String)> {
        Self::ALL.into_iter().map(|tag| (tag, tag.to_string())).collect()
    }
}

impl Named for AddressSpace {
    const WHAT: &'static str = "address space";

    fn all() -> Vec<(Self, String)> {
        Self::ALL.into_iter().map(|space| (space, space.name().to_owned())).collect()
    }
}

/// A field of such a type, or one that may be absent.
pub trait Field: Sized {
    /// Writes its name.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    /// Reads a name.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl<T: Named + PartialEq> Field for T {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = T::all().into_iter().find_map(|(value, name)| (value == *self).then_some(name));
        name.ok_or_else(|| serde::ser::Error::custom(format_args!("a {} without a name", T::WHAT)))?
            .serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let all = T::all();
        let names: Vec<_> = all.iter().map(|(_, name)| format!("`{name}`")).collect();
        all.into_iter().find_map(|(value, name)| (name == text).then_some(value)).ok_or_else(|| {
            let known = names.join(", ");
            D::Error::custom(format_args!("unknown {} `{text}`, expected one of {known}", T::WHAT))
        })
    }
}

impl<T: Field> Field for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write(serializer),
            None => serializer.serialize_none(),
        }
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Some)
    }
}

/// Writes the name of a value.
///
/// # Errors
/// As the serializer.
pub fn write<T: Field, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write(serializer)
}

/// Reads a value by its name.
///
/// # Errors
/// Another text; the message lists the names.
pub fn read<'de, T: Field, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(deserializer)
}

/// The names of some values as a JSON schema.
fn names<T: Named>(suits: impl Fn(&T) -> bool) -> Schema {
    let names: Vec<_> =
        T::all().into_iter().filter(|(value, _)| suits(value)).map(|(_, name)| name).collect();
    json_schema!({ "type": "string", "enum": names })
}

/// Every tag.
pub fn tags(_: &mut SchemaGenerator) -> Schema {
    names(|_: &AxisTag| true)
}

/// The axes of work-items.
pub fn work_item_tags(_: &mut SchemaGenerator) -> Schema {
    names(|tag: &AxisTag| matches!(tag, AxisTag::Local(_)))
}

/// Every address space.
pub fn spaces(_: &mut SchemaGenerator) -> Schema {
    names(|_: &AddressSpace| true)
}

/// The address spaces of copies and buffers.
pub fn copy_spaces(_: &mut SchemaGenerator) -> Schema {
    names(|space: &AddressSpace| {
        matches!(space, AddressSpace::Global | AddressSpace::Local | AddressSpace::Private)
    })
}

/// One name or a list of names, which is written as text where it is one.
pub mod one_or_several {
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::de::value::SeqAccessDeserializer;
    use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
    use serde::ser::{Serialize, Serializer};
    use std::fmt;

    /// Writes the names.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(names: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        match names {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }

    /// Reads one name or several.
    ///
    /// # Errors
    /// Another value.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Vec<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Vec<String>, E> {
                Ok(vec![name.to_owned()])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Vec<String>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names))
            }
        }

        deserializer.deserialize_any(Names)
    }

    /// Text or a list of texts.
    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        let names = json_schema!({ "type": "array", "items": { "type": "string" } });
        json_schema!({ "anyOf": [{ "type": "string" }, names] })
    }
}
