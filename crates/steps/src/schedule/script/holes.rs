//! Holes of a schedule: values that are searched, values derived from them, and what they must
//! satisfy.

use super::value::{Kind, Span, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;

/// `tile in [8, 16, 32]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hole {
    pub(super) name: (String, Span),
    pub(super) values: Vec<Value>,
}

/// An integer expression of holes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arithmetic {
    Int(i64),
    Name(String, Span),
    Binary(Operator, Box<Arithmetic>, Box<Arithmetic>),
}

/// What joins two integers; quotients and remainders round down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
}

/// How two integers have to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Le,
    Lt,
    Ge,
    Gt,
    Eq,
    Ne,
}

/// `require tile*tile <= 1024`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    pub(super) left: Arithmetic,
    pub(super) comparison: Comparison,
    pub(super) right: Arithmetic,
}

/// Values for the holes of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice(pub(super) BTreeMap<String, Json>);

impl Choice {
    /// A value for each hole that is named.
    pub fn new(values: impl IntoIterator<Item = (String, Json)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// The values by the names of the holes.
    pub fn values(&self) -> &BTreeMap<String, Json> {
        &self.0
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> =
            self.0.iter().map(|(name, v)| format!("{name} = {}", super::value::show(v))).collect();
        f.write_str(&values.join(", "))
    }
}

impl Arithmetic {
    /// The value; `None` if a name has no integer value, by overflow, or for a quotient by zero.
    pub(super) fn value(&self, of: &BTreeMap<String, Json>) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Name(name, _) => of.get(name)?.as_i64(),
            Self::Binary(op, a, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                match op {
                    Operator::Add => a.checked_add(b),
                    Operator::Sub => a.checked_sub(b),
                    Operator::Mul => a.checked_mul(b),
                    Operator::FloorDiv => Some(a.checked_div_euclid(b)?).filter(|_| b > 0),
                    Operator::Mod => a.checked_rem_euclid(b).filter(|_| b > 0),
                }
            }
        }
    }

    /// The names in it, and their places.
    pub(super) fn names(&self) -> Vec<(&str, &Span)> {
        match self {
            Self::Int(_) => Vec::new(),
            Self::Name(name, span) => vec![(name, span)],
            Self::Binary(_, a, b) => [a.names(), b.names()].concat(),
        }
    }
}

impl Requirement {
    /// Whether it holds; what has no value does not.
    pub(super) fn holds(&self, of: &BTreeMap<String, Json>) -> bool {
        let (Some(a), Some(b)) = (self.left.value(of), self.right.value(of)) else { return false };
        match self.comparison {
            Comparison::Le => a <= b,
            Comparison::Lt => a < b,
            Comparison::Ge => a >= b,
            Comparison::Gt => a > b,
            Comparison::Eq => a == b,
            Comparison::Ne => a != b,
        }
    }
}

impl Hole {
    /// Its values as JSON.
    pub(super) fn json(&self) -> Vec<Json> {
        self.values.iter().map(|v| v.json(&BTreeMap::new())).collect()
    }

    /// The value that no other list element may repeat.
    pub(super) fn repeated(&self) -> Option<&Value> {
        let same = |a: &Kind, b: &Kind| a == b;
        let before = |k: usize| self.values[..k].iter().any(|v| same(&v.kind, &self.values[k].kind));
        (0..self.values.len()).find(|k| before(*k)).map(|k| &self.values[k])
    }
}

/// Every combination of values of lists, the last list fastest.
pub(super) struct Combinations {
    lists: Vec<(String, Vec<Json>)>,
    /// Positions of the next combination; `None` after the last one.
    next: Option<Vec<usize>>,
}

impl Combinations {
    pub(super) fn of(lists: Vec<(String, Vec<Json>)>) -> Self {
        let some = lists.iter().all(|(_, values)| !values.is_empty());
        let next = some.then(|| vec![0; lists.len()]);
        Self { lists, next }
    }
}

impl Iterator for Combinations {
    type Item = BTreeMap<String, Json>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next.take()?;
        let chosen = self.lists.iter().zip(&at).map(|((name, values), k)| (name.clone(), values[*k].clone()));
        let chosen = chosen.collect();
        let mut following = at;
        for k in (0..following.len()).rev() {
            following[k] += 1;
            if following[k] < self.lists[k].1.len() {
                self.next = Some(following);
                break;
            }
            following[k] = 0;
        }
        Some(chosen)
    }
}
