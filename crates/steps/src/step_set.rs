//! Sets of primitives, to which every crate can add its own.

use crate::combined::CombinedInfo;
use crate::draw::{Inputs, Picks};
use crate::former::{Former, Read};
use crate::keeps::{Instances, Keeps};
use crate::obligation::Obligation;
use crate::primitive::Primitive;
use crate::schedule::{Arguments, fields_of, is_word};
use crate::step::Step;
use kingpost_ir::Kernel;
use kingpost_ir::text::suggestion;
use schemars::{Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Primitives by their names: what recipes and schedules are read with, and what random recipes
/// draw from.
///
/// A crate adds a primitive of its own to those of Kingpost; from there on it has a place in JSON,
/// text, schemas and random recipes. `examples/own_primitive` is such a crate.
///
/// ```
/// use kingpost_primitives::steps;
///
/// let recipe = steps().recipe(r#"{"kingpost_recipe": 1, "steps": [{"split_iname": {"iname": "i", "factor": 4}}]}"#)?;
/// assert_eq!(recipe.steps[0].name(), "split_iname");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct StepSet(Arc<Table>);

#[derive(Clone, Default)]
struct Table {
    rows: BTreeMap<&'static str, PrimitiveInfo>,
    /// Verbs and former names, and the names of today.
    others: BTreeMap<&'static str, (Former, &'static str)>,
    combined: BTreeMap<&'static str, CombinedInfo>,
}

impl Table {
    fn knows(&self, name: &str) -> bool {
        self.rows.contains_key(name) || self.others.contains_key(name) || self.combined.contains_key(name)
    }

    fn add(&mut self, row: PrimitiveInfo) {
        let others = row.former.iter().copied().chain(row.verb);
        self.others.extend(others.map(|other| (other.name, (other, row.name))));
        self.rows.insert(row.name, row);
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rows.keys().chain(self.others.keys()).chain(self.combined.keys()).copied()
    }
}

/// A row of the table of primitives.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveInfo {
    /// The name in recipes, and of the file.
    pub name: &'static str,
    /// Name of the arguments' type.
    pub type_name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// What it proves, besides what every step keeps: [`STORAGE`](crate::refusal::STORAGE) and
    /// [`PLACEMENT`](crate::refusal::PLACEMENT).
    pub obligations: &'static [Obligation],
    /// What it keeps of the results, if its arguments say nothing else.
    pub keeps: Keeps,
    /// How often instructions run after it, if its arguments say nothing else.
    pub instances: Instances,
    /// The JSON schema of its arguments; its description is the documentation of the type.
    pub schema: fn() -> Schema,
    verb: Option<Former>,
    former: &'static [Former],
    arguments: Arguments,
    weight: usize,
    read: Read,
    draw: fn(&Kernel, &mut Picks<'_>) -> Option<Step>,
}

impl PrimitiveInfo {
    /// The row of a primitive.
    #[must_use]
    pub fn of<P: Primitive>() -> Self {
        let path = std::any::type_name::<P>();
        Self {
            name: P::NAME,
            type_name: path.rsplit("::").next().unwrap_or(path),
            summary: P::SUMMARY,
            obligations: P::OBLIGATIONS,
            keeps: P::KEEPS,
            instances: P::INSTANCES,
            schema: || SchemaGenerator::default().into_root_schema_for::<P>(),
            verb: P::VERB.map(Former::of::<P, P>),
            former: P::FORMER,
            arguments: fields_of::<P>(),
            weight: P::WEIGHT,
            read: |json| erased_serde::deserialize::<P>(json).map(Step::from),
            draw: |kernel, picks| P::draw(kernel, picks).map(Step::from),
        }
    }

    /// The names of its arguments in the order in which a schedule takes them.
    #[must_use]
    pub fn arguments(&self) -> &'static [&'static str] {
        self.arguments.names
    }

    /// Whether its arguments are alternatives, of which one is given by its name.
    #[must_use]
    pub fn takes_one_of(&self) -> bool {
        self.arguments.alternatives
    }

    /// The verb by which schedules may call it, too.
    #[must_use]
    pub fn verb(&self) -> Option<&'static str> {
        self.verb.map(|verb| verb.name)
    }

    /// Whether random recipes draw it.
    #[must_use]
    pub const fn is_drawn(&self) -> bool {
        self.weight > 0
    }

    /// A step with arguments that have a chance on a kernel, if there are any.
    pub fn draw(&self, kernel: &Kernel, picks: &mut Picks<'_>) -> Option<Step> {
        (self.draw)(kernel, picks)
    }

    /// The different steps that [`PrimitiveInfo::draw`] can make, by the first `limit` combinations of its
    /// choices, and whether these are all combinations.
    pub fn draw_all(&self, kernel: &Kernel, inputs: &dyn Inputs, limit: usize) -> (Vec<Step>, bool) {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut bytes = Some(Vec::new());
        for _ in 0..limit {
            let Some(now) = bytes else { break };
            let mut picks = Picks::new(&now, inputs);
            found.extend(self.draw(kernel, &mut picks).filter(|step| seen.insert(step.clone())));
            bytes = picks.following();
        }
        (found, bytes.is_none())
    }
}

/// The primitives of a crate, from rows `module::Primitive, further types;`: re-exports their
/// types, and defines `rows()`, of which a [`StepSet`] is made.
#[macro_export]
macro_rules! table {
    ($($module:ident::$primitive:ident $(, $more:ident)*;)*) => {
        $(pub use $module::{$primitive $(, $more)*};)*

        pub(crate) fn rows() -> Vec<$crate::PrimitiveInfo> {
            vec![$($crate::PrimitiveInfo::of::<$primitive>()),*]
        }
    };
}

