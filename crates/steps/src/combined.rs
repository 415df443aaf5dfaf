//! Steps of schedules that are made of others.

use crate::refusal::TransformError;
use crate::schedule::{Arguments, Made, Schedule, fields_of};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fmt;

/// A step that is made of others, with its arguments. A schedule records what it is made of.
pub trait Combined: fmt::Debug {
    /// Applies and records the steps that it is made of, or none of them.
    ///
    /// # Errors
    /// The step that is refused, or the combined one for its arguments.
    fn apply(&self, schedule: &mut Schedule) -> Result<Made, TransformError>;
}

/// A combined step of a set.
#[derive(Clone, Copy, Debug)]
pub struct CombinedInfo {
    /// The name in schedules.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    pub(crate) arguments: Arguments,
    pub(crate) read: fn(Json) -> serde_json::Result<Box<dyn Combined>>,
}

impl CombinedInfo {
    /// The combined step of a name, what it does, with arguments of a type.
    #[must_use]
    pub fn of<C: Combined + DeserializeOwned + 'static>(name: &'static str, summary: &'static str) -> Self {
        let read = |json| serde_json::from_value::<C>(json).map(|step| Box::new(step) as Box<dyn Combined>);
        Self { name, summary, arguments: fields_of::<C>(), read }
    }

    /// The names of its arguments in the order in which a schedule takes them.
    #[must_use]
    pub fn arguments(&self) -> &'static [&'static str] {
        self.arguments.names
    }
}
