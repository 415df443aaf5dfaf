//! Arrays of numbers as nested lists.

use super::product::Product;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An array of numbers, row-major; nested lists in JSON, or the factors of a table that is a tensor
/// product, which are multiplied when they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    shape: Vec<usize>,
    entries: Vec<f64>,
}

impl Values {
    /// An array; none if the number of entries is not the product of the extents.
    #[must_use]
    pub fn new(shape: Vec<usize>, entries: Vec<f64>) -> Option<Self> {
        (shape.iter().product::<usize>() == entries.len()).then_some(Self { shape, entries })
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The entries, row-major.
    #[must_use]
    pub fn entries(&self) -> &[f64] {
        &self.entries
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part { shape: &self.shape, entries: &self.entries }.serialize(serializer)
    }
}

struct Part<'a> {
    shape: &'a [usize],
    entries: &'a [f64],
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [n, inner @ ..] = self.shape else {
            return serializer.serialize_f64(self.entries.first().copied().unwrap_or(0.0));
        };
        let size: usize = inner.iter().product();
        let mut list = serializer.serialize_seq(Some(*n))?;
        for k in 0..*n {
            list.serialize_element(&Part { shape: inner, entries: &self.entries[k * size..(k + 1) * size] })?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole)
    }
}

/// Lists, or the factors of a product.
struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a list of them or the factors of a product")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Values, E> {
        Ok(Values { shape: Vec::new(), entries: vec![value] })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Values, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Values, E> {
        self.visit_f64(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Values, A::Error> {
        let mut found = Found::default();
        Level { found: &mut found, depth: 0 }.visit_seq(seq)?;
        let shape = found.extents.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Values { shape, entries: found.entries })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Values, A::Error> {
        let product = Product::deserialize(MapAccessDeserializer::new(map))?;
        let (shape, entries) = product.table().map_err(A::Error::custom)?;
        Ok(Values { shape: shape.to_vec(), entries })
    }
}

/// What was read so far; tables have 100,000 entries and more, so that there is no tree of them.
#[derive(Default)]
struct Found {
    /// Lengths of the lists at each depth, the outermost first; none until the first of them ends.
    extents: Vec<Option<usize>>,
    /// Depth of the numbers, once there is one.
    numbers: Option<usize>,
    entries: Vec<f64>,
}

/// An entry in a number of lists.
struct Level<'f> {
    found: &'f mut Found,
    depth: usize,
}

impl Level<'_> {
    fn number<E: Error>(self, value: f64) -> Result<(), E> {
        let Self { found, depth } = self;
        if let Some(list) = found.extents.get(depth) {
            let n = list.unwrap_or_default();
            return Err(E::custom(format!(
                "found the number {value} next to a list of {n} entries, needed equal depths"
            )));
        }
        found.numbers = Some(depth);
        found.entries.push(value);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a list of them")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.number(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { found, depth } = self;
        let mut n = 0;
        if found.numbers.is_some_and(|numbers| numbers <= depth) {
            while seq.next_element::<IgnoredAny>()?.is_some() {
                n += 1;
            }
            return Err(A::Error::custom(format!(
                "found a list of {n} entries next to a number, needed equal depths"
            )));
        }
        if found.extents.len() == depth {
            found.extents.push(None);
        }
        while seq.next_element_seed(Level { found: &mut *found, depth: depth + 1 })?.is_some() {
            n += 1;
        }
        let first = *found.extents[depth].get_or_insert(n);
        if n != first {
            return Err(A::Error::custom(format!(
                "found a list of {n} entries next to one of {first}, needed equal lengths"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
        let values: Result<Values, _> = serde_json::from_str(text);
        values
            .map(|v| (v.shape, v.entries))
            .map_err(|e| e.to_string().split(" at line").next().unwrap().into())
    }

    #[test]
    fn lists_are_read_with_their_extents() {
        assert_eq!(read("3"), Ok((vec![], vec![3.0])));
        assert_eq!(read("[[1, 2.5, -3], [4, 5, 6]]"), Ok((vec![2, 3], vec![1.0, 2.5, -3.0, 4.0, 5.0, 6.0])));
        assert_eq!(read("[[[1]], [[2]]]"), Ok((vec![2, 1, 1], vec![1.0, 2.0])));
        assert_eq!(read("[[], []]"), Ok((vec![2, 0], vec![])));
        let product = r#"{"factors": [[[2, 3]], [[5], [7]]], "columns": [1, 0]}"#;
        assert_eq!(read(product), Ok((vec![2, 2], vec![15.0, 10.0, 21.0, 14.0])));
    }

    #[test]
    fn lists_that_are_no_array_are_refused() {
        let lengths = |n: usize, first: usize| {
            Err(format!("found a list of {n} entries next to one of {first}, needed equal lengths"))
        };
        assert_eq!(read("[[1, 2], [3]]"), lengths(1, 2));
        assert_eq!(read("[[], [1]]"), lengths(1, 0));
        assert_eq!(read("[[], [[1]]]"), lengths(1, 0));
        assert_eq!(read("[[[1], [2]], [[3]]]"), lengths(1, 2));
        let number = |value: i64, n: usize| {
            Err(format!("found the number {value} next to a list of {n} entries, needed equal depths"))
        };
        assert_eq!(read("[[1], 2]"), number(2, 1));
        assert_eq!(read("[[], 1]"), number(1, 0));
        assert_eq!(read("[[[1]], [2]]"), number(2, 1));
        let list =
            |n: usize| Err(format!("found a list of {n} entries next to a number, needed equal depths"));
        assert_eq!(read("[1, [2, 3]]"), list(2));
        assert_eq!(read("[[1], [[2]]]"), list(1));
        assert_eq!(
            read("[true]"),
            Err("invalid type: boolean `true`, expected a number or a list of them".into())
        );
        assert_eq!(
            read("true"),
            Err(
                "invalid type: boolean `true`, expected a number, a list of them or the factors of a product"
                    .into()
            )
        );
    }
}