/// A primitive that a set does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepSetError {
    /// Two primitives of one name.
    #[error("the set has a primitive `{0}` already; put the name of your crate in front, as in `acme.{0}`")]
    Taken(&'static str),
    /// A name that the text of a schedule cannot have.
    #[error("`{0}` is no name of a step; needed letters, digits, `_` and `.`, a letter first")]
    NotAName(&'static str),
}

impl StepSet {
    /// The set with one primitive more.
    ///
    /// # Errors
    /// A name that the set has, or that is no word of a schedule.
    pub fn with<P: Primitive>(mut self) -> Result<Self, StepSetError> {
        for name in std::iter::once(P::NAME).chain(P::VERB).chain(P::FORMER.iter().map(|f| f.name)) {
            if !is_word(name) {
                return Err(StepSetError::NotAName(name));
            }
            if self.0.knows(name) {
                return Err(StepSetError::Taken(name));
            }
        }
        Arc::make_mut(&mut self.0).add(PrimitiveInfo::of::<P>());
        Ok(self)
    }

    /// The set with the primitives of another one.
    ///
    /// # Errors
    /// A name that both have.
    pub fn and(mut self, other: &Self) -> Result<Self, StepSetError> {
        if let Some(name) = other.0.names().find(|name| self.0.knows(name)) {
            return Err(StepSetError::Taken(name));
        }
        let table = Arc::make_mut(&mut self.0);
        table.rows.extend(other.0.rows.iter());
        table.others.extend(other.0.others.iter());
        table.combined.extend(other.0.combined.iter());
        Ok(self)
    }

    /// The set of some rows, whose names differ.
    #[must_use]
    pub fn of(rows: impl IntoIterator<Item = PrimitiveInfo>) -> Self {
        let mut table = Table::default();
        rows.into_iter().for_each(|row| table.add(row));
        Self(Arc::new(table))
    }

    /// The set with steps that are made of others, whose names differ from all of the set.
    #[must_use]
    pub fn with_combined(mut self, steps: impl IntoIterator<Item = CombinedInfo>) -> Self {
        Arc::make_mut(&mut self.0).combined.extend(steps.into_iter().map(|step| (step.name, step)));
        self
    }

    /// Its primitives in the order of their names.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &PrimitiveInfo> {
        self.0.rows.values()
    }

    /// The primitive of this name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&PrimitiveInfo> {
        self.0.rows.get(name)
    }

    /// Its steps that are made of others, in the order of their names.
    pub fn combined_steps(&self) -> impl ExactSizeIterator<Item = &CombinedInfo> {
        self.0.combined.values()
    }

    /// The combined step of this name.
    #[must_use]
    pub fn combined(&self, name: &str) -> Option<&CombinedInfo> {
        self.0.combined.get(name)
    }

    /// How a step is read by its name, its verb or a name that it had.
    pub(crate) fn form(&self, name: &str) -> Option<(Arguments, Read)> {
        let today = self.row(name).map(|row| (row.arguments, row.read));
        today.or_else(|| self.0.others.get(name).map(|(other, _)| ((other.arguments)(), other.read)))
    }

    /// The primitive of this name, of this verb, or that had this name.
    #[must_use]
    pub fn called(&self, name: &str) -> Option<&PrimitiveInfo> {
        self.row(name).or_else(|| self.row(self.0.others.get(name)?.1))
    }

    /// The verbs and the former names: the primitive of today, and the arguments that a step takes
    /// by them.
    pub fn other_names(
        &self,
    ) -> impl Iterator<Item = (&'static str, &PrimitiveInfo, &'static [&'static str])> {
        self.0.others.iter().filter_map(move |(name, (other, today))| {
            Some((*name, self.row(today)?, (other.arguments)().names))
        })
    }

    /// A step of a random primitive, each in proportion to its weight; none where the kernel has
    /// nothing that the primitive could be tried on.
    pub fn draw(&self, kernel: &Kernel, picks: &mut Picks<'_>) -> Option<Step> {
        let drawn = self.rows().filter(|row| row.weight > 0);
        picks.first(drawn, |row| (row.name, row.weight))?.draw(kernel, picks)
    }

    /// What may be meant by a name that the set does not have.
    pub fn hint(&self, name: &str) -> String {
        suggestion(name, self.0.names()).unwrap_or_else(|| "`kingpost primitives` lists them".into())
    }
}

impl fmt::Debug for StepSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.rows.keys()).finish()
    }
}

/// By names: within a process a name is one primitive, or else the sets could not be joined.
impl PartialEq for StepSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.names().eq(other.0.names())
    }
}

impl Eq for StepSet {}

/// Reads one step.
impl<'de> DeserializeSeed<'de> for &StepSet {
    type Value = Step;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Step, D::Error> {
        deserializer.deserialize_map(OneStep(self))
    }
}

struct OneStep<'s>(&'s StepSet);

impl<'de> Visitor<'de> for OneStep<'_> {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step such as {\"split_iname\": {\"iname\": \"i\", \"factor\": 4}}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        let name: String = map.next_key()?.ok_or_else(|| A::Error::custom("a step without a name"))?;
        let Some((_, read)) = self.0.form(&name) else {
            let hint = self.0.hint(&name);
            return Err(A::Error::custom(format_args!("there is no step `{name}`; {hint}")));
        };
        let step = map.next_value_seed(Fields(read))?;
        match map.next_key::<String>()? {
            None => Ok(step),
            Some(other) => Err(A::Error::custom(format_args!(
                "found `{other}` after `{name}`, needed each step in brackets of its own"
            ))),
        }
    }
}

/// Reads the arguments of a step.
struct Fields(Read);

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Step;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Step, D::Error> {
        (self.0)(&mut <dyn erased_serde::Deserializer>::erase(deserializer)).map_err(D::Error::custom)
    }
}
