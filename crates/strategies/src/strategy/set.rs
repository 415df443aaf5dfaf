//! Sets of strategies, to which every crate can add its own.

use super::mapping::Mapping;
use super::{Combinator, Question, Strategy};
use kingpost_ir::text::suggestion;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Strategies and combinators by their names: what mappings are read with, and whose candidates the
/// tuner tries.
///
/// A crate adds those of its own to [those of Kingpost](crate::strategies); from there on they
/// have a place in JSON, in databases and in the tuner. `examples/own_strategy` is such a crate.
///
/// ```
/// use kingpost_strategies::strategies;
///
/// let json = r#"{"strategy":"staged_cells","cells":32,"constant_tables":true}"#;
/// let mapping = strategies().mapping(json)?;
/// assert_eq!(mapping.to_string(), "staged cells, 32 a group, constant tables");
/// assert_eq!(serde_json::to_string(&mapping)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct StrategySet(Arc<Vec<StrategyInfo>>);

/// A row of the table of strategies.
#[derive(Clone, Copy)]
pub struct StrategyInfo {
    /// The value of `"strategy"` in JSON.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Whether another mapping follows it, as `"then"`.
    pub is_combinator: bool,
    read: fn(&StrategySet, Map<String, Value>) -> Result<Mapping, serde_json::Error>,
    candidates: fn(&Question<'_>) -> Vec<Mapping>,
}

impl StrategyInfo {
    fn of<S: Strategy>() -> Self {
        Self {
            name: S::NAME,
            summary: S::SUMMARY,
            is_combinator: false,
            read: |_, fields| serde_json::from_value::<S>(Value::Object(fields)).map(Mapping::from),
            candidates: |question| S::candidates(question).into_iter().map(Mapping::from).collect(),
        }
    }

    fn of_combinator<C: Combinator>() -> Self {
        Self {
            name: C::NAME,
            summary: C::SUMMARY,
            is_combinator: true,
            read: |set, mut fields| {
                let then = fields.remove("then").ok_or_else(|| Error::missing_field("then"))?;
                let then = set.deserialize(then)?;
                Ok(serde_json::from_value::<C>(Value::Object(fields))?.before(then))
            },
            candidates: C::candidates,
        }
    }

    /// What the tuner tries of it.
    #[must_use]
    pub fn candidates(&self, question: &Question<'_>) -> Vec<Mapping> {
        (self.candidates)(question)
    }
}

/// A name that a set has already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the set has a strategy `{0}` already; put the name of your crate in front, as in `acme.{0}`")]
pub struct TakenName(pub &'static str);

/// Strategies that are no more, each with what takes its place.
const GONE: [(&str, &str); 1] = [("matrix_basis", "matrix_groups")];

impl StrategySet {
    /// The set with one strategy more.
    ///
    /// # Errors
    /// A name that the set has.
    pub fn with<S: Strategy>(self) -> Result<Self, TakenName> {
        self.with_row(StrategyInfo::of::<S>())
    }

    /// The set with one combinator more.
    ///
    /// # Errors
    /// A name that the set has.
    pub fn with_combinator<C: Combinator>(self) -> Result<Self, TakenName> {
        self.with_row(StrategyInfo::of_combinator::<C>())
    }

    /// The set with the strategies of another one after its own.
    ///
    /// # Errors
    /// A name that both have.
    pub fn and(self, other: &Self) -> Result<Self, TakenName> {
        other.rows().copied().try_fold(self, Self::with_row)
    }

    /// A strategy of this crate, whose name a test compares with those of the others.
    pub(crate) fn and_own<S: Strategy>(mut self) -> Self {
        Arc::make_mut(&mut self.0).push(StrategyInfo::of::<S>());
        self
    }

    /// A combinator of this crate.
    pub(crate) fn and_own_combinator<C: Combinator>(mut self) -> Self {
        Arc::make_mut(&mut self.0).push(StrategyInfo::of_combinator::<C>());
        self
    }

    fn with_row(mut self, row: StrategyInfo) -> Result<Self, TakenName> {
        if self.row(row.name).is_some() {
            return Err(TakenName(row.name));
        }
        Arc::make_mut(&mut self.0).push(row);
        Ok(self)
    }

    /// Its strategies in the order in which they were added.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &StrategyInfo> {
        self.0.iter()
    }

    /// The strategy of this name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&StrategyInfo> {
        self.rows().find(|row| row.name == name)
    }

    /// Reads a mapping from JSON.
    ///
    /// # Errors
    /// Malformed JSON, a strategy that the set does not have, with the nearest name, arguments that the
    /// strategy does not take or that are missing.
    pub fn mapping(&self, json: &str) -> Result<Mapping, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let mapping = self.deserialize(&mut reader)?;
        reader.end()?;
        Ok(mapping)
    }

    /// What all of them try for a form, strategy by strategy in the order in which they were added.
    #[must_use]
    pub fn candidates(&self, question: &Question<'_>) -> Vec<Mapping> {
        self.rows().flat_map(|row| row.candidates(question)).collect()
    }

    /// Why there is no strategy of a name.
    fn unknown(&self, name: &str) -> String {
        if let Some((_, successor)) = GONE.iter().find(|(gone, _)| *gone == name) {
            return format!("the strategy `{name}` is no more; needed another one, such as `{successor}`");
        }
        let names = || self.rows().map(|row| row.name);
        let hint = suggestion(name, names())
            .unwrap_or_else(|| names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "));
        format!("there is no strategy `{name}`; {hint}")
    }
}

impl fmt::Debug for StrategySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.rows().map(|row| row.name)).finish()
    }
}

/// Reads one mapping.
impl<'de> DeserializeSeed<'de> for &StrategySet {
    type Value = Mapping;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Mapping, D::Error> {
        deserializer.deserialize_map(OneMapping(self))
    }
}

struct OneMapping<'s>(&'s StrategySet);

impl<'de> Visitor<'de> for OneMapping<'_> {
    type Value = Mapping;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping such as {\"strategy\":\"single_cell\",\"cells\":32}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mapping, A::Error> {
        let mut fields = Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("`{key}` is given twice")));
            }
            fields.insert(key, value);
        }
        let name = match fields.remove("strategy") {
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(A::Error::custom(format_args!("`strategy` is {other}, needed a name")));
            }
            None => return Err(A::Error::missing_field("strategy")),
        };
        let row = self.0.row(&name).ok_or_else(|| A::Error::custom(self.0.unknown(&name)))?;
        (row.read)(self.0, fields).map_err(|e| A::Error::custom(format_args!("`{name}`: {e}")))
    }
}
