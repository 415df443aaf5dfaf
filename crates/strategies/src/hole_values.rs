//! Values for the holes of a schedule.

use crate::strategy::{Arguments, MappingError, Stopped, Strategy, Work};
use kingpost_primitives::schedule::Choice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Values for the holes of the schedule that belongs to a kernel
/// ([`CellKernel::script`](kingpost_forms::CellKernel::script)).
///
/// # Errors
/// A kernel without a schedule, a hole that it does not have, a step that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoleValues {
    /// The values by hole, as the text of a schedule has them.
    pub values: BTreeMap<String, String>,
}

impl From<&Choice> for HoleValues {
    fn from(choice: &Choice) -> Self {
        let text =
            |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Self { values: choice.values().iter().map(|(hole, value)| (hole.clone(), text(value))).collect() }
    }
}

impl fmt::Display for HoleValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        f.write_str(&values.join(", "))
    }
}

impl Arguments for HoleValues {
    const NAME: &'static str = "schedule";
    const SUMMARY: &'static str = "Values for the holes of the schedule of a kernel.";
}

impl Strategy for HoleValues {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let script = form.script().ok_or(MappingError::NoSchedule)?;
        let value = |(hole, text): (&String, &String)| {
            Ok((hole.clone(), script.value_of(hole, text).map_err(MappingError::Hole)?))
        };
        let values = self.values.iter().map(value).collect::<Result<Vec<_>, MappingError>>()?;
        let kernel = on.schedule().kernel().clone();
        *on.schedule() = script.apply_with(&kernel, &Choice::new(values)).map_err(Box::new)?;
        Ok(())
    }
}
