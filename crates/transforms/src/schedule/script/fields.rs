//! The names of a step's arguments, in the order of its declaration.

use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields of a struct, as its `Deserialize` asks for them.
pub(crate) fn of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // It ends with an error by design: what is asked for is all that is wanted.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

struct Fields<'a>(&'a mut &'static [&'static str]);

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
        *self.0 = fields;
        Err(Error::custom("the names are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::primitives::{RemoveUnusedVars, SplitIname};

    #[test]
    fn arguments_have_the_order_of_their_declaration() {
        assert_eq!(super::of::<SplitIname>(), ["iname", "factor", "outer", "inner", "tail"]);
        assert_eq!(super::of::<RemoveUnusedVars>(), [] as [&str; 0]);
    }
}
