//! The names of a step's arguments, in the order of its declaration.

use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The arguments of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Their names.
    pub names: &'static [&'static str],
    /// Whether they are alternatives, of which one is given by its name.
    pub alternatives: bool,
}

/// The names of the fields of a struct, or of the variants of an enum, as its `Deserialize` asks
/// for them.
pub fn of<'de, T: Deserialize<'de>>() -> Arguments {
    let mut arguments = Arguments::default();
    // It ends with an error by design: what is asked for is all that is wanted.
    let _ = T::deserialize(Fields(&mut arguments));
    arguments
}

struct Fields<'a>(&'a mut Arguments);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Arguments { names: fields, alternatives: false };
        Err(Error::custom("the names are known"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = Arguments { names: variants, alternatives: true };
        Err(Error::custom("the names are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}
