//! Other names of steps: those that they had before, and short ones.

use crate::primitive::Primitive;
use crate::schedule::{Arguments, fields_of};
use crate::step::Step;
use serde::de::DeserializeOwned;

/// Reads a step from the JSON of its arguments.
pub type Read = fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<Step, erased_serde::Error>;

/// A name that a step had, and how the arguments that it took become those of today.
///
/// Recipes and schedules with that name are read; none is written.
#[derive(Clone, Copy, Debug)]
pub struct Former {
    pub(crate) name: &'static str,
    pub(crate) arguments: fn() -> Arguments,
    pub(crate) read: Read,
}

impl Former {
    /// The primitive `P` was called `name`, with the arguments `Old`.
    #[must_use]
    pub const fn of<Old: DeserializeOwned + Into<P>, P: Primitive>(name: &'static str) -> Self {
        Self {
            name,
            arguments: || fields_of::<Old>(),
            read: |json| erased_serde::deserialize::<Old>(json).map(|old| Step::from(old.into())),
        }
    }
}
