//! The tools.

use super::answer::{Answer, Wrong};
use super::arguments::{Apply, Auto, Load, Nothing, Primitives, Run, Save, SourceOf, Steps, Tune, Undo};
use super::server::Server;
use super::{engine, measured};
use schemars::schema_for;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A tool.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Whether its answer depends on clocks; such a tool changes nothing.
    pub measures: bool,
    schema: fn() -> Value,
    /// Calls it.
    pub call: fn(&mut Server, Value) -> Answer,
}

impl Tool {
    /// As `tools/list` has it.
    pub fn listed(&self) -> Value {
        json!({ "name": self.name, "description": self.what, "inputSchema": (self.schema)() })
    }
}

macro_rules! tools {
    ($($name:ident: $arguments:ident, $module:ident, measures $measures:literal; $what:literal)*) => {
        /// All tools.
        pub static TOOLS: &[Tool] = &[$(Tool {
            name: stringify!($name),
            what: $what,
            measures: $measures,
            schema: || schema_for!($arguments).to_value(),
            call: |server, given| $module::$name(server, read::<$arguments>(given)?),
        }),*];
    };
}

tools! {
    load: Load, engine, measures false;
        "Starts over with a kernel: its text (a loop program), or a form or file by the words of the command line"
    kernel: Nothing, engine, measures false;
        "The kernel as it is now: text, loops, statements with their accesses, arrays, and the steps so far"
    primitives: Primitives, engine, measures false;
        "Lists the primitives that steps are made of; of one named, its documentation, what it proves and the schema of \
         its arguments"
    steps: Steps, engine, measures false;
        "Steps that would be accepted now, with the arguments that primitives draw, each tried; and those that are refused, \
         with why"
    apply: Apply, engine, measures false;
        "Applies steps, all or none: lines of a schedule such as `split_iname(i, factor: 8)`, or a recipe in JSON. Says \
         what each made, met and keeps; a refusal has the two instances that clash"
    undo: Undo, engine, measures false;
        "Takes back the steps of the last calls of apply"
    dependences: Nothing, engine, measures false;
        "Which instances must come before which, as relations"
    source: SourceOf, engine, measures false;
        "The source for a target, with its launch plan"
    save: Save, engine, measures false;
        "All steps so far as the text of a schedule, as a recipe in JSON, or the kernel with its schedule as a file"
    predict: Run, measured, measures true;
        "What the cost model of a device predicts of the kernel as it is now, and how far that is from the roofline; \
         nothing is run but what measures the device's ceilings, once a day"
    time: Run, measured, measures true;
        "Compiles, runs, compares and times the kernel as it is now on a device, and says how far it is from the roofline"
    auto: Auto, measured, measures true;
        "Finds a schedule for the kernel as it is now without a user's step: the best proposals are run, compared and \
         timed. Returns schedules to apply; applies none"
    tune: Tune, measured, measures true;
        "Tries values for the holes of a schedule (`tile in [8, 16]`, then steps that use `tile`), or of the one that the \
         loaded text ends with, on the kernel as it is now; returns times and the best steps to apply; applies none"
}

/// The arguments of a tool.
fn read<A: DeserializeOwned>(given: Value) -> Result<A, Wrong> {
    serde_json::from_value(given)
        .map_err(|e| Wrong::new("usage", format!("arguments: {e}; `tools` has the schema")))
}
