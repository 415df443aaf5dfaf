//! Arrays of numbers as nested lists.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An array of numbers, row-major; nested lists in JSON.
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
        let mut shape = Vec::new();
        let mut entries = Vec::new();
        let nested = Nested::deserialize(deserializer)?;
        nested.extents(&mut shape);
        nested.flatten(&shape, &mut entries).map_err(D::Error::custom)?;
        Ok(Self { shape, entries })
    }
}

enum Nested {
    Number(f64),
    List(Vec<Nested>),
}

impl Nested {
    /// Extents along the first entries.
    fn extents(&self, shape: &mut Vec<usize>) {
        if let Self::List(list) = self {
            shape.push(list.len());
            if let Some(first) = list.first() {
                first.extents(shape);
            }
        }
    }

    fn flatten(&self, shape: &[usize], entries: &mut Vec<f64>) -> Result<(), String> {
        match (self, shape) {
            (Self::Number(value), []) => {
                entries.push(*value);
                Ok(())
            }
            (Self::List(list), [n, inner @ ..]) if list.len() == *n => {
                list.iter().try_for_each(|part| part.flatten(inner, entries))
            }
            (Self::List(list), [n, ..]) => {
                Err(format!("found a list of {} entries beside one of {n}, needed equal lengths", list.len()))
            }
            (Self::Number(value), [n, ..]) => {
                Err(format!("found the number {value} beside a list of {n} entries, needed equal depths"))
            }
            (Self::List(list), []) => {
                Err(format!("found a list of {} entries beside a number, needed equal depths", list.len()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NestedVisitor)
    }
}

struct NestedVisitor;

impl<'de> Visitor<'de> for NestedVisitor {
    type Value = Nested;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a list of them")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Nested, E> {
        Ok(Nested::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Nested, E> {
        Ok(Nested::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Nested, E> {
        Ok(Nested::Number(value as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Nested, A::Error> {
        let mut list = Vec::new();
        while let Some(part) = seq.next_element()? {
            list.push(part);
        }
        Ok(Nested::List(list))
    }
}
